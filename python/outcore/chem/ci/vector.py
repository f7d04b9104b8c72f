"""Vectors of a CI, tile by tile: in the memory of one process, in that of all, or on disk.

    with make(world, tiling, "disk", count=2) as vectors:
        vectors.put(0, tile, block)
        request = vectors.get_async(0, tile)
        block = request.wait()

A tile is a contiguous array [alpha strings][beta strings]. Tiles are moved one-sidedly, by any process, any thread,
at any time; accumulates are atomic. New vectors are zero. What one process has put others see after `sync`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.job.collective import Closing
from outcore.job.unclosed import only_flushed

if TYPE_CHECKING:
    from outcore.chem.ci.tiles import Tile, Tiling
    from outcore.job.world import World
    from outcore.parallel.prefetch import Waitable

Array = np.ndarray[Any, np.dtype[Any]]

KINDS = ("memory", "global", "disk")


class Done:
    """A request that is complete."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def wait(self) -> Any:
        return self._value


class Vectors(Closing, ABC):
    """`count` vectors of one tiling and type. Making, `sync`, `flush` and `close` are collective."""

    kind: str

    def __init__(self, world: World, tiling: Tiling, count: int, dtype: str) -> None:
        self.world, self.tiling, self.count, self.dtype = world, tiling, count, np.dtype(dtype)

    @abstractmethod
    def get_async(self, vector: int, tile: Tile, out: Array | None = None) -> Waitable:
        """`wait()` of what is returned returns the tile: in `out` if that is given (contiguous, of its shape), but
        vectors in memory may return the tile itself."""

    @abstractmethod
    def put_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        """`value` must not change until it is complete."""

    @abstractmethod
    def acc_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        """Adds."""

    def get(self, vector: int, tile: Tile) -> Array:
        found: Array = self.get_async(vector, tile).wait()
        return found

    def put(self, vector: int, tile: Tile, value: Array) -> None:
        self.put_async(vector, tile, value).wait()

    def acc(self, vector: int, tile: Tile, value: Array) -> None:
        self.acc_async(vector, tile, value).wait()

    def own_tiles(self) -> list[int]:
        """Numbers of the tiles that this process works on when each process works on its own: every tile is that
        of one process, near to it if it can be."""
        return list(range(self.world.rank, len(self.tiling), self.world.size))

    def tiles(self) -> Iterator[Tile]:
        """The own tiles."""
        return (self.tiling[number] for number in self.own_tiles())

    @property
    def nbytes(self) -> int:
        """Of all processes together."""
        return self.count * self.tiling.elements * self.dtype.itemsize

    def clear(self, vector: int) -> None:
        """Zeros. Collective."""
        nothing = np.zeros(self.tiling.largest, self.dtype)
        with self.world.together("clear a CI vector", vector):
            for tile in self.tiles():
                self.put(vector, tile, nothing[: tile.size].reshape(tile.shape))
        self.sync()

    @abstractmethod
    def sync(self) -> None:
        """What has been put and added is there for all. Collective."""

    @abstractmethod
    def close(self) -> None:
        """Collective; may be repeated."""

    def dense(self, vector: int = 0) -> Array:
        """All of a vector as a matrix [alpha strings][beta strings] at this process, its upper half too. For small
        ones."""
        space, parity = self.tiling.space, self.tiling.parity
        found = np.zeros((len(space.alpha.strings), len(space.beta.strings)), self.dtype)
        for number in range(len(self.tiling)):
            tile = self.tiling[number]
            (r, c), (height, width) = tile.first, tile.shape
            block = self.get(vector, tile)
            if parity:
                found[c : c + width, r : r + height] = parity * block.T
            found[r : r + height, c : c + width] = block
        return found


class MemoryVectors(Vectors):
    """In the memory of a world of one process."""

    kind = "memory"

    def __init__(self, world: World, tiling: Tiling, count: int, dtype: str) -> None:
        super().__init__(world, tiling, count, dtype)
        if world.size != 1:
            raise ValueError(f"vectors of {world.size} processes in the memory of one")
        self._values: list[Array] = [np.zeros(tiling.elements, dtype) for _ in range(count)]

    def values(self, vector: int) -> Array:
        """All tiles, one after another, as `Tiling.offsets` has them."""
        return self._values[vector]

    def _view(self, vector: int, tile: Tile) -> Array:
        begin = int(self.tiling.offsets[tile.number])
        return self._values[vector][begin : begin + tile.size].reshape(tile.shape)

    def get_async(self, vector: int, tile: Tile, out: Array | None = None) -> Waitable:
        return Done(self._view(vector, tile))

    def put_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        view = self._view(vector, tile)
        if value.ctypes.data != view.ctypes.data:
            view[...] = value
        return Done()

    def acc_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        view = self._view(vector, tile)
        view += value
        return Done()

    def sync(self) -> None:
        pass

    def close(self) -> None:
        self._values.clear()


