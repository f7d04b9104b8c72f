"""Operations of a search on all of its vectors, tile by tile, each in one pass. Collective."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.iteration import Moved
from outcore.chem.cc.plan.buffers import Buffers
from outcore.parallel.requests import all_of
from outcore.tensor.plan.gemm import add_product

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.excited.vectors import StateEquations, StateVector
    from outcore.chem.cc.plan.room import Room
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SMALLEST = 0.02
"""The least size of a denominator of a correction (Hartree)."""


@dataclass(frozen=True)
class Products:
    """Scalar products. overlap, hamiltonian: [row][vector], of rows with vectors, and with H times vectors.
    transposed: [vector][row], of vectors with H times rows. squares: of H times rows."""

    overlap: Values
    hamiltonian: Values
    transposed: Values
    squares: Values


class PassTraffic:
    """Counts the disk traffic of passes. Any thread, except where noted."""

    def __init__(self) -> None:
        self._planned, self._counted, self._guard = 0.0, 0.0, threading.Lock()

    def plan(self, *groups: Sequence[Array]) -> None:
        """A pass will read or write each of these arrays once."""
        self._planned += sum(float(each.nbytes) for group in groups for each in group if each.where == "disk")

    def count(self, arrays: Sequence[Array], tile: Tile) -> None:
        """A tile of each array was read or written."""
        on_disk = sum(each.where == "disk" for each in arrays)
        if on_disk:
            with self._guard:
                self._counted += on_disk * 8.0 * math.prod(arrays[0].layout.tile_shape(tile))

    def take(self, world: World) -> Moved:
        """The traffic of all processes since the last call. Collective."""
        counted = float(world.all_reduce(self._counted))
        found = Moved(self._planned, counted, self._planned)
        self._planned = self._counted = 0.0
        return found


_GROUP = 4
"""Tiles that a thread fetches at a time."""


class _Tiles:
    """Tiles of many vectors, as rows of matrices of a few vectors each. While a thread works on one matrix, the
    tiles of the next are fetched. Buffers are used again for each tile. As many threads work at a time as a part of
    the work space has room for.

    Args:
        threads: most threads at work.
        limit_bytes: size of that part of the work space; 0: one thread works.
        beside: tiles that a thread holds beside those that it fetches.
        driver: an array with the same tiles as all others.
        traffic: counts tiles that are read, and those that `put` writes.
    """

    def __init__(
        self, threads: int, limit_bytes: int, beside: int, driver: Array, traffic: PassTraffic | None
    ) -> None:
        self._driver, self._traffic = driver, traffic or PassTraffic()
        tile_bytes = 8 * max(
            (math.prod(driver.layout.tile_shape(each)) for each in driver.layout.stored), default=1
        )
        fits = limit_bytes // tile_bytes
        self._group = max(1, min(_GROUP, (fits // threads - beside) // 2))
        at_once = max(1, min(threads, fits // (beside + 2 * self._group)))
        self._free, self._idle = threading.BoundedSemaphore(at_once), [Buffers() for _ in range(at_once)]
        self._thread = threading.local()

    def __enter__(self) -> None:
        self._free.acquire()
        self._thread.buffers = self._idle.pop()

    def __exit__(self, *_: object) -> None:
        self._idle.append(self._thread.buffers)
        self._free.release()

    def take(self, key: Hashable, count: int, tile: Tile) -> Values:
        """A buffer [row][element], not cleared."""
        buffers: Buffers = self._thread.buffers
        return buffers.take(key, (count, math.prod(self._driver.tile_shape(tile))))

    def get(self, key: Hashable, arrays: Sequence[Array], tile: Tile) -> Values:
        """A tile of all arrays at once, [array][element]."""
        found = self.take(key, len(arrays), tile)
        self._start(arrays, tile, found).wait()
        return found

    def groups(self, arrays: Sequence[Array], tile: Tile) -> Iterator[tuple[slice, Values]]:
        """A tile of all arrays, some arrays at a time: their numbers, and values [array][element], which are valid
        until the next step."""
        places = [slice(n, min(n + self._group, len(arrays))) for n in range(0, len(arrays), self._group)]

        def start(number: int) -> tuple[Request, Values]:
            place = places[number]
            into = self.take(f"group {number % 2}", place.stop - place.start, tile)
            return self._start(arrays[place], tile, into), into

        if not places:
            return
        under_way = start(0)
        for number, place in enumerate(places):
            request, values = under_way
            if number + 1 < len(places):
                under_way = start(number + 1)
            request.wait()
            yield place, values

    def put(self, array: Array, tile: Tile, values: Values) -> None:
        """Puts a tile from a row of its elements."""
        array.put_tile(tile, values.reshape(self._driver.tile_shape(tile)))
        self._traffic.count([array], tile)

    def _start(self, arrays: Sequence[Array], tile: Tile, into: Values) -> Request:
        shape = self._driver.tile_shape(tile)
        self._traffic.count(arrays, tile)
        every = zip(arrays, into, strict=True)
        return all_of([each.get_tile_async(tile, row.reshape(shape)) for each, row in every])

    def sum(self, key: Hashable, terms: Sequence[tuple[Values, Sequence[Array]]], tile: Tile) -> Values:
        """sum_n rows[row,n] of a tile of array n, over all terms, [row][element]."""
        found = self.take(key, len(terms[0][0]), tile)
        is_first = True
        for rows, arrays in terms:
            for place, values in self.groups(arrays, tile):
                add_product(np.ascontiguousarray(rows[:, place]), values, found, add=not is_first)
                is_first = False
        return found


def _parts(vectors: Sequence[StateVector]) -> list[list[Array]]:
    """Doubles of all vectors, by parts."""
    return [list(each) for each in zip(*(vector.doubles for vector in vectors), strict=True)]


def _leave(rows: Values, mask: Values | None, shape: tuple[int, ...]) -> None:
    """Multiplies rows of elements of this shape by the mask, in place."""
    if mask is not None:
        rows *= np.broadcast_to(mask, shape).ravel()


def _weight(array: Array, tile: Tile) -> float:
    """How often the elements of a stored tile occur in the array, by its symmetry."""
    return float(sum(1 for _ in array.layout.images(tile)))


def _singles(vectors: Sequence[StateVector]) -> Values:
    return np.array([each.singles.ravel() for each in vectors])


def products(
    room: Room,
    vectors: Sequence[StateVector],
    multiplied: Sequence[StateVector],
    first: int,
    limit_bytes: int = 0,
    traffic: PassTraffic | None = None,
) -> Products:
    """Scalar products of vectors. Rows are the vectors from number `first` on. multiplied: H times each vector."""
    m, guard = len(vectors), threading.Lock()
    count = m - first
    sums = [np.zeros((count, m)), np.zeros((count, m)), np.zeros((m, count)), np.zeros(count)]

    def work(tile: Tile, tiles: _Tiles, v: list[Array], hv: list[Array]) -> None:
        with tiles:
            x, hx = tiles.get("x", v[first:], tile), tiles.get("hx", hv[first:], tile)
            made = [np.zeros_like(each) for each in sums]
            made[3] = np.einsum("ij,ij->i", hx, hx)
            for place, values in tiles.groups(v, tile):
                made[0][:, place], made[2][place] = x @ values.T, values @ hx.T
            for place, values in tiles.groups(hv, tile):
                made[1][:, place] = x @ values.T
        weight = _weight(v[first], tile)
        with guard:
            for total, each in zip(sums, made, strict=True):
                np.add(total, weight * each, out=total)

    for v, hv in zip(_parts(vectors), _parts(multiplied), strict=True):
        tiles = _Tiles(room.threads, limit_bytes, 2 * count, v[first], traffic)
        if traffic is not None:
            traffic.plan(v[first:], hv[first:], v, hv)
        room.each_tile(v[first], partial(work, tiles=tiles, v=v, hv=hv), "products of vectors")
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
    """Overlaps <l|r> of all vectors, [left][right]. shares: factor of each part of doubles."""
    total, guard = np.zeros((len(left), len(right))), threading.Lock()

    def work(tile: Tile, tiles: _Tiles, share: float, one: list[Array], other: list[Array]) -> None:
        made = np.zeros_like(total)
        with tiles:
            x = tiles.get("x", one, tile)
            for place, values in tiles.groups(other, tile):
                made[:, place] = x @ values.T
        weight = share * _weight(one[0], tile)
        with guard:
            np.add(total, weight * made, out=total)

    for share, one, other in zip(shares, _parts(left), _parts(right), strict=True):
        tiles = _Tiles(room.threads, limit_bytes, len(left), one[0], None)
        of_part = partial(work, tiles=tiles, share=share, one=one, other=other)
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
    traffic: PassTraffic | None = None,
) -> Values:
    """Puts corrections of states, [state][vector], into new vectors; returns the norms of residuals."""
    sums, guard = np.zeros(len(states)), threading.Lock()
    shifted = -energies[:, None] * states

    def work(tile: Tile, tiles: _Tiles, part: int, v: list[Array], hv: list[Array], out: list[Array]) -> None:
        with tiles:
            diagonal = equations.diagonal_of(part, tile)
            residual = tiles.sum("residual", [(states, hv), (shifted, v)], tile)
            _leave(residual, equations.mask_of(part, tile), diagonal.shape)
            squares = _weight(out[0], tile) * np.einsum("ij,ij->i", residual, residual)
            _divide(residual, diagonal.ravel(), energies, tiles.take("gap", 1, tile)[0])
            for array, values in zip(out, residual, strict=True):
                tiles.put(array, tile, values)
        with guard:
            np.add(sums, squares, out=sums)

    every = zip(_parts(vectors), _parts(multiplied), _parts(new), strict=True)
    for part, (v, hv, out) in enumerate(every):
        tiles = _Tiles(room.threads, limit_bytes, len(states) + 2, out[0], traffic)
        if traffic is not None:
            traffic.plan(v, hv, out)
        room.each_tile(out[0], partial(work, tiles=tiles, part=part, v=v, hv=hv, out=out), "corrections")
        for array in out:
            array.sync()
    residual = states @ _singles(multiplied) + shifted @ _singles(vectors)
    _leave(residual, equations.mask(), vectors[0].singles.shape)
    squares = np.asarray(room.world.all_reduce(sums)) + np.einsum("ij,ij->i", residual, residual)
    diagonal = equations.diagonal().ravel()
    _divide(residual, diagonal, energies, np.empty_like(diagonal))
    for each, values in zip(new, residual, strict=True):
        each.singles = values.reshape(vectors[0].singles.shape)
    found: Values = np.sqrt(squares)
    return found


def _divide(residual: Values, diagonal: Values, energies: Values, gap: Values) -> None:
    """Divides residuals by energy gaps, in place: they become corrections. gap: a buffer for one of them."""
    for values, energy in zip(residual, energies, strict=True):
        np.subtract(energy, diagonal, out=gap)
        small = np.abs(gap) < SMALLEST
        if small.any():
            gap[small] = np.copysign(SMALLEST, gap[small])
        np.divide(values, gap, out=values)


def combine(
    room: Room,
    vectors: Sequence[StateVector],
    rows: Values,
    limit_bytes: int = 0,
    traffic: PassTraffic | None = None,
) -> None:
    """Replaces the first vectors by combinations of all. rows: coefficients [new][old]."""

    def work(tile: Tile, tiles: _Tiles, v: list[Array]) -> None:
        with tiles:
            made = tiles.sum("made", [(rows, v)], tile)
            for array, values in zip(v, made, strict=False):
                tiles.put(array, tile, values)

    for v in _parts(vectors):
        tiles = _Tiles(room.threads, limit_bytes, len(rows), v[0], traffic)
        if traffic is not None:
            traffic.plan(v, v[: len(rows)])
        room.each_tile(v[0], partial(work, tiles=tiles, v=v), "combine vectors")
        for array in v[: len(rows)]:
            array.sync()
    for each, values in zip(vectors, rows @ _singles(vectors), strict=False):
        each.singles = values.reshape(each.singles.shape)


def put(room: Room, equations: StateEquations, guess: FirstState, arrays: Sequence[Array]) -> None:
    """Puts the doubles of a start vector into arrays."""
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
    """Fills arrays with zeros."""

    def work(tile: Tile, array: Array) -> None:
        array.put_tile(tile, np.zeros(array.layout.tile_shape(tile)))

    for array in arrays:
        room.each_tile(array, partial(work, array=array), "clear")


def squares(room: Room, equations: StateEquations, vector: StateVector) -> tuple[float, float]:
    """The parts of singles and of doubles in the squared norm of a state."""
    total, guard = [0.0], threading.Lock()

    def work(tile: Tile, part: int, array: Array) -> None:
        found = equations.square_of(part, tile, array)
        with guard:
            total[0] += found

    for part, array in enumerate(vector.doubles):
        room.each_tile(array, partial(work, part=part, array=array), "norm")
    return equations.square(vector.singles), float(room.world.all_reduce(total[0]))
