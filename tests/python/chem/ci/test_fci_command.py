"""The command `outcore fci`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from outcore.base.errors import NotConverged, OutcoreError
from outcore.cli import main as cli
from outcore.keep import clock

pyscf = pytest.importorskip("pyscf")

from outcore.chem.ci import FCI  # noqa: E402

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
WATER_STO3G = -75.0126471190  # PySCF's
DEADLINE_S = 120
OXYGEN = "2\noxygen\nO 0 0 -0.6\nO 0 0 0.6\n"


@pytest.fixture
def water(tmp_path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


def run(path: Path | None, *arguments: str) -> int:
    given = [] if path is None else [str(path)]
    return cli.run(["fci", *given, "--threads", "1", *arguments])


def refused(path: Path | None, *arguments: str) -> str:
    with pytest.raises((OutcoreError, cli.UsageError)) as caught:
        run(path, *arguments)
    return str(caught.value)


def number(output: str, start: str) -> float:
    line = next(line for line in output.splitlines() if line.strip().startswith(start))
    return float(line.strip().removeprefix(start).split()[0])


def test_it_prints_energies_and_what_states_are(water, tmp_path, capsys):
    results, molden = tmp_path / "results.json", tmp_path / "natural.molden"
    arguments = ("--basis", "sto-3g", "--roots", "2", "--json", str(results), "--molden", str(molden))
    assert run(water, *arguments) == 0
    output = capsys.readouterr().out
    assert number(output, "FCI energy of root 1:") == pytest.approx(WATER_STO3G, abs=1e-8)
    assert "2 roots of A1, 2S = 0: 133 determinants in 4 symmetry blocks of 4 to 64, folded" in output
    assert "2222200" in output and "<S^2> = 0.000000" in output and "Debye" in output
    assert "predicted / actual" in output and "transition dipole" in output
    found = json.loads(results.read_text())
    assert found["energies_hartree"][0] == pytest.approx(WATER_STO3G, abs=1e-8)
    assert found["determinants"] == 133 and found["converged"] and found["group"] == "C2v"
    assert sum(found["roots"][0]["occupations"]) == pytest.approx(10)
    assert found["roots"][0]["dipole_debye"][2] == pytest.approx(1.616057, abs=1e-5)
    assert found["determinants_of_roots"][0]["determinants"][0][1] == "2222200"
    assert found["bounds"][0]["weinstein"] < 1e-6
    moved = found["moved_by_products"]
    assert moved["read"] + moved["added"] >= moved["least"] > 0
    assert found["kind"] == "memory" and "vectors in memory" in output
    assert molden.read_text().startswith("[Molden Format]")


STATES = ("--basis", "sto-3g", "--states", "A1:0:2,B1:2:1,B1:0:1", "--largest", "0")


def test_no_error_bound_is_told_of_what_has_not_converged(water, tmp_path, capsys):
    options = ("--basis", "6-31g", "--frozen", "1", "--scratch", str(tmp_path), "--error-bound", "1e-8")
    with pytest.raises(NotConverged):
        run(water, *options, "--iterations", "2")
    told = capsys.readouterr().out
    assert "NOT converged" in told and "Weinstein" in told
    assert "above the exact energy" not in told


def test_states_of_several_irreps_and_spins_are_found_in_one_run(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    assert run(water, *STATES, "--json", str(results)) == 0
    output = capsys.readouterr().out
    found = json.loads(results.read_text())
    alone = []
    for irrep, spin, roots in (("A1", 0, 2), ("B1", 2, 1), ("B1", 0, 1)):
        ci = mean_field(water)
        with FCI(ci, irrep=irrep, spin=spin, roots=roots, comm=None, threads=1) as each:
            alone += [(energy, irrep, spin) for energy in np.ravel(each.kernel())]
    alone.sort()
    assert found["energies_hartree"] == pytest.approx([energy for energy, _, _ in alone], abs=1e-8)
    assert [(each["irrep"], each["spin"]) for each in found["states"]] == [each[1:] for each in alone]
    assert [each["irrep"] for each in found["searches"]] == ["A1", "B1", "B1"]
    assert found["states"][0]["excitation_ev"] == 0.0 and found["converged"]
    assert found["searches"][1]["roots"][0]["spin_square"] == pytest.approx(2.0, abs=1e-6)
    lines = output[output.index("above / eV") :].splitlines()[1:5]
    assert [float(line.split()[1]) for line in lines] == pytest.approx(found["energies_hartree"], abs=1e-9)


def mean_field(path):
    mol = pyscf.M(atom=str(path), basis="sto-3g", symmetry=True, verbose=0)
    return mol.RHF().run(conv_tol=1e-12)


def test_states_of_several_irreps_are_kept_apart_and_gone_on_with(water, tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.mkdir()
    with pytest.raises(NotConverged):
        run(water, *STATES, "--checkpoint", str(kept), "--start", "10", "--iterations", "2")
    capsys.readouterr()
    assert run(water, *STATES, "--checkpoint", str(kept)) == 0
    first = capsys.readouterr().out
    assert first.count("began with states of iteration 2") == 3
    assert first.count("converged in ") == 3 + 1  # the SCF
    folders = {each.name for each in kept.glob("irrep-*")}
    assert folders == {"irrep-0-2S-0", "irrep-2-2S-2", "irrep-2-2S-0"}
    assert cli.run(["inspect", str(kept)]) == 0
    inspected = capsys.readouterr().out
    assert all(f"{each}/states.float64: disk array" in inspected for each in folders)
    assert run(water, *STATES, "--checkpoint", str(kept)) == 0
    again = capsys.readouterr().out
    assert table(again) == pytest.approx(table(first), abs=1e-8)


def table(output):
    return [float(line.split()[1]) for line in output[output.index("above / eV") :].splitlines()[1:5]]


def test_states_of_several_irreps_of_a_file(water, tmp_path, capsys):
    dump = tmp_path / "FCIDUMP"
    assert run(water, *STATES, "--write-fcidump", str(dump), "--energy-only") == 0
    first = table(capsys.readouterr().out)
    assert run(None, "--fcidump", str(dump), "--states", "1:0:2,3:2:1,3:0:1", "--energy-only") == 0
    assert table(capsys.readouterr().out) == pytest.approx(first, abs=1e-9)


def test_an_estimate_has_a_search_of_each_irrep_and_spin(water, tmp_path):
    results = tmp_path / "results.json"
    assert run(water, *STATES, "--estimate", "--json", str(results)) == 0
    found = json.loads(results.read_text())
    assert [each["irrep"] for each in found["searches"]] == ["A1", "B1", "B1"]
    assert all(each["estimate"]["memory_bytes"] > 0 for each in found["searches"])
    assert "energies_hartree" not in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--states", "A1:0"], "is no irrep, 2S and number of states"),
        (["--states", "A1:1:1"], "10 electrons cannot have 2S = 1"),
        (["--states", "E1:0:1"], "irrep E1"),
        (["--states", "A1:0:1,A1:0:1"], "is named twice"),
        (["--states", "A1:0:1,A2:12:1"], "10 electrons cannot have 2S = 12"),
        (["--states", "A1:0:1", "--roots", "2"], "--roots has no effect with --states"),
        (["--states", "A1:0:1", "--irrep", "A1"], "--irrep has no effect with --states"),
        (["--states", "A1:0:1", "--uhf"], "--states has no effect with --uhf"),
        (
            ["--states", "A1:0:1", "--no-solve", "--write-fcidump", "F"],
            "--states has no effect with --no-solve",
        ),
    ],
)
def test_states_that_cannot_be_are_refused(water, arguments, message):
    assert message in refused(water, "--basis", "sto-3g", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--states", "A1:0:1,A2:12:1"], "10 electrons cannot have 2S = 12"),
        (["--roots", "65"], "it must be from 1 to 64"),
        (["--irrep", "B3u"], "irrep B3u: Invalid argument (point group C2v has A1, A2, B1, B2)"),
        (["--group", "C2", "--irrep", "A1"], "irrep A1: Invalid argument (point group C2 has A, B)"),
        (["--states", "A1:0:1,E1:0:1"], "irrep E1: Invalid argument (point group C2v has A1, A2, B1, B2)"),
        (["--active", "8"], "8 active orbitals, but 7 are left beside 0 frozen ones"),
        (["--frozen", "1", "--active", "7"], "7 active orbitals, but 6 are left beside 1 frozen ones"),
        (["--active", "4"], "4 active orbitals cannot hold 5 alpha and 5 beta electrons"),
        (["--active", "B1=2"], "2 orbitals of B1, but the molecule has 1"),
        (["--frozen", "4", "--active", "2", "--roots", "5"], "there are at most 4 determinants"),
        (["--active", "A1=2", "--irrep", "B1"], "have no determinant of irrep B1"),
        (["--active", "A1=2", "--states", "A1:0:1,A1:4:1"], "2 active orbitals have no state of 2S = 4"),
        (["--spin", "2", "--frozen", "0,4", "--active", "2"], "orbital 4 (from 0) holds one electron"),
        (["--uhf", "--frozen", "0/0,1"], "give lists that are as long for both"),
    ],
)
def test_what_no_orbitals_have_is_refused_before_the_scf(water, monkeypatch, arguments, message):
    monkeypatch.delattr("outcore.chem.run.MoleculeRun.stored_scf")
    monkeypatch.delattr("outcore.chem.run.MoleculeRun.first_orbitals")
    assert message in refused(water, "--basis", "sto-3g", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--irrep", "B2g"], "2 electrons in 2 orbitals have no determinant of irrep B2g"),
        (
            ["--irrep", "Ag", "--roots", "3"],
            "find 3 roots: Invalid argument (there are at most 2 determinants)",
        ),
        (["--roots", "3"], "find 3 roots: Invalid argument (there are at most 2 determinants)"),
        (["--uhf", "--irrep", "B2g"], "have no determinant of irrep B2g"),
    ],
)
def test_states_that_a_molecule_lacks_are_refused_before_the_scf(tmp_path, monkeypatch, arguments, message):
    hydrogen = tmp_path / "hydrogen.xyz"
    hydrogen.write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    monkeypatch.delattr("outcore.chem.run.MoleculeRun.stored_scf")
    assert message in refused(hydrogen, "--basis", "sto-3g", *arguments)


def test_too_many_active_orbitals_are_refused_before_the_scf(water, monkeypatch):
    monkeypatch.delattr("outcore.chem.run.MoleculeRun.stored_scf")
    assert "115 orbitals, at most 64 can be correlated" in refused(water, "--basis", "cc-pvqz")


def test_a_full_report_has_a_line_for_each_figure(water, capsys):
    assert run(water, "--basis", "sto-3g", "--report", "full") == 0
    lines = capsys.readouterr().out.splitlines()
    for figure in ("determinants: 133", "disk: 0 MB"):
        assert figure in lines


def test_integrals_are_written_and_read(water, tmp_path, capsys):
    dump = tmp_path / "FCIDUMP"
    run(water, "--basis", "sto-3g", "--frozen", "auto", "--write-fcidump", str(dump), "--energy-only")
    first = capsys.readouterr().out
    assert "<S^2>" not in first and "1 frozen" in first
    assert run(None, "--fcidump", str(dump), "--largest", "0") == 0
    second = capsys.readouterr().out
    energies = [number(each, "FCI energy of root 1:") for each in (first, second)]
    assert energies[0] == pytest.approx(energies[1], abs=1e-9)
    assert "6 of irrep" not in second and "3 of irrep 1" in second and "largest" not in second
    run(None, "--fcidump", str(dump), "--spin", "2", "--irrep", "3")
    assert "1 root of irrep 3, 2S = 2" in capsys.readouterr().out


@pytest.mark.parametrize("reference", ["--rohf", "--uhf"])
def test_integrals_of_open_shells_are_written_with_their_symmetry(reference, tmp_path, capsys):
    geometry, dump = tmp_path / "oh.xyz", tmp_path / "FCIDUMP"
    geometry.write_text("2\nmultiplicity=2\nO 0 0 0\nH 0 0 0.97\n")
    run(geometry, "--basis", "sto-3g", reference, "--frozen", "1", "--write-fcidump", str(dump))
    header, _, _ = dump.read_text().partition("&END")
    irreps = re.search(r"ORBSYM=([\d,]+),", header)[1].split(",")
    assert sorted(irreps) == ["1", "1", "1", "3", "4"]  # A1, B1, B2 of C2v
    assert "NELEC=7,MS2=1" in header and ("IUHF=1" in header) == (reference == "--uhf")
    run(None, "--fcidump", str(dump))
    first, second = (line for line in capsys.readouterr().out.splitlines() if "FCI energy of root 1:" in line)
    assert number(first, "FCI energy of root 1:") == pytest.approx(
        number(second, "FCI energy of root 1:"), abs=1e-9
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--unfolded",),
        ("--precision", "mixed"),
        ("--vectors", "6", "--ordered"),
        ("--start", "20", "--start-selection", "weights"),
    ],
)
def test_ways_to_the_same_energy(water, capsys, arguments):
    run(water, "--basis", "sto-3g", "--energy-only", *arguments)
    output = capsys.readouterr().out
    assert number(output, "FCI energy of root 1:") == pytest.approx(WATER_STO3G, abs=1e-8)
    assert ("folded" in output) == ("--unfolded" not in arguments)


def test_integrals_of_chosen_orbitals_are_written_without_a_ci(water, tmp_path, capsys):
    dump, options = tmp_path / "FCIDUMP", ("--basis", "sto-3g", "--frozen", "1", "--active", "A1=3,B1=1")
    assert run(water, *options, "--no-solve", "--write-fcidump", str(dump)) == 0
    output = capsys.readouterr().out
    assert f"wrote {dump}" in output and "FCI energy" not in output
    assert "orbitals 2 (from 0) are not active and stay occupied" in output
    run(None, "--fcidump", str(dump), "--energy-only")
    read = number(capsys.readouterr().out, "FCI energy of root 1:")
    run(water, "--basis", "sto-3g", "--frozen", "0", "--active", "1,3,4,5", "--energy-only")
    assert read == pytest.approx(number(capsys.readouterr().out, "FCI energy of root 1:"), abs=1e-9)


def test_open_shells(tmp_path, capsys):
    path = tmp_path / "oxygen.xyz"
    path.write_text(OXYGEN)
    options = ("--basis", "sto-3g", "--spin", "2", "--frozen", "4", "--active", "6")
    energies = []
    for more in ((), ("--rohf", "--unfolded"), ("--uhf",)):
        run(path, *options, *more)
        output = capsys.readouterr().out
        energies.append(number(output, "FCI energy of root 1:"))
        assert ("Sigma_g-" in output) and ("UHF" in output) == (more == ("--uhf",))
    assert energies[0] == pytest.approx(energies[1], abs=1e-8)
    assert energies[0] != pytest.approx(energies[2], abs=1e-5)


def test_symmetry_can_be_chosen(water, capsys):
    for group, determinants in (("C1", 441), ("Cs", 261), ("C2v", 133)):
        run(water, "--basis", "sto-3g", "--group", group, "--energy-only")
        output = capsys.readouterr().out
        assert f"{determinants} determinants" in output and f"point group {group}" in output
        assert number(output, "FCI energy of root 1:") == pytest.approx(WATER_STO3G, abs=1e-8)


def test_an_estimate_computes_nothing(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    run(water, "--basis", "cc-pvdz", "--estimate", "--memory", "1GB", "--json", str(results))
    output = capsys.readouterr().out
    found = json.loads(results.read_text())
    assert found["determinants"] == 451_681_246 and "451681246" in output
    assert found["estimate"]["disk_bytes"] > 4e9 and "energy" not in output


def test_another_run_goes_on_from_a_checkpoint(water, tmp_path, capsys, monkeypatch):
    kept = tmp_path / "kept"
    options = ("--basis", "6-31g", "--frozen", "1", "--checkpoint", str(kept), "--energy-only")
    with (
        monkeypatch.context() as patched,
        pytest.raises(NotConverged, match="after 3 iterations the residual is"),
    ):
        patched.setattr(clock, "INTERVAL_S", 0.0)
        run(water, *options, "--iterations", "3")
    assert "commits within iterations wrote" in capsys.readouterr().out
    assert run(water, *options) == 0
    output = capsys.readouterr().out
    assert "converged orbitals found" in output and "began with states of iteration 3" in output
    assert number(output, "FCI energy of root 1:") == pytest.approx(-76.1199484283, abs=1e-8)
    assert "they were kept with roots = 1, now it is 2" in refused(water, *options, "--roots", "2")


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The command of a run of thirty iterations, and the energy that one without a signal finds."""
    path = tmp_path_factory.mktemp("chain") / "chain.xyz"
    path.write_text("11\nhydrogen\n" + "".join(f"H 0 0 {1.2 * i}\n" for i in range(11)))
    command = [sys.executable, "-m", "outcore", "fci", str(path), "--basis", "sto-3g", "--charge", "1"]
    command += ["--energy-only", "--residual", "1e-8", "--ordered", "--threads", "1"]
    return command, number(finished(command).stdout, "FCI energy of root 1:")


