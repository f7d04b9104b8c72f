"""The commands `outcore ri-scf` and `outcore rimp2`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.chem.ri.traffic import Traffic
from outcore.cli import main as cli
from outcore.trace.report import RawRates

pytest.importorskip("pyscf")

ETHANE = (
    "8\nethane\nC 0 0 0.766\nC 0 0 -0.766\nH 1.021 0 1.164\nH -0.51 0.884 1.164\nH -0.51 -0.884 1.164\n"
    "H -1.021 0 -1.164\nH 0.51 0.884 -1.164\nH 0.51 -0.884 -1.164\n"
)
WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"


@pytest.fixture
def water(tmp_path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


def run(command: str, path: Path, *arguments: str) -> int:
    return cli.run([command, str(path), "--scratch", str(path.parent), *arguments])


def refused(command: str, path: Path, *arguments: str) -> str:
    with pytest.raises((OutcoreError, cli.UsageError)) as caught:
        run(command, path, *arguments)
    return str(caught.value)


def fitted(path: Path, basis: str, **given):
    from pyscf import gto, scf

    mf = scf.HF(gto.M(atom=str(path), basis=basis, verbose=0, **given)).density_fit()
    mf.conv_tol = 1e-11
    mf.kernel()
    return mf


def number(output: str, start: str) -> float:
    line = next(line for line in output.splitlines() if line.strip().startswith(start))
    return float(line.strip().removeprefix(start).split()[0])


def test_scf_prints_its_energy(water, capsys):
    assert run("ri-scf", water, "--basis", "cc-pvdz") == 0
    output = capsys.readouterr().out
    assert number(output, "RI-RHF energy") == pytest.approx(fitted(water, "cc-pvdz").e_tot, abs=1e-8)
    assert "cc-pvdz-jkfit" in output and "cycle" in output


def test_open_shells_are_restricted_where_that_is_asked_for(water, capsys):
    from pyscf import gto
    from pyscf import scf as reference

    arguments = ("--basis", "cc-pvdz", "--charge", "1", "--conv-tol", "1e-11", "--rohf")
    assert run("ri-scf", water, *arguments) == 0
    mol = gto.M(atom=str(water), basis="cc-pvdz", charge=1, spin=1, verbose=0)
    expected = reference.ROHF(mol).density_fit().run(conv_tol=1e-11).e_tot
    assert number(capsys.readouterr().out, "RI-ROHF energy") == pytest.approx(expected, abs=1e-9)


def test_an_atom_with_one_electron_has_no_correlation(tmp_path, capsys):
    path = tmp_path / "h.xyz"
    path.write_text("1\nH\nH 0 0 0\n")
    sets = ("--basis", "sto-3g", "--jkbasis", "def2-universal-jkfit", "--auxbasis", "def2-tzvpp-ri")
    for more in ((), ("--pairs",), ("--estimate",), ("--storage", "disk")):
        assert run("rimp2", path, *sets, *more) == 0
        output = capsys.readouterr().out
        if "--estimate" not in more:
            assert number(output, "correlation energy") == 0.0
            assert number(output, "RI-MP2 energy") == pytest.approx(-0.4665818496, abs=1e-9)


def test_mp2_prints_its_energies(water, capsys):
    from pyscf.mp import dfmp2_native

    assert run("rimp2", water, "--basis", "cc-pvdz", "--frozen", "auto", "--pairs") == 0
    output = capsys.readouterr().out
    expected = dfmp2_native.DFRMP2(fitted(water, "cc-pvdz"), frozen=1)
    expected.kernel()
    assert number(output, "correlation energy") == pytest.approx(expected.e_corr, abs=1e-7)
    assert number(output, "opposite spin") + number(output, "same spin") == pytest.approx(
        expected.e_corr, abs=1e-7
    )
    pairs = [
        line.split() for line in output.splitlines() if len(line.split()) == 3 and line.split()[0].isdigit()
    ]
    assert sum(float(energy) for _, _, energy in pairs) == pytest.approx(expected.e_corr, abs=1e-7)
    assert {first for first, _, _ in pairs} == {"2", "3", "4", "5"}


def test_json_has_the_results(water, tmp_path):
    results = tmp_path / "results.json"
    run("rimp2", water, "--basis", "cc-pvdz", "--charge", "1", "--json", str(results))
    data = json.loads(results.read_text())
    assert data["correlation_hartree"] == pytest.approx(
        data["opposite_spin_hartree"] + data["same_spin_hartree"]
    )
    assert data["total_hartree"] == pytest.approx(data["energy_hartree"] + data["correlation_hartree"])
    assert data["peak_memory_bytes"] > 0 and data["functions"] == 24


def test_the_auxiliary_basis_can_be_chosen(water, capsys):
    run("rimp2", water, "--basis", "cc-pvdz", "--auxbasis", "cc-pvtz-ri", "--jkbasis", "cc-pvtz-jkfit")
    output = capsys.readouterr().out
    assert "cc-pvtz-ri" in output and "cc-pvtz-jkfit" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--auxbasis", "cc-pvdz-rj"), "unknown auxiliary basis 'cc-pvdz-rj'; similar"),
        (("--frozen", "9"), "9 frozen, but only 5 are occupied"),
        (("--frozen", "core"), "neither a number"),
        (("--scs", "1"), "two numbers are needed"),
        (("--memory", "10MB"), "is the least that is enough"),
        (("--storage", "tape"), "storage 'tape'"),
        (("--max-cycle", "2"), "after 2 cycles"),
    ],
)
def test_bad_input_is_explained(water, arguments, message):
    assert message in refused("rimp2", water, "--basis", "cc-pvdz", *arguments)


@pytest.mark.launcher
@pytest.mark.parametrize("storage", [pytest.param("auto", marks=pytest.mark.long), "disk"])
def test_energies_do_not_depend_on_processes_or_placement(water, tmp_path, storage):
    pytest.importorskip("mpi4py")
    alone, results = tmp_path / "alone.json", tmp_path / "results.json"
    common = ("--basis", "cc-pvdz", "--conv-tol", "1e-12")
    assert run("rimp2", water, *common, "--json", str(alone)) == 0
    own_process("rimp2", water, results, *common, "--ranks", "2", "--storage", storage)
    assert energies(results) == pytest.approx(energies(alone), abs=1e-10)


# ---- estimates ----


def test_an_estimate_computes_nothing(water, tmp_path, capsys):
    results = tmp_path / "results"
    assert run("rimp2", water, "--basis", "cc-pvdz", "--estimate", "--json", str(results)) == 0
    output = capsys.readouterr().out
    assert "SCF estimate: memory" in output and "MP2 estimate: memory" in output and "free in" in output
    assert "energy" not in output
    found = json.loads(results.read_text())
    assert found.keys() >= {"auxiliary_sets", "scf_estimate", "mp2_estimate", "least_memory_bytes"}
    assert not any("energy" in key for key in found)


@pytest.mark.launcher
@pytest.mark.parametrize("ranks", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_bytes_are_as_predicted(tmp_path, ranks):
    """With so little memory that caches do not hold the transformed arrays. With so few integrals, MP2 drops
    many elements while they are in caches, so they are never written; others leave a cache before their chunk
    is complete, and are written twice. So its writes agree within a factor of two, and its reads are not
    compared."""
    if ranks != "1":
        pytest.importorskip("mpi4py")
    path, results = tmp_path / "ethane.xyz", tmp_path / "results"
    path.write_text(ETHANE)
    memory = {"1": "241MB", "2": "503MB"}[ranks]
    own_process(
        "rimp2",
        path,
        results,
        "--basis",
        "cc-pvtz",
        "--storage",
        "disk",
        "--ranks",
        ranks,
        "--memory",
        memory,
    )
    data = json.loads(results.read_text())
    for what in ("written_bytes", "read_bytes"):
        predicted, actual = data["scf_forecast"][what]
        assert actual > 100_000
        assert predicted == pytest.approx(actual, rel=0.25), what
    predicted, actual = data["mp2_forecast"]["written_bytes"]
    assert 0.5 * predicted < actual < 2 * predicted


# ---- memory ----


def own_process(command: str, path: Path, results: Path, *arguments: str) -> str:
    """The output of a command in a separate process."""
    line = [sys.executable, "-m", "outcore", command, str(path), "--scratch", str(path.parent)]
    answer = subprocess.run(
        [*line, "--json", str(results), *arguments], check=False, capture_output=True, text=True, timeout=200
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.memory
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--storage", "disk"), marks=pytest.mark.long),
        (),
        pytest.param(("--uhf",), marks=pytest.mark.long),
    ],
)
def test_memory_stays_within_the_budget(tmp_path, arguments):
    """The budget leaves so little memory beside that of the process itself that not all integrals fit."""
    path, results = tmp_path / "ethane.xyz", tmp_path / "results"
    path.write_text(ETHANE)
    output = own_process("rimp2", path, results, "--basis", "cc-pvtz", "--memory", "225MB", *arguments)
    data = json.loads(results.read_text())
    assert 100e6 < data["peak_memory_bytes"] <= data["memory_budget_bytes"] == 225_000_000
    assert "MB of 225 MB" in output


@pytest.mark.long
def test_no_run_moves_less_than_the_bound(tmp_path):
    path, results = tmp_path / "ethanes.xyz", tmp_path / "results"
    atoms = [line.split() for line in ETHANE.splitlines()[2:]]
    rows = [f"{name} {float(x) + 4 * n} {y} {z}" for n in range(3) for name, x, y, z in atoms]
    path.write_text("\n".join([str(len(rows)), "", *rows]) + "\n")
    more = ("--basis", "cc-pvtz", "--memory")
    line = [sys.executable, "-m", "outcore", "ri-scf", str(path), *more, "10MB"]
    refused = subprocess.run(line, check=False, capture_output=True, text=True).stderr
    (memory,) = re.findall(r"([\d.]+ ?MB) is the least that is enough", refused)
    output = own_process("ri-scf", path, results, *more, memory.replace(" ", ""))
    traffic = json.loads(results.read_text())["scf_traffic"]
    moved, least = traffic["read_bytes"] + traffic["written_bytes"], traffic["least_bytes"]
    assert 0 < least <= moved
    assert f"disk: {moved / least:.2f} times the least that must be moved" in output


def proportional_bytes(path: Path) -> int:
    """Memory of the processes that have a file open; a page that n processes share counts as 1/n in each."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            if str(path) in words and "python" in words[0] and "mpiexec" not in words[0]:
                rollup = (process / "smaps_rollup").read_text()
                total += 1024 * int(re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)[1])
        except OSError:  # it has ended
            continue
    return total


