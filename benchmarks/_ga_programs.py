"""C programs that use Global Arrays or HDF5's subfiling: benchmarks compile them, and Open MPI runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from outcore import _core

_LIBRARIES = ("-lga-openmpi", "-larmci-openmpi")
_MATHEMATICS = ("-l:liblapack.so.3", "-l:libblas.so.3", "-lmpi_mpifh", "-lgfortran", "-lm")
INSTALL = "Debian: libglobalarrays-dev libarmci-mpi-dev libscalapack-openmpi-dev libopenmpi-dev openmpi-bin"
SUBFILING = "HDF5_DIR names no HDF5 that was built for Open MPI with subfiling: HDF5_ENABLE_SUBFILING_VFD"


def open_mpi_launcher() -> str | None:
    return next((found for name in ("mpirun.openmpi", "orterun") if (found := shutil.which(name))), None)


def _scalapack() -> str:
    """The linker option for ScaLAPACK; it also finds the library where the development package is missing."""
    found = sorted(each.name for each in Path("/usr/lib").glob("*/libscalapack-openmpi.so*"))
    return f"-l:{found[0]}" if found else "-lscalapack-openmpi"


def compile_ga(source: str, scratch: Path, classic: bool = False) -> tuple[Path | None, str]:
    """Compiles a file of this directory. Returns the program and "", or None and the reason. `classic`: calls of
    EAF, SF and DRA go to liboutcore_pario."""
    compiler = shutil.which("mpicc.openmpi")
    if compiler is None or open_mpi_launcher() is None or not Path("/usr/include/ga.h").is_file():
        return None, INSTALL
    target = scratch / f"{Path(source).stem}.{'classic' if classic else 'ga'}"
    place = Path(__file__).with_name(source)
    library = Path(_core.__file__).parent / "lib"
    ours = [f"-L{library}", "-loutcore_pario", "-loutcore", f"-Wl,-rpath,{library}"] if classic else []
    libraries = [*ours, *_LIBRARIES, _scalapack(), *_MATHEMATICS]
    return _compiled([compiler, "-O2", str(place), "-o", str(target), *libraries], target, INSTALL)


def compile_subfiling(source: str, scratch: Path) -> tuple[Path | None, str, str]:
    """As `compile_ga`, with the HDF5 of HDF5_DIR; then the version of that."""
    compiler, place = shutil.which("mpicc.openmpi"), Path(os.environ.get("HDF5_DIR", ""))
    if compiler is None or open_mpi_launcher() is None or not place.name:
        return None, SUBFILING, ""
    target = scratch / Path(source).stem
    command = [compiler, "-O2", str(Path(__file__).with_name(source)), "-o", str(target)]
    command += [f"-I{place / 'include'}", f"-L{place / 'lib'}", "-lhdf5", f"-Wl,-rpath,{place / 'lib'}"]
    header = place / "include" / "H5public.h"
    numbers = (
        re.findall(r"define H5_VERS_(?:MAJOR|MINOR|RELEASE) +(\d+)", header.read_text())
        if header.is_file()
        else []
    )
    return *_compiled(command, target, SUBFILING), ".".join(numbers)


def _compiled(command: list[str], target: Path, remedy: str) -> tuple[Path | None, str]:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None, f"{remedy}; compiling failed: {answer.stderr.strip()[-300:]}"
    return target, ""


def ga_command(program: Path, processes: int, *arguments: str) -> list[str]:
    """The command that runs the program on so many processes, also with fewer cores."""
    launcher = open_mpi_launcher()
    assert launcher is not None
    return [
        launcher, "--allow-run-as-root", "--oversubscribe", "-n", str(processes), str(program), *arguments,
    ]  # fmt: skip


def debian_version(package: str) -> str:
    if shutil.which("dpkg-query") is None:
        return ""
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
    )
    return f" {answer.stdout.partition('-')[0]}" if answer.returncode == 0 else ""
