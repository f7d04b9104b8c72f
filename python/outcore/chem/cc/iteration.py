"""What an iteration of coupled cluster has come to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Iteration:
    """energy, change: Hartree. norm: of the change of the amplitudes."""

    number: int
    energy: float
    change: float
    norm: float
    seconds: float
