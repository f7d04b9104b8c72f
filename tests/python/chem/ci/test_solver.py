"""Whole calculations: the same energy whatever the budget, and states that outlast a run."""

from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
import sys
from pathlib import Path

import ci_water
import numpy as np
import pytest
from ci_products import random_integrals
from conformance.full_disk import fill

import outcore
from outcore import OutcoreError
from outcore.chem.ci import estimate, guess, passes, plan, solver
from outcore.chem.ci.sigma import least_moved
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.ci.vector import Vectors
from outcore.job.scratch import check_room

PLACE = Path(__file__).parent


def solve(given, tmp_path, kind="memory", elements=1 << 20, parity=1, spin=0, roots=1, slots=1, **more):
    hamiltonian = ci_water.hamiltonian(given)
    space = ci_water.space(hamiltonian, parity)
    kept = more.pop("checkpoint", None)
    shift, ordered = more.pop("spin_shift", 0.0), more.pop("ordered", False)
    side, told = more.pop("side", 24), more.pop("on_iteration", None)
    options = {"tolerance": 1e-7, **more}
    with outcore.World("self", scratch=tmp_path, memory="400MB") as world:
        solved = solver.solve(
            world,
            space,
            hamiltonian,
            spin=spin,
            roots=roots,
            spin_shift=shift,
            checkpoint=kept,
            ordered=ordered,
            on_iteration=told,
            options=solver.SearchOptions(**options),
            chosen=ci_water.small_plan(
                space, kind, elements, slots=slots, kept=kept is not None, roots=roots, side=side, **options
            ),
        )
        dense = [solved.states.dense(i) for i in range(roots)]
        solved.close()
    return solved, dense


BUDGETS = [
    pytest.param("disk", 300, 1, marks=pytest.mark.long),
    ("disk", 1250, 2),
    ("disk", 2500, 2),
    pytest.param("strips", 6 * 576, 1, marks=pytest.mark.long),
    ("strips", 20 * 576, 2),
    ("memory", 300, 1),
    ("memory", 1 << 20, 1),
    ("global", 1900, 2),
]


@pytest.mark.parametrize(("kind", "elements", "slots"), BUDGETS)
def test_every_budget_gives_the_energy_of_pyscf(given, energy, tmp_path, kind, elements, slots):
    solved, dense = solve(given, tmp_path, kind, elements, slots=slots, threads=2)
    assert solved.converged
    assert solved.energies[0] == pytest.approx(energy, abs=1e-10)
    assert np.array_equal(dense[0], dense[0].T)
    assert np.linalg.norm(dense[0]) == pytest.approx(1, abs=1e-6)
    predicted = sum(solved.plan.product_bytes[:2]) * solved.products
    assert solved.moved.read + solved.moved.added == predicted
    assert (
        solved.moved.least
        == solved.products * least_moved(solved.plan.tiling, solved.plan.work_type)
        <= predicted
    )


def test_a_task_for_each_hole_fits_the_least_budget(given, tmp_path):
    hamiltonian = ci_water.hamiltonian(given)
    space = ci_water.space(hamiltonian)
    counts = [
        len(ci_water.small_plan(space, "disk", elements).tasks("float64"))
        for elements in (300, 1900, 1 << 20)
    ]
    assert counts[0] > counts[1] > counts[2] == 1


@pytest.mark.parametrize("parity", [1, pytest.param(0, marks=pytest.mark.long)])
def test_roots_and_spins(given, tmp_path, parity):
    expected = ci_water.expected(given, 3)
    solved, _ = solve(given, tmp_path, parity=parity, roots=3, spin_shift=0.0 if parity else 0.2, spin=0)
    assert solved.converged
    assert solved.energies == pytest.approx(expected, abs=1e-9)
    triplets, dense = solve(given, tmp_path, parity=-1, roots=2, spin=2)
    assert triplets.energies == pytest.approx(ci_water.expected(given, 2, spin=2), abs=1e-9)
    assert np.array_equal(dense[1], -dense[1].T)


def test_mixed_precision_gives_the_energy(given, energy, tmp_path):
    for kind, elements in (("disk", 1900), ("strips", 20 * 1152)):
        solved, _ = solve(given, tmp_path, kind, elements, precision="mixed", side=48)
        assert solved.converged
        assert solved.energies[0] == pytest.approx(energy, abs=1e-10)
    assert solved.iterations[0].precision == "float32"


