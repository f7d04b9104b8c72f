"""Passes over all tiles of several vectors: each tile is read once, worked on, and written.

Sums over tiles are always made in the order of their numbers, so they are the same for any number of processes and
threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.parallel import team
from outcore.parallel.prefetch import Fetched, Prefetch
from outcore.parallel.requests import all_of

if TYPE_CHECKING:
    from outcore.chem.ci.tiles import VectorTile
    from outcore.chem.ci.vector import Array, Vectors
    from outcore.chem.small_space import Matrix
    from outcore.job.world import World
    from outcore.parallel.requests import Request

AHEAD = 2  # tiles of each vector that are being read while threads work on others


@dataclass(frozen=True)
class Place:
    """One vector of a set, by its index."""

    vectors: Vectors
    index: int


def each_tile(
    tiles: Sequence[int],
    read: Sequence[Place],
    written: Sequence[Place],
    threads: int,
    work: Callable[[VectorTile, list[Array], list[Array]], Sequence[int]],
) -> float:
    """Calls `work(tile, inside, outside)` for tiles of these numbers, in any order, in `threads` threads. inside:
    the tile of each vector that is read. outside: memory for the tile of each vector that is written. `work`
    returns which arrays of `[*inside, *outside]` are to be written. Returns the seconds that passed while threads
    did not work."""
    if not tiles:
        return 0.0
    begun, worked = time.perf_counter(), list[float]()
    tiling = (read or written)[0].vectors.tiling
    slots = threads + AHEAD
    buffers = [[_buffer(each) for each in (*read, *written)] for _ in range(slots)]
    arrived: list[Request | None] = [None] * slots

    def start(number: int, slot: int) -> Request:
        tile = tiling[number]
        every = all_of(
            [
                each.vectors.get_async(each.index, tile, _part(buffer, tile))
                for each, buffer in zip(read, buffers[slot], strict=False)
            ]
        )
        arrived[slot] = every
        return every

    def do(thread: int, fetched: Fetched[int]) -> None:
        tile, every = tiling[fetched.item], arrived[fetched.slot]
        assert every is not None
        inside = every.wait()
        outside = [
            _target(each, tile, buffer)
            for each, buffer in zip(written, buffers[fetched.slot][len(read) :], strict=True)
        ]
        both, places = [*inside, *outside], [*read, *written]
        started = time.perf_counter()
        try:
            changed = work(tile, inside, outside)
            worked.append(time.perf_counter() - started)
            puts = [places[i].vectors.put_async(places[i].index, tile, both[i]) for i in changed]
            for put in puts:
                put.wait()
        finally:
            fetched.release()

    with Prefetch(tiles, start, slots) as ahead:
        team.each(_taken(ahead), threads, do)
    return max(time.perf_counter() - begun - sum(worked) / threads, 0.0)


def _taken(ahead: Prefetch[int]) -> Iterator[Fetched[int]]:
    yield from ahead


def _buffer(place: Place) -> Array | None:
    """A buffer for tiles; None for vectors in memory, whose tiles need no copy."""
    if place.vectors.kind == "memory":
        return None
    return np.empty(place.vectors.tiling.largest, place.vectors.dtype)


def _part(buffer: Array | None, tile: VectorTile) -> Array | None:
    return None if buffer is None else buffer[: tile.size].reshape(tile.shape)


def _target(place: Place, tile: VectorTile, buffer: Array | None) -> Array:
    if buffer is None:
        return place.vectors.get(place.index, tile)
    return buffer[: tile.size].reshape(tile.shape)


def total(world: World, tiling_length: int, numbers: Sequence[int], sums: Matrix) -> Matrix:
    """The sum over all tiles of all processes. sums[i]: the contribution of the own tile numbers[i]. Collective."""
    everything = np.zeros((tiling_length, sums.shape[1]))
    everything[list(numbers)] = sums
    if world.size > 1:
        everything = world.all_reduce(everything)
    result: Matrix = np.add.accumulate(everything, axis=0)[-1]
    return result


def dots(world: World, a: Sequence[Place], b: Sequence[Place], threads: int) -> Matrix:
    """Scalar products [a][b] of all vectors. Collective."""
    tiling = a[0].vectors.tiling
    numbers = a[0].vectors.own_tiles()
    sums, place = np.zeros((len(numbers), len(a) * len(b))), {n: i for i, n in enumerate(numbers)}

    def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
        row = sums[place[tile.number]]
        _core.ci_dots(inside[: len(a)], inside[len(a) :], row)
        row *= tiling.weight(tile)
        return ()

    with world.together("products of CI vectors"):
        each_tile(numbers, [*a, *b], [], threads, work)
    return total(world, len(tiling), numbers, sums).reshape(len(a), len(b))


def copy(
    world: World,
    source: Sequence[Place],
    target: Sequence[Place],
    threads: int,
    which: NDArray[np.bool_] | None = None,
) -> None:
    """Copies vectors, also from one precision to another. which: flags of the tiles to copy; None: all.
    Collective."""

    def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
        for here, there in zip(inside, outside, strict=True):
            there[...] = here
        return range(len(inside), len(inside) + len(outside))

    own = source[0].vectors.own_tiles()
    with world.together("copy CI vectors"):
        each_tile([each for each in own if which is None or which[each]], source, target, threads, work)
    for vectors in {id(each.vectors): each.vectors for each in target}.values():
        vectors.sync()


@dataclass(frozen=True)
class Corrected:
    """Results of a pass of corrections: overlaps [b][b] and H [b][b'], where b are states, kept vectors and
    corrections, and b' the same without the corrections; residual norms and sum (d - E) x^2 of states.
    waited_seconds: seconds in which this process did not compute."""

    overlap: Matrix
    hamiltonian: Matrix
    residuals: Matrix
    above: Matrix
    waited_seconds: float


def correct(
    world: World,
    states: Sequence[Place],
    h_states: Sequence[Place],
    vectors: Sequence[Place],
    h_vectors: Sequence[Place],
    corrections: Sequence[Place],
    diagonal: Callable[[VectorTile], Array],
    *,
    to_states: Matrix,
    to_vectors: Matrix | None,
    energies: Matrix,
    active: Sequence[int],
    smallest: float,
    threads: int,
) -> Corrected:
    """Makes new states, residuals and corrections in one pass: see chem/ci/correction.hpp. Collective."""
    tiling = states[0].vectors.tiling
    numbers = states[0].vectors.own_tiles()
    k, q = len(states), len(vectors)
    kept = q if to_vectors is None else len(to_vectors)
    basis, multiplied = k + kept + len(active), k + kept
    width = basis * (basis + multiplied) + 2 * k
    sums, place = np.zeros((len(numbers), width)), {n: i for i, n in enumerate(numbers)}
    read = [*states, *h_states, *vectors, *h_vectors]
    changed = list(range(2 * k)) + list(range(len(read), len(read) + len(active)))
    if to_vectors is not None:
        changed += [2 * k + i for i in range(kept)] + [2 * k + q + i for i in range(kept)]
    factors = np.zeros((0, q)) if to_vectors is None else np.ascontiguousarray(to_vectors)
    to_states = np.ascontiguousarray(to_states)

    def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
        row = sums[place[tile.number]]
        _core.ci_correct(
            inside[:k],
            inside[k : 2 * k],
            inside[2 * k : 2 * k + q],
            inside[2 * k + q :],
            outside,
            diagonal(tile),
            to_states,
            factors,
            to_vectors is not None,
            energies,
            list(active),
            smallest,
            tiling.parity if tile.on_diagonal else 0,
            row,
        )
        row *= tiling.weight(tile)
        return changed

    with world.together("correct CI vectors"):
        waited = each_tile(numbers, read, corrections, threads, work)
    for each in {id(each.vectors): each.vectors for each in (*read, *corrections)}.values():
        each.sync()
    found = total(world, len(tiling), numbers, sums)
    products = found[: basis * (basis + multiplied)].reshape(basis, basis + multiplied)
    of_states = found[basis * (basis + multiplied) :].reshape(k, 2)
    return Corrected(
        products[:, :basis], products[:, basis:], np.sqrt(of_states[:, 0]), of_states[:, 1].copy(), waited
    )
