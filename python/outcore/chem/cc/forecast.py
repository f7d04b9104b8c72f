"""Predicted time and disk space of the parts of coupled cluster after its iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from outcore.chem.cc import disks
from outcore.chem.gradients.forecast import AfterEnergy, PredictedPart

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.least import AfterIterations
    from outcore.chem.ri.auxiliary import Purpose

TRIPLES, LAMBDA, DENSITIES = disks.TRIPLES, disks.LAMBDA, "densities"


def after_iterations(
    cc: CCSD, sets: Mapping[Purpose, Mole], wanted: AfterIterations, storage: str, free_bytes: int
) -> dict[str, PredictedPart]:
    """The wanted parts, in the memory of the run; the seconds of Lambda equations are those of one iteration. sets:
    molecules with the auxiliary functions of the SCF and of coupled cluster. storage, free_bytes: see
    `gradients.forecast.on_disk`. Collective."""
    plans = disks.plans_of(cc, wanted)
    needs = disks.stages(plans)
    # A committed array stays beside the one that replaces it.
    kept = {name: 0 if cc.kept is None else 2 * each.kept for name, each in needs.items()}
    found = {}
    if wanted.triples:
        found[TRIPLES] = PredictedPart(plans[TRIPLES].seconds_once, needs[TRIPLES].arrays + kept[TRIPLES])
    made = max(needs[LAMBDA].arrays, needs[disks.DENSITIES].arrays)
    found[LAMBDA] = PredictedPart(plans[LAMBDA].iteration_s, needs[LAMBDA].arrays + kept[LAMBDA])
    found[DENSITIES] = PredictedPart(plans[LAMBDA].seconds_once, made + kept[LAMBDA])
    later: dict[str, PredictedPart] = {}
    with cc.world.together("estimate"):
        if cc.world.rank == 0:
            later = _after_densities(cc, sets, wanted, storage, free_bytes, kept[LAMBDA])
    return found | cc.world.broadcast(later)


def _after_densities(
    cc: CCSD, sets: Mapping[Purpose, Mole], wanted: AfterIterations, storage: str, free: int, kept: int
) -> dict[str, PredictedPart]:
    """Parts that plans of coupled cluster leave out. Not collective."""
    after = AfterEnergy.of(
        cc.mol,
        sets,
        cc.screening,
        spins=len(cc.spins),
        threads=cc.threads,
        processes=cc.world.size,
        storage=storage,
        free_bytes=free,
    )
    assert after.of_method is not None
    shapes = [(each.occupied + each.virtual,) * 2 for each in cc.spins]
    return after.relaxed(shapes, after.of_method.turned_bytes(shapes) + kept, gradient=wanted.gradient)