def test_the_switch_to_double_precision_costs_no_iteration(given, tmp_path):
    for vectors in (2, 3, 5):
        double, mixed = (
            solve(given, tmp_path, vectors=vectors, precision=each)[0] for each in ("double", "mixed")
        )
        assert {each.precision for each in mixed.iterations} == {"float32", "float64"}
        assert len(mixed.iterations) <= len(double.iterations)
        assert mixed.products == len(mixed.iterations) + 1  # H times the state, anew
        # Recomputed products differ by rounding from those that met the tolerance of 1e-7.
        assert mixed.bounds[0].weinstein < 1.1e-7


def test_ordered_sums_repeat_bit_by_bit(given, tmp_path):
    runs = [
        solve(given, tmp_path, kind, 1900, slots=slots, threads=threads, ordered=True)
        for kind, slots, threads in (("memory", 1, 1), ("disk", 2, 3), ("global", 1, 2))
    ]
    for solved, dense in runs[1:]:
        assert solved.energies[0] == runs[0][0].energies[0]
        assert np.array_equal(dense[0], runs[0][1][0])


def test_bounds_hold(given, energy, tmp_path):
    loose, _ = solve(given, tmp_path, roots=2, tolerance=1e-3)
    bound = loose.bounds[0]
    assert energy <= bound.energy <= energy + bound.weinstein
    assert bound.temple is not None
    assert bound.temple <= energy
    assert abs(bound.extrapolated - energy) < bound.energy - energy
    assert 0 < bound.stored < 1e-20
    assert loose.bounds[1].temple is None


def test_too_little_memory_says_how_much_is_enough(given):
    space = ci_water.space(ci_water.hamiltonian(given))
    options = solver.SearchOptions()
    with pytest.raises(OutcoreError, match=r"need at least .* more in each of 2 processes") as raised:
        plan.make_plan(space, VectorTiling(space), options, 1000, processes=2)
    enough = float(str(raised.value).split("at least ")[1].split()[0]) * 1e6 + 1e6
    least = plan.make_plan(space, VectorTiling(space), options, int(enough), processes=2)
    assert least.memory_bytes <= enough
    assert least.tasks("float64")
    assert plan.make_plan(space, VectorTiling(space), options, 1 << 30).kind == "memory"
    assert plan.make_plan(space, VectorTiling(space), options, 1 << 30, processes=2).kind == "global"


def test_an_estimate_says_what_is_needed(given, tmp_path):
    hamiltonian = ci_water.hamiltonian(given)
    space = ci_water.space(hamiltonian)
    with outcore.World("self", scratch=tmp_path, memory="400MB") as world:
        found = estimate.forecast(world, space, hamiltonian, options=solver.SearchOptions())
    assert found.as_json()["determinants"] == space.determinants == sum(found.as_json()["blocks"])
    assert str(space.determinants) in str(found)
    assert found.flops > 0
    assert found.seconds > 0
    assert found.disk_bytes == 0


@pytest.mark.parametrize("elements", [300, 2500])
def test_an_estimate_counts_over_the_least_what_a_run_counts(given, tmp_path, elements):
    solved, _ = solve(given, tmp_path, "disk", elements, max_iterations=2)
    found = estimate.Forecast(solved.plan, ("A1", "A2", "B1", "B2"), 0, 0, 0, 0, 0.0, 0.0, True)
    moved = solved.moved
    assert found.over_bound == pytest.approx((moved.read + moved.added) / moved.least)


@pytest.mark.parametrize("roots", [1, 2])
def test_an_iteration_moves_beside_products_what_its_plan_says(given, tmp_path, monkeypatch, roots):
    """Where the small space is full: the pass of corrections, and the product of corrections with H times them."""
    passing: list[bool] = []
    moved = [[0, 0]]

    def marked(function):
        def work(*given, **more):
            passing.append(True)
            found = function(*given, **more)
            passing.pop()
            return found

        return work

    def counted(function, of):
        def work(self, index, tile, *given):
            if passing:
                moved[-1][of] += tile.size * self.dtype.itemsize
            return function(self, index, tile, *given)

        return work

    for name in ("correct", "dots"):
        monkeypatch.setattr(passes, name, marked(getattr(passes, name)))
    for of, name in enumerate(("get_async", "put_async")):
        monkeypatch.setattr(Vectors, name, counted(getattr(Vectors, name), of))
    solved, _ = solve(
        given, tmp_path, "disk", 2500, roots=roots, on_iteration=lambda *_: moved.append([0, 0])
    )
    assert tuple(moved[4]) == solved.plan.pass_bytes


