"""Natural transition orbitals: pairs of a hole and a particle that a transition density consists of.

Martin, J. Chem. Phys. 118, 4775 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import plain_file

if TYPE_CHECKING:
    from outcore.chem.cc.excited.properties import StateProperties

Values = np.ndarray[Any, np.dtype[Any]]

_LEAST = 1e-3
"""Weight of a pair below which it is left out."""


@dataclass(frozen=True)
class TransitionOrbitals:
    """weights: of pairs, the largest first; all of a transition add up to one. holes, particles:
    [function][pair]."""

    weights: Values
    holes: Values
    particles: Values

    def write(self, path: Path, mol: Any) -> None:
        """Holes, then particles, in Molden's format: the occupation of an orbital is the weight of its pair; the
        energy of a hole is minus that, of a particle plus that. Replaces a file that is there. Not collective.
        Raises OutcoreError."""
        from pyscf.tools import molden

        orbitals = np.hstack([self.holes, self.particles])
        labels = ["hole"] * len(self.weights) + ["particle"] * len(self.weights)
        weights = np.concatenate([self.weights, self.weights])
        energies = np.concatenate([-self.weights, self.weights])
        with plain_file.replaced(path, "write transition orbitals") as new:
            molden.from_mo(mol, str(new), orbitals, symm=labels, ene=energies, occ=weights)


def of_root(properties: StateProperties, root: int) -> TransitionOrbitals:
    """Of the transition from the ground state: singular vectors of `transition_density`, whose squared singular
    values are weights. Not collective."""
    particles, values, holes = np.linalg.svd(properties.transition_density(root))
    weights = values**2 / np.sum(values**2)
    count = max(1, int(np.sum(weights >= _LEAST)))
    c = properties.orbitals
    return TransitionOrbitals(weights[:count], c @ holes[:count].T, c @ particles[:, :count])
