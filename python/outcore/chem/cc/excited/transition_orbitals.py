"""Natural transition orbitals: pairs of a hole and a particle that a transition density consists of.

Martin, J. Chem. Phys. 118, 4775 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.excited import orbital_sets
from outcore.chem.cc.excited.orbital_sets import OrbitalSet

if TYPE_CHECKING:
    from outcore.chem.cc.excited.properties import StateProperties

Values = np.ndarray[Any, np.dtype[Any]]

_LEAST = 1e-3
"""Weight of a pair below which it is left out."""


@dataclass(frozen=True)
class SpinPairs:
    """Pairs of one spin, or of both spins of closed shells. weights: of pairs, the largest first. holes, particles:
    [function][pair]."""

    weights: Values
    holes: Values
    particles: Values

    @property
    def orbitals(self) -> OrbitalSet:
        """Holes, then particles. The occupation of an orbital is the weight of its pair; the energy of a hole is
        minus this weight, that of a particle plus this weight."""
        count = len(self.weights)
        return OrbitalSet(
            np.hstack([self.holes, self.particles]),
            ["hole"] * count + ["particle"] * count,
            np.concatenate([-self.weights, self.weights]),
            np.concatenate([self.weights, self.weights]),
        )


@dataclass(frozen=True)
class TransitionOrbitals:
    """spins: one for closed shells; alpha and beta for open ones. All weights of a transition add up to one."""

    spins: tuple[SpinPairs, ...]

    @property
    def weights(self) -> list[float] | dict[str, list[float]]:
        """Weights of pairs; for open shells by the name of the spin."""
        found = [each.weights.tolist() for each in self.spins]
        return found[0] if len(found) == 1 else dict(zip(("alpha", "beta"), found, strict=True))

    def write(self, path: Path, mol: Any) -> None:
        """Writes them in Molden's format. Replaces an existing file. Not collective. Raises OutcoreError."""
        orbital_sets.write(path, mol, [each.orbitals for each in self.spins], "transition orbitals")


def of_root(properties: StateProperties, root: int) -> TransitionOrbitals:
    """Orbitals of the transition from the ground state: singular vectors of its densities; weights are proportional
    to squares of singular values. Not collective."""
    found = [np.linalg.svd(each) for each in properties.transition_densities(root)]
    total = sum(float(np.sum(values**2)) for _, values, _ in found)
    made = []
    for (particles, values, holes), c in zip(found, properties.orbitals_of_spins, strict=True):
        weights = values**2 / total
        least = 1 if len(found) == 1 else 0
        count = max(least, int(np.sum(weights >= _LEAST)))
        made.append(SpinPairs(weights[:count], c @ holes[:count].T, c @ particles[:, :count]))
    return TransitionOrbitals(tuple(made))
