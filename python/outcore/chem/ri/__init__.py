"""Resolution of the identity: SCF and MP2 with three-index integrals on disk resident arrays."""

from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.mp2 import MP2
from outcore.chem.ri.scf import RHF, ROHF, UHF, density_fit

__all__ = ["MP2", "RHF", "ROHF", "UHF", "DensityFitting", "density_fit"]
