"""Basis sets, effective core potentials and auxiliary sets: by name, from files, of ghosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")

from pyscf import gto
from pyscf import scf as reference
from pyscf.data import elements
from pyscf.df import addons

from outcore.base.errors import OutcoreError
from outcore.chem import basis_file, basis_sets, molecule, ri
from outcore.chem.hf import scf
from outcore.chem.mp2 import MP2
from outcore.chem.ri import auxiliary
from outcore.cli import main as cli

HI = "2\nHI\nH 0 0 0\nI 0 0 1.609\n"
HI_ECP = -297.2315316634  # RHF/def2-svp, ecp='def2-svp', PySCF 2.14
HI_FITTED = -297.2315179847  # density_fit(auxbasis="def2-svp-jkfit")
WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.757 -0.4692\nH 0 -0.757 -0.4692\n"
TWO_ELEMENTS = """
H    S
      1.873113696E+01   3.349460434D-02
      2.825394365E+00   2.347269535D-01
      6.401216923E-01   8.137573261D-01
H    S
      1.612777588E-01   1.0000000
O    S
      5.484671660E+03   1.831074430E-03
      8.252349460E+02   1.395017220E-02
      1.880469580E+02   6.844507810E-02
      5.296450000E+01   2.327143360E-01
      1.689757040E+01   4.701928980E-01
      5.799635340E+00   3.585208530E-01
O    SP
      1.553961625E+01  -1.107775495E-01   7.087426823E-02
      3.599933586E+00  -1.480262627E-01   3.397528391E-01
      1.013761750E+00   1.130767015E+00   7.271585773E-01
O    SP
      2.700058226E-01   1.0000000         1.0000000
