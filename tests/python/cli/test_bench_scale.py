"""The conclusions of the cluster benchmark from plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outcore.chem.cc.plan import crossing
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.ci import estimate
from outcore.cli import bench
from outcore.tensor.plan.rates import ASSUMED

cluster, cc, fci = (bench.load(name) for name in ("_cluster", "_scale_cc", "_scale_fci"))
requests, molecules = bench.load("_scale_requests"), bench.load("_molecules")

Cluster, Taken = cluster.Cluster, cluster.Taken
SIZES = Sizes(96, 336, (16,), (76,), 6, (0, 112, 224, 336), "ccsd")


def one_process(**more):
    return Cluster(cores=1, processes=1, memory=2e9, usable=1.0, **more)


# ---- a node is what the method says of it ----


def test_on_one_process_an_iteration_of_coupled_cluster_is_that_of_its_plan():
    node = one_process(read=1e9, write=1e9)
    assert node.rates() == replace(ASSUMED, sharing=1)
    plan = cc.plan_of(SIZES, node)
    taken = cc._iteration(plan, node.rates())
    assert taken.seconds == pytest.approx(plan.iteration_s, rel=0.05)
    assert taken.network == 0.0
    assert plan.triples.seconds == pytest.approx(cc._triples(plan, node, node.rates()).seconds, rel=0.05)


def test_on_one_process_full_ci_is_what_the_method_forecasts():
    planned = fci.Planned.of(fci.SMALL, one_process())
    found = estimate.of_plan(planned.plan, fci.SMALL.hamiltonian, planned.cluster.rates())
    assert planned.taken().seconds - planned.seconds == pytest.approx(found.total_seconds)


# ---- bounds ----


@pytest.mark.parametrize("nodes", cluster.NODES)
def test_cores_are_never_busier_than_all_the_time(nodes):
    on = Cluster(nodes=nodes)
    for taken in (cc.taken(SIZES, on), fci.taken(fci.SMALL, on)):
        assert isinstance(taken, Taken)
        assert 0 < taken.efficiency <= 1 + 1e-9
        assert min(taken.parts.values()) >= 0
        assert (taken.network > 0) == (nodes > 1)


def test_a_ladder_has_no_more_rows_than_threads_could_take():
    plan = plans.make_plan(SIZES, 2_000_000_000, ASSUMED)
    ladders = [each for each in crossing.products(plan, ASSUMED) if each.rows]
    virtual, occupied = SIZES.virtual[0], SIZES.occupied[0]
    assert ladders
    for each in ladders:
        pairs = occupied + virtual
        assert virtual * (virtual + 1) // 2 <= sum(each.rows) <= pairs * (pairs + 1) // 2
        assert each.moved >= sum(2 * 8 * n for n in each.rows)


def test_operations_are_those_of_the_plan():
    plan = plans.make_plan(SIZES, 2_000_000_000, ASSUMED)
    found = sum(each.operations for each in crossing.products(plan, ASSUMED))
    assert found == pytest.approx(plan.operations, rel=0.02)


# ---- refusals ----


def test_what_does_not_fit_says_so():
    small = Cluster(memory=1e8)
    assert "need at least" in cc.taken(SIZES, small)
    assert "need at least" in fci.taken(fci.SMALL, small)
    claims = cluster.claims("Full CI", "water", {1: "too large"})
    assert [(each.value, each.how) for each in claims] == [(None, "water: too large")]


def test_a_disk_that_is_too_small_is_a_refusal():
    few = one_process(disk=1e3)
    few = replace(few, memory=fci.Planned.of(fci.SMALL, few).plan.fixed_bytes + 30e6)
    assert "TB of disk are needed" in fci.taken(fci.SMALL, few)


# ---- arithmetic ----


def test_the_largest_size_that_fits():
    assert cluster.largest(range(1, 100), lambda n: n * n <= 50) == 7
    assert cluster.largest(range(8, 100), lambda n: n * n <= 50) is None


def test_failures_cost_what_is_made_again():
    often = requests.failures("run", [100.0] * 10, 1, years=1000 / (365.25 * 86400), again_s=10.0)
    seldom = requests.failures("run", [100.0] * 10, 1, years=1e6, again_s=10.0)
    assert seldom.value == pytest.approx(1.0)
    assert 1.05 < often.value < 1.12  # exp(0.1) - 1 of each piece is lost, and 10 s of each failure


def test_all_edges_of_a_fullerene_are_alike():
    places = np.array([[float(x) for x in line.split()[1:]] for line in molecules.fullerene()])
    apart = np.sort(np.linalg.norm(places[:, None] - places, axis=2), axis=1)
    assert len(places) == 60
    np.testing.assert_allclose(apart[:, 1:4], 1.43, atol=1e-5)
    assert apart[:, 4].min() > 2.0