def test_an_iteration_is_told_over_the_least_by_its_formulas(given, tmp_path):
    solved, _ = solve(given, tmp_path, "disk", 300, max_iterations=2)
    found = estimate.Forecast(solved.plan, ("A1", "A2", "B1", "B2"), 0, 0, 0, 0, 0.0, 0.0, True)
    vector = 8 * solved.plan.tiling.elements
    assert solved.plan.least_iteration_bytes == 13 * vector
    assert found.iteration_over_bound == pytest.approx((2 * found.over_bound + 8 + 5) / 13)
    assert f"{found.iteration_over_bound:.2f} times the least by its formulas" in str(found)
    assert f"with passes {found.iteration_over_bound:.2f} times" in found.against(solved, 1.0)
    in_memory, _ = solve(given, tmp_path, max_iterations=2)
    assert estimate.Forecast(in_memory.plan, (), 0, 0, 0, 0, 0.0, 0.0, True).iteration_over_bound is None


def test_a_disk_that_is_too_small_is_refused_before_the_start(tmp_path):
    with outcore.World("self", scratch=tmp_path) as world:
        check_room(world, "full CI", [(tmp_path, 1000), (tmp_path / "new", 1000)])
        with pytest.raises(OutcoreError, match=r"arrays take 4000000 TB, there are") as raised:
            check_room(world, "full CI", [(tmp_path, 2 * 10**18), (tmp_path / "new", 2 * 10**18)])
        assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("electrons", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (6, 5), (6, 6)])
def test_few_and_many_electrons(electrons, tmp_path):
    irreps = [0, 0, 0, 1, 1, 1]
    one, two = random_integrals(irreps)
    given = (one, two, 1.0, np.array(irreps))
    hamiltonian = dataclasses.replace(ci_water.hamiltonian(given), groups=2, names=("A'", 'A"'), group="Cs")
    space = Space(hamiltonian, *electrons)
    with outcore.World("self", scratch=tmp_path, memory="200MB") as world:
        solved = solver.solve(world, space, hamiltonian)
        solved.close()
    assert solved.converged
    found = guess.start(hamiltonian, space.alpha, space.beta, 0, size=1000)
    assert len(found.alpha) == space.determinants
    assert solved.energies[0] == pytest.approx(found.energies[0], abs=1e-9)


# ---- states that outlast a run ----


