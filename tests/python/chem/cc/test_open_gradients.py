"""Relaxed densities and gradients of CCSD of open shells: beside finite differences, and closed shells."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import fitted_mean_field as mean_field
from cc_support import of_whole_molecule
from pyscf.scf import hf, uhf

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.cli import main as cli

Values = np.ndarray[Any, np.dtype[Any]]

AMINO = "N 0.02 0.01 0; H 0.9 0.1 0.3; H -0.5 0.85 -0.1"
HYDROXYL = "O 0 0 0.02; H 0.3 0.1 0.91"
METHYLENE = "C 0 0 0.02; H 0.85 0.05 0.6; H -0.9 0.1 0.5"
WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def molecule(atoms: str, spin: int, basis: str = "sto-3g") -> Any:
    import pyscf

    return pyscf.M(atom=atoms, spin=spin, basis=basis, verbose=0)


def made(mf: Any, frozen: int, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"auxbasis": "cc-pvdz-ri", "conv_tol": 1e-11, "conv_tol_normt": 1e-9, **settings}
    return CCSD(mf, frozen, comm=None, memory="1GB", threads=1, **given)


def gradient(mol: Any, frozen: int, kind: str = "UHF", **settings: Any) -> tuple[float, Values]:
    with mean_field(mol, kind) as mf, made(mf, frozen, **settings) as cc:
        cc.kernel()
        found = cc.nuc_grad_method().kernel()
        assert abs(of_whole_molecule(mol, found)).max() < 1e-9
        return cc.e_tot, found


def energy(mol: Any, frozen: int, field: Values | None = None) -> float:
    with mean_field(mol, field=field) as mf, made(mf, frozen) as cc:
        cc.kernel()
        return cc.e_tot


def slope(of: Any, h: float) -> float:
    """The derivative of a function at 0, from four values."""
    near, far = (of(step * h) - of(-step * h) for step in (1, 2))
    return float((8 * near - far) / (12 * h))


@pytest.mark.long
def test_along_any_direction_it_is_the_derivative_of_the_energy() -> None:
    mol = molecule(AMINO, 1)
    direction = np.random.default_rng(5).normal(size=(3, 3))
    found = gradient(mol, 1)[1]

    def along(step: float) -> float:
        moved = mol.set_geom_(mol.atom_coords() + step * direction, unit="Bohr", inplace=False)
        return energy(moved, 1)

    assert np.sum(found * direction) == pytest.approx(slope(along, 3e-3), abs=1e-7)


def test_of_a_triplet_with_a_frozen_core() -> None:
    # Values of finite differences of energies.
    e_tot, found = gradient(molecule(METHYLENE, 2, "6-31g"), 1)
    assert e_tot == pytest.approx(-38.96914320153, abs=1e-9)
    assert found[0, 1] == pytest.approx(0.0039706389, abs=1e-8)
    assert found[1, 2] == pytest.approx(-0.0152184014, abs=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"storage": "disk", "ladder": "disk"},
        pytest.param({"block": 3, "ladder": "rebuild"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_it_is_the_same_wherever_arrays_are(settings: dict[str, Any]) -> None:
    # Values of finite differences of energies.
    e_tot, found = gradient(molecule(AMINO, 1, "6-31g"), 0, **settings)
    assert e_tot == pytest.approx(-55.62246123699, abs=1e-9)
    assert found[0, 0] == pytest.approx(0.0890203148, abs=1e-8)
    assert found[1, 2] == pytest.approx(-0.0347307734, abs=1e-8)


def test_of_closed_shells_it_is_that_of_their_own_equations() -> None:
    mol = molecule(WATER, 0)
    (e_open, of_open), (e_closed, of_closed) = (gradient(mol, 1, kind) for kind in ("UHF", "RHF"))
    assert e_open == pytest.approx(e_closed, abs=1e-9)
    assert of_open == pytest.approx(of_closed, abs=1e-9)


def test_relaxed_densities_of_both_spins_are_derivatives_by_fields_on_them() -> None:
    mol = molecule(AMINO, 1)
    x = mol.intor("int1e_r")[0]
    field = np.array([x, -0.5 * x])  # on alpha and on beta
    with mean_field(mol) as mf, made(mf, 1) as cc:
        cc.kernel()
        found = np.array(cc.make_rdm1(relaxed=True, ao_repr=True))
    expected = slope(lambda step: energy(mol, 1, step * field), 8e-3)
    assert np.sum(found * field) == pytest.approx(expected, abs=1e-7)
    assert np.sum((found[0] - found[1]) * mol.intor("int1e_ovlp")) == pytest.approx(1.0, abs=1e-10)


def test_where_one_spin_alone_is_correlated() -> None:
    # Values of finite differences of energies.
    import pyscf

    mol = pyscf.M(atom="H 0 0 0; H 0.3 0 1.1; H 2 1 1", spin=2, charge=1, basis="6-31g", verbose=0)
    found = gradient(mol, 0)[1]
    assert found[0, 1] == pytest.approx(0.0044878889, abs=1e-8)
    assert found[1, 0] == pytest.approx(0.0032304751, abs=1e-8)


def test_of_rohf_it_is_refused_by_name_before_anything_is_computed() -> None:
    with mean_field(molecule(AMINO, 1), "ROHF") as mf, made(mf, 1) as cc:
        with pytest.raises(OutcoreError, match="orbitals are of ROHF") as error:
            cc.nuc_grad_method().kernel()
        assert error.value.errno == errno.ENOTSUP
        assert not cc.iterations


def test_the_command_prints_it(tmp_path: Path) -> None:
    geometry, result, density = tmp_path / "m.xyz", tmp_path / "m.json", tmp_path / "m.npz"
    geometry.write_text("3\n\n" + AMINO.replace("; ", "\n") + "\n")
    arguments = ["ccsd", geometry, "--basis", "6-31g", "--spin", "1", "--memory", "1GB", "--threads", "1"]
    sets = ["--jkbasis", "cc-pvdz-jkfit", "--auxbasis", "cc-pvdz-ri"]
    more = ["--gradient", "--dipole", "--density", density, "--json", result]
    assert cli.run([str(each) for each in (*arguments, *sets, *more)]) == 0
    found = json.loads(result.read_text())
    assert found["gradient_hartree_per_bohr"][0][0] == pytest.approx(0.0890203148, abs=2e-8)
    assert sum(found["mulliken_spins"]) == pytest.approx(1.0, abs=1e-8)
    with np.load(density) as matrices:
        mol, total, spin = molecule(AMINO, 1, "6-31g"), matrices["total"], matrices["spin"]
    assert np.sum(spin * mol.intor("int1e_ovlp")) == pytest.approx(1.0, abs=1e-8)
    both = np.array([total + spin, total - spin]) / 2
    assert found["dipole_debye"] == pytest.approx(uhf.dip_moment(mol, both, verbose=0), abs=1e-5)
    quadrupole = hf.quad_moment(mol, total, unit="AU", verbose=0, origin=np.zeros(3))
    assert np.array(found["quadrupole_au"]) == pytest.approx(quadrupole, abs=1e-7)
    charges, spins = (each(mol, both, verbose=0)[1] for each in (uhf.mulliken_pop, uhf.mulliken_spin_pop))
    assert found["mulliken_charges"] == pytest.approx(charges, abs=1e-7)
    assert found["mulliken_spins"] == pytest.approx(spins, abs=1e-7)
