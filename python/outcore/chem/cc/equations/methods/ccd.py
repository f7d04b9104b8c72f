"""The equations of closed-shell CCD: those of CCSD without single excitations, so integrals are not dressed.

Pople, Krishnan, Schlegel, Binkley, Int. J. Quantum Chem. 14, 545 (1978).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.chem.cc.equations.restricted import RestrictedEquations

Values = np.ndarray[Any, np.dtype[Any]]


class CCDEquations(RestrictedEquations):
    """Residuals of doubles; those of singles are 0, as singles have to be."""

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        o, b = self.spaces.occupied, self.integrals
        w, x = self.of_amplitudes()
        self.put_one_body(None, self.fock[:o, :o] + w, self.fock[o:, o:] - x)
        self.ladder.contract(self.t2, self.steps)
        self.steps.step("R", self.rest, lambda: self._exchange_rings(None))
        self.steps.step("R", self.rest, self._direct_rings)
        self.y += b.bvo  # Z: its square has the first term and the Coulomb rings
        self.room.contract("Qai,Qbj->aibj", self.y, self.y, out=self.w2)
        self._add_pairs()
        return [np.zeros_like(amplitudes[0])]
