"""Forecasts of a CI for other machines."""

from __future__ import annotations

import math
from dataclasses import replace

import ci_water
import pytest

import outcore
from outcore.chem.ci import estimate, plan, solver
from outcore.chem.ci.tiles import VectorTiling
from outcore.job import machine
from outcore.tensor.plan.rates import Rates


@pytest.fixture
def hamiltonian(given):
    return ci_water.hamiltonian(given)


def rates_of(gemm, disk=math.inf, network=math.inf):
    """network: of all processes together."""
    return Rates(((256, gemm),), copy=5e9, read=disk, write=disk, network=network)


def of_nodes(hamiltonian, nodes, rates, **more):
    space = ci_water.space(hamiltonian)
    chosen = plan.make_plan(
        space, VectorTiling(space), solver.SearchOptions(), 1 << 30, processes=2 * nodes, **more
    )
    return estimate.of_plan(chosen, hamiltonian, replace(rates, nodes=nodes))


def test_with_the_rates_of_this_machine_it_is_the_forecast_of_the_method(hamiltonian, tmp_path):
    space, options = ci_water.space(hamiltonian), solver.SearchOptions()
    with outcore.World("self", scratch=tmp_path, memory="400MB") as world:
        found = estimate.forecast(world, space, hamiltonian, options=options)
    gemm = machine.gemm(256, 256, 256, options.threads, found.plan.work_type)
    assert estimate.of_plan(found.plan, hamiltonian, rates_of(gemm)).as_json() == found.as_json()


def test_nothing_crosses_between_nodes_where_there_is_one(hamiltonian):
    assert of_nodes(hamiltonian, 1, rates_of(1e10, network=1e9)).network_bytes == 0.0


def test_of_what_a_product_moves_the_share_of_other_nodes_crosses(hamiltonian):
    found = of_nodes(hamiltonian, 4, rates_of(1e10, network=1e9))
    moved = found.plan.product_bytes
    assert found.network_bytes == pytest.approx(0.75 * (moved.read + moved.added))
    assert found.parts[1] == pytest.approx(found.network_bytes / 1e9)


def test_a_slow_network_decides(hamiltonian):
    fast, slow = (of_nodes(hamiltonian, 4, rates_of(1e10, network=rate)) for rate in (math.inf, 1e3))
    assert fast.seconds == pytest.approx(fast.parts[0] + fast.parts[2])
    assert slow.seconds > 100 * fast.seconds


def test_disks_of_all_nodes_read_at_the_same_time(hamiltonian):
    kept = [of_nodes(hamiltonian, 2, rates_of(1e10, rate / 2), states_on_disk=True) for rate in (1e9, 2e9)]
    states = kept[0].plan.state_bytes("float64")
    assert kept[0].parts[2] - kept[1].parts[2] == pytest.approx(2 * states * (1 / 1e9 - 1 / 2e9))
