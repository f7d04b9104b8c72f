"""Hartree-Fock on several processes."""

from __future__ import annotations

import errno
import os
import subprocess
from functools import cache

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem import stability
from outcore.chem.hf import accuracy, scf
from outcore.chem.hf import integrals as integrals_module
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.settings import Settings
from outcore.job.world import World, shared
from outcore.parallel.tasks import run_tasks

pytest.importorskip("pyscf")
from pyscf import gto, mp
from pyscf import scf as reference

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"


def molecule(**given) -> gto.Mole:
    return gto.M(verbose=0, **given)


MOLECULES = {
    "large shells": ("RHF", {"atom": "H 0 0 0; F 0 0 0.917", "basis": {"H": "cc-pvdz", "F": "cc-pvqz"}}),
    "cartesian": ("RHF", {"atom": WATER, "basis": "6-31g*", "cart": True}),
    "open shell": ("UHF", {"atom": "O 0 0 0; O 0 0 1.2", "basis": "6-31g*", "spin": 2}),
}
FEW = [("large shells", "disk"), ("cartesian", "direct"), ("cartesian", "auto"), ("open shell", "mixed")]


@pytest.mark.usefixtures("short_surveys")
@pytest.mark.parametrize(
    ("name", "integrals"),
    [
        pytest.param(name, way, marks=() if (name, way) in FEW else pytest.mark.long)
        for name in MOLECULES
        for way in ("disk", "direct", "mixed", "auto")
    ],
)
def test_energy_is_pyscfs_on_every_process(comm, computed_once, shared_tmp_path, name, integrals):
    method, given = MOLECULES[name]
    mol = molecule(**given)
    settings = {"storage": integrals, "scratch": str(shared_tmp_path), "screening": 1e-12}
    if integrals == "mixed":
        settings["disk_bytes"] = 200_000
    with getattr(scf, method)(mol, **settings) as mf:
        mf.conv_tol = 1e-11
        energy = mf.kernel()
    expected = computed_once(name, lambda: getattr(reference, method)(mol).run(conv_tol=1e-11).e_tot)
    assert energy == pytest.approx(expected, abs=1e-9)
    assert len(set(comm.allgather(energy))) == 1


@pytest.mark.parametrize("storage", ["disk", "direct"])
def test_densities_of_any_irrep_have_their_j_and_k_on_every_process(comm, shared_tmp_path, storage):
    mol = molecule(atom=WATER, basis="6-31g*")
    density = np.random.default_rng(1).normal(size=(mol.nao, mol.nao))
    density += density.T
    with scf.RHF(mol, storage=storage, scratch=str(shared_tmp_path), screening=1e-18) as mf:
        found = mf.get_jk(dm=density)
        assert mf.two_electron.symmetry.operations.order == 2
    for mine, theirs in zip(found, reference.hf.get_jk(mol, density), strict=True):
        assert np.abs(mine - theirs).max() < 1e-11


def test_integrals_kept_by_all_are_reused_by_another_number(comm, shared_tmp_path):
    mol, settings = molecule(atom=WATER, basis="cc-pvdz"), {"keep": str(shared_tmp_path), "screening": 1e-12}
    with scf.RHF(mol, **settings) as mf:
        mf.conv_tol = 1e-11
        energy, stored = mf.kernel(), mf.stored_summary.stored
    if comm.rank == 0:
        with scf.RHF(mol, comm=None, **settings) as mf:
            mf.conv_tol = 1e-11
            assert mf.kernel() == pytest.approx(energy, abs=1e-11)
            assert mf.two_electron.reused and mf.stored_summary.stored == stored
    comm.Barrier()


def test_who_leaves_with_an_error_waits_for_nobody(comm, shared_tmp_path):
    mol, left = molecule(atom=WATER, basis="sto-3g"), False
    try:
        with scf.RHF(mol, scratch=str(shared_tmp_path)) as mf:
            mf.kernel()
            if comm.rank == 0:
                raise KeyError
        comm.recv(source=0)  # rank 0 has left before
    except KeyError:
        left = True
        for other in range(1, comm.size):
            comm.send(None, other)
    assert left == (comm.rank == 0)


def test_a_fast_process_may_use_the_disk_budget_of_a_slow_one(comm, shared_tmp_path, monkeypatch):
    def only_the_last(counter, cost, threads, work, progress):
        if comm.rank == comm.size - 1:
            run_tasks(counter, cost, threads, work, progress)

    monkeypatch.setattr(integrals_module, "run_tasks", only_the_last)
    settings = {"storage": "mixed", "disk_bytes": 1_000_000, "screening": 1e-12}
    mol = molecule(atom=WATER, basis="cc-pvtz")
    with scf.RHF(mol, scratch=str(shared_tmp_path), record_bytes=1 << 16, **settings) as mf:
        summary = mf.two_electron.summary()
    assert 800_000 < summary.disk_bytes <= 1_000_000
    assert summary.lost_tasks == 0


