"""One run of the contraction of bench gpcio, in all processes of a job. Prints times and bytes as JSON.

Arguments: way (arrays, replicated, striped), tiles of O, tiles of V, edge of a tile, 1 to fetch ahead.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

import outcore
from outcore.job import launch
from outcore.parallel.requests import Request, then
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.operands import Box, Facts, Operand, tiles_of

IRREPS = 2  # a tile is zero unless the irreps of its segments multiply to the totally symmetric one
AHEAD = 3  # reads under way while inputs are replicated
SUBSCRIPTS = "abcd,bcde->ae"  # t, i1
MEMORY = "32MB"  # per process, for panels

Index = tuple[int, int, int, int]
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Problem:
    """i0[p1, p2] += t[p1, p3, p4, h1] * i1[p3, p4, h1, p2], in tiles of equal edges."""

    o_tiles: int
    v_tiles: int
    edge: int

    @property
    def shapes(self) -> dict[str, Index]:
        """Number of tiles along each axis."""
        v, o = self.v_tiles, self.o_tiles
        return {"t": (v, v, v, o), "i1": (v, v, o, v)}

    def nonzero(self, name: str) -> Iterator[Index]:
        for index in itertools.product(*(range(n) for n in self.shapes[name])):
            if is_symmetric(index):
                yield index  # type: ignore[misc]

    @cached_property
    def numbers(self) -> dict[str, dict[Index, int]]:
        return {name: {index: i for i, index in enumerate(self.nonzero(name))} for name in self.shapes}

    @property
    def tile_bytes(self) -> int:
        return 8 * self.edge**4

    @property
    def stored_bytes(self) -> int:
        return self.tile_bytes * sum(len(tiles) for tiles in self.numbers.values())

    def tile(self, name: str, index: Index) -> Array:
        """The elements of a tile. They have rank one, so that `expected` computes the result without a
        contraction."""
        edge = self.edge
        left, right = self.factors(name, index)
        if name == "t":
            return np.outer(left, right).reshape(edge, edge, edge, edge)
        return np.outer(right, left).reshape(edge, edge, edge, edge)

    def factors(self, name: str, index: Index) -> tuple[Array, Array]:
        """The factors of a tile: along the outer axis (p1 or p2), and along the three summed axes."""
        random = np.random.default_rng([len(name), *index])
        return random.standard_normal(self.edge), random.standard_normal(self.edge**3)

    def pairs(self, p1: int, p2: int) -> Iterator[tuple[Index, Index]]:
        v, o = self.v_tiles, self.o_tiles
        for p3, p4, h1 in itertools.product(range(v), range(v), range(o)):
            t, i1 = (p1, p3, p4, h1), (p3, p4, h1, p2)
            if is_symmetric(t) and is_symmetric(i1):
                yield t, i1

    def expected(self, p1: int, p2: int) -> Array:
        """The tile (p1, p2) of the result."""
        result = np.zeros((self.edge, self.edge))
        for t, i1 in self.pairs(p1, p2):
            t_left, t_right = self.factors("t", t)
            i_left, i_right = self.factors("i1", i1)
            result += (t_right @ i_right) * np.outer(t_left, i_left)
        return result


def is_symmetric(index: tuple[int, ...]) -> bool:
    product = 0
    for segment in index:
        product ^= segment % IRREPS
    return product == 0


class Tiles(Protocol):
    """Storage of the inputs."""

    def put(self, name: str, index: Index, data: Array) -> None: ...
    def operand(self, name: str) -> Any: ...  # as einsum takes it
    def ready(self) -> None: ...  # puts all data on disk and empties caches


class FileTiles(Operand):
    """Tiles in a file. `read(name, index, out)` begins to read a tile."""

    def __init__(self, problem: Problem, name: str, read: Callable[[str, Index, Array], Request]) -> None:
        self.name, self.read = name, read
        shape = problem.shapes[name]
        there = np.zeros(shape, bool)
        for index in problem.nonzero(name):
            there[index] = True
        self.facts = Facts(
            shape=tuple(n * problem.edge for n in shape),
            dtype=np.dtype(np.float64),
            where="disk",
            item_bytes=8,
            tilings=tuple(outcore.Tiling(problem.edge * n, tile=problem.edge) for n in shape),
            readable=there,
            stored=there,
        )

    def get(self, box: Box, out: Array) -> list[Request]:
        assert self.facts.readable is not None
        started: list[Request] = []
        for tile, inside in tiles_of(self.facts.tiles, box):
            if not self.facts.readable[tile]:
                continue
            target = out[inside]
            buffer = target if target.flags.c_contiguous else np.empty(target.shape)
            request = self.read(self.name, tile, buffer)  # type: ignore[arg-type]
            started.append(request if buffer is target else then(request, partial(_move, buffer, target)))
        return started


def _move(buffer: Array, target: Array, _: Any) -> None:
    target[...] = buffer


class NotAhead(Operand):
    """Wraps an operand and waits for each read, so that no data arrive while the process computes."""

    def __init__(self, other: Operand) -> None:
        self.other, self.facts, self.world = other, other.facts, other.world

    def get(self, box: Box, out: Array) -> list[Request]:
        for request in self.other.get(box, out):
            request.wait()
        return []


class DiskArrays:
    """Noncollective disk arrays: each tile is on the disk of one process; the others request it there."""

    def __init__(self, world: outcore.World, problem: Problem) -> None:
        self.world = world
        edges = [problem.edge * i for i in range(max(problem.v_tiles, problem.o_tiles) + 1)]
        self.paths = {
            name: os.path.join(os.environ["OUTCORE_SCRATCH"], name + "-{node}") for name in problem.shapes
        }
        self.arrays = {
            name: outcore.BlockSparseArray(
                world,
                [edges[: tiles + 1] for tiles in shape],
                list(problem.nonzero(name)),
                path=self.paths[name],
                placement="local",
                overwrite=True,
            )
            for name, shape in problem.shapes.items()
        }

    def put(self, name: str, index: Index, data: Array) -> None:
        self.arrays[name].put_tile(index, data)

    def operand(self, name: str) -> Any:
        return self.arrays[name]

    def ready(self) -> None:
        """Closes the arrays and opens them again, so that caches are empty."""
        for name, array in self.arrays.items():
            array.close()
            self.arrays[name] = outcore.BlockSparseArray.open(self.world, self.paths[name])

    def close(self) -> None:
        for array in self.arrays.values():
            array.close()


class Striped:
    """One shared file, striped over the disks of all processes."""

    def __init__(self, world: outcore.World, problem: Problem) -> None:
        self.problem = problem
        self.file = outcore.SharedFile(
            world,
            "tiles",
            soft_limit=problem.stored_bytes,
            typical_request=problem.tile_bytes,
            page_cache="direct",
        )
        self.first = {"t": 0, "i1": len(problem.numbers["t"])}

    def _offset(self, name: str, index: Index) -> int:
        return (self.first[name] + self.problem.numbers[name][index]) * self.problem.tile_bytes

    def put(self, name: str, index: Index, data: Array) -> None:
        self.file.write(np.ascontiguousarray(data), self._offset(name, index))

    def get(self, name: str, index: Index, out: Array) -> Request:
        return self.file.read_async(out, self._offset(name, index))

    def operand(self, name: str) -> Any:
        return FileTiles(self.problem, name, self.get)

    def ready(self) -> None:
        self.file.flush()


class Replicated:
    """A copy of all inputs on the disk of every process. The copies come from the striped file."""

    def __init__(self, world: outcore.World, problem: Problem) -> None:
        self.problem, self.world, self.source = problem, world, Striped(world, problem)
        self.file = outcore.ExclusiveFile("tiles", page_cache="direct", expected_bytes=problem.stored_bytes)
        self.seconds = 0.0

    def put(self, name: str, index: Index, data: Array) -> None:
        self.source.put(name, index, data)

    def get(self, name: str, index: Index, out: Array) -> Request:
        return self.file.read_async(out, self.source._offset(name, index))

    def operand(self, name: str) -> Any:
        return FileTiles(self.problem, name, self.get)

    def ready(self) -> None:
        """Copies the inputs, with reads and writes at the same time."""
        self.source.ready()
        start = time.monotonic()
        buffers = [np.empty(4 << 20, np.uint8) for _ in range(2 * AHEAD)]
        writes: list[Any] = [None] * len(buffers)
        reads: list[tuple[int, int, Any]] = []  # buffer, offset, request
        size = self.problem.stored_bytes
        offsets = iter(range(0, size, len(buffers[0])))
        for turn in itertools.count():
            offset = next(offsets, None)
            if offset is not None:
                free = turn % len(buffers)
                if writes[free] is not None:
                    writes[free].wait()
                part = buffers[free][: min(len(buffers[free]), size - offset)]
                reads.append((free, offset, self.source.file.read_async(part, offset)))
            if len(reads) == AHEAD or (offset is None and reads):
                taken, place, request = reads.pop(0)
                request.wait()
                part = buffers[taken][: min(len(buffers[taken]), size - place)]
                writes[taken] = self.file.write_async(part, place)
            if offset is None and not reads:
                break
        for write in writes:
            if write is not None:
                write.wait()
        self.file.flush()
        self.world.barrier()
        self.seconds = time.monotonic() - start


def contract(world: outcore.World, problem: Problem, tiles: Tiles, ahead: bool) -> tuple[Any, float]:
    """Returns the result and the seconds of the contraction, without planning."""
    n = problem.v_tiles * problem.edge
    result = outcore.GlobalArray(world, (n, n))
    t, i1 = (each if ahead else NotAhead(operand(each)) for each in (tiles.operand("t"), tiles.operand("i1")))
    plan = outcore.einsum.plan(SUBSCRIPTS, t, i1, out=result, memory=MEMORY, world=world, threads=1)
    outcore.einsum("ik,kj->ij", np.ones((2, 2)), np.ones((2, 2)))  # loads libraries
    world.barrier()
    start = time.monotonic()
    outcore.einsum(SUBSCRIPTS, t, i1, out=result, memory=MEMORY, plan=plan, world=world, threads=1)
    return result, time.monotonic() - start


def disk_bytes_read() -> int:
    with open("/proc/self/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("read_bytes"))


def main() -> None:
    way = sys.argv[1]
    o_tiles, v_tiles, edge, ahead = map(int, sys.argv[2:6])
    launch.world()
    problem = Problem(o_tiles, v_tiles, edge)
    with outcore.World(nodes="processes") as world:
        makers: dict[str, Callable[[], Tiles]] = {
            "arrays": lambda: DiskArrays(world, problem),
            "striped": lambda: Striped(world, problem),
            "replicated": lambda: Replicated(world, problem),
        }
        tiles = makers[way]()
        for name in problem.shapes:
            for index, number in problem.numbers[name].items():
                if number % world.size == world.rank:
                    tiles.put(name, index, problem.tile(name, index))
        world.barrier()
        tiles.ready()
        before = disk_bytes_read()
        result, seconds = contract(world, problem, tiles, bool(ahead))
        read_bytes = world.all_reduce(disk_bytes_read() - before)
        good = True
        if world.rank == 0:
            for p1, p2 in [(0, 0), (problem.v_tiles - 1, problem.v_tiles // 2)]:
                box = tuple(slice(p * edge, (p + 1) * edge) for p in (p1, p2))
                good &= bool(np.allclose(result[box], problem.expected(p1, p2), rtol=1e-9, atol=1e-6))
            answer = {
                "seconds": seconds,
                "replication_seconds": tiles.seconds if isinstance(tiles, Replicated) else 0.0,
                "read_bytes": read_bytes,
                "stored_bytes": problem.stored_bytes,
                "good": good,
            }
            print(json.dumps(answer), flush=True)
        if isinstance(tiles, DiskArrays):
            tiles.close()
