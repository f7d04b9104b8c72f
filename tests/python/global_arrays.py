"""The Global Arrays of Debian, of Open MPI: compiler and launcher, for tests that are skipped by name without."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from outcore import _core

SOURCES = Path(__file__).resolve().parents[1] / "compat"
LIBRARIES = (
    "-lga-openmpi",
    "-larmci-openmpi",
    "-l:libscalapack-openmpi.so.2.2",
    "-l:liblapack.so.3",
    "-l:libblas.so.3",
    "-lgfortran",
    "-lm",
)
_NUMERICAL = ("scalapack-openmpi", "lapack", "blas")
PACKAGES = (
    "libglobalarrays-dev",
    "libarmci-mpi-dev",
    "openmpi-bin",
    "libscalapack-openmpi2.2",
    "liblapack3",
    "libblas3",
)
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_osc": "^ucx",
}


def require() -> None:
    missing = [name for name in ("mpicc.openmpi", "mpiexec.openmpi") if shutil.which(name) is None]
    missing += [] if ctypes.util.find_library("ga-openmpi") or _has_static() else ["libglobalarrays-dev"]
    # Debian's package recommends these, which it is linked with.
    missing += [name for name in _NUMERICAL if ctypes.util.find_library(name) is None]
    if missing:
        pytest.skip(f"NOT TESTED without {', '.join(missing)} (Debian: {', '.join(PACKAGES)})")


def _has_static() -> bool:
    return any(Path("/usr/lib").glob("*/libga-openmpi.a"))


def compiled(source: str, program: Path, *flags: str) -> Path:
    """Compiles a program with Global Arrays; `flags` come before its libraries, so that a library there can
    take over names."""
    command = ["mpicc.openmpi", "-O1", SOURCES / source, "-o", program, *flags, *LIBRARIES]
    subprocess.run(command, check=True)
    return program


def ours() -> list[str]:
    """The flags that link the classic names of disk I/O to liboutcore_pario."""
    place = Path(_core.__file__).parent / "lib"
    return [f"-L{place}", "-loutcore_pario", "-loutcore", f"-Wl,-rpath,{place}"]


def run(count: int, program: Path, *arguments: object, **environment: str) -> str:
    command = ["mpiexec.openmpi", "--oversubscribe", "-n", str(count), program, *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **ENVIRONMENT, **environment},
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