"""
TWO_ELEMENTS_WATER = -75.9839710656  # RHF with these functions, each element read alone by PySCF 2.14
HELIUM = "He S\n 38.36 0.0239\n 5.77 0.1549\n 1.24 0.4699\nHe S\n 0.2976 1.0\n"


@pytest.fixture
def make(tmp_path):
    """The molecule of an XYZ text, and the messages about it; `files` lie beside it."""

    def call(content: str, basis: str, **options):
        path, said = tmp_path / "molecule.xyz", []
        path.write_text(content)
        return molecule.build(path, basis, say=said.append, **options), "\n".join(said)

    return call


@pytest.fixture
def stored(tmp_path):
    def call(text: str, name: str = "set.nw") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return call


# ---- potentials ----


def test_the_potential_of_a_basis_is_taken_and_told(tmp_path, capsys):
    path = tmp_path / "hi.xyz"
    path.write_text(HI)
    assert cli.run(["scf", str(path), "--basis", "def2-svp", "--scratch", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    line = next(line for line in output.splitlines() if line.startswith("RHF energy"))
    assert float(line.split()[2]) == pytest.approx(HI_ECP, abs=5e-9)
    assert "26 electrons" in output and "potentials def2-svp: I (28 electrons)" in output


def test_the_integrals_beside_a_potential_are_stored_once(make, tmp_path):
    mol, _ = make(HI, "def2-svp")
    estimates = []
    with scf.RHF(mol, scratch=str(tmp_path)) as mf:
        mf.on_estimate = estimates.append
        assert mf.kernel() == pytest.approx(HI_ECP, abs=5e-9)
    assert len(estimates) == 1


@pytest.mark.launcher
@pytest.mark.parametrize("method", ["scf", "ri-scf"])
def test_several_processes_have_the_potential(tmp_path, method):
    pytest.importorskip("mpi4py")
    path, results = tmp_path / "hi.xyz", tmp_path / "results.json"
    path.write_text(HI)
    command = [sys.executable, "-m", "outcore", method, str(path), "--basis", "def2-svp", "--ranks", "2"]
    command += ["--scratch", str(tmp_path), "--json", str(results)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200)
    assert answer.returncode == 0, answer.stderr
    expected = HI_ECP if method == "scf" else HI_FITTED
    assert json.loads(results.read_text())["energy_hartree"] == pytest.approx(expected, abs=5e-9)


@pytest.mark.parametrize(
    ("basis", "element", "replaced"),
    [
        ("def2-svp", "I", 28),
        ("lanl2dz", "Na", 10),
        ("lanl2dz", "O", None),
        ("cc-pvdz-pp", "Br", 10),
        ("aug-cc-pvtz-pp", "Au", 60),
        ("cc-pwcvtz-pp", "Au", 60),
        ("stuttgart", "C", 2),
        ("crenbl", "Li", 2),
        ("ccecp-cc-pvdz", "C", 2),
        ("ccecp-cc-pvdz", "H", 0),
        ("bfd-vdz", "Si", 10),
        ("def2-mtzvp", "Pt", 60),
        ("sto-3g", "I", None),
        ("ano-rcc", "Yb", None),
        ("cc-pvtz-dk", "Rn", None),
        ("6-31g", "Zn", None),
    ],
)
def test_elements_have_the_potential_that_their_functions_were_made_for(basis, element, replaced):
    potentials = basis_sets.orbital(basis, None, [element]).potentials
    assert {name: each[0] for name, each in potentials.items()} == (
        {} if replaced is None else {element: replaced}
    )


@pytest.mark.parametrize(
    ("basis", "element"),
    [("cc-pvdz-pp-nr", "Au"), ("minao", "I"), ("ma-def2-tzvp", "Ce"), ("def2-mtzvp", "Yb")],
)
def test_valence_functions_without_a_potential_are_refused(basis, element):
    with pytest.raises(OutcoreError, match=f"valence functions of {element} only"):
        basis_sets.orbital(basis, None, [element])


def test_a_potential_can_be_named(make):
    mol, said = make(HI, "lanl2dz", ecp="LANL2DZ")
    assert mol.atom_nelec_core(1) == 46 and "LANL2DZ: I (46 electrons)" in said


@pytest.mark.parametrize(
    ("basis", "ecp", "text"),
    [
        ("def2-svp", "lanl2dz", "replaces 46 electrons of I"),
        ("sto-3g", "cc-pvdz", "no set of effective core potentials"),
        ("sto-3g", "nonsense", "no set of effective core potentials"),
        ("sto-3g", "bfd-pp-2", "no set of effective core potentials"),
        ("gth-szv", None, "GTH pseudopotentials"),
    ],
)
def test_potentials_that_do_not_fit_are_refused(make, basis, ecp, text):
    with pytest.raises(OutcoreError) as caught:
        make(HI, basis, ecp=ecp)
    assert text in str(caught.value)


def test_a_potential_for_none_of_the_elements_is_refused(make):
    with pytest.raises(OutcoreError, match="no effective core potential for O, H; it has some for Na-La"):
        make(WATER, "6-31g", ecp="lanl2dz")


def test_ghosts_have_functions_and_no_potential(make):
    mol, _ = make(HI.replace("2\n", "3\n", 1) + "ghost-I 0 0 6\n", "def2-svp")
    assert [mol.atom_nelec_core(atom) for atom in range(3)] == [0, 28, 0]
    assert mol.nelectron == 26 and mol.nao == 57


def test_frozen_cores_follow_the_potential(make):
    mol, _ = make(HI, "def2-svp")
    with ri.RHF(mol) as mf:
        mf.kernel()
        assert MP2(mf, "auto", "auto").frozen == elements.chemcore(mol) == 4
    mol, _ = make(HI, "lanl2dz")
    with ri.RHF(mol, "auto") as mf:
        mf.kernel()
        assert MP2(mf, "auto", "auto").frozen == 0


def test_more_electrons_than_functions_hold_are_refused(make):
    with pytest.raises(OutcoreError, match="6 electrons of one spin are too many for 5 functions"):
        make("1\n\nF 0 0 0\n", "sto-3g", charge=-2, spin=1)


# ---- names ----


@pytest.mark.parametrize(
    "basis", ["6-31g(d", "6-31g(d,p,q)", "6-31+++g", "", "unc-sto-3g", "sto-3g\nO S\n1 1", "nowhere"]
)
def test_names_that_are_read_in_part_only_are_unknown(basis):
    with pytest.raises(OutcoreError, match="unknown basis"):
        basis_sets.orbital(basis, None, ["O"])


@pytest.mark.parametrize("basis", ["6-31G(d,p)", "6-31++g**", "STO 3G", "cc-pVTZ@3s2p1d", "def2_svp"])
def test_names_are_those_of_pyscf(basis):
    assert basis_sets.orbital(basis, None, ["O", "GHOST-H"]).basis == {"O": basis, "GHOST-H": basis}


def test_a_set_that_cannot_be_cut_as_asked_is_refused():
    with pytest.raises(OutcoreError, match="asks for other functions of O"):
        basis_sets.orbital("cc-pvtz@9s", None, ["O"])


def test_a_name_that_is_a_file_too_is_refused(stored, tmp_path, monkeypatch):
    stored(TWO_ELEMENTS, "sto-3g")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutcoreError, match=r"write \./sto-3g for the file"):
        basis_sets.orbital("sto-3g", None, ["O"])
    assert basis_sets.orbital("./sto-3g", None, ["O"]).basis["O"][0][1][0] == pytest.approx(5484.67166)


# ---- files ----


def test_a_file_of_several_elements_gives_each_its_own(make, stored):
    mol, _ = make(WATER, stored(TWO_ELEMENTS))
    assert mol.nao == 13
    assert reference.RHF(mol).kernel() == pytest.approx(TWO_ELEMENTS_WATER, abs=1e-9)


def test_ghosts_have_the_functions_of_the_file(make, stored):
    mol, _ = make(WATER.replace("3\n", "4\n", 1) + "@O 0 0 5\n", stored(TWO_ELEMENTS))
    assert mol.nao == 22 and mol.nelectron == 10


def test_an_element_that_a_file_lacks_is_refused_with_both_names(make, stored):
    with pytest.raises(OutcoreError, match=r"find a basis for C .*set.nw.* no element C; it has H, O"):
        make("2\n\nC 0 0 0\nO 0 0 1.128\n", stored(TWO_ELEMENTS))


def written(basis: str, *names: str) -> str:
    """A basis set of PySCF in NWChem's format, with its potentials."""
    from pyscf.gto.basis import parse_nwchem as nwchem

    lines = ['BASIS "ao basis" SPHERICAL PRINT']
    lines += [nwchem.convert_basis_to_nwchem(name, gto.basis.load(basis, name)) for name in names]
    lines += ["END", "ECP"]
    for name in names:
        if potential := gto.basis.load_ecp(basis, name):
            lines.append(nwchem.convert_ecp_to_nwchem(name, potential))
    return "\n".join([*lines, "END", ""])


