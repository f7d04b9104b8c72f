"""Remedies for the lack of size consistency of a truncated CI: corrections of its energy, and other functionals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from outcore.base import html

FUNCTIONALS = ("ci", "acpf", "aqcc")


def penalty(functional: str, electrons: int) -> float:
    """The weight of all determinants except references in the norm of a functional."""
    n = electrons
    if n < 2:  # no correlation
        return 1.0
    if functional == "acpf":
        return 2.0 / n
    if functional == "aqcc":
        return 1.0 - (n - 3) * (n - 2) / (n * (n - 1))
    return 1.0


@dataclass(frozen=True)
class Corrections:
    """Corrections (Hartree) to be added to the energy of a CI."""

    davidson: float
    renormalised: float
    pople: float
    meissner: float

    def _repr_html_(self) -> str:
        rows = [(name.capitalize(), f"{value:.8f} Eh") for name, value in asdict(self).items()]
        return html.facts("Corrections of a CI for size consistency", rows)


def corrections(correlation: float, weight: float, electrons: int) -> Corrections:
    """The corrections of a CI. correlation: the energy of the CI minus that of the references. weight: sum of
    squares of the coefficients of the references in the CI. electrons: number of correlated ones."""
    n, missing = electrons, 1.0 - weight
    if not 0 < weight <= 1:
        return Corrections(math.nan, math.nan, math.nan, math.nan)
    if n < 2:  # no correlation
        return Corrections(0.0, 0.0, 0.0, 0.0)
    meissner = correlation * missing / weight * (n - 2) * (n - 3) / (n * (n - 1))
    return Corrections(
        correlation * missing, correlation * missing / weight, _pople(correlation, weight, n), meissner
    )


def _pople(correlation: float, weight: float, n: int) -> float:
    if weight <= 0.5:  # the angle has no tangent
        return math.nan
    if weight > 1 - 1e-12:
        return 0.0
    angle = math.acos(math.sqrt(weight))
    tangent, secant = math.tan(2 * angle), 1 / math.cos(2 * angle)
    return correlation * ((math.sqrt(n * n + 2 * n * tangent**2) - n) / (2 * (secant - 1)) - 1)
