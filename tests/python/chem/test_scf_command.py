"""The command `outcore scf`: results, and messages for bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli
from outcore.job import resources

pytest.importorskip("pyscf")

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
WATER_631GS = -76.0083816  # PySCF 2.14, spherical d
ETHANE = (
    "8\nethane\nC 0 0 0.766\nC 0 0 -0.766\nH 1.021 0 1.164\nH -0.51 0.884 1.164\nH -0.51 -0.884 1.164\n"
    "H -1.021 0 -1.164\nH 0.51 0.884 -1.164\nH 0.51 -0.884 -1.164\n"
)
BIPHENYL = Path(__file__).parents[3] / "examples" / "c14h8f6.xyz"


@pytest.fixture
def water(tmp_path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


def scf(path: Path, *arguments: str) -> int:
    return cli.run(["scf", str(path), "--scratch", str(path.parent), *arguments])


def refused(path: Path, *arguments: str) -> str:
    with pytest.raises((OutcoreError, cli.UsageError)) as caught:
        scf(path, *arguments)
    return str(caught.value)


def test_energy_cycles_and_report_are_printed(water, capsys):
    from pyscf import gto
    from pyscf import scf as reference

    assert scf(water, "--basis", "6-31g*", "--report", "full") == 0
    output = capsys.readouterr().out
    expected = reference.RHF(gto.M(atom=str(water), basis="6-31g*", verbose=0)).kernel()
    line = next(line for line in output.splitlines() if line.startswith("RHF energy"))
    assert float(line.split()[2]) == pytest.approx(expected, abs=2e-9)
    assert "cycle" in output and "blocked by I/O" in output and "read async" in output


def after_the_run(output: str, start: str) -> list[str]:
    """The lines from the one with this beginning on."""
    shown = output.splitlines()
    return shown[next(i for i, line in enumerate(shown) if line.startswith(start)) :]


@pytest.mark.parametrize("more", [(), ("--uhf", "--charge", "1"), ("--storage", "auto")])
def test_the_report_after_a_run_fits_a_screen(water, capsys, more):
    assert scf(water, "--basis", "6-31g*", *more) == 0
    shown = after_the_run(capsys.readouterr().out, "UHF energy" if more[:1] == ("--uhf",) else "RHF energy")
    assert len(shown) <= 24 and max(map(len, shown)) <= 100
    assert any("blocked by I/O" in line for line in shown) and not any("I/O time" in line for line in shown)


def test_details_are_said_where_they_are_asked_for(water, capsys):
    assert scf(water, "--basis", "6-31g*", "--report", "full") == 0
    output = capsys.readouterr().out
    # Titles of tables: a header may be on two lines.
    assert "one standard deviation" in output and "Requests by size" in output and "Bandwidth" in output
    assert "it may be short or full" in refused(water, "--basis", "sto-3g", "--report", "long")


def test_json_has_the_results(water, tmp_path):
    results = tmp_path / "results.json"
    scf(water, "--basis", "sto-3g", "--json", str(results))
    data = json.loads(results.read_text())
    assert data["converged"] and data["functions"] == 7
    assert 0 <= data["io_wait_share"] <= 1
    assert data["stored"]["stored"] > 0


def test_each_integral_is_read_once_at_most_for_each_pass(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    scf(water, "--basis", "6-31g*", "--storage", "disk", "--json", str(results))
    data = json.loads(results.read_text())
    read, whole = data["read_bytes"], data["integral_work"]["whole_bytes"]
    assert 0.5 * whole < read <= whole
    assert f"disk: {read / whole:.2f} times all integrals there" in capsys.readouterr().out


def test_trace_file_is_read_by_the_report(water, tmp_path, capsys):
    trace = tmp_path / "trace.json"
    scf(water, "--basis", "sto-3g", "--trace", str(trace))
    capsys.readouterr()
    assert cli.run(["report", str(trace)]) == 0
    assert "async" in capsys.readouterr().out


def test_open_shells_are_unrestricted(water, capsys):
    assert scf(water, "--basis", "sto-3g", "--charge", "1") == 0
    assert "UHF energy" in capsys.readouterr().out


@pytest.mark.parametrize("integrals", ["disk", "direct"])
def test_open_shells_are_restricted_where_that_is_asked_for(water, capsys, integrals):
    from pyscf import gto
    from pyscf import scf as reference

    arguments = ("--basis", "sto-3g", "--charge", "1", "--rohf", "--storage", integrals)
    assert scf(water, *arguments, "--conv-tol", "1e-11") == 0
    energy = float(capsys.readouterr().out.split("\nROHF energy")[1].split()[0])
    mol = gto.M(atom=str(water), basis="sto-3g", charge=1, spin=1, verbose=0)
    assert energy == pytest.approx(reference.ROHF(mol).run(conv_tol=1e-11).e_tot, abs=1e-9)


def test_orbitals_of_another_method_are_not_taken(water, tmp_path):
    arguments = ("--basis", "sto-3g", "--charge", "1")
    assert scf(water, *arguments, "--rohf", "--checkpoint", str(tmp_path / "kept")) == 0
    assert scf(water, *arguments, "--rohf", "--restart", str(tmp_path / "kept")) == 0
    said = refused(water, *arguments, "--uhf", "--restart", str(tmp_path / "kept"))
    assert "method = ROHF, now it is UHF" in said


def test_odd_electrons_are_refused_for_rhf(water):
    assert "9 electrons, 1 unpaired" in refused(water, "--basis", "sto-3g", "--charge", "1", "--rhf")


def test_impossible_spin_is_refused(water):
    assert "10 electrons cannot have 1 unpaired" in refused(water, "--basis", "sto-3g", "--spin", "1")


def test_charge_without_electrons_is_refused(water):
    assert "leaves 0 electrons" in refused(water, "--basis", "sto-3g", "--charge", "10")


def test_unknown_basis_is_named_with_similar_ones(water):
    message = refused(water, "--basis", "6-31h*")
    assert "unknown basis '6-31h*'" in message and "similar" in message


def test_basis_without_the_element_is_said(tmp_path):
    path = tmp_path / "u.xyz"
    path.write_text("1\n\nU 0 0 0\n")
    assert "has no element U" in refused(path, "--basis", "cc-pvdz")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("1\n\nXx 0 0 0\n", "line 3 names an unknown element: 'Xx'"),
        ("1\n\nO 0 zero 0\n", "line 3 is not 'element x y z'"),
        ("3\n\nO 0 0 0\n", "line 1 says 3 atoms, but only 1 lines follow"),
        ("water\n\nO 0 0 0\n", "line 1 must be the number of atoms"),
        ("0\n\n", "it has no atoms"),
        ("", "it is empty"),
    ],
)
def test_bad_geometry_is_explained(tmp_path, content, text):
    path = tmp_path / "bad.xyz"
    path.write_text(content)
    message = refused(path, "--basis", "sto-3g")
    assert text in message and str(path) in message


def test_missing_geometry_is_named(tmp_path):
    assert "No such file" in refused(tmp_path / "none.xyz", "--basis", "sto-3g")


def test_missing_scratch_is_named(water):
    with pytest.raises(OutcoreError, match="no such directory"):
        cli.run(["scf", str(water), "--basis", "sto-3g", "--scratch", "/no/such/place"])


@pytest.mark.parametrize("text", ["many", "-3GB", "0", "1.5XB", "", "50%", "1000TB"])
def test_bad_sizes_are_refused_by_name(water, text):
    assert f"--memory {text}: Invalid argument" in refused(water, "--basis", "sto-3g", f"--memory={text}")


@pytest.mark.parametrize(
    ("text", "count"),
    [("400MB", 400_000_000), ("2GiB", 2 << 30), ("1e9", 10**9), ("1.5k", 1500), ("3 TB", 3 * 10**12)],
)
def test_sizes(text, count):
    assert resources.parse_bytes(text) == count


def test_no_convergence_is_an_error_that_names_the_energy(water):
    assert "after 2 cycles" in refused(water, "--basis", "sto-3g", "--max-cycle", "2")


def outcore(*arguments: str, launcher: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A separate run, as a user starts it."""
    command = [*launcher, sys.executable, "-m", "outcore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


def results_of(path: Path) -> dict:
    return json.loads(path.read_text())


@pytest.mark.launcher
def test_ranks_and_mpiexec_give_the_same_run(water, tmp_path):
    pytest.importorskip("mpi4py")
    from outcore.job import launch

    common = ("scf", str(water), "--basis", "6-31g*", "--scratch", str(tmp_path), "--json")
    assert scf(water, "--basis", "6-31g*", "--json", str(tmp_path / "one")) == 0
    runs = {
        "ranks": outcore(*common, str(tmp_path / "ranks"), "--ranks", "2"),
        "mpiexec": outcore(
            *common, str(tmp_path / "mpiexec"), launcher=(str(launch.find_launcher()), "-n", "2")
        ),
    }
    for name, run in runs.items():
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("RHF energy") == 1
        assert results_of(tmp_path / name)["energy_hartree"] == pytest.approx(
            results_of(tmp_path / "one")["energy_hartree"], abs=1e-10
        )
    assert "2 processes" in runs["ranks"].stdout


@pytest.mark.launcher
def test_bad_input_on_two_processes_is_said_once(water, tmp_path):
    pytest.importorskip("mpi4py")
    run = outcore("scf", str(water), "--basis", "none", "--scratch", str(tmp_path), "--ranks", "2")
    assert run.returncode != 0
    assert run.stderr.count("unknown basis 'none'") == 1
    assert "Traceback" not in run.stderr


@pytest.mark.memory
def test_memory_stays_below_the_budget(tmp_path):
    results = tmp_path / "results.json"
    run = outcore(
        *("scf", str(BIPHENYL), "--basis", "sto-3g", "--memory", "300MB"),
        *("--scratch", str(tmp_path), "--json", str(results)),
    )
    assert run.returncode == 0, run.stderr
    assert results_of(results)["peak_memory_bytes"] < 300_000_000


@pytest.mark.launcher
@pytest.mark.memory
def test_memory_of_two_processes_stays_below_the_budget(tmp_path):
    pytest.importorskip("mpi4py")
    results = tmp_path / "results.json"
    run = outcore(
        *(
            "scf",
            str(BIPHENYL),
            "--basis",
            "sto-3g",
            "--memory",
            "500MB",
            "--ranks",
            "2",
            "--conv-tol",
            "1e-3",
        ),
        *("--scratch", str(tmp_path), "--json", str(results)),
    )
    assert run.returncode == 0, run.stderr
    assert results_of(results)["peak_memory_bytes"] < 500_000_000


def test_killed_in_the_middle_leaves_nothing_after_the_next_start(water, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "outcore", "scf", str(BIPHENYL), "--basis", "6-31g"),
            *("--scratch", str(scratch), "--record-bytes", "1MiB"),
        ],
        stdout=subprocess.DEVNULL,
    )
    free = os.statvfs(scratch).f_bavail
    deadline = time.monotonic() + 60
    while not any(scratch.iterdir()) or os.statvfs(scratch).f_bavail > free - 1000:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    cli.run(["scf", str(water), "--basis", "sto-3g", "--scratch", str(scratch)])
    cli.run(["clean", "--scratch", str(scratch)])
    left = [path for path in scratch.iterdir() if str(os.getpid()) not in path.name]
    assert left == []


