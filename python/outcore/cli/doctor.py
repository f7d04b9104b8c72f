"""`outcore doctor`: what Outcore finds on this machine, what is missing, at which cost, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore import _core
from outcore.base import extras
from outcore.base.errors import OutcoreError
from outcore.job import launch, machine, resources
from outcore.job.scratch import find_scratch
from outcore.trace.tables import rate, volume


@dataclass(frozen=True)
class Finding:
    """One line of the report. `cost` and `remedy` are empty unless something is missing or not as it should be."""

    name: str
    found: str
    cost: str = ""
    remedy: str = ""


# ---- scratch ----


def scratch_facts(directory: Path) -> dict[str, Any]:
    """Facts about the file system of a scratch directory. Sizes in bytes."""
    system = _core.file_system(directory)
    return {
        "directory": str(directory),
        "file_system": system.type,
        "total_bytes": system.total_bytes,
        "free_bytes": system.free_bytes,
        "network": system.network,
        "memory": system.memory,
        "direct_io": system.direct_offset_align > 0,
    }


# ---- findings ----


def findings(scratch: Path | None = None) -> list[Finding]:
    """Everything that `outcore doctor` shows, in its order. Raises OutcoreError for an unusable `scratch`."""
    return [
        Finding("versions", f"Outcore {_version('outcore')}, Python {platform.python_version()}"),
        Finding("kernel", platform.release()),
        _engine(),
        *_emulation(),
        _mpi(),
        _launcher(),
        _package("PySCF", "pyscf", "no quantum chemistry: outcore scf does not run", "chem"),
        _package("matplotlib", "matplotlib", "no figures: outcore report --plot does not run", "plot"),
        _fortran(),
        _blas(),
        Finding("cores", f"{resources.cores()} of {os.cpu_count()}"),
        _memory(),
        *_scratch(scratch),
    ]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(name: str, package: str, cost: str, extra: str) -> Finding:
    version = _version(package)
    if version is not None:
        return Finding(name, version)
    return Finding(name, "missing", cost, extras.install(extra))


def _engine() -> Finding:
    name, reason = _core.engine_name(), _core.engine_reason()
    found = f"{name} ({reason})" if reason else name
    if name == "uring" or os.environ.get("OUTCORE_ENGINE"):
        return Finding("I/O engine", found)
    cost = "asynchronous I/O through a pool of threads: more processor time for each request"
    remedy = (
        "apt install liburing-dev, then install Outcore again"
        if "build" in reason or "built" in reason
        else "allow the io_uring system calls: kernel.io_uring_disabled, or the seccomp profile of the container"
    )
    return Finding("I/O engine", found, cost, remedy)


def _emulation() -> list[Finding]:
    """Emulated storage, if there is any."""
    if not (emulated := _core.emulation()):
        return []
    cost = "measurements are not of this machine's storage"
    return [Finding("emulated", emulated, cost, "unset OUTCORE_THROTTLE and OUTCORE_REQUESTS")]


def _mpi() -> Finding:
    try:
        return Finding("MPI", f"{launch.mpi_library()}, mpi4py {_version('mpi4py')}")
    except OutcoreError as error:
        return Finding("MPI", "missing", f"one process only: {error.detail}", extras.install("mpi"))


def _launcher() -> Finding:
    try:
        return Finding("launcher", str(launch.find_launcher()))
    except OutcoreError as error:
        return Finding("launcher", "missing", f"no --ranks: {error.detail}", extras.install("mpi"))


def _fortran() -> Finding:
    if (path := shutil.which("gfortran")) is not None:
        return Finding("Fortran", path)
    return Finding(
        "Fortran", "missing", "outcore bench eaf has no Fortran to compare with", "apt install gfortran"
    )


def _blas() -> Finding:
    import numpy

    settings: Any = numpy.show_config(mode="dicts")
    blas = settings["Build Dependencies"]["blas"]
    return Finding("BLAS", f"{blas['name']} {blas['version']}, {launch.threads_per_rank()} threads a process")


def _memory() -> Finding:
    available, total = resources.available_memory_bytes(), resources.total_memory_bytes()
    return Finding("memory", f"{volume(available)} available of {volume(total)}")


def _scratch(given: Path | None) -> list[Finding]:
    directory = Path(find_scratch(given))
    facts = scratch_facts(directory)
    place = f"{directory} ({facts['file_system']}, {volume(facts['free_bytes'])} free)"
    finding = Finding("scratch", place)
    if facts["memory"]:
        finding = Finding(
            "scratch", place, "its files take memory", "set OUTCORE_SCRATCH to a directory on a disk"
        )
    elif facts["network"]:
        cost = "several machines share it: it is slower, and this machine slows the others down"
        finding = Finding(
            "scratch", place, cost, "set OUTCORE_SCRATCH to a directory on a disk of this machine"
        )
    direct = Finding("direct I/O", "yes")
    if not facts["direct_io"]:
        direct = Finding(
            "direct I/O", "no", "large transfers go through the page cache", "another file system"
        )
    rates = machine.disk(directory, fresh=True)
    speed = Finding("measured rate", "not measured", "estimates assume a slow disk", "free some 10 MB there")
    if rates is not None:
        both = f"read {rate(rates.read_bytes_per_s)}, write {rate(rates.write_bytes_per_s)}"
        speed = Finding("measured rate", both)
    return [finding, direct, speed]


# ---- the command ----


def _show(found: Sequence[Finding]) -> None:
    width = max(len(finding.name) for finding in found)
    for finding in found:
        print(f"{finding.name:<{width}}  {finding.found}")
        if finding.cost:
            print(f"{'':<{width}}    costs: {finding.cost}")
        if finding.remedy:
            print(f"{'':<{width}}    remedy: {finding.remedy}")


def command(
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    scratch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Scratch directory to examine (default: the one chosen)."),
    ] = None,
) -> None:
    """Show what Outcore finds on this machine, what is missing, at which cost, and how to get it."""
    found = findings(scratch)
    if json_:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        _show(found)
