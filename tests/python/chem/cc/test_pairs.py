"""Pairs of orbitals as one axis."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.chem.cc.equations.pairs import PairAxis


@pytest.mark.parametrize("cuts", [(0, 4), (0, 3, 5, 6)])
def test_each_pair_is_on_the_axis_once(cuts: tuple[int, ...]) -> None:
    axis = PairAxis(cuts)
    n = cuts[-1]
    assert axis.tiling.size == n * (n + 1) // 2
    seen = np.zeros((n, n), int)
    p, r = np.indices((n, n))
    for tile, (first, second) in enumerate(axis.blocks):
        box = np.s_[cuts[first] : cuts[first + 1], cuts[second] : cuts[second + 1]]
        rows = zip(axis.rows(tile, p[box]), axis.rows(tile, r[box]), strict=True)
        for a, b in rows:
            seen[a, b] += 1
    assert (np.triu(np.ones((n, n))) == seen).all()


def test_spread_is_the_reverse_of_rows() -> None:
    axis = PairAxis((0, 3, 5))
    values = np.random.default_rng(2).normal(size=(3, 3, 2, 2))
    values = values + values.transpose(1, 0, 3, 2)
    assert np.array_equal(axis.spread(0, axis.rows(0, values), swap=(1, 0)), values)
    other = np.random.default_rng(3).normal(size=(3, 2, 4))
    assert np.array_equal(axis.spread(1, axis.rows(1, other)), other)


def test_pairs_of_an_orbital_with_itself_count_half() -> None:
    axis = PairAxis((0, 2, 3))
    assert axis.weighted(0, np.ones(3)).tolist() == [0.5, 1.0, 0.5]
    assert axis.weighted(1, np.ones(2)).tolist() == [1.0, 1.0]
