"""Settings of MP2, beside those of all methods."""

from __future__ import annotations

from dataclasses import dataclass

from outcore.chem.ri.fitting import SCREENING

SCS = (6 / 5, 1 / 3)  # Grimme (2003)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """scs: factors of the opposite-spin and the same-spin part in `e_scs`. screening: of pairs of functions."""

    scs: tuple[float, float] = SCS
    screening: float = SCREENING
