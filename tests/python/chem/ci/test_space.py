"""Strings, blocks, tiles and vectors of a CI."""

from __future__ import annotations

import functools
import itertools
import operator
from math import comb

import numpy as np
import pytest
from ci_dense import orbitals

import outcore
from outcore import OutcoreError
from outcore.chem.ci import vector
from outcore.chem.ci.space import Space, count_strings, list_strings
from outcore.chem.ci.tiles import VectorTiling

BE2 = [13, 1, 3, 3, 1, 13, 3, 3]  # orbitals of each irrep of D2h


def of_counts(counts):
    return orbitals([irrep for irrep, count in enumerate(counts) for _ in range(count)], len(counts))


def test_be2_has_the_determinants_of_the_published_calculation():
    space = Space(of_counts(BE2), 4, 4, 0, 1)
    assert space.determinants == 1_061_893_156
    assert space.blocks == [
        187306596, 87759424, 129231424, 129231424, 87759424, 182142016, 129231424, 129231424,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "electrons", "determinants"),
    [
        ([11, 2, 4, 7], 5, 451_681_246),
        ([6, 1, 3, 3, 1, 6, 3, 3], 5, 540_924_024),
        ([10, 2, 4, 7], 4, 19_604_169),
    ],
)
def test_published_numbers_of_determinants(counts, electrons, determinants):
    assert Space(of_counts(counts), electrons, electrons).determinants == determinants


def test_counts_are_exact_beyond_any_list():
    counts = count_strings([0] * 64, 1, 32)
    assert counts == [comb(64, 32)]
    space = Space(of_counts([64]), 32, 32)
    assert space.determinants == comb(64, 32) ** 2
    with pytest.raises(OutcoreError, match="strings of 32 electrons in 64 orbitals"):
        _ = space.alpha


@pytest.mark.parametrize("electrons", [0, 1, 3, 7])
def test_strings_are_all_combinations_sorted_by_irrep_and_value(electrons):
    irreps = [0, 0, 1, 2, 2, 3, 3]
    found = list_strings(irreps, 4, electrons)
    expected = sorted(
        (functools.reduce(operator.xor, (irreps[q] for q in chosen), 0), sum(1 << q for q in chosen))
        for chosen in itertools.combinations(range(7), electrons)
    )
    assert found.strings.tolist() == [value for _, value in expected]
    assert np.diff(found.offsets).tolist() == count_strings(irreps, 4, electrons)
    assert found.rank(found.strings).tolist() == list(range(len(expected)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((9, 2), "8 orbitals cannot hold 9 alpha electrons"),
        ((2, -1), "cannot hold -1 beta"),
        ((2, 2, 4), "irrep 4 is none of 4"),
        ((2, 1, 0, 1), "have no parity"),
        ((0, 0, 1), "there is no determinant"),
        ((2, 2, 0, 3), "parity 3"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments, message):
    with pytest.raises(OutcoreError, match=message):
        Space(of_counts([4, 1, 1, 2]), *arguments)


@pytest.mark.parametrize("parity", [0, 1])
@pytest.mark.parametrize("irrep", [0, 3])
def test_tiles_hold_every_determinant_once(irrep, parity):
    space = Space(of_counts([4, 2, 2, 3]), 4, 4, irrep, parity)
    tiling = VectorTiling(space, 16)
    seen = np.zeros((len(space.alpha.strings),) * 2, int)
    for number in range(len(tiling)):
        tile = tiling[number]
        assert tiling.offsets[number + 1] - tiling.offsets[number] == tile.size
        assert max(tile.shape) <= 16
        assert tile.number == number
        (r, c), (height, width) = tile.first, tile.shape
        seen[r : r + height, c : c + width] += 1
        if parity and not tile.on_diagonal:
            seen[c : c + width, r : r + height] += 1
            assert tiling.weight(tile) == 2
    assert seen.sum() == space.determinants
    assert seen.max() == 1


def test_tiles_are_cut_where_high_orbitals_change():
    space = Space(of_counts([20]), 4, 4)
    for side in (64, 256):
        cuts = VectorTiling(space, side).rows
        sizes = np.diff(cuts)
        assert sizes.max() <= side
        assert sizes.mean() > side / 2
        tops = np.array([int(each).bit_length() for each in space.alpha.strings])
        changes = np.flatnonzero(np.diff(tops)) + 1
        assert {int(each) for each in changes if comb(int(tops[each]) - 1, 3) > side} <= set(cuts)


@pytest.mark.parametrize("parity", [-1, 0, 1])
@pytest.mark.parametrize("kind", vector.KINDS)
def test_vectors_of_every_kind_do_the_same(kind, parity, tmp_path):
    space = Space(of_counts([3, 2, 1, 2]), 3, 3, 1, parity)
    random = np.random.default_rng(3)
    with outcore.World("self", scratch=tmp_path, memory="64MB") as world:
        tiling = VectorTiling(space, 8)
        with vector.make(world, tiling, kind, count=2, cache_bytes=1 << 20) as vectors:
            assert not vectors.dense(1).any()
            for tile in vectors.tiles():
                block = random.random(tile.shape)
                if tile.on_diagonal and parity:
                    block = block + parity * block.T
                vectors.put(1, tile, block)
                vectors.acc(1, tile, 2 * block)
                assert np.array_equal(vectors.get(1, tile), block + 2 * block)
            vectors.sync()
            dense = vectors.dense(1)
            assert not vectors.dense(0).any()
            if parity:
                assert np.array_equal(dense, parity * dense.T)
            assert (dense != 0).sum() >= space.determinants - 20
