"""Plans: they fit into memory, come near the bound, and are values."""

from __future__ import annotations

import errno
import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from conformance.many import many

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.cells import Axis, cells_for, cut_for, panels
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.letters import common_tilings
from outcore.tensor.layout.operands import Facts, plain
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan import product_plan, schedule, sizes
from outcore.tensor.plan.bound import MovedOnce, least_bytes
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.order import Cost, order
from outcore.tensor.plan.plan import Plan, contract, problems, products
from outcore.tensor.plan.product_plan import Held, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.plan.schedule import search, undivided

F8 = np.dtype(np.float64)


def planned(subscripts, shapes, memory_bytes, where="disk", rates=ASSUMED):
    expression = parse(subscripts, shapes)
    arrays = [*shapes, expression.shape(expression.output)]
    return contract(expression, [plain(shape, F8, where) for shape in arrays], memory_bytes, rates)


@pytest.mark.parametrize(
    ("m", "n", "k", "words", "limit"),
    [
        (20000, 20000, 20000, 12_500_000, 1.25),
        (400, 40000, 40000, 4_000_000, 1.1),
        (120, 120, 20000, 60_000, 1.01),
        (2400, 2400, 120, 90_000, 1.5),
        (3000, 3000, 3000, 27_000_000, 1.01),
    ],
)
def test_bytes_come_near_the_bound(m, n, k, words, limit):
    plan = planned("ik,kj->ij", [(m, k), (k, n)], 8 * words)
    found = plan.statements[0].plan
    assert found.over_bound <= limit
    assert found.workspace_bytes <= 8 * words


def test_bound_is_that_of_the_paper_and_at_least_everything_once():
    moved = MovedOnce(8e6, 8e6, 8e6)
    assert least_bytes(1e9, moved, 8e4, 8) == pytest.approx(8 * (2e9 / 100 - 2e4))
    assert least_bytes(1e9, moved, 1e12, 8) == 24e6
    assert least_bytes(1e9, MovedOnce(0, 8e6, 8e6), 8e4, 8) == 16e6


@pytest.mark.parametrize("seed", many(range(40), 20))
def test_workspace_is_within_memory_and_every_element_is_read(seed):
    random = np.random.default_rng(seed)
    m, n, k, b = (int(random.integers(1, 200)) for _ in range(4))
    b = min(b, 5)
    memory = int(8 * random.integers(50, 60_000))
    try:
        plan = planned("bik,bkj->bij", [(b, m, k), (b, k, n)], memory)
    except OutcoreError as error:
        assert error.errno == errno.ENOMEM
        assert memory < 8 * 1000
        return
    found = plan.statements[0].plan
    assert found.workspace_bytes <= memory
    assert found.predicted.disk_read >= 8 * b * k * (m + n) * (1 - 1e-12)
    assert found.predicted.disk_written == 8 * b * m * n
    assert found.predicted.flops == 2 * b * m * n * k
    assert found.predicted.disk >= found.bound_bytes * (1 - 1e-12)


