"""Bounds and estimates of the error of an energy."""

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
    """Bounds for one root, in Hartree. "Exact energies" and "the next state" refer to the Hamiltonian of the
    search: to all states in the space of the determinants, with the spin shift added.

    energy: as computed. If the root is the lowest, the exact energy is not above it, except by rounding.
    weinstein: an exact energy lies within this distance: the norm of the residual plus the possible error of H
        times the vector. Rigorous.
    temple: the exact energy is not below this, if the next state is not below the energy of the next root minus its
        residual norm; None for the highest root that was computed. Rigorous under that condition.
    extrapolated: the limit of the energies, if they fall with the squares of the residuals; an estimate.
    uncertainty: of `extrapolated`; an estimate.
    raised: the exact energy is at most this much lower, if the next state lies rounding.GAP or more above the
        roots. Rigorous under that condition.
    stored: the change of the energy by rounding of the stored elements of the vector; an estimate, of second order.
    """

    energy: float
    weinstein: float
    temple: float | None
    extrapolated: float
    uncertainty: float
    raised: float
    stored: float


def of(iterations: Sequence[Iteration], shift: float = 0.0) -> list[Bound]:
    """The bounds of all roots after these iterations. `shift` is added to their energies."""
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
    """Extrapolates the energy from the last two iterations, if they have the same precision. The uncertainty is the
    difference from the extrapolation one iteration earlier."""
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
