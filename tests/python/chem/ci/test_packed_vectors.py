"""Full CI with packed vectors: energies within the bound, disk, restart, and what is refused."""

from __future__ import annotations

import errno
import os

import ci_water
import numpy as np
import pytest
from ci_dense import orbitals
from conformance.full_disk import fill
from test_kept_products import Stop, ended
from test_solver import solve as solve_any

import outcore
from outcore import OutcoreError
from outcore.chem.ci import FCI, FCISolver, plan, rounding
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.job.scratch import allocated_bytes

BOUND = 1e-8


def solve(given, place, kind="disk", elements=2500, bound=BOUND, roots=1, **more):
    packed = {"error_bound": bound, "tolerance": rounding.tolerance(bound, roots)}
    return solve_any(given, place, kind, elements, roots=roots, **{**packed, **more})


@pytest.mark.parametrize("bound", [1e-5, pytest.param(1e-8, marks=pytest.mark.long), 1e-11])
@pytest.mark.parametrize(
    ("kind", "elements", "slots"),
    [pytest.param("disk", 300, 1, marks=pytest.mark.long), ("disk", 2500, 2), ("strips", 20 * 576, 2)],
)
def test_energies_are_within_the_bound_for_every_budget(
    given, energy, tmp_path, kind, elements, slots, bound
):
    solved, dense = solve(given, tmp_path, kind, elements, bound, slots=slots, threads=2)
    assert solved.converged and solved.plan.packed
    assert -1e-12 <= solved.energies[0] - energy <= solved.bounds[0].raised <= bound
    assert solved.bounds[0].weinstein >= solved.energies[0] - energy
    assert np.array_equal(dense[0], dense[0].T)
    assert np.linalg.norm(dense[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("spin", "parity"), [pytest.param(0, 1, marks=pytest.mark.long), (0, 0), (2, -1)])
def test_roots_and_spins(given, tmp_path, spin, parity):
    shift = 0.2 if parity == 0 else 0.0
    solved, _ = solve(given, tmp_path, roots=2, spin=spin, parity=parity, spin_shift=shift)
    assert solved.converged
    above = solved.energies - ci_water.expected(given, 2, spin=spin)
    assert above.max() <= BOUND and above.min() >= -1e-10
    assert solved.bounds[0].temple <= ci_water.expected(given, 1, spin=spin)[0]


def test_vectors_in_memory_are_as_they_are(given, energy, tmp_path):
    solved, _ = solve(given, tmp_path, "memory", 1 << 20)
    assert not solved.plan.packed and solved.converged
    assert 0 < solved.energies[0] - energy <= solved.bounds[0].raised <= BOUND


def test_the_budget_decides_what_is_packed_and_where_products_are():
    space = Space(orbitals([0] * 16), 5, 5, 0, 1)
    tiling, options, found, free = VectorTiling(space), SearchOptions(error_bound=BOUND), [], 4 << 30
    while True:
        try:
            chosen = plan.make_plan(space, tiling, options, free)
        except OutcoreError as error:
            assert error.errno == errno.ENOMEM
            break
        assert chosen.memory_bytes <= free
        found.append((chosen.kind, chosen.packed, chosen.scratch_bytes > 0))
        free = free * 19 // 20
    assert list(dict.fromkeys(found)) == [
        ("memory", False, False),
        ("memory", True, True),
        ("disk", True, True),
    ]
    least = plan.least_bytes(space, tiling, options, roots=1, processes=1, states_on_disk=False)
    assert free < least <= free * 20 // 19 + 1
    kept = plan.make_plan(space, tiling, options, 4 << 30, states_on_disk=True)
    assert kept.packed and kept.kind == "memory"


def test_packed_vectors_take_less_disk_than_the_plan_says_and_than_plain_ones(given, tmp_path):
    taken = {}
    for name, run in (("plain", solve_any), ("packed", solve)):
        place = tmp_path / name
        place.mkdir()
        (place / "kept").mkdir()
        solved, _ = run(given, place, "disk", 2500, checkpoint=place / "kept", side=128)
        taken[name] = allocated_bytes([place / "kept" / "states.float64"])
        assert taken[name] <= solved.plan.kept_bytes
    assert taken["packed"] < 0.4 * 3 * taken["plain"]  # of three pairs of vectors, one of which is plain


FROM_DISK = ("disk", 600), ("memory", 1 << 20)
TO_STRIPS = ("memory", 1900), ("strips", 20 * 576)


@pytest.mark.parametrize(
    ("before", "after", "of"),
    [
        (*FROM_DISK, "state"),
        pytest.param(*TO_STRIPS, "correction", marks=pytest.mark.long),
        pytest.param(*FROM_DISK, "correction", marks=pytest.mark.long),
        pytest.param(*TO_STRIPS, "state", marks=pytest.mark.long),
    ],
)
def test_another_run_goes_on_within_a_product(given, energy, before, after, of, tmp_path):
    """With any budget, it makes the remaining iterations, as if nothing had ended the first run."""
    (tmp_path / "whole").mkdir()
    whole, _ = solve(given, tmp_path, *after, checkpoint=tmp_path / "whole")
    packed = {"error_bound": BOUND, "tolerance": rounding.tolerance(BOUND, 1)}
    ended(given, tmp_path, *before, 3, of=of, **packed)
    solved, _ = solve(given, tmp_path, *after, checkpoint=tmp_path / "kept")
    assert solved.commits.found == 1 and solved.plan.packed
    assert solved.kept_iteration + len(solved.iterations) == len(whole.iterations) + (of == "correction")
    energies = [each.energies[0] for each in whole.iterations][-len(solved.iterations) :]
    np.testing.assert_allclose([each.energies[0] for each in solved.iterations], energies, atol=1e-10)
    assert 0 <= solved.energies[0] - energy <= BOUND


def test_a_run_goes_on_from_each_iteration(given, energy, tmp_path):
    kept, runs = tmp_path / "kept", 0
    kept.mkdir()

    def told(iteration, basis):
        if iteration.number == 2:
            raise Stop

    while True:
        runs += 1
        try:
            solved, _ = solve(given, tmp_path, checkpoint=kept, on_iteration=told)
        except Stop:
            continue
        break
    whole, _ = solve(given, tmp_path)
    assert runs == len(whole.iterations)
    assert solved.energies[0] == pytest.approx(whole.energies[0], abs=1e-11)
    again, _ = solve(given, tmp_path, checkpoint=kept)
    assert again.products == 0 and again.energies[0] == solved.energies[0]


@pytest.mark.parametrize(("iterations", "vectors"), [(2, 3), pytest.param(3, 5, marks=pytest.mark.long)])
def test_a_run_goes_on_from_one_that_ended_at_its_last_iteration(
    given, energy, tmp_path, iterations, vectors
):
    """The states that such a run returns are not vectors of the small space in its checkpoint."""
    kept = tmp_path / "kept"
    kept.mkdir()
    whole, _ = solve(given, tmp_path, vectors=vectors)
    first, _ = solve(given, tmp_path, checkpoint=kept, vectors=vectors, max_iterations=iterations)
    assert not first.converged
    solved, _ = solve(given, tmp_path, checkpoint=kept, vectors=vectors)
    assert solved.converged and solved.kept_iteration == iterations
    assert iterations + len(solved.iterations) == len(whole.iterations) + 1  # the first one is told again
    energies = [each.energies[0] for each in whole.iterations][-len(solved.iterations) :]
    np.testing.assert_allclose([each.energies[0] for each in solved.iterations], energies, atol=1e-10)
    assert 0 <= solved.energies[0] - energy <= BOUND


def test_integrals_that_differ_by_rounding_are_multiplied_anew(given, energy, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    solve(given, tmp_path, checkpoint=kept, max_iterations=4)
    one, two, core, irreps = given
    solved, _ = solve((one * (1 + 1e-13), two, core, irreps), tmp_path, checkpoint=kept)
    assert solved.kept_iteration == 4 and solved.converged
    assert abs(solved.energies[0] - energy) <= BOUND


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"bound": 1e-7}, "error bound = 1e-08, now it is 1e-07"),
        ({"vectors": 4}, "vectors = 3, now it is 4"),
        ({"error_bound": 0.0}, "they were kept with 'error bound'"),
        ({"roots": 2}, "roots = 1, now it is 2"),
    ],
)
def test_vectors_of_other_settings_are_refused_by_name(given, tmp_path, changed, told):
    kept = tmp_path / "kept"
    kept.mkdir()
    solve(given, tmp_path, checkpoint=kept, max_iterations=2)
    with pytest.raises(OutcoreError, match=told):
        solve(given, tmp_path, checkpoint=kept, **changed)


