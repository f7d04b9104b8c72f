"""The finished part of a product outlasts a run that was ended in the middle of an iteration."""

from __future__ import annotations

import errno
import json
import random
import shutil

import ci_water
import numpy as np
import pytest
from ci_products import CASES, make, min_limit, put, random_vector, reference
from conformance.full_disk import fill
from test_solver import run, solve

import outcore
from outcore import OutcoreError
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
def whole(given, tmp_path_factory):
    """A run that nothing ends."""
    return solve(given, tmp_path_factory.mktemp("whole"), vectors=2)[0]


def ended(given, place, kind, elements, commits, *, of="state", dtype="float64", **options):
    """The directory place/kept of a run that commits after each task, and is ended after this many commits in
    products of this kind and type."""
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


# ---- tasks that are left ----


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
        ({"holes": [3, 1]}, "does not have .* holes"),
        ({"holes": [0, 10**9]}, "does not have .* holes"),
        ({"tiles": [-1, 2]}, "does not have .* tiles"),
    ],
)
def test_flags_that_cannot_be_are_refused(wrong, told):
    tiling = VectorTiling(make("folded")[0], 8)
    right = Finished(tiling).as_json()
    with pytest.raises(ValueError, match=told):
        Finished.of_json(tiling, wrong if wrong is None else right | wrong)


# ---- runs that were ended ----


BEFORE_AND_AFTER = [
    (("disk", 600), ("memory", 1 << 20)),
    (("memory", 1900), ("disk", 300)),
    (("strips", 20 * 576), ("global", 1250)),
    (("global", 1250), ("strips", 20 * 576)),
]
OF = ["state", "correction"]
FEW = [(0, "state"), (1, "correction"), (2, "state")]


@pytest.mark.parametrize(
    ("before", "after", "of"),
    [
        pytest.param(*budgets, of, marks=() if (number, of) in FEW else pytest.mark.long)
        for number, budgets in enumerate(BEFORE_AND_AFTER)
        for of in OF
    ],
)
def test_another_run_goes_on_within_a_product(given, whole, before, after, of, tmp_path):
    """With any budget, it makes the remaining iterations, as if nothing had ended the first run."""
    ended(given, tmp_path, *before, 3, of=of, vectors=2)
    solved, _ = solve(given, tmp_path, *after, checkpoint=tmp_path / "kept", vectors=2)
    assert solved.commits.found == 1
    assert solved.kept_iteration + len(solved.iterations) == len(whole.iterations) + (of == "correction")
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)
    energies = [each.energies[0] for each in whole.iterations]
    np.testing.assert_allclose([each.energies[0] for each in solved.iterations], energies, atol=1e-10)
    assert not list((tmp_path / "kept").glob("products.*"))


def test_a_commit_writes_what_has_changed(given, monkeypatch, tmp_path):
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    solved, _ = solve(given, tmp_path, "disk", 600, checkpoint=tmp_path / "kept", max_iterations=2)
    commits, tiling, tasks = solved.commits, solved.tiling, solved.plan.tasks("float64")
    changed = sum(int(tiling.sizes[each.tiles(tiling)].sum()) for each in tasks)
    assert commits.count == solved.products * len(tasks)
    assert commits.written_bytes == solved.products * 8 * changed < commits.count * 8 * tiling.elements


def test_products_of_all_roots_are_gone_on_with(given, tmp_path):
    ended(given, tmp_path, "disk", 1250, 9, of="correction", roots=2)  # 7 tasks
    solved, _ = solve(given, tmp_path, checkpoint=tmp_path / "kept", roots=2)
    assert solved.commits.found == 2
    expected, _ = solve(given, tmp_path, roots=2)
    assert solved.energies == pytest.approx(expected.energies, abs=1e-10)


@pytest.mark.parametrize(("of", "dtype"), [("state", "float64"), ("correction", "float32")])
def test_mixed_precision_goes_on_within_a_product(given, whole, of, dtype, tmp_path):
    """Products of states in double precision are made where single precision ends."""
    ended(given, tmp_path, "disk", 1250, 4, of=of, dtype=dtype, precision="mixed")
    solved, _ = solve(given, tmp_path, "memory", 1900, checkpoint=tmp_path / "kept", precision="mixed")
    assert solved.commits.found == 1
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-9)


def test_commits_within_a_product_change_no_bit_of_ordered_sums(given, monkeypatch, tmp_path):
    found = []
    for interval in (20.0, 0.0):
        monkeypatch.setattr(clock, "INTERVAL_S", interval)
        for kind, elements in (("disk", 1900), ("strips", 20 * 576)):
            kept = tmp_path / f"{kind} {interval}"
            options = {"ordered": True, "max_iterations": 2}
            solved, dense = solve(given, tmp_path, kind, elements, checkpoint=kept, **options)
            assert (solved.commits.count > 0) == (interval == 0)
            found.append((solved.energies[0], dense[0]))
    for one, other in (found[::2], found[1::2]):
        assert one[0] == other[0]
        assert np.array_equal(one[1], other[1])


# ---- what is of no use, or damaged ----


def test_a_product_of_other_integrals_begins_anew(given, whole, tmp_path):
    """The integrals differ by rounding only, so the states are used."""
    ended(given, tmp_path, "disk", 1250, 3, of="correction")
    one, two, core, irreps = given
    solved, _ = solve((one * (1 + 1e-13), two, core, irreps), tmp_path, checkpoint=tmp_path / "kept")
    assert (solved.commits.found, solved.commits.anew) == (0, True)
    assert solved.kept_iteration == 1
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-9)


