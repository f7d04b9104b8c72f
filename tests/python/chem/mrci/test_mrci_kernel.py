"""Products with the Hamiltonian against Slater's and Condon's rules."""

from __future__ import annotations

import numpy as np
import pytest
from mrci_dense import Case

from outcore import _core
from outcore.chem.ci import determinants
from outcore.chem.mrci.tables import in_memory

CASES = {
    "one irrep": {"internal": [0, 0, 0], "external": [0, 0, 0], "groups": 1, "electrons": (2, 2)},
    "odd": {"internal": [0, 1, 0], "external": [0, 0, 1, 1], "groups": 2, "electrons": (2, 1)},
    "core": {
        "internal": [0, 1, 0, 1],
        "external": [0, 0, 1, 1],
        "groups": 2,
        "electrons": (2, 2),
        "irrep": 1,
        "inactive": 1,
    },
    "four irreps": {
        "internal": [0, 1, 2, 3],
        "external": [0, 0, 1, 2, 2, 3],
        "groups": 4,
        "electrons": (3, 2),
        "irrep": 2,
        "inactive": 1,
    },
    "six electrons": {
        "internal": [0, 1, 2, 3, 0],
        "external": [0, 0, 1, 2, 3],
        "groups": 4,
        "electrons": (3, 3),
        "inactive": 2,
    },
    "two electrons": {"internal": [0, 0], "external": [0, 0, 0], "groups": 1, "electrons": (1, 1)},
    "one spin": {"internal": [0, 0], "external": [0, 0, 0], "groups": 1, "electrons": (2, 0)},
    "beta only": {"internal": [0, 0], "external": [0, 0, 0], "groups": 1, "electrons": (0, 3)},
    "no external": {"internal": [0, 1, 0], "external": [], "groups": 2, "electrons": (2, 1)},
}


@pytest.fixture(params=CASES)
def arguments(request):
    return CASES[request.param]


def random_vector(case, seed=0):
    x = np.random.default_rng(seed).standard_normal(case.space.size)
    case.space.fold(0, len(case.space), 0.5, x)
    return x


def numbers(whole, alpha, beta):
    where = {pair: i for i, pair in enumerate(zip(*(each.tolist() for each in whole.strings()), strict=True))}
    return [where[pair] for pair in zip(alpha.tolist(), beta.tolist(), strict=True)]


def unfolded(folded, whole, parity, x):
    alpha, beta = folded.strings()
    full = np.zeros(whole.space.size)
    full[numbers(whole, beta, alpha)] = parity * x
    full[numbers(whole, alpha, beta)] = x
    return full


def test_product(arguments):
    case = Case(**arguments)
    x = random_vector(case)

    np.testing.assert_allclose(case.apply(x), case.matrix() @ x, atol=1e-11)


def test_tasks_of_any_size_give_the_same(arguments):
    case = Case(**arguments)
    x = random_vector(case)

    np.testing.assert_allclose(case.apply(x, 1.0), case.apply(x, 1e12), atol=1e-11)


def test_diagonal(arguments):
    case = Case(**arguments)
    found = np.empty(case.space.size)
    case.kernel.diagonal(0, len(case.space), found)

    np.testing.assert_allclose(found, np.diagonal(case.matrix()), atol=1e-12)


def test_spin_shift(arguments):
    case, shifted = Case(**arguments), Case(**arguments, shift=0.3)
    x = random_vector(case)
    m = abs(arguments["electrons"][0] - arguments["electrons"][1]) / 2
    squared = determinants.spin_square(*case.strings()) @ x

    difference = shifted.apply(x) - case.apply(x)
    np.testing.assert_allclose(difference, 0.3 * (squared - m * (m + 1) * x), atol=1e-11)


@pytest.mark.parametrize("parity", [1, -1])
@pytest.mark.parametrize("name", [name for name, each in CASES.items() if len(set(each["electrons"])) == 1])
def test_folded_product(name, parity):
    folded, whole = Case(**CASES[name], parity=parity), Case(**CASES[name])
    x = random_vector(folded)
    full = unfolded(folded, whole, parity, x)
    here = numbers(whole, *folded.strings())

    np.testing.assert_allclose(folded.apply(x), (whole.matrix() @ full)[here], atol=1e-11)


@pytest.mark.parametrize("parity", [0, 1, -1])
def test_exchange_gives_the_spin(arguments, parity):
    electrons = arguments["electrons"]
    if parity and len(set(electrons)) == 2:
        pytest.skip("only as many alpha as beta electrons are folded")
    case, whole = Case(**arguments, parity=parity), Case(**arguments)
    x = random_vector(case)
    full = x if not parity else unfolded(case, whole, parity, x)
    m = (electrons[0] - electrons[1]) / 2
    found = sum(case.kernel.exchange(task, x, case.space.offsets[:-1]) for task in case.kernel.tasks(1e4))

    wanted = full @ determinants.spin_square(*whole.strings()) @ full
    assert (m * (m + 1) + electrons[1]) * (full @ full) - found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("parity", [0, 1, -1])
