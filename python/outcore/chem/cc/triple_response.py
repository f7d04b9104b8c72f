"""Derivatives of (T) of a coupled-cluster calculation, before its Lambda equations."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc import disks
from outcore.chem.cc.equations.integrals import Integrals
from outcore.chem.cc.equations.open_triple_derivatives import OpenTripleDerivatives
from outcore.chem.cc.equations.open_triples import OpenTriplesOf
from outcore.chem.cc.equations.triple_derivatives import TripleDerivatives
from outcore.chem.cc.equations.triples import TriplesOf
from outcore.chem.cc.inherited import Inherited, amplitudes, three_index
from outcore.chem.cc.plan import assembly, describe

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives
    from outcore.chem.cc.equations.triple_arrays import Derivatives
    from outcore.chem.cc.keep.kept_steps import KeptSteps
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array

_COUPLED = 1e-4
"""The largest Fock matrix element between occupied and virtual orbitals (Hartree): derivatives neglect the effect
of such elements on (T)."""


def check(of: CCSD) -> None:
    """Raises OutcoreError (ENOTSUP) for calculations that have no derivatives of (T)."""
    for each in of.spins:
        o = each.occupied
        if abs(each.fock[:o, o:]).max(initial=0.0) > _COUPLED:
            raise _refused(
                "they are of orbitals of a Hartree-Fock calculation, RHF or UHF, that has converged"
            )
    if of.room is not None and of.room.signs is not None:
        raise _refused("they are not there yet for integrals that have no positive matrix")


def derive(of: CCSD) -> tuple[Inherited, Derivatives | OpenDerivatives]:
    """Computes (T), which sets `e_t`, and its derivatives. Returns the arrays that the Lambda equations begin with,
    derivatives among them, and the derivatives. Collective. Raises OutcoreError: ENOMEM, ENOSPC."""
    before = of.room
    assert before is not None and of.equations is not None
    inherited = Inherited(of, before, three_index(of.equations))
    plan = inherited.plan(describe.triple_derivatives)
    inherited.check_disks(
        plan, lambda kept: kept.room_for_triples(disks.kept_of_triples(plan)), disks.TRIPLES
    )
    room = inherited.room(plan)
    names = assembly.spin_names(len(of.spins))
    integrals = [Integrals(room, each, name) for each, name in zip(room.spaces, names, strict=True)]
    arrays = {name: room.array(name) for name in amplitudes(of.equations)}
    for name, each in zip(names, integrals, strict=True):
        arrays |= {f"Boo{name}": each.boo, f"Bvo{name}": each.bvo, f"Bvv{name}": each.bvv}
    doubles = [arrays[name] for name in amplitudes(of.equations)]
    steps = None
    if of.kept is not None:
        steps = of.kept.derivatives(room, doubles, of.spins, of.state)
    made = _made(of, room, integrals, doubles, steps)
    try:
        of.e_t = made.run(of.progress("derivatives of triples"))
    finally:
        if steps is not None:
            steps.close()
    of.moved_by_triples = room.moved
    before.close()
    return Inherited(of, room, arrays | made.found.named), made.found


def _made(
    of: CCSD, room: Room, integrals: list[Integrals], doubles: list[Array], steps: KeptSteps | None
) -> TripleDerivatives | OpenTripleDerivatives:
    work, block, focks = room.plan.work_bytes, of.settings.block, [each.fock for each in of.spins]
    if of.restricted:
        closed = TriplesOf(room, room.spaces[0], integrals[0], doubles[0], focks[0])
        return TripleDerivatives(closed, of.singles[0], work, block, steps)
    aa, ab, bb = doubles
    given = OpenTriplesOf(room, room.spaces, integrals, [aa, bb], ab, focks)
    return OpenTripleDerivatives(given, of.singles, work, block, steps)


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, "derivatives of (T)", detail=detail)
