"""The workers of bench dra: Outcore, and the peers that are Python packages.

Arguments: kind, and the fields of `Task` in JSON. The commands (see `_workers`):

    write ROW COLUMN    make the array and write the section there, until it is on stable storage; where several
                        processes share the work, this takes two commands: `create` for the first process and
                        `put ROW COLUMN` for all
    rewrite ROW COLUMN  the same in an existing array
    read ROW COLUMN     open the array and read the section
    fill                make an array whose four quarters hold the section
    open, slice tall|wide INDEX LENGTH, close
                        open an array, read the first elements of a column or a row, close the array
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ._workers import Answer, serve, sync

OURS = "ours"
Box = tuple[slice, slice]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Task:
    directory: str
    source: str  # file with the section
    section: int  # side length of the section
    array: int  # side length of the disk array
    settings: dict[str, Any] = field(default_factory=dict)
    index: int = 0  # number of this process
    processes: int = 1


class Peer(ABC):
    """A library that reads and writes sections of the array `self.array`, which `create` and `open` open."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.path = str(Path(task.directory, "array"))
        self.array: Any = None
        n = task.section
        self.source: Matrix = np.fromfile(task.source).reshape(n, n)
        self.target: Matrix = np.zeros((n, n))

    @abstractmethod
    def create(self) -> None: ...

    @abstractmethod
    def open(self, writing: bool = False) -> None: ...

    def close(self) -> None:
        self.array = None

    def put(self, box: Box, part: Matrix) -> None:
        self.array[box] = part

    def get(self, box: Box, part: Matrix) -> None:
        part[...] = self.array[box]

    def store(self) -> None:
        sync(self.task.directory)

    def rows(self, first: int) -> slice:
        """The rows of the section that this process moves, for a section that begins in row `first` of the array.
        They fill whole rows of chunks."""
        step = self.task.settings.get("shard") or self.task.settings.get("chunk") or 1

        def cut(index: int) -> int:
            row = first + index * self.task.section // self.task.processes
            return row - first if index in (0, self.task.processes) else row // step * step - first

        return slice(cut(self.task.index), cut(self.task.index + 1))

    def move(self, way: Callable[[Box, Matrix], None], row: int, column: int, memory: Matrix) -> None:
        rows = self.rows(row)
        box = (slice(row + rows.start, row + rows.stop), slice(column, column + self.task.section))
        way(box, memory[rows])


class H5py(Peer):
    def create(self) -> None:
        h5py = import_module("h5py")

        settings, side = self.task.settings, self.task.array
        aligned = (
            {"alignment_threshold": 1 << 16, "alignment_interval": 4096} if settings.get("aligned") else {}
        )
        self.file = h5py.File(
            self.path,
            "w",
            libver="latest",
            rdcc_nbytes=settings["cache"],
            rdcc_nslots=10007,
            rdcc_w0=1.0,
            **aligned,
        )
        chunk = settings["chunk"]
        self.array = self.file.create_dataset(
            "array",
            (side, side),
            np.float64,
            chunks=(chunk, chunk) if chunk else None,
            fill_time="never",
        )

    def open(self, writing: bool = False) -> None:
        h5py = import_module("h5py")

        cache = self.task.settings["cache"]
        mode = "r+" if writing else "r"
        self.file = h5py.File(self.path, mode, libver="latest", rdcc_nbytes=cache, rdcc_nslots=10007)
        self.array = self.file["array"]

    def close(self) -> None:
        self.array = None
        self.file.close()

    def put(self, box: Box, part: Matrix) -> None:
        self.array.write_direct(part, dest_sel=box)

    def get(self, box: Box, part: Matrix) -> None:
        self.array.read_direct(part, source_sel=box)