@pytest.mark.parametrize("seed", many(range(20), 10))
def test_processes_receive_no_less_than_their_bound(seed):
    random = np.random.default_rng(seed)
    m, n, k = (int(random.integers(300, 900)) for _ in range(3))
    processes, memory = int(random.choice([2, 3, 4, 8])), int(8 * random.integers(4_000, 40_000))
    sharing = 2 if processes in (4, 8) and random.integers(2) else 1
    rates = replace(ASSUMED, processes=processes, nodes=processes // sharing, sharing=sharing, network=1e9)
    found = planned("ik,kj->ij", [(m, k), (k, n)], memory, rates=rates).statements[0].plan
    alone = found.memory_bytes * found.sharing / 8
    parts = processes // found.sharing
    expected = 8 * (2 * m * n * k / math.sqrt(alone) - 2 * parts * alone)
    assert found.received_bound_bytes == pytest.approx(max(0, expected))
    assert found.predicted.disk + found.predicted.network >= found.received_bound_bytes


def test_parts_in_memory_have_no_bound_of_what_is_received():
    rates = replace(ASSUMED, processes=4, network=1e9)
    found = planned("ik,kj->ij", [(600, 600)] * 2, 200_000, "global", rates).statements[0].plan
    assert found.received_bound_bytes == 0 and found.over_received_bound is None


@pytest.mark.parametrize("memory", [20_000, 60_000, 400_000])
def test_an_expression_moves_no_less_than_its_bound(memory):
    """The bound counts no intermediate array, and is at least the size of inputs and result."""
    shapes = [(90, 900), (900, 70), (70, 60)]
    plan = planned("ij,jk,kl->il", shapes, memory)
    once = 8 * (90 * 900 + 900 * 70 + 70 * 60 + 90 * 60)
    assert once <= plan.bound_bytes <= plan.predicted.disk
    assert plan.bound_bytes <= sum(each.plan.bound_bytes for each in plan.statements)
    assert (plan.bound_bytes > once) == (memory < 60_000)


def test_too_many_tiles_are_refused_by_name():
    tiling, whole = Tiling(30_000, tile=1), Tiling(4, tile=4)
    expression = parse("ik,kj->ij", [(30_000, 4), (4, 4)])
    sparse = np.ones((30_000, 1), bool)
    facts = [
        Facts((30_000, 4), F8, "disk", 8, (tiling, whole), readable=sparse, stored=sparse),
        Facts((4, 4), F8, "disk", 8, (whole, whole)),
        Facts((30_000, 4), F8, "disk", 8, (tiling, whole), readable=sparse, stored=sparse),
    ]
    with pytest.raises(OutcoreError, match=r"'ik,kj->ij'.* the tiles .* 20000 can") as caught:
        contract(expression, facts, 1 << 30, ASSUMED)
    assert caught.value.errno == errno.ENOTSUP


def test_too_little_memory_says_what_is_needed():
    for shapes in ([(100, 100), (100, 100)], [(1, 7), (7, 1)], [(300, 2), (2, 500)]):
        with pytest.raises(OutcoreError, match=r"smallest panels take \d+ bytes, .* 30 bytes") as caught:
            planned("ik,kj->ij", shapes, 30)
        assert caught.value.errno == errno.ENOMEM
        needed = int(re.findall(r"take (\d+) bytes", str(caught.value))[0])
        assert f"{needed - 30} too few" in str(caught.value)
        assert planned("ik,kj->ij", shapes, needed).workspace_bytes <= needed
        with pytest.raises(OutcoreError, match=f"take {needed} bytes"):
            planned("ik,kj->ij", shapes, needed - 1)


def test_plans_can_be_saved_and_compared():
    shapes = [(40, 50), (50, 60), (60, 70)]
    plan = planned("ij,jk,kl->il", shapes, 40_000)
    again = Plan.from_json(plan.as_json())
    assert again == plan
    assert "1.00 x" in plan.compare(again)
    smaller = planned("ij,jk,kl->il", shapes, 20_000)
    assert smaller != plan
    assert "disk read" in plan.compare(smaller)
    assert "bound" in plan.table()


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": 4}', '{"format": 1}', '{"format": 99}', '{"format": 4, "rates": 3}']
)
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(OutcoreError, match="read a plan"):
        Plan.from_json(text)


def test_forced_choices_are_taken():
    expression = parse("ik,kj->ij", [(90, 90), (90, 90)])
    facts = [plain((90, 90), F8, "disk")] * 3
    for keep in ("result", "left", "right"):
        choice = Choice(keep, False, (1, 30, 30, 30), (1, 1, 1, 1))
        found = contract(expression, facts, 10**6, ASSUMED, choices=[choice]).statements[0].plan
        assert found.choice == choice
        left, right = {"result": (3, 3), "left": (1, 3), "right": (3, 1)}[keep]
        most = 8 * 90 * 90 * (left + right)
        assert 8 * 90 * 90 * 2 <= found.predicted.disk_read <= most


def test_tilings_that_differ_are_named():
    expression = parse("ik,kj->ij", [(10, 10), (10, 10)])
    tiled = [Facts((10, 10), F8, "disk", 8, (Tiling(10), Tiling(10, cuts))) for cuts in ((0, 5, 10), (0, 10))]
    other = replace(tiled[1], tilings=(Tiling(10, (0, 4, 10)), Tiling(10)))
    words = r"axis 'k' differ: cuts \[0, 5, 10\] in the left operand, \[0, 4, 10\] in the right operand"
    with pytest.raises(OutcoreError, match=words):
        contract(expression, [tiled[0], other, plain((10, 10), F8, "disk")], 10**6, ASSUMED)


