"""Packed records; energies do not depend on their place."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from mrci_molecules import N2, mean_field

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI, packed, storage
from outcore.job.world import World
from outcore.parallel import team


def test_packed_numbers_come_back():
    numbers, found = np.random.default_rng(0).standard_normal(1000), np.empty(1000)
    packed_bytes = _core.pack_numbers(numbers, 1e-6)
    _core.unpack_numbers(packed_bytes, 1e-6, found)

    assert len(packed_bytes) < 3000 and (abs(found - numbers) <= 1e-6).all()
    with pytest.raises(OutcoreError, match="they are damaged"):
        _core.unpack_numbers(packed_bytes[:-1], 1e-6, found)


def test_records_of_a_store():
    """Basic operations; tests/file/test_record_store.cpp has more."""
    sizes, records = np.array([10, 200, 70]), np.array([0, 2])
    numbers, found = np.random.default_rng(5).standard_normal(80), np.empty(80)
    with World("self") as world:
        store = _core.RecordStore(world, "records", sizes, memory_bytes=512)
        store.put(records, 0.0, numbers)
        store.add(records, 0.0, numbers)
        store.get(records, found)
        places, counts = store.place(np.arange(3)), store.counts
        with pytest.raises(ValueError, match="numbers of another count"):
            store.put(records, 0.0, numbers[1:])
        store.erase(records)
        assert not store.place(np.arange(3)).any()
        store.close()
        with pytest.raises(OutcoreError, match="the store is closed"):
            store.get(records, found)

    np.testing.assert_array_equal(found, 2 * numbers)
    assert places[0] > 80 and places[1] == 0 and places[2] < -560  # in memory, zero, in the file
    assert (counts.writes.count, counts.writes.least, counts.writes.most) == (4, places[0], -places[2])
    assert (counts.file_writes.count, counts.file_reads.count) == (2, 2)


# ---- energies ----


def n2(**settings):
    return MRCI.from_mean_field(mean_field(N2), frozen=2, inactive=2, active=6, comm=None, **settings)


@pytest.fixture(scope="module")
def wanted():
    with n2(residual=1e-6) as ci:
        return ci.kernel(), 8 * ci.records.elements * 7


@pytest.mark.parametrize(
    "share", [pytest.param(1.0, marks=pytest.mark.long), pytest.param(0.5, marks=pytest.mark.long), 0.01]
)
def test_energies_of_any_budget(share, wanted):
    energy, whole = wanted
    with n2(vector_memory=int(share * whole * 1.3)) as ci:
        assert ci.kernel() == pytest.approx(energy, abs=1e-9)
        assert ci.converged
        assert (ci.report.spilled == 0) == (share == 1.0)
        assert ci.report.blocked_seconds == pytest.approx(
            sum(each.waited_seconds for each in ci.found.iterations)
        )
        assert ci.report.memory_bytes + ci.report.file_bytes == ci.report.packed_bytes
        assert ci.report.file_reads.count == 0 if share == 1.0 else ci.report.file_reads.most > 0


@pytest.mark.parametrize("bound", [pytest.param(1e-6, marks=pytest.mark.long), 1e-8])
def test_packing_keeps_its_bound(bound, wanted):
    energy, whole = wanted
    with n2(error_bound=bound, vector_memory=whole // 20) as ci:
        found = ci.kernel()
        assert ci.converged
        assert 0 <= ci.packing_error <= bound
        assert abs(found - energy) <= bound
        assert ci.report.bits < 40


class Watched:
    """Stands for a native object; calls of one method go through `around`."""

    def __init__(self, native, name, around):
        self._native, self._name, self._around = native, name, around

    def __getattr__(self, name):
        method = getattr(self._native, name)
        return partial(self._around, method) if name == self._name else method


def test_records_are_read_and_written_while_a_task_computes(wanted):
    """The second task begins when the records of the third are there, and when those of the first are
    added."""
    _, whole = wanted
    read, added, computed = threading.Semaphore(0), threading.Semaphore(0), []
    waited = []

    def reads(method, *given):
        result = method(*given)
        read.release()
        return result

    def adds(method, *given):
        method(*given)
        added.release()

    def computes(method, *given):
        computed.append(len(computed))
        if len(computed) == 2:
            waited.extend([all(read.acquire(timeout=60) for _ in range(3)), added.acquire(timeout=60)])
        return method(*given)

    with n2(vector_memory=whole // 3) as ci:
        ci.kernel()
        operator, vector = ci._operator, ci.found.states[0]
        store, kernel = operator.store, operator.kernel
        product = packed._Product(operator, vector, ci.found.multiplied[0])
        operator.store = Watched(Watched(store, "get", reads), "add", adds)
        operator.kernel = Watched(kernel, "apply", computes)
        operator._counter.reset()
        team.run(operator.threads + 2, product.work, stop=lambda: operator._counter.next(1 << 48))
        operator.store, operator.kernel = store, kernel
        assert len(computed) == len(operator._tasks) > 3

    assert waited == [True, True]


def test_tasks_begin_with_the_most_costly(wanted):
    """Costs are known before the first product, and tasks are dealt out in this order."""
    _, whole = wanted
    with n2(vector_memory=whole) as ci:
        ci.kernel()
        costs = [task.cost for task in ci._operator._tasks]
    assert len(costs) > 16 and costs == sorted(costs, reverse=True)
    assert max(costs) <= sum(costs) / 8


def test_packing_beyond_its_bound_is_an_error(monkeypatch):
    monkeypatch.setattr(storage, "_SHARE", 300.0)
    with (
        n2(error_bound=1e-6) as ci,
        pytest.raises(
            OutcoreError, match=r"packing has raised the energy by .*more than its bound of 1\.0e-06 Eh"
        ),
    ):
        ci.kernel()


def test_threads_give_the_same(wanted):
    energy, whole = wanted
    with n2(vector_memory=whole // 3, threads=3) as ci:
        assert ci.kernel() == pytest.approx(energy, abs=1e-9)
        assert ci.spin_square() == pytest.approx(0, abs=1e-9)


def test_what_is_no_bound():
    with pytest.raises(OutcoreError, match="an error bound of -1"):
        n2(error_bound=-1.0)


def test_the_density_of_packed_vectors(wanted):
    _, whole = wanted
    with n2() as ci, n2(vector_memory=whole // 3) as stored:
        ci.kernel()
        stored.kernel()
        np.testing.assert_allclose(stored.make_rdm1(), ci.make_rdm1(), atol=1e-5)
