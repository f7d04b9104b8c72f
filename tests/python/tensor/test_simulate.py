"""The simulated clock: properties that hold on any machine, and results for simple ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import plain
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.product_plan import Planned, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.plan.simulate import simulate


def planned(rates, m=2000, n=2000, k=2000, memory=8_000_000):
    extents = {"i": m, "j": n, "k": k}
    facts = [plain(shape, np.dtype(np.float64), "disk") for shape in ((m, k), (k, n), (m, n))]
    problem = ProductProblem(binary("ik", "kj", "ij", extents), extents, *facts)
    return Planned(problem, make_plan(problem, memory, rates))


@pytest.mark.parametrize("processes", [1, 4, 64])
def test_nothing_is_faster_than_products_and_disks_allow(processes):
    rates = replace(ASSUMED, processes=processes, nodes=max(1, processes // 4), network=1e9)
    found = planned(rates)
    result = simulate(found, rates, spread=0.0)
    predicted = found.plan.predicted
    assert result.seconds >= 2.0 * 2000**3 / rates.peak
    assert result.seconds >= predicted.disk_read / (rates.read * rates.nodes) * (1 - 1e-9)
    assert result.busy_seconds.max() <= result.seconds
    assert 0 <= result.idle < 1
    assert result.read_bytes.sum() == pytest.approx(predicted.disk_read, rel=0.05)


def test_one_process_reads_what_was_predicted_in_the_time_that_was_predicted():
    found = planned(ASSUMED)
    result = simulate(found, ASSUMED, spread=0.0)
    assert result.read_bytes.sum() == found.plan.predicted.disk_read
    assert result.seconds == pytest.approx(found.plan.predicted.seconds, rel=0.35)


def test_seeds_decide():
    rates = replace(ASSUMED, processes=8, nodes=2, network=1e9)
    found = planned(rates)
    times = [simulate(found, rates, seed).seconds for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]


def test_more_processes_take_less_time():
    times = []
    for processes in (1, 4, 16):
        rates = replace(ASSUMED, processes=processes, nodes=processes, network=1e10)
        times.append(simulate(planned(rates), rates).seconds)
    assert times[0] > 2.5 * times[1] > 2.5 * 2.5 * times[2] * 0.8


def test_half_of_a_symmetric_result_is_put_twice():
    rates = replace(ASSUMED, write=1e6)  # bytes a second: nothing else takes long
    one = replace(plain((400, 20), np.dtype(np.float64), "disk"), array=0)
    extents = {"i": 400, "j": 400, "k": 20}
    out = plain((400, 400), np.dtype(np.float64), "disk")
    problem = ProductProblem(binary("ik", "jk", "ij", extents), extents, one, one, out)
    choice = Choice("result", False, (1, 100, 100, 20), (1, 1, 1, 1), half=True)
    found = Planned(problem, make_plan(problem, 1 << 20, rates, choice))
    assert simulate(found, rates, spread=0.0).seconds >= out.bytes / rates.write


def test_a_slow_node_makes_all_slower_but_not_by_as_much_as_if_all_were_slow():
    rates = replace(ASSUMED, processes=8, nodes=4, network=1e10)
    found = planned(rates)
    alike, one, every = (
        simulate(found, rates, spread=0.0, slower=dict.fromkeys(nodes, 4.0)).seconds
        for nodes in ((), (2,), range(4))
    )
    assert alike < one < every
    assert every == pytest.approx(4 * alike, rel=0.1)