def test_what_arrays_know_of_an_axis_is_put_together():
    irreps, spins = (
        Tiling(10, tile=5, irreps=(0, 1)),
        Tiling(10, tile=5, spins=(1, -1), name="spin orbitals"),
    )
    arrays = [("a", "ik", (irreps, None)), ("b", "ki", (irreps, spins))]
    found = common_tilings("look", arrays)
    assert found == {"i": Tiling(10, tile=5, irreps=(0, 1), spins=(1, -1)), "k": irreps}
    assert found["i"].name == "spin orbitals"
    with pytest.raises(OutcoreError, match=r"axis 'i' differ: irreps \[0, 1\] in a, \[1, 0\] in c"):
        common_tilings("look", [*arrays, ("c", "i", (Tiling(10, tile=5, irreps=(1, 0)),))])


# ---- order ----


def flops_of(pairs, inputs, extents):
    labels, total = list(inputs), 0
    for left, right, out in pairs:
        letters = set(labels[left]) | set(labels[right] if right >= 0 else "")
        total += math.prod(extents[x] for x in letters)
        labels.append(out)
    return total


@pytest.mark.parametrize("seed", many(range(20), 10))
def test_order_is_the_best_of_all(seed):
    """For a chain of matrices in memory, whose cost is the number of operations: against every bracketing."""
    random = np.random.default_rng(seed)
    extents = {letter: int(random.integers(200, 3000)) for letter in "abcdef"}
    inputs = ("ab", "bc", "cd", "de", "ef")
    expression = parse(",".join(inputs) + "->af", [tuple(extents[x] for x in pair) for pair in inputs])
    rates = replace(ASSUMED, copy=1e30)
    pairs = order(Cost(expression, [False] * 5, rates, 1e15, 8))

    def best(first, last):
        if first == last:
            return 0
        return min(
            best(first, cut)
            + best(cut + 1, last)
            + extents["abcdef"[first]] * extents["abcdef"[cut + 1]] * extents["abcdef"[last + 1]]
            for cut in range(first, last)
        )

    assert flops_of(pairs, inputs, extents) == best(0, 4)
    assert pairs[-1].out == "af"


def test_indices_of_one_operand_alone_are_summed_first():
    expression = parse("abc,d->b", [(3, 4, 5), (6,)])
    pairs = order(Cost(expression, [False] * 2, ASSUMED, 1e9, 8))
    assert [(pair.right, pair.out) for pair in pairs[:2]] == [(-1, "b"), (-1, "")]


def test_many_operands_are_taken_greedily():
    letters = "abcdefghijkl"
    inputs = [letters[i : i + 2] for i in range(11)]
    expression = parse(",".join(inputs) + "->al", [(5, 5)] * 11)
    pairs = order(Cost(expression, [False] * 11, ASSUMED, 1e9, 8))
    assert len(pairs) == 10
    assert flops_of(pairs, inputs, expression.extents) <= 10 * 125


# ---- cells and panels ----


def test_cells_cover_a_group_and_keep_tiles_whole():
    axes = [Axis("i", 7), Axis("j", 12, (0, 5, 8, 12)), Axis("k", 4)]
    for most, pieces in itertools.product((1, 3, 16, 20, 48, 100, 1000), (1, 2, 3)):
        cut = cut_for(axes, most, pieces)
        assert int(cut.sizes.sum()) == 7 * 12 * 4
        assert set(cut.cuts[1]) <= {0, 5, 8, 12}
        assert int(cut.sizes.max()) <= max(most, 5 * 4)


def test_panels_keep_classes_apart_and_are_even():
    found = panels([10] * 10, [0, 1] * 5, 30)
    assert sorted(cell for cells in found for cell in cells) == list(range(10))
    assert all(len({cell % 2 for cell in cells}) == 1 for cells in found)
    assert sorted(len(cells) for cells in found) == [2, 2, 3, 3]


def test_a_panel_that_was_used_last_goes_last():
    held = Held(2)
    assert [held.take(panel)[1] for panel in ((1,), (2,), (1,), (3,), (1,), (2,))] == [
        True, True, False, True, False, True,
    ]  # fmt: skip


