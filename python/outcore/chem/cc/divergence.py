"""The error that ends diverging iterations; it names the amplitude that has changed most."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.cc.equations.doubles import Doubles
    from outcore.chem.cc.iteration import Iteration
    from outcore.job.world import World
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

_DIVERGED = 1e6  # norm of a change of the amplitudes


@dataclass(frozen=True)
class Names:
    """Numbers of the correlated orbitals of each spin, or of both spins of closed shells, from 1; frozen orbitals
    are counted."""

    occupied: Sequence[Sequence[int]]
    virtual: Sequence[Sequence[int]]

    def of_occupied(self, spin: int, i: int) -> str:
        return self._name(spin, self.occupied[spin][i])

    def of_virtual(self, spin: int, a: int) -> str:
        return self._name(spin, self.virtual[spin][a])

    def _name(self, spin: int, number: int) -> str:
        return f"{number}{'' if len(self.occupied) == 1 else 'ab'[spin]}"


def refuse(
    world: World,
    found: Iteration,
    names: Names,
    singles: Sequence[Values],
    doubles: Sequence[Doubles],
    change: Callable[[Doubles, Tile], Values],
) -> None:
    """Raises OutcoreError (ERANGE) if the iteration has diverged. Collective.

    singles: changes of singles [i,a] of each spin. change: returns the change of a tile [a,i,b,j] of doubles; not
    collective.
    """
    if np.isfinite(found.norm) and np.isfinite(found.energy) and found.norm < _DIVERGED:
        return
    worst = (0.0, "")
    with world.together("name the diverged amplitudes"):
        worst = max((worst, *_of_singles(names, singles), *_of_doubles(names, doubles, change)))
    size, which = max(world.gather(worst))
    raise OutcoreError(
        errno.ERANGE,
        "converge coupled cluster",
        detail=f"iteration {found.number} diverged: the amplitudes changed by {found.norm:.1e}, "
        f"that of orbitals {which} by {size:.1e} alone, the energy is {found.energy:.6g} Eh; "
        "a level shift (--level-shift 0.3) or damping (--damping 0.5) may help",
    )


def _of_singles(names: Names, singles: Sequence[Values]) -> Iterator[tuple[float, str]]:
    """The largest change of each spin, and its orbitals."""
    for s, each in enumerate(singles):
        (i, a), size = _largest(each)
        yield size, f"{names.of_occupied(s, i)} -> {names.of_virtual(s, a)}"


def _of_doubles(
    names: Names, doubles: Sequence[Doubles], change: Callable[[Doubles, Tile], Values]
) -> Iterator[tuple[float, str]]:
    """The largest change of each tile of this process, and its orbitals."""
    for each in doubles:
        s, r = each.spins
        for tile in each.residual.own_tiles():
            box = each.residual.layout.box(tile)
            place, size = _largest(change(each, tile))
            a, i, b, j = (n + part.start for n, part in zip(place, box, strict=True))
            occupied = f"{names.of_occupied(s, i)}, {names.of_occupied(r, j)}"
            yield size, f"{occupied} -> {names.of_virtual(s, a)}, {names.of_virtual(r, b)}"


def _largest(change: Values) -> tuple[tuple[int, ...], float]:
    """The place of the largest element, and its size. NaN counts as infinite."""
    sizes = np.where(np.isfinite(change), abs(change), np.inf)
    place = np.unravel_index(sizes.argmax(), sizes.shape)
    return tuple(int(n) for n in place), float(sizes[place])
