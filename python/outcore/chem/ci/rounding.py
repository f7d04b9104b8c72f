"""How vectors of a CI are rounded so that they pack, and what that does to energies.

A stored vector is rounded to whole multiples of a step, a power of two, and is from then on what it is. Products of
vectors with H times them are summed before that is rounded. So at the end of a search, when H has been applied to
the roots as they are stored, energies are exact for these, not below the exact ones (MacDonald, Phys. Rev. 43, 830
(1933)), and what rounding of the products does to residuals is known.

Let H be ((E, R^T), (R, C)) in the space of k roots, with energies E and true residuals R, and beside it. Exact
energies are those L of E - R^T (C - L)^-1 R, so with |R|^2 <= sum of |r|^2, and if C, the energies of what is
orthogonal to the roots, lies at least `GAP` above them, no root is further than sum |r|^2 / GAP above its exact
energy.

Before the end errors of rounding are taken to be independent: that decides about bits and iterations alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore import _core

if TYPE_CHECKING:
    from outcore.chem.ci.vector import Array
    from outcore.chem.small_space import Matrix

GAP = 0.1  # Hartree: what the next state is taken to lie above the roots, at least
_PARTS = 16  # of the tolerance, that one rounding may take: some are made in each iteration
_CORRECTIONS = 1e-2  # error of a correction as a part of it
_FINER = 256  # are steps of states at the end of a search
_SPREAD = math.sqrt(12.0)  # a step over the standard deviation of errors of rounding


def tolerance(error_bound: float, roots: int) -> float:
    """Norm of the true residual of each root (Hartree) for this error of the energies."""
    return math.sqrt(error_bound * GAP / roots)


def raised(residuals: Matrix) -> float:
    """How far energies may lie above the exact ones (Hartree), by norms of true residuals."""
    return float(residuals @ residuals) / GAP


@dataclass(frozen=True)
class RoundingSteps:
    """Of the elements of vectors, for roots whose residuals are to have norms of `tolerance`.

    determinants: of the space. mean, square: of its diagonal elements of H (Hartree), and of their squares."""

    tolerance: float
    determinants: int
    mean: float
    square: float

    def reach(self, level: float) -> float:
        """About the norm of (H - level) d for rounding errors d of norm 1 (Hartree): elements beside the diagonal
        add little."""
        return math.sqrt(max(self.square - 2 * level * self.mean + level**2, 0.0))

    def product(self) -> float:
        return self._for_norm(self.tolerance / _PARTS)

    def vector(self, level: float, *, last: bool = False) -> float:
        """Of one whose product with H - level is kept, though it is rounded. last: of a state at the end."""
        found = self._for_norm(self.tolerance / _PARTS / max(self.reach(level), 1.0))
        return found / _FINER if last else found

    def correction(self, size: float) -> float:
        """Of one of about this norm."""
        return self._for_norm(_CORRECTIONS * size)

    def _for_norm(self, error: float) -> float:
        return power_below(_SPREAD * error / math.sqrt(self.determinants))


def power_below(value: float) -> float:
    """The largest power of two that is not above it."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def rounded(values: Array, step: float, added: Array | None = None) -> float:
    """Rounds in place to whole multiples of a power of two; no zero has a sign. What was added goes to `added`.
    Returns the sum of its squares."""
    return _core.ci_round(values, step, added)
