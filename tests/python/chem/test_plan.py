"""Plans: which integrals are kept."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from outcore import World
from outcore.chem.hf import plan

STEP = 1e-11
THREADS = 2
NO_TIME = plan.SampleRates(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def sample(
    n: int = 4000, seed: int = 1, move: float = 0.0, look: float = 0.0, look_error: float = 0.0
) -> plan.Sample:
    """A sample of quartets of two kinds of shells; those of the second pair of kinds take ten times as
    long."""
    random = np.random.default_rng(seed)
    bra, ket = random.integers(0, 3, n), random.integers(0, 3, n)
    factor = np.array([1.0, 10.0, 2.0])
    bound = 10.0 ** random.uniform(-10, 0, n)
    values = np.full(n, 50.0)
    seconds = 1e-8 * values * factor[bra] * factor[ket]
    size = values * np.log2(bound / STEP) / 8
    rows = np.column_stack(
        [
            bra,
            ket,
            bound,
            np.full(n, 2.0),
            values,
            seconds,
            size,
            np.full(n, 1000.0),
            np.zeros(n),
            np.arange(n),
        ]
    )
    rates = plan.SampleRates(
        pack=1e-9, contract=1e-9, unpack=0.4e-9, move=move, look=look, look_error=look_error
    )
    return plan.Sample(2, rows, 10, rates, THREADS, STEP)


def test_sums_are_those_of_the_weighted_sample():
    assert sample().integrals == pytest.approx(4000 * 50 * 100)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_budget_is_used_and_kept_to(share):
    found = sample()
    work = found.work(found.rule(0, share * found.bytes))
    planned = share * plan.DISK_SHARE
    assert 0.95 * (planned - 0.02) * found.bytes < work.bytes <= planned * found.bytes


def test_the_less_is_sampled_the_more_of_a_disk_is_left():
    few, many = sample(100), sample()
    shares = [found.work(found.rule(0, found.bytes / 2)).bytes / found.bytes for found in (few, many)]
    assert shares[0] < shares[1] - 0.02


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


def test_more_cycles_take_longer_but_less_than_for_all_of_the_density():
    found = sample()
    seconds = [found.work(plan.KEEP_NONE, cycles=calls).seconds for calls in range(1, 30)]
    assert seconds == sorted(seconds)
    assert all(taken < calls * seconds[0] for calls, taken in enumerate(seconds[3:], start=4))


def with_least(rule: plan.Rule, least: float) -> plan.Rule:
    return replace(rule, least=least)


def test_a_rule_that_keeps_everything_takes_what_storing_takes():
    found = sample()
    rule = with_least(found.rule(0, found.bytes / 2), 0.0)
    assert found.work(rule) == found.work(plan.KEEP_ALL)


def test_a_rule_that_keeps_nothing_takes_what_recomputing_takes():
    found = sample()
    rule = with_least(found.rule(0, found.bytes / 2), np.inf)
    assert found.work(rule) == found.work(plan.KEEP_NONE)


def test_the_less_is_kept_the_longer_it_takes():
    found = sample()
    kept = [found.rule(0, share * found.bytes) for share in np.linspace(0, 1, 20)]
    seconds = [found.work(rule).seconds for rule in [*kept, plan.KEEP_ALL]]
    assert seconds == sorted(seconds, reverse=True)


def test_quartets_are_looked_at_to_store_and_each_time_to_recompute():
    some, none = sample(look=3.0), sample()
    half = none.rule(0, none.bytes / 2)
    for rule, times in ((plan.KEEP_ALL, 1), (half, 1 + plan.CYCLES), (plan.KEEP_NONE, plan.CYCLES)):
        more = some.work(rule).seconds - none.work(rule).seconds
        assert more == pytest.approx(times * 3.0 / THREADS)


def test_the_error_of_looking_at_quartets_counts_each_time():
    some, none = sample(look=3.0, look_error=0.5), sample(look=3.0)
    half = none.rule(0, none.bytes / 2)
    for rule, times in ((plan.KEEP_ALL, 1), (half, 1 + plan.CYCLES), (plan.KEEP_NONE, plan.CYCLES)):
        more = some.work(rule).error_seconds ** 2 - none.work(rule).error_seconds ** 2
        assert more == pytest.approx((times * 0.5 / THREADS) ** 2)


def surveyed(monkeypatch, *threads: dict[str, float]) -> plan.Sample:
    """A survey whose threads have measured these; each has drawn one quartet of 50 values and 100 bytes."""
    row = np.array([[0.0, 0.0, 1.0, 1.0, 50.0, 1e-6, 100.0, 1.0, 0.0, 0.0]])
    names = (
        "pack_seconds", "contract_seconds", "unpack_seconds", "byte_seconds", "looked", "look_seconds",
        "look_squares",
    )  # fmt: skip

    def measure(*arguments: object) -> SimpleNamespace:
        first, numbers = arguments[6], dict.fromkeys(names, 0.0)
        return SimpleNamespace(draws=1, quartets=row.copy, **(numbers | threads[first]))

    monkeypatch.setattr(plan, "_core", SimpleNamespace(survey=measure))
    basis, screening = SimpleNamespace(kinds=1), SimpleNamespace(tasks=10)
    with World("self") as world:
        return plan.survey(world, basis, screening, None, None, len(threads), STEP).on(1)


def test_threads_without_a_record_tell_nothing_of_its_bytes(monkeypatch):
    """A thread may have drawn nothing but zeros."""
    all_have, one_has = (
        surveyed(monkeypatch, {"byte_seconds": 1e-9}, other) for other in ({"byte_seconds": 1e-9}, {})
    )
    assert one_has.work(plan.KEEP_ALL) == all_have.work(plan.KEEP_ALL)
    moved = surveyed(monkeypatch, {}).work(plan.KEEP_ALL).seconds
    assert all_have.work(plan.KEEP_ALL).seconds - moved == pytest.approx(100 * 1e-9 * (1 + plan.CYCLES))


def test_the_error_of_looking_is_that_of_the_mean_of_tasks(monkeypatch):
    """Of ten tasks, from looks that took 1, 2 and 3 seconds."""
    looks = (
        {"looked": 2, "look_seconds": 3.0, "look_squares": 5.0},
        {
            "looked": 1,
            "look_seconds": 3.0,
            "look_squares": 9.0,
        },
    )
    some, none = surveyed(monkeypatch, *looks), surveyed(monkeypatch, {}, {})
    once = some.work(plan.KEEP_ALL)
    assert once.seconds - none.work(plan.KEEP_ALL).seconds == pytest.approx(10 * 2.0)
    error = 10 * np.std([1.0, 2.0, 3.0], ddof=1) / np.sqrt(3)
    more = once.error_seconds**2 - none.work(plan.KEEP_ALL).error_seconds ** 2
    assert more == pytest.approx(error**2)


def test_bytes_are_moved_to_store_them_and_each_time_to_read_them():
    some, none = sample(move=1e-9), sample()
    more = some.work(plan.KEEP_ALL).seconds - none.work(plan.KEEP_ALL).seconds
    assert more == pytest.approx((1 + plan.CYCLES) * none.bytes * 1e-9 / THREADS)
    assert some.work(plan.KEEP_NONE) == none.work(plan.KEEP_NONE)


def of_one_quartet(contribution: float) -> plan.Sample:
    """It takes a second to compute, and nothing else takes any time."""
    row = np.array([[0.0, 0.0, contribution, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]])
    return plan.Sample(1, row, 1, NO_TIME, 1, STEP)


def test_what_never_matters_is_computed_for_the_energy_alone():
    assert of_one_quartet(1e-4 * STEP).work(plan.KEEP_NONE).seconds == 1.0


def test_what_always_matters_is_computed_each_time():
    assert of_one_quartet(1.0).work(plan.KEEP_NONE).seconds == plan.CYCLES


def test_computing_grows_with_what_is_added():
    calls = [of_one_quartet(10.0**e * STEP).work(plan.KEEP_NONE).seconds for e in np.linspace(-3, 9, 50)]
    assert calls == sorted(calls)
    assert len({round(number) for number in calls}) == plan.CYCLES  # each number of calls is met


def test_one_call_computes_everything_once():
    found = sample()
    once = found.work(plan.KEEP_NONE, cycles=1)
    everything = found.work(plan.KEEP_ALL, cycles=1)
    unpacked = found.integrals * (0.4e-9 + 1e-9) / THREADS  # and packed
    assert once.seconds == pytest.approx(everything.seconds - unpacked)


def test_the_header_of_a_slab_is_stored_with_any_part_of_it():
    """Two slabs of two quartets, one of which takes ten times as long."""
    seconds = np.array([1.0, 10.0, 1.0, 10.0])
    one, slab = np.ones(4), np.array([0.0, 0.0, 1.0, 1.0])
    kind = np.array([0.0, 1.0, 0.0, 1.0])
    rows = np.column_stack([kind, kind, one, one, one, seconds, 10 * one, one, 4 * one, slab])
    found = plan.Sample(2, rows, 1, NO_TIME, 1, STEP)
    assert found.work(plan.KEEP_ALL).bytes == found.bytes == 4 * 10 + 2 * 8
    work = found.work(found.rule(40.0, 0))
    assert (work.kept, work.bytes) == (2, 2 * 10 + 2 * 8)
