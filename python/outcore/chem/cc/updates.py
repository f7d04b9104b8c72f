"""Amplitudes of one iteration after another: those of second order, then updates by residuals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.diis import Diis

if TYPE_CHECKING:
    from outcore.chem.cc.equations.doubles import Doubles, Equations
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.settings import Settings
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

_SMALLEST_GAP = 1e-2  # Hartree


class Updates:
    """Updates of the amplitudes of some equations. Collective, except `change`.

    is_mixed: an error has left doubles of two iterations.
    """

    def __init__(
        self, room: Room, spins: list[CorrelatedOrbitals], equations: Equations, vectors: int
    ) -> None:
        """vectors: number of vectors of the extrapolation."""
        self._room, self._spins, self._equations, self._vectors = room, spins, equations, vectors
        self._diis: Diis | None = None  # made when it is needed, as (T) needs none
        self.is_mixed = False

    @property
    def extrapolation(self) -> Diis:
        if self._diis is None:
            names = [""] if len(self._spins) == 1 else ["aa", "ab", "bb"]
            self._diis = Diis(self._room, self._vectors, [(f"e{each}", f"t{each}") for each in names])
        return self._diis

    def close(self) -> None:
        """Gives back the vectors of the extrapolation."""
        if self._diis is not None:
            self._diis.close()
            self._diis = None

    def put_second_order(self, shift: float) -> None:
        for each in self._equations.doubles:

            def put(tile: Tile, each: Doubles = each) -> None:
                each.put(tile, each.integrals(tile) / self._gaps(each, tile, shift))

            self._room.each_tile(each.amplitudes, put, "amplitudes of second order")
        self._equations.sync()

    def advance(self, singles: list[Values], settings: Settings) -> tuple[list[Values], float, list[Values]]:
        """Updates the amplitudes. Returns the singles; the norm of the change without shift, damping and
        extrapolation, which do not bring the solution nearer; and the change of the singles."""
        residuals = self._equations.residual(singles)
        kept, shift = 1.0 - settings.damping, settings.level_shift
        is_plain = not shift and not settings.damping
        pairs = list(zip(residuals, self._spins, strict=True))
        changes = [kept * each / spin.gaps(shift) for each, spin in pairs]
        errors = changes if is_plain else [each / _negative(spin.gaps()) for each, spin in pairs]

        def changed(tile: Tile, each: Doubles) -> tuple[Values, Values]:
            change = self.change(settings, each, tile)
            error = change
            if not is_plain:
                error = each.residual.get_tile(tile) / _negative(self._gaps(each, tile, 0.0))
            return each.amplitudes.get_tile(tile) + change, error

        made: list[Callable[[Tile], tuple[Values, Values]]]
        made = [partial(changed, each=each) for each in self._equations.doubles]
        diis = self.extrapolation
        norm = diis.add(_flat(singles) + _flat(changes), _flat(errors), made)
        self.is_mixed = True
        new = diis.combine(diis.coefficients(), [each.put for each in self._equations.doubles])
        self._equations.sync()
        self.is_mixed = False
        ends = np.cumsum([each.size for each in singles])[:-1]
        parts = zip(np.split(new, ends), singles, strict=True)
        return [part.reshape(each.shape) for part, each in parts], norm, changes

    def change(self, settings: Settings, doubles: Doubles, tile: Tile) -> Values:
        """The change of a tile [a,i,b,j] of amplitudes by its residual, with shift and damping of the settings."""
        gaps = self._gaps(doubles, tile, settings.level_shift)
        return (1.0 - settings.damping) * doubles.residual.get_tile(tile) / gaps

    def _gaps(self, doubles: Doubles, tile: Tile, shift: float) -> Values:
        """e_i + e_j - e_a - e_b - 2 shift of a tile [a,i,b,j]."""
        first, second = (
            self._spins[s].gaps(shift).T[slice(*self._room.spaces[s].v.cuts[n : n + 2])]
            for s, n in zip(doubles.spins, (tile[0], tile[2]), strict=True)
        )
        return first[:, :, None, None] + second


def _negative(gaps: Values) -> Values:
    """Occupied less virtual energies, none of them near zero: without a shift some may be."""
    return np.minimum(gaps, -_SMALLEST_GAP)


def _flat(values: list[Values]) -> Values:
    return np.concatenate([each.ravel() for each in values])
