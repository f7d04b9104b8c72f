"""CASSCF of nitrogen by PySCF, with full CI by Outcore: six electrons of the triple bond in six orbitals."""

import pyscf

from outcore.chem.ci import FCISolver

print("   R / A     RHF / Eh  CASSCF / Eh   occupations of natural orbitals")
for distance in (1.1, 2.0):
    mol = pyscf.M(atom=f"N 0 0 0; N 0 0 {distance}", basis="6-31g", symmetry=True, verbose=0)
    mf = mol.RHF().run()
    mc = pyscf.mcscf.CASSCF(mf, 6, 6)
    mc.fcisolver = FCISolver(mol, memory="300MB")
    mc.fcisolver.wfnsym = "A1g"
    mc.natorb = True
    mc.kernel()
    occupations = " ".join(f"{n:.3f}" for n in mc.mo_occ[4:10])
    print(f"{distance:8.1f} {mf.e_tot:12.6f} {mc.e_tot:12.6f}   {occupations}")
