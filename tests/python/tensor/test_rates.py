"""Rates that plans reckon with, and how runs correct them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outcore.job import rate_cache
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.rates import ASSUMED, Rates, corrections, learn


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTCORE_CACHE", str(tmp_path))
    rate_cache.forget()
    yield
    rate_cache.forget()


def test_short_sides_are_slower_and_rates_never_fall_with_the_side():
    speeds = [float(ASSUMED.flops(side)) for side in (1, 8, 16, 50, 128, 300, 1024, 10**6)]
    assert speeds == sorted(speeds)
    assert speeds[-1] == ASSUMED.gemm[-1][1]


def test_rates_are_values():
    assert Rates.from_json(ASSUMED.as_json()) == ASSUMED


def test_a_run_corrects_half_way_what_has_decided():
    predicted, actual = Amounts(flops=1e9, seconds=4.0), Amounts(flops=1e9, seconds=16.0)
    learn(ASSUMED, "float64", predicted, actual)
    assert corrections(ASSUMED, "float64") == {"compute": 0.5, "disk": 1.0}
    by_disk = Amounts(disk_read=4 * ASSUMED.read, seconds=4.0)
    learn(ASSUMED, "float64", by_disk, replace(by_disk, seconds=1.0))
    assert corrections(ASSUMED, "float64") == {"compute": 0.5, "disk": 2.0}
    assert corrections(ASSUMED, "float32") == {"compute": 1.0, "disk": 1.0}


def test_short_runs_tell_nothing_and_wild_ones_little():
    learn(ASSUMED, "float64", Amounts(seconds=0.1), Amounts(seconds=0.29))
    assert corrections(ASSUMED, "float64")["compute"] == 1.0
    learn(ASSUMED, "float64", Amounts(seconds=1.0), Amounts(seconds=1e6))
    assert corrections(ASSUMED, "float64")["compute"] == 0.5


def test_a_run_that_took_as_long_as_predicted_leaves_rates_and_plans_as_they_are():
    before = rate_cache.changes()
    learn(ASSUMED, "float64", Amounts(seconds=1.0), Amounts(seconds=1.05))
    assert rate_cache.changes() == before


def test_a_fast_run_ends_what_a_busy_machine_has_shown():
    for _ in range(4):
        learn(ASSUMED, "float64", Amounts(seconds=1.0), Amounts(seconds=100.0))
    busy = corrections(ASSUMED, "float64")["compute"]
    assert busy == pytest.approx(1 / 16)
    learn(ASSUMED, "float64", Amounts(seconds=8.0), Amounts(seconds=1.0))
    assert corrections(ASSUMED, "float64")["compute"] == pytest.approx(8 / 16)
    learn(ASSUMED, "float64", Amounts(seconds=8.0), Amounts(seconds=1.0))
    assert corrections(ASSUMED, "float64")["compute"] == 1.0


def test_what_runs_have_shown_holds_for_rates_that_are_measured_anew():
    """If a disk was first measured under load, a later right measurement gives no rate above that shown by
    runs."""
    loaded = replace(ASSUMED, read=ASSUMED.read / 4, write=ASSUMED.write / 4)
    by_disk = Amounts(disk_read=4 * loaded.read, seconds=4.0)
    learn(loaded, "float64", by_disk, replace(by_disk, seconds=1.0))
    assert corrections(loaded, "float64")["disk"] == 2.0
    corrected = loaded.scaled(**corrections(loaded, "float64"))
    learn(corrected, "float64", replace(by_disk, seconds=2.0), replace(by_disk, seconds=1.0))
    assert corrections(loaded, "float64")["disk"] == pytest.approx(2 * 2**0.5)
    assert corrections(ASSUMED, "float64")["disk"] == pytest.approx(2**0.5 / 2)
    assert corrections(ASSUMED, "float64")["compute"] == 1.0


def test_the_correction_of_a_disk_is_of_that_disk():
    slow = replace(ASSUMED, storage="slow")
    by_disk = Amounts(disk_read=1e9, seconds=1.0)
    learn(slow, "float64", by_disk, replace(by_disk, seconds=16.0))
    assert corrections(slow, "float64")["disk"] < 1.0
    assert corrections(replace(ASSUMED, storage="fast"), "float64") == {"compute": 1.0, "disk": 1.0}


def test_processes_that_measure_at_once_count_as_one_measurement():
    for rate in (8.0, 3.0, 2.0, 1.0):
        rate_cache.forget()
        rate_cache.add("x", {}, {"rate": rate})
    rate_cache.forget()
    assert rate_cache.current("x", {}) == {"rate": 8.0}
