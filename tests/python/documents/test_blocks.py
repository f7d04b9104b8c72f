"""Every code block of the documents works as shown."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import LANGUAGES, ROOT, Block, blocks, commands, documents, says, shown

pytestmark = pytest.mark.launcher

LIMIT_S = 120
COMPILERS = {"c": ("cc", "-std=c11"), "cpp": ("c++",), "fortran": ("gfortran",)}
CLANG = shutil.which("clang++")
MDSPAN = ROOT / "tests" / "third_party" / "kokkos_mdspan"
SUFFIXES = {"c": ".c", "cpp": ".cpp", "fortran": ".f90"}


def with_blocks(language=None):
    return [
        pytest.param(path, id=str(path.relative_to(ROOT)))
        for path in documents()
        if any(language in (None, block.language) for block in blocks(path))
    ]


@pytest.mark.parametrize("document", with_blocks())
def test_languages_are_known(document):
    for block in blocks(document):
        assert block.language in LANGUAGES, f"{document.name}:{block.line}"
        if block.language in ("sh", "text"):  # a block that can run must run
            assert not any(line.startswith("outcore ") for line in block.text.splitlines()), block.line


@pytest.mark.parametrize("document", with_blocks())
def test_files_that_are_shown_run(document):
    every = blocks(document)
    given = [command for each in every if each.language == "console" for command, _ in commands(each)]
    for block in every:
        if (name := shown(block)) is not None:
            assert (ROOT / name).is_file(), f"{document.name}:{block.line}"
            assert any(name in command.split() for command in given), f"{document.name}:{block.line}: {name}"


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (["first ..", "energy -76.2411452042 Eh"], True),
        (["energy -76.2411452044 Eh"], False),
        (["energy -76.2411452042 Eh", "first line"], False),
        (["energy -76.24114520 Eh"], False),
    ],
)
def test_lines_are_shown_in_order_and_energies_but_for_rounding(wanted, holds):
    assert says("first line\n\nenergy   -76.2411452041 Eh\n", wanted) is holds


@pytest.mark.parametrize("document", with_blocks())
def test_blocks_run(document, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "examples").symlink_to(ROOT / "examples")
    for block in blocks(document):
        where = f"{document.relative_to(ROOT)}:{block.line}"
        if shown(block) is not None:
            continue
        if block.language == "python":
            run([sys.executable, "-c", block.text], tmp_path / "work", where)
        elif block.language == "console":
            for command, wanted in commands(block):
                output = run(["bash", "-c", command], tmp_path / "work", f"{where}: {command}")
                assert says(output, wanted), f"{where}: {command} says\n{output}\nand not\n" + "\n".join(
                    wanted
                )
        elif block.language in ("sh", "slurm"):
            run(["bash", "-n", "-c", block.text], tmp_path, where)
        elif block.language in COMPILERS:
            compile_and_run(block, COMPILERS[block.language], tmp_path, where)


@pytest.mark.long
@pytest.mark.skipif(CLANG is None, reason="no clang++")
@pytest.mark.parametrize("document", with_blocks("cpp"))
def test_programs_in_cpp_run_if_clang_compiles_them(document, tmp_path):
    (tmp_path / "work").mkdir()
    for block in blocks(document):
        if block.language == "cpp" and shown(block) is None and "main(" in block.text:
            compile_and_run(block, (CLANG,), tmp_path, f"{document.relative_to(ROOT)}:{block.line}")


def run(command, directory, where):
    environment = dict(os.environ, COLUMNS="120", OMP_NUM_THREADS="1")
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    answer = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert answer.returncode == 0, f"{where}: status {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout + answer.stderr


def compile_and_run(block: Block, compiler: tuple[str, ...], directory: Path, where: str):
    from outcore.cli.config import INCLUDE, cflags, cxxflags, libs, pario_flags

    source = directory / f"program{SUFFIXES[block.language]}"
    program = directory / "program"
    text = block.text
    if block.language == "c" and "#include" not in text:  # declarations, as the header has them
        text = f"#include <outcore/outcore.h>\n{text}"
    source.write_text(text)
    module = [str(INCLUDE / "outcore" / "outcore.f90")] if block.language == "fortran" else []
    includes = cxxflags() if block.language == "cpp" else cflags()
    command = [*compiler, *includes.split(), *module, str(source)]
    if block.language == "cpp":
        command += ["-Wall", "-Wextra", "-Werror", "-isystem", str(MDSPAN)]
    if "main(" in text or block.language == "fortran":
        classic = pario_flags(integer4=False).split() if "<outcore/compat/" in text else []
        with_mpi = "<mpi.h>" in text
        flags = [*classic, *libs().split(), *(mpi_flags() if with_mpi else [])]
        launch = ["mpiexec", "-n", "2"] if with_mpi else []
        run([*command, "-o", str(program), *flags], directory, where)
        run([*launch, str(program)], directory / "work", f"{where}, by {compiler[0]}")
    else:
        run([*command, "-fsyntax-only"], directory, where)


def mpi_flags() -> list[str]:
    """Compiler flags for the MPI of the virtual environment, for any compiler."""
    prefix = Path(sys.prefix)
    return [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lmpi"]
