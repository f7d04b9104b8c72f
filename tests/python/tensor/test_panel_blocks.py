"""Blocks of panels of a result: each panel is in one block, and their predicted reads are right."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from outcore.tensor.layout.blocks import rectangles, useful_rectangles
from outcore.tensor.layout.triangles import counts_of_planes, triangles, useful_triangles


@pytest.mark.parametrize(
    "count", [1, 2, 3, 5, 7, 8, 12, 13, 14, 16, 21, 25, 28, 31, 40, 57, 73, 80, 183, 190]
)
@pytest.mark.parametrize("most", [2, 4, 7, 16, 37, 10**4])
def test_each_pair_is_in_one_triangle(count, most):
    found = triangles(count, most)
    pairs = sorted(pair for block in found.blocks() for pair in block.pairs)
    assert pairs == [(row, column) for row in range(count) for column in range(row + 1)]
    sizes = [len(block.pairs) for block in found.blocks()]
    assert found.count == len(sizes) and found.most == max(sizes) <= most
    assert found.read[0] == sum(
        len({row for pair in block.pairs for row in pair}) for block in found.blocks()
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 7, 8, 9, 11, 13])
def test_lines_of_a_plane_read_each_row_as_often_as_points_are_on_a_line(order):
    points, on_line = order**2 + order + 1, order + 1
    found = triangles(points, on_line * (on_line - 1) // 2 + 1)
    assert found.count == points
    assert found.read == (points * on_line, 0)


@pytest.mark.parametrize("order", [3, 4, 5, 7, 8])
def test_without_a_line_those_of_an_affine_plane_are_left(order):
    found = triangles(order**2, order * (order - 1) // 2 + 1)
    assert found.count == order * (order + 1)
    assert found.read == (order**2 * (order + 1), 0)


@pytest.mark.parametrize("order, each", [(1, 8), (2, 3), (3, 4), (4, 2), (5, 2)])
def test_points_of_several_panels_waste_less_on_the_diagonal(order, each):
    points, on_line = order**2 + order + 1, order + 1
    pairs = on_line * (on_line - 1) // 2 * each**2 + each * (each + 1) // 2
    found = triangles(each * points, pairs)
    assert (found.most, found.read) == (pairs, (each * points * on_line, 0))
    assert pairs / each**2 < triangles(points, 10**4).most
    assert each * points in counts_of_planes()


@pytest.mark.parametrize("count, order", [(28, 2), (39, 3), (42, 4), (31, 5), (62, 5), (57, 7)])
def test_lines_give_pairs_to_further_sets(count, order):
    """Between two planes a bit less memory asks for a bit more reading; nothing more is held."""
    whole = triangles(
        count, next(most for most, each in useful_triangles(count) if each.read[0] == count * (order + 1))
    )
    found = [each for _, each in useful_triangles(count) if 0.7 * whole.most < each.most < whole.most]
    assert len(found) > 1
    for each in found:
        assert order + 1 < each.read[0] / count < order + 4
        assert each.held[0] <= whole.held[0]
        blocks = [block.pairs for block in each.blocks()]
        assert sorted(pair for pairs in blocks for pair in pairs) == sorted(
            pair for block in whole.blocks() for pair in block.pairs
        )
        assert max(map(len, blocks)) == each.most


@pytest.mark.parametrize("count", [3, 6, 9, 12, 31, 62])
def test_larger_triangles_read_less(count):
    reads = [found.read[0] for _, found in useful_triangles(count)]
    assert reads == sorted(reads, reverse=True)
    assert reads[-1] < count * count  # of one pair after another


@pytest.mark.parametrize("rows, columns", [(1, 5), (4, 4), (7, 3), (12, 11)])
@pytest.mark.parametrize("most", [1, 2, 5, 9, 1000])
@pytest.mark.parametrize("shape", [0.2, 1.0, 7.0])
def test_each_pair_is_in_one_rectangle(rows, columns, most, shape):
    found = rectangles(rows, columns, most, shape)
    pairs = sorted(pair for block in found.blocks() for pair in block.pairs)
    assert pairs == list(itertools.product(range(rows), range(columns)))
    sizes = [len(block.pairs) for block in found.blocks()]
    assert found.count == len(sizes) and found.most == max(sizes) <= most
    for side in range(2):
        assert found.read[side] == sum(len({pair[side] for pair in block.pairs}) for block in found.blocks())


def test_bands_of_different_heights_read_less_than_equal_panels():
    """With memory for a bit more than a fifth of a square: two bands, of two and of three pieces."""
    found = rectangles(5, 6, 6, 1.0)
    assert found.read[0] / 5 + found.read[1] / 6 < 5  # 2 x 3 equal panels read columns twice and rows thrice


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0])
def test_more_panels_at_a_time_read_less(shape):
    found = [partition for _, partition in useful_rectangles(6, 6, shape)]
    reads = [shape * each.read[0] / 6 + each.read[1] / 6 for each in found]
    assert reads == sorted(reads, reverse=True)


def test_partitions_that_searches_keep_take_little_memory():
    """All pairs of these would take 30 MB and more."""
    tracemalloc.start()
    kept = triangles(700, 5), useful_rectangles(61, 67, 1.37)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept[0].count == 700 * 701 // 2
    assert held < 1_000_000
