"""The benchmark runner: claims, finding and running benchmarks, their common parts."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import bench
from outcore.cli.bench import Claim, at_least, at_most

FAKE = '''"""Pretends to measure."""

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most

from ._helper import SPEED


def run(options: BenchOptions) -> list[Claim]:
    assert not list(options.scratch.iterdir())
    (options.scratch / "rubbish").write_text("left behind")
    return [
        Claim("speed", SPEED if options.quick else 2 * SPEED, "MB/s", at_least(90), "peer 1.0", "timed"),
        Claim("absent", None, "s", at_most(1), "", "peer 2 is not installed"),
        Claim("size", 7, "bytes", None, "", "counted"),
    ]
'''


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """A directory of benchmarks with one in it."""
    directory = tmp_path / "benchmarks"
    directory.mkdir()
    (directory / "__init__.py").write_text('"""Benchmarks."""\n')
    (directory / "_helper.py").write_text("SPEED = 50.0\n")
    (directory / "fake.py").write_text(FAKE)
    monkeypatch.setattr(bench, "_directory", lambda: directory)
    for name in [name for name in sys.modules if name.startswith("outcore.benchmarks")]:
        monkeypatch.delitem(sys.modules, name)
    yield directory
    for name in [name for name in sys.modules if name.startswith("outcore.benchmarks")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("bar", "value", "holds"),
    [
        (at_least(2), 2, True),
        (at_least(2), 1.9, False),
        (at_most(2), 2, True),
        (at_most(2), 2.1, False),
        (None, 5, None),
        (at_least(2), None, None),
    ],
)
def test_claim_holds(bar, value, holds):
    assert Claim("x", value, "", bar, "", "").holds is holds


def test_claim_as_json():
    assert Claim("rate", 3.5, "GB/s", at_least(2), "fio", "median of 3").as_json() == {
        "name": "rate",
        "value": 3.5,
        "interval": None,
        "unit": "GB/s",
        "bar": 2,
        "direction": ">=",
        "holds": True,
        "peer": "fio",
        "how": "median of 3",
    }


@pytest.mark.parametrize(
    ("count", "dropped"),  # at each end
    [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (21, 5), (25, 7)],
)
def test_interval_of_a_median_drops_what_chance_allows(count, dropped):
    values = [float(i) for i in reversed(range(count))]
    assert bench.median_interval(values) == (dropped, count - 1 - dropped)


@pytest.mark.parametrize(
    ("bar", "holds"),
    [(at_least(1.2), True), (at_least(1.3), False), (at_most(0.8), True), (at_most(0.7), False)],
)
def test_a_bar_is_missed_if_all_of_the_interval_misses_it(bar, holds):
    claim = bench.median_claim("ratio", [1.0, 0.8, 1.2], "x", bar, "peer", "3 turns")
    assert (claim.value, claim.interval, claim.holds) == (1.0, (0.8, 1.2), holds)
    assert claim.how == "3 turns; all between 0.8 and 1.2"
    assert bench.median_claim("ratio", [1.0] * 6, "x", bar, "", "").how == "; 95 % between 1 and 1"


def test_the_table_shows_intervals(capsys):
    bench.show([bench.median_claim("ratio", [1.0, 0.8, 1.2], "x", at_least(1.1), "peer", "").as_json()])
    assert "1 x (0.8 to 1.2)" in capsys.readouterr().out


def test_benchmarks_are_found_with_what_they_say(fakes):
    assert bench.benchmarks() == {"fake": "Pretends to measure."}


def test_benchmarks_of_the_checkout_are_found():
    assert (bench._directory() / "__init__.py").is_file()


def test_result_says_what_was_measured_where(fakes, tmp_path):
    result = bench.run_benchmark("fake", quick=True, scratch=tmp_path)
    assert result["bench"] == "fake"
    assert result["quick"] is True
    assert result["machine"]["cores"] >= 1
    assert result["machine"]["scratch"]["directory"] == str(tmp_path)
    assert [claim["holds"] for claim in result["claims"]] == [False, None, None]
    json.dumps(result)


def test_what_a_whole_run_has_used_is_in_the_result(fakes, tmp_path):
    ran = """
    used = {"memory_budget_bytes": 5, "peak_memory_bytes": 3, "molecule": {"functions": 24}}
    options.ran("water", used, run_seconds=1.5)
