"""Reasons to doubt the result of a correlated method, one line each, and how a user hears of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]

_ABOVE = 1e-6  # Hartree: less is rounding of equal energies


class DoubtfulResult(UserWarning):
    """The result solves the equations, but perhaps not for the state that the user means."""


def of_orbitals(spins: Sequence[tuple[Values, Values]]) -> list[str]:
    """Lines about a determinant that is not the lowest of its occupation. spins: energies of occupied and of
    virtual orbitals (Hartree) for each spin, or once for closed shells."""
    found = []
    for number, (occupied, virtual) in enumerate(spins):
        which = "" if len(spins) == 1 else f" of spin {('alpha', 'beta')[number]}"
        if len(occupied) and len(virtual) and occupied.max() > virtual.min() + _ABOVE:
            found.append(
                f"an occupied orbital{which} at {occupied.max():.6f} Eh lies above a virtual one at "
                f"{virtual.min():.6f} Eh: the determinant is not the lowest of its occupation, and the result may "
                "be of an excited state"
            )
    return found


def of_energy(correlation: float, threshold: float) -> list[str]:
    """Lines about a correlation energy that is positive and exceeds a threshold (Hartree)."""
    if not correlation > threshold:
        return []
    return [
        f"the correlation energy is positive, {correlation:.10f} Eh: the amplitudes may be another solution of the "
        "equations than the one of the state"
    ]


def tell(world: World, lines: Sequence[str], say: Callable[[str], None] | None) -> None:
    """Passes the lines to `say`; without `say`, the first process warns with Python's warnings."""
    for line in lines:
        if say is not None:
            say(line)
        elif world.rank == 0:
            warnings.warn(line, DoubtfulResult, stacklevel=3)
