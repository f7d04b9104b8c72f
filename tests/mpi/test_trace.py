"""Trace and report of all processes of a job."""

from __future__ import annotations

import errno

import pytest

from outcore import _core, trace
from outcore.base.errors import OutcoreError
from outcore.trace import report, tracefile

MS = 1_000_000  # nanoseconds


@pytest.fixture
def traced(comm):
    """Each rank records one read of (rank + 1) KiB, which blocks it for (rank + 1) ms."""
    comm.Barrier()
    trace.reset()
    trace.start(10)
    now, amount = _core.trace_now_ns(), comm.rank + 1
    _core.trace_record("file", "read", now, now + amount * MS, f"/of/{comm.rank}", 0, amount * 1024)
    trace.stop()


def test_report_is_at_rank_0_and_sums_over_ranks(comm, traced):
    gathered = report.gather(comm, 2.0 + comm.rank)
    assert (gathered is None) == (comm.rank > 0)
    if gathered is not None:
        total = comm.size * (comm.size + 1) // 2
        assert gathered.run_seconds == 1.0 + comm.size
        assert gathered.total("file", "read").bytes == total * 1024
        (row,) = gathered.rows("file")
        assert row.seconds == pytest.approx(total * 1e-3)
        assert row.max_over_mean == pytest.approx(comm.size / (total / comm.size))


def test_one_file_holds_the_events_of_all_ranks(comm, traced, shared_tmp_path):
    saved = trace.save(shared_tmp_path / "t.json", comm)
    assert (saved is None) == (comm.rank > 0)
    comm.Barrier()
    content = tracefile.read(shared_tmp_path / "t.json")
    assert sorted(content.events["rank"].tolist()) == list(range(comm.size))
    for event in content.events:
        assert event["bytes"] == (event["rank"] + 1) * 1024
    assert [process.rank for process in content.report.processes] == list(range(comm.size))


def test_processes_on_one_node_share_a_clock(comm):
    assert trace._clock_offset_ns(comm) == 0


def test_clocks_of_several_nodes_are_compared(comm, monkeypatch):
    monkeypatch.setattr(trace, "_kernel", lambda: f"node {comm.rank}")
    offset_ns = trace._clock_offset_ns(comm)  # here it is the same clock: next to nothing, measured
    assert abs(offset_ns) < 1000 * MS
    assert (offset_ns == 0) == (comm.rank == 0)


def test_a_file_that_cannot_be_written_is_the_same_error_at_all_ranks(comm, traced, shared_tmp_path):
    with pytest.raises(OutcoreError) as caught:
        trace.save(shared_tmp_path / "none" / "t.json", comm)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.rank == 0
    assert comm.allgather(str(caught.value)) == [str(caught.value)] * comm.size