@pytest.mark.launcher
def test_processes_together_stay_within_the_budget(tmp_path):
    """Shared libraries and arrays exist once, though the figure of each process includes them."""
    pytest.importorskip("mpi4py")
    path = tmp_path / "ethane.xyz"
    path.write_text(ETHANE)
    line = [
        sys.executable,
        "-m",
        "outcore",
        "rimp2",
        str(path),
        "--scratch",
        str(tmp_path),
        "--basis",
        "cc-pvtz",
    ]
    with subprocess.Popen([*line, "--memory", "478MB", "--ranks", "2"], stdout=subprocess.PIPE) as process:
        most = 0
        while process.poll() is None:
            most = max(most, proportional_bytes(path))
            time.sleep(0.02)
    assert process.returncode == 0
    assert 150e6 < most <= 430e6


def test_what_the_disk_did_is_told(tmp_path):
    path, results = tmp_path / "ethane.xyz", tmp_path / "results"
    path.write_text(ETHANE)
    output = own_process("rimp2", path, results, "--basis", "cc-pvtz", "--storage", "disk")
    assert "GB/s while under way" in output and "overlapped with computing" in output
    found = json.loads(results.read_text())
    traffic = found["scf_traffic"]
    assert 0 <= traffic["overlapped"] <= 1
    assert traffic["read_bytes"] > 8 * traffic["written_bytes"] > 0 and traffic["read_seconds"] > 0
    assert traffic["least_bytes"] == found["mp2_traffic"]["least_bytes"] == 0  # the memory has room for all