def test_a_product_of_other_states_begins_anew(given, whole, tmp_path):
    ended(given, tmp_path, "disk", 1250, 3, of="correction")
    shutil.move(tmp_path / "kept" / "products.float64", tmp_path / "products.float64")
    solve(given, tmp_path, checkpoint=tmp_path / "kept", max_iterations=2)
    shutil.move(tmp_path / "products.float64", tmp_path / "kept" / "products.float64")
    solved, _ = solve(given, tmp_path, checkpoint=tmp_path / "kept")
    assert solved.commits.found == 0
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)


def test_a_product_of_another_problem_is_refused_by_name(given, tmp_path):
    for name, problem in (("one", given), ("other", (given[0] * 1.001, *given[1:]))):
        (tmp_path / name).mkdir()
        ended(problem, tmp_path / name, "disk", 1250, 3)
    for name in ("one", "other"):
        shutil.move(tmp_path / name / "kept" / "products.float64", tmp_path / name)
    shutil.move(tmp_path / "other" / "products.float64", tmp_path / "one" / "kept")
    with pytest.raises(OutcoreError, match=r"another integrals.*remove this one"):
        solve(given, tmp_path, checkpoint=tmp_path / "one" / "kept")


def test_a_flipped_bit_is_found_and_the_way_out_is_named(given, whole, tmp_path):
    ended(given, tmp_path, "disk", 1250, 3)
    place = tmp_path / "kept" / "products.float64"
    largest = max((each for each in place.rglob("*") if each.is_file()), key=lambda each: each.stat().st_size)
    with largest.open("r+b") as file:
        for at in range(4096, largest.stat().st_size, 2000):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 4]))
    with pytest.raises(OutcoreError, match=f"remove {place} and run again") as raised:
        solve(given, tmp_path, checkpoint=tmp_path / "kept")
    assert raised.value.errno == errno.EIO
    others = tmp_path / "others"  # as the error holds the states that are there
    shutil.copytree(tmp_path / "kept", others, ignore=shutil.ignore_patterns(place.name))
    solved, _ = solve(given, tmp_path, checkpoint=others)
    assert solved.commits.found == 0
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)


def test_a_disk_that_fills_leaves_the_commit_before(given, whole, small_disk, tmp_path, monkeypatch):
    kept, filler = small_disk / "kept", small_disk / "filler"
    right = KeptProducts._commit

    def commit(self):
        if self.commits.count == 3:
            fill(small_disk)
        right(self)

    with monkeypatch.context() as patched, pytest.raises(OutcoreError, match="No space left on device"):
        patched.setattr(clock, "INTERVAL_S", 0.0)
        patched.setattr(KeptProducts, "_commit", commit)
        solve(given, tmp_path, "disk", 600, checkpoint=kept)
    filler.unlink()
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.commits.found == 1
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-10)


# ---- SIGKILL ----


@pytest.mark.launcher
def test_killed_runs_go_on_with_other_processes(given, whole, tmp_path):
    """Killed while tiles are copied, and after a commit: committed tiles are there."""
    ci_water.save(given, tmp_path)
    for moment, kind, processes in (("copy 20", "disk", 1), ("committed 3", "global", 2)):
        killed = run(tmp_path, kind, 600, 0, processes=processes, DIE_AT=moment)
        assert killed.returncode != 0, killed.stdout
        assert "Error" not in killed.stderr, killed.stderr
    last = run(tmp_path, "memory", 1900, 0)
    assert last.returncode == 0, last.stderr
    *_, found, _, products = last.stdout.split()
    assert products == "1"
    assert float(found) == pytest.approx(whole.energies[0], abs=1e-10)


@pytest.mark.long
@pytest.mark.launcher
@pytest.mark.parametrize(("seed", "bound"), [(1, 0.0), (2, 0.0), (3, 1e-10)], ids=["1", "2", "packed"])
def test_kills_at_random_moments_of_an_iteration_lose_no_digit(given, whole, tmp_path, seed, bound):
    """Six in a row, each with other processes and memory, after seconds of computing that are drawn: in tasks,
    commits, passes and between them. A run commits after each task. The quickest means say how long a run takes."""
    ci_water.save(given, tmp_path)
    first = run(tmp_path, "memory", 1900, 0, DIE_AFTER="0", ERROR_BOUND=str(bound))
    assert first.returncode == 0, first.stderr
    seconds = float((tmp_path / "seconds").read_text())
    shutil.rmtree(tmp_path / "kept")
    moments, killed = random.Random(seed), 0
    means = [("disk", 600, 1), ("memory", 1900, 1), ("strips", 20 * 576, 1), ("global", 1250, 2)]
    for number in range(6):
        kind, elements, processes = moments.choice(means)
        die_after = str(seconds * moments.uniform(0.1, 0.5))
        one = run(
            tmp_path, kind, elements, 0, processes=processes, DIE_AFTER=die_after, ERROR_BOUND=str(bound)
        )
        killed += one.returncode != 0
        assert "Error" not in one.stderr, (number, one.stderr)
    assert killed >= 3
    last = run(tmp_path, "memory", 1900, 0, ERROR_BOUND=str(bound))
    assert last.returncode == 0, last.stderr
    assert float(last.stdout.split()[2]) == pytest.approx(whole.energies[0], abs=1e-10)
