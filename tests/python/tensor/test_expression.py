"""Subscripts: those that NumPy understands, and the errors of others."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.expression import parse


@pytest.mark.parametrize(
    ("subscripts", "shapes", "inputs", "output"),
    [
        ("ik,kj->ij", [(2, 3), (3, 4)], ("ik", "kj"), "ij"),
        (" i k , k j ", [(2, 3), (3, 4)], ("ik", "kj"), "ij"),
        ("ba", [(2, 3)], ("ba",), "ab"),
        ("ii", [(2, 2)], ("ii",), ""),
        (",->", [(), ()], ("", ""), ""),
    ],
)
def test_letters_and_output_are_those_of_numpy(subscripts, shapes, inputs, output):
    found = parse(subscripts, shapes)
    assert (found.inputs, found.output) == (inputs, output)
    expected = np.einsum(subscripts, *(np.zeros(shape) for shape in shapes))
    assert found.shape(found.output) == expected.shape


def test_dots_stand_for_the_last_axes_that_are_left():
    found = parse("...ij,...jk->...ik", [(5, 6, 2, 3), (6, 3, 4)])
    assert found.shape(found.output) == (5, 6, 2, 4)
    assert found.inputs[0][1] == found.inputs[1][0]


@pytest.mark.parametrize(
    ("subscripts", "shapes", "words"),
    [
        ("ik,kj->ij", [(2, 3)], "2 operands, 1"),
        ("ik,kj->ij", [(2, 3), (4, 5)], "'k' has extent 3, and 4 in operand 1"),
        ("ik->i", [(2, 3, 4)], "operand 0 has 3 axes"),
        ("ik->iz", [(2, 3)], "'z' of the output is in no operand"),
        ("ik->ii", [(2, 3)], "'i' occurs 2 times in the output"),
        ("i1->i", [(2, 3)], "'1' is no letter"),
        (("i", "k"), [(2, 3)], "text such as"),
    ],
)
def test_what_does_not_fit_is_named(subscripts, shapes, words):
    with pytest.raises(OutcoreError, match=words) as caught:
        parse(subscripts, shapes)
    assert caught.value.errno == errno.EINVAL