@cache
def with_own_records(integrals, **settings):
    """Energy of water if each process reads the records that it wrote, and the stored bytes."""
    with scf.RHF(molecule(atom=WATER, basis="cc-pvtz"), storage=integrals, **settings) as mf:
        return mf.kernel(), mf.stored_summary


@pytest.mark.usefixtures("short_surveys")
@pytest.mark.parametrize(
    ("nodes", "integrals"),
    [
        *(("hosts", "disk"), ("processes", "mixed"), ("hosts", "auto")),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("processes", "disk"), ("hosts", "mixed"), ("processes", "auto"))
        ),
    ],
)
def test_energy_is_the_same_whoever_reads_the_records(comm, shared_tmp_path, integrals, nodes):
    mol = molecule(atom=WATER, basis="cc-pvtz")
    settings = {"screening": 1e-12, "record_bytes": 1 << 16}
    if integrals == "mixed":
        settings["disk_bytes"] = 1_000_000
    local, stored = with_own_records(integrals, **settings)
    settings["storage"] = integrals
    with World(nodes=nodes, scratch=shared_tmp_path) as world:
        with scf.RHF(mol, comm=world, records="any", **settings) as mf:
            assert mf.kernel() == pytest.approx(local, abs=1e-10)
            assert mf.energy_error().kept
            if integrals == "disk":
                assert mf.stored_summary.stored == stored.stored
        assert not any(path.stat().st_size for path in shared_tmp_path.rglob("*") if path.is_file())


def test_placed_globally_records_are_read_by_whoever_has_time(comm, shared_tmp_path):
    """The last process contracts first, and takes all records, whichever process wrote them."""
    mol = molecule(atom=WATER, basis="6-31g*")
    settings = Settings(screening=1e-12, records="any", record_bytes=1 << 16, group="C1")
    with World(scratch=shared_tmp_path) as world:
        integrals = TwoElectronIntegrals(mol, settings, world=world)
        assert integrals.store().records > 0
        native, tickets = integrals._native, integrals._tickets
        tickets.reset()
        native.begin(np.eye(mol.nao)[None], [1], 0.0)
        if world.rank == world.size - 1:
            native.contract_kept(tickets)
        world.barrier()
        if world.rank != world.size - 1:
            native.contract_kept(tickets)
        coulomb, exchange = native.end(1)
        if world.rank == world.size - 1:
            j, k = reference.hf.get_jk(mol, np.eye(mol.nao))
            np.testing.assert_allclose(coulomb[0], j, atol=1e-9)
            np.testing.assert_allclose(exchange[0], k, atol=1e-9)
        else:
            assert not coulomb.any() and not exchange.any()
        integrals.close()


def test_a_damaged_record_is_recomputed_by_whoever_reads_it(comm, shared_tmp_path):
    mol = molecule(atom=WATER, basis="6-31g*")
    settings = {"keep": str(shared_tmp_path), "screening": 1e-12, "records": "any"}
    with scf.RHF(mol, **settings) as mf:
        mf.conv_tol = 1e-11
        energy = mf.kernel()
    comm.Barrier()
    if comm.rank == 0:
        path = max(
            shared_tmp_path.glob("integrals-*"), key=lambda each: each.stat().st_size
        )  # some have none
        data = bytearray(path.read_bytes())
        data[100] ^= 0x10  # in the first record
        path.write_bytes(data)
    comm.Barrier()
    with scf.RHF(mol, **settings) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(energy, abs=1e-11)
        assert mf.two_electron.reused
        assert 1 <= mf.two_electron.work().damaged <= comm.size


def test_kept_integrals_of_another_problem_are_refused_by_all(comm, shared_tmp_path):
    settings = {"keep": str(shared_tmp_path)}
    with scf.RHF(molecule(atom=WATER, basis="sto-3g"), **settings) as mf:
        mf.kernel()
    with pytest.raises(OutcoreError, match="another basis"):
        scf.RHF(molecule(atom=WATER, basis="6-31g"), **settings).kernel()


def test_orbitals_are_the_same_on_every_process(comm, shared_tmp_path):
    with scf.RHF(molecule(atom=WATER, basis="6-31g"), scratch=str(shared_tmp_path)) as mf:
        mf.kernel()
        first = comm.bcast(mf.mo_coeff)
        assert np.array_equal(mf.mo_coeff, first)
        assert mf.converged
        assert mp.MP2(mf).kernel()[0] < -0.1


