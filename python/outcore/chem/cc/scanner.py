"""Energies of one geometry after another, by PySCF's name.

scanner = ccsd.as_scanner()
energy = scanner(mol)
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem.cc.least import AfterIterations
from outcore.chem.ri.fitting import DensityFitting

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD


class Scanner:
    """Energies with the settings of a CCSD object; attributes are those of the newest object. Each call gives back
    the arrays of the object before it, the first one, too. It takes over no checkpoint and no starting amplitudes.

    derivatives: the caller will ask for them after each energy.
    """

    def __init__(self, ccsd: CCSD) -> None:
        self._ccsd, self._scf = ccsd, ccsd.scf_object.as_scanner()
        self.derivatives = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ccsd, name)

    def __call__(self, mol: Any) -> float:
        """The energy (Hartree), with (T) if the first object had it. Collective. Raises NotConverged."""
        if not hasattr(mol, "atom_coords"):
            mol = self._ccsd.mol.set_geom_(mol, inplace=False)
        old, old_mol = self._ccsd, self._ccsd.mol
        old.give_back()
        self._scf(mol)
        fitting = vars(self._scf).get("with_df")
        if isinstance(fitting, DensityFitting):  # its integrals are recomputed where they are needed
            fitting.close_integrals()
        new = self._ccsd = old.another(self._scf, **asdict(old.settings))
        if self.derivatives:
            new.follows = AfterIterations(
                triples=old.has_triples, multipliers=True, relaxed=True, gradient=True
            )
        new.kernel()
        if not new.converged:
            raise NotConverged(
                None, f"{new.method_facts.title} of {old_mol.natm} atoms", detail="its amplitudes"
            )
        if not old.has_triples:
            return new.e_tot
        return new.e_tot + new.ccsd_t(derivatives=self.derivatives)
