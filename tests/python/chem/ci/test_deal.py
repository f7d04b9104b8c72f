"""Which node does which tasks of a product, and has which rows."""

from __future__ import annotations

import math
import tracemalloc
from bisect import bisect_right
from dataclasses import replace
from types import SimpleNamespace

import ci_cases
import numpy as np
import pytest

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.ci import deal, estimate, groups, plan, speeds
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.job.world import World
from outcore.tensor.arrays.backends.global_memory import even_ranges
from outcore.tensor.plan.rates import ASSUMED

IRREPS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
SLOW = replace(ASSUMED, gemm=((256, 1e10),), network=1e8, nodes=4)


def space(*electrons, parity=0, irreps=tuple(IRREPS)):
    of = SimpleNamespace(irreps=list(irreps), groups=4, unrestricted=False)
    return Space(of, *electrons, 0, parity)


FOLDED, OPEN = space(4, 4, parity=1), space(4, 3)


def make_plan(of, *, free=1 << 30, nodes=(0, 0, 1, 1, 2, 2, 3, 3), rates=SLOW, array_bytes=math.inf):
    return plan.make_plan(
        of,
        VectorTiling(of, 32),
        SearchOptions(),
        free,
        processes=len(nodes),
        nodes=nodes,
        array_bytes=array_bytes,
        rates=rates,
    )


def share_out(of, nodes, count, limit=1 << 40, **more):
    """Of nodes with so many processes."""
    found = deal.make_node_tasks(groups.Holes(of), nodes, count, limit, "float64")
    node_of = [node for node, size in enumerate(nodes) for _ in range(size)]
    tiles = deal.TilesOfNodes(VectorTiling(of, 32), node_of)
    return None if found is None else deal.make_deal(found, tiles, of, **more)


def elements(of, task):
    return task.elements(of, deal.layout("float64"))


# ---- tasks ----


@pytest.mark.parametrize("near_tiles", [False, True])
@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
@pytest.mark.parametrize(("nodes", "count"), [((1,), 1), ((2, 2), 3), ((1, 3, 2), 6), ((1,) * 40, 9)])
def test_every_hole_row_and_column_has_one_task(of, nodes, count, near_tiles):
    found = share_out(of, nodes, count, near_tiles=near_tiles)
    with_holes = [task for task in found.tasks if not task.transposed]
    holes = [hole for task in with_holes for hole in task.holes]
    assert holes == list(range(len(groups.Holes(of))))
    rows = sorted(int(row) for task in with_holes for row in task.home)
    assert rows == list(range(len(of.alpha.strings)))
    columns = sorted(int(column) for task in found.tasks if task.transposed for column in task.home)
    assert columns == ([] if of.folded else list(range(len(of.beta.strings))))
    assert found.work.largest == max(elements(of, task) for task in found.tasks)
    assert found.moved == sum(elements(of, task) for task in with_holes)


def test_tasks_are_those_of_one_process_where_holes_are_cut_alike():
    found = share_out(FOLDED, (1,), 1)
    (task,), (other,) = found.tasks, groups.make_tasks(FOLDED, 1 << 40)
    assert task.holes == other.holes
    for name in ("home", "others", "begins"):
        assert np.array_equal(getattr(task, name), getattr(other, name))


def test_a_task_that_does_not_fit_is_none():
    largest = share_out(FOLDED, (1, 1), 4).work.largest
    assert share_out(FOLDED, (1, 1), 4, largest) is not None
    assert share_out(FOLDED, (1, 1), 4, largest - 1) is None


# ---- nodes ----


