"""Programs in C and C++ that benchmarks compile fit the installed headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from outcore import _core
from outcore.job import launch

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
OF_A_PEER = ("ga.h", "sf.h", "dra.h", "hdf5.h")  # headers that may not be installed
PROGRAMS = sorted(
    path.name
    for kind in ("*.c", "*.cpp")
    for path in BENCHMARKS.glob(kind)
    if not any(f"<{each}>" in path.read_text() or f'"{each}"' in path.read_text() for each in OF_A_PEER)
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_a_benchmark_compiles(program):
    compiler, standard = ("mpicxx", "c++20") if program.endswith(".cpp") else ("mpicc", "gnu11")
    include = Path(_core.__file__).parent / "include"
    command = [
        launch.find_launcher().with_name(compiler),
        "-fsyntax-only",
        f"-std={standard}",
        f"-I{include}",
    ]
    done = subprocess.run([*command, BENCHMARKS / program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
