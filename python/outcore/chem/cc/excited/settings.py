"""Settings of a search for states, which its user may choose."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.job import arguments

METHOD = "EOM-CCSD"


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """Settings of a search for states. Raises OutcoreError (EINVAL) for values out of range, and TypeError for
    those of another type.

    nroots: number of states.
    residual: norm of residuals below which a state has converged (Hartree). An energy may be wrong by as much, as
        H is not symmetric.
    max_cycle: iterations at most.
    cvs: core-excited states and core ions of closed shells, by core-valence separation: how many of the lowest
        orbitals are the core, or a list of their numbers from 0. Each excitation is from one core orbital at least.
        None: excitations are from all orbitals.
    multiplicity: of excited states, 1 or 3; None: singlets.
    guess: singles that roots begin with and follow, one for each root: [i,a] of `active_orbitals`, of ions [i] or
        [a]; of open shells a pair of these, for alpha and beta, but for a flipped spin [i,a] from alpha to beta. A
        root is the state whose singles overlap most with them, wherever it lies. `States.start_vectors` returns
        this form. None: roots are the lowest.
    """

    nroots: int = 1
    residual: float = 1e-6
    max_cycle: int = 100
    multiplicity: int | None = None
    cvs: int | Sequence[int] | None = None
    guess: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        arguments.integer("nroots", self.nroots)
        arguments.integer("max_cycle", self.max_cycle)
        if not isinstance(self.residual, Real):
            raise TypeError(f"residual is {self.residual!r}, no number")
        if self.guess is not None and not isinstance(self.guess, Sequence | np.ndarray):
            raise TypeError("guess is no list of start vectors")
        for is_wrong, detail in (
            (self.nroots < 1, f"{self.nroots} roots; 1 or more are needed"),
            (not 0 < self.residual < 1, f"a residual of {self.residual:g}; it lies between 0 and 1"),
            (self.cvs is not None and not self.core, "a core without orbitals"),
            (
                self.guess is not None and len(self.guess) != self.nroots,
                f"{0 if self.guess is None else len(self.guess)} start vectors for {self.nroots} roots",
            ),
            (self.max_cycle < 1, f"{self.max_cycle} iterations; 1 or more are needed"),
        ):
            if is_wrong:
                raise OutcoreError(errno.EINVAL, METHOD, detail=detail)

    @property
    def core(self) -> list[int]:
        """Numbers of the core orbitals, from 0."""
        if self.cvs is None:
            return []
        given = arguments.integers("cvs", self.cvs)
        return sorted(set(given)) if np.ndim(self.cvs) else list(range(given[0]))
