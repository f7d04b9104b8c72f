"""Orbitals that show states, in Molden's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import plain_file

Values = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OrbitalSet:
    """Orbitals of one spin, or of both spins of closed shells. coefficients: [function][orbital]. labels, energies,
    occupations: one for each orbital, as in the file."""

    coefficients: Values
    labels: Sequence[str]
    energies: Values
    occupations: Values


def write(path: Path, mol: Any, spins: Sequence[OrbitalSet], what: str) -> None:
    """Writes a file, or replaces it. what: for messages. Not collective. Raises OutcoreError."""
    from pyscf.tools import molden

    with (
        plain_file.replaced(path, f"write {what}") as new,
        new.open("w", encoding="utf-8") as file,
    ):
        molden.header(mol, file)
        for each, spin in zip(spins, ("Alpha", "Beta"), strict=False):
            molden.orbital_coeff(
                mol,
                file,
                each.coefficients,
                spin=spin,
                symm=list(each.labels),
                ene=each.energies,
                occ=each.occupations,
            )
