"""Lower bounds of the traffic of a product: against closed forms, and against plans that were found by
hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import Facts
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan.bound import (
    ONE_ARRAY,
    TWO_ARRAYS,
    MovedOnce,
    bound,
    least_bytes,
    least_words,
    needed_bytes,
    symmetric,
)


def on_disk(m, n, k):
    return MovedOnce(8.0 * m * k, 8.0 * k * n, 8.0 * m * n)


def test_in_little_memory_it_is_that_of_smith_and_others():
    n, words = 10**5, 10**6
    found = least_bytes(n**3, on_disk(n, n, n), 8.0 * words, 8)
    assert found == pytest.approx(8 * (2 * n**3 / math.sqrt(words) - 2 * words))


@pytest.mark.parametrize("memory", [0.05, 0.1, 0.3])
def test_in_more_memory_it_is_larger_than_that(memory):
    """A run begins with empty memory: most of the reduction in the closed form does not apply."""
    n = 1000
    words = memory * n * n
    found = least_words(n**3, words, TWO_ARRAYS.of_words)
    assert found > 2 * n**3 / math.sqrt(words) - 2 * words + 0.4 * words


def test_a_symmetric_result_has_the_bound_of_beaumont_and_others():
    rows, inner, words = 10**5, 10**5, 10**6
    moved = MovedOnce(8.0 * rows * inner, 8.0 * rows * inner, 8.0 * rows * rows, one_array=True)
    found = least_bytes(rows * rows * inner, moved, 8.0 * words, 8, symmetric(rows))
    below = rows * (rows - 1) / 2  # the other elements are written beside
    expected = 2 * below * inner / math.sqrt(2 * words) - 2 * words + rows * rows - below
    assert found == pytest.approx(8 * expected)


@pytest.mark.parametrize("pieces", [2, 3, 4, 7])
def test_panels_that_fill_the_memory_move_more(pieces):
    """pieces x pieces panels of the result, and no memory for those of operands."""
    n = 420
    words = (n // pieces) ** 2
    assert least_bytes(n**3, on_disk(n, n, n), 8.0 * words, 8) < 8 * (2 * pieces + 1) * n * n


@pytest.mark.parametrize("line, points", [(3, 7), (4, 13), (6, 31)])
def test_lines_of_a_plane_that_fill_the_memory_move_more(line, points):
    """For a symmetric result: each block has the pairs of a line and one diagonal."""
    rows = inner = 10 * points
    words = 100 * (line * (line - 1) // 2 + 1)
    moved = MovedOnce(8.0 * rows * inner, 8.0 * rows * inner, 8.0 * rows * rows, one_array=True)
    found = least_bytes(rows * rows * inner, moved, 8.0 * words, 8, symmetric(rows))
    assert 0.6 < found / (8 * (line * rows * inner + rows * rows)) < 1


def test_one_array_that_is_no_symmetric_product_may_move_half():
    n = 10**5
    one, two = (least_words(n**3, 10**6, kind.of_words) for kind in (ONE_ARRAY, TWO_ARRAYS))
    assert one == pytest.approx(two / 2, rel=1e-3)


def test_an_array_that_fits_is_read_once():
    moved = MovedOnce(800.0, 800.0, 800.0, one_array=True)
    assert least_bytes(1000, moved, 1e6, 8, ONE_ARRAY) == 1600


def test_where_an_array_lies_in_memory_the_others_are_moved_once():
    """A result in memory takes products without traffic."""
    assert least_bytes(10**12, MovedOnce(8e8, 8e8, 0.0), 1e6, 8) == 16e8


# ---- what of arrays has to move ----


def facts_of(shape, where="disk", *, cuts=None, readable=None, stored=None):
    tilings = [None] * len(shape) if cuts is None else [Tiling(n, cuts=cuts) for n in shape]
    masks = [None if mask is None else np.array(mask, bool) for mask in (readable, stored)]
    return Facts(shape, np.dtype(float), where, 8, tuple(tilings), *masks)


def test_of_a_letter_that_comes_twice_the_diagonal_is_needed():
    facts = [facts_of((6, 6, 4)), facts_of((4, 5)), facts_of((6, 5))]
    assert needed_bytes(["iik", "kj", "ij"], facts) == [8 * 24, 8 * 20, 8 * 30]


def test_what_lies_in_memory_need_not_move():
    facts = [facts_of((6, 4), "process"), facts_of((4, 5)), facts_of((6, 5), "global")]
    assert needed_bytes(["ik", "kj", "ij"], facts) == [0, 8 * 20, 0]


def test_tiles_that_are_multiplied_by_zeros_alone_are_not_needed():
    """With two tiles along each axis, of 2 and of 4 elements."""
    first_column = [[1, 0], [1, 0]]
    left = facts_of((6, 6), cuts=(0, 2, 6))
    right = facts_of((6, 6), cuts=(0, 2, 6), readable=np.transpose(first_column))
    out = facts_of((6, 6), cuts=(0, 2, 6))
    assert needed_bytes(["ik", "kj", "ij"], [left, right, out]) == [8 * 6 * 2, 8 * 2 * 6, 8 * 36]
    stored = replace(out, stored=np.array([[1, 0], [0, 0]], bool))
    assert needed_bytes(["ik", "kj", "ij"], [left, right, stored]) == [8 * 4, 8 * 4, 8 * 4]


def test_of_tiles_that_are_equal_one_is_needed():
    symmetric_one = facts_of((6, 6), cuts=(0, 2, 6), stored=[[1, 0], [1, 1]])
    facts = [symmetric_one, facts_of((6, 5)), facts_of((6, 5))]
    assert needed_bytes(["ik", "kj", "ij"], facts)[0] == 8 * (4 + 8 + 16)


def test_the_bound_of_one_array_is_less_than_that_of_two():
    extents = {letter: 1000 for letter in "ijk"}
    two = [facts_of((1000, 1000)) for _ in range(3)]
    one = [replace(each, array=0) for each in two[:2]]
    found = [
        bound(ProductProblem(binary("ik", "kj", "ij", extents), extents, *each, two[2]), 1e5)
        for each in (one, two[:2])
    ]
    assert found[0] < 0.6 * found[1]