def test_problems_of_a_saved_plan_are_those_it_was_made_for():
    shapes = [(9, 8), (8, 7), (7, 6)]
    expression = parse("ij,jk,kl->il", shapes)
    facts = [plain(shape, F8, "disk") for shape in [*shapes, (9, 6)]]
    plan = contract(expression, facts, 10**6, ASSUMED)
    found = problems(plan, expression, facts)
    assert all(isinstance(each, ProductProblem) for each in found)
    assert [str(each.product) for each in found] == [each.plan.product for each in plan.statements]


def test_a_product_is_planned_once_until_something_differs():
    rates = replace(ASSUMED, copy=4.321e9)  # that no other test has
    tiling = Tiling(60, tile=7)
    mask = np.eye(len(tiling), dtype=bool)
    expression = parse("ik,kj->ij", [(60, 60), (60, 60)])

    def plan(memory=20_000, rates=rates, adds=False, **facts):
        arrays = [Facts((60, 60), F8, "disk", 8, (tiling, tiling)) for _ in range(3)]
        arrays[0] = replace(arrays[0], **facts)
        return contract(expression, arrays, memory, rates, adds=adds).statements[0].plan

    different = [
        plan(),
        plan(memory=20_001),
        plan(rates=replace(rates, read=1e8)),
        plan(adds=True),
        plan(where="process"),
        plan(readable=mask),
        plan(readable=mask[::-1]),
        plan(tilings=(None, tiling)),
        plan(item_bytes=4),
    ]
    assert len({id(each) for each in different}) == len(different)
    assert plan() is different[0]
    assert plan(readable=mask.copy()) is different[5] != different[0]


def test_more_memory_is_never_too_little():
    """An intermediate array in memory leaves less for panels; if that is too little, it goes to disk."""
    expression = parse("ik,kl,lj->ij", [(8, 8)] * 3)
    facts = [Facts((8, 8), F8, "disk", 8, (Tiling(8, tile=4),) * 2)] * 4

    def fits(memory):
        try:
            contract(expression, facts, memory, ASSUMED)
        except OutcoreError as error:
            assert error.errno == errno.ENOMEM
            return False
        return True

    found = [fits(memory) for memory in range(500, 2000, 20)]
    assert found == sorted(found)
    assert found[-1]
    assert not found[0]


def whole_problem(extents, where="process"):
    b, m, n, k = extents
    shapes = (b, m, k), (b, k, n)
    expression = parse("bik,bkj->bij", shapes)
    facts = [plain(shape, F8, where) for shape in (*shapes, (b, m, n))]
    plan = contract(expression, facts, 1 << 30, ASSUMED)
    return next(iter(problems(plan, expression, facts)))


@pytest.mark.parametrize(
    "extents", [(1, 1500, 1500, 1500), (1, 7, 900, 3), (4, 50, 60, 70), (1, 1, 1, 1), (9, 5, 1, 8)]
)
@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_not_divided_is_what_the_search_finds(monkeypatch, extents, threads):
    problem, rates = whole_problem(extents), replace(ASSUMED, threads=threads)
    found = undivided(problem, 1 << 30, rates)
    assert found is not None and found == search(problem, 1 << 30, rates)
    monkeypatch.setattr(schedule, "undivided", lambda *_: None)
    assert found == search(problem, 1 << 30, rates)


def test_what_does_not_fit_or_lies_on_disk_is_searched():
    assert undivided(whole_problem((1, 100, 100, 100)), 8 * 49_999, ASSUMED) is None
    assert undivided(whole_problem((1, 100, 100, 100)), 8 * 50_000, ASSUMED) is not None
    assert undivided(whole_problem((1, 100, 100, 100), "disk"), 1 << 30, ASSUMED) is None
    assert undivided(whole_problem((1, 100, 100, 100)), 1 << 30, replace(ASSUMED, processes=2)) is None


def test_the_same_contraction_is_planned_once():
    expression = parse("ij,jk->ik", [(3, 4), (4, 5)])
    facts = [plain(shape, np.dtype(float), "process") for shape in ((3, 4), (4, 5), (3, 5))]
    first = contract(expression, facts, 1 << 20, ASSUMED)
    again = [plain(each.shape, each.dtype, each.where) for each in facts]
    assert contract(expression, again, 1 << 20, ASSUMED) is first
    assert contract(expression, again, 1 << 21, ASSUMED) is not first
    assert contract(expression, again, 1 << 20, ASSUMED.scaled(2.0, 1.0)) is not first
    assert contract(expression, again, 1 << 20, ASSUMED, adds=True) is not first


