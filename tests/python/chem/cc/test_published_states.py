"""States beside published values of EOM-CCSD, to the digits that were printed.

Geometries (Bohr) and energies (eV) are those of the QUEST database (Veril, Scemama, Caffarel, Lipparini,
Boggio-Pasqua, Jacquemin, Loos, WIREs Comput. Mol. Sci. 11, e1517 (2021)), with frozen cores. Excited states:
Loos, Scemama, Blondel, Garniron, Caffarel, Jacquemin, J. Chem. Theory Comput. 14, 4360 (2018). Ionisation
potentials: Marie, Loos, J. Chem. Theory Comput. 20, 4751 (2024).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outcore.chem.cc import CCSD
from outcore.chem.units import HARTREE

FORMALDEHYDE = (
    "C 0 0 -1.13947666; O 0 0 1.14402883; H 0 1.76627623 -2.23398653; H 0 -1.76627623 -2.23398653",
    2,
)
WATER = ("O 0 0 -0.13209669; H 0 1.43152878 0.97970006; H 0 -1.43152878 0.97970006", 1)
"""Atoms, and the number of frozen orbitals."""

IONS: dict[tuple[str, str], tuple[Any, list[float]]] = {
    ("formaldehyde", "6-31+g*"): (FORMALDEHYDE, [10.486, 14.410, 15.833, 17.256]),
    ("formaldehyde", "aug-cc-pvdz"): (FORMALDEHYDE, [10.625, 14.480, 15.964, 17.338]),
}


def start(molecule: tuple[str, int], basis: Any) -> CCSD:
    import pyscf

    atoms, frozen = molecule
    mf = pyscf.M(atom=atoms, unit="Bohr", basis=basis, verbose=0).RHF().run(conv_tol=1e-11)
    cc = CCSD(mf, frozen, comm=None, memory="2GB", threads=1, conv_tol=1e-7, conv_tol_normt=2e-6)
    cc.kernel()
    return cc


@pytest.mark.parametrize(
    ("name", "basis"),
    [
        pytest.param(*each, marks=[pytest.mark.long] if "aug" in each[1] else [], id=" ".join(each))
        for each in IONS
    ],
)
def test_ionisation_potentials(name: str, basis: str) -> None:
    molecule, expected = IONS[name, basis]
    with start(molecule, basis) as cc:
        energies, _ = cc.ipccsd(nroots=len(expected), residual=1e-5)
    assert abs(energies * HARTREE - expected).max() < 0.0006


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("molecule", "multiplicity", "expected"),
    [
        (WATER, 1, [7.60, 9.36, 9.96]),
        (WATER, 3, [7.20, 9.20, 9.49]),
    ],
    ids=["singlets of water", "triplets of water"],
)
def test_excited_states(molecule: Any, multiplicity: int, expected: list[float]) -> None:
    """In aug-cc-pVTZ."""
    with start(molecule, "aug-cc-pvtz") as cc:
        states = cc.states("ee", multiplicity=multiplicity, nroots=len(expected), residual=1e-4)
    assert abs(states.energies * HARTREE - expected).max() < 0.006


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_core_ion_of_water() -> None:
    """541.4809961 eV in aug-cc-pCVTZ, with all electrons: Marie, Burth, Loos, arXiv:2604.05920."""
    from pyscf.gto.basis import load

    basis = {"O": load("aug-cc-pvtz", "O") + load("cc-pcvtz", "O")[-5:], "H": "aug-cc-pvtz"}
    with start((WATER[0], 0), basis) as cc:
        energy, _ = cc.ipccsd(cvs=1, residual=1e-5)
    assert energy * HARTREE == pytest.approx(541.4809961, abs=1e-3)


def test_the_lowest_ions_of_benzene_are_degenerate_pairs() -> None:
    """Those of PySCF, each twice."""
    import pyscf
    from pyscf import cc as peers
    from pyscf.cc import eom_rccsd

    ring = [(np.cos(angle), np.sin(angle)) for angle in np.pi / 3 * np.arange(6)]
    atoms = [
        (element, (radius * x, radius * y, 0.0))
        for element, radius in (("C", 1.395), ("H", 2.482))
        for x, y in ring
    ]
    mf = pyscf.M(atom=atoms, basis="sto-3g", verbose=0).RHF().run(conv_tol=1e-12)
    peer = peers.RCCSD(mf, frozen=6).run(conv_tol=1e-9, conv_tol_normt=1e-7)
    eom = eom_rccsd.EOMIP(peer)
    eom.conv_tol = 1e-10
    expected = np.array(eom.kernel(nroots=6)[0])[:4]
    settings = {"memory": "2GB", "threads": 1, "conv_tol": 1e-9, "conv_tol_normt": 1e-7}
    with CCSD(mf, 6, comm=None, ladder="rebuild", **settings) as cc:
        cc.kernel()
        energies, states = cc.ipccsd(nroots=4, residual=1e-7)
    assert states.converged.all()
    assert abs(energies - expected).max() < 1e-6
    assert energies[1] - energies[0] < 1e-6
    assert energies[3] - energies[2] < 1e-6
    assert energies[2] - energies[1] > 0.05
