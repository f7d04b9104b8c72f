"""A method of one's own: coupled-cluster doubles, written with einsum for arrays in memory or on disk.

Amplitude equations of closed shells: Scuseria, Janssen, Schaefer, J. Chem. Phys. 89, 7382 (1988), without singles.
Integrals are products of three-index integrals of density fitting: (pq|rs) = sum_Q B_Qpq B_Qrs.
"""

import sys

import numpy as np
import pyscf
from pyscf.cc import dfccsd

import outcore
from outcore import einsum

MEMORY = sys.argv[1] if len(sys.argv) > 1 else "20MB"
mol = pyscf.M(atom="N 0 0 0; N 0 0 1.1", basis="6-31g", verbose=0)
mf = mol.RHF().density_fit(auxbasis="cc-pvdz-ri").run(conv_tol=1e-11)
o = mol.nelectron // 2
fitted = pyscf.lib.unpack_tril(mf.with_df._cderi)
B = np.einsum("Qmn,mp,nq->Qpq", fitted, mf.mo_coeff, mf.mo_coeff, optimize=True)
gaps = mf.mo_energy[:o, None] - mf.mo_energy[None, o:]


def divide(box, r):
    """The residual over orbital energies, for the elements in one box."""
    i, j, a, b = box
    return r / (gaps[i, None, a, None] + gaps[None, j, None, b])


with outcore.World() as world:
    arrays = [
        outcore.Array.from_numpy(world, np.ascontiguousarray(part), where="disk")
        for part in (B[:, :o, :o], B[:, :o, o:], B[:, o:, o:])
    ]
    with outcore.Program(world, memory=MEMORY) as p:
        oo, ov, vv = (p.input(a, name) for a, name in zip(arrays, ("oo", "ov", "vv"), strict=True))
        K = einsum("Qia,Qjb->ijab", ov, ov)  # (ia|jb)
        L = einsum("ijba->ijab", K, scale=-1)
        L += 2 * K
        t = p.output(p.map(divide, K), "t")  # first order
        energy, before, change = p.array((), name="energy"), p.array(()), p.array((), name="change")
        for _ in p.iterate(50, until=lambda i: abs(p.value(change)) < 1e-9):
            u = einsum("ijba->ijab", t, scale=-1)
            u += 2 * t
            Foo = einsum("klcd,ilcd->ki", K, u)
            Fvv = einsum("klcd,klad->ac", K, u)
            W = einsum("klcd,ijcd->klij", K, t) + einsum("Qki,Qlj->klij", oo, oo)
            X = einsum("lkdc,ilad->ikac", K, u) - einsum("lkcd,ilad->ikac", K, t)
            X = K + 0.5 * X  # (kc|ia), dressed
            Y = einsum("Qac,Qki->ikac", vv, oo) - 0.5 * einsum("lkcd,ilda->ikac", K, t)
            x = einsum("ikac,kjcb->ijab", X, u)
            x -= einsum("ikac,kjcb->ijab", Y, t)
            x -= einsum("ikbc,kjac->ijab", Y, t)
            x -= einsum("ac,ijcb->ijab", Fvv, t)
            x -= einsum("ki,kjab->ijab", Foo, t)
            r = K + einsum("Qac,Qbd,ijcd->ijab", vv, vv, t)  # the ladder, without the integrals (ac|bd)
            r += einsum("klij,klab->ijab", W, t)
            r += x + einsum("jiba->ijab", x)
            p.map(divide, r, out=t)
            before[...] = energy
            einsum("ijab,ijab->", L, t, out=energy)
            change[...] = energy - before
    plan = p.plan()
    report = p.run(plan=plan)
    print(plan)
    for array in arrays:
        array.close()
print(f"moved {report.moved_bytes / 1e6:.1f} MB")
print(f"CCD correlation energy {p.value(energy):.7f} Eh")


class WithoutSingles(dfccsd.RCCSD):
    def update_amps(self, t1, t2, eris):
        t1, t2 = super().update_amps(t1, t2, eris)
        return 0 * t1, t2


print(f"PySCF, without singles {WithoutSingles(mf).run(conv_tol=1e-9).e_corr:.7f} Eh")
