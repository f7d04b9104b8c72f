"""Which tiles of a tensor are present; all others are zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from outcore.job import arguments
from outcore.tensor.layout.tiling import Tiling

Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Labels:
    """Names the tiles whose labels multiply to the wanted irrep and spin.

    irrep: the XOR of the irreps of the axes; None: any.
    spin: the sum of the spins of the axes, each times its sign; None: any.
    signs: 1 or -1 for each axis, as for creators and annihilators of an operator. None: 1 for the first half of the
        axes and -1 for the second; if their number is odd, 1 for all.
    """

    irrep: int | None = 0
    spin: int | None = None
    signs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, value, low, high in (("irrep", self.irrep, 0, 7), ("spin", self.spin, -8, 8)):
            if value is not None and not low <= arguments.integer(name, value) <= high:
                raise ValueError(f"{name} is {value}; it may be {low} to {high}, or None")

    def flags(self, tilings: Sequence[Tiling]) -> Flags:
        rank = len(tilings)
        there = np.ones(tuple(len(axis) for axis in tilings), bool)
        if self.irrep is not None:
            there &= _outer(np.bitwise_xor, [np.array(axis.irreps) for axis in tilings]) == self.irrep
        if self.spin is not None:
            signs = self.signs or ((1,) * rank if rank % 2 else (1,) * (rank // 2) + (-1,) * (rank // 2))
            if len(signs) != rank or any(sign not in (1, -1) for sign in signs):
                raise ValueError(f"signs {self.signs} of {rank} axes")
            spins = [sign * np.array(axis.spins) for sign, axis in zip(signs, tilings, strict=True)]
            there &= _outer(np.add, spins) == self.spin
        return there


Sparsity = Labels | Flags | Iterable[Sequence[int]] | None
"""All tiles (None), the tiles with some labels, those of an array of booleans, or those whose indices are
listed."""


def flags(sparsity: Sparsity, tilings: Sequence[Tiling]) -> Flags:
    """Whether each tile is present. Raises ValueError for an array of another shape, IndexError for a tile
    outside."""
    grid = tuple(len(axis) for axis in tilings)
    if sparsity is None:
        return np.ones(grid, bool)
    if isinstance(sparsity, Labels):
        return sparsity.flags(tilings)
    if isinstance(sparsity, str):
        raise TypeError(f"sparsity {sparsity!r}: it is Labels, a map of booleans, or indices of tiles")
    if isinstance(sparsity, np.ndarray) and sparsity.dtype == bool:
        if sparsity.shape != grid:
            raise ValueError(f"a map of {sparsity.shape} tiles for {grid}")
        return sparsity.copy()
    there = np.zeros(grid, bool)
    for tile in sparsity:
        index = tuple(arguments.integers("tile", tile))
        if len(index) != len(grid) or any(not 0 <= i < n for i, n in zip(index, grid, strict=True)):
            raise IndexError(f"tile {index} is none of {grid}")
        there[index] = True
    return there


def _outer(operation: Any, labels: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    rank = len(labels)
    shaped = [each.reshape([-1 if i == axis else 1 for i in range(rank)]) for axis, each in enumerate(labels)]
    result: np.ndarray[Any, Any] = reduce(operation, shaped)
    return result
