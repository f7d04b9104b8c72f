"""What is finished of a product outlasts a run, which was ended in the middle of an iteration."""

from __future__ import annotations

import json

import ci_water
import numpy as np
import pytest
from test_sigma import CASES, make, min_limit, put, random_vector, reference
from test_solver import solve

import outcore
from outcore.chem.ci import groups, vector
from outcore.chem.ci.finished import Finished
from outcore.chem.ci.kept_products import KeptProducts
from outcore.chem.ci.passes import Place
from outcore.chem.ci.sigma import Sigma
from outcore.chem.ci.tiles import VectorTiling
from outcore.keep import clock


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def given():
    return ci_water.integrals()


@pytest.fixture(scope="module")
def whole(given, tmp_path_factory):
    """A run that nothing ends."""
    return solve(given, tmp_path_factory.mktemp("whole"), vectors=2)[0]


def ended(given, place, kind, elements, commits, *, of="state", dtype="float64", **options):
    """What a run leaves in place/kept that commits after each task, and is ended after so many commits in products
    of this kind and type."""
    right, left = KeptProducts._commit, commits

    def commit(self):
        nonlocal left
        newest = list(self._changed)[-1]
        right(self)
        if (newest.of, self._changed[newest].y.vectors.dtype.name) == (of, dtype):
            left -= 1
            if left == 0:
                raise Stop

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stop):
        patched.setattr(clock, "INTERVAL_S", 0.0)
        patched.setattr(KeptProducts, "_commit", commit)
        solve(given, place, kind, elements, checkpoint=place / "kept", **options)


# ---- tasks of what is left ----


@pytest.mark.parametrize("name", CASES)
def test_tasks_of_any_size_go_on_with_what_others_have_finished(name, tmp_path):
    space, one, two, kernel = make(name)
    dense = random_vector(space)
    expected = reference(space, one, two, dense)
    tiling, least = VectorTiling(space, 8), min_limit(space)
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        for first, then in ((least, 3 * least), (4 * least, least)):
            done = groups.make_tasks(space, first)[1::2]
            finished = Finished(tiling)
            for task in done:
                finished.add(task)
            finished = Finished.of_json(tiling, json.loads(json.dumps(finished.as_json())))
            left = groups.make_tasks(space, then, finished=finished)
            with vector.make(world, tiling, "memory", count=2) as vectors:
                put(vectors, dense)
                for tasks in filter(None, (done, left)):
                    sigma = Sigma(world, kernel, tiling, lambda _, some=tasks: some)
                    sigma.apply(Place(vectors, 0), Place(vectors, 1))
                    if tasks is done:  # there is nothing elsewhere
                        nonzero = [t.number for t in vectors.tiles() if vectors.get(1, t).any()]
                        assert finished.tiles[nonzero].all()
                found = vectors.dense(1)
            assert abs(found - expected).max() < 1e-11 * abs(expected).max()
            for task in left:
                finished.add(task)
            assert groups.make_tasks(space, least, finished=finished) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (None, "which holes"),
        ({"holes": [0]}, "which holes"),
        ({"holes": [0, 1.5]}, "which holes"),
        ({"holes": [3, 1]}, "others than .* holes"),
        ({"holes": [0, 10**9]}, "others than .* holes"),
        ({"tiles": [-1, 2]}, "others than .* tiles"),
    ],
)
def test_flags_that_cannot_be_are_refused(wrong, told):
    tiling = VectorTiling(make("folded")[0], 8)
    right = Finished(tiling).as_json()
    with pytest.raises(ValueError, match=told):
        Finished.of_json(tiling, wrong if wrong is None else right | wrong)


# ---- runs that were ended ----


@pytest.mark.parametrize("of", ["state", "correction"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("disk", 600), ("memory", 1 << 20)),
        (("memory", 1900), ("disk", 300)),
        (("strips", 20 * 576), ("global", 1250)),
        (("global", 1250), ("strips", 20 * 576)),
    ],
)
def test_another_run_goes_on_within_a_product(given, whole, before, after, of, tmp_path):
    """With any budget: it makes the iterations that were left, as if nothing had ended it."""
    ended(given, tmp_path, *before, 3, of=of, vectors=2)
    solved, _ = solve(given, tmp_path, *after, checkpoint=tmp_path / "kept", vectors=2)
    assert solved.commits.found == 1
    assert solved.kept_iteration + len(solved.iterations) == len(whole.iterations) + (of == "correction")
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)
    energies = [each.energies[0] for each in whole.iterations]
    np.testing.assert_allclose([each.energies[0] for each in solved.iterations], energies, atol=1e-10)
    assert not list((tmp_path / "kept").glob("products.*"))


def test_products_of_all_roots_are_gone_on_with(given, tmp_path):
    ended(given, tmp_path, "disk", 1250, 9, of="correction", roots=2)  # 7 tasks
    solved, _ = solve(given, tmp_path, checkpoint=tmp_path / "kept", roots=2)
    assert solved.commits.found == 2
    assert solved.energies == pytest.approx(ci_water.expected(given, 2), abs=1e-9)


@pytest.mark.parametrize(("of", "dtype", "found"), [("state", "float64", 1), ("correction", "float32", 1)])
def test_mixed_precision_goes_on_within_a_product(given, whole, of, dtype, found, tmp_path):
    ended(given, tmp_path, "disk", 1250, 4, of=of, dtype=dtype, precision="mixed")
    solved, _ = solve(given, tmp_path, "memory", 1900, checkpoint=tmp_path / "kept", precision="mixed")
    assert solved.commits.found == found
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)
