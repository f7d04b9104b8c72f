"""The settings of a CI: one class for the command, for Python and for PySCF's CASSCF."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from outcore.base.errors import OutcoreError
from outcore.chem.ci import guess

PRECISIONS = ("double", "mixed")
MAX_VECTORS = 32
LEAST_BOUND, MOST_BOUND = 1e-14, 1e-3  # Hartree: limits of `error_bound`
MAX_GUESS = 4000  # determinants of the small space: its Hamiltonian is a matrix in memory


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a CI. Raises OutcoreError (EINVAL) for values out of range.

    residual: norm of H x - E x below which a root is converged (Hartree).
    max_cycle: most iterations.
    vectors: of the search for each root, at least 2; near equilibrium 3 are as good as many more.
    precision: "double", or "mixed": single precision until residuals are small, double in the end.
    guess_size: determinants of the small space whose states the search begins with.
    guess_selection: how these determinants are chosen: "energy": the lowest diagonal elements; "weights": the
        largest weights in a small CI, see selected.py.
    spin_shift: Hartree; during the search it is added to the Hamiltonian, times S^2 - M(M+1), so that states of
        higher spin stay away. Energies are without it. No effect if orbitals differ in spin.
    ordered: sums are always made in one order, so that runs repeat bit by bit.
    error_bound: Hartree; replaces `residual`: roots are converged when the errors of their energies are within it,
        and vectors on disk are packed to this accuracy, see rounding.py. 0: they are not rounded.
    any_integrals: states that are found in the checkpoint may belong to other integrals, as those of orbitals
        before an optimisation step: the search begins with them. False: they are refused.
    """

    residual: float = 1e-6
    max_cycle: int = 100
    vectors: int = 3
    precision: str = "double"
    guess_size: int = guess.SIZE
    guess_selection: str = guess.SELECTIONS[0]
    spin_shift: float = 0.05
    ordered: bool = False
    error_bound: float = 0.0
    any_integrals: bool = False

    def __post_init__(self) -> None:
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
                self.guess_selection not in guess.SELECTIONS,
                f"selection by '{self.guess_selection}' is none of {', '.join(guess.SELECTIONS)}",
            ),
            (not 0 <= self.spin_shift < 100, f"a spin shift of {self.spin_shift:g} Hartree; it is 0 to 100"),
            (
                not (self.error_bound == 0 or LEAST_BOUND <= self.error_bound <= MOST_BOUND),
                f"an error bound of {self.error_bound:g} Hartree; 0, or {LEAST_BOUND:g} to {MOST_BOUND:g}",
            ),
            (
                self.error_bound > 0 and self.residual != Settings.residual,
                "a residual beside an error bound, which already decides when roots are converged",
            ),
            (
                self.error_bound > 0 and self.precision != "double",
                "mixed precision with an error bound, which needs double precision",
            ),
        )
        for is_wrong, detail in wrong:
            if is_wrong:
                raise OutcoreError(errno.EINVAL, "full CI", detail=detail)
