"""Density matrices of vectors, against PySCF."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ci_cases import random_hamiltonian

from outcore.chem.ci import densities
from outcore.chem.ci.plan import make_plan
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.ci.vector import make
from outcore.job.world import World

pytest.importorskip("pyscf")

IRREPS = [2, 0, 3, 0, 1, 2]
CASES = [
    ((3, 3), 0, 1),
    ((3, 3), 1, -1),
    ((3, 3), 2, 0),
    ((3, 2), 3, 0),
    ((1, 4), 1, 0),
    ((1, 1), 0, 1),
    ((2, 0), 2, 0),
    ((0, 3), 0, 0),
    ((1, 0), 2, 0),
    ((0, 1), 3, 0),
    ((6, 6), 0, 1),
    ((0, 0), 0, 1),
]


@pytest.fixture(scope="module")
def world():
    with World("self") as made:
        yield made


def random_states(world, electrons, irrep, parity, side, memory=1 << 30):
    hamiltonian = random_hamiltonian(6, 1, IRREPS)
    space = Space(hamiltonian, *electrons, irrep, parity)
    tiling = VectorTiling(space, side)
    states = make(world, tiling, "memory", count=2)
    rng = np.random.default_rng(3)
    for root in range(2):
        for tile in states.tiles():
            block = rng.standard_normal(tile.shape)
            if parity and tile.on_diagonal:
                block = block + parity * block.T
            states.put(root, tile, block)
    plan = make_plan(space, tiling, SearchOptions(), memory)
    return SimpleNamespace(states=states, space=space, hamiltonian=hamiltonian, plan=plan)


def theirs(solved, root):
    from pyscf.fci import cistring

    space = solved.space
    found = np.zeros([cistring.num_strings(6, each) for each in space.electrons])
    rows, columns = (
        cistring.strs2addr(6, count, strings.astype(np.int64)) if count else np.zeros(1, int)
        for count, strings in zip(space.electrons, (space.alpha.strings, space.beta.strings), strict=True)
    )
    found[np.ix_(rows, columns)] = solved.states.dense(root)
    return found


@pytest.mark.parametrize(("electrons", "irrep", "parity"), CASES)
@pytest.mark.parametrize(("bra", "ket"), [(0, 0), (0, 1)])
def test_densities_are_those_of_pyscf(world, electrons, irrep, parity, bra, ket):
    from pyscf.fci import direct_spin1

    solved = random_states(world, electrons, irrep, parity, 3)
    found = densities.compute(solved, bra, ket, threads=2)
    if not sum(electrons):
        assert not found.one.any() and not found.two.any()
        return
    (a, b), (aa, ab, _, bb) = direct_spin1.trans_rdm12s(
        theirs(solved, bra), theirs(solved, ket), 6, electrons
    )
    scale = max(1.0, abs(ab).max())
    np.testing.assert_allclose(found.alpha, a.T, atol=1e-11 * scale)
    np.testing.assert_allclose(found.beta, b.T, atol=1e-11 * scale)
    for mine, expected in ((found.same_alpha, aa), (found.mixed, ab), (found.same_beta, bb)):
        np.testing.assert_allclose(mine, expected, atol=1e-11 * scale)


@pytest.mark.parametrize(("electrons", "irrep", "parity"), [((3, 3), 1, -1), ((3, 2), 3, 0)])
def test_tasks_of_any_size_give_the_same(world, electrons, irrep, parity):
    from outcore.chem.ci.groups import make_tasks

    solved = random_states(world, electrons, irrep, parity, 4)
    expected = densities.compute(solved, 0, 1)
    counts = set()
    for limit in (400, 150, 40):
        tasks = make_tasks(solved.space, limit)
        counts.add(len(tasks))
        few = SimpleNamespace(**vars(solved))
        few.plan = SimpleNamespace(tasks=lambda _, t=tasks: t)
        found = densities.compute(few, 0, 1)
        np.testing.assert_allclose(found.mixed, expected.mixed, atol=1e-11)
        np.testing.assert_allclose(found.same_alpha, expected.same_alpha, atol=1e-11)
        np.testing.assert_allclose(found.beta, expected.beta, atol=1e-11)
    assert len(counts) > 1


def test_the_energy_is_that_of_the_hamiltonian(world):
    from outcore.chem.ci import determinants

    h = random_hamiltonian(6, 1, IRREPS)
    solved = random_states(world, (3, 2), 1, 0, 5)
    space = solved.space
    dense = solved.states.dense(0)
    rows, columns = np.nonzero(dense)
    matrix = determinants.matrix(h, space.alpha.strings[rows], space.beta.strings[columns])
    values = dense[rows, columns]
    found = densities.compute(solved, 0, 0).energy(h)
    assert found == pytest.approx(values @ matrix @ values)


def test_densities_can_be_put_into_another_order(world):
    solved = random_states(world, (2, 1), 1, 0, 5)
    found = densities.compute(solved, 0, 0)
    order = np.array([3, 1, 0, 5, 4, 2])
    moved = found.reordered(order)
    assert moved.alpha[0, 2] == found.alpha[3, 0] and moved.mixed[0, 1, 2, 3] == found.mixed[3, 1, 0, 5]
    np.testing.assert_allclose(moved.one, moved.alpha + moved.beta)
    assert moved.two[0, 1, 2, 3] == pytest.approx(
        moved.same_alpha[0, 1, 2, 3]
        + moved.same_beta[0, 1, 2, 3]
        + moved.mixed[0, 1, 2, 3]
        + moved.mixed[2, 3, 0, 1]
    )