@pytest.mark.parametrize("command", ["ri-scf", "rimp2"])
def test_the_report_after_a_run_fits_a_screen(water, capsys, command):
    assert run(command, water, "--basis", "cc-pvdz", "--storage", "disk", "--charge", "1") == 0
    shown = capsys.readouterr().out.splitlines()
    bars = (
        "three-centre integrals",
        "pairs",
    )  # and the forecast of the second stage, with the name of a directory
    shown = [line for line in shown if not line.startswith(bars) and "GB free in" not in line]
    after = shown[next(i for i, line in enumerate(shown) if line.startswith("predicted / actual")) :]
    assert len(after) <= 24 and max(map(len, after)) <= 100
    assert not any("Requests by size" in line for line in after)


@pytest.mark.parametrize("command", ["ri-scf", "rimp2"])
def test_details_are_said_where_they_are_asked_for(water, capsys, command):
    options = ("--basis", "cc-pvdz", "--storage", "disk", "--report", "full")
    assert run(command, water, *options) == 0
    output = capsys.readouterr().out
    assert "Device layer: what the disk was asked for" in output and "Requests by size" in output
    assert run(command, water, *options, "--estimate") == 0
    assert "Requests by size" not in capsys.readouterr().out


def test_a_rate_above_that_of_the_disk_is_told_as_one_of_the_page_cache():
    traffic = Traffic(
        written_bytes=500_000_000, read_bytes=3_000_000_000, write_seconds=1.0, read_seconds=1.0
    )
    raw = RawRates(read_bytes_per_s=2e9, write_bytes_per_s=1e9)
    written, read, overlapped = traffic.lines(raw)
    assert written == "disk: 500 MB written, 0.50 GB/s while under way, 50% of the disk's 1.00 GB/s"
    assert read == "disk: 3000 MB read, 3.00 GB/s while under way, from the page cache (disk 2.00 GB/s)"
    assert overlapped == "disk: 100 % of the time of reading overlapped with computing"
    assert replace(traffic, nodes=2).lines(raw)[1].endswith("75% of the disk's 4.00 GB/s")
    assert traffic.lines(None)[1].endswith("3.00 GB/s while under way")
    assert Traffic().lines(raw) == ["disk: not used"]


