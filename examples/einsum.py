"""MP2 from three-index integrals on disk: one contraction by itself, and a program that is planned as a whole."""

import sys

import pyscf

import outcore

MEMORY = sys.argv[1] if len(sys.argv) > 1 else "8MB"
mol = pyscf.M(atom="N 0 0 0; N 0 0 1.1", basis="cc-pvtz", verbose=0)
mf = mol.RHF().density_fit(auxbasis="cc-pvtz-ri").run()
o = mol.nelectron // 2
occupied, virtual = mf.mo_coeff[:, :o], mf.mo_coeff[:, o:]
gaps = mf.mo_energy[:o, None] - mf.mo_energy[None, o:]


def amplitudes(box, k):
    """First-order amplitudes of a box of integrals (ia|jb), in the order [i,j,a,b]."""
    i, j, a, b = box
    return k / (gaps[i, None, a, None] + gaps[None, j, None, b])


with outcore.World(memory="500MB") as world:
    fitted = outcore.Array.from_numpy(world, pyscf.lib.unpack_tril(mf.with_df._cderi), where="disk")
    print(f"(Q|mn): {fitted.shape}, {fitted.nbytes / 1e6:.1f} MB, on disk")

    transform = "Qmn,mi,na->Qia"
    print(outcore.einsum.plan(transform, fitted, occupied, virtual, memory=MEMORY))
    B, counted = outcore.einsum(transform, fitted, occupied, virtual, memory=MEMORY, report=True)
    print(counted)  # actual beside predicted bytes

    with outcore.Program(world, memory=MEMORY) as p:
        b = p.input(B, "B")
        K = outcore.einsum("Qia,Qjb->ijab", b, b)
        t = p.map(amplitudes, K)
        u = outcore.einsum("ijba->ijab", t, scale=-1)
        u += 2 * t
        energy = p.array((), name="energy")
        outcore.einsum("ijab,ijab->", K, u, out=energy)
    print(p.plan())
    p.run()
    print(f"RI-MP2 correlation energy {p.value(energy):.8f} Eh")
    print(f"PySCF                     {mf.DFMP2().run().e_corr:.8f} Eh")
    B.close()
    fitted.close()
