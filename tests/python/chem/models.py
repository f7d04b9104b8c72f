"""Molecules and mean-field objects that several tests have: given integrals, molecules that are turned."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscf import ao2mo, gto, scf

MODELS: list[dict[str, Any]] = [
    {"repulsion": 2.0},
    {"repulsion": -1.0, "form": 1},
    {"repulsion": 3.0, "range_": 1.5, "form": 4},
    {"repulsion": 4.0, "kind": "UHF", "electrons": 5},
    {"repulsion": -1.5, "kind": "UHF", "electrons": 5},
    {"repulsion": 2.5, "says_functions": True},
]


def hubbard(
    repulsion: float,
    kind: str = "RHF",
    form: int = 8,
    electrons: int = 6,
    range_: float = 0.0,
    says_functions: bool = False,
) -> Any:
    """A ring of six sites; with a range the model of Pariser, Parr and Pople. says_functions: its molecule, which
    has no atoms, says how many functions it has, as some of PySCF's examples do."""
    mol = gto.M(verbose=0)
    if says_functions:
        mol.nao_nr = lambda *_: 6
    mol.nelectron, mol.spin, mol.incore_anyway = electrons, electrons % 2, True
    hopping = -np.roll(np.eye(6), 1, axis=1)
    hopping = hopping + hopping.T + np.diag(0.05 * np.arange(6))
    eri = np.zeros((6,) * 4)
    for i in range(6):
        for j in range(6):
            far = min(abs(i - j), 6 - abs(i - j))
            eri[i, i, j, j] = (
                repulsion / np.sqrt(1 + (far / range_) ** 2) if range_ else repulsion * (far == 0)
            )
    mf = getattr(scf, kind)(mol)
    mf.get_hcore, mf.get_ovlp, mf.energy_nuc = lambda *_: hopping, lambda *_: np.eye(6), lambda *_: 0.0
    mf._eri = eri if form == 1 else ao2mo.restore(form, eri, 6)
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
    mf.kernel(None if kind == "RHF" else np.array([np.diag([1.0, 0] * 3), np.diag([0, 1.0] * 3)]))
    return mf


def changed_helium() -> Any:
    """Two atoms whose repulsion is weaker."""
    mf = scf.RHF(gto.M(atom="He 0 0 0; He 0 0 2", basis="6-31g", verbose=0))
    mf._eri = 0.9 * mf.mol.intor("int2e", aosym="s8")
    return mf.run(conv_tol=1e-12)


def molecule(atom: str, basis: Any, *, turned: bool = False, **more: object) -> gto.Mole:
    """turned: away from the axes of the frame, and from its origin."""
    mol = gto.M(atom=atom, basis=basis, verbose=0, **more)
    if not turned:
        return mol
    axes = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    places = mol.atom_coords() @ axes + (0.3, -1.1, 0.7)
    atoms = [(mol.atom_symbol(atom), place) for atom, place in enumerate(places)]
    return gto.M(atom=atoms, unit="Bohr", basis=basis, verbose=0, **more)
