"""Settings of NEVPT2."""

from __future__ import annotations

from dataclasses import dataclass

from outcore.chem.ri.fitting import SCREENING


@dataclass(frozen=True)
class Settings:
    """screening: threshold for pairs of functions in fitted integrals, see `outcore.chem.ri.pairs.Pairs`."""

    screening: float = SCREENING
