"""Benchmarks of disk arrays and checkpoints: choosing settings, workers, slices, claims."""

import itertools
import json
import sys

import numpy as np
import pytest

from outcore.cli import bench

dra = bench.load("dra")
sides = bench.load("_dra_sides")
worker = bench.load("_dra_worker")
workers = bench.load("_workers")
checkpoint = bench.load("checkpoint")


def candidate(name, kind="A"):
    return sides.Candidate(kind, {"chunk": name})


def times_of(seconds):
    return {case: [each] for case, each in zip(sides.CASES, seconds, strict=True)}


def test_the_best_of_each_peer_and_of_each_case_are_chosen():
    steady, reader, slow = candidate("steady"), candidate("reader"), candidate("slow")
    other = candidate("other", "B")
    times = {
        steady.name: times_of([2] * len(sides.CASES)),
        reader.name: times_of([1 if case.operation == "read" else 9 for case in sides.CASES]),
        slow.name: times_of([8] * len(sides.CASES)),
        other.name: times_of([3] * len(sides.CASES)),
    }
    chosen = dra.choose([steady, reader, slow, other, candidate("failed")], times)
    assert chosen.overall == [steady, other]
    assert {each.name for each in chosen.all} == {steady.name, reader.name, other.name}


class FakeSide:
    def __init__(self, name, is_peer, fails_after):
        self.name, self.is_peer, self._left = name, is_peer, fails_after

        self.closed = False

    def close(self):
        self.closed = True

    def seconds(self, case):
        self._left -= 1
        if self._left < 0:
            raise workers.Failed(f"{self.name}: ended")
        return 1.0


def test_a_peer_that_fails_is_left_out_and_the_others_go_on(tmp_path):
    said = []
    options = bench.BenchOptions(quick=False, scratch=tmp_path, say=said.append)
    everything = [FakeSide("raw", False, 99), FakeSide("A, chunk x", True, 8), FakeSide("ours", False, 99)]
    times = dra.take_turns(options, everything, dra.Effort(10, 0, least=3, most=3, seconds=0, slices=0))
    assert set(times) == {"raw", "ours"}
    assert all(len(runs) == 3 for cases in times.values() for runs in cases.values())
    assert said[1] == "left out: A, chunk x: ended"
    assert [side.closed for side in everything] == [False, True, False]
    x, y = candidate("x"), candidate("y")
    assert dra.Chosen([x], [x, y]).only({y.name}) == dra.Chosen([y], [y])


def test_what_fails_of_ours_ends_the_benchmark(tmp_path):
    options = bench.BenchOptions(quick=False, scratch=tmp_path)
    with pytest.raises(workers.Failed):
        dra.take_turns(options, [FakeSide("ours", False, 2)], dra.QUICK)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_processes_share_the_section_at_chunks(tmp_path, first, processes):
    n, chunk = 100, 32
    np.zeros((n, n)).tofile(tmp_path / "section")
    rows = []
    for index in range(processes):
        task = worker.Task(
            str(tmp_path), str(tmp_path / "section"), n, 2 * n, {"chunk": chunk}, index, processes
        )
        rows.append(worker.H5py(task).rows(first))
    assert rows[0].start == 0
    assert rows[-1].stop == n
    for before, after in itertools.pairwise(rows):
        assert before.stop == after.start
        assert (first + before.stop) % chunk == 0


@pytest.mark.parametrize("axis", ["tall", "wide"])
def test_a_slice_of_the_array_repeats_the_section(axis):
    section = np.arange(16.0).reshape(4, 4)
    array = np.tile(section, (2, 2))
    box = worker.slice_box(axis, 5, 7)
    assert np.array_equal(worker.expected_slice(section, box), array[box])
    assert array[box].shape == ((7, 1) if axis == "tall" else (1, 7))


SERVER = """
import sys, time
from outcore.cli import bench
def obey(line):
    if line == "wrong":
        return 1.0, 2.0, False
    if line == "die":
        sys.exit("out of luck")
    return 1.0, 2.0 + len(line), True
bench.load("_workers").serve(lambda: obey)
"""


@pytest.fixture
def two_servers():
    group = workers.Workers("twins", [[sys.executable, "-c", SERVER]] * 2)
    yield group
    group.close()


def test_workers_obey_together(two_servers):
    assert two_servers.command("go") == (1.0, 4.0)
    assert two_servers.command("again", first_only=True) == (1.0, 7.0)


