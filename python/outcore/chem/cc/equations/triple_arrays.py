"""Derivatives of (T) of closed shells: arrays of amplitudes and integrals, and small ones (see
`triple_derivatives`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.plan.triple_sizes import triple_sums

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.triples import Pair, Single, TriplesBlock
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SAME_ENERGY = 1e-5
"""Energy difference (Hartree) of virtual orbitals below which their element of the density is computed by
itself."""
DERIVATIVES = ("T3", "Boo3", "Bvo3", "Bvv3")
ROWS = ("T3rows", "Bvo3rows", "Bvv3rows")
"""Names in the plan of sums of derivatives by T and B, orbital by orbital: [c,k,d,j], [Q,a,i], [Q,b,d]."""
SMALL = "S3"
"""Name in the plan of the `Sums` of all processes."""


class Derivatives:
    """Derivatives of the energy of (T), as arrays of a room.

    Attributes:
        t1: by singles [i,a].
        one: by the Fock matrix, gamma [n][n], symmetric.
        t2: by T, with its symmetry.
        boo, bvo, bvv: by B[Q,ij], B[Q,ai] and B[Q,ab]; the second by B[Q,ai] and B[Q,ia] together, the last
            symmetric.
    """

    def __init__(self, room: Room, t1: Values, one: Values) -> None:
        self.t1, self.one = t1, one
        self.t2, self.boo, self.bvo, self.bvv = (room.array(name) for name in DERIVATIVES)

    @property
    def named(self) -> dict[str, Array]:
        """Arrays by their names in the plan."""
        return dict(zip(DERIVATIVES, (self.t2, self.boo, self.bvo, self.bvv), strict=True))

    def collect(self, room: Room, rows: Sequence[Array], cuts: Sequence[int]) -> None:
        """Collects the sums of `ROWS`, and gives these back. cuts: of virtual orbitals. Collective."""
        of_t, of_vo, of_vv = rows

        def doubles(tile: Tile) -> None:
            a, b = tile[0], tile[2]
            one = stacked(of_t, [(x, 0, b, 0) for x in range(cuts[a], cuts[a + 1])], 0)
            other = stacked(of_t, [(x, 0, a, 0) for x in range(cuts[b], cuts[b + 1])], 0)
            self.t2.put_tile(tile, 0.5 * (one + other.transpose(2, 3, 0, 1)))

        def mixed(tile: Tile) -> None:
            a = tile[1]
            self.bvo.put_tile(tile, stacked(of_vo, [(0, x, 0) for x in range(cuts[a], cuts[a + 1])], 1))

        def virtual(tile: Tile) -> None:
            _, a, b = tile
            one = stacked(of_vv, [(0, x, b) for x in range(cuts[a], cuts[a + 1])], 1)
            other = stacked(of_vv, [(0, x, a) for x in range(cuts[b], cuts[b + 1])], 1)
            self.bvv.put_tile(tile, 0.5 * (one + other.transpose(0, 2, 1)))

        for array, put in ((self.t2, doubles), (self.bvo, mixed), (self.bvv, virtual)):
            room.each_tile(array, put, "derivatives of triples")
        room.release(*rows)

    def rotation(self, room: Room, t1: Values, t2: Array, integrals: Integrals) -> Values:
        """M of virtual orbitals, without the Fock matrix. Collective."""
        c = room.contract
        found: Values = t1.T @ self.t1 + 2.0 * c("bicj,aicj->ba", t2, self.t2)
        found += c("Qbi,Qai->ba", integrals.bvo, self.bvo) + 2.0 * c("Qbd,Qad->ba", integrals.bvv, self.bvv)
        return found


def stacked(array: Array, tiles: Sequence[Tile], axis: int) -> Values:
    """Tiles of an array, side by side."""
    return np.concatenate([array.get_tile(tile) for tile in tiles], axis)


@dataclass(eq=False)
class Part:
    """A block of virtual orbitals x, with its sums. flat: t_kj^xd as [x][j,k][d]."""

    block: TriplesBlock
    single: Single
    flat: Values
    of_t: Values  # [x][j,k][d]
    of_ooo: Values  # [x][i,j][l] of (xi|jl)
    of_vv: Values  # [Q,x,d]
    of_vo: Values  # [Q,x,i]
    guards: list[threading.Lock]


class Sums:
    """Small derivatives: by the Fock matrix and singles. All are parts of `values`."""

    def __init__(self, o: int, v: int, values: Values | None = None) -> None:
        shapes = {"t1": (o, v), "ov": (o, v), "oo": (o, o), "vv": (v, v), "diagonal": (v,), "energy": (1,)}
        self.values = np.zeros(triple_sums(o, v)) if values is None else values
        begin = 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            setattr(self, name, self.values[begin : begin + size].reshape(shape))
            begin += size

    t1: Values
    ov: Values
    oo: Values
    vv: Values
    diagonal: Values
    energy: Values

    def one_particle(self, energies: Values, groups: Sequence[tuple[int, int]], m: Values) -> Values:
        """gamma [n][n]. energies: of virtual orbitals. m: their rotation."""
        gaps = energies[:, None] - energies[None, :]
        near = np.eye(len(energies), dtype=bool)
        for begin, end in groups:
            near[begin:end, begin:end] = True
        vv = np.where(near, self.vv, (m.T - m) / np.where(near, 1.0, 2.0 * gaps))
        vv[np.diag_indices(len(energies))] = self.diagonal
        oo, ov = 0.5 * (self.oo + self.oo.T), 0.5 * self.ov
        return np.block([[oo, ov], [ov.T, vv]])


def groups(energies: Values) -> list[tuple[int, int]]:
    """Ranges that hold two or more orbitals of the same energy."""
    found: list[tuple[int, int]] = []
    order = np.argsort(energies, kind="stable")
    for one, other in pairwise(order):
        if energies[other] - energies[one] < SAME_ENERGY:
            found.append((int(min(one, other)), int(max(one, other)) + 1))
    return _merged(sorted(found))


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for begin, end in ranges:
        if found and begin < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def integrals_of(pairs: dict[tuple[int, int], Pair], m: int, n: int, a: int) -> Values:
    """(bd|ai) as [b][d][i], of an orbital a of the block in place m, and all b of that in place n."""
    return pairs[m, n][0][a] if m < n else pairs[n, m][1][:, a]


def amplitudes_of(pairs: dict[tuple[int, int], Pair], m: int, n: int, c: int) -> Values:
    """t_lk^bc as [b][k][l], of an orbital c of the block in place n, and all b of that in place m."""
    return pairs[m, n][3][:, c] if m < n else pairs[n, m][2][c]
