"""Panels whose boundaries are those of chunks on disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.cells import Axis, cut_for
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import BoxOperand, plain
from outcore.tensor.layout.section import section_facts
from outcore.tensor.plan.product_plan import Planned, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.einsum import einsum

F8 = np.dtype(np.float64)


def of_chunks(shape, chunk):
    return replace(plain(shape, F8, "disk"), chunk=chunk)


@pytest.mark.parametrize("chunk", [2, 7, 16, 100])
@pytest.mark.parametrize("extent", [1, 15, 64, 100])
def test_intervals_hold_whole_chunks_or_divide_one(extent, chunk):
    axis = Axis("i", extent, chunk=min(chunk, extent))
    for most in range(1, extent + 2):
        cuts = axis.cut(most, by_chunks=True)
        assert cuts[0] == 0
        assert cuts[-1] == extent
        sizes = np.diff(cuts)
        assert 0 < sizes.min() <= sizes.max() <= most
        inside = [cut for cut in cuts[1:-1] if cut % axis.chunk]
        assert not inside or most < axis.chunk
        if inside:
            assert set(range(axis.chunk, extent, axis.chunk)) <= set(cuts)
        assert axis.whole_chunks(cuts) == pytest.approx(
            sum(
                min(axis.chunk, extent - begin)
                for begin in range(0, extent, axis.chunk)
                if not any(begin < cut < begin + axis.chunk for cut in cuts[1:-1])
            )
            / extent
        )


def test_of_several_axes_the_one_that_is_cut_keeps_its_chunks():
    axes = [Axis("i", 6, chunk=2), Axis("j", 50, chunk=16), Axis("k", 10, chunk=10)]
    cut = cut_for(axes, 350, by_chunks=True)
    assert cut.cuts == (tuple(range(7)), (0, 32, 50), (0, 10))
    assert cut.whole_chunks(axes) == 0  # each place of the first is by itself


def thin(chunk, memory, m=2000, k=16):
    """A plan of a product whose traffic is mostly that of the result."""
    facts = [plain((m, k), F8, "disk"), plain((k, m), F8, "disk"), plain((m, m), F8, "disk")]
    if chunk:
        facts[2] = replace(facts[2], chunk=chunk)
    extents = {"i": m, "j": m, "k": k}
    problem = ProductProblem(binary("ik", "kj", "ij", extents), extents, *facts)
    return Planned(problem, make_plan(problem, memory, ASSUMED))


def test_results_are_put_in_whole_chunks_where_parts_would_be_read_before():
    aligned, free = thin((256, 256), 1_500_000), thin(None, 1_500_000)
    assert aligned.geometry.parts_of_chunks == 0
    assert aligned.plan.choice.by_chunks
    assert free.geometry.parts_of_chunks == 0  # there are none that it knows
    # The same panels on an array of chunks take longer, as more is read.
    same = Planned(aligned.problem, make_plan(aligned.problem, 1_500_000, ASSUMED, free.plan.choice))
    assert same.geometry.parts_of_chunks > 0.3
    assert same.plan.predicted.seconds > 1.1 * aligned.plan.predicted.seconds
    assert same.plan.predicted.disk == free.plan.predicted.disk


def test_a_section_has_chunks_where_it_begins_with_one():
    facts = of_chunks((100, 60), (20, 30))
    assert section_facts(facts, 0, 40, 70).chunk == (20, 30)
    assert section_facts(facts, 0, 41, 70).chunk == (1, 30)
    assert section_facts(facts, 1, 10, 50).chunk == (20, 1)


@pytest.mark.parametrize("memory", [5_000, 30_000, 120_000])
def test_results_are_those_of_numpy(tmp_path, memory):
    random = np.random.default_rng(2)
    a, b = random.standard_normal((75, 90)), random.standard_normal((90, 70))
    with outcore.World("self", scratch=tmp_path, memory="64MB") as world:
        made = [
            outcore.DiskArray(world, shape, chunk=chunk)
            for shape, chunk in ((a.shape, (16, 32)), (b.shape, (30, 8)), ((75, 70), (16, 16)))
        ]
        made[0].write_all(a)
        made[1].write_all(b)
        assert BoxOperand(made[2]).facts.chunk == (16, 16)
        _, counted = einsum("ik,kj->ij", *made[:2], out=made[2], memory=memory, report=True)
        assert np.allclose(made[2][...], a @ b)
        assert counted.actual.disk == counted.predicted.disk
        for each in made:
            each.close()
