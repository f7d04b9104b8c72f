"""Options of every SCF, checked before anything is computed."""

from __future__ import annotations

import errno

from outcore.base.errors import OutcoreError
from outcore.job.preflight import check_count, check_number

# Start guesses of PySCF's Hartree-Fock; it takes any other name for the first of them.
GUESSES = ("minao", "atom", "huckel", "mod_huckel", "1e", "hcore", "sap")


def check_guess(name: str) -> None:
    """Raises OutcoreError (EINVAL) for a start guess that PySCF would replace by another in silence."""
    if name.lower() not in GUESSES:
        hint = "; --restart starts from orbitals" if name.lower().startswith("chk") else ""
        raise OutcoreError(
            errno.EINVAL, f"--guess {name}", detail=f"the start guesses are {', '.join(GUESSES)}{hint}"
        )


def convergence(allowed_error: float | None) -> float:
    """Of the energy (Hartree), unless something else is asked for: what is not converged must not be more than what
    storing integrals may cause. Sums in double precision end it below 1e-11."""
    return 1e-9 if allowed_error is None else min(1e-9, max(allowed_error, 1e-11))


def check_iterations(conv_tol: float | None, max_cycle: int) -> None:
    if conv_tol is not None:
        check_number("--conv-tol", conv_tol)
    check_count("--max-cycle", max_cycle)


def check_one_method(uhf: bool, rohf: bool, rhf: bool = False) -> None:
    """Raises OutcoreError (EINVAL) where more than one was asked for."""
    names = {"--uhf": uhf, "--rohf": rohf, "--rhf": rhf}
    asked = [name for name, is_asked in names.items() if is_asked]
    if len(asked) > 1:
        raise OutcoreError(errno.EINVAL, "choose options", detail=f"{' and '.join(asked)} exclude each other")
