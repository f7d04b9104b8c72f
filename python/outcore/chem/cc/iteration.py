"""What an iteration of coupled cluster has come to."""

from __future__ import annotations

from dataclasses import dataclass

from outcore.chem.cc.moved import NOTHING, Moved


@dataclass(frozen=True)
class Iteration:
    """energy, change: Hartree. norm: of the change of the amplitudes. moved: by its products, to and from disk."""

    number: int
    energy: float
    change: float
    norm: float
    seconds: float
    moved: Moved = NOTHING
