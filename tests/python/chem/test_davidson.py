"""The eigenvalue search, over plain vectors in place of those of a method."""

from __future__ import annotations

import numpy as np
import pytest
from plain_search import PlainSearch

from outcore.base.errors import NotConverged
from outcore.chem.small_space import SmallSpace, of_general

SIZE = 120


def symmetric(seed=1, coupling=0.1):
    random = np.random.default_rng(seed)
    matrix = coupling * random.standard_normal((SIZE, SIZE))
    return np.diag(np.arange(SIZE) * 0.5 - 3) + (matrix + matrix.T) / 2


def of_levels(levels, seed=2):
    """A nearly diagonal matrix with these eigenvalues, and its states."""
    random = np.random.default_rng(seed)
    mixing = 0.05 * random.standard_normal((SIZE, SIZE))
    u = np.linalg.qr(np.eye(SIZE) + (mixing - mixing.T) / 2)[0]
    u *= np.sign(np.diagonal(u))
    return u @ np.diag(levels) @ u.T, u.T


def unit(*places):
    return np.eye(SIZE)[list(places)]


@pytest.mark.parametrize("vectors", [2, 3, 8])
@pytest.mark.parametrize("roots", [1, 4])
def test_lowest_roots(roots, vectors):
    matrix = symmetric()
    search = PlainSearch(matrix, unit(*range(roots)), vectors=vectors, tolerance=1e-8, max_iterations=300)
    search.iterate()
    assert search.converged and search.why() == ""
    assert search.energies == pytest.approx(np.linalg.eigvalsh(matrix)[:roots], abs=1e-12)
    residuals = search.found @ matrix - search.energies[:, None] * search.found
    assert np.linalg.norm(residuals, axis=1).max() < 1e-8


@pytest.mark.parametrize("vectors", [2, 3, 5])
def test_the_space_collapses_before_it_is_too_large(vectors):
    search = PlainSearch(symmetric(), unit(0, 1, 2), vectors=vectors, max_iterations=300)
    search.iterate()
    assert search.converged
    assert search.most <= vectors * 3


def test_directions_make_up_for_many_vectors():
    counts = {}
    for vectors in (2, 3, 50):
        search = PlainSearch(symmetric(coupling=0.3), unit(0), vectors=vectors, max_iterations=300)
        search.iterate()
        counts[vectors] = len(search.iterations)
    assert counts[3] <= 1.3 * counts[50]
    assert counts[3] < counts[2]


def test_degenerate_roots():
    levels = np.arange(SIZE) * 0.5
    levels[:3] = -1.0
    matrix, states = of_levels(levels)
    search = PlainSearch(matrix, unit(0, 1, 2), tolerance=1e-9)
    search.iterate()
    assert search.converged
    assert search.energies == pytest.approx([-1] * 3, abs=1e-12)
    found = search.found
    assert found @ found.T == pytest.approx(np.eye(3), abs=1e-9)
    assert (found @ states[:3].T) @ (found @ states[:3].T).T == pytest.approx(np.eye(3), abs=1e-9)


def test_a_root_is_followed_past_lower_states():
    matrix, states = of_levels(np.arange(SIZE) * 0.5)
    search = PlainSearch(matrix, unit(3), references=unit(3), vectors=8, passed=4, max_iterations=200)
    search.iterate()
    assert search.converged
    assert search.energies[0] == pytest.approx(1.5, abs=1e-10)
    assert abs(search.found[0] @ states[3]) == pytest.approx(1, abs=1e-6)


def test_roots_in_another_order_than_what_they_follow():
    """The start vector of the first root is above that of the second, its state below."""
    matrix = np.diag(np.array([0.0, 0.1, *(2.0 + np.arange(SIZE - 2))]))
    matrix[0, 2:6] = matrix[2:6, 0] = 0.1
    matrix[1, 6:10] = matrix[6:10, 1] = 0.9
    search = PlainSearch(matrix, unit(0, 1), references=unit(0, 1))
    search.iterate()
    assert search.converged
    assert search.iterations[0].energies[0] < search.iterations[0].energies[1]
    assert search.energies[0] > search.energies[1]
    assert sorted(search.energies) == pytest.approx(np.linalg.eigvalsh(matrix)[:2], abs=1e-10)


