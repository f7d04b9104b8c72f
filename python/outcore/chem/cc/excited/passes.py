"""What a search does with all of its vectors, tile by tile, in one pass each. Collective."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.excited.vectors import StateEquations, StateVector
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SMALLEST = 0.02
"""Hartree: denominators of corrections are not nearer to zero."""


@dataclass(frozen=True)
class Products:
    """[row][vector] of rows with vectors, of rows with H times vectors; [vector][row] of vectors with H times rows;
    squares of H times rows."""

    overlap: Values
    hamiltonian: Values
    transposed: Values
    squares: Values


class TilesAtATime:
    """Lets so many threads work at a time as a part of the work space has room for. limit_bytes: of that; 0: one
    thread. tiles: that each has."""

    def __init__(self, limit_bytes: int, tiles: int, driver: Array) -> None:
        largest = max((math.prod(driver.layout.tile_shape(each)) for each in driver.layout.stored), default=1)
        self._free = threading.BoundedSemaphore(max(1, limit_bytes // (8 * tiles * largest)))

    def __enter__(self) -> None:
        self._free.acquire()

    def __exit__(self, *_: object) -> None:
        self._free.release()


def _rows(vectors: Sequence[Array], tile: Tile) -> Values:
    return np.array([each.get_tile(tile).ravel() for each in vectors])


def _parts(vectors: Sequence[StateVector]) -> list[list[Array]]:
    """Doubles of all vectors, by parts."""
    return [list(each) for each in zip(*(vector.doubles for vector in vectors), strict=True)]


def _sum(rows: Values, vectors: Sequence[Array], tile: Tile) -> Values:
    """Combinations [row][element] of a tile of all vectors, of which one is in memory at a time."""
    first, *others = vectors
    found: Values = np.outer(rows[:, 0], first.get_tile(tile).ravel())
    for column, each in zip(rows.T[1:], others, strict=True):
        values = each.get_tile(tile).ravel()
        for total, factor in zip(found, column, strict=True):
            np.add(total, factor * values, out=total)
    return found


def _leave(rows: Values, mask: Values | None, shape: tuple[int, ...]) -> None:
    """Of rows of elements of this shape what the mask has, in place."""
    if mask is not None:
        rows *= np.broadcast_to(mask, shape).ravel()


def _weight(array: Array, tile: Tile) -> float:
    """How often its elements are there."""
    return float(sum(1 for _ in array.layout.images(tile)))


def _singles(vectors: Sequence[StateVector]) -> Values:
    return np.array([each.singles.ravel() for each in vectors])


def products(
    room: Room,
    vectors: Sequence[StateVector],
    multiplied: Sequence[StateVector],
    first: int,
    limit_bytes: int = 0,
) -> Products:
    """Rows: vectors from the number `first` on. multiplied: H times each."""
    m, guard = len(vectors), threading.Lock()
    count = m - first
    sums = [np.zeros((count, m)), np.zeros((count, m)), np.zeros((m, count)), np.zeros(count)]

    def work(tile: Tile, gate: TilesAtATime, v: list[Array], hv: list[Array]) -> None:
        with gate:
            x, hx = _rows(v[first:], tile), _rows(hv[first:], tile)
            made = [np.zeros_like(each) for each in sums]
            made[3] = np.einsum("ij,ij->i", hx, hx)
            for number, (one, other) in enumerate(zip(v, hv, strict=True)):
                values = one.get_tile(tile).ravel()
                made[0][:, number], made[2][number] = x @ values, hx @ values
                made[1][:, number] = x @ other.get_tile(tile).ravel()
        weight = _weight(v[first], tile)
        with guard:
            for total, each in zip(sums, made, strict=True):
                np.add(total, weight * each, out=total)

    for v, hv in zip(_parts(vectors), _parts(multiplied), strict=True):
        gate = TilesAtATime(limit_bytes, 2 * count + 2, v[first])
        room.each_tile(v[first], partial(work, gate=gate, v=v, hv=hv), "products of vectors")
    x, hx = _singles(vectors), _singles(multiplied)
    of_singles = x[first:] @ x.T, x[first:] @ hx.T, x @ hx[first:].T, np.einsum("ij,ij->i", hx, hx)[first:]
    sums = [np.asarray(room.world.all_reduce(each)) for each in sums]
    return Products(*(one + other for one, other in zip(sums, of_singles, strict=True)))


def overlaps(
    room: Room,
    left: Sequence[StateVector],
    right: Sequence[StateVector],
    limit_bytes: int = 0,
    shares: Sequence[float] = (1.0,),
) -> Values:
    """<l|r> of all elements, [left][right]. shares: of each part of doubles."""
    total, guard = np.zeros((len(left), len(right))), threading.Lock()

    def work(tile: Tile, gate: TilesAtATime, share: float, one: list[Array], other: list[Array]) -> None:
        with gate:
            x = _rows(one, tile)
            made = np.stack([x @ each.get_tile(tile).ravel() for each in other], axis=1)
        weight = share * _weight(one[0], tile)
        with guard:
            np.add(total, weight * made, out=total)

    for share, one, other in zip(shares, _parts(left), _parts(right), strict=True):
        gate = TilesAtATime(limit_bytes, len(left) + 1, one[0])
        of_part = partial(work, gate=gate, share=share, one=one, other=other)
        room.each_tile(one[0], of_part, "overlaps of vectors")
    found: Values = np.asarray(room.world.all_reduce(total)) + _singles(left) @ _singles(right).T
    return found


def correct(
    room: Room,
    equations: StateEquations,
    vectors: Sequence[StateVector],
    multiplied: Sequence[StateVector],
    states: Values,
    energies: Values,
    new: Sequence[StateVector],
    limit_bytes: int = 0,
) -> Values:
    """Corrections of states, [state][vector], into new vectors; norms of residuals."""
    sums, guard = np.zeros(len(states)), threading.Lock()
    shifted = -energies[:, None] * states

    def corrected(residual: Values, diagonal: Values) -> Values:
        gap = diagonal.ravel() - energies[:, None]
        gap = np.where(np.abs(gap) < SMALLEST, np.copysign(SMALLEST, gap), gap)
        made: Values = -residual / gap
        return made

    def work(
        tile: Tile, gate: TilesAtATime, part: int, v: list[Array], hv: list[Array], out: list[Array]
    ) -> None:
        with gate:
            diagonal = equations.diagonal_of(part, tile)
            residual = _sum(states, hv, tile)
            residual += _sum(shifted, v, tile)
            _leave(residual, equations.mask_of(part, tile), diagonal.shape)
            for array, values in zip(out, corrected(residual, diagonal), strict=True):
                array.put_tile(tile, values.reshape(diagonal.shape))
            squares = _weight(out[0], tile) * np.einsum("ij,ij->i", residual, residual)
        with guard:
            np.add(sums, squares, out=sums)

    every = zip(_parts(vectors), _parts(multiplied), _parts(new), strict=True)
    for part, (v, hv, out) in enumerate(every):
        gate = TilesAtATime(limit_bytes, 4 * len(states), out[0])
        room.each_tile(out[0], partial(work, gate=gate, part=part, v=v, hv=hv, out=out), "corrections")
        for array in out:
            array.sync()
    residual = states @ _singles(multiplied) + shifted @ _singles(vectors)
    _leave(residual, equations.mask(), vectors[0].singles.shape)
    for each, values in zip(new, corrected(residual, equations.diagonal()), strict=True):
        each.singles = values.reshape(vectors[0].singles.shape)
    squares = np.asarray(room.world.all_reduce(sums)) + np.einsum("ij,ij->i", residual, residual)
    found: Values = np.sqrt(squares)
    return found


def combine(room: Room, vectors: Sequence[StateVector], rows: Values, limit_bytes: int = 0) -> None:
    """The first vectors become these combinations, [new][old], of all."""

    def work(tile: Tile, gate: TilesAtATime, v: list[Array]) -> None:
        shape = v[0].layout.tile_shape(tile)
        with gate:
            for array, values in zip(v, _sum(rows, v, tile), strict=False):
                array.put_tile(tile, values.reshape(shape))

    for v in _parts(vectors):
        gate = TilesAtATime(limit_bytes, len(rows) + 2, v[0])
        room.each_tile(v[0], partial(work, gate=gate, v=v), "combine vectors")
        for array in v[: len(rows)]:
            array.sync()
    for each, values in zip(vectors, rows @ _singles(vectors), strict=False):
        each.singles = values.reshape(each.singles.shape)


def put(room: Room, equations: StateEquations, guess: FirstState, arrays: Sequence[Array]) -> None:
    """Doubles of a start vector."""
    doubles = guess.doubles
    if doubles is None:
        clear(room, arrays)
        return

    def work(tile: Tile, part: int, array: Array) -> None:
        values = doubles(part, tile)
        mask = equations.mask_of(part, tile)
        array.put_tile(tile, values if mask is None else values * mask)

    for part, array in enumerate(arrays):
        room.each_tile(array, partial(work, part=part, array=array), "first states")


def clear(room: Room, arrays: Sequence[Array]) -> None:
    """Zeros."""

    def work(tile: Tile, array: Array) -> None:
        array.put_tile(tile, np.zeros(array.layout.tile_shape(tile)))

    for array in arrays:
        room.each_tile(array, partial(work, array=array), "clear")


def squares(room: Room, equations: StateEquations, vector: StateVector) -> tuple[float, float]:
    """What singles and doubles add to the square of the norm of a state."""
    total, guard = [0.0], threading.Lock()

    def work(tile: Tile, part: int, array: Array) -> None:
        found = equations.square_of(part, tile, array)
        with guard:
            total[0] += found

    for part, array in enumerate(vector.doubles):
        room.each_tile(array, partial(work, part=part, array=array), "norm")
    return equations.square(vector.singles), float(room.world.all_reduce(total[0]))
