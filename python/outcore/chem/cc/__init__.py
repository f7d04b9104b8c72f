"""Coupled cluster with single and double excitations, out of core.

mf = outcore.chem.ri.RHF(mol, memory="2GB")
mf.kernel()
ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
ccsd.kernel()

Files:

    command, options, settings:
        `outcore ccsd`
    ccsd, planning, results:
        the object, its plan and its results
    equations:
        amplitudes, Lambda and densities as equations on extended arrays; ladder and (T) as kernels
    least, disks, forecast:
        the least memory of all stages, their room on disks, and their time, for commands and objects
    plan:
        sizes, arrays and statements; the place of each array in memory or on disk
    excited:
        states of the equation-of-motion method
    inherited:
        arrays that calculations with converged amplitudes begin with
    keep:
        the checkpoint, from which another run goes on; PySCF's files of amplitudes
    response, triple_response, gradient, scanner:
        densities and nuclear gradients, as users ask for them
    updates, diis, divergence, iteration:
        an iteration
    fno, given:
        frozen natural orbitals; doubles in PySCF's form
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD as CCSD

__all__ = ["CCSD"]


def __getattr__(name: str) -> Any:
    if name == "CCSD":
        from outcore.chem.cc.ccsd import CCSD

        return CCSD
    raise AttributeError(f"module 'outcore.chem.cc' has no attribute '{name}'")