@pytest.mark.parametrize("seed", many(range(40), 20))
def test_more_than_ample_memory_makes_no_other_plan(monkeypatch, seed):
    random = np.random.default_rng(seed)
    extents = {label: int(random.integers(1, 50)) for label in "bijk"}
    if seed % 5 == 0:
        extents["j"] = extents["i"]
    tilings = {label: Tiling(n, tile=int(random.integers(3, 20))) for label, n in extents.items()}
    rates = replace(ASSUMED, threads=int(random.integers(1, 3)), processes=int(random.integers(1, 4)))

    def facts(labels):
        found = plain([extents[label] for label in labels], F8, random.choice(["disk", "process"]))
        if seed % 2:
            found = replace(found, tilings=tuple(tilings[label] for label in labels))
        if seed % 4 == 3:
            mask = random.random([len(tilings[label]) for label in labels]) < 0.7
            found = replace(found, readable=mask, stored=mask)
        return found

    labels = ("bik", "bkj", "bij") if seed % 5 and random.random() < 0.5 else ("ik", "kj", "ij")
    inside = {label: extents[label] for label in set("".join(labels))}
    arrays = [facts(each) for each in labels]
    if seed % 5 == 0:  # an array times itself
        labels, tilings["j"] = ("ik", "jk", "ij"), tilings["i"]
        arrays = [arrays[0].numbered(0), arrays[0].numbered(0), facts("ij")]
    problem = ProductProblem(binary(*labels, inside), inside, *arrays, adds=bool(random.integers(2)))
    ample = schedule.ample_bytes(problem)
    with monkeypatch.context() as endless:
        endless.setattr(product_plan, "ample_bytes", lambda _: 1 << 62)
        one, other = (make_plan(problem, memory, rates) for memory in (ample, 1000 * ample))
    assert replace(other, memory_bytes=ample) == one
    assert make_plan(problem, 1000 * ample, rates) == other


def test_an_equal_plan_makes_the_same_products():
    expression = parse("ij,jk->ik", [(3, 4), (4, 5)])
    facts = [plain(shape, np.dtype(float), "process") for shape in ((3, 4), (4, 5), (3, 5))]
    plan = contract(expression, facts, 1 << 20, ASSUMED)
    read = Plan.from_json(plan.as_json())
    assert read == plan and read is not plan
    mine, theirs = (products(each, expression, facts) for each in (plan, read))
    assert mine is products(plan, expression, facts) and mine is not theirs
    assert [each.plan for each in mine] == [each.plan for each in theirs]


@pytest.mark.parametrize("seed", range(60))
def test_cells_are_counted_as_they_are_cut(seed):
    random = np.random.default_rng(seed)
    axes = []
    for label in "abc"[: random.integers(1, 4)]:
        extent, kind = int(random.integers(0, 30)), random.integers(4)
        fixed = Tiling(extent, tile=int(random.integers(1, 9))).cuts if kind > 1 and extent else None
        axes.append(
            Axis(label, extent, fixed, bool(kind < 3), min(int(random.integers(1, 12)), max(1, extent)))
        )
    for most in (1, 2, 5, 11, 40, 300):
        for pieces in (1, 3):
            for by_chunks in (False, True):
                cut = cut_for(axes, most, pieces, by_chunks=by_chunks)
                assert cells_for(axes, most, pieces, by_chunks=by_chunks) == len(cut.sizes)


@pytest.mark.parametrize("chunk", [1, 512])
def test_only_cuts_that_may_be_panels_are_made(monkeypatch, chunk):
    """Others of a long axis have a million cells together, which takes seconds."""
    cells = []

    def cut(*args, **options):
        found = cut_for(*args, **options)
        cells.append(len(found.sizes))
        return found

    monkeypatch.setattr(sizes, "cut_for", cut)
    found = sizes.sizes_of((Axis(f"of {chunk}", 400_000, chunk=chunk),), chunk > 1)
    assert max(each.count for each in found) <= max(cells) <= sizes.MAX_CELLS