def test_plain_vectors_are_refused_by_a_packed_search(given, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    solve_any(given, tmp_path, checkpoint=kept, max_iterations=2)
    with pytest.raises(OutcoreError, match="they were kept without 'error bound'"):
        solve(given, tmp_path, checkpoint=kept)


def test_a_flipped_bit_is_found(given, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    solve(given, tmp_path, checkpoint=kept, max_iterations=3)
    largest = max(
        (each for each in kept.rglob("*") if each.is_file()), key=lambda each: each.stat().st_blocks
    )
    with largest.open("r+b") as file:
        at = 0
        while (at := os.lseek(file.fileno(), at, os.SEEK_DATA) if at < largest.stat().st_size else -1) >= 0:
            file.seek(at + 100)
            byte = file.read(1)
            file.seek(at + 100)
            file.write(bytes([byte[0] ^ 4]))
            file.flush()
            at += 4096
            try:
                os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
    with pytest.raises(OutcoreError) as raised:
        solve(given, tmp_path, checkpoint=kept)
    assert raised.value.errno == errno.EIO


def test_a_disk_that_fills_leaves_the_small_space_before(given, energy, small_disk, tmp_path):
    kept, filler = small_disk / "kept", small_disk / "filler"
    kept.mkdir()

    def at(iteration, basis):
        if iteration.number == 2:
            fill(small_disk)

    with pytest.raises(OutcoreError, match=f"{kept}.*No space left on device"):
        solve(given, tmp_path, checkpoint=kept, on_iteration=at)
    filler.unlink()
    solved, _ = solve(given, tmp_path, checkpoint=kept)
    assert solved.kept_iteration == 2
    assert 0 <= solved.energies[0] - energy <= BOUND


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"error_bound": -1.0}, "an error bound of -1"),
        ({"error_bound": 1e-20}, "an error bound of 1e-20"),
        ({"error_bound": 0.1}, "an error bound of 0.1"),
        ({"error_bound": 1e-8, "residual": 1e-5}, "a residual beside an error bound"),
        ({"error_bound": 1e-8, "precision": "mixed"}, "mixed precision with an error bound"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, told, given):
    with pytest.raises(OutcoreError, match=told):
        FCI.from_hamiltonian(ci_water.hamiltonian(given), (4, 4), **settings)