def test_references_couple_to_what_interacts(parity):
    case = Case(**CASES["six electrons"], parity=parity, interacting=True)
    singlets, offsets = _core.MRCISinglets(case.space, 2), case.space.offsets[:-1]
    random, references = random_vector(case), np.zeros(case.space.size)
    inside = case.records.is_reference
    references[offsets[inside]] = random[offsets[inside]]
    product = case.apply(references)
    once, twice, projected = random.copy(), random.copy(), product.copy()
    singlets.project(0, len(singlets), once, offsets)
    for group in range(len(singlets)):
        singlets.project(group, group + 1, twice, offsets)
    singlets.project(0, len(singlets), projected, offsets)

    np.testing.assert_allclose(projected, product, atol=1e-12)
    np.testing.assert_allclose(twice, once, atol=1e-12)
    assert abs(once - random).max() > 0.1
    singlets.project(0, len(singlets), twice, offsets)
    np.testing.assert_allclose(twice, once, atol=1e-12)


def test_groups_do_not_meet():
    case = Case(**CASES["six electrons"], interacting=True)
    singlets = _core.MRCISinglets(case.space, 2)
    records = [singlets.records_of(group, group + 1) for group in range(len(singlets))]

    assert sum(len(each) for each in records) == len(singlets.records_of(0, len(singlets)))


def test_a_constant_is_added():
    case = Case(**CASES["core"])
    x = random_vector(case)
    moved = case.made(constant=-1.5)
    in_memory(moved, case.integrals.external, 4, 1)
    t = np.zeros_like(x)
    for task in moved.tasks(1e4):
        moved.apply(task, x, t, case.space.offsets[:-1])

    np.testing.assert_allclose(t, case.apply(x) - 1.5 * x, atol=1e-11)


def test_a_task_needs_only_its_records():
    case = Case(**CASES["six electrons"])
    x, whole = random_vector(case), np.zeros(case.space.size)
    offsets, sizes = case.space.offsets[:-1], case.records.sizes
    for task in case.kernel.tasks(1e4, 200):
        records = case.kernel.units_of(task)
        here = np.full(len(sizes), -1)
        here[records] = np.concatenate([[0], np.cumsum(sizes[records])[:-1]])
        part = np.concatenate([x[offsets[r] : offsets[r] + sizes[r]] for r in records])
        t = np.zeros_like(part)
        case.kernel.apply(task, part, t, here)
        for r in records:
            whole[offsets[r] : offsets[r] + sizes[r]] += t[here[r] : here[r] + sizes[r]]

    np.testing.assert_allclose(whole, case.apply(x), atol=1e-11)


def test_units_of_several_records():
    case = Case(**CASES["six electrons"])
    units = np.arange(len(case.records)) // 3
    sizes = np.bincount(units, case.records.sizes)
    for task in case.kernel.tasks(1e12, 500, units):
        found = case.kernel.units_of(task, units)

        np.testing.assert_array_equal(found, np.unique(units[case.kernel.units_of(task)]))
        assert sizes[found].sum() <= 500
    with pytest.raises(ValueError, match="units: one for each record, ascending from 0"):
        case.kernel.tasks(1e12, 500, units[::-1].copy())


def test_tasks_have_few_elements():
    case = Case(**CASES["six electrons"])
    for task in case.kernel.tasks(1e12, 300):
        assert case.records.sizes[case.kernel.units_of(task)].sum() <= 300


def test_records_that_are_not_there_are_refused():
    case = Case(**CASES["core"])
    x = random_vector(case)
    with pytest.raises(IndexError, match="a record of the task is not there"):
        case.kernel.apply(case.kernel.tasks(1e12)[0], x, np.zeros_like(x), np.full(len(case.space), -1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": np.array([6], np.uint8)}, "a kind of record that does not exist"),
        ({"alpha": np.array([1], np.uint64)}, "wrong number of electrons"),
        ({"target": 1}, "a record without elements"),
        ({"target": 2}, "target is no irrep"),
        ({"parity": 2}, "parity must be 1, -1 or 0"),
    ],
)
def test_spaces_that_cannot_be(change, message):
    given = {
        "externals": [1, 1],
        "internal_irreps": [0, 1],
        "electrons": (2, 1),
        "target": 0,
        "parity": 0,
        "kinds": np.array([0], np.uint8),
        "alpha": np.array([3], np.uint64),
        "beta": np.array([2], np.uint64),
    }
    _core.MRCISpace(**given)
    with pytest.raises(ValueError, match=message):
        _core.MRCISpace(**(given | change))