def test_products_that_may_be_wrong_are_made_anew():
    matrix = symmetric()
    search = PlainSearch(matrix, unit(0), tolerance=1e-7)
    search.errors[0] = 1e-3
    search.iterate()
    assert search.renewals == 1
    assert search.converged
    assert search.energies[0] == pytest.approx(np.linalg.eigvalsh(matrix)[0], abs=1e-12)


def test_no_root_converges_while_its_product_may_be_wrong():
    matrix = symmetric()
    exact = np.linalg.eigh(matrix)[1][:, :1].T
    search = PlainSearch(matrix, exact, max_iterations=1)
    search.errors[0] = 1e-3
    search.iterate()
    assert not search.converged
    assert "products with H may be wrong by 1.0e-03 Eh" in search.why()


def test_what_is_stored_inexactly_ends_with_a_product_of_what_is_stored():
    matrix = symmetric()
    search = PlainSearch(matrix, unit(0, 1), rounding=1e-8, tolerance=1e-5)
    search.iterate()
    assert search.converged and search.renewals > 0
    assert len(search.vectors) == 2
    assert search.multiplied == pytest.approx(search.vectors @ matrix, abs=1e-14)
    assert search.energies == pytest.approx(np.linalg.eigvalsh(matrix)[:2], abs=1e-9)


def test_a_search_that_is_begun_again_makes_products_anew_at_its_end():
    search = PlainSearch(symmetric(), unit(0, 1), rounding=1e-8, tolerance=1e-5)
    search.iterate()
    before = search.renewals
    search.iterate()
    assert search.converged and search.renewals > before


def test_a_search_that_stalls_is_not_begun_anew_for_ever():
    search = PlainSearch(symmetric(), unit(0), rounding=1e-4, tolerance=1e-9, max_iterations=40)
    search.iterate()
    assert not search.converged
    assert 0 < search.renewals <= 4


def test_a_search_goes_on_from_its_roots():
    matrix = symmetric()
    before = PlainSearch(matrix, unit(0, 1), max_iterations=3)
    before.iterate()
    whole = PlainSearch(matrix, unit(0, 1))
    whole.iterate()
    after = PlainSearch(matrix, before.found)
    after.iterate()
    assert not before.converged and after.converged
    assert after.iterations[0].residuals == pytest.approx(before.iterations[-1].residuals, rel=1e-6)
    assert after.energies == pytest.approx(whole.energies, abs=1e-10)


def test_only_roots_that_have_not_converged_are_corrected():
    levels = np.arange(SIZE) * 0.5
    matrix, states = of_levels(levels)
    search = PlainSearch(matrix, np.concatenate([states[:1], unit(1)]))
    search.iterate()
    assert search.converged
    assert search.products == 2 + len(search.iterations) - 1


def test_why_it_has_not_converged():
    matrix, states = of_levels(np.arange(SIZE) * 0.5)
    search = PlainSearch(matrix, np.concatenate([states[:1], unit(1)]), max_iterations=2)
    search.iterate()
    assert not search.converged
    residual = search.iterations[-1].residuals[1]
    assert search.why() == f"after 2 iterations the residual is {residual:.1e} Eh (root 2 of 2)"


def test_what_is_no_number_is_an_error():
    search = PlainSearch(symmetric(), unit(0), wrong=(1, np.nan))
    with pytest.raises(NotConverged, match="products with H after iteration 1 are no numbers"):
        search.iterate()


def test_starts_that_depend_on_each_other_are_an_error():
    with pytest.raises(ValueError, match="1 independent vectors for 2 states"):
        PlainSearch(symmetric(), unit(0, 0))


def test_a_vector_that_depends_on_states_and_little_on_others_is_no_direction():
    """A small independent part, scaled to the length of a state, would consist of rounding errors."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        matrix = np.diag(np.arange(1.0, 13.0)) + 0.3 * random.standard_normal((12, 12))
        v = np.linalg.qr(random.standard_normal((12, 7)))[0].T
        v[6] = 0.98 * v[0] + 0.17 * v[1] + 4e-5 * v[5]
        spaces = [SmallSpace(x @ x.T, x @ x.T, x @ matrix @ x.T) for x in (v, v[:6])]
        found, expected = (of_general(each, 2).energies for each in spaces)
        assert found == pytest.approx(expected, abs=1e-6)