def test_potentials_of_a_file_go_with_its_functions(make, stored):
    mol, said = make(HI, stored(written("def2-svp", "H", "I")))
    assert mol.nelectron == 26 and "set.nw: I (28 electrons)" in said
    assert reference.RHF(mol).kernel() == pytest.approx(HI_ECP, abs=1e-6)  # nine digits of the numbers


def test_potentials_can_lie_in_a_file_of_their_own(make, stored):
    whole = written("def2-svp", "H", "I")
    functions, potentials = whole[: whole.index("ECP\n")], whole[whole.index("ECP\n") :]
    basis = stored(functions)
    with pytest.raises(OutcoreError, match="valence functions of I only"):
        make(HI, basis)
    mol, _ = make(HI, basis, ecp=stored(potentials, "i.ecp"))
    assert reference.RHF(mol).kernel() == pytest.approx(HI_ECP, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n", "no basis functions"),
        (HELIUM + HELIUM.replace("He", "Zz"), "line 7 names no element: 'Zz S'"),
        (HELIUM + "#BASIS SET: again\n" + HELIUM, "line 8 begins a second basis set of He"),
        (HELIUM + "END\n" + HELIUM, "second basis set of He"),
        (HELIUM + "H S\n1 1\n" + HELIUM, "second basis set of He"),
        (HELIUM + "He S\n 0.2976 1.0\n", "line 7 begins a shell of He that is there already"),
        (HELIUM.replace("0.1549", "0.1549 1"), "line 3 has 3 numbers, 2 are expected"),
        (HELIUM.replace("0.1549", ""), "line 3 is not understood"),
        (HELIUM.replace("0.1549", "O.1549"), "line 3 is not understood"),
        (HELIUM.replace("0.1549", "__import__('os')"), "line 3 is not understood"),
        (HELIUM.replace("0.1549", "nan"), "line 3 is not understood"),
        (HELIUM.replace("5.77", "-5.77"), "exponent that is not positive"),
        (HELIUM.replace("0.2976 1.0", "0.2976 0.0"), "coefficients are all zero"),
        (
            HELIUM.replace("He S\n 0.2976 1.0\n", "He S\n"),
            "line 5 begins a shell of He that has no functions",
        ),
        (HELIUM.replace("He S", "He Q", 1), "line 1 is not understood"),
        (HELIUM.replace("He S", "He SP", 1), "line 2 has 2 numbers, 3 are expected"),
        ("* library 6-31g\n", "line 1 names no element"),
        ("He S 3 1.00\n38.0 0.02\n", "line 1 is not understood"),
        ("****\nHe 0\nS 3 1.00\n", "line 1 names no element: '****'; files are read in NWChem's format"),
        ("ECP\nI nelec 28\n", "the potential of I has no terms"),
        ("ECP\nI ul\n2 1.0 0.0\nEND\n", "the potential of I has no nelec"),
        ("ECP\nI nelec 27\n", "line 2 is not understood"),
        ("ECP\nI nelec 28\nI ul\n9 1.0 0.0\n", "line 4 is not understood"),
        ("ECP\nI nelec 28\nI ul\n2 1.0 0.0\nI ul\n2 1.0 0.0\n", "second potential of I"),
        ("ECP\nI nelec 28\nI ul\n2 1.0 0.0 0.5\n", "line 4 has 4 numbers"),
    ],
)
def test_files_that_are_not_understood_are_refused_with_their_line(stored, text, message):
    path = stored(text)
    with pytest.raises(OutcoreError) as caught:
        basis_file.read(Path(path))
    assert message in str(caught.value) and path in str(caught.value)


