"""Vectors of a CI, tile by tile: in the memory of one process, in that of all, or on disk.

    with make(world, tiling, "disk", count=2) as vectors:
        vectors.put(0, tile, block)
        request = vectors.get_async(0, tile)
        block = request.wait()

They lie in a back-end of extended arrays with the axes alpha strings, beta strings, vectors: a process has the
same tiles of all vectors. A tile is a contiguous array [alpha strings][beta strings]. Any process and any thread
may move tiles at any time, one-sidedly; accumulates are atomic. New vectors are zero. Others see the data that a
process has put after `sync`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.job.collective import Closing
from outcore.job.unclosed import only_flushed
from outcore.parallel.requests import done, then
from outcore.tensor.arrays.backends import places
from outcore.tensor.arrays.backends.disk import DiskTiles
from outcore.tensor.arrays.backends.global_memory import even_ranges
from outcore.tensor.arrays.backends.process import ProcessTiles
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers
    from outcore.chem.ci.tiles import VectorTile, VectorTiling
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.arrays.backends.backend import Backend

Array = np.ndarray[Any, np.dtype[Any]]

KINDS = ("memory", "global", "disk")


class Vectors(Closing):
    """`count` vectors of one tiling and type. The constructor, `sync` and `close` are collective."""

    def __init__(self, tiling: VectorTiling, backend: Backend) -> None:
        self.world, self.tiling, self.backend = backend.world, tiling, backend
        self.count, self.dtype = backend.layout.shape[-1], backend.dtype
        self._memory = backend if isinstance(backend, ProcessTiles) else None
        self.kind = backend.where if self._memory is None else "memory"

    def _number(self, vector: int, tile: VectorTile) -> int:
        return tile.number * self.count + vector

    def values(self, vector: int, numbers: Integers) -> tuple[Array, Integers] | None:
        """For vectors in the memory of this process: the array that holds all tiles, and `VectorTiling.places` of
        the tiles of these numbers in that array. None for other vectors."""
        if self._memory is None:
            return None
        found = self.tiling.places[numbers]
        found[:, 0] = self.tiling.offsets[numbers] * self.count + self.tiling.sizes[numbers] * vector
        return self._memory.flat, found

    def get_async(self, vector: int, tile: VectorTile, out: Array | None = None) -> Request:
        """Begins to read a tile; `wait()` of the request returns it. The tile is in `out` if that is given
        (contiguous, of its shape), but vectors in memory return the tile itself."""
        number = self._number(vector, tile)
        if self._memory is not None:
            return done(self._memory.view(number)[:, :, 0])
        result = np.empty(tile.shape, self.dtype) if out is None else out
        return then(self.backend.get_async(number, result[:, :, None]), lambda _: result)

    def put_async(self, vector: int, tile: VectorTile, value: Array) -> Request:
        """Begins to write a tile. `value` must not change until the request is complete."""
        number = self._number(vector, tile)
        if self._memory is not None and self._memory.view(number).ctypes.data == value.ctypes.data:
            return done()
        return self.backend.put_async(number, value[:, :, None])

    def acc_async(self, vector: int, tile: VectorTile, value: Array) -> Request:
        """Adds."""
        return self.backend.acc_async(self._number(vector, tile), value[:, :, None])

    def get(self, vector: int, tile: VectorTile) -> Array:
        found: Array = self.get_async(vector, tile).wait()
        return found

    def put(self, vector: int, tile: VectorTile, value: Array) -> None:
        self.put_async(vector, tile, value).wait()

    def acc(self, vector: int, tile: VectorTile, value: Array) -> None:
        self.acc_async(vector, tile, value).wait()

    def own_tiles(self) -> list[int]:
        """Numbers of the tiles of this process in passes over all tiles. Each tile belongs to one process, which is
        near to it if possible."""
        if self.kind != "global":
            return list(range(self.world.rank, len(self.tiling), self.world.size))
        edges, rank = [*even_ranges(self.tiling.offsets, self.world.size), len(self.tiling)], self.world.rank
        return list(range(edges[rank], edges[rank + 1])) if rank < len(edges) - 1 else []

    def tiles(self) -> Iterator[VectorTile]:
        """The tiles of `own_tiles`."""
        return (self.tiling[number] for number in self.own_tiles())

    @property
    def nbytes(self) -> int:
        """Bytes of all processes together."""
        return self.count * self.tiling.elements * self.dtype.itemsize

    def clear(self, vector: int) -> None:
        """Zeros. Collective."""
        nothing = np.zeros(self.tiling.largest, self.dtype)
        with self.world.together("clear a CI vector", vector):
            for tile in self.tiles():
                self.put(vector, tile, nothing[: tile.size].reshape(tile.shape))
        self.sync()

    def sync(self) -> None:
        """After it all processes see the data that was put and added before. Collective."""
        self.backend.sync()

    def close(self) -> None:
        """Collective; may be repeated."""
        self.backend.close()

    def dense(self, vector: int = 0) -> Array:
        """A whole vector as a matrix [alpha strings][beta strings] at this process, both halves of a folded one.
        For small vectors."""
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


class KeptVectors(Vectors):
    """Vectors on the disks of all processes, in a persistent array, which `flush` commits."""

    def __init__(self, tiling: VectorTiling, array: BlockSparseArray) -> None:
        layout = layout_of(tiling, array.grid[2])
        super().__init__(tiling, DiskTiles(array.world, layout, array.dtype, array))
        self._array = only_flushed(array)

    @classmethod
    def make(
        cls,
        world: World,
        tiling: VectorTiling,
        count: int,
        dtype: str,
        path: Path,
        cache_bytes: int | None = None,
        codec: str = "none",
    ) -> KeptVectors:
        """Makes vectors in place of existing ones. Collective."""
        layout = layout_of(tiling, count)
        options: dict[str, Any] = {
            "path": path,
            "overwrite": True,
            "cache_bytes": cache_bytes,
            "codec": codec,
        }
        return cls(tiling, DiskTiles(world, layout, np.dtype(dtype), **options).array)

    @staticmethod
    def tilings(tiling: VectorTiling, count: int) -> list[list[int]]:
        """The tilings of the array for `count` vectors."""
        return [list(axis.cuts) for axis in layout_of(tiling, count).tilings]

    @property
    def metadata(self) -> Any:
        """The metadata that another run finds."""
        return self._array.metadata

    def flush(self, metadata: Any) -> None:
        """Commits the data that was put so far, with metadata, for another run. Collective."""
        self._array.flush(metadata)

    def drop(self) -> None:
        """Closes the vectors without a commit: another run finds the last flush. Not collective: no other process
        may use them any more."""
        self.backend.drop()

    def close(self) -> None:
        """As `drop`, but waits until no process uses the vectors any more. It does not commit, because metadata
        would not describe vectors that have changed since the last flush."""
        if not self._array.closed:
            self.world.barrier()
            self.drop()


def layout_of(tiling: VectorTiling, count: int) -> Layout:
    """The layout of an array of vectors. Folded vectors have the tiles on and below the diagonal."""
    axes = [Tiling(cuts[-1], cuts) for cuts in (tiling.rows, tiling.columns, range(count + 1))]
    return Layout(axes, np.repeat(tiling.there[:, :, None], count, axis=2))


def make(
    world: World,
    tiling: VectorTiling,
    kind: str,
    *,
    count: int = 1,
    dtype: str = "float64",
    cache_bytes: int | None = None,
    codec: str = "none",
) -> Vectors:
    """Makes vectors of zeros. cache_bytes (at each process) and codec are for vectors on disk. Collective."""
    where = "process" if kind == "memory" and world.size == 1 else "global" if kind == "memory" else kind
    distribution = (
        [first * count for first in even_ranges(tiling.offsets, world.size)] if where == "global" else None
    )
    options: dict[str, Any] = {"cache_bytes": cache_bytes, "codec": codec} if where == "disk" else {}
    layout = layout_of(tiling, count)
    return Vectors(tiling, places.make(where, world, layout, np.dtype(dtype), distribution, **options))
