"""The shares of processes that share panels, and the savings of sharing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import plain
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.product_plan import Planned, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.plan.shares import divide

F8 = np.dtype(np.float64)


def problem_of(text, extents, tilings=None, where="disk"):
    left, right, out = text.replace("->", ",").split(",")

    def facts(labels):
        found = plain([extents[label] for label in labels], F8, where)
        return replace(found, tilings=tuple((tilings or {}).get(label) for label in labels))

    return ProductProblem(
        binary(left, right, out, extents), extents, *(facts(each) for each in (left, right, out))
    )


@pytest.mark.parametrize("seed", range(30))
def test_shares_are_all_of_each_panel_and_cut_no_tiles(seed):
    random = np.random.default_rng(seed)
    text = ("aik,jka->aij", "iak,kb->bia", "bik,bkj->jbi")[seed % 3]
    extents = {label: int(random.integers(1, 12)) for label in "abijk"}
    tilings = {
        label: Tiling(extents[label], tile=int(random.integers(1, 5)))
        for label in "abij"
        if random.random() < 0.3
    }
    problem = problem_of(text, {label: extents[label] for label in set(text) & set(extents)}, tilings)
    most = tuple(int(random.integers(1, 60)) for _ in range(4))
    geometry = Choice("result", False, most, (1, 1, 1, 1)).geometry(problem)
    processes = int(random.integers(1, 6))
    shares = divide(geometry, processes)
    group = shares.group
    axes = problem.group(problem.product.groups[group])
    for panel, bounds in enumerate(shares.bounds):
        assert bounds[0] == 0
        assert bounds[-1] == geometry.sizes[group][panel]
        assert list(bounds) == sorted(bounds)
        places = {0}
        for number in geometry.panels[group][panel]:
            cell, place = geometry.cuts[group].cells[number], max(places)
            size = int(geometry.cuts[group].sizes[number])
            axis = next((axis for axis, (begin, end) in enumerate(cell) if end - begin > 1), 0)
            for at in range(*cell[axis]):
                if axes[axis].fixed is None or at in axes[axis].fixed:
                    places.add(place + (at - cell[axis][0]) * size // (cell[axis][1] - cell[axis][0]))
            places.add(place + size)
        assert places.issuperset(bounds)
    assert shares.uneven >= 1 - 1e-12
    if not tilings and min(geometry.sizes[1].min(), geometry.sizes[2].min()) > 4 * processes:
        assert shares.uneven < 1.5


@pytest.mark.parametrize("sharing", [2, 4, 16])
def test_less_is_read_where_the_processes_of_a_node_share_panels(sharing):
    problem = problem_of("ik,kj->ij", {"i": 3000, "k": 3000, "j": 3000})
    rates = replace(ASSUMED, processes=2 * sharing, nodes=2, read=1e8, write=1e8)
    alone = make_plan(problem, 3_000_000, rates)
    together = make_plan(problem, 3_000_000, replace(rates, sharing=sharing))
    assert (alone.sharing, together.sharing) == (1, sharing)
    assert together.predicted.disk_read < 1.3 * alone.predicted.disk_read / np.sqrt(sharing)
    assert together.predicted.seconds < alone.predicted.seconds
    assert together.workspace_bytes <= 3_000_000
    planned = Planned(problem, together)
    assert planned.shares.uneven < 1.02
    assert planned.largest_share <= 1.02 * planned.largest[2] / sharing


def test_nothing_is_shared_where_nothing_is_read_or_results_cannot_be_divided():
    rates = replace(ASSUMED, processes=4, sharing=4, read=1e8)
    extents = {"i": 800, "k": 800, "j": 800}
    assert make_plan(problem_of("ik,kj->ij", extents, where="process"), 1_000_000, rates).sharing == 1
    number = problem_of("ik,ki->", {"i": 800, "k": 800})
    assert make_plan(number, 1_000_000, rates).sharing == 1
