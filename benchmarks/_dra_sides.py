"""The sides of bench dra, and how one operation of each is timed.

A side is the raw device, or a group of processes that run on while the sides take turns, so that their start is not
measured. All sides write the same data and sync them; each reads its own files.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outcore.cli.bench import claim_memory, drop_files

from ._ga_programs import compile_ga, compile_subfiling, debian_version, ga_command
from ._workers import Workers, python_worker, raw_rate, remove_contents

OURS, RAW = "ours", "raw device"
REWRITE_AGAIN = "rewrite again"
OPERATIONS = ("write", "read", "rewrite", REWRITE_AGAIN)
PLACES = {"aligned": (0, 0), "offset by one": (1, 1)}


@dataclass(frozen=True)
class Case:
    operation: str
    place: str

    @property
    def name(self) -> str:
        what = {
            "write": "write to a new array",
            "read": "cold read",
            "rewrite": "write to an old array",
            REWRITE_AGAIN: "write to an old array again",
        }
        return f"{what[self.operation]}, {self.place}"

    @property
    def command(self) -> str:
        """The command for the workers."""
        return "rewrite" if self.operation == REWRITE_AGAIN else self.operation


CASES = tuple(Case(operation, place) for place in PLACES for operation in OPERATIONS)  # in the order they run


@dataclass(frozen=True)
class Problem:
    """`section` and `array`: side lengths of the square matrices of doubles. `source`: file with the section."""

    section: int
    array: int
    source: Path
    scratch: Path

    @property
    def bytes(self) -> int:
        return 8 * self.section**2

    @property
    def slice_length(self) -> int:
        return self.array * 9 // 10


class Side(Protocol):
    name: str
    is_peer: bool

    def seconds(self, case: Case) -> float: ...

    def close(self) -> None: ...


# ---- the raw device


class Raw:
    """Sequential direct requests of 1 MiB, 8 under way, once over a file of the size of the section."""

    def __init__(self, problem: Problem) -> None:
        self.name, self.is_peer = RAW, False
        self.problem = problem
        self.tool = ""
        self.path = problem.scratch / "raw"

    def seconds(self, case: Case) -> float:
        reading = case.operation == "read"
        if case.operation == "write":
            self.path.unlink(missing_ok=True)
            os.sync()
        rate = raw_rate(self.path, "read" if reading else "write", self.problem.bytes >> 20 << 20)
        self.tool = rate.tool
        return self.problem.bytes / rate.bytes_per_s

    def close(self) -> None:
        self.path.unlink(missing_ok=True)


# ---- groups of processes


@dataclass(frozen=True)
class Candidate:
    """A library with settings. `processes`: how many processes share the work."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    processes: int = 1

    @property
    def name(self) -> str:
        words = [f"{key} {value}" for key, value in self.settings.items()]
        if self.processes > 1:
            words.append(f"{self.processes} processes")
        return ", ".join([self.kind, *words])


class Group:
    """Processes that hold the section in memory and run operations."""

    def __init__(self, candidate: Candidate, problem: Problem, launch: Sequence[str] | None) -> None:
        """`launch`: the command that starts all processes; the task is appended to it. None for a Python peer: this
        class starts its processes."""
        self.candidate, self.problem = candidate, problem
        self.name, self.is_peer = candidate.name, candidate.kind != OURS
        self.directory = Path(tempfile.mkdtemp(dir=problem.scratch, prefix=candidate.kind))
        self.sure_cold = True
        if launch is None:
            command = python_worker("_dra_worker", candidate.kind)
            commands = [[*command, *self._task(i)] for i in range(candidate.processes)]
        else:
            commands = [[*launch, *self._task(0)]]
        self.workers = Workers(self.name, commands)

    def _task(self, index: int) -> list[str]:
        problem, settings = self.problem, self.candidate.settings
        places = [str(self.directory), str(problem.source)]
        if self.candidate.kind == GA:
            own = (min(settings["request"], problem.section), settings["files"], settings["writers"])
        elif self.candidate.kind == SUBFILING:
            own = (settings.get("chunk", 0), settings["stripe"], settings["files"])
        if self.candidate.kind in COMPILED:
            return [*places, *map(str, (problem.section, problem.array, *own))]
        task = {
            "directory": places[0],
            "source": places[1],
            "section": problem.section,
            "array": problem.array,
            "settings": settings,
            "index": index,
            "processes": self.candidate.processes,
        }
        return [json.dumps(task)]

    def drop(self) -> None:
        self.sure_cold &= drop_files(*(path for path in self.directory.rglob("*") if path.is_file()))

    def seconds(self, case: Case) -> float:
        """One run, after preparing the array and the cache as the case requires."""
        self.workers.wait_until_ready()
        row, column = PLACES[case.place]
        if case.operation == "write":
            remove_contents(self.directory)
        else:
            self.drop()
        claim_memory(2 * self.problem.bytes)
        if case.operation == "write" and self.workers.count > 1:
            start, _ = self.workers.command("create", first_only=True)
            _, end = self.workers.command(f"put {row} {column}")
        else:
            start, end = self.workers.command(f"{case.command} {row} {column}")
        return end - start

    def fill(self) -> None:
        """Makes an array that is full of data, for slices."""
        remove_contents(self.directory)
        self.workers.command("fill", first_only=True)

    def slice_seconds(self, axis: str, index: int) -> float:
        self.workers.command("open", first_only=True)
        self.drop()
        start, end = self.workers.command(
            f"slice {axis} {index} {self.problem.slice_length}", first_only=True
        )
        self.workers.command("close", first_only=True)
        return end - start

    def close(self) -> None:
        self.workers.close()
        shutil.rmtree(self.directory, ignore_errors=True)