@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
def test_nodes_have_their_shares_of_work_and_of_rows(of):
    nodes = (1, 3, 2)
    found = share_out(of, nodes, 12)
    costs = [task.cost for task in found.tasks]
    tolerance = 2 * max(costs) / sum(costs)
    for size, first, last in zip(nodes, found.first[:-1], found.first[1:], strict=True):
        assert sum(costs[first:last]) / sum(costs) == pytest.approx(size / 6, abs=tolerance)
    owned = np.bincount(found.owners, minlength=3)
    assert (owned <= -(-len(of.alpha.strings) * np.array(nodes) // 6) * (1.1 if of.folded else 2)).all()


def test_what_crosses_is_what_tasks_have_of_rows_of_other_nodes():
    found = share_out(FOLDED, (2, 2), 4)
    unit, widths = 8, np.diff(FOLDED.beta.offsets)
    sectors = np.searchsorted(FOLDED.alpha.offsets, np.arange(len(FOLDED.alpha.strings)), side="right") - 1
    crossing = 0
    for number, task in enumerate(found.tasks):
        node = int(number >= found.first[1])
        begins = dict(zip(task.others.tolist(), task.begins.tolist(), strict=True))
        for row in [*task.home.tolist(), *task.others.tolist()]:
            sector = sectors[row] ^ FOLDED.irrep
            begin = begins.get(row, FOLDED.beta.offsets[sector]) - FOLDED.beta.offsets[sector]
            if found.owners[row] != node:
                crossing += -(-widths[sector] // unit) * unit - begin // unit * unit
    assert 0 < found.crossing.elements == crossing < found.moved


def test_one_node_moves_nothing_between_nodes():
    found = share_out(FOLDED, (4,), 6)
    assert found.crossing == found.turning == (0, 1.0)
    assert found.first == [0, len(found.tasks)]


@pytest.mark.parametrize("near_tiles", [False, True])
@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
def test_what_turns_is_what_rows_have_of_tiles_of_other_nodes(of, near_tiles):
    nodes, tiling = (1, 1, 1), VectorTiling(of, 32)
    found = share_out(of, nodes, 3, near_tiles=near_tiles)
    first = even_ranges(tiling.offsets, 3)
    turning = 0
    for number in range(len(tiling)):
        tile, node = tiling[number], bisect_right(first, number) - 1
        (row, column), (height, width) = tile.first, tile.shape
        turning += width * int((found.owners[row : row + height] != node).sum())
        if of.folded and not tile.on_diagonal:
            turning += height * int((found.owners[column : column + width] != node).sum())
    assert found.turning.elements == turning > 0
    assert 1 <= found.turning.busiest <= 3


def test_rows_near_tiles_turn_for_less_and_tasks_move_more():
    home, near = (share_out(FOLDED, (2, 2, 2, 2), 3, near_tiles=each) for each in (False, True))
    assert near.turning.elements < home.turning.elements
    assert near.crossing.elements > home.crossing.elements


@pytest.mark.parametrize("near_tiles", [False, True])
@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
def test_copies_are_the_rows_of_others_that_tasks_of_a_node_need(of, near_tiles):
    nodes = (2, 1, 2)
    found = share_out(of, nodes, 3, near_tiles=near_tiles, copied=True)
    copies, widths = found.copies, np.diff(of.beta.offsets)
    sectors = np.searchsorted(of.alpha.offsets, np.arange(len(of.alpha.strings)), side="right") - 1
    needed: dict[tuple[int, int], list[int]] = {}
    for number, task in enumerate(found.tasks):
        if task.transposed:
            continue
        begins = dict(zip(task.others.tolist(), task.begins.tolist(), strict=True))
        for row in [*task.home.tolist(), *task.others.tolist()]:
            offset = of.beta.offsets[sectors[row] ^ of.irrep]
            if found.owners[row] != found.node(number):
                first = int(begins.get(row, offset) - offset) // 8 * 8
                needed.setdefault((found.node(number), row), []).append(first)
    assert len(copies) == len(needed)
    for (node, row), firsts in needed.items():
        (copy,) = copies.find(node, np.array([row])).tolist()
        assert (copies.nodes[copy], copies.rows[copy], copies.users[copy]) == (node, row, len(firsts))
        end = -(-int(widths[sectors[row] ^ of.irrep]) // 8) * 8
        assert (copies.begins[copy], copies.ends[copy]) == (min(firsts), end)
    others = [row for row in range(len(of.alpha.strings)) if (0, row) not in needed]
    assert (copies.find(0, np.array(others)) == -1).all()
    assert found.crossing.elements == copies.sizes.sum()
    assert found.crossing.elements < share_out(of, nodes, 3, near_tiles=near_tiles).crossing.elements
    processes = copies.processes(np.array([0, 0, 1, 2, 2]))
    assert (np.array([0, 0, 1, 2, 2])[processes] == copies.nodes).all()
    assert np.bincount(processes, minlength=5).max() == copies.most(nodes)


# ---- plans ----


@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
def test_several_nodes_go_through_rows_and_move_less_between_nodes(of):
    found = make_plan(of)
    dealt = found.deal("float64")
    assert dealt is not None and dealt.nodes == (2, 2, 2, 2)
    assert found.tasks("float64") is dealt.tasks and found.bands("float64") is None
    tiles = make_plan(of, rates=None).product_bytes
    moved = found.product_bytes
    assert moved.crossing + moved.turning < 0.75 * (tiles.read + tiles.added)


def test_one_node_has_the_same_plan_whatever_its_speeds():
    found, other = (make_plan(FOLDED, nodes=(0,) * 4, rates=each) for each in (SLOW, None))
    assert found.deal("float64") is None
    assert [task.holes for task in found.tasks("float64")] == [task.holes for task in other.tasks("float64")]
    assert found.product_bytes == other.product_bytes


def test_small_rows_over_a_fast_network_are_not_worth_their_requests():
    assert make_plan(FOLDED, rates=replace(SLOW, network=1e11)).deal("float64") is None


def test_parts_of_tiles_have_one_owner_each():
    found, tiling = share_out(FOLDED, (1, 1, 1), 3), VectorTiling(FOLDED, 32)
    parts = 0
    for number in range(len(tiling)):
        (row, column), (height, width) = tiling[number].first, tiling[number].shape
        sides = [(row, height)] if tiling[number].on_diagonal else [(row, height), (column, width)]
        parts += sum(1 + int((np.diff(found.owners[at : at + size]) != 0).sum()) for at, size in sides)
    assert found.boxes == parts


def test_without_speeds_the_network_counts_for_nothing():
    assert make_plan(FOLDED, rates=None).deal("float64") is None


@pytest.mark.parametrize("network", [1e6, 1e8])
def test_rows_lie_where_a_product_takes_less_time(network):
    products = make_plan(FOLDED, rates=replace(SLOW, network=network)).products
    chosen = products._all_seconds(products.choose("float64"))
    every = [products.by_rows("float64", 12, near_tiles=near, copied=True) for near in (False, True)]
    seconds = [products._all_seconds(each) for each in every]
    assert chosen == min(seconds) < max(seconds)


def test_where_copies_do_not_fit_tasks_move_rows_of_other_nodes():
    found = make_plan(FOLDED)
    alone = found.products.by_rows("float64", 6).deal
    rows = alone.rows_of_process * (2 * 8 * deal.pitch(FOLDED, "float64") + 16)
    less = make_plan(FOLDED, array_bytes=found.vector_bytes + rows).deal("float64")
    assert found.deal("float64").copies is not None
    assert less is not None and less.copies is None


def test_rows_that_do_not_fit_leave_tiles():
    of, options = FOLDED, SearchOptions()
    least = plan.least_bytes(of, VectorTiling(of, 32), options, roots=1, processes=8, states_on_disk=False)
    kinds = {
        (found.kind, found.deal("float64") is None)
        for found in (make_plan(of, free=least + more) for more in (0, 1 << 20, 1 << 28))
    }
    assert ("global", False) in kinds
    assert all(is_none for kind, is_none in kinds if kind == "disk")
    for more in (0, 1 << 18, 1 << 20, 1 << 22):
        found = make_plan(of, free=least + more)
        dealt = found.deal("float64")
        if dealt is not None:
            rows = 2 * 8 * dealt.rows_of_process * deal.pitch(of, "float64")
            assert rows + 2 * 8 * dealt.work.largest <= found.panel_bytes


def test_rows_take_no_more_than_the_world_has_for_arrays():
    found = make_plan(FOLDED)
    for rows in (1 << 13, 1 << 18, 1 << 20):
        of = make_plan(FOLDED, array_bytes=found.vector_bytes + rows).deal("float64")
        assert of is None or 2 * 8 * of.rows_of_process * deal.pitch(FOLDED, "float64") <= rows
        assert (of is None) == (rows == 1 << 13)


@pytest.mark.parametrize("of", [FOLDED, OPEN], ids=["folded", "open"])
def test_operations_are_about_those_of_the_kernel(of):
    n = of.orbitals
    kernel = _core.CIKernel(
        of.irreps, of.groups, *of.electrons, of.irrep, of.parity, np.zeros((n, n)), np.zeros((n,) * 4)
    )
    assert deal.about_flops(of) == pytest.approx(estimate.product_flops(of, kernel), rel=0.5)


def test_planning_takes_no_more_than_the_plan_leaves_for_it():
    of = space(7, 7, parity=1, irreps=(*IRREPS, 1, 2, 3, 0, 0, 1))
    products = make_plan(of, free=1 << 34).products
    tracemalloc.start()
    try:
        found = products._fastest("float64", [12], copied=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and 0.5 * products._planning_bytes < peak <= products._planning_bytes


def test_a_forecast_knows_that_the_last_process_computes_longer():
    found = make_plan(FOLDED)
    hamiltonian = ci_cases.random_hamiltonian(12, irreps=IRREPS)
    result = estimate.of_plan(found, hamiltonian, SLOW)
    alike = speeds.of_product(SLOW, result.flops, found.options.threads * found.processes)
    assert result.uneven == found.deal("float64").work.uneven > 1
    assert result.parts[0] == pytest.approx(result.uneven * alike)


def test_tasks_for_other_nodes_than_those_of_the_world_are_refused(tmp_path):
    with (
        World("self", scratch=tmp_path, memory="100MB") as world,
        pytest.raises(OutcoreError, match=r"nodes of \(1, 1\) processes, but the world has nodes of \(1,\)"),
    ):
        share_out(FOLDED, (1, 1), 3).check(world)
