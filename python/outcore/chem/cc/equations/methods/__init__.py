"""Methods of coupled cluster: the facts that a plan needs about each.

A method of closed shells is a class of equations, `restricted.RestrictedEquations` or one that derives from it,
whose `residual` is its own, a line of the table here, and its class in `cc.plan.assembly`. Plans, checkpoints and
commands take the rest from these.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from outcore.base.errors import OutcoreError


@dataclass(frozen=True)
class MethodFacts:
    """Attributes:
    title: for people and checkpoints.
    has_singles: single excitations have amplitudes.
    has_ladder: integrals of a ladder, and of rings, are multiplied with doubles.
    is_for_open_shells, has_triples, has_densities, has_natural_orbitals, has_amplitude_file: what else the method
        has here.
    """

    title: str
    has_singles: bool = True
    has_ladder: bool = True
    is_for_open_shells: bool = False
    has_triples: bool = False
    has_densities: bool = False
    has_natural_orbitals: bool = False
    has_amplitude_file: bool = False


METHODS = {
    "ccsd": MethodFacts(
        "CCSD",
        is_for_open_shells=True,
        has_triples=True,
        has_densities=True,
        has_natural_orbitals=True,
        has_amplitude_file=True,
    ),
    "dcsd": MethodFacts("DCSD"),
    "cc2": MethodFacts("CC2", has_ladder=False),
    "ccd": MethodFacts("CCD", has_singles=False),
    "lccd": MethodFacts("LCCD", has_singles=False),
}
"""All methods, by the word of `--method`."""


def of(name: str) -> MethodFacts:
    """The facts of a method. Raises OutcoreError (EINVAL) for an unknown name."""
    if name not in METHODS:
        detail = f"method '{name}' is none of {', '.join(METHODS)}"
        raise OutcoreError(errno.EINVAL, "coupled cluster", detail=detail)
    return METHODS[name]