def test_the_error_of_the_energy_is_of_all_processes(comm, shared_tmp_path):
    """The rounding of integrals does not depend on the process that stores them."""
    mol = molecule(atom=WATER, basis="6-31g*")
    with scf.RHF(mol, scratch=str(shared_tmp_path), error=1e-8) as mf:
        mf.kernel()
        together = mf.energy_error()
    with scf.RHF(mol, scratch=str(shared_tmp_path), error=1e-8, comm=None) as mf:
        mf.kernel()
        alone = mf.energy_error()
    assert together.kept and len(set(comm.allgather(together.sigma))) == 1
    assert together.sigma == pytest.approx(alone.sigma, rel=1e-4)
    assert together.worst == pytest.approx(alone.worst, rel=1e-4)


def test_get_jk_is_collective_outside_the_kernel(comm, shared_tmp_path):
    mol = molecule(atom=WATER, basis="6-31g")
    density = np.eye(mol.nao)
    with scf.RHF(mol, scratch=str(shared_tmp_path), screening=1e-12) as mf:
        coulomb, exchange = mf.get_jk(dm=density)
    j, k = reference.hf.get_jk(mol, density)
    np.testing.assert_allclose(coulomb, j, atol=1e-9)
    np.testing.assert_allclose(exchange, k, atol=1e-9)


def test_a_communicator_of_one_needs_no_others(comm, shared_tmp_path):
    from mpi4py import MPI

    mol = molecule(atom=f"He 0 0 {comm.rank + 1}", basis="6-31g")
    with scf.RHF(mol, scratch=str(shared_tmp_path), comm=MPI.COMM_SELF) as mf:
        assert mf.kernel() == pytest.approx(-2.8551604, abs=1e-6)


def test_nodes_without_shared_memory_give_the_same(comm, shared_tmp_path):
    mol = molecule(atom=WATER, basis="6-31g*")
    with World(nodes="processes") as world:
        for integrals in ("disk", "direct"):
            with scf.RHF(mol, storage=integrals, scratch=str(shared_tmp_path), comm=world) as mf:
                energy = mf.kernel()
            assert energy == pytest.approx(reference.RHF(mol).run().e_tot, abs=1e-8)


def test_the_world_of_a_communicator_ends_with_it(comm, shared_tmp_path):
    mol = molecule(atom="He 0 0 0", basis="6-31g")
    part = comm.Split(comm.rank % 2)
    with scf.RHF(mol, scratch=str(shared_tmp_path), comm=part) as mf:
        mf.kernel()
        world = mf.world
    assert world is shared(part)
    assert world.size == part.size
    part.Free()
    assert world.closed


def test_an_error_of_rank_0_inside_the_iterations_reaches_all(comm, shared_tmp_path):
    def fail(_state):
        raise OutcoreError(errno.EINTR, "stop here")

    mf = scf.RHF(molecule(atom=WATER, basis="6-31g"), scratch=str(shared_tmp_path))
    mf.callback = fail
    with pytest.raises(OutcoreError, match="stop here"):
        mf.kernel()
    mf.close()


@pytest.mark.parametrize("hook", ["on_estimate", "on_progress"])
def test_an_error_of_a_hook_on_rank_0_reaches_all(comm, shared_tmp_path, hook):
    def refuse(_):
        raise ValueError("not like this")

    with scf.RHF(molecule(atom=WATER, basis="6-31g"), scratch=str(shared_tmp_path)) as mf:
        setattr(mf, hook, refuse)
        with pytest.raises(OutcoreError, match="not like this"):
            mf.kernel()


def test_settings_that_one_process_refuses_are_refused_by_all(comm, shared_tmp_path):
    scratch = shared_tmp_path / "none" if comm.rank == comm.size - 1 else shared_tmp_path
    with pytest.raises(OutcoreError, match="no such directory") as caught:
        scf.RHF(molecule(atom=WATER, basis="6-31g"), scratch=str(scratch)).kernel()
    assert caught.value.rank == comm.size - 1


@pytest.fixture
def small_disk(comm, shared_tmp_path):
    """A file system of 24 MB, mounted by rank 0."""
    done = None
    if comm.rank == 0:
        command = ["mount", "-t", "tmpfs", "-o", "size=24m", "outcore-test", str(shared_tmp_path)]
        done = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not comm.bcast(done):
        pytest.skip("needs the right to mount a small file system")
    yield shared_tmp_path
    comm.Barrier()
    if comm.rank == 0:
        subprocess.run(["umount", "-l", str(shared_tmp_path)], check=True)


def test_a_disk_that_is_too_small_is_noticed_before_the_work(comm, small_disk):
    mol = molecule(atom=WATER, basis="cc-pvqz", cart=True)
    with pytest.raises(
        OutcoreError, match=r"arrays take .*, there are .*; give a larger --scratch"
    ) as caught:
        scf.RHF(mol, scratch=str(small_disk)).kernel()
    assert caught.value.errno == errno.ENOSPC
    assert str(small_disk) in str(caught.value)


