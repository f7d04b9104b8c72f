"""Commands of coupled cluster that benchmarks run, and go on with."""

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