def test_cartesian_functions_are_those_of_the_file(make, stored):
    d_shell = 'BASIS "ao basis" CARTESIAN\n' + TWO_ELEMENTS + "O D\n 0.8 1.0\nEND\n"
    with pytest.raises(OutcoreError, match="CARTESIAN, it says: give --cart"):
        make(WATER, stored(d_shell))
    assert make(WATER, stored(d_shell), cartesian=True)[0].nao == 19
    with pytest.raises(OutcoreError, match="leave --cart out"):
        make(WATER, stored(d_shell.replace("CARTESIAN", "SPHERICAL")), cartesian=True)


def test_what_is_no_file_of_text_is_named(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "place").mkdir()
    for name, why in (("pipe", "it is a FIFO"), ("place", "Is a directory")):
        with pytest.raises(OutcoreError, match=f"{name}.*{why}"):
            make(WATER, name)


def test_a_file_that_is_missing_is_named(make, tmp_path):
    with pytest.raises(OutcoreError, match=r"No such file.*") as caught:
        make(WATER, str(tmp_path / "none.nw"))
    assert "none.nw" in str(caught.value)


# ---- auxiliary sets ----

DIMER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692; ghost-O 0 0 3.1; "
DIMER += "X-H1 0 0.75 3.7; GHOST-H2 0 -0.75 3.7"
DIMER_ENERGY = -76.0274232417  # DF-RHF/cc-pVDZ with cc-pvdz-jkfit, PySCF 2.14


@pytest.mark.parametrize("auxbasis", [None, "cc-pvdz-jkfit", "auto"])
def test_ghosts_have_auxiliary_functions_of_their_element(auxbasis):
    mol = gto.M(atom=DIMER, basis="ccpvdz", verbose=0)
    with ri.RHF(mol, auxbasis) as mf:
        assert mf.kernel() == pytest.approx(DIMER_ENERGY, abs=1e-8)


def test_auxiliary_functions_can_lie_in_a_file(stored):
    mol = gto.M(atom=DIMER, basis="ccpvdz", verbose=0)
    auxmol = auxiliary.build(mol, stored(written("cc-pvdz-jkfit", "O", "H")))
    assert auxmol.nao == auxiliary.build(mol, "cc-pvdz-jkfit").nao
    with pytest.raises(OutcoreError, match="no element H"):
        auxiliary.build(mol, stored(written("cc-pvdz-jkfit", "O")))


def test_what_is_not_on_record_is_made_as_pyscf_makes_it_and_told():
    mol = gto.M(atom="H 0 0 0; I 0 0 1.609", basis="def2-svp", ecp={"I": "def2-svp"}, verbose=0)
    with pytest.raises(OutcoreError, match=r"none is on record for I with the basis 'def2-svp'; .*'auto'"):
        auxiliary.build(mol, purpose="mp2")
    auxmol = auxiliary.build(mol, "auto", "mp2")
    expected = addons.make_auxmol(mol, addons.make_auxbasis(mol, mp2fit=True))
    assert auxmol._basis == expected._basis
    assert auxiliary.title(auxmol) == "def2-svp-ri and even-tempered functions for I"


def test_even_tempered_functions_of_a_ghost_are_those_of_its_element():
    mol = gto.M(atom="He 0 0 0; ghost-He 0 0 3", basis=gto.basis.parse(HELIUM), verbose=0)
    for way in ("auto", "etb", "autoaux"):
        made = auxiliary.build(mol, way)
        assert made._basis["He"] == made._basis["GHOST-He"]
        assert "even-tempered" in auxiliary.title(made)


@pytest.mark.parametrize(
    "basis",
    [
        "cc-pvdz",
        {"O": "cc-pvdz", "H": "cc-pvdz"},
        {"default": "cc-pvdz"},
        {"O1": "cc-pvdz", "default": "cc-pvdz", "GHOST-H": "cc-pvdz"},
    ],
)
def test_labelled_atoms_have_the_set_of_their_basis(basis):
    mol = gto.M(atom="O1 0 0 0; H1 0 0.8 0.5; H2 0 -0.8 0.5; ghost-H3 0 0 4", basis=basis, verbose=0)
    expected = auxiliary.build(mol, "cc-pvdz-jkfit").nao
    for way in (None, "auto"):
        auxmol = auxiliary.build(mol, way)
        assert (auxmol.nao, auxiliary.title(auxmol)) == (expected, "cc-pvdz-jkfit")
