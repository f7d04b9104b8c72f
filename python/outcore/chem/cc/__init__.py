"""Coupled cluster with single and double excitations, out of core.

mf = outcore.chem.ri.RHF(mol, memory="2GB")
mf.kernel()
ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
ccsd.kernel()

Files:

    command, options, settings:
        `outcore ccsd`
    ccsd, results:
        the object, and what it has found
    restricted, unrestricted, methods:
        the equations of closed and of open shells; what other methods have in their place
    ladder, opposite_ladder, stream, ladder_sizes:
        the particle-particle ladder
    triples, open_triples, triple_tasks, triple_sizes:
        (T)
    integrals, orbitals, spaces, pairs, doubles:
        integrals, orbitals and amplitudes as extended arrays
    updates, diis, divergence, iteration, steps:
        an iteration
    plan, placing, specs, layouts, traffic, forecast, moved, room, buffers:
        memory: what lies where, and what moves
    kept, kept_orbitals, kept_steps, checkpoint:
        what another run goes on from
    fno, amplitude_file, given:
        frozen natural orbitals, PySCF's files and arrays
"""

from outcore.chem.cc.ccsd import CCSD

__all__ = ["CCSD"]
