"""Full CI on several processes: the same energies, and the same bits in ordered mode."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "ci"))
import ci_cases
import ci_water

from outcore.base.errors import OutcoreError
from outcore.chem.ci import FCI, rounding, solver
from outcore.chem.ci.kept_products import KeptProducts
from outcore.chem.ci.lists import Lists
from outcore.chem.ci.near import Near
from outcore.job.world import World
from outcore.keep import clock


@pytest.fixture(scope="module")
def given(computed_once):
    return computed_once("water", ci_water.integrals)


def solve(
    world, given, kind, elements, *, slots=1, ordered=False, checkpoint=None, told=None, parity=1, bound=0.0
):
    hamiltonian = ci_water.hamiltonian(given)
    space = ci_water.space(hamiltonian, parity)
    options = {"tolerance": rounding.tolerance(bound, 1) if bound else 1e-7, "error_bound": bound}
    solved = solver.solve(
        world,
        space,
        hamiltonian,
        spin=0,
        ordered=ordered,
        checkpoint=checkpoint,
        on_iteration=told,
        options=solver.SearchOptions(**options),
        chosen=ci_water.small_plan(
            space,
            kind,
            elements,
            slots=slots,
            processes=4 if ordered else world.size,
            nodes=None if ordered else tuple(world.gather(world.node)),
            kept=checkpoint is not None,
            **options,
        ),
    )
    dense = solved.states.dense(0)
    world.barrier()
    solved.close()
    return solved, dense


@pytest.mark.parametrize(
    ("nodes", "kind", "elements", "slots", "parity"),
    [
        pytest.param("hosts", "global", 1900, 1, 1, marks=pytest.mark.long),
        ("hosts", "disk", 600, 2, 1),
        ("processes", "disk", 20000, 1, 0),
        ("hosts", "strips", 6 * 576, 2, 1),
        pytest.param("processes", "strips", 20 * 576, 1, 1, marks=pytest.mark.long),
        ("processes", "strips", 20 * 576, 2, 0),
        ("processes", "rows", 3000, 2, 1),
        pytest.param("processes", "rows", 20000, 1, 0, marks=pytest.mark.long),
        pytest.param("hosts", "rows", 3000, 1, 1, marks=pytest.mark.long),
    ],
)
def test_energies_are_pyscfs_on_every_process(
    comm, computed_once, given, shared_tmp_path, nodes, kind, elements, slots, parity
):
    energy = computed_once("water energy", lambda: ci_water.expected(given)[0])
    with World(comm, scratch=shared_tmp_path, memory="300MB", nodes=nodes) as world:
        solved, dense = solve(world, given, kind, elements, slots=slots, parity=parity)
        assert solved.converged
        assert solved.energies[0] == pytest.approx(energy, abs=1e-10)
        assert len(set(comm.allgather(float(solved.energies[0])))) == 1
        if parity:
            assert np.array_equal(dense, dense.T)
        assert solved.moved.read + solved.moved.added == sum(solved.plan.product_bytes[:2]) * solved.products


@pytest.mark.parametrize(
    ("kind", "elements", "kept"),
    [
        pytest.param("disk", 1250, False, marks=pytest.mark.long),
        ("strips", 20 * 576, True),
        pytest.param("global", 1250, True, marks=pytest.mark.long),
    ],
)
def test_packed_vectors_are_the_same_on_every_process(
    comm, computed_once, given, shared_tmp_path, kind, elements, kept
):
    energy, bound = computed_once("water energy", lambda: ci_water.expected(given)[0]), 1e-8
    checkpoint = shared_tmp_path / "kept" if kept else None
    with World(comm, scratch=shared_tmp_path, memory="300MB", nodes="hosts") as world:
        solved, dense = solve(world, given, kind, elements, checkpoint=checkpoint, bound=bound)
        assert solved.converged and solved.plan.packed
        assert 0 <= solved.energies[0] - energy <= solved.bounds[0].raised <= bound
        assert len(set(comm.allgather(float(solved.energies[0])))) == 1
        assert np.array_equal(dense, dense.T)
        if kept:
            again, _ = solve(world, given, "disk", 600, checkpoint=checkpoint, bound=bound)
            assert (again.products, again.energies[0]) == (0, solved.energies[0])


def test_ordered_sums_are_those_of_one_process_bit_by_bit(comm, given, shared_tmp_path):
    with World("self", scratch=shared_tmp_path, memory="300MB") as alone:
        expected, vector = solve(alone, given, "memory", 600, ordered=True)
    with World(comm, scratch=shared_tmp_path, memory="300MB") as world:
        for kind, slots in (("global", 1), ("disk", 2)):
            solved, dense = solve(world, given, kind, 600, slots=slots, ordered=True)
            assert len(solved.plan.tasks("float64")) == len(expected.plan.tasks("float64"))
            assert solved.energies[0] == expected.energies[0]
            assert np.array_equal(dense, vector)


def test_ordered_sums_in_strips_are_those_of_one_process_bit_by_bit(comm, given, shared_tmp_path):
    elements = 20 * 576
    with World("self", scratch=shared_tmp_path, memory="300MB") as alone:
        expected, vector = solve(alone, given, "strips", elements, ordered=True)
    with World(comm, scratch=shared_tmp_path, memory="300MB") as world:
        solved, dense = solve(world, given, "strips", elements, slots=2, ordered=True)
        assert len(solved.plan.tasks("float64")) == len(expected.plan.tasks("float64")) > 1
        assert solved.energies[0] == expected.energies[0]
        assert np.array_equal(dense, vector)


def test_tiles_that_are_larger_than_a_share_leave_processes_without_any(comm, shared_tmp_path):
    hamiltonian = ci_cases.random_hamiltonian(6)
    energies = []
    for of in ("self", comm):
        with World(of, scratch=shared_tmp_path, memory="300MB") as world:
            energies.append(FCI.from_hamiltonian(hamiltonian, (3, 3), comm=world, threads=1).kernel())
    assert energies[1] == pytest.approx(energies[0], abs=1e-9)


@pytest.mark.processes(2)
def test_processes_with_different_tasks_are_refused(comm, given, shared_tmp_path):
    elements = 1000 if comm.rank else 3000
    with (
        World(comm, scratch=shared_tmp_path, memory="300MB", nodes="processes") as world,
        pytest.raises(OutcoreError, match="share out a CI product"),
    ):
        solve(world, given, "rows", elements)


@pytest.mark.parametrize("lengths", [(7, 7), (9, 0), (0, 9)])
def test_a_process_takes_tasks_of_its_node_and_then_those_that_others_have_left(comm, lengths):
    with World(comm, nodes="processes") as world, Lists(world, of_nodes=True) as lists:
        wanted = [lengths[node % 2] for node in range(world.size)]
        for _ in range(2):
            lists.reset()
            taken = list(lists.tasks(wanted))
            order = [(number - world.node) % world.size for number, _ in taken]
            assert order == sorted(order)
            last = [
                max([task + 1 for number, task in taken if number == each], default=0)
                for each in range(world.size)
            ]
            assert last == lists.taken
            every = sorted(pair for of_one in comm.allgather(taken) for pair in of_one)
            assert every == [(number, task) for number, count in enumerate(wanted) for task in range(count)]


@pytest.mark.processes(2)
def test_an_error_while_copies_of_rows_come_is_that_of_all(comm, given, shared_tmp_path, monkeypatch):
    def fail(self, stopped):
        raise OSError("no rows today")

    if comm.rank == 1:
        monkeypatch.setattr(Near, "fetch", fail)
    with (
        World(comm, scratch=shared_tmp_path, memory="300MB", nodes="processes") as world,
        pytest.raises(OutcoreError, match="no rows today"),
    ):
        solve(world, given, "rows", 1000, slots=2)


def test_plans_know_nodes_and_rates_unless_sums_are_ordered(comm, given, shared_tmp_path):
    found = ci_water.hamiltonian(given)
    with World(comm, scratch=shared_tmp_path, memory="300MB", nodes="processes") as world:
        space, options = ci_water.space(found), solver.SearchOptions()
        chosen = solver.plan(world, space, options)
        assert chosen.nodes == (tuple(range(comm.size)) if comm.size > 1 else ())
        assert (chosen.rates is None) == (comm.size == 1)
        assert len(set(comm.allgather(chosen.rates))) == 1
        assert solver.plan(world, space, options, ordered=True).rates is None


def test_too_little_memory_is_refused_at_all(comm, given, shared_tmp_path):
    with World(comm, scratch=shared_tmp_path, memory="300MB") as world:
        hamiltonian = ci_water.hamiltonian(given)
        space = ci_water.space(hamiltonian)
        with pytest.raises(OutcoreError, match="need at least"):
            solver.solve(world, space, hamiltonian, memory_bytes=1 << 20)


@pytest.mark.processes(2)
def test_states_are_found_by_all(comm, given, shared_tmp_path):
    with World(comm, scratch=shared_tmp_path, memory="300MB") as world:
        kept = shared_tmp_path / "kept"
        first, _ = solve(world, given, "disk", 1250, checkpoint=kept)
        second, _ = solve(world, given, "global", 20000, checkpoint=kept)
        assert (second.products, len(second.iterations)) == (0, 1)
        assert second.kept_iteration == len(first.iterations)
        assert second.energies[0] == pytest.approx(first.energies[0], abs=1e-12)


@pytest.mark.processes(2)
@pytest.mark.parametrize(
    ("nodes", "kind", "elements"),
    [pytest.param("hosts", "disk", 600, marks=pytest.mark.long), ("processes", "rows", 1000)],
)
def test_products_are_gone_on_with_by_all(comm, given, shared_tmp_path, monkeypatch, nodes, kind, elements):
    class Stop(Exception):
        pass

    def commit(self):
        right(self)
        if self.commits.count == 3:
            raise Stop

    right, kept = KeptProducts._commit, shared_tmp_path / "kept"
    with World(comm, scratch=shared_tmp_path, memory="300MB", nodes=nodes) as world:
        with monkeypatch.context() as patched, pytest.raises(Stop):
            patched.setattr(clock, "INTERVAL_S", 0.0)
            patched.setattr(KeptProducts, "_commit", commit)
            solve(world, given, kind, elements, slots=1 + (kind == "rows"), checkpoint=kept)
        solved, _ = solve(world, given, "rows" if kind == "rows" else "global", 1250, checkpoint=kept)
        assert solved.commits.found == 1
        expected, _ = solve(world, given, "global", 20000)
        assert solved.energies[0] == pytest.approx(expected.energies[0], abs=1e-10)


@pytest.mark.processes(2)
def test_casscf_is_that_of_one_process(comm, computed_once, shared_tmp_path):
    import pyscf
    from pyscf import lib, mcscf

    from outcore.chem.ci import FCISolver
    from outcore.parallel.team import blas_of_one_thread

    def casscf(solver):
        mol = pyscf.M(
            atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="6-31g", symmetry=True, verbose=0
        )
        with lib.with_omp_threads(1), blas_of_one_thread():
            mc = mcscf.CASSCF(mol.RHF().run(conv_tol=1e-12), 6, 6)
        mc.verbose, mc.conv_tol = 0, 1e-10
        if solver is not None:
            mc.fcisolver = solver
        mc.fcisolver.conv_tol = 1e-12
        with lib.with_omp_threads(1), blas_of_one_thread():
            mc.kernel()
        return mc

    expected = computed_once("water CASSCF(6,6)", lambda: float(casscf(None).e_tot))
    with World(comm, scratch=shared_tmp_path, memory="300MB") as world:
        solver = FCISolver(comm=world, threads=1)
        mc = casscf(solver)
        assert mc.converged
        assert mc.e_tot == pytest.approx(expected, abs=1e-8)
        energies = comm.allgather(float(mc.e_cas))
        assert max(energies) - min(energies) < 1e-12
        one, two = solver.make_rdm12(mc.ci, 6, 6)
        assert one.trace() == pytest.approx(6) and np.einsum("ppqq", two) == pytest.approx(30)
        assert solver.spin_square(mc.ci, 6, 6)[0] == pytest.approx(0, abs=1e-6)
        for each in solver.make_rdm1s(mc.ci, 6, 6):
            assert abs(comm.bcast(each) - each).max() < 1e-12
        solver.close()


@pytest.mark.processes(2)
def test_states_of_several_irreps_are_those_of_one_process(comm, computed_once, shared_tmp_path):
    from outcore.cli import main as cli

    water, results, kept = (shared_tmp_path / name for name in ("water.xyz", "results.json", "kept"))
    if comm.rank == 0:
        water.write_text("3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n")
        kept.mkdir()
    comm.barrier()

    def expected():
        import pyscf

        mf = pyscf.M(atom=str(water), basis="sto-3g", symmetry=True, verbose=0).RHF().run(conv_tol=1e-12)
        found = []
        for irrep, spin, roots in (("A1", 0, 2), ("B1", 2, 1)):
            with FCI(mf, irrep=irrep, spin=spin, roots=roots, comm=None, threads=1) as ci:
                found += [float(each) for each in np.ravel(ci.kernel())]
        return sorted(found)

    wanted = computed_once("water states of two irreps", expected)
    common = ["fci", str(water), "--basis", "sto-3g", "--threads", "1", "--memory", "4GB", "--energy-only"]
    given = ["--states", "A1:0:2,B1:2:1", "--checkpoint", str(kept), "--json", str(results)]
    for _ in range(2):  # the second goes on from kept states
        assert cli.run([*common, *given]) == 0
        comm.barrier()
        assert json.loads(results.read_text())["energies_hartree"] == pytest.approx(wanted, abs=1e-8)
    assert sorted(each.name for each in kept.glob("irrep-*")) == ["irrep-0-2S-0", "irrep-2-2S-2"]