def run(directory, kind, elements, die, processes=1, **environment):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    program = [sys.executable, str(PLACE / "ci_run.py"), str(directory), kind, str(elements), str(die)]
    start = [str(mpiexec), "-n", str(processes)] if processes > 1 else []
    return subprocess.run(
        [*start, *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
    )


@pytest.fixture
def saved(given, tmp_path):
    return ci_water.save(given, tmp_path)


@pytest.mark.parametrize("precision", ["double", pytest.param("mixed", marks=pytest.mark.long)])
def test_a_killed_run_goes_on_with_other_processes_and_budgets(saved, energy, precision):
    first = run(saved, "disk", 600, 5, PRECISION=precision)
    assert first.returncode == -9, first.stderr
    second = run(saved, "global", 1900, 3, processes=2, PRECISION=precision)
    assert second.returncode != 0
    third = run(saved, "memory", 1 << 20, 0, PRECISION=precision)
    assert third.returncode == 0, third.stderr
    before, _, found, *_ = third.stdout.split()
    assert int(before) == 5 + 3  # iterations of both runs, none of which is lost
    assert float(found) == pytest.approx(energy, abs=1e-10)
    again = run(saved, "disk", 1250, 0, processes=2, PRECISION=precision)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split()[1] == "1"
    assert again.stdout.split()[3] == "0"


def test_states_of_another_problem_are_refused_by_name(given, tmp_path):
    kept = tmp_path / "kept"
    solve(given, tmp_path, checkpoint=kept, tolerance=1e-3)
    one, two, energy, irreps = given
    with pytest.raises(OutcoreError, match="roots = 1, now it is 2"):
        solve(given, tmp_path, checkpoint=kept, roots=2)
    with pytest.raises(OutcoreError, match="another integrals"):
        solve((one * 1.001, two, energy, irreps), tmp_path, checkpoint=kept)
    with pytest.raises(OutcoreError, match="parity = 1, now it is -1"):
        solve(given, tmp_path, checkpoint=kept, parity=-1, spin=2)


def test_states_of_another_spin_are_refused_where_all_spins_are_in_one_vector(given, tmp_path):
    kept = tmp_path / "kept"
    solve(given, tmp_path, checkpoint=kept, tolerance=1e-3, parity=0, spin=0, spin_shift=0.1)
    with pytest.raises(OutcoreError, match="spin = 0, now it is 2"):
        solve(given, tmp_path, checkpoint=kept, parity=0, spin=2, spin_shift=0.1)


def test_double_precision_goes_on_from_single(given, energy, tmp_path):
    kept = tmp_path / "kept"
    first, _ = solve(given, tmp_path, checkpoint=kept, precision="mixed", max_iterations=3)
    assert first.iterations[-1].precision == "float32"
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.kept_iteration == 3
    assert {each.precision for each in solved.iterations} == {"float64"}
    assert solved.energies[0] == pytest.approx(energy, abs=1e-10)
    assert [each.name for each in kept.glob("states.*")] == ["states.float64"]


def test_integrals_that_differ_by_rounding_are_multiplied_anew(given, energy, tmp_path):
    kept = tmp_path / "kept"
    solve(given, tmp_path, checkpoint=kept, tolerance=1e-3)
    one, two, core, irreps = given
    solved, _ = solve((one * (1 + 1e-13), two, core, irreps), tmp_path, checkpoint=kept)
    assert solved.kept_iteration > 2
    assert solved.energies[0] == pytest.approx(energy, abs=1e-9)
    assert solved.products > len(solved.iterations) - 1


def test_a_flipped_bit_is_found(given, tmp_path):
    kept = tmp_path / "kept"
    solve(given, tmp_path, checkpoint=kept, tolerance=1e-3)
    largest = max((each for each in kept.rglob("*") if each.is_file()), key=lambda each: each.stat().st_size)
    with largest.open("r+b") as file:
        for at in range(4096, largest.stat().st_size, 20000):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 4]))
    with pytest.raises(OutcoreError) as raised:
        solve(given, tmp_path, checkpoint=kept)
    assert raised.value.errno == errno.EIO


def test_a_disk_that_fills_leaves_the_states_before(given, energy, small_disk, tmp_path):
    kept, filler = small_disk / "kept", small_disk / "filler"

    def at(iteration, states):
        fill(small_disk)

    with pytest.raises(OutcoreError, match=f"{kept}.*No space left on device"):
        solve(given, tmp_path, checkpoint=kept, on_iteration=at)
    filler.unlink()
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.kept_iteration == 1
    assert solved.energies[0] == pytest.approx(energy, abs=1e-10)


def test_scratch_that_fills_leaves_the_states_before(given, energy, small_disk, tmp_path):
    kept, filler = tmp_path / "kept", small_disk / "filler"

    def at(iteration, states):
        if iteration.number == 2:
            fill(small_disk)

    with pytest.raises(OutcoreError, match=f"{small_disk}.*No space left on device"):
        solve(given, small_disk, "disk", 2500, checkpoint=kept, vectors=8, on_iteration=at)
    filler.unlink()
    solved, _ = solve(given, small_disk, "disk", 2500, checkpoint=kept, vectors=8)
    assert solved.kept_iteration >= 2
    assert solved.energies[0] == pytest.approx(energy, abs=1e-10)


def test_states_need_no_room_twice(given, small_disk, tmp_path, monkeypatch):
    kept, filler = small_disk / "kept", small_disk / "filler"
    first, _ = solve(given, tmp_path, checkpoint=kept, max_iterations=3)
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    filler.write_bytes(b"x" * (free - first.plan.kept_bytes // 2))
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.converged
    with pytest.raises(OutcoreError, match="arrays take"):
        solve(given, tmp_path, checkpoint=small_disk / "other")


def test_what_is_kept_is_the_newest_iteration(given, tmp_path):
    kept, seen = tmp_path / "kept", []

    class Stop(Exception):
        pass

    def told(iteration, states):
        seen.append(iteration)
        if iteration.number == 4:
            raise Stop

    with pytest.raises(Stop):
        solve(given, tmp_path, checkpoint=kept, on_iteration=told)
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.kept_iteration == 4
    assert solved.iterations[0].energies == pytest.approx(seen[-1].energies, abs=1e-11)
    assert dataclasses.is_dataclass(solved.iterations[0])
