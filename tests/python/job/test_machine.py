"""Rates of this machine: measured, stored with all that they depend on, and checked before use."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

import outcore
from outcore import _core
from outcore.job import machine, rate_cache
from outcore.trace.report import RawRates


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    directory = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("OUTCORE_CACHE", str(directory))
    rate_cache.forget()
    yield directory / "machine.json"
    rate_cache.forget()


# ---- disk ----


def test_rates_are_measured_and_nothing_is_left(tmp_path):
    rates = machine.measure_disk(tmp_path, size_bytes=16 << 20)
    assert rates.read_bytes_per_s > 1e6
    assert rates.write_bytes_per_s > 1e6
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 0] == []


def test_measuring_stops_at_its_limit(tmp_path):
    rates = machine.measure_disk(tmp_path, size_bytes=1 << 40, limit_s=0.05)
    assert rates.read_bytes_per_s > 0
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 0] == []


def test_rates_of_a_disk_with_little_room_are_not_measured(tmp_path, monkeypatch):
    class Small:
        type, total_bytes, free_bytes = "small", 8 << 20, 7 << 20

    monkeypatch.setattr(_core, "file_system", lambda _: Small)
    assert machine.measure_disk(tmp_path) is None
    rates, measured = machine.planning_disk(tmp_path)
    assert not measured
    assert 0 < rates.read_bytes_per_s < 1e9
    Small.free_bytes = 9 << 20
    assert machine.measure_disk(tmp_path).read_bytes_per_s > 0
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 0] == []


def test_a_quarter_of_what_is_free_is_used_at_most(tmp_path, monkeypatch):
    class Small:
        free_bytes = 20 << 20

    written = []
    write = _core.ExclusiveFile.write_async
    monkeypatch.setattr(_core, "file_system", lambda _: Small)
    monkeypatch.setattr(
        _core.ExclusiveFile,
        "write_async",
        lambda self, data, at: written.append(len(data)) or write(self, data, at),
    )
    assert machine.measure_disk(tmp_path) is not None
    assert 0 < sum(written) <= 5 << 20


def test_a_disk_that_refuses_is_not_measured(tmp_path):
    assert machine.measure_disk(tmp_path / "none") is None
    assert machine.disk(tmp_path / "none") is None


def count_of_measurements(monkeypatch):
    calls = []

    def measure(directory):
        calls.append(directory)
        return RawRates(1e9 + len(calls), 2e9)

    monkeypatch.setattr(machine, "measure_disk", measure)
    return calls


def test_a_disk_is_measured_once_for_all_processes_and_runs(tmp_path, monkeypatch, cache):
    calls = count_of_measurements(monkeypatch)
    first = machine.disk(tmp_path)
    rate_cache.forget()  # as another process
    (tmp_path / "below").mkdir()
    assert machine.disk(tmp_path / "below") == first
    assert len(calls) == 1
    code = f"from outcore.job import machine; print(machine.disk({str(tmp_path)!r}).read_bytes_per_s)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(said) == first.read_bytes_per_s


def test_a_disk_is_measured_again_if_asked_or_if_something_else_is_under_it(tmp_path, monkeypatch):
    calls = count_of_measurements(monkeypatch)
    machine.disk(tmp_path)
    assert machine.disk(tmp_path, fresh=True).read_bytes_per_s == 1e9 + 2
    assert machine.disk(tmp_path).read_bytes_per_s == 1e9 + 2
    monkeypatch.setattr(_core, "emulation", lambda: "bandwidth=80MB")
    machine.disk(tmp_path)
    assert len(calls) == 3
    monkeypatch.setattr(_core, "engine_name", lambda: "other")
    machine.disk(tmp_path)
    monkeypatch.setattr(rate_cache.platform, "node", lambda: "another")
    machine.disk(tmp_path)
    assert len(calls) == 5


def test_a_run_that_writes_little_takes_what_is_known_of_the_disk(tmp_path, monkeypatch):
    calls = count_of_measurements(monkeypatch)
    little = machine.MEASURED_BYTES - 1
    assert machine.disk(tmp_path, fresh=True, moved_bytes=little) is None and not calls
    known = machine.disk(tmp_path, fresh=True, moved_bytes=machine.MEASURED_BYTES)
    assert known is not None and len(calls) == 1
    assert machine.disk(tmp_path, fresh=True, moved_bytes=little) == known and len(calls) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "[1, 2",
        lambda _: "[" * 100_000,
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"read": ', '"read": -'),
        lambda text: text.replace('"read": ', '"read": 1e999, "x": '),
        lambda text: text.replace('"time": ', '"time": 1.0, "then": '),
        lambda _: '{"format": 1, "rates": {"x": 7}}',
        lambda _: '{"format": 1, "rates": [7]}',
    ],
)
def test_a_file_that_is_damaged_or_too_old_is_measured_anew_and_mended(tmp_path, monkeypatch, cache, damage):
    calls = count_of_measurements(monkeypatch)
    machine.disk(tmp_path)
    cache.write_text(damage(cache.read_text()))
    rate_cache.forget()
    machine.disk(tmp_path)
    assert len(calls) == 2
    rate_cache.forget()
    machine.disk(tmp_path)
    assert len(calls) == 2


@pytest.mark.parametrize("place", ["/proc/none", "file"])
def test_where_nothing_can_be_kept_it_is_measured(tmp_path, monkeypatch, place):
    calls = count_of_measurements(monkeypatch)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTCORE_CACHE", place if place[0] == "/" else str(tmp_path / place))
    assert machine.disk(tmp_path) is not None
    machine.disk(tmp_path)
    assert len(calls) == 1  # this process knows


def test_what_was_measured_under_load_is_measured_again_and_the_best_counts(tmp_path, monkeypatch):
    speeds = [1e8, 9e8, 7e8, 6e8, 5e8]
    monkeypatch.setattr(machine, "measure_disk", lambda _: RawRates(speeds.pop(0), 1e9))
    now = [1e9]
    monkeypatch.setattr(rate_cache.time, "time", lambda: now[0])

    def later(seconds):
        now[0] += seconds
        rate_cache.forget()  # another process
        return machine.disk(tmp_path).read_bytes_per_s

    day = 24 * 3600
    assert machine.disk(tmp_path).read_bytes_per_s == 1e8
    assert later(500) == 1e8
    assert later(200) == 9e8
    now[0] += 10**6
    assert machine.disk(tmp_path).read_bytes_per_s == 9e8  # a process keeps what it knows
    now[0] -= 10**6
    assert later(700) == 9e8
    assert len(speeds) == 2  # three were taken
    assert later(0.9 * day) == 9e8
    assert len(speeds) == 2
    assert later(0.2 * day) == 9e8  # of the last three
    assert later(1.1 * day) == 7e8
    assert speeds == []


def test_a_rate_that_cannot_be_measured_again_stays(tmp_path, monkeypatch):
    found = [RawRates(1e8, 1e9), None]
    monkeypatch.setattr(machine, "measure_disk", lambda _: found.pop(0))
    machine.disk(tmp_path)
    now = rate_cache.time.time()
    monkeypatch.setattr(rate_cache.time, "time", lambda: now + 3600)
    rate_cache.forget()
    assert machine.disk(tmp_path).read_bytes_per_s == 1e8
    assert found == []


def test_what_is_kept_says_what_it_is_of(tmp_path, monkeypatch, cache):
    count_of_measurements(monkeypatch)
    machine.disk(tmp_path)
    (entry,) = json.loads(cache.read_text())["rates"].values()
    assert entry["of"]["name"] == "disk"
    assert entry["of"]["node"] == os.uname().nodename
    (measured,) = entry["measured"]
    assert measured["values"] == {"read": 1e9 + 1, "write": 2e9}
    assert [each.name for each in cache.parent.iterdir()] == ["machine.json"]


# ---- processor and network ----


def test_rates_of_the_processor_are_measured_once_for_each_number_of_threads(monkeypatch):
    calls = []
    frequency = machine.frequency

    def counted(*given, **more):
        calls.append(given)
        return frequency(*given, **more)

    monkeypatch.setattr(machine, "frequency", counted)
    for _ in range(2):
        assert machine.copying(1) > 1e6
        assert machine.gemm(100, 100, 100, 1) > 1e6
        assert machine.gemm(128, 128, 65, 1) > 1e6  # the same, rounded up
    assert len(calls) == 2
    machine.copying(2)
    machine.gemm(100, 100, 100, 1, "float32")
    machine.gemm(100, 100, 200, 1)
    assert len(calls) == 5


def test_one_process_moves_nothing_over_the_network():
    with outcore.World("self") as world:
        assert machine.network(world) == math.inf


def test_rates_of_the_scratch_disk_are_none_of_files_kept_elsewhere(tmp_path):
    there = "/dev/shm/outcore-not-there/deeper"
    assert machine.disk(tmp_path, kept_at=tmp_path / "not there" / "yet") is not None
    if os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is one file system only")
    assert machine.disk(tmp_path, kept_at=there) is None
