"""The outcore command: its gate for errors, and the small subcommands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from outcore.cli import main as cli


def outcore(*arguments, ranks=1, **environment):
    """Runs the command as a user does, in a separate process."""
    launcher = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(ranks)] if ranks > 1 else []
    return subprocess.run(
        [*launcher, sys.executable, "-m", "outcore", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | environment,
    )


def test_help_names_every_command():
    answer = outcore("--help")
    assert answer.returncode == 0
    for name in cli.SUBCOMMANDS:
        assert f"\n  {name} " in answer.stdout


def test_no_argument_shows_the_help():
    assert outcore().stdout == outcore("--help").stdout


def test_help_does_not_load_the_libraries():
    code = (
        "import sys, outcore.cli.main as c; c.run(['--help']); print({'numpy', 'typer'} & sys.modules.keys())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("set()\n")


@pytest.mark.parametrize("call", ["", "; outcore.cli.main.run(['--version'])", "; dir(outcore)"])
def test_importing_and_naming_the_version_load_no_libraries(call):
    heavy = "{'numpy', 'typer', 'pyscf', 'scipy', 'h5py', 'rich', 'matplotlib', 'mpi4py'}"
    code = f"import sys, outcore.cli.main{call}; print({heavy} & sys.modules.keys())"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("set()\n")


def test_the_help_of_a_method_does_not_load_what_computes():
    code = (
        "import sys, outcore.cli.main as c; c.run(['scf', '--help']); "
        "print({'pyscf', 'scipy', 'h5py', 'matplotlib', 'mpi4py'} & sys.modules.keys())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("set()\n") and "--keep-integrals" in answer.stdout


def test_a_small_run_does_not_load_what_it_does_not_need(tmp_path):
    (tmp_path / "helium.xyz").write_text("1\n\nHe 0 0 0\n")
    code = (
        "import sys, outcore.cli.main as c; c.run(['scf', 'helium.xyz', '--basis', 'sto-3g', '-q']); "
        "print({'matplotlib', 'scipy.optimize._minimize', 'numpy.f2py.f2py2e', 'mpi4py'} & sys.modules.keys())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert answer.stdout.endswith("set()\n") and "-2.8077" in answer.stdout


def test_version():
    from outcore import __version__

    assert outcore("--version").stdout == f"outcore {__version__}\n"


@pytest.mark.parametrize("name", ["report", "bench", "doctor", "clean", "config"])
def test_each_command_explains_itself(name):
    answer = outcore(name, "--help")
    assert answer.returncode == 0
    assert f"outcore {name}" in answer.stdout


def test_unknown_command_suggests_one():
    answer = outcore("docter")
    assert answer.returncode == 2
    assert answer.stderr == "outcore: there is no command 'docter', did you mean 'doctor'?\n"


def test_unknown_option_is_a_usage_error():
    answer = outcore("doctor", "--nonsense")
    assert answer.returncode == 2
    assert answer.stderr.startswith("outcore: ")
    assert "--nonsense" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_failure_is_one_message_without_traceback(tmp_path):
    answer = outcore("clean", "--scratch", tmp_path / "none")
    assert answer.returncode == 1
    assert answer.stderr.startswith("outcore: ")
    assert str(tmp_path / "none") in answer.stderr
    assert "Traceback" not in answer.stderr


def test_debug_shows_the_traceback(tmp_path):
    answer = outcore("clean", "--scratch", tmp_path / "none", OUTCORE_DEBUG="1")
    assert answer.returncode == 1
    assert "Traceback" in answer.stderr


@pytest.mark.parametrize("name", ["pyscf", "pyscf.scf"])
def test_missing_package_names_the_extra(name, capsys):
    assert cli.report(ModuleNotFoundError(f"No module named '{name}'", name=name)) == 1
    hint = "pyscf is missing; install it with: pip install 'pyscf>=2.5' 'scipy>=1.12'"
    assert capsys.readouterr().err == f"outcore: start: {hint}\n"


def test_bug_is_shown_with_its_traceback(capsys):
    assert cli.report(ModuleNotFoundError("No module named 'outcore.nonsense'", name="outcore.nonsense")) == 1
    assert "ModuleNotFoundError" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_the_documented_status():
    command = f"{sys.executable} -m outcore --help | true; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert answer.stdout == "1\n"
    assert answer.stderr == "outcore: write to standard output: Broken pipe\n"


@pytest.mark.launcher
def test_usage_error_of_many_processes_is_said_once():
    answer = outcore("nonsense", ranks=2)
    assert answer.returncode == 2
    assert answer.stderr.count("there is no command 'nonsense'") == 1


FAIL_IN_JOB = """
import errno
from outcore.job import launch
from outcore.cli import main as cli
from outcore.base.errors import OutcoreError
comm = launch.world()
def command():
    {body}