class GlobalVectors(Vectors):
    """In the memory of all processes: each has a range of tiles."""

    kind = "global"

    def __init__(self, world: World, tiling: Tiling, count: int, dtype: str) -> None:
        super().__init__(world, tiling, count, dtype)
        even = np.linspace(0, tiling.elements, world.size + 1)[:-1]
        whole = tiling.offsets[np.searchsorted(tiling.offsets, even)]
        # Tiles that are larger than a share leave processes without any.
        self._begins = begins = sorted({int(each) for each in whole if each < tiling.elements})
        shape = (count, tiling.elements)
        self._array = GlobalArray(world, shape, dtype, distribution=[[0], begins])

    def _box(self, vector: int, tile: Tile) -> Any:
        begin = int(self.tiling.offsets[tile.number])
        return np.s_[vector : vector + 1, begin : begin + tile.size]

    def get_async(self, vector: int, tile: Tile, out: Array | None = None) -> Waitable:
        result = np.empty(tile.shape, self.dtype) if out is None else out
        return _Returning(self._array.get_async(self._box(vector, tile), result.reshape(1, -1)), result)

    def put_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        return self._array.put_async(self._box(vector, tile), value.reshape(1, -1))

    def acc_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        return self._array.acc_async(self._box(vector, tile), value.reshape(1, -1))

    def own_tiles(self) -> list[int]:
        edges = [*np.searchsorted(self.tiling.offsets, self._begins), len(self.tiling)]
        rank = self.world.rank
        return list(range(edges[rank], edges[rank + 1])) if rank < len(self._begins) else []

    def sync(self) -> None:
        self._array.sync()

    def close(self) -> None:
        self._array.close()


class _Returning:
    def __init__(self, request: Waitable, value: Array) -> None:
        self._request, self._value = request, value

    def wait(self) -> Array:
        self._request.wait()
        return self._value


class DiskVectors(Vectors):
    """On the disks of all processes. `path`: a persistent array, which `flush` commits."""

    kind = "disk"

    def __init__(
        self,
        world: World,
        tiling: Tiling,
        count: int,
        dtype: str,
        *,
        path: Path | None = None,
        cache_bytes: int | None = None,
    ) -> None:
        super().__init__(world, tiling, count, dtype)
        self._array = BlockSparseArray(
            world,
            self.tilings(tiling, count),
            np.broadcast_to(tiling.there, (count, *tiling.there.shape)),
            dtype,
            path=path,
            overwrite=True,
            cache_bytes=cache_bytes,
        )
        only_flushed(self._array)

    @staticmethod
    def tilings(tiling: Tiling, count: int) -> list[list[int]]:
        return [list(range(count + 1)), tiling.rows, tiling.columns]

    @classmethod
    def of_array(cls, world: World, tiling: Tiling, array: BlockSparseArray) -> DiskVectors:
        """Those of an array that is open already, with the tilings of `tilings`."""
        found = cls.__new__(cls)
        Vectors.__init__(found, world, tiling, array.grid[0], array.dtype.name)
        found._array = array
        return found

    def get_async(self, vector: int, tile: Tile, out: Array | None = None) -> Waitable:
        result = np.empty(tile.shape, self.dtype) if out is None else out
        request = self._array.get_tile_async((vector, tile.row, tile.column), result.reshape(1, *tile.shape))
        return _Returning(request, result)

    def put_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        return self._array.put_tile_async((vector, tile.row, tile.column), value)

    def acc_async(self, vector: int, tile: Tile, value: Array) -> Waitable:
        return self._array.acc_tile_async((vector, tile.row, tile.column), value)

    def sync(self) -> None:
        with self.world.together("synchronize CI vectors"):
            self._array.sync()

    def flush(self, metadata: Any) -> None:
        """What was put so far is what another run finds. Collective."""
        self._array.flush(metadata)

    def close(self) -> None:
        self._array.close()


def make(
    world: World,
    tiling: Tiling,
    kind: str,
    *,
    count: int = 1,
    dtype: str = "float64",
    cache_bytes: int | None = None,
) -> Vectors:
    """Vectors of zeros. `cache_bytes`: of disk vectors, at each process. Collective."""
    if kind == "memory" and world.size == 1:
        return MemoryVectors(world, tiling, count, dtype)
    if kind in ("memory", "global"):
        return GlobalVectors(world, tiling, count, dtype)
    return DiskVectors(world, tiling, count, dtype, cache_bytes=cache_bytes)
