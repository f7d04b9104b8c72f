"""Groups of permutations with signs, against arrays of NumPy that have them."""

import itertools

import numpy as np
import pytest

from outcore import Symmetry
from outcore.tensor.layout.symmetry import compose, inverse


def has(array, symmetry):
    return all(np.allclose(np.transpose(array, p), sign * array) for p, sign in symmetry.elements.items())


def made_symmetric(array, symmetry):
    return sum(sign * np.transpose(array, p) for p, sign in symmetry.elements.items())


@pytest.mark.parametrize(
    ("words", "rank", "order", "signs"),
    [
        (None, 3, 1, False),
        ("pair", 4, 2, False),
        ("pair", 6, 6, False),
        ("symmetric(0,1)", 3, 2, False),
        ("antisymmetric(0,1,2)", 3, 6, True),
        ("antisymmetric(0,1) antisymmetric(2,3)", 4, 4, True),
        ("antisymmetric(0,1), antisymmetric(2,3), pair", 4, 4, True),
        ("symmetric(0,1); symmetric(2,3)", 4, 4, False),
        (["symmetric(0,2)", "pair"], 4, 8, False),
    ],
)
def test_words_make_groups(words, rank, order, signs):
    symmetry = Symmetry.parse(words, rank)
    assert (symmetry.order, symmetry.has_signs, bool(symmetry)) == (order, signs, order > 1)
    array = made_symmetric(np.random.default_rng(1).normal(size=(4,) * rank), symmetry)
    assert has(array, symmetry)
    assert np.abs(array).max() > 0.1


def test_pair_is_that_of_amplitudes():
    t = np.random.default_rng(2).normal(size=(3, 3, 4, 4))
    t = t + t.transpose(1, 0, 3, 2)
    assert has(t, Symmetry.parse("pair", 4))
    assert Symmetry.parse("pair", 4).elements == {(0, 1, 2, 3): 1, (1, 0, 3, 2): 1}


@pytest.mark.parametrize("axes", list(itertools.permutations(range(4)))[::5])
def test_that_of_a_transposed_array(axes):
    symmetry = Symmetry.parse("antisymmetric(0,1) symmetric(2,3)", 4)
    array = made_symmetric(np.random.default_rng(3).normal(size=(3,) * 4), symmetry)
    assert has(np.transpose(array, axes), symmetry.permuted(axes))
    assert symmetry.permuted(axes).order == 4


def test_those_of_sums_and_products():
    plus, minus = Symmetry.parse("symmetric(0,1)", 2), Symmetry.parse("antisymmetric(0,1)", 2)
    assert plus.times(minus) == minus
    assert minus.times(minus) == plus
    assert plus.plus(minus) == Symmetry(2)
    assert minus.plus(minus) == minus


def test_composition_and_inverse_are_those_of_transpose():
    a, p, q = np.arange(24).reshape(2, 3, 4), (1, 2, 0), (2, 1, 0)
    assert np.array_equal(a.transpose(p).transpose(q), a.transpose(compose(p, q)))
    assert np.array_equal(a.transpose(p).transpose(inverse(p)), a)


def test_it_survives_writing_down():
    symmetry = Symmetry.parse("antisymmetric(0,1) pair", 4)
    assert Symmetry.from_json(4, symmetry.as_json()) == symmetry
    assert hash(Symmetry.from_json(4, symmetry.as_json())) == hash(symmetry)


@pytest.mark.parametrize(
    ("words", "rank", "message"),
    [
        ("pear", 4, "symmetry 'pear'"),
        ("pair", 3, "even number"),
        ("pair(0,1)", 4, "alone"),
        ("symmetric(0)", 2, "two or more"),
        ("symmetric(0,0)", 2, "two or more"),
        ("symmetric(0,2)", 2, "0..1"),
        ("symmetric", 2, "two or more"),
        ("symmetric(0,1) antisymmetric(0,1)", 2, "is zero"),
        ("antisymmetric(0,1) symmetric(1,2)", 3, "is zero"),
    ],
)
def test_what_is_no_symmetry_is_refused(words, rank, message):
    with pytest.raises(ValueError, match=message):
        Symmetry.parse(words, rank)


def test_permutations_and_signs_are_checked():
    with pytest.raises(ValueError, match="no permutation"):
        Symmetry(2, [((0, 0), 1)])
    with pytest.raises(ValueError, match="sign"):
        Symmetry(2, [((1, 0), 2)])
    with pytest.raises(ValueError, match="of 2 axes for 3"):
        Symmetry.parse(Symmetry(2), 3)
