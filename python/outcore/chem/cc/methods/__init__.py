"""Methods of coupled cluster: what a plan has to know of each, and where its equations are.

A method of closed shells is a class of equations, `restricted.RestrictedEquations` or one that is derived of it,
whose `residual` is its own, and a line of the table here. Plans, checkpoints and commands take the rest from these.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.cc.restricted import RestrictedEquations


@dataclass(frozen=True)
class Method:
    """Attributes:
    title: for people and checkpoints.
    has_singles: single excitations have amplitudes.
    pair_products: in an iteration of closed shells, products of pairs with pairs: 2 (ov)^3 operations each.
    without: arrays of the table of closed shells that its equations do not ask for.
    is_for_open_shells, has_triples, has_natural_orbitals, has_amplitude_file: what else there is for it.
    """

    title: str
    has_singles: bool = True
    pair_products: int = 4
    without: tuple[str, ...] = ()
    is_for_open_shells: bool = False
    has_triples: bool = False
    has_natural_orbitals: bool = False
    has_amplitude_file: bool = False


METHODS = {
    "ccsd": Method(
        "CCSD", is_for_open_shells=True, has_triples=True, has_natural_orbitals=True, has_amplitude_file=True
    ),
    "dcsd": Method("DCSD", pair_products=2),
    "ccd": Method("CCD", has_singles=False, without=("Doo", "Dvo")),
    "lccd": Method("LCCD", has_singles=False, pair_products=2, without=("Doo", "Dvo")),
}
"""By the word of `--method`."""


def of(name: str) -> Method:
    """Raises OutcoreError (EINVAL): there is none."""
    if name not in METHODS:
        detail = f"method '{name}' is none of {', '.join(METHODS)}"
        raise OutcoreError(errno.EINVAL, "coupled cluster", detail=detail)
    return METHODS[name]


def equations(name: str) -> type[RestrictedEquations]:
    """Of closed shells."""
    from outcore.chem.cc.methods.ccd import CCDEquations
    from outcore.chem.cc.methods.dcsd import DCSDEquations
    from outcore.chem.cc.methods.lccd import LCCDEquations
    from outcore.chem.cc.restricted import RestrictedEquations

    found: dict[str, type[RestrictedEquations]] = {
        "ccsd": RestrictedEquations,
        "dcsd": DCSDEquations,
        "ccd": CCDEquations,
        "lccd": LCCDEquations,
    }
    return found[name]
