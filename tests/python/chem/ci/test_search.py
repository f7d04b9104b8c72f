"""The search for eigenvalues, with a matrix in place of the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from ci_dense import DenseOperator, fill_starts, orbitals

import outcore
from outcore.chem.ci import vector
from outcore.chem.ci.search import Search, SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling


def solve(space, tmp_path, *, roots=1, kind="memory", side=8, seed=1, coupling=0.3, **options):
    operator = DenseOperator(space, seed, coupling)
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        tiling = VectorTiling(space, side)

        def make(dtype, count):
            return vector.make(world, tiling, kind, count=count, dtype=dtype, cache_bytes=1 << 20)

        chosen = SearchOptions(**options)
        states = make("float32" if chosen.precision == "mixed" else "float64", 2 * roots)
        fill_starts(states, operator, roots)
        search = Search(world, tiling, operator, chosen, states, make, make)
        found = search.run()
        dense = [found.states.dense(i) for i in range(2 * roots)]
        found.states.close()
    return operator, found, dense


SPACES = {
    "folded": (([0, 0, 1, 1, 2, 3], 4), (2, 2, 0, 1)),
    "antisymmetric": (([0, 0, 1, 1, 2, 3], 4), (2, 2, 1, -1)),
    "antisymmetric on the diagonal": (([0, 0, 0, 1, 1, 1], 2), (3, 3, 0, -1)),
    "unfolded": (([0, 0, 0, 1, 1, 1], 2), (3, 2, 1, 0)),
}


@pytest.mark.parametrize("kind", vector.KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_the_lowest_state_is_found(name, kind, tmp_path):
    (irreps, groups), arguments = SPACES[name]
    space = Space(orbitals(irreps, groups), *arguments)
    operator, found, dense = solve(space, tmp_path, kind=kind, tolerance=1e-8)
    assert found.converged
    assert found.last.energies[0] == pytest.approx(operator.eigenvalues(1)[0], abs=1e-11)
    x, hx = dense
    product = (operator.matrix @ x.ravel()).reshape(x.shape)
    assert abs(product - hx).max() < 1e-9
    residual = np.linalg.norm(product - found.last.energies[0] * x) / np.linalg.norm(x)
    assert residual == pytest.approx(found.last.residuals[0], abs=1e-9)
    if space.parity:
        assert np.array_equal(x, space.parity * x.T)


@pytest.mark.parametrize("vectors", [2, 3, 6])
@pytest.mark.parametrize("roots", [1, 3])
def test_several_states_with_any_number_of_vectors(roots, vectors, tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    operator, found, _ = solve(
        space, tmp_path, roots=roots, vectors=vectors, tolerance=1e-7, max_iterations=200
    )
    assert found.converged
    assert found.last.energies == pytest.approx(operator.eigenvalues(roots), abs=1e-10)


def test_three_vectors_need_hardly_more_iterations_than_many(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    counts = {
        vectors: len(solve(space, tmp_path, vectors=vectors, tolerance=1e-7)[1].iterations)
        for vectors in (2, 3, 20)
    }
    assert counts[3] <= 1.3 * counts[20]
    assert counts[3] < counts[2]


def test_mixed_precision_ends_with_double_precision(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    operator, found, dense = solve(space, tmp_path, precision="mixed", tolerance=1e-7, roots=2)
    assert found.converged
    kinds = [each.precision for each in found.iterations]
    assert kinds[0] == "float32"
    assert kinds[-1] == "float64"
    assert found.last.energies == pytest.approx(operator.eigenvalues(2), abs=1e-9)
    assert dense[0].dtype == np.float64


@pytest.mark.parametrize(
    ("roots", "vectors"),
    [
        (1, 2),
        pytest.param(1, 3, marks=pytest.mark.long),
        (2, 3),
        pytest.param(3, 3, marks=pytest.mark.long),
        pytest.param(1, 5, marks=pytest.mark.long),
    ],
)
def test_mixed_precision_is_as_good_as_double(roots, vectors, tmp_path):
    """The parts of H times a vector that single precision loses add up: they must not be taken for a
    residual."""
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    for seed in (3, 4):
        given = {"roots": roots, "vectors": vectors, "tolerance": 1e-7, "seed": seed, "max_iterations": 150}
        _, double, _ = solve(space, tmp_path, **given)
        operator, found, dense = solve(space, tmp_path, precision="mixed", **given)
        assert found.converged
        # Where the space holds no more than the states, rounding decides on the way of several of them.
        allowed = 2 if roots == 1 else len(double.iterations) // 2
        assert len(found.iterations) <= len(double.iterations) + allowed
        assert found.last.energies == pytest.approx(operator.eigenvalues(roots), abs=1e-9)
        for root in range(roots):
            x, norm = dense[root].ravel(), np.linalg.norm(dense[root])
            residual = np.linalg.norm(operator.matrix @ x - found.last.energies[root] * x) / norm
            wrong = np.linalg.norm(operator.matrix @ x - dense[roots + root].ravel()) / norm
            assert wrong <= found.last.errors[root]
            assert residual <= found.last.residuals[root] + found.last.errors[root]


def test_threads_and_tiles_change_nothing(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    energies = [
        [each.energies for each in solve(space, tmp_path, threads=threads)[1].iterations]
        for threads in (1, 4, 4)
    ]
    assert np.array_equal(energies[0], energies[1])
    assert np.array_equal(energies[1], energies[2])
    other = solve(space, tmp_path, side=5)[1].last.energies
    assert other == pytest.approx(energies[0][-1], abs=1e-11)
