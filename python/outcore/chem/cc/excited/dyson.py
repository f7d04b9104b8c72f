"""Dyson orbitals of ions: the orbital of the missing electron, or of the additional one."""

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

_NOTHING = 1e-6
"""Squared norm below which a spin has no Dyson orbital: the state has not changed that spin."""


@dataclass(frozen=True)
class DysonOrbitals:
    """Dyson orbitals of one state.

    Attributes:
        strength: the pole strength.
        spins: the orbitals [function] of each spin from the left and from the right, of norm one; None without one.
            For closed shells alpha alone.
    """

    strength: float
    spins: tuple[tuple[Values, Values] | None, ...]

    def write(self, path: Path, mol: Any) -> None:
        """Writes them in Molden's format, with the pole strength as occupation. Replaces an existing file. Not
        collective. Raises OutcoreError."""
        sets = []
        for each in self.spins:
            columns = np.zeros((mol.nao, 0)) if each is None else np.stack(each, axis=1)
            count = columns.shape[1]
            labels = ["left", "right"][:count]
            strengths = np.full(count, self.strength)
            sets.append(OrbitalSet(columns, labels, np.arange(float(count)), strengths))
        orbital_sets.write(path, mol, sets, "Dyson orbitals")


def of_root(properties: StateProperties, root: int) -> DysonOrbitals:
    """Dyson orbitals of a root. Not collective."""
    found: list[tuple[Values, Values] | None] = []
    left, right = properties.dyson_orbitals(root)
    for one, other, c in zip(left, right, properties.orbitals_of_spins, strict=True):
        squares = float(one @ one), float(other @ other)
        if min(squares) < _NOTHING:
            found.append(None)
            continue
        sign = 1.0 if one @ other >= 0.0 else -1.0  # signs of vectors are arbitrary
        found.append((c @ one / squares[0] ** 0.5, sign * c @ other / squares[1] ** 0.5))
    return DysonOrbitals(float(properties.pole_strengths[root]), tuple(found))
