"""The Lambda equations of closed-shell CCSD from three-index integrals.

    L = E + sum_ai l1[i,a] W1[a,i] + sum_aibj L[a,i,b,j] W2[a,i,b,j]

is stationary in the amplitudes, whose residuals are W1 and W2 (`restricted`): products of the multipliers with the
Jacobian (`transposed`) and the derivative of the energy add up to zero. PySCF has l1 / 2, and (2 L + L') / 3.

Koch, Jensen, Jorgensen, Helgaker, J. Chem. Phys. 93, 3345 (1990); Bozkaya, Sherrill, J. Chem. Phys. 144, 174103
(2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import Doubles, exchanged
from outcore.chem.cc.equations.transposed import TransposedProducts

if TYPE_CHECKING:
    from outcore.chem.cc.equations.restricted import RestrictedEquations
    from outcore.chem.cc.equations.triple_arrays import Derivatives
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class MultiplierEquations(TransposedProducts):
    """Residuals of multipliers, for converged amplitudes. Collective.

    Args:
        of: the equations of the amplitudes, whose arrays stay as they are from now on.
        t1: singles [i,a].
        of_triples: derivatives of (T), whose energy is part of L then.
    """

    def __init__(self, of: RestrictedEquations, t1: Values, of_triples: Derivatives | None = None) -> None:
        super().__init__(of, t1)
        self.of_triples = of_triples
        self.multipliers, self._w2, self.of_energy = self.room.array("L"), of.w2, True
        free = (self.rings, self.rest)
        self.doubles = [Doubles(self.multipliers, self._w2, self._put, (0, 0), self._second_order, free)]

    # ---- multipliers ----

    def _second_order(self, tile: Tile) -> Values:
        """Twice U of a tile: the first multipliers."""
        return 2.0 * self.of.u2.get_tile(tile)

    def put_first(self) -> list[Values]:
        """Puts multipliers of first order, 2 (T - T' / 2); returns 2 t1."""
        self.multipliers, self.of_energy = self.doubles[0].amplitudes, True
        self.room.each_tile(
            self.multipliers, lambda tile: self._put(tile, self._second_order(tile)), "multipliers"
        )
        self.sync()
        return [2.0 * self.t1]

    def _put(self, tile: Tile, values: Values) -> None:
        """Puts L of a tile, and its M. The caller synchronizes."""
        self.multipliers.put_tile(tile, values)
        self._put_half(tile, values)

    def sync(self) -> None:
        self.multipliers.sync()
        self.halves.sync()

    def energy(self, singles: list[Values]) -> float:
        """The linear part of the correlation energy with multipliers in place of 2 U and 2 t1 (Hartree): a number
        that converges as they do, and is no energy of a state."""
        (l1,) = singles
        o = len(l1)
        total = [float(np.sum(self.fock[:o, o:] * l1)) if self.room.world.rank == 0 else 0.0]

        def add(tile: Tile) -> None:
            value = np.vdot(exchanged(self.of.exchange.get_tile(tile)), self.multipliers.get_tile(tile))
            total.append((1.0 if tile[0] == tile[2] else 2.0) * float(value))

        self.room.each_tile(self.multipliers, add, "energy")
        return float(self.room.world.all_reduce(sum(total)))

    @property
    def one_particle(self) -> list[Values]:
        """gamma[p,q] = dL/df[p,q] with orbitals that do not respond, symmetric. The caller calls `of_multipliers`
        first."""
        o = len(self.t1)
        gamma: Values = self.one_body.copy()
        gamma[:o, o:] += self.t1
        both: Values = 0.5 * (gamma + gamma.T)
        return [both if self.of_triples is None else both + self.of_triples.one]

    # ---- residuals ----

    def residual(self, multipliers: list[Values]) -> list[Values]:
        """dL/dt1 [i,a] for L, M and these singles; dL/dT goes to `w2`."""
        (l1,) = multipliers
        found = self.product(l1, self._w2)
        return [found if self.of_triples is None else found + self.of_triples.t1]

    def added(self, tile: Tile) -> Values | None:
        return None if self.of_triples is None else self.of_triples.t2.get_tile(tile)