"""
    head, middle, tail = (fakes / "fake.py").read_text().partition('    (options.scratch / "rubbish")')
    (fakes / "fake.py").write_text(head + ran.lstrip("\n") + middle + tail)
    used = {"memory_budget_bytes": 5, "peak_memory_bytes": 3, "peak_disk_bytes": None, "run_seconds": 1.5}
    result = bench.run_benchmark("fake", quick=True, scratch=tmp_path)
    assert result["runs"] == [{"name": "water", "functions": 24} | used]


def test_scratch_is_empty_before_and_removed_after(fakes, tmp_path):
    bench.run_benchmark("fake", quick=True, scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["benchmarks"]


def test_command_writes_json_and_fails_if_a_claim_does(fakes, tmp_path, capsys):
    file = tmp_path / "result.json"
    assert bench.command("fake", quick=True, json_=file, scratch=tmp_path) == 1
    assert json.loads(file.read_text())["claims"][0]["value"] == 50
    assert "NO" in capsys.readouterr().out


CASES = '''"""Has cases."""

from pathlib import Path

from outcore.cli.bench import BenchOptions, Claim

HAS_CASES = True
FILE = Path(__file__).with_name("counted")


def run(options: BenchOptions) -> list[Claim]:
    def measure(name: str) -> list[Claim]:
        if name == "b" and not FILE.exists():
            raise RuntimeError("broken off")
        FILE.write_text(name + (FILE.read_text() if FILE.exists() else ""))
        (options.place(name) / "half").write_text("done")
        return [Claim(name, 1.5, "s", None, "", "once", (1.0, 2.0))]

    return [claim for name in ("a", "b") for claim in options.claims(name, lambda: measure(name))]
'''


def test_a_run_that_was_broken_off_goes_on_after_its_cases(fakes, tmp_path, capsys):
    (fakes / "cases.py").write_text(CASES)
    keep = {"scratch": tmp_path, "keep": tmp_path / "kept", "quick": False}
    counted = fakes / "counted"

    def measured():
        found, _ = counted.read_text(), counted.write_text("")
        return found

    (fakes / "counted").write_text("")
    file = tmp_path / "kept" / "cases" / "a.json"
    first = bench.run_benchmark("cases", **keep)
    assert measured() == "ba"
    assert [(case["name"], case["commit"]) for case in first["cases"]] == [
        (name, bench.bench_cases.commit()) for name in "ab"
    ]
    (tmp_path / "kept" / "cases" / "b.json").unlink()
    again = bench.run_benchmark("cases", **keep)
    assert measured() == "b", "a was kept"
    assert again["claims"] == first["claims"]
    assert again["cases"][0] == first["cases"][0]
    assert "a: kept, of" in capsys.readouterr().err
    kept = json.loads(file.read_text())
    for key, value in {"processor": "x", "cores": 0, "memory_bytes": 0, "disk": "another"}.items():
        file.write_text(json.dumps(kept | {key: value}))
        bench.run_benchmark("cases", **keep)
        assert measured() == "a", f"what was kept is of another {key}"
    bench.run_benchmark("cases", **keep)
    assert measured() == ""
    bench.run_benchmark("cases", **keep | {"quick": True})
    assert measured() == "ba", "short cases are others"
    assert (tmp_path / "kept" / "cases" / "a" / "half").exists()


def test_a_case_that_fails_leaves_those_before_it(fakes, tmp_path):
    (fakes / "cases.py").write_text(CASES.replace("not FILE", "FILE"))
    with pytest.raises(RuntimeError, match="broken off"):
        bench.run_benchmark("cases", quick=False, scratch=tmp_path, keep=tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept" / "cases").glob("*.json")] == ["a.json"]


def test_there_is_nothing_to_keep_without_cases(fakes, tmp_path):
    with pytest.raises(OutcoreError, match="fake has no cases"):
        bench.run_benchmark("fake", quick=True, scratch=tmp_path, keep=tmp_path / "kept")


def test_command_succeeds_if_nothing_fails(fakes, tmp_path, capsys):
    assert bench.command("fake", quick=False, scratch=tmp_path) == 0
    shown = capsys.readouterr().out
    assert "100 MB/s" in shown
    assert "not measured" in shown


def test_peers_are_not_compared_with_an_emulated_storage(fakes, monkeypatch):
    monkeypatch.setenv("OUTCORE_THROTTLE", "bandwidth=20MB")
    with pytest.raises(OutcoreError, match="a disk of 20 MB/s"):
        bench.command("fake", scratch=fakes)


def test_unknown_benchmark_names_those_there_are(fakes):
    import typer

    with pytest.raises(typer.BadParameter, match="nonsense: the benchmarks are fake"):
        bench.command("nonsense")


def test_interleave_takes_turns_and_the_median():
    calls = []
    own = {"a": [1.0, 9.0, 2.0], "b": [5.0, 4.0, 6.0]}

    def run(name):
        calls.append(name)
        return own[name].pop(0)

    medians = bench.interleave(
        {"a": lambda: run("a"), "b": lambda: run("b")}, 3, before=lambda: calls.append(".")
    )
    assert "".join(calls) == ".a.b.a.b.a.b"
    assert medians == {"a": 2.0, "b": 5.0}


def test_interleave_times_what_does_not_time_itself():
    assert 0.01 <= bench.interleave({"nap": lambda: time.sleep(0.01)}, 1)["nap"] < 1


def test_interleave_needs_a_repeat():
    with pytest.raises(ValueError, match="at least 1"):
        bench.interleave({}, 0)


@pytest.fixture
def cached_file():
    """A file whose pages are in the cache, on a file system that has a cache to drop."""
    path = Path("/var/tmp", f"outcore-test-cached-{os.getpid()}")
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        file.read()
    yield path
    path.unlink()


def cached(path):
    with path.open("rb") as file:
        return bench._cached_pages(file.fileno()) > 0


def test_page_cache_of_a_file_is_dropped(cached_file):
    assert cached(cached_file)
    assert bench._drop_file(cached_file)
    assert not cached(cached_file)


def test_page_cache_of_some_files_is_dropped(cached_file):
    assert bench.drop_files(cached_file)
    assert not cached(cached_file)


def test_dropping_without_the_right_to_needs_files(monkeypatch, cached_file):
    def refuse(self, text):
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    assert bench.drop_page_cache(cached_file)
    assert not bench.drop_page_cache()


@pytest.mark.parametrize("operation", ["read", "write"])
def test_device_rate_without_fio(monkeypatch, operation):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    rate = bench.device_rate(Path("/var/tmp"), operation, size_bytes=16 << 20, seconds=0.05)
    assert rate.tool == "own threads"
    assert rate.bytes_per_s > 1e6


@pytest.mark.parametrize("tool", ["fio", "own threads"])
@pytest.mark.parametrize("operation", ["write", "read"])
def test_device_rate_of_one_pass_over_a_file(monkeypatch, tool, operation):
    if tool == "own threads":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    path = Path("/var/tmp", f"outcore-test-rate-{os.getpid()}")
    try:
        rate = bench.device_rate(Path("/var/tmp"), operation, size_bytes=16 << 20, seconds=None, path=path)
        assert path.stat().st_size == 16 << 20
    finally:
        path.unlink(missing_ok=True)
    assert rate.tool.startswith(tool)
    assert rate.bytes_per_s > 1e6


def test_free_memory_is_kept_while_it_is_measured(tmp_path):
    setting = tmp_path / "min_free_ms"
    setting.write_text("7\n")
    with pytest.raises(KeyboardInterrupt), bench.free_memory_kept(setting):
        assert setting.read_text() == "100000"
        raise KeyboardInterrupt
    assert setting.read_text() == "7\n"
    with bench.free_memory_kept(tmp_path / "not" / "there"):
        pass


def test_memory_is_claimed_on_all_processors():
    before = os.sched_getaffinity(0)
    bench.claim_memory(1 << 20)
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_device_rate_by_fio():
    rate = bench.device_rate(Path("/var/tmp"), "read", size_bytes=16 << 20, seconds=0.2)
    assert rate.tool.startswith("fio")
    assert rate.bytes_per_s > 1e6


def test_bytes_over_the_least_have_a_bar_where_memory_is_little():
    least = bench.load("_least")
    results = {"memory_budget_bytes": 100, "peak_disk_bytes": 1000}
    assert least.claims("CI", results, moved=20, least=0) == []
    (claim,) = least.claims("CI", results, moved=20, least=16)
    assert (claim.value, claim.holds) == (1.25, True)
    (claim,) = least.claims("CI", results | {"peak_disk_bytes": 999}, moved=30, least=16)
    assert (claim.value, claim.holds) == (1.875, None)


def test_tool_version():
    assert bench.tool_version("bash").startswith("GNU bash")
    assert bench.tool_version("no-such-tool") is None


def test_list_of_the_command():
    answer = subprocess.run(
        [sys.executable, "-m", "outcore", "bench", "--list"], capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in answer.stdout.splitlines()] == list(bench.benchmarks())
