"""Packed records, and energies that do not depend on where they are."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from mrci_molecules import N2, mean_field

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI, packed, storage
from outcore.chem.mrci.record_store import RecordStore
from outcore.job.world import World
from outcore.parallel import team

NUMBERS = {
    "random": np.random.default_rng(0).standard_normal(1000),
    "small": np.random.default_rng(1).standard_normal(130) * 1e-7,
    "zeros": np.zeros(65),
    "mixed": np.array([0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, -1e12, 1e-8]),
    "none": np.zeros(0),
    "one": np.array([-0.3]),
}


@pytest.mark.parametrize("error", [1e-4, 1e-8, 1e-12, 0.0])
@pytest.mark.parametrize("name", NUMBERS)
def test_the_error_is_bounded(name, error):
    numbers = NUMBERS[name]
    found = np.empty_like(numbers)
    _core.ci_unpack(_core.ci_pack(numbers, error), error, found)

    assert (abs(found - numbers) <= error + 4e-16 * abs(numbers)).all()


def test_what_is_no_number_comes_back():
    numbers = np.array([1.0, np.inf, -np.inf, np.nan])
    found = np.empty(4)
    _core.ci_unpack(_core.ci_pack(numbers, 1e-6), 1e-6, found)

    np.testing.assert_array_equal(found, numbers)


def test_multiples_of_the_step_stay_as_they_are():
    numbers = np.arange(-100, 100) * 2e-6
    once = np.empty_like(numbers)
    _core.ci_unpack(_core.ci_pack(numbers, 1e-6), 1e-6, once)
    twice = np.empty_like(numbers)
    _core.ci_unpack(_core.ci_pack(once, 1e-6), 1e-6, twice)

    np.testing.assert_array_equal(once, twice)


def test_small_numbers_take_few_bits():
    numbers = np.random.default_rng(0).uniform(-1e-5, 1e-5, 6400)

    assert len(_core.ci_pack(numbers, 1e-8)) * 8 / len(numbers) < 10.2  # 2e-5 / 2e-8 is less than 2^10
    assert len(_core.ci_pack(np.zeros(6400), 1e-8)) == 100


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b"\x3f" + b[1:]])
def test_what_was_never_packed_is_refused(change):
    packed = _core.ci_pack(NUMBERS["random"], 1e-8)
    with pytest.raises(OutcoreError, match="they are damaged"):
        _core.ci_unpack(change(packed), 1e-8, np.empty(1000))


class Store:
    """Of a process alone, beside a model in memory."""

    def __init__(self, world, memory_bytes, sizes):
        self.records = RecordStore(world, np.array(sizes), memory_bytes)
        self.store = self.records.native
        self.sizes = np.array(sizes)
        self.model = [np.zeros(each) for each in sizes]

    def some(self, random, count):
        records = np.sort(random.choice(len(self.sizes), count, replace=False)).astype(np.int64)
        return records, random.standard_normal(self.sizes[records].sum())

    def parts(self, records, numbers):
        ends = np.cumsum(self.sizes[records])
        return [(r, numbers[e - self.sizes[r] : e]) for r, e in zip(records, ends, strict=True)]

    def check(self, atol):
        records = np.arange(len(self.sizes))
        found = np.empty(self.sizes.sum())
        self.store.get(records, found)
        np.testing.assert_allclose(found, np.concatenate(self.model), atol=atol)

    def close(self):
        self.records.close()


@pytest.mark.parametrize("error", [0.0, 1e-9])
@pytest.mark.parametrize("memory_bytes", [4096, 20_000, 1_000_000])
def test_a_store_does_as_a_model(memory_bytes, error):
    random = np.random.default_rng(3)
    with World("self") as world:
        store = Store(world, memory_bytes, random.integers(1, 300, 40).tolist())
        store.error = error
        store.check(0)
        for _ in range(30):
            records, numbers = store.some(random, 8)
            numbers *= 10.0 ** random.integers(-8, 3)
            store.store.put(records, error, numbers)
            for record, part in store.parts(records, numbers):
                store.model[record] = part.copy()
            records, numbers = store.some(random, 8)
            store.store.add(records, error, numbers)
            for record, part in store.parts(records, numbers):
                store.model[record] += part
            gone = random.choice(40, 2, replace=False).astype(np.int64)
            store.store.erase(gone)
            for record in gone:
                store.model[record][:] = 0
        store.check(1e-12 + 40 * error)
        places = store.store.place(np.arange(40))
        assert (places < 0).any() == (memory_bytes < 1_000_000)
        store.close()


def test_additions_of_several_threads_are_all_there():
    """Of whole numbers, whose sums are exact."""
    records, numbers = np.arange(40), np.ones(40 * 100)
    with World("self") as world:
        store = Store(world, 8192, [100] * 40)

        def work(_thread, _task):
            store.store.add(records, 0.0, numbers)

        team.each(range(200), 4, work)
        found, places = np.empty_like(numbers), store.store.place(records)
        store.store.get(records, found)
        store.close()

    assert (found == 200).all()
    assert (places > 0).any() and (places < 0).any()


@pytest.mark.parametrize("idle", [False, True])
def test_requests_are_counted_with_their_sizes(idle):
    """Idle records find no memory here."""
    random = np.random.default_rng(5)
    numbers = [random.standard_normal(each) for each in (10, 200, 70)]
    sizes = [len(_core.ci_pack(each, 1e-6)) + 8 for each in numbers]
    with World("self") as world:
        records = RecordStore(world, np.array([10, 200, 70]), 4096, reserve=1 << 20 if idle else 0)
        store = records.native
        for record, each in enumerate(numbers):
            store.put(np.array([record]), 1e-6, each, idle)
        store.get(np.array([2]), np.empty(70))
        counts = store.counts
        records.close()
    written, read = (3, sum(sizes), min(sizes), max(sizes)), (1, sizes[2], sizes[2], sizes[2])

    def told(traffic):
        return traffic.count, traffic.bytes, traffic.least, traffic.most

    assert told(counts.writes) == written and told(counts.reads) == read
    assert told(counts.file_writes) == (written if idle else (0, 0, 0, 0))
    assert told(counts.file_reads) == (read if idle else (0, 0, 0, 0))


def test_idle_records_leave_memory_to_others():
    with World("self") as world:
        records = RecordStore(world, np.full(40, 100), 20_000, reserve=15_000)
        store, numbers = records.native, np.ones(100)
        for record in range(20):
            store.put(np.array([record]), 0.0, numbers, True)
        idle = store.place(np.arange(20))
        for record in range(20, 40):
            store.add(np.array([record]), 0.0, numbers)
        others = store.place(np.arange(20, 40))
        records.close()

    assert 0 < (idle > 0).sum() < (others > 0).sum()


def test_counts_of_other_numbers_are_refused():
    with World("self") as world:
        store = Store(world, 100, [3, 4])
        with pytest.raises(ValueError, match="numbers of another count"):
            store.store.put(np.array([0, 1]), 0.0, np.zeros(6))
        store.close()


# ---- energies ----


def n2(**settings):
    return MRCI.from_mean_field(mean_field(N2), frozen=2, inactive=2, active=6, comm=None, **settings)


@pytest.fixture(scope="module")
def wanted():
    with n2(residual=1e-6) as ci:
        return ci.kernel(), 8 * ci.records.elements * 7


@pytest.mark.parametrize("share", [1.0, 0.5, 0.01])
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


@pytest.mark.parametrize("bound", [1e-6, 1e-8])
def test_packing_keeps_its_bound(bound, wanted):
    energy, whole = wanted
    with n2(error_bound=bound, vector_memory=whole // 20) as ci:
        found = ci.kernel()
        assert ci.converged
        assert 0 <= ci.packing_error <= bound
        assert abs(found - energy) <= bound
        assert ci.report.bits < 40


class Watched:
    """Stands for a native object, of which one method is called by way of `around`."""

    def __init__(self, native, name, around):
        self._native, self._name, self._around = native, name, around

    def __getattr__(self, name):
        method = getattr(self._native, name)
        return partial(self._around, method) if name == self._name else method


def test_records_are_read_and_written_while_a_task_computes(wanted):
    """The second begins when the records of the third are there, and when what the first has given is added."""
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
    """They are known before the first product, and dealt out in this order."""
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