cli._function = lambda entry: command
cli.main(["doctor"])
"""


def failing_job(body):
    code = FAIL_IN_JOB.format(body=body)
    launcher = Path(sys.executable).parent / "mpiexec"
    command = [launcher, "-n", "2", sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.launcher
def test_error_of_all_processes_is_said_once():
    answer = failing_job("raise OutcoreError(errno.EIO, 'read', detail='all') from None")
    assert answer.returncode == 1
    assert answer.stderr == "outcore: read: Input/output error (all)\n"


@pytest.mark.launcher
def test_different_errors_of_processes_are_all_said():
    answer = failing_job("raise OutcoreError(errno.EIO, 'read', detail=f'part {comm.rank}')")
    assert answer.stderr.index("rank 0") < answer.stderr.index("rank 1")


@pytest.mark.launcher
def test_agreed_error_is_said_once():
    body = (
        "raise comm.bcast(OutcoreError(errno.ENOSPC, 'write', detail='agreed') if comm.rank == 0 else None)"
    )
    answer = failing_job(body)
    assert answer.returncode == 1
    assert answer.stderr == "outcore: rank 0: write: No space left on device (agreed)\n"


@pytest.mark.launcher
def test_error_of_one_process_ends_the_job():
    answer = failing_job(
        "if comm.rank == 1: raise OutcoreError(errno.EIO, 'read', detail='alone')\n    comm.Barrier()"
    )
    assert answer.returncode == 1
    assert answer.stderr.count("outcore: rank 1: read: Input/output error (alone)") == 1
    assert "Traceback" not in answer.stderr


def test_config_compiles_a_program(tmp_path):
    flags = outcore("config", "--cxxflags", "--libs").stdout.split()
    source = tmp_path / "program.cpp"
    source.write_text('#include "outcore/error.hpp"\nint main() { return outcore::process_count() - 1; }\n')
    subprocess.run(["c++", source, "-o", tmp_path / "program", *flags], check=True)
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


@pytest.mark.parametrize("option", ["--pario", "--pario4"])
def test_config_has_the_classic_names(tmp_path, option):
    flags = outcore("config", option).stdout.split()
    source = tmp_path / "program.c"
    source.write_text("#include <sf.h>\nint main(void) { return SF_Destroy(1) == 0; }\n")
    subprocess.run(["cc", source, "-o", tmp_path / "program", *flags], check=True)
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


def test_config_needs_to_know_what():
    assert outcore("config").returncode == 2


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")
@pytest.mark.parametrize("options", [(), ("--integer8",)])
def test_config_has_fortran_modules(tmp_path, monkeypatch, options):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "program.f90"
    source.write_text(
        "program test\n  use outcore\n  type(oc_world) :: world\n  integer :: stat\n"
        "  call world%open(alone=.true., stat=stat)\n  if (stat /= 0) error stop\nend program test\n"
    )
    for _ in range(2):  # the second time they are there
        flags = outcore("config", "--fflags", "--flibs", *options).stdout.split()
        subprocess.run(["gfortran", source, "-o", tmp_path / "program", *flags], check=True)
        subprocess.run([tmp_path / "program"], check=True)
    assert len(list((tmp_path / "cache" / "outcore").iterdir())) == 1


def test_config_says_that_there_is_no_fortran_compiler():
    answer = outcore("config", "--fflags", "--fc", "no-such-compiler")
    assert answer.returncode == 1
    assert "no-such-compiler" in answer.stderr
