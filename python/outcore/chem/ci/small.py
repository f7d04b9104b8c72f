"""The small eigenvalue problem in the space of a few vectors that are neither orthogonal nor normalised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_DEPENDENT = {
    "float64": 1e-11,
    "float32": 1e-7,
}  # eigenvalue of overlaps of normalised vectors that counts as 0


@dataclass(frozen=True)
class Ritz:
    """The lowest states: energies, and coefficients [state][vector] of normalised states."""

    energies: Matrix
    coefficients: Matrix


def ritz(overlap: Matrix, hamiltonian: Matrix, states: int, dtype: str = "float64") -> Ritz:
    """The `states` lowest. What is linearly dependent within the precision of `dtype`, in which the vectors are
    stored, is left out; vectors that are zero as well.

    Raises ValueError if there are not so many independent vectors."""
    norms = np.sqrt(np.maximum(np.diagonal(overlap), 0.0))
    there = norms > 0
    scale = np.where(there, 1.0 / np.where(there, norms, 1.0), 0.0)
    s = overlap * np.outer(scale, scale)
    h = hamiltonian * np.outer(scale, scale)
    h, s = (h + h.T) / 2, (s + s.T) / 2
    shift = float(h[0, 0])  # differences of energies count, not their size
    h -= shift * s
    values, vectors = np.linalg.eigh(s)
    kept = values > _DEPENDENT[dtype] * values[-1]
    if int(kept.sum()) < states:
        raise ValueError(f"{int(kept.sum())} independent vectors for {states} states")
    basis = vectors[:, kept] / np.sqrt(values[kept])
    energies, c = np.linalg.eigh(basis.T @ h @ basis)
    coefficients = (basis @ c[:, :states]).T * scale
    return Ritz(energies[:states] + shift, coefficients)
