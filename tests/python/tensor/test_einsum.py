"""`einsum` against NumPy's, on arrays of all kinds, in memory of all sizes."""

from __future__ import annotations

import errno
import itertools
import re
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conformance.random_arrays import holding

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.expression import parse
from outcore.tensor.plan.plan import products
from outcore.tensor.program.einsum import einsum
from outcore.tensor.run import contraction

EXPRESSIONS = [
    ("ik,kj->ij", [(13, 9), (9, 11)]),
    ("ki,jk->ji", [(9, 13), (11, 9)]),
    ("ijcd,Qac,Qbd->ijab", [(3, 4, 5, 6), (7, 8, 5), (7, 9, 6)]),
    ("ijk,kjl->li", [(4, 5, 6), (6, 5, 3)]),
    ("bij,bjk->bik", [(9, 3, 4), (9, 4, 5)]),
    ("ibj,jkb->kib", [(3, 9, 4), (4, 5, 9)]),
    ("ab,ab->ab", [(6, 7)] * 2),
    ("ab,ab->", [(6, 7)] * 2),
    ("i,j->ij", [(3,), (4,)]),
    ("ij->ji", [(4, 6)]),
    ("ij->", [(4, 6)]),
    ("ii->i", [(5, 5)]),
    ("iij,jk->ik", [(4, 4, 5), (5, 6)]),
    ("abc,d->b", [(3, 4, 5), (6,)]),
    ("ab,bc,cd,de->ae", [(3, 4), (4, 5), (5, 6), (6, 7)]),
    (",->", [(), ()]),
]


@pytest.fixture(scope="module")
def world():
    with outcore.World("self", memory="200MB") as world:
        yield world


def on_disk(world, array):
    disk = outcore.DiskArray(world, array.shape, array.dtype)
    disk.write_all(array)
    return disk


@pytest.mark.parametrize("memory", [None, 20_000, 6_000])
@pytest.mark.parametrize(("subscripts", "shapes"), EXPRESSIONS)
def test_arrays_of_numpy(subscripts, shapes, memory):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in shapes]
    expected = np.einsum(subscripts, *arrays)
    found = einsum(subscripts, *arrays, memory=memory)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kinds", list(itertools.product(("numpy", "global", "disk", "node"), repeat=2)))
def test_arrays_of_all_kinds_mix(world, kinds):
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(shape) for shape in ((20, 3, 15), (15, 25, 3))]
    expected = np.einsum("iak,kja->ji", *arrays)
    made = []
    for kind, array in zip(kinds, arrays, strict=True):
        if kind == "disk":
            made.append(on_disk(world, array))
        elif kind == "global":
            made.append(outcore.GlobalArray(world, array.shape))
            made[-1][...] = array
        elif kind == "node":
            made.append(outcore.NodeArray(world, array.shape))
            made[-1].view[...] = array
        else:
            made.append(array)
    for memory in (4_000, 100_000):
        with outcore.DiskArray(world, (25, 20)) as out:
            assert einsum("iak,kja->ji", *made, out=out, memory=memory) is out
            np.testing.assert_allclose(out[...], expected, rtol=1e-12, atol=1e-12)
    for array in made:
        if not isinstance(array, np.ndarray):
            array.close()


def test_bytes_are_those_that_were_predicted(world):
    random = np.random.default_rng(2)
    a, b = random.standard_normal((300, 200)), random.standard_normal((200, 250))
    with on_disk(world, a) as left, on_disk(world, b) as right, outcore.DiskArray(world, (300, 250)) as out:
        for memory in (50_000, 200_000, 2_000_000):
            _, counted = einsum("ik,kj->ij", left, right, out=out, memory=memory, report=True)
            assert counted.actual.disk_read == counted.predicted.disk_read
            assert counted.actual.disk_written == counted.predicted.disk_written == 8 * 300 * 250
            assert counted.actual.flops == 2 * 300 * 250 * 200
            np.testing.assert_allclose(out[...], a @ b, rtol=1e-12, atol=1e-12)


