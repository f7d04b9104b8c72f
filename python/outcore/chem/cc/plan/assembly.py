"""The equations of a calculation, with their integrals and ladders: in a room of arrays, or in one that records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import methods
from outcore.chem.cc.equations.densities import ClosedDensities
from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
from outcore.chem.cc.equations.integrals import Integrals
from outcore.chem.cc.equations.ladder import Ladder
from outcore.chem.cc.equations.methods.cc2 import CC2Equations
from outcore.chem.cc.equations.methods.ccd import CCDEquations
from outcore.chem.cc.equations.methods.dcsd import DCSDEquations
from outcore.chem.cc.equations.methods.lccd import LCCDEquations
from outcore.chem.cc.equations.multipliers import MultiplierEquations
from outcore.chem.cc.equations.open_densities import OpenDensities
from outcore.chem.cc.equations.open_multipliers import OpenMultiplierEquations
from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives
from outcore.chem.cc.equations.opposite_ladder import OppositeLadder
from outcore.chem.cc.equations.restricted import RestrictedEquations
from outcore.chem.cc.equations.transformed import TransformedHamiltonian
from outcore.chem.cc.equations.triple_arrays import Derivatives
from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import LeftEquations, StateEquations, StateVector
    from outcore.chem.cc.plan.room import Room
    from outcore.parallel.tasks import Progress

Values = np.ndarray[Any, np.dtype[Any]]


OF_CLOSED_SHELLS: dict[str, type[RestrictedEquations]] = {
    "ccsd": RestrictedEquations,
    "dcsd": DCSDEquations,
    "cc2": CC2Equations,
    "ccd": CCDEquations,
    "lccd": LCCDEquations,
}
"""The equations of each of `methods.METHODS`."""


def spin_names(spins: int) -> list[str]:
    """Endings of names of arrays, for each spin."""
    return [""] if spins == 1 else ["a", "b"]


def equations(
    room: Room,
    integrals: Sequence[Integrals],
    focks: Sequence[Values],
    *,
    is_stored: bool,
    builds: bool = True,
    progress: Progress | None = None,
) -> RestrictedEquations | UnrestrictedEquations:
    """The equations of amplitudes, with integrals and Fock matrices of each spin. is_stored: integrals of ladders
    are stored. builds: they are made here, else the room has them. Collective."""
    spaces, restricted = room.spaces, len(integrals) == 1
    signs: tuple[int, ...] = (0, 1) if restricted else (1,)
    if not methods.of(room.sizes.method).has_ladder:
        signs = ()
    ladders = [
        Ladder(room, space, each, is_stored=is_stored, name=name, signs=signs)
        for space, each, name in zip(spaces, integrals, spin_names(len(integrals)), strict=True)
    ]
    for each in ladders if builds else ():
        each.build(progress)
    if restricted:
        return OF_CLOSED_SHELLS[room.sizes.method](room, spaces[0], integrals[0], ladders[0], focks[0])
    opposite = OppositeLadder(room, spaces, integrals, is_stored=is_stored)
    if builds:
        opposite.build(progress)
    return UnrestrictedEquations(room, spaces, integrals, ladders, opposite, focks)


def converged(
    room: Room, focks: Sequence[Values], *, is_stored: bool, builds: bool = False
) -> RestrictedEquations | UnrestrictedEquations:
    """The equations in a room that has three-index integrals, those of the ladders if they are stored and not
    `builds`, and doubles that have converged. Collective."""
    integrals = [
        Integrals(room, each, name) for each, name in zip(room.spaces, spin_names(len(focks)), strict=True)
    ]
    of = equations(room, integrals, focks, is_stored=is_stored, builds=builds)
    if isinstance(of, RestrictedEquations):
        room.each_tile(of.t2, lambda tile: of.put_u(tile, of.t2.get_tile(tile)), "amplitudes")
        of.u2.sync()
    return of


def multipliers(
    room: Room,
    focks: Sequence[Values],
    singles: Sequence[Values],
    of_triples: Derivatives | OpenDerivatives | None = None,
    *,
    is_stored: bool,
    builds: bool = False,
) -> MultiplierEquations | OpenMultiplierEquations:
    """The Lambda equations; see `converged`. of_triples: of CCSD(T). Collective."""
    of = converged(room, focks, is_stored=is_stored, builds=builds)
    if isinstance(of, UnrestrictedEquations):
        assert not isinstance(of_triples, Derivatives)
        return OpenMultiplierEquations(of, list(singles), of_triples)
    assert not isinstance(of_triples, OpenDerivatives)
    return MultiplierEquations(of, singles[0], of_triples)


def states(
    kind: str,
    room: Room,
    focks: Sequence[Values],
    singles: Sequence[Values],
    *,
    is_stored: bool,
    builds: bool = False,
    together: int = 1,
    keeps_rings: bool = False,
) -> StateEquations:
    """Products of H with states of a kind; see `converged`. together, keeps_rings: see `Singlets`, of kinds that
    have them. Collective."""
    of = converged(room, focks, is_stored=is_stored, builds=builds)
    make: Any = kinds.of(kind).equations
    if kinds.of(kind).of_many:
        make = partial(make, together=together, keeps_rings=keeps_rings)
    found: StateEquations
    if isinstance(of, UnrestrictedEquations):
        found = make(OpenTransformedHamiltonian(of, list(singles)))
    else:
        found = make(TransformedHamiltonian(of, singles[0]))
    return found


def left_states(
    kind: str,
    room: Room,
    focks: Sequence[Values],
    singles: Sequence[Values],
    right: Sequence[StateVector],
    *,
    is_stored: bool,
    builds: bool = False,
) -> LeftEquations:
    """Products of H with left vectors of a kind of states; see `converged`. right: vectors to begin with.
    Collective."""
    of = converged(room, focks, is_stored=is_stored, builds=builds)
    found: LeftEquations = kinds.of(kind).left(of, singles, right)
    return found


def densities(
    of: MultiplierEquations | OpenMultiplierEquations, singles: Sequence[Values]
) -> ClosedDensities | OpenDensities:
    """Densities of converged multipliers. singles: of these. Collective."""
    if isinstance(of, OpenMultiplierEquations):
        return OpenDensities(of, list(singles))
    return ClosedDensities(of, singles[0])
