"""Coupled cluster with single and double excitations, out of core.

mf = outcore.chem.ri.RHF(mol, memory="2GB")
mf.kernel()
ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
ccsd.kernel()
"""

from outcore.chem.cc.ccsd import CCSD

__all__ = ["CCSD"]