def test_a_run_goes_on_from_a_checkpoint(water, tmp_path, capsys):
    saved = tmp_path / "water.checkpoint"
    results = [tmp_path / "first.json", tmp_path / "second.json"]
    scf(water, "--basis", "6-31g*", "--checkpoint", str(saved), "--json", str(results[0]))
    scf(water, "--basis", "6-31g*", "--restart", str(saved), "--json", str(results[1]))
    first, second = (json.loads(each.read_text()) for each in results)
    assert second["energy_hartree"] == pytest.approx(first["energy_hartree"], abs=1e-9)
    assert second["cycles"] < first["cycles"]
    assert "restart from cycle" in capsys.readouterr().out


def test_a_run_of_the_same_problem_goes_on_from_its_checkpoint_and_another_is_refused(
    water, tmp_path, capsys
):
    saved, results = tmp_path / "kept", [tmp_path / "first.json", tmp_path / "second.json"]
    for each in results:
        scf(water, "--basis", "6-31g*", "--checkpoint", str(saved), "--json", str(each))
    first, second = (json.loads(each.read_text()) for each in results)
    assert second["energy_hartree"] == pytest.approx(first["energy_hartree"], abs=1e-9)
    assert second["cycles"] < first["cycles"]
    assert f"goes on from cycle {first['cycles']}" in capsys.readouterr().out
    before = sorted((each, each.read_bytes()) for each in saved.rglob("*") if each.is_file())
    message = refused(water, "--basis", "6-31g*", "--charge", "2", "--checkpoint", str(saved))
    assert "they were kept with charge = 0, now it is 2" in message
    assert sorted((each, each.read_bytes()) for each in saved.rglob("*") if each.is_file()) == before


