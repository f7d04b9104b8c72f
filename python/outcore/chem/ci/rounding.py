"""Rounding of the vectors of a CI, so that they pack, and its effect on energies.

A stored vector is rounded to whole multiples of a step, a power of two; the search goes on with the rounded vector.
Scalar products of vectors with H times vectors are summed before H times the vectors is rounded. At the end of a
search H is applied to the stored roots. So energies are exact expectation values of the stored roots, not below the
exact energies (MacDonald, Phys. Rev. 43, 830 (1933)), and the effect of rounding of the products on residuals is
known.

Let H be ((E, R^T), (R, C)): E are the energies in the space of the k roots, R the true residuals, C is H in the
space orthogonal to the roots. Exact energies L are eigenvalues of E - R^T (C - L)^-1 R, and |R|^2 <= sum of |r|^2.
If all eigenvalues of C lie at least `GAP` above the exact energies, no root lies more than sum |r|^2 / GAP above
its exact energy.

Before the end, rounding errors are assumed to be independent: the assumption affects numbers of bits and iterations
only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore import _core

if TYPE_CHECKING:
    from outcore.chem.ci.vector import Array
    from outcore.chem.small_space import Matrix

GAP = 0.1  # Hartree: the next state is assumed to lie at least this far above the roots
_PARTS = 16  # one rounding may take this fraction of the tolerance: each iteration rounds several times
_CORRECTIONS = 1e-2  # error of a correction, relative to it
_FINER = 256  # steps of states are so many times finer at the end of a search
_SPREAD = math.sqrt(12.0)  # a step over the standard deviation of rounding errors


def tolerance(error_bound: float, roots: int) -> float:
    """The norm of the true residual of each root (Hartree) that guarantees this error of the energies."""
    return math.sqrt(error_bound * GAP / roots)


def raised(residuals: Matrix) -> float:
    """The largest distance of energies above the exact ones (Hartree), from norms of true residuals."""
    return float(residuals @ residuals) / GAP


@dataclass(frozen=True)
class RoundingSteps:
    """Steps for rounding elements of vectors, for roots whose residuals have to reach norms of `tolerance`.

    determinants: number in the space. mean, square: mean of the diagonal elements of H (Hartree) and of their
    squares."""

    tolerance: float
    determinants: int
    mean: float
    square: float

    def reach(self, level: float) -> float:
        """About the norm of (H - level) d for rounding errors d of norm 1 (Hartree): off-diagonal elements add
        little."""
        return math.sqrt(max(self.square - 2 * level * self.mean + level**2, 0.0))

    def product(self) -> float:
        return self._for_norm(self.tolerance / _PARTS)

    def vector(self, level: float, *, last: bool = False) -> float:
        """The step for a vector that is rounded while its stored product with H - level stays. last: for a state at
        the end."""
        found = self._for_norm(self.tolerance / _PARTS / max(self.reach(level), 1.0))
        return found / _FINER if last else found

    def correction(self, size: float) -> float:
        """The step for a correction of about this norm."""
        return self._for_norm(_CORRECTIONS * size)

    def _for_norm(self, error: float) -> float:
        return power_below(_SPREAD * error / math.sqrt(self.determinants))


def power_below(value: float) -> float:
    """The largest power of two that is not above `value`."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def rounded(values: Array, step: float, added: Array | None = None) -> float:
    """Rounds in place to whole multiples of `step`, a power of two; no zero has a sign. `added` gets the changes.
    Returns the sum of their squares."""
    return _core.ci_round(values, step, added)