def finished(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("sent", "ranks"),
    [
        (signal.SIGINT, 1),
        pytest.param(signal.SIGTERM, 2, marks=[pytest.mark.launcher, pytest.mark.long]),
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, 2, marks=[pytest.mark.launcher, pytest.mark.long]),
    ],
)
def test_a_signal_leaves_states_to_go_on_from(chain, tmp_path, sent, ranks):
    command, energy = chain
    kept, scratch = tmp_path / "kept", tmp_path / "scratch"
    scratch.mkdir()
    command = [*command, "--checkpoint", str(kept), "--scratch", str(scratch)]
    command += ["--ranks", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    try:
        while not (line := process.stdout.readline()).startswith("   2    1 "):  # the second iteration
            assert line
        process.send_signal(sent)
        said, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 128 + sent, errors
    if ranks == 1:
        assert f"what was complete is in {kept}" in said
    for word in ("terminate called", "Input/output error", "Traceback"):
        assert word not in errors
    assert list(scratch.iterdir()) == []
    again = finished(command).stdout
    assert int(again.split("began with states of iteration ")[1].split()[0].rstrip(",.")) >= 2
    assert number(again, "FCI energy of root 1:") == pytest.approx(energy, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--frozen", "6"), "6 frozen, but only 5 are occupied"),
        (("--frozen", "core"), "neither a number"),
        (("--active", "4"), "4 active orbitals cannot hold 5"),
        (("--active", "0"), "0 active orbitals"),
        (("--active", "3,99"), "there is no orbital 99: they are 0 to 6"),
        (("--active", "B3u=1"), "point group C2v has A1, A2, B1, B2"),
        (("--frozen-virtual", "3"), "3 virtual ones frozen, but there are only 2"),
        (("--no-solve",), "--no-solve has no effect without --write-fcidump"),
        (("--no-solve", "--write-fcidump", "x", "--roots", "2"), "--roots has no effect with --no-solve"),
        (("--irrep", "B3u"), "C2v has A1, A2, B1, B2"),
        (("--group", "D2h"), "the molecule has C2v, not D2h"),
        (("--group", "Td"), "it may be D2h"),
        (("--spin", "1"), "10 electrons cannot have 1 unpaired"),
        (("--roots", "0"), "--roots 0"),
        (("--precision", "single"), "precision 'single' is none of double, mixed"),
        (("--residual", "0"), "--residual 0"),
        (("--vectors", "1"), "1 vectors; there may be 2"),
        (("--start", "0"), "small space of 0 determinants"),
        (("--start-selection", "size"), "selection by 'size' is none of energy, weights"),
        (("--spin-shift", "-1"), "spin shift of -1"),
        (("--largest", "-1"), "--largest -1"),
        (("--iterations", "0"), "--iterations 0"),
        (("--storage", "tape"), "storage 'tape'"),
        (("--uhf", "--rohf"), "exclude each other"),
        (("--uhf", "--molden", "x"), "--molden has no effect with --uhf"),
        (("--uhf", "--unfolded"), "--unfolded has no effect with --uhf"),
        (("--energy-only", "--molden", "x"), "--molden has no effect with --energy-only"),
        (("--memory", "20MB"), "MB"),
    ],
)
def test_bad_input_is_explained(water, arguments, message):
    assert message in refused(water, "--basis", "sto-3g", *arguments)


