"""Resolution of the identity: SCF with three-index integrals on disk resident arrays.

Files:

    command, options:
        `outcore ri-scf` and `outcore rimp2`
    scf, fitting, jk:
        mean-field objects, their fitting, J and K in one pass
    auxiliary, metric, pairs:
        auxiliary bases, the Coulomb metric, pairs of shells
    source, three_index, cholesky, given:
        where three-index integrals come from: fitting, Cholesky, integrals that the caller gives
    rows, transformed:
        rows over basis functions, and integrals of occupied and virtual orbitals made of them
    plan, forecast, traffic, problem, disk_pass:
        memory, predictions, what moved, what is kept, passes over disk arrays
"""

from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.scf import RHF, ROHF, UHF, density_fit

__all__ = ["RHF", "ROHF", "UHF", "DensityFitting", "density_fit"]
