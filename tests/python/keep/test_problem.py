"""A checkpoint records every setting on which its values depend: each is changed in turn, and the refusal
names it. Settings that change no value do not lead to a refusal."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore
from outcore import DiskArray, World, checkpoint
from outcore.base.errors import OutcoreError
from outcore.chem import problem, restart
from outcore.chem.mp2 import MP2
from outcore.keep.problem import Problem

pytest.importorskip("pyscf")
from pyscf import gto
from pyscf import scf as reference
from pyscf.gto import mole
from pyscf.lib import param

from outcore.chem import ri
from outcore.chem.hf import kept, scf
from outcore.chem.reference import mark_canonical
from outcore.chem.ri import metric

HF = "H 0 0 0; F 0 0 0.917"
GIVEN: dict[str, Any] = {"atom": HF, "basis": "6-31g", "verbose": 0}
CORE = {"F": gto.basis.parse_ecp("F nelec 2\nF ul\n2 10.0 3.0\nF S\n2 8.0 5.0\n")}

Mol = gto.Mole


def molecule(**given: Any) -> Mol:
    return gto.M(**(GIVEN | given))


def in_env(slot: int, value: float) -> Callable[[], Mol]:
    def change() -> Mol:
        mol = molecule()
        mol._env[slot] = value
        return mol

    return change


def scaled(table: str, row: int, column: int, factor: float) -> Callable[[], Mol]:
    """A number that a table of libcint points to, times a factor."""

    def change() -> Mol:
        mol = molecule()
        mol._env[getattr(mol, table)[row, column]] *= factor
        return mol

    return change


def moved() -> Mol:
    mol = molecule()
    z = mol._atm[1, mole.PTR_COORD] + 2
    mol._env[z] = np.nextafter(mol._env[z], 9)
    return mol


def origin() -> Mol:
    mol = molecule()
    mol.set_common_origin((0.0, 0.0, 1.0))
    return mol


# Of all integrals: what is said, and the molecule.
OF_FUNCTIONS: dict[str, tuple[str, Callable[[], Mol]]] = {
    "the last bit of a coordinate": ("another geometry", moved),
    "unit": ("geometry", lambda: molecule(unit="bohr")),
    "order of atoms": ("geometry", lambda: molecule(atom="F 0 0 0.917; H 0 0 0")),
    "another atom": ("geometry", lambda: molecule(atom=HF + "; ghost-He 0 0 3")),
    "basis": ("another basis", lambda: molecule(basis="sto-3g")),
    "an exponent": ("another basis", scaled("_bas", 0, mole.PTR_EXP, 1 + 1e-15)),
    "a coefficient": ("another contractions", scaled("_bas", 0, mole.PTR_COEFF, 1 + 1e-12)),
    "cartesian": ("cartesian = False, now it is True", lambda: molecule(cart=True)),
    "long range": (r"omega = 0\.0, now it is 0\.3", in_env(mole.PTR_RANGE_OMEGA, 0.3)),
    "short range": (r"omega = 0\.0, now it is -0\.3", in_env(mole.PTR_RANGE_OMEGA, -0.3)),
    "F12": ("F12 exponent", in_env(mole.PTR_F12_ZETA, 1.2)),
    "GTG": ("GTG exponent", in_env(mole.PTR_GTG_ZETA, 1.2)),
    "cutoff of primitives": ("cutoff of primitives", in_env(mole.PTR_EXPCUTOFF, 20.0)),
    "gauge origin": ("gauge origin", origin),
}
# Of what depends on nuclei or electrons too.
OF_MOLECULES: dict[str, tuple[str, Callable[[], Mol]]] = {
    "charge": ("charge = 0, now it is -2", lambda: molecule(charge=-2)),
    "spin": ("spin = 0, now it is 2", lambda: molecule(spin=2)),
    "ghost": ("nuclear charges", lambda: molecule(atom="ghost-H 0 0 0; F 0 0 0.917", charge=-1)),
    "nuclear model": ("nuclear model", lambda: molecule(nucmod="gaussian")),
    "ECP": ("ECP", lambda: molecule(ecp=CORE)),
}


@contextmanager
def refused(says: str):
    with pytest.raises(OutcoreError, match=says) as caught:
        yield
    assert caught.value.errno == errno.EINVAL
    assert "another directory" in str(caught.value)


# ---- kept integrals ----


@pytest.fixture(scope="module")
def integrals(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("integrals")
    with scf.RHF(molecule(), keep=str(directory)) as mf:
        assert not mf.two_electron.reused
    return directory


@pytest.mark.parametrize("name", OF_FUNCTIONS | OF_MOLECULES)
def test_kept_integrals_of_another_molecule_are_refused_by_name(integrals, name):
    says, change = (OF_FUNCTIONS | OF_MOLECULES)[name]
    with refused(says):
        _ = scf.UHF(change(), keep=str(integrals)).two_electron


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"error": 1e-8}, "error = 1e-09, now it is 1e-08"),
        ({"screening": 1e-10}, "screening = none, now it is 1e-10"),
        ({"storage": "mixed"}, "storage = disk, now it is mixed"),
        ({"record_bytes": 1 << 17}, "record = 4194304, now it is 131072"),
    ],
)
def test_integrals_that_were_kept_otherwise_are_refused_by_name(integrals, settings, says):
    with refused(says):
        _ = scf.RHF(molecule(), keep=str(integrals), **settings).two_electron


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"verbose": 3, "output": "/dev/null"}, {}),
        ({"max_memory": 100}, {"memory": 1 << 30, "threads": 1}),
        ({"atom": "H1 0 0 0; F2 0 0 0.917"}, {"prefetch": 7}),
        ({"atom": "H@2 0 0 0; F 0 0 0.917"}, {"page_cache": "buffered"}),
        ({}, {"records": "any"}),
    ],
)
def test_what_changes_no_integral_is_no_reason_to_refuse(integrals, given, settings):
    with scf.RHF(molecule(**given), keep=str(integrals), **settings) as mf:
        mf.conv_tol = 1e-11
        found = mf.kernel()
        assert mf.two_electron.reused
    with scf.RHF(molecule()) as mf:
        mf.conv_tol = 1e-11
        assert found == pytest.approx(mf.kernel(), abs=1e-10)


def test_integrals_that_keep_to_a_screening_do_not_depend_on_electrons(tmp_path):
    with scf.RHF(molecule(), keep=str(tmp_path), screening=1e-12) as mf:
        _ = mf.two_electron
    for change in ({"charge": 1, "spin": 1}, {"nucmod": "gaussian"}, {"ecp": CORE}):
        mol = molecule(**change)
        with scf.UHF(mol, keep=str(tmp_path), screening=1e-12) as mf:
            density = mf.get_init_guess(key="minao")
            assert mf.two_electron.reused
            found, expected = mf.energy_tot(density), reference.UHF(mol).energy_tot(density)
            assert found == pytest.approx(expected, abs=1e-10)


# ---- fitted integrals and pair energies ----


@pytest.fixture(scope="module")
def orbitals() -> Any:
    mf = reference.RHF(molecule())
    mf.conv_tol = 1e-12
    mf.run()
    mark_canonical(mf)
    return mf


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, orbitals) -> tuple[Path, float]:
    """Checkpoints of MP2 and of a fitting, and the correlation energy."""
    directory = tmp_path_factory.mktemp("fitted")
    energy = MP2(orbitals, auxbasis="def2-svp-ri", checkpoint=directory).kernel()
    fitting = ri.DensityFitting(molecule(), "def2-svp-jkfit", checkpoint=directory)
    fitting.build()
    fitting.close()
    return directory, energy


def fitting(directory: Path, mol: Mol, auxbasis: str = "def2-svp-jkfit", **settings: Any) -> bool:
    made = ri.DensityFitting(mol, auxbasis, checkpoint=directory, **settings)
    try:
        return made.prepare().resumed
    finally:
        made.close()


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_fitted_integrals_of_another_molecule_are_refused_by_name(fitted, name):
    says, change = OF_FUNCTIONS[name]
    mol = change()
    auxbasis = {"He": "def2-svp-jkfit", "H": "def2-svp-jkfit", "F": "def2-svp-jkfit"}
    with refused(says):
        fitting(fitted[0], mol, auxbasis if name == "another atom" else "def2-svp-jkfit")


def test_fitted_integrals_of_another_fitting_are_refused_by_name(fitted, monkeypatch):
    with refused("another auxiliary basis"):
        fitting(fitted[0], molecule(), "cc-pvdz-jkfit")
    with refused("screening = 1e-11, now it is 1e-12"):
        fitting(fitted[0], molecule(), screening=1e-12)
    monkeypatch.setattr(metric, "LINEAR_DEPENDENCE", 1e-5)
    with refused("cut of the metric = 1e-07, now it is 1e-05"):
        fitting(fitted[0], molecule())


def test_what_changes_no_fitted_integral_is_no_reason_to_refuse(fitted):
    for change in (
        {},
        {"charge": 1, "spin": 1},
        {"nucmod": "gaussian"},
        {"verbose": 3, "output": "/dev/null"},
    ):
        assert fitting(fitted[0], molecule(**change), memory="1GB", threads=1)


def mp2(directory: Path, mf: Any, auxbasis: str = "def2-svp-ri", **settings: Any) -> MP2:
    made = MP2(mf, auxbasis=auxbasis, checkpoint=directory, **settings)
    try:
        made.kernel()
    finally:
        made.close()
    return made


def shifted(orbitals: Any, shift: float) -> Any:
    """A mean field with other orbital energies."""
    mf = orbitals.copy()
    mf.mo_energy = orbitals.mo_energy + shift * (orbitals.mo_occ == 0)
    mark_canonical(mf)
    return mf


def test_pair_energies_of_other_orbitals_are_refused_by_name(fitted, orbitals):
    directory, _ = fitted
    with refused("frozen = 0, now it is 1;"):
        mp2(directory, orbitals, frozen=1)
    with refused("another auxiliary basis"):
        mp2(directory, orbitals, "def2-tzvp-ri")
    with refused("screening = 1e-11, now it is 1e-12"):
        mp2(directory, orbitals, screening=1e-12)
    with refused("restricted = True, now it is False"):
        mp2(directory, orbitals.to_uhf())
    with refused("another orbitals"):
        mp2(directory, reference.RHF(molecule(nucmod="gaussian")).run(conv_tol=1e-12))
    with refused("orbital energies"):
        mp2(directory, shifted(orbitals, 0.1))


def test_finished_pairs_give_the_energy_of_a_run_from_scratch(fitted, orbitals):
    directory, energy = fitted
    again = mp2(directory, orbitals, scs=(1.0, 0.5), memory="1GB", threads=1)
    assert again.found == {"fitted"}
    assert again.e_corr == pytest.approx(energy, abs=1e-12)
    assert MP2(orbitals, auxbasis="def2-svp-ri").kernel() == pytest.approx(energy, abs=1e-10)


def test_arrays_of_both_spins_are_not_exchanged(tmp_path):
    mf = reference.UHF(gto.M(atom="H 0 0 0; H 0 0 3", basis="6-31g", verbose=0)).run()
    mp2(tmp_path, mf)
    (tmp_path / "mp2.0").rename(tmp_path / "x")
    (tmp_path / "mp2.1").rename(tmp_path / "mp2.0")
    (tmp_path / "x").rename(tmp_path / "mp2.1")
    with pytest.raises(OutcoreError, match=r"holds mp2\.1 of MP2, not mp2\.0 of MP2"):
        mp2(tmp_path, mf)


def test_a_fitting_whose_screening_was_changed_is_made_anew():
    with ri.RHF(molecule(), "def2-svp-jkfit") as mf:
        first = mf.with_df.integrals()
        mf.with_df.screening = 1e-5
        assert mf.with_df.integrals() is not first


# ---- orbitals ----


def saved(mf: Any, name: Path, **settings: Any) -> None:
    orbitals = {key: np.asarray(getattr(mf, key)) for key in ("mo_coeff", "mo_energy", "mo_occ")}
    restart.Checkpoint(mf, "RHF", name, **settings).save(orbitals, 9, float(mf.e_tot), converged=True)


@pytest.fixture(scope="module")
def kept_orbitals(tmp_path_factory, orbitals) -> Path:
    name = tmp_path_factory.mktemp("orbitals") / "orbitals"
    saved(orbitals, name)
    return name


@pytest.mark.parametrize("name", OF_FUNCTIONS | OF_MOLECULES)
def test_orbitals_of_another_molecule_are_refused_by_name(kept_orbitals, name):
    says, change = (OF_FUNCTIONS | OF_MOLECULES)[name]
    with refused(says):
        restart.load(reference.RHF(change()), "RHF", kept_orbitals)


def field(mf: Any) -> Any:
    """An electric field, which is in no list of settings."""
    hcore = mf.get_hcore() + 0.01 * mf.mol.intor("int1e_r")[2]
    mf.get_hcore = lambda *_: hcore
    return mf


def test_orbitals_of_another_hamiltonian_are_refused_by_name(kept_orbitals, tmp_path, monkeypatch):
    with refused("relativistic treatment"):
        restart.load(reference.RHF(molecule()).sfx2c1e(), "RHF", kept_orbitals)
    with pytest.raises(OutcoreError, match="another one-electron Hamiltonian"):
        restart.load(field(reference.RHF(molecule())), "RHF", kept_orbitals)
    with refused("method = RHF, now it is UHF"):
        restart.load(reference.UHF(molecule()), "UHF", kept_orbitals)
    saved(reference.RHF(molecule()).sfx2c1e().run(), tmp_path / "x2c")
    restart.load(reference.RHF(molecule()).sfx2c1e(), "RHF", tmp_path / "x2c")
    monkeypatch.setattr(param, "LIGHT_SPEED", 100.0)
    with refused("relativistic treatment"):
        restart.load(reference.RHF(molecule()).sfx2c1e(), "RHF", tmp_path / "x2c")


def test_orbitals_are_found_again_whatever_changes_none_of_them(kept_orbitals, orbitals):
    for given in (
        {"verbose": 3, "output": "/dev/null"},
        {"atom": "H1 0 0 0; F 0 0 0.917"},
        {"max_memory": 99},
    ):
        found, meta = restart.load(reference.RHF(molecule(**given)), "RHF", kept_orbitals)
        assert np.array_equal(found["mo_coeff"], orbitals.mo_coeff)
        assert meta["energy_hartree"] == orbitals.e_tot


# ---- records ----


def test_a_coefficient_may_differ_by_rounding_a_coordinate_may_not():
    settings = {"geometry": [1.0, 2.0], "contractions": [[0.3, 0.7]]}
    found = Problem("values", 1, settings, problem.ROUNDED).as_json()["settings"]

    def differs(**change: Any) -> list[str]:
        return Problem("values", 1, settings | change, problem.ROUNDED).differences(found)

    assert differs() == []
    assert differs(contractions=[[np.nextafter(0.3, 1), 0.7]]) == []
    assert differs(contractions=[[0.3 + 1e-12, 0.7]]) == ["they are of another contractions"]
    assert differs(geometry=[1.0, np.nextafter(2.0, 3)]) == ["they are of another geometry"]
    assert differs(geometry=[1.0, 2.0, 3.0]) == ["they are of another geometry"]
    assert differs(omega=0.0) == ["they were kept without 'omega'"]
    assert differs(geometry=[1, 2.0]) == ["they are of another geometry"]


def test_a_zero_without_a_sign_is_the_same_zero():
    one, other = (Problem("values", 1, {"x": [zero]}).as_json() for zero in (0.0, -0.0))
    assert one == other


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        ({"format": 1}, "kept in format 1; this program reads format 2", errno.ENOTSUP),
        ({"format": 3}, "kept in format 3", errno.ENOTSUP),
        ({"format": None}, "kept in format none", errno.ENOTSUP),
        ({"what": "orbitals"}, "it holds orbitals, not values", errno.EINVAL),
        ({"what": 7}, "it is not values", errno.EINVAL),
        ({"settings": {"omega": 0.1}}, "fingerprint", errno.EIO),
        ({"settings": []}, "fingerprint", errno.EIO),
        ({"fingerprint": ""}, "fingerprint", errno.EIO),
    ],
)
def test_a_record_of_something_else_is_refused_with_what_it_is(change, says, code):
    wanted = Problem("values", 2, {"omega": 0.0})
    wanted.check(wanted.as_json(), "go on", "kept")
    with pytest.raises(OutcoreError, match=says) as caught:
        wanted.check(wanted.as_json() | change, "go on", "kept")
    assert caught.value.errno == code


def test_settings_that_are_nested_too_deeply_are_damage():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    wanted = Problem("values", 2, {"omega": 0.0})
    with pytest.raises(OutcoreError, match="fingerprint"):
        wanted.check(wanted.as_json() | {"settings": {"omega": deep}, "fingerprint": ""}, "go on", "kept")


def test_what_an_older_version_kept_is_refused_by_its_format(tmp_path, orbitals):
    mol = molecule()
    old = {"what": kept.WHAT, "facts": {"screening": 1e-12}, "least": None, "first_exponent": 0, "files": []}
    with World("self") as world:
        checkpoint.save(world, tmp_path / "integrals", {"problem": np.ones(9)}, old)
        checkpoint.save(world, tmp_path / "orbitals", {"problem": np.ones(9)}, {"what": restart.WHAT})
        for name, what in (("three_index", "three-index integrals"), ("mp2.0", "integrals of MP2")):
            with DiskArray(world, (4, 4), path=tmp_path / name) as array:
                array.flush({"what": what, "problem": [1.0], "stage": "fitted", "rows": 4})
    for go_on in (
        lambda: scf.RHF(mol, keep=str(tmp_path)).two_electron,
        lambda: restart.load(orbitals, "RHF", tmp_path / "orbitals"),
        lambda: fitting(tmp_path, mol),
        lambda: mp2(tmp_path, orbitals),
    ):
        with pytest.raises(
            outcore.OutcoreError, match=r"kept in format 1; this program reads format [23]"
        ) as found:
            go_on()
        assert found.value.errno == errno.ENOTSUP
