"""Plans: which integrals are kept."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.chem.hf import plan

STEP = 1e-11
THREADS = 2


def sample(n: int = 4000, seed: int = 1) -> plan.Sample:
    """A sample of quartets of two kinds of shells; those of the second pair of kinds take ten times as
    long."""
    random = np.random.default_rng(seed)
    bra, ket = random.integers(0, 3, n), random.integers(0, 3, n)
    factor = np.array([1.0, 10.0, 2.0])
    bound = 10.0 ** random.uniform(-10, 0, n)
    values = np.full(n, 50.0)
    seconds = 1e-8 * values * factor[bra] * factor[ket]
    size = values * np.log2(bound / STEP) / 8
    rows = np.column_stack([bra, ket, bound, np.full(n, 2.0), values, seconds, size, np.full(n, 1000.0)])
    return plan.Sample(2, rows, draws=10, pack=1e-9, contract=1e-9, unpack=0.4e-9, threads=THREADS, step=STEP)


def test_sums_are_those_of_the_weighted_sample():
    assert sample().integrals == pytest.approx(4000 * 50 * 100)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_budget_is_used_and_kept_to(share):
    found = sample()
    work = found.work(found.rule(0, share * found.bytes))
    planned = share * plan.DISK_SHARE
    assert (planned - 0.02) * found.bytes < work.bytes <= planned * found.bytes


def test_what_is_kept_saves_more_than_its_share():
    found = sample()
    direct = found.work(plan.KEEP_NONE).seconds
    half = found.work(found.rule(0, found.bytes / 2)).seconds
    whole = found.work(plan.KEEP_ALL).seconds
    assert whole < half < direct
    assert direct - half > 0.75 * (direct - whole)


def test_nothing_and_everything():
    found = sample()
    assert found.rule(0, 0) == plan.KEEP_NONE
    assert found.rule(0, 2 * found.bytes) == plan.KEEP_ALL
    assert found.rule(2 * found.bytes, 0, seconds_per_byte=1.0) == plan.KEEP_ALL


def test_a_slow_disk_is_not_used():
    found = sample()
    assert found.rule(0, 2 * found.bytes, seconds_per_byte=1.0) == plan.KEEP_NONE
    in_memory = found.work(found.rule(found.bytes / 4, found.bytes, seconds_per_byte=1.0))
    assert 0.2 * found.bytes < in_memory.bytes <= found.bytes / 4


def test_waiting_for_a_slow_disk_counts():
    found = sample()
    fast, slow = found.work(plan.KEEP_ALL), found.work(plan.KEEP_ALL, read_seconds_per_byte=1e-6)
    assert slow.seconds - fast.seconds == pytest.approx(
        plan.CYCLES * (found.bytes * 1e-6 - found.integrals * 1e-9 / THREADS)
    )


def test_the_factors_of_the_pairs_are_found():
    rule = sample().rule(0, sample().bytes / 2)
    assert rule.factors is not None
    np.testing.assert_allclose(rule.factors / rule.factors[0], [1, 10, 2], rtol=1e-6)


def test_more_cycles_take_longer_but_later_ones_less():
    found = sample()
    few, many = found.work(plan.KEEP_NONE, cycles=5), found.work(plan.KEEP_NONE, cycles=15)
    assert few.seconds < many.seconds < 3 * few.seconds
    assert many.cycle_seconds < few.cycle_seconds
