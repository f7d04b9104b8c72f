"""The equations of closed-shell CC2.

Singles have the equation of CCSD. That of doubles is of second order: integrals are dressed with singles, and the
Fock matrix alone is multiplied with doubles, so there is no ladder and there are no rings. Where the Fock matrix
couples occupied and virtual orbitals, singles dress it as well.

Christiansen, Koch, Jorgensen, Chem. Phys. Lett. 243, 409 (1995).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.restricted import RestrictedEquations

if TYPE_CHECKING:
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class CC2Equations(RestrictedEquations):
    """Residuals of singles and doubles."""

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        (t1,) = amplitudes
        f = self.dress(t1)
        w, _ = self.of_amplitudes()
        singles = self._singles(t1, f, w)
        self.steps.step("R", self.rest, lambda: self._of_fock(t1))
        self.room.contract("Qai,Qbj->aibj", self.dvo, self.dvo, out=self.w2)
        self._add_pairs()
        return [singles]

    def _of_fock(self, t1: Values) -> None:
        """Puts f_ac t_ij^cb - f_ki t_kj^ab into R; the residual has both orders of its pairs."""
        c, o, f = self.room.contract, self.spaces.occupied, self.fock
        fvv, foo = f[o:, o:] - t1.T @ f[:o, o:], f[:o, :o] + f[:o, o:] @ t1.T
        c("ac,cibj->aibj", fvv, self.t2, out=self.rest)
        c("ki,akbj->aibj", foo, self.t2, out=self.rest, scale=-1.0, add=True)

    def _add_pairs(self, *, squares: bool = True) -> None:
        """Adds R in both orders of its pairs to W."""

        def add(tile: Tile) -> None:
            a, _, b, _ = tile
            other = self.rest.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
            self.w2.acc_tile(tile, self.rest.get_tile(tile) + other)

        self.room.each_tile(self.w2, add, "residual")