class TensorStore(Peer):
    def specification(self) -> dict[str, Any]:
        settings, side = self.task.settings, self.task.array
        chunk = settings["chunk"]
        codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        inner = settings.get("inner")
        if inner:
            codecs = [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [inner, inner],
                        "codecs": codecs,
                        "index_codecs": codecs,
                    },
                }
            ]
        return {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": self.path + "/"},
            "metadata": {
                "shape": [side, side],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk, chunk]}},
                "data_type": "float64",
                "codecs": codecs,
            },
            "store_data_equal_to_fill_value": True,
            "context": {
                "file_io_sync": settings.get("sync", True),
                "file_io_concurrency": {"limit": settings.get("io", 32)},
                "data_copy_concurrency": {"limit": 2},
                **({"file_io_mode": {"mode": settings["mode"]}} if settings.get("mode") else {}),
            },
        }

    def create(self) -> None:
        tensorstore = import_module("tensorstore")

        self.array = tensorstore.open(self.specification(), create=True).result()

    def open(self, writing: bool = False) -> None:
        tensorstore = import_module("tensorstore")

        self.array = tensorstore.open(self.specification(), open=True).result()

    def put(self, box: Box, part: Matrix) -> None:
        self.array[box].write(part, can_reference_source_data_indefinitely=True).result()

    def get(self, box: Box, part: Matrix) -> None:
        tensorstore = import_module("tensorstore")

        tensorstore.array(part).write(self.array[box]).result()

    def store(self) -> None:
        if self.task.settings.get("sync", True):
            return  # it syncs each file itself
        super().store()


class Zarr(Peer):
    def __init__(self, task: Task) -> None:
        zarr = import_module("zarr")

        super().__init__(task)
        zarr.config.set(
            {"async.concurrency": task.settings["io"], "threading.max_workers": task.settings["io"]}
        )

    def create(self) -> None:
        zarr = import_module("zarr")

        settings, side = self.task.settings, self.task.array
        shard = settings.get("shard")
        self.array = zarr.create_array(
            self.path,
            shape=(side, side),
            chunks=(settings["chunk"],) * 2,
            shards=(shard, shard) if shard else None,
            dtype="float64",
            compressors=None,
            config={"write_empty_chunks": True},
        )

    def open(self, writing: bool = False) -> None:
        zarr = import_module("zarr")

        self.array = zarr.open_array(self.path, mode="r+" if writing else "r")

    def get(self, box: Box, part: Matrix) -> None:
        zarr = import_module("zarr")

        out = zarr.core.buffer.cpu.NDBuffer.from_ndarray_like(part)
        self.array.get_basic_selection(box, out=out)


class Zarrs(Zarr):
    """zarr with a codec pipeline in Rust, which reads and writes the chunks."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        pipeline = {  # other entries of the pipeline stay
            "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
            "codec_pipeline.validate_checksums": False,
            "codec_pipeline.direct_io": task.settings.get("mode") == "direct",
        }
        import_module("zarr").config.set(pipeline)


KINDS: dict[str, type[Peer]] = {"h5py": H5py, "TensorStore": TensorStore, "zarr": Zarr, "zarrs": Zarrs}


class PeerWorker:
    """Runs commands with a peer library."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.task = peer, peer.task

    def obey(self, line: str) -> Answer | None:
        command, *arguments = line.split()
        result: Answer | None = getattr(self, "on_" + command)(*arguments)
        return result

    def on_create(self) -> Answer:
        start = time.monotonic()
        self.peer.create()
        return start, time.monotonic(), True

    def on_put(self, row: str, column: str) -> Answer:
        start = time.monotonic()
        if self.peer.array is None:
            self.peer.open(writing=True)
        self.peer.move(self.peer.put, int(row), int(column), self.peer.source)
        self.peer.close()
        self.peer.store()
        return start, time.monotonic(), True

    on_rewrite = on_put

    def on_write(self, row: str, column: str) -> Answer:
        start, *_ = self.on_create()
        return start, self.on_put(row, column)[1], True

    def on_fill(self) -> None:
        n = self.task.section
        self.peer.create()
        for row in (0, n):
            for column in (0, n):
                self.peer.put((slice(row, row + n), slice(column, column + n)), self.peer.source)
        self.peer.close()
        self.peer.store()

    def on_read(self, row: str, column: str) -> Answer:
        self.peer.target[...] = 0
        start = time.monotonic()
        self.peer.open()
        self.peer.move(self.peer.get, int(row), int(column), self.peer.target)
        self.peer.close()
        end = time.monotonic()
        rows = self.peer.rows(int(row))
        return start, end, np.array_equal(self.peer.target[rows], self.peer.source[rows])

    def on_open(self) -> None:
        self.peer.open()

    def on_slice(self, axis: str, index: str, length: str) -> Answer:
        box = slice_box(axis, int(index), int(length))
        result = np.zeros([each.stop - each.start for each in box])
        start = time.monotonic()
        self.peer.get(box, result)
        end = time.monotonic()
        return start, end, np.array_equal(result, expected_slice(self.peer.source, box))

    def on_close(self) -> None:
        self.peer.close()


