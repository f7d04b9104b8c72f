"""The equations of closed-shell LCCD: CCD without products of amplitudes (also L-CPMET, CEPA(0) of doubles).

Cizek, J. Chem. Phys. 45, 4256 (1966); Bartlett, Annu. Rev. Phys. Chem. 32, 359 (1981).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.chem.cc.equations.restricted import RestrictedEquations

Values = np.ndarray[Any, np.dtype[Any]]


class LCCDEquations(RestrictedEquations):
    """Residuals of doubles; those of singles are 0, as singles have to be."""

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        o, bvo = self.spaces.occupied, self.integrals.bvo
        self.of_amplitudes()
        self.put_one_body(None, self.fock[:o, :o], self.fock[o:, o:])
        self.ladder.contract(self.t2, self.steps)
        self.steps.step("R", self.rest, lambda: self._exchange_rings(None, squares=False))
        self.steps.step("R", self.rest, self._rings)
        self.room.contract("Qai,Qbj->aibj", bvo, bvo, out=self.w2)
        self._add_pairs(squares=False)
        return [np.zeros_like(amplitudes[0])]

    def _rings(self) -> None:
        """Adds direct rings and Coulomb rings to R; the residual has both orders of its pairs."""
        self._direct_rings(squares=False)
        self.room.contract("Qai,Qbj->aibj", self.integrals.bvo, self.y, out=self.rest, add=True)
