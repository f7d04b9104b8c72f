"""The workers of bench checkpoint: Outcore, and h5py and NumPy in one process.

Arguments: kind (ours or peers), directory, rows. The commands: `save NAME` and `load NAME`, where NAME chooses the
library; after `load` the worker compares the data with those that were saved.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from ._workers import Answer, serve, sync

COLUMNS = 1 << 14
PERIOD = 61  # rows after which the data repeat

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


_PATTERN = np.random.default_rng(1).random((PERIOD, COLUMNS))


def expected(row: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A row of the saved array: random numbers that take little time to generate."""
    return np.asarray(_PATTERN[row % PERIOD] + row)


class Data:
    """Rows of the array in the memory of this process."""

    def __init__(self, memory: Matrix, first_row: int, columns: slice = slice(None)) -> None:
        self.memory, self.first_row, self.columns = memory, first_row, columns

    def fill(self) -> None:
        for i, row in enumerate(self.memory):
            row[...] = expected(self.first_row + i)[self.columns]

    def clear(self) -> None:
        self.memory[...] = 0

    def good(self) -> bool:
        return all(
            np.array_equal(row, expected(self.first_row + i)[self.columns])
            for i, row in enumerate(self.memory)
        )


class Peers:
    def __init__(self, directory: Path, rows: int) -> None:
        self.directory = directory
        self.data = Data(np.empty((rows, COLUMNS)), 0)
        self.data.fill()

    def obey(self, line: str) -> Answer:
        what, name = line.split()
        if what == "load":
            self.data.clear()
        start = time.monotonic()
        getattr(self, f"{what}_{name}")(self.data.memory)
        if what == "save":
            sync(self.directory)
        end = time.monotonic()
        return start, end, what == "save" or self.data.good()

    def save_h5py(self, memory: Matrix) -> None:
        with import_module("h5py").File(self.directory / "data.h5", "w", libver="latest") as file:
            file.create_dataset("t", memory.shape, memory.dtype, fill_time="never").write_direct(memory)

    def load_h5py(self, memory: Matrix) -> None:
        with import_module("h5py").File(self.directory / "data.h5", "r", libver="latest") as file:
            file["t"].read_direct(memory)

    def save_numpy(self, memory: Matrix) -> None:
        np.save(self.directory / "data.npy", memory)

    def load_numpy(self, memory: Matrix) -> None:
        """As numpy.load, but into existing memory, as the other libraries do."""
        with open(self.directory / "data.npy", "rb") as file:
            version = np.lib.format.read_magic(file)
            assert version == (1, 0)
            shape, _, _ = np.lib.format.read_array_header_1_0(file)
            assert shape == memory.shape
            offset = file.tell()
        with open(self.directory / "data.npy", "rb", buffering=0) as file:
            file.seek(offset)
            view, done = memory.data.cast("B"), 0
            while done < len(view):
                done += file.readinto(view[done:])


class Ours:
    def __init__(self, directory: Path, rows: int) -> None:
        import outcore

        self.path = directory / "checkpoint"
        self.world = outcore.World()
        self.array = outcore.GlobalArray(self.world, (rows, COLUMNS))
        own, columns = self.array.patch
        self.data = Data(self.array.local, own.start, columns)
        self.data.fill()
        self.array.sync()

    def obey(self, line: str) -> Answer:
        import outcore

        what, _ = line.split()
        if what == "load":
            self.data.clear()
        self.world.barrier()
        start = time.monotonic()
        if what == "save":
            outcore.checkpoint.save(self.world, self.path, {"t": self.array}, {"rows": self.array.shape[0]})
        else:
            with outcore.checkpoint.load(self.world, self.path) as saved:
                assert saved.meta["rows"] == self.array.shape[0]
                saved.read_all("t", self.array)
        self.world.barrier()
        end = time.monotonic()
        return start, end, what == "save" or self.all_agree(self.data.good())

    def all_agree(self, good: bool) -> bool:
        if self.world.size == 1:
            return good
        from mpi4py import MPI

        return bool(MPI.COMM_WORLD.allreduce(int(good), MPI.MIN))


def main() -> None:
    kind, directory, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    def start() -> Callable[[str], Answer]:
        return (Ours if kind == "ours" else Peers)(directory, rows).obey

    serve(start)
