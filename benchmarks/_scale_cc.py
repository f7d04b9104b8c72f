"""CCSD(T) of closed shells on a cluster: the method's own plan and tasks, with the rates of the cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.triples import tasks_of_blocks
from outcore.chem.cc.plan import crossing, describe
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.describe import ITERATIONS
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.cc.plan.triple_sizes import ranges_of
from outcore.chem.ri import auxiliary
from outcore.chem.ri.source import cuts_of
from outcore.keep import clock
from outcore.parallel.tasks import uneven
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.statements import Call

from ._cluster import Cluster, Taken, longest, together

_VECTORS = 6  # that the extrapolation stores


@dataclass(frozen=True)
class Case:
    """A molecule with frozen cores and fitted integrals."""

    name: str
    atoms: Sequence[str]
    basis: str

    @cached_property
    def sizes(self) -> Sizes:
        from pyscf import gto

        mol = gto.M(atom="; ".join(self.atoms), basis=self.basis, verbose=0)
        cores = int(sum(charge > 2 for charge in mol.atom_charges()))  # correct up to neon
        filled = mol.nelectron // 2
        auxmol = auxiliary.build(mol, purpose="mp2")
        return Sizes(
            mol.nao, auxmol.nao, (filled - cores,), (mol.nao - filled,), _VECTORS, cuts_of(auxmol), "ccsd"
        )


def plan_of(sizes: Sizes, cluster: Cluster) -> plans.Plan:
    """Raises OutcoreError (ENOMEM, ENOSPC)."""
    return plans.make_plan(
        sizes, cluster.free_bytes, cluster.rates(), disk_bytes=cluster.disk * cluster.nodes
    )


def taken(sizes: Sizes, cluster: Cluster) -> Taken | str:
    """Time and traffic of a calculation, from the fitted integrals to the energy of (T)."""
    rates = cluster.rates()
    try:
        plan = plan_of(sizes, cluster)
        iteration = _iteration(plan, rates)
        triples = _triples(plan, cluster, rates)
    except OutcoreError as error:
        return str(error)
    made = {"integrals and other work before iterations": plan.seconds_once}
    parts = together({name: ITERATIONS * s for name, s in iteration.parts.items()}, triples.parts, made)
    return Taken(
        ITERATIONS * iteration.ideal + triples.ideal,
        parts,
        ITERATIONS * iteration.disk + triples.disk,
        ITERATIONS * iteration.network + triples.network,
        f"an iteration {iteration.seconds:.3g} s, {ITERATIONS} of them; (T) {triples.seconds:.3g} s; "
        f"{iteration.how}; "
        f"{triples.how}",
    )


def kept_pieces(taken: Taken) -> list[float]:
    """Seconds between two checkpoints: one per iteration, and one per interval in (T)."""
    of_triples = sum(seconds for name, seconds in taken.parts.items() if "(T)" in name)
    count = math.ceil(of_triples / clock.INTERVAL_S)
    return [(taken.seconds - of_triples) / ITERATIONS] * ITERATIONS + [of_triples / count] * count


def _iteration(plan: plans.Plan, rates: Rates) -> Taken:
    """One iteration: products run one after another. The ladder is distributed by rows of tiles, each to a thread
    of any process; tiles arrive while others are multiplied."""
    found = crossing.products(plan, rates)
    away = 1 - 1 / rates.nodes
    threads, every = rates.threads * rates.processes, rates.network * rates.processes
    parts: dict[str, float] = {}
    rows = 0
    for each in found:
        if not each.rows:
            parts = together(parts, {"other products": each.seconds})
            continue
        rows = len(each.rows)
        last = uneven(sorted(each.rows, reverse=True), threads)
        of_disk = each.disk / (rates.read * rates.nodes)
        one = {"rows of the ladder": each.seconds * (last - 1), "the ladder": each.seconds}
        moving = longest({"disk": of_disk, "network": each.moved * away / every})
        if max(moving.values()) > each.seconds * last:
            one = {f"the ladder over the {name}": seconds for name, seconds in moving.items()}
        parts = together(parts, one)
    tiles = sum(each.seconds for each in plan.iteration if not each.is_product)
    parts = together(parts, {"work on single tiles": tiles})
    return Taken(
        sum(each.operations for each in found) / rates.peak,
        parts,
        plan.moved_bytes,
        away * sum(each.moved for each in found),
        f"ladder integrals {plan.ladder}, {rows} rows of tiles of it, blocks of {plan.spaces[0].block}; "
        f"{plan.disk_bytes / 1e12:.3g} TB on disk",
    )


def _triples(plan: plans.Plan, cluster: Cluster, rates: Rates) -> Taken:
    """The (T) correction. Processes take tasks, largest first; a task reads its blocks before it computes."""
    recording = describe.triples(plan.sizes, plan.spaces[0].block, rates.threads, rates.processes)
    (call,) = recording.description.statements
    assert isinstance(call, Call) and plan.triples is not None
    free = cluster.free_bytes - plan.memory_bytes
    count = call.kernel.parts(free)
    (blocks,) = ranges_of(plan.sizes.virtual, count)
    tasks = tasks_of_blocks(count)
    widths = [end - begin for begin, end in blocks]
    costs = [widths[a] * widths[b] * float(sum(widths[: b + 1])) for a, b in tasks]
    last = uneven(costs, rates.processes)
    moved = sum(each.total for each in call.kernel.moved([1.0] * count).values())
    seconds = call.kernel.work([], free, rates)
    on_disk = not all(each.in_memory for each in plan.arrays.values())
    away = moved * (1 - 1 / rates.nodes)
    parts = {
        "(T)": seconds,
        "uneven tasks of (T)": seconds * (last - 1),
        "blocks of (T) over the network": away / (rates.network * rates.processes),
    }
    if on_disk:
        parts["blocks of (T) from disk"] = moved / (rates.read * rates.nodes)
    return Taken(
        plan.triples.operations / rates.peak,
        parts,
        moved if on_disk else 0.0,
        away,
        f"{len(tasks)} tasks of (T), blocks of {max(widths)}",
    )