def test_bytes_are_told_beside_the_least():
    traffic = Traffic(written_bytes=500_000_000, read_bytes=3_000_000_000, least_bytes=2e9)
    assert traffic.lines(None)[-1] == "disk: 1.75 times the least that must be moved"
    told = "gradient: 3500 MB moved to and from disk, 1.75 times the least that must be moved"
    assert traffic.line("gradient") == told
    unknown = replace(traffic, least_bytes=0.0)  # the memory had room
    assert unknown.line("gradient") == "gradient: 3500 MB moved to and from disk"
    assert not any("least" in line for line in unknown.lines(None))
    assert Traffic().line("gradient") == "gradient: no disk traffic"


# ---- restart ----


def energies(path: Path) -> tuple[float, float]:
    data = json.loads(path.read_text())
    return data["energy_hartree"], data["correlation_hartree"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The checkpoint of a finished run."""
    place = tmp_path_factory.mktemp("finished")
    (place / "water.xyz").write_text(WATER)
    arguments = ("--checkpoint", str(place / "kept"), "--json", str(place / "first"))
    run("rimp2", place / "water.xyz", "--basis", "cc-pvdz", *arguments)
    return place


@pytest.fixture
def kept(finished, tmp_path) -> Path:
    """A copy of that checkpoint, which may be changed; its results are beside it."""
    shutil.copy(finished / "first", tmp_path)
    return Path(shutil.copytree(finished / "kept", tmp_path / "kept"))


def again(water: Path, kept: Path, *arguments: str) -> tuple[float, float]:
    results = kept.parent / "again"
    run("rimp2", water, "--basis", "cc-pvdz", "--checkpoint", str(kept), "--json", str(results), *arguments)
    return energies(results)


def test_a_finished_run_is_not_done_again(water, kept, tmp_path, capsys):
    assert again(water, kept) == pytest.approx(energies(tmp_path / "first"), abs=1e-12)
    output = capsys.readouterr().out
    assert "converged orbitals found" in output and "integrals found" in output
    assert "cycle  " not in output


@pytest.mark.parametrize("lost", ["orbitals", "pairs.all", "mp2.0", "three_index"])
def test_a_stage_that_is_gone_is_done_again(water, kept, tmp_path, lost):
    shutil.rmtree(kept / lost)
    if lost == "orbitals":  # then all that depends on them is of other orbitals
        assert "of another orbitals" in refused(
            "rimp2", water, "--basis", "cc-pvdz", "--checkpoint", str(kept)
        )
        return
    assert again(water, kept) == pytest.approx(energies(tmp_path / "first"), abs=1e-10)


def test_finished_pairs_are_not_done_again(water, kept):
    """The run uses the checkpoint: a changed pair energy shows in the result."""
    import numpy as np

    from outcore import DiskArray, World

    before = again(water, kept)[1]
    with World("self") as world:
        pairs = DiskArray.open(world, kept / "pairs.all", read_only=False)
        pairs.acc(np.s_[0, 4, 4], np.array(0.25))
        pairs.close()
    assert again(water, kept)[1] == pytest.approx(before + 0.5, abs=1e-10)  # counts for both kinds of spin


@pytest.mark.parametrize(
    "arguments",
    [
        ("--charge", "2"),
        ("--screening", "1e-9"),
        ("--auxbasis", "cc-pvtz-ri"),
        ("--jkbasis", "cc-pvtz-jkfit"),
        ("--frozen", "1"),
    ],
)
def test_what_was_kept_of_another_problem_is_refused(water, kept, arguments):
    message = refused("rimp2", water, "--basis", "cc-pvdz", "--checkpoint", str(kept), *arguments)
    assert "another" in message and "kept" in message


def test_orbitals_that_converged_less_far_are_gone_on_from(water, tmp_path, capsys):
    kept, results = tmp_path / "kept", tmp_path / "results"
    for tolerance in ("1e-3", "1e-11"):
        arguments = ["--conv-tol", tolerance, "--checkpoint", str(kept), "--json", str(results)]
        run("ri-scf", water, "--basis", "cc-pvdz", *arguments)
    resumed = json.loads(results.read_text())["energy_hartree"]
    assert "converged orbitals found" not in capsys.readouterr().out
    run("ri-scf", water, "--basis", "cc-pvdz", "--conv-tol", "1e-11", "--json", str(results))
    assert resumed == pytest.approx(json.loads(results.read_text())["energy_hartree"], abs=1e-10)
    run("ri-scf", water, "--basis", "cc-pvdz", "--conv-tol", "1e-9", "--checkpoint", str(kept))
    assert "converged orbitals found" in capsys.readouterr().out


@pytest.mark.parametrize(("first", "second"), [("scf", "ri-scf"), ("ri-scf", "scf"), ("scf", "rimp2")])
def test_any_method_begins_with_the_orbitals_of_any_other(water, tmp_path, capsys, first, second):
    kept, results = tmp_path / "kept", tmp_path / "results"
    common = ("--basis", "cc-pvdz", "--json", str(results))
    run(second, water, *common)
    cold = json.loads(results.read_text())
    run(first, water, "--basis", "cc-pvdz", "--checkpoint", str(kept))
    capsys.readouterr()
    run(second, water, *common, "--restart", str(kept))
    warm = json.loads(results.read_text())
    assert "restart from cycle" in capsys.readouterr().out
    assert warm["energy_hartree"] == pytest.approx(cold["energy_hartree"], abs=2e-9)
    assert warm["cycles"] < cold["cycles"]
    message = refused(second, water, "--basis", "cc-pvdz", "--charge", "2", "--restart", str(kept))
    assert "they were kept with charge = 0, now it is 2" in message


@pytest.mark.parametrize(("name", "before"), [("mp2.0", "pairs.all"), ("three_index", "orbitals")])
def test_damaged_integrals_are_refused_with_a_way_out(water, kept, tmp_path, name, before):
    """`before`: the files that must be removed for the integrals to be read at all."""
    component = kept / name / "component.0"
    data = bytearray(component.read_bytes())
    where = max(i for i, byte in enumerate(data) if byte)
    data[where] ^= 0xFF
    component.write_bytes(data)
    shutil.rmtree(kept / before)
    message = refused("rimp2", water, "--basis", "cc-pvdz", "--checkpoint", str(kept))
    assert "component.0" in message and "remove" in message and "recomputed" in message
    for each in (name, "mp2.0", "pairs.all"):  # the latter are of orbitals that are found anew
        shutil.rmtree(kept / each, ignore_errors=True)
    assert again(water, kept) == pytest.approx(energies(tmp_path / "first"), abs=1e-8)


def rimp2_of_ethane(place: Path, *arguments: str) -> list[str]:
    path = place / "ethane.xyz"
    path.write_text(ETHANE)
    command = [sys.executable, "-m", "outcore", "rimp2", str(path), "--basis", "cc-pvtz"]
    command += ["--scratch", str(place), "--json", str(place / "results"), "--conv-tol", "1e-11"]
    return [*command, *arguments]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[float, float]:
    """Energies of ethane by an uninterrupted run."""
    place = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(rimp2_of_ethane(place), check=True, stdout=subprocess.DEVNULL)
    return energies(place / "results")


@pytest.mark.launcher
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("three_index/manifest", marks=pytest.mark.long),
        pytest.param("orbitals/manifest", marks=pytest.mark.long),
        "mp2.0/manifest",
        pytest.param("pairs.all/manifest", marks=pytest.mark.long),
    ],
)
def test_a_run_killed_in_any_stage_is_finished_by_another_number_of_processes(tmp_path, undisturbed, stage):
    """Killed as soon as the previous stage was committed, or has begun."""
    pytest.importorskip("mpi4py")
    kept = tmp_path / "kept"
    command = rimp2_of_ethane(tmp_path, "--checkpoint", str(kept))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while not (kept / stage / "manifest").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    answer = subprocess.run([*command, "--ranks", "2"], check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "found" in answer.stdout
    assert energies(tmp_path / "results") == pytest.approx(undisturbed, abs=1e-9)


def test_auxiliary_sets_that_were_made_for_another_basis_are_said(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    for basis, sets in (("sto-3g", "def2-svp"), ("cc-pvdz", None)):
        assert run("rimp2", water, "--basis", basis, "--json", str(results)) == 0
        output, found = capsys.readouterr().out, json.loads(results.read_text())["auxiliary_sets"]
        for purpose, ending in (("jk", "-jkfit"), ("mp2", "-ri")):
            stand_in = None if sets is None else f"{sets}{ending} for {basis}"
            assert found[purpose] == {"sets": f"{sets or basis}{ending}", "stand_in": stand_in}
            assert stand_in is None or f"{stand_in}, which it was not made for" in output
        assert (sets is None) == ("not made for" not in output)
    named = ("--jkbasis", "def2-svp-jkfit", "--auxbasis", "def2-svp-ri")
    assert run("rimp2", water, "--basis", "sto-3g", *named) == 0
    assert "not made for" not in capsys.readouterr().out
