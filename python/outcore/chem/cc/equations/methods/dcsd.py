"""The equations of closed-shell DCSD, the distinguishable cluster.

Among products of two doubles the Coulomb rings stay, their terms in Fock matrices count half, and exchange rings
and ladders are left out. Singles dress integrals as in CCSD, whose equation for singles it has. Exact for two
electrons.

Kats, Manby, J. Chem. Phys. 139, 021102 (2013); Kats, J. Chem. Phys. 141, 061101 (2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.chem.cc.equations.restricted import RestrictedEquations

Values = np.ndarray[Any, np.dtype[Any]]


class DCSDEquations(RestrictedEquations):
    """Residuals of singles and doubles."""

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        (t1,) = amplitudes
        o = self.spaces.occupied
        f = self.dress(t1)
        w, x = self.of_amplitudes()
        singles = self._singles(t1, f, w)
        self.put_one_body(t1, f[:o, :o] + 0.5 * w, f[o:, o:] - 0.5 * x)
        self.ladder.contract(self.t2, self.steps)
        self.steps.step("R", self.rest, lambda: self._exchange_rings(t1, squares=False))
        self.steps.step("R", self.rest, lambda: self._direct_rings(squares=False))
        self.dvo += self.y  # Z: its square has the first term and the Coulomb rings
        self.room.contract("Qai,Qbj->aibj", self.dvo, self.dvo, out=self.w2)
        self._add_pairs(squares=False)
        return [singles]
