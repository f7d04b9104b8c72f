"""Arguments that are no array, no number or no label: one clear error, before anything is made or changed."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import outcore
from outcore import Array, GlobalArray, Labels, Layout, NodeArray, OutcoreError, Program, Tiling

TILES = [Tiling(8, tile=3)] * 2
VALUES = np.random.default_rng(1).standard_normal((8, 8))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with outcore.World("self", scratch=tmp_path_factory.mktemp("misuse"), memory="100MB") as made:
        yield made


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Labels("x"), "irrep 'x' is none of the integers"),
        (lambda: Labels(8), "irrep is 8; it may be 0 to 7"),
        (lambda: Labels(None, 9), "spin is 9"),
        (lambda: Layout(TILES, [(0.5, 0)]), "tile"),
        (lambda: Layout(TILES, "all"), "sparsity 'all': it is Labels"),
        (lambda: Layout([Tiling(1 << 62)] * 4), "more than 2.62 elements"),
        (lambda: Layout([Tiling(1 << 40, tile=1 << 38)] * 2), "more than 2.62 elements"),
    ],
)
def test_layouts_that_cannot_be(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_few_tiles_of_a_huge_shape_are_a_layout():
    side = Tiling(1 << 40, [0, 4, 1 << 40])
    assert Layout([side] * 2, [(0, 0)]).elements == 16


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda w, a: Array.wrap(w, [1.0, 2.0]), "list is none of the arrays"),
        (Array.wrap, "Array is none of the arrays"),
        (lambda w, a: Array.wrap(w, NodeArray(w, (3, 3))), "NodeArray is none of the arrays"),
        (lambda w, a: a + np.ones((2, 1)), r"an array of shape \(2, 1\) with .*, whose shape the result has"),
        (
            lambda w, a: a + Array.wrap(w, np.ones((1, 3))),
            "shapes that differ.*only arrays of NumPy are repeated",
        ),
        (lambda w, a: a * GlobalArray(w, (1, 3)), "their shapes differ; only arrays of NumPy are repeated"),
        (lambda w, a: Array.from_numpy(w, [[1.0]]), "list is no NumPy array"),
        (lambda w, a: Array.from_numpy(w, np.ma.masked_array(VALUES, VALUES > 0)), "MaskedArray is no"),
        (lambda w, a: a.__add__([[1.0]]), "list is none of the arrays"),
        (lambda w, a: a.axpy(None, a), "alpha=None is no number"),
        (lambda w, a: a.axpy("1", a), "alpha='1' is no number"),
        (lambda w, a: a.axpy(1j, a), "cannot hold complex elements"),
        (lambda w, a: a.fill(None), "value=None is no number"),
        (lambda w, a: a.fill(1j), "cannot hold complex elements"),
        (lambda w, a: a.transpose(0, 0), r"axes \(0, 0\) of an array of 2"),
        (lambda w, a: a.transpose("ab"), "axes"),
        (lambda w, a: outcore.einsum("ij->ij", a, scale=None), "scale=None is no number"),
        (lambda w, a: outcore.einsum("ij->ij", a, scale="2"), "scale='2' is no number"),
        (lambda w, a: outcore.einsum("ij->ij", a, scale=np.ones(2)), "is no number"),
        (lambda w, a: outcore.einsum("ij->ij", a, threads=0), "threads=0; there may be 1 to"),
        (lambda w, a: outcore.einsum("ij->ij", a, threads=1000), "threads=1000; there may be 1 to"),
        (lambda w, a: outcore.einsum("ij->ij", a, threads="2"), "threads '2' is none of the integers"),
        (lambda w, a: outcore.einsum("ij->ij", a, plan="best"), "plan='best' is no plan"),
        (lambda w, a: outcore.einsum("ij->", a, symmetry="symmetric(0,1)"), "of a number"),
        (lambda w, a: outcore.einsum("ij->", np.array([["a"]]), world=w), "its elements are no numbers"),
        (lambda w, a: outcore.einsum("i->", np.array([None]), world=w), "its elements are no numbers"),
        (lambda w, a: outcore.einsum("i->", [None], world=w), "its elements are no numbers"),
        (
            lambda w, a: outcore.einsum("ij->", np.ma.masked_array(VALUES, VALUES > 0), world=w),
            "a masked array",
        ),
        (lambda w, a: outcore.einsum("...i->i", np.ones((3, 8)), world=w), "the output has no '...'"),
    ],
)
def test_calls_that_cannot_be_are_refused_and_nothing_is_changed(world, call, words):
    with Array.from_numpy(world, VALUES, TILES) as a:
        with pytest.raises(OutcoreError, match=words) as caught:
            call(world, a)
        assert caught.value.errno == errno.EINVAL
        assert np.array_equal(a.to_numpy(), VALUES)


def test_factors_of_a_program_are_numbers(world):
    with Program(world) as p:
        x = p.input(VALUES)
        for call in (lambda: None * x, lambda: x * "2", lambda: outcore.einsum("ij->ij", x, scale=None)):
            with pytest.raises((OutcoreError, TypeError), match="is no number"):
                call()


def test_a_tile_goes_into_a_numpy_array(world):
    with Array.from_numpy(world, VALUES, TILES) as a:
        with pytest.raises(TypeError, match="`out` is list, no NumPy array"):
            a.get_tile((0, 0), [1.0])
        with pytest.raises(IndexError, match="tile"):
            a.prefetch([(9, 9)])


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "bool"])
def test_whole_numbers_times_half_are_no_whole_numbers(world, kind):
    x = np.arange(16).reshape(4, 4).astype(kind)
    for size in (1, 20):  # small products, and those of BLAS
        wide = np.kron(x, np.ones((size, size), kind))
        exact = 0.5 * (wide.astype(float) @ wide)
        if kind == "int64":
            found = outcore.einsum("ik,kj->ij", wide, wide, scale=0.5, world=world)
            np.testing.assert_allclose(found, exact)
        assert outcore.einsum("ij->ij", wide, scale=0.5, world=world).dtype.kind == "f"
    with pytest.raises(OutcoreError, match="a result of type float"):
        outcore.einsum("ij->ij", x, out=np.zeros_like(x), scale=0.5, world=world)
    with GlobalArray(world, (4, 4), "int64") as g:
        doubled = outcore.einsum("ij->ij", g, scale=2)
        assert doubled.dtype == np.int64
        doubled.close()


def test_elements_of_any_precision_are_contracted(world):
    """No rates are measured for types that BLAS does not have."""
    for kind in ("float16", "longdouble", "clongdouble", ">f8"):
        x = VALUES.astype(kind)
        found = outcore.einsum("ik,kj->ij", x, x, world=world)
        np.testing.assert_allclose(found, VALUES @ VALUES, rtol=0.02, atol=0.05)


def test_axes_are_transposed_as_numpy_does(world):
    with Array.from_numpy(world, VALUES, TILES) as a:
        for axes in ((), (1, 0), ((1, 0),), (-1, 0), ([-1, -2],)):
            with a.transpose(*axes) as turned:
                assert np.array_equal(turned.to_numpy(), VALUES.transpose(*axes)), axes


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (lambda p, x: x + 1, "int in place of an array"),
        (lambda p, x: x * x, "factor=Variable is no number"),
        (lambda p, x: x.__setitem__(..., 0), "int in place of an array"),
        (lambda p, x: p.combine(None), "NoneType in place of an array"),
        (lambda p, x: p.map(3, x), "int is no function"),
        (lambda p, x: p.map(lambda box: 1), "no operands and no `out`"),
        (lambda p, x: p.array((0, 3)), r"shape \(0, 3\)"),
        (lambda p, x: p.array((-2, 3)), r"shape \(-2, 3\)"),
        (lambda p, x: p.array(("a", 3)), "shape"),
        (lambda p, x: p.array((3,) * 9), "up to 8 axes"),
        (lambda p, x: p.array((3, 3), "foo"), "foo"),
        (lambda p, x: p.array((3, 3), "float16"), "dtype float16"),
        (lambda p, x: p.array(Layout(TILES), "int32"), "dtype int32"),
        (lambda p, x: p.array((3, 3), name=3), "name=3 is no text"),
        (lambda p, x: list(p.iterate(-3)), "iterate"),
        (lambda p, x: list(p.iterate(2.5)), "iterate"),
        (lambda p, x: list(p.iterate("3")), "iterate"),
        (lambda p, x: list(p.iterate(3, 5)), "iterate"),
        (lambda p, x: Program(p.world, every="x"), "every='x' is no number"),
        (lambda p, x: Program(p.world, every=-1), "every=-1"),
        (lambda p, x: p.run(plan="x"), "plan='x' is no plan"),
    ],
)
def test_what_a_program_cannot_be_is_refused_when_it_is_recorded(world, record, words):
    with Program(world) as p:
        x = p.input(VALUES.copy(), "x")
        with pytest.raises(OutcoreError, match=words) as caught:
            record(p, x)
        assert caught.value.errno == errno.EINVAL
        assert not p.statements


def test_a_shape_may_be_a_number(world):
    with Program(world) as p:
        made = p.output(p.array(3))
    p.run()
    assert made.result.shape == (3,)
    made.result.close()
