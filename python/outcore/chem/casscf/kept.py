"""Orbitals of a CASSCF in the directory of a checkpoint, from which a run of the same problem continues."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.keep import stages
from outcore.keep.problem import Problem

Matrix = NDArray[np.float64]

# Names in the directory of a checkpoint: of the orbitals, and the beginning of the names of states.
NAME, STATES = "casscf", "ci"
_FORMAT = 1
_ORTHONORMAL = 1e-6


class KeptOrbitals:
    """The kept orbitals for a mean field and further settings that orbitals depend on. Raises OutcoreError."""

    def __init__(self, directory: Path, mf: Any, more: dict[str, Any]) -> None:
        self._path, self._mf = directory / NAME, mf
        settings = {**problem.mean_field(mf), **more, "hamiltonian": problem.digest(mf.get_hcore().round(9))}
        self._problem = Problem("CASSCF orbitals", _FORMAT, settings, problem.ROUNDED)

    def save(self, coefficients: Matrix, iteration: int, *, converged: bool = False) -> None:
        """Saves coefficients [function][orbital] in place of earlier ones."""
        facts = {"iteration": iteration, "converged": converged}
        stages.save(self._path, self._problem, {"mo_coeff": np.asarray(coefficients)}, facts)

    def find(self) -> tuple[Matrix, int, bool] | None:
        """The kept coefficients, the number of their iteration, and whether the CASSCF had converged; None if there
        are none. Raises OutcoreError: another problem (EINVAL), damaged (EIO)."""
        try:
            with stages.opened(self._path, self._problem, "continue a CASSCF") as saved:
                found, iteration = np.asarray(saved["mo_coeff"]), saved.meta.get("iteration")
                converged = saved.meta.get("converged") is True
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None
        overlap = np.asarray(self._mf.get_ovlp())
        good = found.ndim == 2 and len(found) == len(overlap) and type(iteration) is int
        if not good or abs(found.T @ overlap @ found - np.eye(found.shape[1])).max() > _ORTHONORMAL:
            raise stages.damaged("continue a CASSCF", self._path, "its orbitals are not orthonormal")
        return found, iteration, converged
