"""Options of every SCF, checked before anything is computed."""

from __future__ import annotations

import errno
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.job import preflight
from outcore.job.preflight import check_count, check_number

# Start guesses of PySCF's Hartree-Fock; it reads any other name as the first of them.
GUESSES = ("minao", "atom", "huckel", "mod_huckel", "1e", "hcore", "sap")


def check_guess(name: str) -> None:
    """Raises OutcoreError (EINVAL) for a start guess that PySCF would silently replace by another."""
    if name.lower() not in GUESSES:
        hint = "; --restart starts from orbitals" if name.lower().startswith("chk") else ""
        raise OutcoreError(
            errno.EINVAL, f"--guess {name}", detail=f"the start guesses are {', '.join(GUESSES)}{hint}"
        )


def convergence(allowed_error: float | None) -> float:
    """The default convergence of the energy (Hartree): its error must not exceed the allowed error of stored
    integrals. Sums in double precision do not converge below 1e-11."""
    return 1e-9 if allowed_error is None else min(1e-9, max(allowed_error, 1e-11))


def for_correlation(asked: float) -> tuple[float, float]:
    """The convergence of the energy (Hartree) and of the orbital gradient, for a method whose energy is to be
    converged to `asked` (Hartree). An error x of the orbitals changes the energy of their determinant by x^2, but
    the correlation energy by x. DIIS does not converge further than 1e-8."""
    gradient = min(1e-7, max(10 * asked, 1e-8))
    return gradient / 1000, gradient


def check_iterations(conv_tol: float | None, max_cycle: int) -> None:
    if conv_tol is not None:
        check_number("--conv-tol", conv_tol)
    check_count("--max-cycle", max_cycle)


def check_one_method(uhf: bool, rohf: bool, rhf: bool = False) -> None:
    """Raises OutcoreError (EINVAL) if the user asks for more than one method."""
    names = {"--uhf": uhf, "--rohf": rohf, "--rhf": rhf}
    asked = [name for name, is_asked in names.items() if is_asked]
    if len(asked) > 1:
        raise OutcoreError(errno.EINVAL, "choose options", detail=f"{' and '.join(asked)} exclude each other")


def check_smearing(given: dict[str, Any]) -> None:
    """Raises OutcoreError for a width out of range, or for options that fix occupations in another way."""
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
