"""Molecules whose energies are known."""

from __future__ import annotations

from functools import cache

N2 = "N 0 0 0; N 0 0 1.0977"
WATER = "O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587"


@cache
def mean_field(atoms, basis="6-31g", symmetry=True, spin=0):
    from pyscf import gto, scf

    mol = gto.M(atom=atoms, basis=basis, symmetry=symmetry, spin=spin, verbose=0)
    kind = scf.ROHF if spin else scf.RHF
    return kind(mol).run(conv_tol=1e-12)