def test_accumulate_and_scale(world):
    random = np.random.default_rng(3)
    a, b, c = (random.standard_normal((30, 30)) for _ in range(3))
    with on_disk(world, a) as left, on_disk(world, c) as out:
        einsum("ik,kj->ij", left, b, out=out, accumulate=True, scale=-0.5, memory=9_000)
        np.testing.assert_allclose(out[...], c - 0.5 * (a @ b), rtol=1e-12, atol=1e-12)
    local = c.copy()
    einsum("ik,kj->ij", a, b, out=local, accumulate=True, scale=3)
    np.testing.assert_allclose(local, c + 3 * (a @ b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
def test_element_types_are_those_of_numpy(dtype):
    random = np.random.default_rng(4)
    a, b = ((9 * random.standard_normal((7, 7))).astype(dtype) for _ in range(2))
    found = einsum("ik,kj->ij", a, b, memory=1_500)
    expected = np.einsum("ik,kj->ij", a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_types_mix(world):
    random = np.random.default_rng(5)
    a, b = random.standard_normal((20, 30)).astype(np.float32), random.standard_normal((30, 10))
    with on_disk(world, a) as left, outcore.DiskArray(world, (20, 10), np.complex128) as out:
        einsum("ik,kj->ij", left, b, out=out, memory=5_000)
        np.testing.assert_allclose(out[...], a.astype(float) @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_tiles_that_are_not_there_are_neither_read_nor_multiplied(world, share):
    random = np.random.default_rng(6)
    cuts = [[0, 3, 7, 12], [0, 5, 6, 14], [0, 4, 13]]
    whole, tiles = [], []
    for axes in ((0, 1, 2), (2, 1, 0)):
        flags = random.random([len(cuts[axis]) - 1 for axis in axes]) < share
        array = outcore.BlockSparseArray(world, [cuts[axis] for axis in axes], flags)
        dense = np.zeros([cuts[axis][-1] for axis in axes])
        for tile in array.tiles:
            dense[array.box(tile)] = random.standard_normal(array.tile_shape(tile))
            array.put_tile(tile, dense[array.box(tile)])
        tiles.append(array)
        whole.append(dense)
    for memory in (16_000, 10**6):
        found = np.zeros((12, 12))
        _, counted = einsum("ajk,kjb->ab", *tiles, out=found, memory=memory, report=True)
        np.testing.assert_allclose(found, np.einsum("ajk,kjb->ab", *whole), rtol=1e-12, atol=1e-12)
        assert counted.actual.disk_read == counted.predicted.disk_read
    if share == 0:
        assert counted.actual.flops == counted.actual.disk_read == 0
    for array in tiles:
        array.close()


def test_a_sparse_result_gets_its_tiles_alone(world):
    random = np.random.default_rng(7)
    a, b = random.standard_normal((10, 6)), random.standard_normal((6, 9))
    with outcore.BlockSparseArray(world, [[0, 4, 10], [0, 5, 9]], [(0, 0), (1, 1)]) as out:
        _, counted = einsum("ik,kj->ij", a, b, out=out, report=True)
        expected = np.zeros((10, 9))
        for box in (np.s_[:4, :5], np.s_[4:, 5:]):
            expected[box] = (a @ b)[box]
        np.testing.assert_allclose(out.to_numpy(), expected, rtol=1e-12, atol=1e-12)
        assert counted.actual.disk_written == 8 * (4 * 5 + 6 * 4)


def test_nan_and_infinity_pass_through():
    a, b = np.ones((4, 4)), np.ones((4, 4))
    a[1, 2], b[0, 3] = np.nan, np.inf
    np.testing.assert_array_equal(einsum("ik,kj->ij", a, b, memory=1_000), a @ b)


def test_no_elements_give_zeros(world):
    out = np.ones((3, 2))
    einsum("ik,kj->ij", np.zeros((3, 0)), np.zeros((0, 2)), out=out)
    assert (out == 0).all()
    assert einsum("ik,kj->ij", np.zeros((0, 3)), np.zeros((3, 2))).shape == (0, 2)


def test_a_result_that_nobody_made_is_where_it_fits(world):
    a = np.ones((40, 40))
    with on_disk(world, a) as left:
        for memory, kind in ((100_000, outcore.GlobalArray), (20_000, outcore.DiskArray)):
            with einsum("ik,kj->ij", left, a, memory=memory) as found:
                assert isinstance(found, kind)
                assert (found[...] == 40).all()
        assert einsum("ij,ij->", left, a) == 1600


def test_plans_can_be_forced_and_are_checked(world):
    a, b = np.ones((30, 30)), np.ones((30, 20))
    plan = einsum.plan("ik,kj->ij", a, b, memory=9_000)
    again = type(plan).from_json(plan.as_json())
    found, counted = einsum("ik,kj->ij", a, b, plan=again, report=True)
    np.testing.assert_allclose(found, a @ b)
    assert counted.plan == plan
    with pytest.raises(OutcoreError, match="the plan is for") as caught:
        einsum("ik,kj->ij", a, a, plan=plan)
    assert caught.value.errno == errno.EINVAL


def test_progress_rises_to_one():
    told = []
    a = np.ones((60, 60))
    einsum("ik,kj,jl->il", a, a, a, memory=10_000, progress=told.append)
    fractions = [each.fraction for each in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    assert told[-1].seconds_left == pytest.approx(0, abs=1e-9)
    assert told[-1].task == told[-1].tasks > 1
    assert {each.statement for each in told} == {"ik,kj,jl->il"}


def test_the_last_of_several_products_ends_at_one():
    seconds = 0.1, 0.3  # whose shares do not add up to one
    plan = SimpleNamespace(
        statements=[
            SimpleNamespace(plan=SimpleNamespace(predicted=SimpleNamespace(seconds=s))) for s in seconds
        ]
    )
    told = []
    contraction._part(lambda *each: told.append(each), plan, 1)(1.0, 4, 4)
    assert told == [(1.0, 4, 4)]


def test_progress_in_the_terminal(capsys):
    a = np.ones((60, 60))
    einsum("ik,kj->ij", a, a, memory=10_000, progress=True)
    assert "ik,kj->ij" in capsys.readouterr().out


def test_what_progress_raises_ends_the_run():
    def tell(_):
        raise ValueError("enough")

    with pytest.raises(OutcoreError, match="enough"):
        einsum("ik,kj->ij", np.ones((60, 60)), np.ones((60, 60)), progress=tell)


@pytest.mark.parametrize("kind", ["numpy", "disk", pytest.param("array: disk", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("subscripts", "options"),
    [
        ("ik,kj->ij", {}),
        ("ij,jk,kl->il", {}),
        ("ij,jk,kl,lm->", {}),
        ("ij->", {}),
        ("ik,jk->ij", {"symmetry": "symmetric(0,1)"}),
        ("ik,kj->ij", {"symmetry": "antisymmetric(0,1)", "symmetrize": True}),
    ],
)
def test_the_memory_that_an_error_names_is_enough(world, kind, subscripts, options):
    """Including everything in memory beside panels: intermediate arrays and the result."""
    values = np.random.default_rng(3).standard_normal((14, 14))
    a = holding(world, kind, values)
    operands = [a] * (subscripts.count(",") + 1)
    for memory in (1, 500):
        used = world.budget.used_bytes
        try:
            close(einsum(subscripts, *operands, memory=memory, world=world, **options))
            continue
        except OutcoreError as error:
            assert error.errno == errno.ENOMEM
            words = re.search(r"smallest panels take (\d+) bytes, .* there are (\d+) bytes", str(error))
        assert int(words[2]) == memory < int(words[1])
        assert world.budget.used_bytes <= used  # no result was made
        found = einsum(subscripts, *operands, memory=int(words[1]), world=world, **options)
        exact = np.einsum(subscripts, *[values] * len(operands))
        if "symmetrize" in options:
            exact = exact - exact.T
        np.testing.assert_allclose(found if np.ndim(found) == 0 else found[...], exact, atol=1e-9)
        close(found)
    close(a)


def close(array):
    if hasattr(array, "close"):
        array.close()


def test_too_little_memory_leaves_what_is_in_a_result(world):
    values = np.eye(14)
    axis = outcore.Tiling(14, tile=4)
    with outcore.Array.from_numpy(world, values, [axis, axis], symmetry="symmetric(0,1)") as out:
        with pytest.raises(OutcoreError, match="smallest panels"):
            einsum("ik,kj->ij", values, values, out=out, symmetrize=True, memory=50)
        np.testing.assert_array_equal(out.to_numpy(), values)


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        (lambda a, w: einsum("ik,kj->ij", a, a, out=a), errno.EINVAL, "the result is operand 0"),
        (lambda a, w: einsum("ik,kj->ij", a, a, out=np.zeros((2, 2))), errno.EINVAL, "the result has shape"),
        (lambda a, w: einsum("ik,kj->ij", a * 1j, a, out=np.zeros((8, 8))), errno.EINVAL, "a result of type"),
        (lambda a, w: einsum("ik,kj->ij", a, a, memory=30), errno.ENOMEM, "smallest panels"),
        (lambda a, w: einsum("ik,kj->ij", a), errno.EINVAL, "2 operands, 1"),
    ],
)
def test_bad_arguments_are_refused(world, call, number, words):
    with pytest.raises(OutcoreError, match=words) as caught:
        call(np.ones((8, 8)), world)
    assert caught.value.errno == number


def test_an_array_of_another_kind_is_refused():
    with pytest.raises(OutcoreError, match="dict is no array"):
        einsum("i->i", {})


def test_workspace_is_accounted_to_the_budget(world):
    """The actual memory of panels counts, whatever a plan from a file claims."""
    a = np.ones((90, 90))
    with on_disk(world, a) as left, on_disk(world, a) as right:
        plan = einsum.plan("ik,kj->ij", left, right, out=np.zeros((90, 90)))
        (statement,) = plan.statements
        small = replace(statement, plan=replace(statement.plan, workspace_bytes=0))
        plan = replace(plan, statements=(small,))
        held = world.budget.used_bytes
        free = world.budget.limit_bytes - held
        world.budget.reserve(free - 1000, "a test")
        try:
            with pytest.raises(OutcoreError, match="workspace of einsum") as caught:
                einsum("ik,kj->ij", left, right, out=np.zeros((90, 90)), memory="100MB", plan=plan)
        finally:
            world.budget.release(free - 1000)
        assert caught.value.errno == errno.ENOMEM
        assert world.budget.used_bytes == held


# ---- extended arrays ----


def extended(world, shape, tile, seed, where="disk", **options):
    tilings = [outcore.Tiling(extent, tile=tile) for extent in shape]
    layout = outcore.Layout(tilings, **options)
    raw = np.random.default_rng(seed).standard_normal(shape)
    values = sum(sign * np.transpose(raw, axes) for axes, sign in layout.symmetry.elements.items())
    for tile_index in np.ndindex(*layout.grid):
        if not layout.there[tile_index]:
            values[layout.box(tile_index)] = 0
    return outcore.Array.from_numpy(world, values, layout, where=where), values


@pytest.mark.parametrize("where", ["process", "node", "global", "disk"])
def test_extended_arrays_with_symmetry(world, where):
    t, t_values = extended(world, (5, 5, 7, 7), 3, 1, where, symmetry="pair")
    b, b_values = extended(world, (4, 7, 7), 3, 2, where)
    expected = np.einsum("ijcd,Qac,Qbd->ijab", t_values, b_values, b_values, optimize=True)
    found = einsum("ijcd,Qac,Qbd->ijab", t, b, b, memory="200kB", symmetry="pair")
    assert isinstance(found, outcore.Array)
    assert found.layout.symmetry == t.layout.symmetry
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-11, atol=1e-11)
    for array in (t, b, found):
        array.close()


def test_half_of_a_symmetric_result_is_computed(world):
    a, values = extended(world, (600, 400), 50, 3)
    found, counted = einsum("ik,jk->ij", a, a, symmetry="symmetric(0,1)", memory="500kB", report=True)
    with found:
        np.testing.assert_allclose(found.to_numpy(), values @ values.T, rtol=1e-11, atol=1e-11)
        assert counted.actual.flops < 0.75 * 2 * 600 * 600 * 400
    a.close()


def test_a_symmetry_that_the_result_need_not_have_is_refused_or_made(world):
    a, a_values = extended(world, (8, 6), 3, 4)
    b, b_values = extended(world, (6, 8), 3, 5)
    with pytest.raises(OutcoreError, match=r"need not have the symmetry .* \(1, 0\)") as caught:
        einsum("ik,kj->ij", a, b, symmetry="antisymmetric(0,1)")
    assert caught.value.errno == errno.EINVAL
    product = a_values @ b_values
    found, counted = einsum("ik,kj->ij", a, b, symmetry="antisymmetric(0,1)", symmetrize=True, report=True)
    assert counted.actual.flops == counted.predicted.flops == 2 * counted.plan.predicted.flops > 0
    with found:
        np.testing.assert_allclose(found.to_numpy(), product - product.T, rtol=1e-11, atol=1e-11)
        einsum("ik,kj->ij", a, b, out=found, symmetrize=True, accumulate=True, scale=2)
        np.testing.assert_allclose(found.to_numpy(), 3 * (product - product.T), rtol=1e-11, atol=1e-11)
    a.close()
    b.close()


def test_zero_tiles_of_operands_are_those_of_the_result_and_of_what_is_between(world):
    random = np.random.default_rng(6)
    arrays = [extended(world, (8, 8), 2, seed, sparsity=random.random((4, 4)) < 0.3) for seed in (7, 8, 9)]
    expected = np.linalg.multi_dot([values for _, values in arrays])
    with einsum("ij,jk,kl->il", *(array for array, _ in arrays), memory="8kB") as found:
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-11, atol=1e-11)
        assert not found.layout.there.all()
    for array, _ in arrays:
        array.close()


def test_single_precision_in_store_is_read_as_double(world):
    values = np.random.default_rng(10).standard_normal((12, 12))
    stored = outcore.Array.from_numpy(
        world, values, [outcore.Tiling(12, tile=5)] * 2, where="disk", store_dtype="float32"
    )
    found, counted = einsum("ik,kj->ij", stored, values, report=True)
    np.testing.assert_allclose(found.to_numpy(), values @ values, rtol=1e-5, atol=1e-5)
    assert counted.predicted.disk_read == 4 * 12 * 12
    stored.close()
    found.close()


def test_a_result_keeps_what_the_tilings_of_its_operands_say(world):
    o = outcore.Tiling(6, tile=2, irreps=[0, 1, 3], spins=[1, 1, -1], name="o")
    v = outcore.Tiling(8, tile=4, irreps=[2, 1], name="v")
    a = outcore.Array.from_numpy(world, np.ones((6, 8)), [o, v], where="disk")
    plain = outcore.Array.from_numpy(world, np.ones((6, 6)), [outcore.Tiling(6, tile=2)] * 2)
    with einsum("ij,ja->ia", plain, a) as found, einsum("ij,jk,ka->ai", plain, plain, a) as turned:
        assert found.layout.tilings == (plain.layout.tilings[0], v)
        assert turned.layout.tilings == (v, plain.layout.tilings[0])
        assert turned.layout.tilings[0].name == "v"
    with einsum("ia,ib->ab", a, a) as found, einsum("ia,ja->ij", a, a) as other:
        assert found.layout.tilings == (v, v)
        assert other.layout.tilings == (o, o)
        total = found + found
        assert (total[...] == 12).all()
        total.close()
    a.close()
    plain.close()


@pytest.mark.parametrize("text", ["ab,bc,ab->", "ab,bc->ac", "ab,bc,ab->c", "bc,ab->"])
def test_tilings_of_one_axis_that_differ_are_refused(world, text):
    """For an axis of operands that are multiplied directly, of others, and of the result."""
    a, _ = extended(world, (6, 6), 3, 1)
    b, _ = extended(world, (6, 6), 2, 2, sparsity=np.eye(3, dtype=bool))
    arrays = [{"ab": a, "bc": b}[word] for word in text.partition("->")[0].split(",")]
    with pytest.raises(OutcoreError, match=r"the tilings of axis 'b' differ: cuts .* in operand") as caught:
        einsum(text, *arrays)
    assert caught.value.errno == errno.EINVAL
    out = outcore.Array(world, [outcore.Tiling(6, tile=1), outcore.Tiling(6, tile=2)])
    with pytest.raises(OutcoreError, match=r"the tilings of axis 'a' differ: .* in `out`"):
        einsum("ab->ab", a, out=out)
    for array in (a, b, out):
        array.close()


def test_labels_of_one_axis_that_differ_are_refused(world):
    axes = [outcore.Tiling(4, tile=2, irreps=irreps) for irreps in ([0, 1], [1, 0], [0, 0])]
    a, b, c = (outcore.Array.from_numpy(world, np.ones((4, 4)), [axis] * 2) for axis in axes)
    with pytest.raises(
        OutcoreError, match=r"axis 'j' differ: irreps \[0, 1\] in operand 0, \[1, 0\] in"
    ) as caught:
        einsum("ij,jk->ik", a, b)
    assert caught.value.errno == errno.EINVAL
    with einsum("ij,jk->ik", a, c) as found:
        assert found.layout.tilings == (axes[0], axes[2])
    for array in (a, b, c):
        array.close()


@pytest.mark.parametrize("kind", ["disk", "tiles"])
def test_a_diagonal_takes_little_memory(world, kind):
    """Not all elements beside the diagonal are read at once."""
    n = 1500
    values = np.random.default_rng(3).standard_normal((n, n))
    if kind == "tiles":
        made = outcore.Array.from_numpy(world, values, [outcore.Tiling(n, tile=70)] * 2, where="disk")
    else:
        made = on_disk(world, values)
    with made:
        tracemalloc.start()
        try:
            found = einsum("ii->i", made, out=np.empty(n))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    np.testing.assert_array_equal(found, np.diagonal(values))
    assert peak < values.nbytes / 4


def test_copies_of_another_type_are_planned_with(world):
    """An array of another type has a copy beside its panels on their way."""
    shapes = (300, 200), (200, 250)
    first, second = (np.ones(shape) for shape in shapes)
    with on_disk(world, first.astype("float32")) as a, on_disk(world, second) as b:
        plan = einsum.plan("ik,kj->ij", a, b, out=np.empty((300, 250)), memory=300_000)
        (found,) = (each.plan for each in plan.statements)
        planned = products(plan, parse("ik,kj->ij", shapes), facts_of(a, b, np.empty((300, 250))))[0]
        panels = [size * slots for size, slots in zip(planned.largest[:2], found.slots, strict=True)]
        result = planned.largest[2] * found.choice.results
        assert found.workspace_bytes == (8 + 4) * panels[0] + 8 * panels[1] + 8 * result <= 300_000


def facts_of(*arrays):
    return [operand(each).facts for each in arrays]
