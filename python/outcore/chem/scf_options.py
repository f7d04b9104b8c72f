"""Options of every SCF, checked before anything is computed."""

from __future__ import annotations

import errno
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.job import preflight
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


def for_correlation(asked: float) -> tuple[float, float]:
    """Of the energy (Hartree) and the orbital gradient, for a method whose energy is to be converged to `asked`
    (Hartree). Orbitals that are off by x change the energy of their determinant by x^2, but what correlation adds
    by x. DIIS loses its way below 1e-8."""
    gradient = min(1e-7, max(10 * asked, 1e-8))
    return gradient / 1000, gradient


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


def check_smearing(given: dict[str, Any]) -> None:
    """Raises OutcoreError for a width out of range, or where occupations are not those of a distribution."""
    width = given["smearing"]
    preflight.check_number("--smearing", width, zero=True, below=10.0)
    if not width:
        return
    other = {
        "--rohf": given["rohf"],
        "--second-order": given["second_order"],
        "--stability": given["stability"],
        "--irrep-nelec": given["irrep_nelec"],
        "--swap": given["swap"],
    }
    preflight.refuse(
        other, "with --smearing, whose occupations are those of a distribution; --uhf has both spins"
    )
