"""CCSD(T) that is stopped after four iterations, and continues from its checkpoint."""

import pyscf

from outcore.chem.cc import CCSD

mol = pyscf.M(atom="N 0 0 0; N 0 0 1.1", basis="6-31g", verbose=0)
mf = mol.RHF().run(conv_tol=1e-11, conv_tol_grad=1e-7)
given = dict(frozen="auto", integrals="conventional", memory="400MB", checkpoint="amplitudes")

with CCSD(mf, **given, max_cycle=4) as cc:
    cc.kernel()
    print(f"stopped: converged {cc.converged}, {len(cc.iterations)} iterations, {cc.e_corr:.6f} Eh")

with CCSD(mf, **given) as cc:
    cc.kernel()
    triples = cc.ccsd_t()
    print(f"restarted: converged {cc.converged}, from iteration {cc.iterations[0].number}")
    print(f"CCSD(T) energy {cc.e_tot + triples:.6f} Eh")