# ---- peers

GA, SUBFILING = "Global Arrays", "HDF5 subfiling"
COMPILED = (GA, SUBFILING)
PACKAGES = {"h5py": "h5py", "TensorStore": "tensorstore", "zarr": "zarr", "zarrs": "zarrs"}

# The settings of the peers that a pilot tries. Compression and checksums are off in all of them. --quick has no
# time for a pilot and uses the first settings of each peer.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate("TensorStore", {"chunk": 1000, "mode": "direct"}),
    Candidate("TensorStore", {"chunk": 512, "mode": "direct"}),
    Candidate("TensorStore", {"chunk": 512}),
    Candidate("TensorStore", {"chunk": 512, "mode": "direct", "sync": False}),
    Candidate("TensorStore", {"chunk": 1000, "mode": "direct"}, processes=2),
    Candidate("h5py", {"chunk": 512, "cache": 32 << 20}),
    Candidate("h5py", {"chunk": 1250, "cache": 0}),
    Candidate("h5py", {"chunk": 512, "cache": 256 << 20, "aligned": True}),
    Candidate("h5py", {"chunk": 250, "cache": 32 << 20}),
    Candidate("zarr", {"chunk": 512, "io": 16}, processes=2),
    Candidate("zarr", {"chunk": 512, "io": 16}),
    Candidate("zarr", {"chunk": 1250, "io": 4}),
    Candidate("zarr", {"chunk": 500, "shard": 2500, "io": 8}, processes=2),
    Candidate("zarrs", {"chunk": 1000, "io": 16, "mode": "direct"}),
    Candidate("zarrs", {"chunk": 512, "io": 16}),
    Candidate("zarrs", {"chunk": 512, "io": 16, "mode": "direct"}, processes=2),
    Candidate("zarrs", {"chunk": 1250, "io": 4}),
    Candidate(GA, {"request": 5000, "files": 1, "writers": 1}, processes=2),
    Candidate(GA, {"request": 512, "files": 0, "writers": 0}, processes=2),
    Candidate(GA, {"request": 5000, "files": 2, "writers": 2}, processes=2),
    Candidate(SUBFILING, {"stripe": 32 << 20, "files": 1}, processes=2),
    Candidate(SUBFILING, {"stripe": 32 << 20, "files": 2}, processes=2),
    Candidate(SUBFILING, {"stripe": 4 << 20, "files": 2}, processes=2),
    Candidate(SUBFILING, {"chunk": 1250, "stripe": 32 << 20, "files": 2}, processes=2),
)


@dataclass(frozen=True)
class Peers:
    """The installed peers with their versions; the missing ones with the way to install them."""

    versions: dict[str, str]
    missing: dict[str, str]
    programs: dict[str, Path]  # of those that are compiled

    def launch(self, candidate: Candidate) -> list[str] | None:
        program = self.programs.get(candidate.kind)
        return None if program is None else ga_command(program, candidate.processes)

    def candidates(self) -> list[Candidate]:
        return [candidate for candidate in CANDIDATES if candidate.kind in self.versions]


def launch_ours(processes: int) -> list[str]:
    return python_worker("_dra_worker", OURS, mpi_processes=processes)


def find_peers(scratch: Path) -> Peers:
    versions, missing = {}, {}
    for kind, package in PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            missing[kind] = f"pip install {package}"
        else:
            versions[kind] = f"{kind} {importlib.metadata.version(package)}"
    programs = {}
    program, reason = compile_ga("_dra_ga.c", scratch)
    if program is None:
        missing[GA] = reason
    else:
        versions[GA] = f"{GA}{debian_version('libglobalarrays-dev')} DRA, Open MPI"
        programs[GA] = program
    program, reason, version = compile_subfiling("_dra_subfiling.c", scratch)
    if program is None:
        missing[SUBFILING] = reason
    else:
        versions[SUBFILING] = f"HDF5 {version} subfiling, Open MPI"
        programs[SUBFILING] = program
    return Peers(versions, missing, programs)
