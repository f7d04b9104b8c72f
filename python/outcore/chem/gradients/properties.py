"""Properties of a one-particle density: moments, charges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix

DEBYE = 2.541746473  # Debye in an atomic unit of the dipole moment


@dataclass(frozen=True)
class Properties:
    """dipole [x]; quadrupole [x][y], without trace, sum q (3 r r - r^2) / 2 (Buckingham): atomic units, about the
    origin of the coordinates. charges: of Mulliken, of each atom. spins: of Mulliken, alpha less beta."""

    dipole: Matrix
    quadrupole: Matrix
    charges: Matrix
    spins: Matrix


def of(mol: Any, spins: tuple[Matrix, Matrix]) -> Properties:
    """Properties of densities of alpha and beta over basis functions, [n][n]. Not collective."""
    total, charges, places = spins[0] + spins[1], mol.atom_charges(), mol.atom_coords()
    with mol.with_common_origin((0.0, 0.0, 0.0)):
        first = np.einsum("xmn,mn->x", mol.intor("int1e_r"), total)
        second = np.einsum("xmn,mn->x", mol.intor("int1e_rr"), total).reshape(3, 3)
    dipole = charges @ places - first
    moments = np.einsum("a,ax,ay->xy", charges, places, places) - second
    overlap = mol.intor_symmetric("int1e_ovlp")
    atoms = np.repeat(np.arange(mol.natm), np.diff(mol.aoslice_by_atom()[:, 2:])[:, 0])

    def of_atoms(density: Matrix) -> Matrix:
        return np.bincount(atoms, np.einsum("mn,mn->m", density, overlap), mol.natm).astype(np.float64)

    return Properties(
        dipole,
        (3 * moments - np.trace(moments) * np.eye(3)) / 2,
        charges - of_atoms(total),
        of_atoms(spins[0] - spins[1]),
    )