def test_a_run_that_was_cut_short_can_be_finished(water, tmp_path):
    saved, results, whole = tmp_path / "water.checkpoint", tmp_path / "results.json", tmp_path / "whole.json"
    scf(water, "--basis", "6-31g*", "--json", str(whole))
    assert "converge" in refused(water, "--basis", "6-31g*", "--max-cycle", "2", "--checkpoint", str(saved))
    scf(
        water,
        "--basis",
        "6-31g*",
        "--restart",
        str(saved),
        "--checkpoint",
        str(saved),
        "--json",
        str(results),
    )
    expected = json.loads(whole.read_text())["energy_hartree"]
    assert json.loads(results.read_text())["energy_hartree"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.launcher
@pytest.mark.parametrize(
    ("cycle", "integrals"),
    [
        pytest.param(4, "disk", marks=pytest.mark.long),
        (3, "mixed"),
        pytest.param(1, "disk", marks=pytest.mark.long),
    ],
)
def test_a_run_that_was_killed_goes_on_from_its_integrals_and_its_last_cycle(tmp_path, cycle, integrals):
    from pyscf import gto
    from pyscf import scf as reference

    path, saved, results = tmp_path / "ethane.xyz", tmp_path / "orbitals", tmp_path / "results.json"
    path.write_text(ETHANE)
    command = [sys.executable, "-u", "-m", "outcore", "scf", str(path), "--basis", "cc-pvdz"]
    command += ["--storage", integrals, "--ranks", "2", "--scratch", str(tmp_path)]
    if integrals == "mixed":
        command += ["--disk", "2MB", "--record-bytes", "64KiB"]  # of 5 MB
    command += ["--keep-integrals", str(tmp_path), "--checkpoint", str(saved)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout is not None
    seen = any(line.split()[:1] == [str(cycle)] for line in run.stdout)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    assert seen
    answer = subprocess.run(
        [*command, "--restart", str(saved), "--json", str(results)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "reused" in answer.stdout
    restarted = int(answer.stdout.split("goes on from cycle ")[1].split()[0])
    assert restarted >= cycle
    mol = gto.M(atom=str(path), basis="cc-pvdz", verbose=0)
    expected = reference.RHF(mol).run(conv_tol=1e-11).e_tot
    assert json.loads(results.read_text())["energy_hartree"] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--basis", "sto-3g"), "they are of another basis and contractions"),
        (("--basis", "6-31g*", "--charge", "2"), "they were kept with charge = 0, now it is 2"),
        (("--basis", "6-31g*", "--uhf"), "method = RHF, now it is UHF"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(water, tmp_path, arguments, message):
    saved = tmp_path / "water.checkpoint"
    scf(water, "--basis", "6-31g*", "--checkpoint", str(saved))
    assert message in refused(water, *arguments, "--restart", str(saved))


def test_a_checkpoint_that_is_not_there_is_an_error(water, tmp_path):
    assert "none.checkpoint" in refused(
        water, "--basis", "sto-3g", "--restart", str(tmp_path / "none.checkpoint")
    )


@pytest.mark.launcher
@pytest.mark.parametrize(("before", "after"), [(1, 2), pytest.param(3, 2, marks=pytest.mark.long)])
def test_a_restart_may_have_another_number_of_processes(water, tmp_path, before, after):
    saved, results = tmp_path / "water.checkpoint", [tmp_path / "first.json", tmp_path / "second.json"]
    arguments = ["--basis", "6-31g*", "--checkpoint", str(saved), "--json", str(results[0])]
    if before == 1:
        assert scf(water, *arguments) == 0
    else:
        run = outcore("scf", str(water), "--scratch", str(tmp_path), *arguments, "--ranks", str(before))
        assert run.returncode == 0, run.stderr
    arguments = ["--basis", "6-31g*", "--restart", str(saved), "--json", str(results[1])]
    run = outcore("scf", str(water), "--scratch", str(tmp_path), *arguments, "--ranks", str(after))
    assert run.returncode == 0, run.stderr
    assert "restart from cycle" in run.stdout
    first, second = (results_of(each)["energy_hartree"] for each in results)
    assert second == pytest.approx(first, abs=1e-9)


def test_the_estimate_has_a_row_for_each_way_and_runs_nothing(water, tmp_path, capsys):
    results = tmp_path / "estimate.json"
    assert scf(water, "--basis", "6-31g*", "--estimate", "--disk", "40kB", "--json", str(results)) == 0
    output = capsys.readouterr().out
    assert "RHF energy" not in output
    ways = json.loads(results.read_text())["ways"]
    assert list(ways) == ["disk", "mixed, 0 MB", "direct", "auto"]
    assert ways["disk"]["kept"] > ways["mixed, 0 MB"]["kept"] > ways["direct"]["kept"] == 0


def test_a_mixed_run_says_what_it_keeps_and_what_it_recomputes(water, capsys):
    # The disk holds many records: the last one of each thread may find no room.
    settings = ["--storage", "mixed", "--disk", "1MB", "--record-bytes", "64KiB"]
    assert scf(water, "--basis", "cc-pvtz", *settings) == 0
    output = capsys.readouterr().out
    assert "% of the integrals, worth least for their bytes, are recomputed" in output
    assert "1 MB on disk" in output and "s were expected" in output


def test_no_disk_at_all_is_a_direct_run(water, capsys):
    assert scf(water, "--basis", "6-31g*", "--storage", "mixed", "--disk", "0") == 0
    assert "stored" not in capsys.readouterr().out
