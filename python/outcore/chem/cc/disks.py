"""Bytes that the stages after iterations of coupled cluster take on disks, known before anything is computed, as
`least` has their memory. They come from plans for the memory of the run; each stage plans again when it begins, and
then checks its own room (`Inherited.check_disks`)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations import open_triple_arrays as open_arrays
from outcore.chem.cc.equations import triple_arrays as arrays
from outcore.chem.cc.plan import describe
from outcore.chem.cc.plan.layouts import arrays_of
from outcore.job.scratch import bytes_here, check_room

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.least import AfterIterations
    from outcore.chem.cc.plan.plan import Plan
    from outcore.chem.cc.plan.sizes import Sizes

TRIPLES, LAMBDA, DENSITIES = "derivatives of (T)", "Lambda equations", "three-index densities"
_DOUBLE = 8
_DOUBLES = {1: ("",), 2: ("aa", "ab", "bb")}
_SPINS = {1: ("",), 2: ("a", "b")}
_SUMS = {*arrays.ROWS, arrays.SMALL, arrays.DERIVATIVES[1]} | {
    *open_arrays.SAME_ROWS,
    *open_arrays.MIXED_ROWS,
    *open_arrays.BVO_ROWS,
    *open_arrays.BVV_ROWS,
    *open_arrays.BOO,
}
"""Names in the plan of the arrays to which tasks of (T) add; the checkpoint has copies."""


@dataclass(frozen=True)
class OnDisk:
    """Bytes of a stage, over all processes. arrays: on scratch disks. kept: of all arrays that the checkpoint has
    copies of by then, amplitudes among them."""

    arrays: int
    kept: int = 0


def kept_of_triples(plan: Plan) -> int:
    """Bytes of the sums of derivatives of (T) that a checkpoint has copies of."""
    return _bytes(plan, _SUMS)


def kept_of_multipliers(plan: Plan) -> int:
    """Bytes of multipliers, and of steps of their iterations, that a checkpoint has copies of."""
    return plan.kept_bytes - _amplitudes(plan)


def of_densities(sizes: Sizes) -> int:
    """Bytes of Gamma [P,p,q] over correlated orbitals of each spin, which lies on disk."""
    every = zip(sizes.occupied, sizes.virtual, strict=True)
    return sum(sizes.auxiliary * (o + v) ** 2 for o, v in every) * _DOUBLE


def stages(plans: dict[str, Plan]) -> dict[str, OnDisk]:
    """By name of the stage. plans: of TRIPLES, if there are any, and of LAMBDA."""
    plan, found = plans[LAMBDA], dict[str, OnDisk]()
    kept = _amplitudes(plan)
    if (before := plans.get(TRIPLES)) is not None:
        kept += kept_of_triples(before)
        found[TRIPLES] = OnDisk(before.disk_bytes, kept)
    kept += kept_of_multipliers(plan)
    found[LAMBDA] = OnDisk(plan.disk_bytes, kept)
    sizes = plan.sizes
    stay = _named("T", _DOUBLES, sizes) | _named("L", _DOUBLES, sizes)
    stay |= {name for each in ("Goo", "Gvo", "Gvv") for name in _named(each, _SPINS, sizes)}
    on_disk = {name for name, each in plan.arrays.items() if not each.in_memory}
    found[DENSITIES] = OnDisk(_bytes(plan, stay & on_disk) + of_densities(sizes), kept)
    return found


def plans_of(of: CCSD, wanted: AfterIterations) -> dict[str, Plan]:
    """Plans of the wanted stages, for the memory that was free before anything was computed. Collective."""
    found: dict[str, Plan] = {}
    if wanted.triples:
        found[TRIPLES] = of.estimate(describe.triple_derivatives)
    found[LAMBDA] = of.estimate(describe.response_of_triples if wanted.triples else describe.response)
    return found


def check(of: CCSD, wanted: AfterIterations) -> None:
    """Raises OutcoreError (ENOSPC) if disks have no room for a wanted stage after iterations, before any of it is
    computed. Collective."""
    if not wanted.multipliers or of.uncorrelated:
        return
    assert of.plan is not None
    # Most molecules are small: all arrays that any stage may ask for fit. Plans take longer.
    sizes = of.plan.sizes
    spaces = describe.spaces_of(sizes, max(sizes.virtual))
    bound = sum(each.bytes for each in arrays_of(sizes, spaces).values()) + of_densities(sizes)
    try:
        _check(of, DENSITIES, OnDisk(bound, bound))
        return
    except OutcoreError as error:
        if error.errno != errno.ENOSPC:
            raise
    try:
        plans = plans_of(of, wanted)
    except OutcoreError as error:
        if error.errno != errno.ENOMEM:
            raise
        return  # the stage may move integrals to disk, and checks again
    for name, need in stages(plans).items():
        if wanted.relaxed or name != DENSITIES:
            _check(of, name, need)


def _check(of: CCSD, stage: str, need: OnDisk) -> None:
    world, scratch = of.world, of.world.scratch
    # Arrays of the present room are given back, or go on as arrays of the stage.
    there = 0 if of.room is None else of.room.plan.disk_bytes
    with world.together("look at the scratch disk"):
        needs = [(Path(scratch), bytes_here(world, scratch, max(0, need.arrays - there)))]
    if of.kept is not None:
        needs.append((of.kept.directory, of.kept.room_after_iterations(need.kept)))
    check_room(world, stage, needs)


def check_densities(of: CCSD, sizes: Sizes) -> None:
    """Raises OutcoreError (ENOSPC) if there is no room for Gamma. Collective."""
    world, scratch = of.world, of.world.scratch
    with world.together("look at the scratch disk"):
        needs = [(Path(scratch), bytes_here(world, scratch, of_densities(sizes)))]
    check_room(world, DENSITIES, needs)


def _amplitudes(plan: Plan) -> int:
    return _bytes(plan, _named("T", _DOUBLES, plan.sizes))


def _named(name: str, parts: dict[int, tuple[str, ...]], sizes: Sizes) -> set[str]:
    return {f"{name}{each}" for each in parts[len(sizes.occupied)]}


def _bytes(plan: Plan, names: set[str]) -> int:
    return sum(each.bytes for name, each in plan.arrays.items() if name in names)
