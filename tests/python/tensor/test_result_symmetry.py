"""Symmetries that a result must have, against tensors of random elements."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.result_symmetry import factors, missing
from outcore.tensor.layout.symmetry import Symmetry

N = 3
NONE2, NONE3, NONE4 = (Symmetry.parse(None, rank) for rank in (2, 3, 4))


def made(symmetry, seed):
    random = np.random.default_rng(seed)
    raw = random.standard_normal((N,) * symmetry.rank)
    return sum(sign * np.transpose(raw, axes) for axes, sign in symmetry.elements.items())


@pytest.mark.parametrize(
    ("subscripts", "arrays", "symmetries", "wanted"),
    [
        ("ki,kj->ij", (0, 0), (NONE2, NONE2), "symmetric(0,1)"),
        ("ki,kj->ij", (0, 1), (NONE2, NONE2), "symmetric(0,1)"),
        ("ki,kj->ij", (0, 0), (NONE2, NONE2), "antisymmetric(0,1)"),
        ("ik,kj->ij", (0, 0), (NONE2, NONE2), "symmetric(0,1)"),
        ("ik,kj->ij", (0, 0), (Symmetry.parse("symmetric(0,1)", 2),) * 2, "symmetric(0,1)"),
        ("ik,kj->ij", (0, 0), (Symmetry.parse("antisymmetric(0,1)", 2),) * 2, "symmetric(0,1)"),
        ("Qai,Qbj->ijab", (0, 0), (NONE3, NONE3), "pair"),
        ("ijcd,Qac,Qbd->ijab", (0, 1, 1), (Symmetry.parse("pair", 4), NONE3, NONE3), "pair"),
        ("ijcd,Qac,Qbd->ijab", (0, 1, 1), (NONE4, NONE3, NONE3), "pair"),
        ("ijcd,Qac,Qbd->ijab", (0, 1, 2), (Symmetry.parse("pair", 4), NONE3, NONE3), "pair"),
        (
            "ijcd,abcd->ijab",
            (0, 1),
            (
                Symmetry.parse("antisymmetric(0,1)", 4),
                Symmetry.parse("antisymmetric(0,1) antisymmetric(2,3)", 4),
            ),
            "antisymmetric(0,1) antisymmetric(2,3)",
        ),
        ("ijcd,abcd->ijab", (0, 1), (Symmetry.parse("antisymmetric(2,3)", 4), NONE4), "antisymmetric(2,3)"),
        ("ab->ba", (0,), (Symmetry.parse("antisymmetric(0,1)", 2),), "antisymmetric(0,1)"),
    ],
)
def test_what_is_found_is_what_random_elements_have(subscripts, arrays, symmetries, wanted):
    expression = parse(subscripts, [(N,) * symmetry.rank for symmetry in symmetries])
    by_array = {}
    for array, symmetry in zip(arrays, symmetries, strict=True):
        by_array.setdefault(array, made(symmetry, array))
    values = [by_array[array] for array in arrays]
    result = np.einsum(subscripts, *values)
    symmetry = Symmetry.parse(wanted, len(expression.output))
    has = all(np.allclose(np.transpose(result, p), s * result) for p, s in symmetry.elements.items())
    assert (missing(expression, factors(expression, values, symmetries), symmetry) is None) == has
