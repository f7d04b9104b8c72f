"""RHF and UHF of nitrogen with integrals on disk, near the bond length and stretched."""

import pyscf

from outcore.chem import hf

print("   R / A     RHF / Eh     UHF / Eh   error of storing, bound / Eh")
for distance in (1.1, 2.0):
    mol = pyscf.M(atom=f"N 0 0 0; N 0 0 {distance}", basis="6-31g", verbose=0)
    with hf.RHF(mol, storage="disk", error=1e-8) as restricted:
        restricted.kernel()
        bound = restricted.energy_error().bound
    with hf.UHF(mol, storage="disk", error=1e-8) as unrestricted:
        density = unrestricted.get_init_guess()
        density[0][:9, :9] *= 1.5  # more alpha electrons at the first atom, more beta electrons at the other
        density[1][9:, 9:] *= 1.5
        unrestricted.kernel(density)
    print(f"{distance:8.1f} {restricted.e_tot:12.6f} {unrestricted.e_tot:12.6f}   {bound:.0e}")