@pytest.mark.parametrize(
    "arguments", [("--basis", "sto-3g"), ("--frozen", "1"), ("--group", "C1"), ("--uhf",)]
)
def test_a_file_of_integrals_takes_the_place_of_a_molecule(tmp_path, arguments):
    assert f"{arguments[0]} has no effect with --fcidump" in refused(None, "--fcidump", "x", *arguments)


def test_what_is_missing_is_named(water, tmp_path):
    assert "--basis is missing" in refused(water)
    assert "GEOMETRY is missing" in refused(None, "--basis", "sto-3g")
    assert "GEOMETRY has no effect with --fcidump" in refused(water, "--fcidump", "x")
    assert "No such file" in refused(None, "--fcidump", str(tmp_path / "none"))


def test_files_are_not_overwritten_by_results(water, tmp_path):
    dump = tmp_path / "FCIDUMP"
    dump.write_text("x")
    assert "--write-fcidump would overwrite the integrals" in refused(
        None, "--fcidump", str(dump), "--write-fcidump", str(dump)
    )
    assert "No such file" in refused(water, "--basis", "sto-3g", "--molden", str(tmp_path / "no" / "x"))


def test_a_limit_of_address_space_does_not_end_a_run_that_needs_little(tmp_path):
    (tmp_path / "h2.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    command = "-m outcore fci h2.xyz --basis sto-3g --threads 1 --scratch ."
    limited = f"ulimit -v 1500000 && exec {sys.executable} {command}"
    answer = subprocess.run(
        ["bash", "-c", limited], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert answer.returncode == 0, answer.stderr
