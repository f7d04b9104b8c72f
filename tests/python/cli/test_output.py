"""Standard output that cannot be written gives one line and exit status 1; files get no progress bars."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from outcore.base.console import Lines

MOLECULE = "2\n\nH 0 0 0\nH 0 0 0.74\n"
LOST = "write to standard output: "


def _outcore(*arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "outcore", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["scf", "--help"], ["bench", "--list"], ["config", "--cflags"]]
)
def test_a_full_disk_behind_standard_output_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full, _outcore(*arguments, stdout=full) as run:
        said = run.communicate(timeout=60)[1]
    assert said == f"outcore: {LOST}No space left on device\n"
    assert run.returncode == 1


def test_a_log_that_takes_no_more_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "h2.xyz").write_text(MOLECULE)
    run = _outcore("scf", str(tmp_path / "h2.xyz"), "--basis", "sto-3g", "--log", "/dev/full", "--quiet")
    with run:
        said = run.communicate(timeout=60)[1]
    assert said == "outcore: write the log /dev/full: No space left on device\n"
    assert run.returncode == 1


def test_standard_output_that_is_closed_is_one_line() -> None:
    with _outcore("--version", preexec_fn=lambda: os.close(1)) as run:
        said = run.communicate(timeout=60)[1]
    assert said == f"outcore: {LOST}Bad file descriptor\n"
    assert run.returncode == 1


def test_a_reader_that_leaves_ends_a_run_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "h2.xyz").write_text(MOLECULE)
    command = [
        "scf",
        str(tmp_path / "h2.xyz"),
        "--basis",
        "sto-3g",
        "--threads",
        "1",
        "--scratch",
        str(tmp_path),
    ]
    reading, writing = os.pipe()
    with _outcore(*command, stdout=writing) as run:
        os.close(writing)
        os.close(reading)
        said = run.communicate(timeout=60)[1]
    assert said == f"outcore: {LOST}Broken pipe\n"
    assert run.returncode == 1
    assert [each.name for each in tmp_path.iterdir()] == ["h2.xyz"]


def test_a_limit_of_the_size_of_files_is_named_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "h2.xyz").write_text(MOLECULE)
    command = [
        "scf", str(tmp_path / "h2.xyz"), "--basis", "sto-3g", "--threads", "1", "--json", str(tmp_path / "h2.json"),
    ]  # fmt: skip
    limited = f"ulimit -f 1 && exec {sys.executable} -m outcore " + " ".join(command)
    answer = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 1
    assert "h2.json" in answer.stderr and "ulimit -f (RLIMIT_FSIZE)" in answer.stderr
    assert answer.stdout == ""


WATER = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"


@pytest.mark.parametrize(
    ("command", "stage", "kilobytes"),
    [
        ("rimp2 --basis sto-3g --storage disk", "RI-MP2", 1),
        ("ccsd --basis sto-3g --integrals ri --storage disk", "coupled cluster", 1),
        ("fci --basis 6-31g --checkpoint kept", "full CI", 1000),
    ],
)
def test_files_of_methods_that_are_too_large_are_refused_before_the_scf(
    tmp_path: Path, command: str, stage: str, kilobytes: int
) -> None:
    (tmp_path / "water.xyz").write_text(WATER)
    method, *options = command.split()
    words = [method, str(tmp_path / "water.xyz"), *options, "--threads", "1"]
    limited = f"ulimit -f {kilobytes} && exec {sys.executable} -m outcore " + " ".join(words)
    answer = subprocess.run(
        ["bash", "-c", f"cd {tmp_path} && {limited} --scratch {tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"outcore: {stage} ")
    assert "File too large (a file of " in answer.stderr
    assert "energy" not in answer.stdout


def test_an_scf_loads_no_packages_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "h2.xyz").write_text(MOLECULE)
    arguments = ["scf", str(tmp_path / "h2.xyz"), "--basis", "sto-3g", "--scratch", str(tmp_path)]
    code = f"import sys; from outcore.cli import main; main.run({arguments}); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(run.stdout.splitlines()[-1].split())
    needless = (
        *("asyncio", "importlib.abc", "importlib.metadata", "pandas", "rich", "unittest"),
        *("numpy.f2py.crackfortran", "numpy.polynomial.polynomial", "numpy.testing._private"),
        *("scipy.linalg._matfuncs", "scipy.optimize._minimize", "scipy.sparse"),
        "scipy.special._support_alternative_backends",
        *("pyscf.ao2mo.incore", "pyscf.df", "pyscf.dft", "pyscf.soscf"),
        *("outcore.chem.cc", "outcore.chem.ci", "outcore.chem.ri.fitting", "outcore.chem.ri.scf"),
        *("outcore.chem.gradients.fitted", "outcore.tensor"),
    )
    assert {"numpy", "pyscf.scf.hf", "scipy.linalg._decomp", "outcore.chem.hf.scf"} <= loaded
    assert not loaded & set(needless)


def test_lines_are_written_as_those_of_a_console_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with open(tmp_path / "log", "w+") as log:
        lines = Lines(log=log)
        text = f"a line [bold] of 12 :smile: {'and more ' * 30}"
        lines.print(text, soft_wrap=True)
        assert "rich" not in vars(lines)
        lines.rich.print(text, soft_wrap=True)
        Lines(quiet=True, log=log).print("quiet", soft_wrap=True)
        log.seek(0)
        assert log.read() == f"{text}\n{text}\nquiet\n"
    assert capsys.readouterr().out == f"{text}\n{text}\n"
