"""Commands of coupled cluster that benchmarks run and resume."""

import json

import pytest

pytest.importorskip("pyscf")

from outcore.cli import bench
from outcore.cli.bench import BenchOptions
from outcore.cli.bench_cases import Cases


def test_a_calculation_that_was_broken_off_goes_on_and_counts_its_parts(tmp_path):
    command, molecules = bench.load("_cc_command"), bench.load("_molecules")
    job = bench.load("_cc_programs").Job("water", molecules.water(1), "6-31g", "250MB")
    (tmp_path / "scratch").mkdir()

    def stop(text):
        if "T1 diagnostic" in text:
            raise KeyboardInterrupt

    options = {"quick": True, "scratch": tmp_path / "scratch", "cases": Cases(tmp_path / "kept", True)}
    with pytest.raises(KeyboardInterrupt):
        command.run_in_parts(BenchOptions(say=stop, **options), job, job.memory, "--triples")
    said = []
    parts, found = command.run_in_parts(
        BenchOptions(say=said.append, **options), job, job.memory, "--triples"
    )
    assert any("converged amplitudes of iteration" in line for line in said)
    assert parts[0].iterations > 5
    assert parts[1].iterations == 0
    assert all(part.seconds > 0 and part.peak_bytes > 0 for part in parts)
    assert found["triples_hartree"] < 0
    kept = json.loads((tmp_path / "kept" / "water-quick" / "parts.json").read_text())
    assert [part["iterations"] for part in kept] == [part.iterations for part in parts]


def test_what_a_calculation_goes_on_from_stays_until_its_result_is_kept(tmp_path, monkeypatch):
    water10, command = bench.load("ccsd_water10"), bench.load("_cc_command")
    (tmp_path / "scratch").mkdir()
    options = BenchOptions(quick=True, scratch=tmp_path / "scratch", cases=Cases(tmp_path / "kept", True))
    found = {
        "occupied": [1],
        "virtual": [1],
        "ccsd_correlation_hartree": -1.0,
        "triples_hartree": -0.1,
    }

    def run_in_parts(options, job, memory, *more):
        (options.place(job.name) / "checkpoint").write_text("")
        return [command.Part("2026-01-02", "")], found

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_in_parts", run_in_parts)
    with monkeypatch.context() as patched:
        patched.setattr(Cases, "_keep", stop)
        with pytest.raises(KeyboardInterrupt):
            water10.run(options)
    assert [path.name for path in tmp_path.glob("kept/*/*")] == ["checkpoint"]
    claims = water10.run(options)
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".json"]
    assert water10.run(options) == claims
