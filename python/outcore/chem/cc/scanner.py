"""Energies of one geometry after another, by PySCF's name.

scanner = ccsd.as_scanner()
energy = scanner(mol)
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem.cc.least import AfterIterations
from outcore.chem.gradients.geometries import GeometryCheckpoint, run_scf
from outcore.chem.ri.fitting import DensityFitting

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD


class Scanner:
    """Energies with the settings of a CCSD object; attributes are those of the newest object. Each call gives back
    the arrays of the object before it, the first one, too. It takes over no starting amplitudes.

    If the object has a checkpoint, each geometry has its own in a directory below that, from which another run goes
    on within the geometry. It is removed when the next geometry begins, see `GeometryCheckpoint`.

    derivatives: the caller will ask for them after each energy.
    """

    def __init__(self, ccsd: CCSD) -> None:
        self._ccsd, self._scf = ccsd, ccsd.scf_object.as_scanner()
        self.derivatives = False
        kept = ccsd.checkpoint
        self._places = None if kept is None else GeometryCheckpoint(ccsd.world, kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ccsd, name)

    def __call__(self, mol: Any) -> float:
        """The energy (Hartree), with (T) if the first object had it. Collective. Raises NotConverged."""
        if not hasattr(mol, "atom_coords"):
            mol = self._ccsd.mol.set_geom_(mol, inplace=False)
        old, old_mol = self._ccsd, self._ccsd.mol
        old.give_back()
        place = None if self._places is None else self._places.at(mol)
        run_scf(self._scf, mol, old.world, place)
        fitting = vars(self._scf).get("with_df")
        if isinstance(fitting, DensityFitting):  # its integrals are recomputed where they are needed
            fitting.close_integrals()
        new = self._ccsd = old.another(self._scf, checkpoint=place, **asdict(old.settings))
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

    def remove_checkpoint(self) -> None:
        """Gives back all arrays, and removes the checkpoint of the last geometry. Collective."""
        self._ccsd.give_back()
        if self._places is not None:
            self._places.remove()