@pytest.fixture
def filling_disk(comm, small_disk, monkeypatch):
    """Another program fills the disk, except 1 MiB, when the integrals begin to be stored."""
    open_store = TwoElectronIntegrals._open_store

    def then_fill(self, kept_name):
        open_store(self, kept_name)
        if comm.rank == 0:
            free = os.statvfs(small_disk)
            (small_disk / "other").write_bytes(bytes(free.f_bavail * free.f_bsize - (1 << 20)))
        comm.Barrier()

    monkeypatch.setattr(TwoElectronIntegrals, "_open_store", then_fill)
    return small_disk


def test_a_disk_that_fills_ends_the_job_everywhere_with_one_error(comm, filling_disk):
    mol = molecule(atom=WATER, basis="cc-pvtz")
    with pytest.raises(OutcoreError) as caught:
        scf.RHF(mol, scratch=str(filling_disk), record_bytes=1 << 20).kernel()
    assert caught.value.errno == errno.ENOSPC
    assert "free" in str(caught.value)
    assert len(set(comm.allgather(str(caught.value)))) == 1


@pytest.mark.parametrize("records", [pytest.param("own", marks=pytest.mark.long), "any"])
def test_a_mixed_run_recomputes_what_a_full_disk_does_not_take(comm, filling_disk, records):
    mol = molecule(atom=WATER, basis="cc-pvtz")
    with World(scratch=filling_disk) as world:
        settings = {"storage": "mixed", "record_bytes": 1 << 18, "records": records}
        scratch = {} if records == "any" else {"scratch": str(filling_disk)}
        with scf.RHF(mol, comm=world, screening=1e-12, **settings, **scratch) as mf:
            mf.conv_tol = 1e-11
            energy = mf.kernel()
            work = mf.two_electron.work()
            assert 0 < mf.stored_summary.disk_bytes <= 1 << 20
    assert work.lost_tasks > 0 and work.damaged == 0
    expected = comm.bcast(reference.RHF(mol).run(conv_tol=1e-11).e_tot if comm.rank == 0 else None)
    assert energy == pytest.approx(expected, abs=1e-9)


def test_tasks_are_each_done_once(comm):
    counter = shared(comm).counter()
    done: list[int] = []
    run_tasks(counter, np.ones(1000), 2, lambda _thread, first, last: done.extend(range(first, last)))
    everything = sorted(task for part in comm.allgather(done) for task in part)
    assert everything == list(range(1000))


def test_a_failing_task_stops_all_processes(comm):
    world = shared(comm)
    counter = world.counter()

    def work(_thread: int, first: int, _last: int) -> None:
        if first >= 100:
            raise OutcoreError(errno.EIO, f"task {first}")

    with pytest.raises(OutcoreError, match="task"), world.together("tasks"):
        run_tasks(counter, np.ones(10**6), 1, work)
    assert counter.next() >= 1 << 48


def test_rank_0_finds_an_instability_and_all_follow_it(comm, shared_tmp_path):
    """The second-order steps of all end in the state that separates the spins."""
    mol = molecule(atom="H 0 0 0; H 0 0 2.5", basis="6-31g")
    mf = scf.UHF(mol, comm=comm, scratch=str(shared_tmp_path), threads=1)
    mf.conv_tol = 1e-10
    before = mf.kernel()
    found = mf.at_root(lambda: stability.internal(mf))
    assert not found.stable and comm.allgather(found.eigenvalue) == [found.eigenvalue] * comm.size
    second = mf.newton()
    second.kernel(found.orbitals, mf.mo_occ)
    assert second.converged and second.e_tot < before - 0.05
    mf.mo_coeff, mf.mo_occ, mf.mo_energy = second.mo_coeff, second.mo_occ, second.mo_energy
    assert mf.at_root(lambda: stability.internal(mf)).stable
    mf.close()


@pytest.mark.parametrize("records", ["own", "any"])
def test_integrals_are_stored_finer_by_all(comm, shared_tmp_path, monkeypatch, records):
    """Rank 0, whose densities count, has crude densities that are far from the real ones."""
    monkeypatch.setattr(accuracy, "crude_densities", lambda mol: np.zeros((2, mol.nao, mol.nao)))
    mol = molecule(atom="O 0 0 0; O 0 0 1.2", basis="6-31g", spin=2)
    exact = reference.UHF(mol).run(conv_tol=1e-12).e_tot
    with World(scratch=shared_tmp_path) as world, scf.UHF(mol, comm=world, error=1e-7, records=records) as mf:
        mf.kernel()
        error = mf.energy_error()
        assert not error.kept
        assert mf.store_finer(error) == ""
        energy = mf.kernel(mf.make_rdm1())
        error = mf.energy_error()
    assert error.kept and abs(energy - exact) <= error.bound