def test_wrong_data_of_a_worker_are_reported(two_servers):
    with pytest.raises(workers.Failed, match="twins: wrong brought other data"):
        two_servers.command("wrong")


def test_last_words_of_a_worker_are_reported(two_servers):
    with pytest.raises(workers.Failed, match="die ended with out of luck"):
        two_servers.command("die")


@pytest.mark.parametrize("kind", ["h5py", "TensorStore", "zarr", "ours"])
def test_a_side_reads_what_it_has_written(tmp_path, kind):
    if kind != "ours":
        pytest.importorskip(sides.PACKAGES[kind])
    problem = sides.Problem(100, 200, tmp_path / "section", tmp_path)
    np.random.default_rng(1).random((100, 100)).tofile(problem.source)
    if kind == "ours":
        group = sides.Group(dra.ours(1), problem, sides.launch_ours(1))
    else:
        settings = {"chunk": 32, "cache": 1 << 20, "io": 2, "mode": "direct"}
        group = sides.Group(sides.Candidate(kind, settings), problem, None)
    try:
        for case in sides.CASES:
            assert 0 < group.seconds(case) < 60
        group.fill()
        assert group.slice_seconds("tall", 150) > 0
        assert group.slice_seconds("wide", 30) > 0
    finally:
        group.close()
    assert [path.name for path in tmp_path.iterdir()] == ["section"]


def measured(tmp_path, ours=1.0, peer=2.0, raw=0.95, slices=(1.0, 1.5)):
    problem = sides.Problem(10, 20, tmp_path / "section", tmp_path)
    settings = candidate("best")
    peers = sides.Peers({"A": "A 1.0"}, {"B": "pip install B"}, {})
    seconds = {sides.RAW: raw, settings.name: peer, dra.ours(2).name: ours, dra.ours(4).name: ours * 1.1}
    times = {name: times_of([each] * len(sides.CASES)) for name, each in seconds.items()}
    both = {"tall": [slices[0]], "wide": [slices[1]]}
    return dra.Measured(
        problem,
        peers,
        dra.Chosen([settings], [settings]),
        times,
        {settings.name: {"tall": [2.0], "wide": [1.2]}, dra.ours(2).name: both},
        "fio",
        True,
    )


def test_claims_compare_medians(tmp_path):
    claims = {claim.name: claim for claim in dra.claims(measured(tmp_path))}
    cold = claims["cold read, aligned"]
    assert (cold.value, cold.holds, cold.peer) == (2.0, True, "A 1.0, chunk best")
    assert "B" in cold.how
    assert claims["cold read, aligned, against the raw device"].value == pytest.approx(0.95)
    assert claims["slices 18x1 and 1x18, slower against faster"].value == 1.5
    assert claims["slice 18x1"].holds
    assert not claims["slice 1x18"].holds
    assert not claims["read, 4 processes against 2"].holds
    json.dumps([claim.as_json() for claim in claims.values()])


def test_claims_without_peers_say_so(tmp_path):
    given = measured(tmp_path)
    alone = dra.Measured(
        given.problem, given.peers, dra.Chosen([], []), given.times, given.slices, "fio", True
    )
    claims = {claim.name: claim for claim in dra.claims(alone)}
    assert claims["cold read, aligned"].holds is None
    assert claims["slice 18x1"].value is None
    assert claims["cold read, aligned, against the raw device"].holds


def test_the_array_of_a_checkpoint_leaves_room_in_memory():
    row_bytes = 8 * checkpoint.COLUMNS
    assert checkpoint.rows_for(4 << 30, 64 << 30) * row_bytes == 4 << 30
    assert checkpoint.rows_for(4 << 30, 10 << 30) * row_bytes == 2 << 30


def test_claims_of_a_checkpoint():
    times = {
        checkpoint.RAW: {"save": [0.9], "load": [1.0]},
        checkpoint.OURS: {"save": [1.0], "load": [1.25], "save again": [2.0]},
        "numpy": {"save": [3.0], "load": [1.0]},
    }
    claims = {claim.name: claim for claim in checkpoint.claims(times, 10**9, "fio", True)}
    assert claims["save, against the raw device"].holds
    assert not claims["load, against the raw device"].holds
    assert claims["save, against numpy"].value == 3.0
    assert claims["save over a checkpoint"].value == 500.0
