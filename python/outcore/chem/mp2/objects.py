"""Gradients of RI-MP2, by PySCF's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyscf import lib
from pyscf.grad import rhf

from outcore.chem.gradients.scanner import scanner_of
from outcore.chem.mp2.gradient import response

if TYPE_CHECKING:
    from outcore.chem.mp2.densities import Matrix


class Gradients(rhf.GradientsBase):  # type: ignore[misc]
    """Gradients of an MP2 object, in its memory and on its processes. `kernel` is collective, and runs the method
    if that has not been done. Raises OutcoreError, the same on all processes."""

    mol: Any
    atmlst: Any
    de: Any

    def kernel(self, atmlst: Any = None) -> Matrix:
        """The gradient [atom][x] (Hartree/Bohr); also sets `de`. atmlst: atoms; None: as before, all at first."""
        with response(self.base) as found:
            de = found.gradient()
        self.atmlst = self.atmlst if atmlst is None else atmlst
        de = de if self.atmlst is None else de[list(self.atmlst)]
        self.de = de
        return de

    grad = lib.alias(kernel, alias_name="grad")

    def as_scanner(self) -> Any:
        """A function of a molecule, which gives its energy (Hartree) and gradient. Collective, as its calls are."""
        return scanner_of(self)
