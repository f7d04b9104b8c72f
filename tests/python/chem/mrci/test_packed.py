"""Packed records, and energies that do not depend on where they are."""

from __future__ import annotations

import numpy as np
import pytest
from mrci_molecules import N2, mean_field

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI
from outcore.chem.mrci.record_store import RecordStore
from outcore.job.world import World

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


@pytest.mark.parametrize("bound", [1e-6, 1e-8])
def test_packing_keeps_its_bound(bound, wanted):
    energy, whole = wanted
    with n2(error_bound=bound, vector_memory=whole // 20) as ci:
        found = ci.kernel()
        assert ci.converged
        assert 0 <= ci.packing_error <= bound
        assert abs(found - energy) <= bound
        assert ci.report.bits < 40


def test_threads_give_the_same(wanted):
    energy, whole = wanted
    with n2(vector_memory=whole // 3, threads=3) as ci:
        assert ci.kernel() == pytest.approx(energy, abs=1e-9)


def test_what_is_no_bound():
    with pytest.raises(OutcoreError, match="an error bound of -1"):
        n2(error_bound=-1.0)


def test_the_density_of_packed_vectors(wanted):
    _, whole = wanted
    with n2() as ci, n2(vector_memory=whole // 3) as packed:
        ci.kernel()
        packed.kernel()
        np.testing.assert_allclose(packed.make_rdm1(), ci.make_rdm1(), atol=1e-5)
