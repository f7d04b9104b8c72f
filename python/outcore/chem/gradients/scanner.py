"""Energies and gradients of one geometry after another, of methods after the SCF, by PySCF's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyscf import lib

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix


class GradientScanner(lib.GradScanner):  # type: ignore[misc]
    """A scanner of gradients whose `base` has an `as_scanner`."""

    def __call__(self, molecule: Any, **given: Any) -> tuple[float, Matrix]:
        if not hasattr(molecule, "atom_coords"):
            molecule = self.base.mol.set_geom_(molecule, inplace=False)
        energy = self.base(molecule)
        self.mol = molecule
        return energy, self.kernel(**given)

    def remove_checkpoint(self) -> None:
        """Removes the checkpoint of the last geometry. Collective."""
        self.base.remove_checkpoint()


def scanner_of(gradients: Any) -> Any:
    """A function of a molecule, which gives its energy (Hartree) and gradient. Collective, as its calls are."""
    return lib.set_class(GradientScanner(gradients), (GradientScanner, gradients.__class__))
