"""Resolution of the identity: SCF with three-index integrals on disk resident arrays."""

from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.scf import RHF, ROHF, UHF, density_fit

__all__ = ["RHF", "ROHF", "UHF", "DensityFitting", "density_fit"]
