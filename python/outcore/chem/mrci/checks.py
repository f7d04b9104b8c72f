"""Checks of the states that the search of a multireference CI has found. Functions are collective.

They check converged states only; `MRCI.converged` says whether all have converged.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from outcore.base.errors import NotConverged, OutcoreError

if TYPE_CHECKING:
    from outcore.chem.mrci.mrci import MRCI

_PURE = 0.1  # largest difference of <S^2> from the value of the spin


def packing(ci: MRCI) -> None:
    """Raises OutcoreError (ERANGE) if packing has raised an energy by more than the error bound."""
    bound = ci.settings.error_bound
    if bound and not ci.packing_error <= bound:
        raise OutcoreError(
            errno.ERANGE,
            "multireference CI",
            detail=f"packing has raised the energy by {ci.packing_error:.1e} Eh, more than its bound of "
            f"{bound:.1e} Eh; take a smaller bound, or 0",
        )


def weights(ci: MRCI) -> None:
    """Raises NotConverged if the weight of the references in a state is below the least: then they do not describe
    it."""
    least = ci.settings.limit_of_weights
    for root in _converged(ci):
        weight = ci.reference_weight(root)
        if weight < least:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"root {root + 1} has a weight of references of {weight:.4f}, less than {least:g}: the "
                "references do not describe this state; take more active orbitals or other references, fewer "
                "roots, or a smaller least weight",
            )


def spins(ci: MRCI) -> None:
    """Raises NotConverged if a root has converged to a state of another spin: with the spin shift its energy would
    belong to no state."""
    wanted = ci.spin / 2 * (ci.spin / 2 + 1)
    for root in _converged(ci):
        found = ci.spin_square(root)
        if not abs(found - wanted) < _PURE:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"root {root + 1} has <S^2> = {found:.4f}, and not {wanted:.4f}: there is a state of "
                f"higher spin below; raise the spin shift, which is {ci.settings.shift:g} Eh",
            )


def _converged(ci: MRCI) -> list[int]:
    return [root for root in range(ci.roots) if root not in ci.found.unconverged]
