"""How a CI is solved: one object for the command, for Python and for PySCF's CASSCF."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.chem.ci import guess

PRECISIONS = ("double", "mixed")
MAX_VECTORS = 32
LEAST_BOUND, MOST_BOUND = 1e-14, 1e-3  # Hartree: of errors of energies
MAX_GUESS = 4000  # determinants, whose Hamiltonian is a matrix in memory


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Raises OutcoreError (EINVAL) for what is out of range.

    residual: norm of H x - E x below which a root is converged (Hartree).
    max_cycle: iterations.
    vectors: of the search, for each root, at least 2; 3 do as well as many more near equilibrium.
    precision: "double", or "mixed": single precision until residuals are small, double in the end.
    guess_size: determinants of the small space whose states the search begins with.
    spin_shift: Hartree; times S^2 - M(M+1) it is added to the Hamiltonian during the search, so that states of
        higher spin stay away. Energies are without it. No effect on orbitals that differ in spin.
    ordered: sums in one order always, so that runs repeat bit by bit.
    error_bound: Hartree; roots are converged when their energies are within it, and vectors on disk are packed for
        that, see rounding.py; in place of `residual`. 0: they are stored as they are.
    checkpoint: directory in which states are kept, and looked for first.
    any_integrals: states that are found there may be of other integrals, as of orbitals before an optimisation
        changed them: the search begins with them. False: they are refused.
    """

    residual: float = 1e-6
    max_cycle: int = 100
    vectors: int = 3
    precision: str = "double"
    guess_size: int = guess.SIZE
    spin_shift: float = 0.05
    ordered: bool = False
    error_bound: float = 0.0
    checkpoint: Path | None = None
    any_integrals: bool = False

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", Path(self.checkpoint))
        wrong = (
            (not 0 < self.residual < 1, f"a residual of {self.residual:g}; it is between 0 and 1"),
            (self.max_cycle < 1, f"{self.max_cycle} iterations"),
            (
                not 2 <= self.vectors <= MAX_VECTORS,
                f"{self.vectors} vectors; there may be 2 to {MAX_VECTORS}",
            ),
            (
                self.precision not in PRECISIONS,
                f"precision '{self.precision}' is none of {', '.join(PRECISIONS)}",
            ),
            (
                not 1 <= self.guess_size <= MAX_GUESS,
                f"a small space of {self.guess_size} determinants; it may have 1 to {MAX_GUESS}",
            ),
            (
                self.any_integrals and self.checkpoint is None,
                "any_integrals has no effect without a checkpoint",
            ),
            (not 0 <= self.spin_shift < 100, f"a spin shift of {self.spin_shift:g} Hartree; it is 0 to 100"),
            (
                not (self.error_bound == 0 or LEAST_BOUND <= self.error_bound <= MOST_BOUND),
                f"an error bound of {self.error_bound:g} Hartree; 0, or {LEAST_BOUND:g} to {MOST_BOUND:g}",
            ),
            (
                self.error_bound > 0 and self.residual != Settings.residual,
                "a residual beside an error bound, which says itself when roots are converged",
            ),
            (
                self.error_bound > 0 and self.precision != "double",
                "mixed precision with an error bound, which needs double precision",
            ),
        )
        for is_wrong, detail in wrong:
            if is_wrong:
                raise OutcoreError(errno.EINVAL, "full CI", detail=detail)
