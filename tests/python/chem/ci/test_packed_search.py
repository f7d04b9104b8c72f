"""The search with rounded vectors, with a matrix in place of the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from ci_dense import DenseOperator, fill_starts, orbitals

import outcore
from outcore.chem.ci import rounding, vector
from outcore.chem.ci.packed_search import PackedSearch
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling

SPACES = {
    "folded": (([0, 0, 1, 1, 2, 3], 4), (2, 2, 0, 1)),
    "antisymmetric": (([0, 0, 1, 1, 2, 3], 4), (2, 2, 1, -1)),
    "antisymmetric on the diagonal": (([0, 0, 0, 1, 1, 1], 2), (3, 3, 0, -1)),
    "unfolded": (([0, 0, 0, 1, 1, 1], 2), (3, 2, 1, 0)),
}


class Run:
    """A finished search: `dense` has its states, `wrong` the true residuals of these, as stored."""

    def __init__(self, space, tmp_path, bound, *, roots=1, vectors=3, seed=1, threads=1, **more):
        self.operator = DenseOperator(space, seed)
        self.spaces = []
        tolerance = rounding.tolerance(bound, roots)
        options = SearchOptions(
            tolerance=tolerance, vectors=vectors, error_bound=bound, threads=threads, **more
        )
        with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
            tiling = VectorTiling(space, 8)

            def make(dtype, count, codec="none"):
                return vector.make(
                    world, tiling, "disk", count=count, dtype=dtype, cache_bytes=1 << 20, codec=codec
                )

            basis = make("float64", 2 * vectors * roots, "fixed-point")
            fill_starts(basis, self.operator, roots)
            search = PackedSearch(world, tiling, self.operator, options, basis, roots, make, self._told)
            self.found = search.run()
            self.dense = [basis.dense(i) for i in range(roots)]
            basis.close()

    def _told(self, iteration, basis):
        m, half = len(iteration.kept["overlap"]), basis.count // 2
        whole = [basis.dense(i).ravel() for i in range(m)], [basis.dense(half + i).ravel() for i in range(m)]
        self.spaces.append((iteration, *map(np.array, whole)))

    @property
    def energies(self):
        return self.found.last.energies

    def exact(self, roots):
        return self.operator.eigenvalues(roots)


@pytest.mark.parametrize("bound", [1e-5, pytest.param(1e-8, marks=pytest.mark.long), 1e-12])
@pytest.mark.parametrize("name", SPACES)
def test_energies_are_within_the_bound_and_not_below(name, bound, tmp_path):
    (irreps, groups), arguments = SPACES[name]
    space = Space(orbitals(irreps, groups), *arguments)
    run = Run(space, tmp_path, bound)
    assert run.found.converged
    assert -1e-12 <= run.energies[0] - run.exact(1)[0] <= bound
    x = run.dense[0]
    assert (x.ravel() @ run.operator.matrix @ x.ravel()) / (x.ravel() @ x.ravel()) == pytest.approx(
        run.energies[0], abs=1e-11
    )
    if space.parity:
        assert np.array_equal(x, space.parity * x.T)


@pytest.mark.parametrize(
    ("roots", "vectors"),
    [
        *((1, 2), (1, 6), (2, 3), (4, 6)),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((1, 3), (2, 2), (2, 6), (4, 2), (4, 3))),
    ],
)
def test_no_root_is_missed(roots, vectors, tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    for seed in (1, 2, 3):
        run = Run(space, tmp_path, 1e-9, roots=roots, vectors=vectors, seed=seed, max_iterations=200)
        assert run.found.converged
        assert run.energies == pytest.approx(run.exact(roots), abs=1e-9)


def test_what_is_told_of_the_small_space_is_true_in_each_iteration(tmp_path):
    """For the stored vectors: overlaps, H, the effect of rounding on products, residuals."""
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    run = Run(space, tmp_path, 1e-7, roots=2)
    h = run.operator.matrix
    assert len(run.spaces) > 5
    for iteration, v, kept in run.spaces:
        facts = iteration.kept
        assert v @ v.T == pytest.approx(np.array(facts["overlap"]), abs=1e-12)
        assert v @ h @ v.T == pytest.approx(np.array(facts["hamiltonian"]), abs=1e-9)
        wrong = np.linalg.norm(v @ h - facts["level"] * v - kept, axis=1)
        told = np.sqrt(np.diagonal(facts["wrong"]))
        assert (wrong <= 3 * told).all() and (told <= 3 * wrong).all()
        x = np.array(facts["states"]) @ v
        energies = np.einsum("ij,jk,ik->i", x, h, x) / np.einsum("ij,ij->i", x, x)
        assert energies == pytest.approx(iteration.energies, abs=1e-8)


@pytest.mark.parametrize("bound", [1e-4, 1e-8])
def test_what_is_told_at_the_end_holds_whatever_rounding_does(bound, tmp_path):
    """Energies are exact for the last small space, and residuals are at most as large as reported."""
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    for seed in range(4):
        run = Run(space, tmp_path, bound, roots=2, seed=seed)
        iteration, v, _ = run.spaces[-1]
        assert iteration.kept["renewed"] and len(v) == 2
        x = np.array(iteration.kept["states"]) @ v
        h, norms = run.operator.matrix, np.linalg.norm(x, axis=1)
        energies = np.einsum("ij,jk,ik->i", x, h, x) / norms**2
        assert energies == pytest.approx(iteration.energies, abs=1e-11)
        residuals = np.linalg.norm(x @ h - energies[:, None] * x, axis=1) / norms
        assert (residuals <= iteration.residuals + iteration.errors + 1e-12).all()
        assert (iteration.residuals + iteration.errors < rounding.tolerance(bound, 2)).all()
        stored = np.array([each.ravel() for each in run.dense])
        assert stored == pytest.approx(x, abs=1e-5 * rounding.tolerance(bound, 2))


def test_rounding_costs_hardly_an_iteration(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    coarse, fine = (Run(space, tmp_path, bound) for bound in (1e-6, 1e-14))
    residuals = [each.residuals[0] for each in fine.found.iterations]
    as_small = next(i for i, each in enumerate(residuals) if each < coarse.found.last.residuals[0]) + 1
    assert len(coarse.found.iterations) <= as_small + 1


def test_products_are_made_anew_before_their_errors_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(rounding, "_PARTS", 4)
    renewed = []
    right = PackedSearch.renew
    monkeypatch.setattr(PackedSearch, "renew", lambda self: (renewed.append(1), right(self)))
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    run = Run(space, tmp_path, 1e-8, roots=2, max_iterations=200)
    assert len(renewed) > 1 and run.found.converged
    assert run.energies == pytest.approx(run.exact(2), abs=1e-8)


def test_threads_change_nothing(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    first, second = (Run(space, tmp_path, 1e-8, threads=threads) for threads in (1, 3))
    assert [each.energies[0] for each in first.found.iterations] == [
        each.energies[0] for each in second.found.iterations
    ]
    assert np.array_equal(first.dense[0], second.dense[0])


def test_an_end_before_convergence_says_why(tmp_path):
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    run = Run(space, tmp_path, 1e-10, max_iterations=2)
    assert not run.found.converged
    assert "after 2 iterations the residual is" in run.found.why


def test_ctrl_c_closes_no_vectors(tmp_path, monkeypatch):
    """Closing vectors is collective, and other processes may not have got the signal."""

    def interrupted(self, *_):
        raise KeyboardInterrupt

    def close(self):
        closed.append(self)

    closed = []
    monkeypatch.setattr(DenseOperator, "apply", interrupted)
    monkeypatch.setattr(vector.Vectors, "close", close)
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    with pytest.raises(KeyboardInterrupt):
        Run(space, tmp_path, 1e-8)
    assert not closed


def test_vectors_of_products_are_closed(tmp_path, monkeypatch):
    made, right = [], vector.make

    def make(*given, **more):
        made.append(right(*given, **more))
        return made[-1]

    monkeypatch.setattr(vector, "make", make)
    space = Space(orbitals([0, 0, 0, 1, 1, 1], 2), 3, 3, 0, 1)
    Run(space, tmp_path, 1e-8)
    assert len(made) > 2
    assert all(each.backend.array.closed for each in made)
