"""Interaction of two neon atoms: RHF and RI-MP2, with and without counterpoise correction."""

import pyscf

from outcore.chem import ri
from outcore.chem.mp2 import MP2


def energies(atoms):
    """Energies (Hartree) of RHF and RI-MP2."""
    mol = pyscf.M(atom=atoms, basis="aug-cc-pvtz", verbose=0)
    with ri.RHF(mol, memory="400MB") as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-10, 1e-7
        mf.kernel()
        return mf.e_tot, mf.e_tot + MP2(mf, frozen="auto", memory="400MB").kernel()


dimer = energies("Ne 0 0 0; Ne 0 0 3.1")
atom = energies("Ne 0 0 0")
in_basis_of_dimer = energies("Ne 0 0 0; ghost-Ne 0 0 3.1")
print("interaction / microhartree          RHF   RI-MP2")
for name, part in (("as it is", atom), ("counterpoise", in_basis_of_dimer)):
    values = [1e6 * (whole - 2 * half) for whole, half in zip(dimer, part, strict=True)]
    print(f"{name:30s} {values[0]:8.1f} {values[1]:8.1f}")
