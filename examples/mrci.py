"""The bond of nitrogen broken: multireference CI from orbitals of CASSCF, with the correction of Davidson."""

import pyscf

from outcore.chem.mrci import MRCI

found = {}
print("   R / A  CASSCF / Eh    MRCI / Eh  MRCI+Q / Eh   weight of the references")
for distance in (1.1, 2.0):
    mol = pyscf.M(atom=f"N 0 0 0; N 0 0 {distance}", basis="6-31g", symmetry="D2h", verbose=0)
    mc = pyscf.mcscf.CASSCF(mol.RHF().run(), 6, 6).run()
    with MRCI(mc, frozen="auto", memory="400MB") as ci:
        energy = ci.kernel()
        corrected = energy + ci.corrections().davidson
        found[distance] = mc.e_tot, energy, corrected
        values = " ".join(f"{e:12.6f}" for e in found[distance])
        print(f"{distance:8.1f} {values}   {ci.reference_weight():.4f}")
rise = " ".join(f"{1000 * (far - near):12.2f}" for near, far in zip(found[1.1], found[2.0], strict=True))
print(f"rise/mEh {rise}")
