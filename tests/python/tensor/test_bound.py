"""How little a product may move: against closed forms, and against plans that were found by hand."""

from __future__ import annotations

import math

import pytest

from outcore.tensor.plan.bound import ONE_ARRAY, TWO_ARRAYS, MovedOnce, least_bytes, least_words, symmetric


def on_disk(m, n, k):
    return MovedOnce(8.0 * m * k, 8.0 * k * n, 8.0 * m * n)


def test_in_little_memory_it_is_that_of_smith_and_others():
    n, words = 10**5, 10**6
    found = least_bytes(n**3, on_disk(n, n, n), 8.0 * words, 8)
    assert found == pytest.approx(8 * (2 * n**3 / math.sqrt(words) - 2 * words))


@pytest.mark.parametrize("memory", [0.05, 0.1, 0.3])
def test_in_more_memory_it_is_larger_than_that(memory):
    """A run begins with nothing in memory: most of what the closed form takes off is not there."""
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
    """Of a symmetric result: each block has the pairs of a line and one diagonal."""
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
    """A result that is there takes products for nothing."""
    assert least_bytes(10**12, MovedOnce(8e8, 8e8, 0.0), 1e6, 8) == 16e8