def slice_box(axis: str, index: int, length: int) -> Box:
    along, across = slice(0, length), slice(index, index + 1)
    return (along, across) if axis == "tall" else (across, along)


def expected_slice(source: Matrix, box: Box) -> Matrix:
    """A box of the array whose four quarters equal `source`."""
    rows, columns = (np.arange(each.start, each.stop) % len(source) for each in box)
    return source[np.ix_(rows, columns)]


class OursWorker:
    """Runs commands with Outcore, in all processes of an MPI job together."""

    def __init__(self, task: Task) -> None:
        import outcore

        self.task, self.path = task, str(Path(task.directory, "array"))
        n = task.section
        self.shape = (task.array, task.array)
        self.file: Matrix = np.memmap(task.source, np.float64, mode="r", shape=(n, n))
        self.world = outcore.World()
        self.source = outcore.GlobalArray(self.world, (n, n))
        self.target = outcore.GlobalArray(self.world, (n, n))
        self.source.local[...] = self.file[self.source.patch]
        self.source.sync()

    def obey(self, line: str) -> Answer | None:
        command, *arguments = line.split()
        result: Answer | None = getattr(self, "on_" + command)(*arguments)
        return result

    def box(self, row: str, column: str) -> Box:
        n = self.task.section
        return slice(int(row), int(row) + n), slice(int(column), int(column) + n)

    def timed(self, step: Callable[[], None]) -> tuple[float, float]:
        """The times at which all processes have begun and ended `step`."""
        self.world.barrier()
        start = time.monotonic()
        step()
        self.world.barrier()
        return start, time.monotonic()

    def create(self) -> Any:
        import outcore

        return outcore.DiskArray(self.world, self.shape, path=self.path)

    def open(self, writing: bool = False) -> Any:
        import outcore

        return outcore.DiskArray.open(self.world, self.path, read_only=not writing)

    def write(self, array: Any, boxes: list[Box]) -> None:
        for box in boxes:
            array.write_all(self.source, box)
        array.close()

    def on_write(self, row: str, column: str) -> Answer:
        return *self.timed(lambda: self.write(self.create(), [self.box(row, column)])), True

    def on_rewrite(self, row: str, column: str) -> Answer:
        return *self.timed(lambda: self.write(self.open(writing=True), [self.box(row, column)])), True

    def on_fill(self) -> None:
        corners = [
            (str(row), str(column)) for row in (0, self.task.section) for column in (0, self.task.section)
        ]
        self.write(self.create(), [self.box(*corner) for corner in corners])

    def on_read(self, row: str, column: str) -> Answer:
        def read() -> None:
            with self.open() as array:
                array.read_all(self.target, self.box(row, column))

        self.target.local[...] = 0
        self.target.sync()
        times = self.timed(read)
        return *times, self.all_agree(np.array_equal(self.target.local, self.file[self.target.patch]))

    def on_open(self) -> None:
        self.array = self.open()

    def on_slice(self, axis: str, index: str, length: str) -> Answer:
        import outcore

        box = slice_box(axis, int(index), int(length))
        with outcore.GlobalArray(self.world, [each.stop - each.start for each in box]) as target:
            times = self.timed(lambda: self.array.read_all(target, box))
            good = np.array_equal(target[...], expected_slice(self.file, box))
        return *times, self.all_agree(good)

    def on_close(self) -> None:
        self.array.close()

    def all_agree(self, good: bool) -> bool:
        if self.world.size == 1:
            return good
        from mpi4py import MPI

        return bool(MPI.COMM_WORLD.allreduce(int(good), MPI.MIN))


def main() -> None:
    kind, task = sys.argv[1], Task(**json.loads(sys.argv[2]))
    serve(lambda: (OursWorker(task) if kind == OURS else PeerWorker(KINDS[kind](task))).obey)
