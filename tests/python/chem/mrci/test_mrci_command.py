"""The command `outcore mrci`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mrci_molecules import WATER as MOLECULE
from mrci_molecules import mean_field

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.mrci import MRCI
from outcore.cli import main as cli

pytest.importorskip("pyscf")

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
ENERGY = -76.1160029238
SPACE = ("--basis", "6-31g", "--inactive", "1", "--active", "6")


@pytest.fixture
def no_scf(monkeypatch):
    def begun(*_):
        raise AssertionError("an SCF has begun")

    monkeypatch.setattr("outcore.chem.run.MoleculeRun.converge", begun)


@pytest.fixture
def water(tmp_path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


def test_neither_a_molecule_nor_a_file():
    with pytest.raises(OutcoreError, match="GEOMETRY is missing"):
        cli.run(["mrci", "--cas", "2,2"])
    with pytest.raises(OutcoreError, match="--frozen auto: with --fcidump a number is needed"):
        cli.run(["mrci", "--fcidump", "x", "--frozen", "auto", "--cas", "2,2"])


def run(path: Path, *arguments: str) -> int:
    return cli.run(["mrci", str(path), "--threads", "1", *arguments])


def refused(path: Path, *arguments: str) -> str:
    with pytest.raises((OutcoreError, cli.UsageError)) as caught:
        run(path, *arguments)
    return str(caught.value)


def test_it_prints_energies_and_corrections(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    assert run(water, *SPACE, "--conv-tol", "1e-11", "--plus-q", "--json", str(results)) == 0
    output = capsys.readouterr().out
    assert "34 references, 16093 determinants" in output
    assert "MRCI energy of root 1: -76.11600" in output and "davidson" in output and "meissner" in output
    found = json.loads(results.read_text())
    assert found["energies_hartree"][0] == pytest.approx(ENERGY, abs=5e-9)
    assert found["determinants"] == 16093 and found["converged"] and found["irrep"] == "A1"
    assert found["roots"][0]["corrections_hartree"]["davidson"] < 0


def test_a_cas_and_packed_vectors(water, capsys):
    assert run(water, "--basis", "6-31g", "--cas", "8,6", "--error-bound", "1e-7", "--references", "all") == 0
    output = capsys.readouterr().out
    assert "MRCI energy of root 1: -76.116004" in output
    assert "bits an element" in output and "packing raises the energy by" in output
    assert "file: no traffic, all vectors in memory" in output


@pytest.mark.parametrize("space", [("--inactive", "0", "--active", "6"), ("--cas", "8,6")])
def test_integrals_of_a_file(tmp_path, capsys, space):
    from pyscf.tools import fcidump

    path, results = tmp_path / "FCIDUMP", tmp_path / "results.json"
    fcidump.from_scf(mean_field(MOLECULE), str(path), tol=1e-15)
    given = ("--fcidump", str(path), "--frozen", "1", *space, "--threads", "1", "--json", str(results))
    assert cli.run(["mrci", *given]) == 0
    output = capsys.readouterr().out
    assert f"MRCI  {path}: 8 electrons, 12 orbitals" in output and "MRCI energy of root 1:" in output
    with MRCI.from_mean_field(mean_field(MOLECULE), frozen=1, inactive=0, active=6, comm=None) as ci:
        assert json.loads(results.read_text())["energies_hartree"][0] == pytest.approx(ci.kernel(), abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("ri", "--auxbasis", "cc-pvdz-ri", "--jkbasis", "cc-pvdz-jkfit"), "cc-pvdz-ri"),
        (("cholesky", "--tolerance", "1e-10"), "Cholesky vectors, tolerance 1e-10 Eh"),
    ],
)
def test_three_index_integrals(water, capsys, arguments, title):
    assert run(water, *SPACE, "--integrals", *arguments) == 0
    output = capsys.readouterr().out
    assert "integrals: " in output and title in output and "MRCI energy of root 1: -76.11" in output


def test_an_estimate_has_no_energies(water, capsys):
    assert run(water, *SPACE, "--estimate") == 0
    output = capsys.readouterr().out
    assert "16093 determinants" in output and "a vector has" in output and "energy" not in output
    assert "a search in memory takes" in output and "integrals take 0.1 MB" in output


def test_natural_occupations(water, tmp_path, capsys):
    results = tmp_path / "results.json"
    assert run(water, *SPACE, "--natural", "--json", str(results)) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "1.9742 A1, 1.9708 B2, 0.0256 B2, 0.0242 A1, 0.0159 B1, 0.0108 A1" in output
    root = json.loads(results.read_text())["roots"][0]
    assert sum(root["natural_occupations"]) == pytest.approx(10) and len(root["natural_irreps"]) == 13
    with MRCI.from_mean_field(mean_field(MOLECULE), inactive=1, active=6, comm=None) as ci:
        ci.kernel()
        wanted = ci.natural_orbitals().occupations
    assert root["natural_occupations"] == pytest.approx(wanted.tolist(), abs=1e-5)


def test_natural_occupations_of_one_spin_are_refused_before_the_search(tmp_path, monkeypatch):
    monkeypatch.setattr(MRCI, "kernel", None)
    path = tmp_path / "n.xyz"
    path.write_text("1\nnitrogen\nN 0 0 0\n")
    given = ("--spin", "3", "--basis", "6-31g", "--frozen", "2", "--cas", "3,3", "--natural")
    assert "all electrons have one spin" in refused(path, *given)


def test_orbitals_by_list_and_of_irreps(water, capsys):
    """The same orbitals; those below them are then inactive."""
    for given in ("1-6", "A1=3,B2=2,B1=1"):
        inactive = ("--inactive", "A1=1") if "=" in given else ()
        assert run(water, "--basis", "6-31g", "--active", given, *inactive, "--frozen-virtual", "1") == 0
        output = capsys.readouterr().out
        assert "1 inactive, 6 active, 5 external; 0 frozen, 1 virtual ones too" in output
        assert "34 references" in output and "MRCI energy of root 1: -76." in output


def test_functionals(water, capsys):
    assert run(water, *SPACE, "--acpf") == 0
    assert "MR-ACPF energy of root 1: -76.1" in capsys.readouterr().out


def test_references_of_a_file(water, tmp_path, capsys):
    path = tmp_path / "references"
    path.write_text("222200\n")
    assert run(water, *SPACE, "--references", str(path)) == 0
    assert "1 references, 679 determinants" in capsys.readouterr().out


def test_references_by_weight(water, capsys):
    assert run(water, *SPACE, "--references", "0.001") == 0
    output = capsys.readouterr().out
    assert "34 references" not in output and "MRCI energy of root 1: -76.115" in output
    assert run(water, *SPACE, "--references", "0.001", "--estimate") == 0
    output = capsys.readouterr().out
    assert "at most 34 references, 16093 determinants" in output and "chosen by their weight" in output


def test_it_goes_on(water, tmp_path, capsys):
    kept = ("--checkpoint", str(tmp_path / "kept"))
    with pytest.raises(NotConverged, match="after 4 iterations"):
        run(water, *SPACE, *kept, "--iterations", "4")
    capsys.readouterr()
    assert run(water, *SPACE, *kept, "--iterations", "12") == 0
    output = capsys.readouterr().out
    assert "converged orbitals found" in output and "continued from states" in output
    assert "MRCI energy of root 1: -76.11600" in output


def test_too_few_iterations(water):
    with pytest.raises(NotConverged, match="after 2 iterations the residual is"):
        run(water, *SPACE, "--iterations", "2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--basis", "6-31g"), "--active is missing"),
        ((*SPACE, "--cas", "8,6"), "--cas"),
        (("--basis", "6-31g", "--cas", "8"), "two numbers are needed"),
        (("--basis", "6-31g", "--cas", "7,6"), "7 of 10 electrons leave no pairs"),
        ((*SPACE, "--acpf", "--aqcc"), "--acpf"),
        ((*SPACE, "--acpf", "--plus-q"), "--plus-q"),
        ((*SPACE, "--min-weight", "2"), "a least weight of 2"),
        ((*SPACE, "--uhf"), "--uhf"),
        ((*SPACE, "--error-bound", "2"), "an error bound of 2"),
        ((*SPACE, "--references", "missing"), "missing"),
        ((*SPACE, "--roots", "0"), "--roots"),
        ((*SPACE, "--irrep", "Ag"), "irrep Ag"),
        ((*SPACE, "--integrals", "thc"), "integrals 'thc' are none of"),
        ((*SPACE, "--auxbasis", "weigend"), "--auxbasis"),
        ((*SPACE, "--tolerance", "1e-5"), "--tolerance"),
        ((*SPACE, "--integrals", "ri", "--auxbasis", "nothing"), "nothing"),
        ((*SPACE, "--jkbasis", "weigend"), "--jkbasis"),
        ((*SPACE, "--natural", "--estimate"), "--natural has no effect with --estimate"),
        ((*SPACE, "--references", "1.5"), "references of a weight of 1.5"),
        ((*SPACE, "--references", "symetry"), "symetry"),
        (("--basis", "6-31g", "--active", "0,40"), "there is no orbital 40: they are 0 to 12"),
        (("--basis", "6-31g", "--active", "A1=3,E=1"), "irrep E"),
        (("--basis", "6-31g", "--active", "A1=3,B1=3"), "3 orbitals of B1, but the molecule has 2"),
        (("--basis", "6-31g", "--active", "A1:3"), "'A1:3' is neither a number of orbitals nor a list"),
        (("--basis", "6-31g", "--active", "20"), "20 active orbitals, but there are 13"),
        (("--basis", "6-31g", "--inactive", "6", "--active", "6"), "6 inactive orbitals for 5 alpha"),
        (("--basis", "6-31g", "--active", "4"), "4 active orbitals cannot hold 5 alpha"),
        (("--basis", "6-31g", "--frozen", "6", "--active", "4"), "6 frozen, but only 5 are occupied"),
        ((*SPACE, "--memory", "20KB"), "is the least that is enough, but --memory gives 20.0 kB"),
        (("--cas", "8,6", "--fcidump", "x"), "GEOMETRY has no effect with --fcidump"),
    ],
)
def test_what_is_refused_before_the_scf(water, no_scf, arguments, message):
    assert message in refused(water, *arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2222000\n", "has 7 orbitals; 6 are active"),
        ("222000", "6 electrons; 8 are active"),
        ("# none\n", "no reference"),
    ],
)
def test_references_that_are_refused_before_the_scf(water, no_scf, tmp_path, text, message):
    path = tmp_path / "references"
    path.write_text(text)
    assert message in refused(water, *SPACE, "--references", str(path))


def test_a_disk_that_is_too_small_is_refused_before_the_scf(water, no_scf, monkeypatch):
    monkeypatch.setattr("outcore.chem.mrci.before.min_table_bytes", lambda *_: 1 << 60)
    assert "arrays take 1152922 TB" in refused(water, *SPACE)


def test_moments_are_those_of_full_ci(water, tmp_path):
    """All orbitals except a frozen one are active."""
    found = []
    for command, more in (("fci", ()), ("mrci", ("--cas", "8,6", "--dipole"))):
        results = tmp_path / f"{command}.json"
        given = ("--basis", "sto-3g", "--frozen", "1", "--residual", "1e-7", "--threads", "1", *more)
        assert cli.run([command, str(water), *given, "--json", str(results)]) == 0
        found.append(json.loads(results.read_text()))
    full, mrci = found
    assert abs(mrci["dipole_debye"][2]) > 0.5
    assert mrci["dipole_debye"] == pytest.approx(full["roots"][0]["dipole_debye"], abs=1e-5)
    assert sum(mrci["mulliken_charges"]) == pytest.approx(0, abs=1e-9)


def test_moments_need_states_and_a_molecule(water, tmp_path):
    assert "--dipole has no effect with --estimate" in refused(water, *SPACE, "--dipole", "--estimate")
    with pytest.raises(OutcoreError, match="--dipole has no effect with --fcidump"):
        cli.run(["mrci", "--fcidump", str(tmp_path / "x"), "--cas", "2,2", "--dipole"])
