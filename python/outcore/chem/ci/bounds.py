"""What is known of the error of an energy."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.ci import rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outcore.chem.ci.search import Iteration

_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass(frozen=True)
class Bound:
    """Of one root, in Hartree. Exact energies and the next state are those of the Hamiltonian that was searched: of
    all states among the determinants of the space, with what the spin shift adds to them.

    energy: as computed; the exact one is not above it by more than rounding, if the root is the lowest.
    weinstein: there is an exact energy within so much of it: the norm of the residual, and what H times the vector
        may be wrong by. Rigorous.
    temple: the exact energy is not lower than this, if the next state is not lower than its own energy less its
        residual norm; None for the highest root that was computed. Rigorous under that condition.
    extrapolated: where energies go that fall as the square of residuals do, and uncertainty of it; an estimate.
    raised: the exact energy is not lower by more than this, if the next state lies rounding.GAP or more above the
        roots. Rigorous under that condition.
    stored: what the energy of the vector differs by because its elements are stored rounded; an estimate, of
        second order.
    """

    energy: float
    weinstein: float
    temple: float | None
    extrapolated: float
    uncertainty: float
    raised: float
    stored: float


def of(iterations: Sequence[Iteration], shift: float = 0.0) -> list[Bound]:
    """Of all roots after these iterations; `shift` is added to their energies."""
    last, found = iterations[-1], list[Bound]()
    norms = last.residuals + last.errors
    for root, (energy, residual) in enumerate(zip(last.energies, norms, strict=True)):
        temple = None
        if root + 1 < len(last.energies):
            gap = last.energies[root + 1] - norms[root + 1] - energy
            temple = float(energy - last.energy_errors[root] - residual**2 / gap + shift) if gap > 0 else None
        extrapolated, uncertainty = _extrapolated(iterations, root)
        stored = _ROUNDING[last.precision] ** 2 * max(float(last.above[root]), 0.0)
        found.append(
            Bound(
                float(energy) + shift,
                float(residual),
                temple,
                extrapolated + shift,
                uncertainty,
                rounding.raised(norms) + float(last.energy_errors[root]),
                stored,
            )
        )
    return found


def _extrapolated(iterations: Sequence[Iteration], root: int) -> tuple[float, float]:
    """By the last two iterations of one precision; what the two before would have given tells how far to trust
    it."""
    points = [
        (float(each.energies[root]), float(each.residuals[root]) ** 2)
        for each in iterations[-3:]
        if each.precision == iterations[-1].precision
    ]
    guesses = []
    for (before, square), (energy, smaller) in itertools.pairwise(points):
        falls = square > smaller and before > energy
        guesses.append(energy - (before - energy) / (square - smaller) * smaller if falls else energy)
    if not guesses:
        return points[-1][0], float(np.sqrt(points[-1][1]))
    before = guesses[-2] if len(guesses) > 1 else points[-1][0]
    return guesses[-1], abs(guesses[-1] - before)