def test_a_solver_of_casscf_has_no_error_bound():
    with pytest.raises(OutcoreError, match="which conv_tol does here"):
        FCISolver(error_bound=1e-8)


# ---- many systems ----

HYDROGENS = "; ".join(f"H 0 0 {1.4 * i}" for i in range(6))
RING = "; ".join(f"H {1.2 * np.cos(angle)} {1.2 * np.sin(angle)} 0" for angle in np.arange(6) * np.pi / 3)
# name: geometry, basis, charge, 2S, roots, irrep, frozen orbitals
SYSTEMS = {
    "water": ("O 0 0 0; H 0 .757 .587; H 0 -.757 .587", "6-31g", 0, 0, 1, None, 1),
    "water, three roots": ("O 0 0 0; H 0 .757 .587; H 0 -.757 .587", "sto-3g", 0, 0, 3, None, 0),
    "water, triplets": ("O 0 0 0; H 0 .757 .587; H 0 -.757 .587", "sto-3g", 0, 2, 3, "B1", 0),
    "stretched nitrogen": ("N 0 0 0; N 0 0 2.1", "sto-3g", 0, 0, 3, None, 2),
    "nitrogen, a degenerate pair in one group": ("N 0 0 0; N 0 0 1.1", "sto-3g", 0, 0, 5, "C1", 2),
    "carbon, two states that cross": ("C 0 0 0; C 0 0 1.6", "sto-3g", 0, 0, 4, None, 2),
    "oxygen": ("O 0 0 0; O 0 0 1.2", "sto-3g", 0, 2, 2, None, 2),
    "beryllium dimer": ("Be 0 0 0; Be 0 0 2.45", "6-31g", 0, 0, 2, None, 2),
    "hydrogen chain": (HYDROGENS, "6-31g", 0, 0, 2, None, 0),
    "hydrogen ring": (RING, "sto-3g", 0, 0, 6, "C1", 0),
    "hydrogen ring, ion": (RING, "sto-3g", 1, 1, 4, "C1", 0),
    "lithium hydride, far apart": ("Li 0 0 0; H 0 0 6", "6-31g", 0, 0, 3, None, 0),
    "boron": ("B 0 0 0", "6-31g", 0, 1, 3, "C1", 0),
    "amidogen": ("N 0 0 0; H 0 .8 .6; H 0 -.8 .6", "6-31g", 0, 1, 2, None, 1),
    "helium ion": ("He 0 0 0; He 0 0 1.08", "cc-pvdz", 1, 1, 2, None, 0),
}
FEW = ("water, three roots", "water, triplets", "nitrogen, a degenerate pair in one group", "oxygen", "boron")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FEW else pytest.mark.long) for each in SYSTEMS]
)
def test_energies_of_many_systems_are_within_the_bound_of_plain_ones(name, tmp_path):
    from pyscf import gto, scf

    atom, basis, charge, spin, roots, irrep, frozen = SYSTEMS[name]
    mol = gto.M(atom=atom, basis=basis, charge=charge, spin=spin, symmetry=irrep != "C1", verbose=0)
    mf = (scf.ROHF if spin else scf.RHF)(mol).run(conv_tol=1e-11)
    given = {"frozen": frozen, "irrep": None if irrep == "C1" else irrep, "roots": roots, "max_cycle": 300}
    with outcore.World("self", scratch=tmp_path, memory="1GB") as world:
        with FCI(mf, comm=world, residual=1e-8, **given) as ci:
            plain = np.atleast_1d(ci.kernel())
            assert ci.converged
        for bound in (1e-6, 1e-9):
            kept = tmp_path / f"{bound}"
            kept.mkdir()
            with FCI(mf, comm=world, error_bound=bound, checkpoint=kept, **given) as ci:
                above = np.atleast_1d(ci.kernel()) - plain
                assert ci.converged and ci.solved.plan.packed
                assert above.min() >= -1e-11
                assert above.max() <= ci.solved.bounds[0].raised <= bound
