"""Rounding of vectors, and the reported errors of energies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcore.chem.ci import rounding


def _added(values, step):
    added = np.empty_like(values)
    rounding.rounded(values.copy(), step, added)
    return added


@given(
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=40),
    st.integers(-60, 3),
)
def test_rounded_values_are_multiples_of_the_step_within_half_of_it(numbers, power):
    step, before = 2.0**power, np.array(numbers)
    values, added = before.copy(), np.empty_like(before)
    squares = rounding.rounded(values, step, added)
    assert squares == pytest.approx(added @ added, rel=1e-13)
    assert np.array_equal(values, np.rint(values / step) * step)
    assert np.array_equal(added, values - before)
    assert abs(added).max() <= step / 2
    assert not (np.signbit(values) & (values == 0)).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_keeps_what_symmetry_there_is(sign):
    values = np.random.default_rng(1).standard_normal((9, 9))
    values = values + sign * values.T
    rounding.rounded(values, 0.125)
    assert np.array_equal(values, sign * values.T)


@pytest.mark.parametrize("value", [1.0, 0.3, 1e-9, 5e7])
def test_powers_are_the_next_ones_below(value):
    power = rounding.power_below(value)
    assert power <= value < 2 * power
    assert np.log2(power) == int(np.log2(power))


def test_a_step_is_as_fine_as_errors_of_so_many_elements_ask_for():
    random, count = np.random.default_rng(2), 40_000
    diagonal = random.random(count) * 30
    steps = rounding.RoundingSteps(1e-4, count, diagonal.mean(), (diagonal**2).mean())
    values = random.standard_normal(count) / np.sqrt(count)
    for step, weights in ((steps.product(), np.ones(count)), (steps.vector(5.0), diagonal - 5)):
        error = np.linalg.norm(_added(values, step) * weights)
        assert 1e-4 / 16 / 2.5 < error < 1e-4 / 16 * 1.1
    assert steps.vector(5.0, last=True) == steps.vector(5.0) / 256
    error = np.linalg.norm(_added(values, steps.correction(1.0)))
    assert 4e-3 < error < 1.1e-2


@pytest.mark.parametrize("roots", [1, 3])
def test_a_bound_is_met_by_residuals_of_its_tolerance(roots):
    residuals = np.full(roots, rounding.tolerance(1e-8, roots))
    assert rounding.raised(residuals) == pytest.approx(1e-8)


def test_energies_are_raised_by_less_than_residuals_say():
    """For random matrices whose next state lies far enough above the roots."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        matrix = random.standard_normal((30, 30)) * 0.05
        matrix = matrix + matrix.T + np.diag(np.repeat([0.0, 1.0], [3, 27]))
        exact, vectors = np.linalg.eigh(matrix)
        wrong, _ = np.linalg.qr(vectors[:, :3] + 1e-3 * random.standard_normal((30, 3)))
        energies, c = np.linalg.eigh(wrong.T @ matrix @ wrong)
        residuals = np.linalg.norm(matrix @ wrong @ c - wrong @ c * energies, axis=0)
        beside = np.linalg.qr(np.hstack([wrong, np.eye(30)]))[0][:, 3:30]
        assert np.linalg.eigvalsh(beside.T @ matrix @ beside)[0] > energies[-1] + rounding.GAP
        assert (energies - exact[:3] >= 0).all()
        assert (energies - exact[:3]).max() <= rounding.raised(residuals)
