"""Other programs that benchmarks compare Outcore with: whether they are installed, and with which BLAS."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from outcore.base.errors import OutcoreError

NWCHEM = "nwchem.openmpi"  # Debian's name


def open_mpi_launcher() -> str | None:
    """The launcher of Debian's Open MPI. Debian's NWChem needs it; Outcore may run under MPICH."""
    return next((found for name in ("mpirun.openmpi", "orterun") if (found := shutil.which(name))), None)


def fast_blas() -> bool:
    """Whether the system's libblas is an optimized one."""
    program = "import ctypes; ctypes.CDLL('libblas.so.3'); print(open('/proc/self/maps').read())"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    ).stdout
    return any(name in loaded for name in ("openblas", "mkl", "blis", "atlas"))


def missing(name: str) -> str:
    """The reason why a program ("Psi4", "NWChem") is left out of comparisons; empty if it can take part."""
    package, here = {
        "Psi4": ("psi4", bool(shutil.which("psi4"))),
        "NWChem": ("nwchem-openmpi", bool(shutil.which(NWCHEM) and open_mpi_launcher())),
    }[name]
    if not here:
        return f"{name} is not installed (Debian: {package}): no comparison with it"
    if not fast_blas():
        return (
            f"{name} would use the reference BLAS, which makes it several times as slow: no comparison with it "
            "(Debian: libopenblas0-pthread)"
        )
    return ""


def timed(command: list[str], directory: Path | None = None, **variables: str) -> tuple[float, str]:
    """Wall time and output of a command. Raises OutcoreError (EIO) with the end of its output if it fails."""
    start = time.perf_counter()
    answer = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, **variables},
    )
    seconds = time.perf_counter() - start
    if answer.returncode != 0:
        tail = (answer.stdout + answer.stderr)[-2000:]
        raise OutcoreError(errno.EIO, f"run {command[0]}", detail=f"exit status {answer.returncode}: {tail}")
    return seconds, answer.stdout
