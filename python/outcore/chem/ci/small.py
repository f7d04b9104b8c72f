"""The small eigenvalue problem in the space of a few vectors that are neither orthogonal nor normalised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# Of H times a vector, relative to it: many times what was seen, as sums of such errors are no bounds.
ERRORS = {"float64": 1e-14, "float32": 1e-6}
_DOUBTFUL = 0.25  # of a residual, or of the tolerance: the part that may be such an error

# Of a normalised vector, or of a combination of such: the square of what is independent of others that counts as 0.
_DEPENDENT = {"float64": 1e-11, "float32": 1e-5}


@dataclass(frozen=True)
class Ritz:
    """States, the lowest first: energies, and coefficients [state][vector] of normalised states."""

    energies: Matrix
    coefficients: Matrix


def ritz(
    overlap: Matrix, hamiltonian: Matrix, states: int, dtype: str = "float64", *, every: bool = False
) -> Ritz:
    """The `states` lowest, or every one. The first `states` vectors are the present ones, which all count; what is
    linearly dependent on them, or among the others, within the precision of `dtype`, in which the others are
    stored, is left out; vectors that are zero as well. (Else a direction that lies in the space of the states would
    take any part in them, and never leave.)

    Raises ValueError if there are not so many independent vectors."""
    norms = np.sqrt(np.maximum(np.diagonal(overlap), 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    s = overlap * np.outer(scale, scale)
    h = hamiltonian * np.outer(scale, scale)
    h, s = (h + h.T) / 2, (s + s.T) / 2
    shift = float(h[0, 0])  # differences of energies count, not their size
    h -= shift * s
    present = _basis(s[:states, :states], _DEPENDENT["float64"])
    if present.shape[1] < states:
        raise ValueError(f"{present.shape[1]} independent vectors for {states} states")
    # The others without what they have of the states.
    projector = np.eye(len(s))
    projector[:states, states:] = -present @ present.T @ s[:states, states:]
    rest = (projector.T @ s @ projector)[states:, states:]
    there = np.flatnonzero(np.diagonal(rest) > _DEPENDENT[dtype]) + states
    others = projector[:, there] / np.sqrt(np.diagonal(rest)[there - states])
    basis = np.zeros((len(s), states))
    basis[:states] = present
    basis = np.hstack([basis, others @ _basis(others.T @ s @ others, _DEPENDENT[dtype])])
    energies, c = np.linalg.eigh(basis.T @ h @ basis)
    count = len(energies) if every else states
    coefficients = (basis @ c[:, :count]).T * scale
    return Ritz(energies[:count] + shift, coefficients)


def _basis(overlap: Matrix, least: float) -> Matrix:
    """Orthonormal combinations of normalised vectors."""
    values, vectors = np.linalg.eigh(overlap)
    kept = values > least * values[-1] if len(values) else np.zeros(0, bool)
    found: Matrix = vectors[:, kept] / np.sqrt(values[kept])
    return found


def doubtful(errors: Matrix, residuals: Matrix, tolerance: float, sizes: Matrix) -> NDArray[np.bool_]:
    """Of which states H times them, that sums of many vectors have made, may be too wrong for their residuals. It
    may be wrong by vectors of norms `errors`; `sizes`: norms of H times the states."""
    new = ERRORS["float64"] * sizes
    found: NDArray[np.bool_] = errors > np.maximum(_DOUBTFUL * np.maximum(residuals, tolerance), 10 * new)
    return found
