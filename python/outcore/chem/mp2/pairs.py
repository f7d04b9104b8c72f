"""Energies of pairs of occupied orbitals from tiles of three-index integrals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core

if TYPE_CHECKING:
    from outcore.chem.ri.transformed import Transformed

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class PairKind:
    """Pairs of one kind: occupied orbitals of `first` with those of `second`, "aa", "bb", "ab", or "" for closed
    shells, whose pairs count for both kinds of spin."""

    name: str
    first: int
    second: int

    @property
    def same(self) -> bool:
        return self.first == self.second


def pairs_of(
    case: PairKind,
    first: Transformed,
    second: Transformed,
    i: int,
    block: Any,
    tile: Any,
    product: Matrix,
    sums: Matrix,
    signs: Matrix | None,
) -> None:
    """Puts energies of pairs of orbital i with orbitals of a tile, j <= i if both are of the same kind, into
    `sums`. signs: see `Rows`."""
    end = min(tile.end, i + 1) if case.same else tile.end
    count = end - tile.begin
    if count <= 0:
        return
    a, b = first.orbitals.virtual_energies, second.orbitals.virtual_energies
    gaps = first.orbitals.occupied_energies[i] + second.orbitals.occupied_energies[tile.begin : end]
    v = product[: len(a) * count * len(b)].reshape(len(a), count, len(b))
    left = block.values[:, i - block.begin, :]
    contract(left if signs is None else signs[:, None] * left, tile.values[:, :count, :], v)
    sums[:, i, tile.begin : end] = np.array(_core.pair_sums(v, gaps, a, b, case.same)).T


def contract(left: Matrix, right: Matrix, out: Matrix) -> None:
    """out[a, j, b] = sum_P left[P, a] right[P, j, b]; no copies where BLAS can do without."""
    rows, count, columns = right.shape
    if count == 1 or right.strides[1] == columns * right.strides[2]:
        flat = np.lib.stride_tricks.as_strided(
            right, (rows, count * columns), (right.strides[0], right.strides[2])
        )
        np.matmul(left.T, flat, out=out.reshape(len(out), -1))
        return
    for j in range(count):
        out[:, j] = left.T @ right[:, j]
