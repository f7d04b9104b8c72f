"""Multireference CI on several processes: energies are those of one process."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "mrci"))
from mrci_files import damage, find_open
from mrci_molecules import WATER, c2, mean_field

from outcore._core import RecordStore
from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.mrci import MRCI, packed, reference_states, vectors
from outcore.chem.mrci.packed import PackedVector
from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.run import MoleculeRun
from outcore.cli import main as cli
from outcore.job.world import World

ENERGY = -76.1160029238
CISD = -76.1140770214
NH2 = "N 0 0 0; H 0.8 0.6 0; H -0.8 0.6 0"
RAW = 8 * 8302 * 6  # bytes of six vectors of water


def water(world, **settings):
    return MRCI.from_mean_field(mean_field(WATER), inactive=1, active=6, comm=world, **settings)


@pytest.mark.parametrize("vector_memory", [None, pytest.param(100_000, marks=pytest.mark.long), 2_000])
def test_energies(comm, vector_memory):
    with World(comm, memory="300MB") as world, water(world, vector_memory=vector_memory) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.converged
        assert (ci.report.spilled > 0) == (vector_memory is not None)


def test_a_density_is_written_once_and_is_that_of_all(comm, shared_tmp_path):
    path = shared_tmp_path / "density.npz"
    with World(comm, memory="300MB") as world, water(world) as ci:
        ci.kernel()
        alpha, beta = ci.make_rdm1s(ao_repr=True)
        ci.write_density(path)
        electrons = np.sum((alpha + beta) * ci.orbitals.mol.intor("int1e_ovlp"))
        comm.barrier()
        np.testing.assert_allclose(np.load(path)["total"], alpha + beta, atol=1e-12)
    assert electrons == pytest.approx(10)


@pytest.mark.parametrize(
    "share", [1.5, pytest.param(1.0, marks=pytest.mark.long), 0.5, pytest.param(0.01, marks=pytest.mark.long)]
)
def test_so_much_of_the_vectors_is_in_memory(comm, share, monkeypatch):
    """Some memory stays free between records."""
    monkeypatch.setattr(vectors, "UNIT_ELEMENTS", 64)
    monkeypatch.setattr(packed, "SMALLEST_MEMORY", 256)
    memory = int(share * RAW / comm.size)
    with World(comm, memory="300MB") as world, water(world, vector_memory=memory) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.report.raw_bytes == RAW
        in_memory = 1 - ci.report.spilled
    assert in_memory == 1 if share > 1 else 0.8 * share < in_memory <= share


def test_integrals_on_disk(comm):
    """Each process writes its share of them, and reads all."""
    with World(comm, memory="300MB") as world, water(world, integral_memory=0, vector_memory=0) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.streamed_bytes > 0


@pytest.mark.parametrize("bound", [1e-7, pytest.param(1e-8, marks=pytest.mark.long)])
def test_packed_energies_are_within_their_bound(comm, computed_once, bound):
    def alone():
        with water(None, residual=1e-9) as ci:
            return ci.kernel()

    exact = computed_once("multireference CI of water", alone)
    with World(comm, memory="300MB") as world, water(world, error_bound=bound) as ci:
        assert ci.kernel() == pytest.approx(exact, abs=bound)
        assert ci.converged
        assert 0 < ci.packing_error <= bound


def test_energies_on_a_part_of_the_processes(comm):
    """Worlds of three processes and of one, out of four."""
    with World(comm, memory="300MB") as world:
        part = world.split(int(world.rank == world.size - 1))
        assert part.size == (1 if world.rank == world.size - 1 else world.size - 1)
        with part, water(part, vector_memory=50_000) as ci:
            assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
            assert ci.report.file_writes.count > 0


@pytest.mark.parametrize("growing", [False, True])
def test_another_number_of_processes_goes_on(comm, shared_tmp_path, growing):
    """Numbers of processes: four, three, two; or two, three, four."""
    counts = sorted([comm.size, max(comm.size - 1, 1), max(comm.size - 2, 1)], reverse=not growing)
    with World(comm, memory="300MB") as world:
        for run, count in enumerate(counts):
            part = world.split(0 if world.rank < count else -1)
            if part is not None:
                given = {"vector_memory": 50_000, "checkpoint": shared_tmp_path}
                given["max_cycle"] = 4 if run < 2 else 50
                with part, water(part, **given) as ci:
                    energy = ci.kernel()
                    assert ci.went_on == (run > 0) and ci.kept_iteration == 4 * run
                    assert ci.converged == (run == 2)
            world.barrier()
        if world.rank < counts[-1]:
            assert energy == pytest.approx(ENERGY, abs=2e-9)


def test_records_of_several_disks(comm, shared_tmp_path, monkeypatch):
    """Each process counts as a node, with a scratch directory of its own."""
    monkeypatch.setattr(packed, "RecordStore", partial(RecordStore, placement="local"))
    scratch, written = shared_tmp_path / str(comm.rank), []
    scratch.mkdir()

    def told(_):
        written.append(512 * sum(os.stat(each).st_blocks for each in find_open(scratch)))

    with (
        World(comm, memory="300MB", scratch=str(scratch), nodes="processes") as world,
        water(world, vector_memory=0) as ci,
    ):
        ci.on_iteration = told
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        share = max(written) / ci.report.file_bytes
    assert sum(comm.allgather(share)) >= 1
    assert min(comm.allgather(share)) > 0.5 / comm.size


def test_additions_of_all_processes_are_there(comm):
    """With whole numbers, whose sums are exact."""
    records, numbers, found = np.arange(20), np.ones(20 * 100), np.empty(20 * 100)
    with World(comm, memory="100MB") as world:
        store = RecordStore(world, "records", np.full(20, 100), memory_bytes=4096)
        for _ in range(50):
            store.add(records, 0.0, numbers)
        world.barrier()
        store.get(records, found)
        places = store.place(records)
        world.barrier()
        store.close()
        assert (found == 50 * world.size).all()
        assert (places < 0).any() and (places > 0).any()


@pytest.mark.parametrize("fault", ["full", "damaged"])
def test_all_get_the_error_of_one_disk(comm, shared_tmp_path, fault):
    """They resume from the iteration before the error; the time of the last process's write decides which
    that is."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = []

    def told(iteration):
        done.append(iteration.number)
        if iteration.number == 3 and comm.rank == comm.size - 1:
            if fault == "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
            else:
                for each in find_open(scratch):
                    damage(each)

    scratch = shared_tmp_path / "scratch"
    if comm.rank == 0:
        scratch.mkdir()
    comm.Barrier()
    given = {"vector_memory": 0, "checkpoint": shared_tmp_path}
    with World(comm, memory="300MB", scratch=str(scratch)) as world, water(world, **given) as ci:
        ci.on_iteration = told
        try:
            with pytest.raises(OutcoreError) as caught:
                ci.kernel()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (
            comm.allgather(caught.value.errno) == [errno.EFBIG if fault == "full" else errno.EIO] * comm.size
        )
    with World(comm, memory="300MB") as world, water(world, checkpoint=shared_tmp_path) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=2e-9)
        assert ci.went_on and ci.kept_iteration == done[-1] >= 3


@pytest.mark.parametrize("full", ["scratch", "kept"])
def test_all_get_the_error_of_a_disk_that_fills(comm, small_disk, shared_tmp_path, full):
    """It names the array that did not fit; another run resumes from the iteration before."""
    scratch, kept = (small_disk if full == each else shared_tmp_path / each for each in ("scratch", "kept"))
    filler, done = small_disk / "filler", []
    if comm.rank == 0:
        for each in (scratch, kept):
            each.mkdir(exist_ok=True)
    comm.Barrier()

    def fill(iteration):
        done.append(iteration.number)
        if iteration.number == 2 and comm.rank == 0:
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                for size in (1 << 16, 1):
                    with suppress(OSError):
                        while file.write(b"x" * size):
                            pass

    given = {"vector_memory": 0, "checkpoint": kept}
    with World(comm, memory="300MB", scratch=str(scratch)) as world, water(world, **given) as ci:
        ci.on_iteration = fill
        with pytest.raises(OutcoreError) as caught:
            ci.kernel()
    assert comm.allgather(caught.value.errno) == [errno.ENOSPC] * comm.size
    assert re.search(rf"\d+ bytes .*{small_disk}", str(caught.value))
    comm.Barrier()
    if comm.rank == 0:
        filler.unlink()
    comm.Barrier()
    with World(comm, memory="300MB", scratch=str(scratch)) as world, water(world, **given) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=2e-9)
        assert ci.went_on and ci.kept_iteration == done[-1] >= 2


@pytest.mark.parametrize("method", ["read", pytest.param("write", marks=pytest.mark.long), "erase"])
def test_all_get_the_error_of_one_record(comm, monkeypatch, method):
    """The first record, at the process that has the first block."""

    def fails(*_):
        raise OutcoreError(errno.EIO, method)

    if comm.rank == 0:
        monkeypatch.setattr(PackedVector, method, fails)
    with (
        World(comm, memory="300MB") as world,
        water(world, vector_memory=0) as ci,
        pytest.raises(OutcoreError, match=method),
    ):
        ci.kernel()


def test_all_get_the_error_of_a_state_that_is_read(comm, monkeypatch):
    def fails(*_):
        raise OutcoreError(errno.EIO, "read")

    with World(comm, memory="300MB") as world, water(world, vector_memory=0, residual=1e-2) as ci:
        ci.kernel()
        if comm.rank == 0:
            monkeypatch.setattr(PackedVector, "read", fails)
        with pytest.raises(OutcoreError, match="read"):
            ci.reference_weight()


def test_a_root_with_little_of_the_references_is_an_error_of_all(comm):
    with (
        World(comm, memory="300MB") as world,
        water(world, residual=1e-2, min_weight=0.99) as ci,
        pytest.raises(NotConverged, match=r"root 1 has a weight of references of 0\.9.*less than 0\.99"),
    ):
        ci.kernel()


def test_roots_of_functionals(comm):
    """They follow the references past other states, as on one process."""
    with World(comm, memory="300MB") as world, c2(functional="acpf", roots=2, comm=world) as ci:
        found = ci.kernel()
        assert ci.converged and ci.passed_over(0) > 0
    assert found[0] == pytest.approx(-75.628938782, abs=2e-9)
    with c2(functional="acpf", roots=2, comm=None) as ci:
        assert ci.kernel() == pytest.approx(found, abs=1e-9)


def test_integrals_of_a_fitted_scf_are_made_once(comm, computed_once, shared_tmp_path, monkeypatch):
    """Also for an open shell, whose Fock matrices count: no call needs the integrals after they are
    closed."""

    def closed(*_, **__):
        raise AssertionError("integrals of the SCF are asked for again")

    def renew(run):
        renewed(run)
        monkeypatch.setattr(DensityFitting, "integrals", closed)
        monkeypatch.setattr(DensityFitting, "get_jk", closed)

    def alone():
        from pyscf import gto, scf

        mol = gto.M(atom=NH2, basis="6-31g", spin=1, symmetry="C2v", verbose=0)
        mf = scf.ROHF(mol).density_fit(auxbasis="cc-pvdz-jkfit").run(conv_tol=1e-11)
        given = {"frozen": 1, "inactive": 0, "active": 6, "integrals": "ri", "auxbasis": "cc-pvdz-ri"}
        with MRCI.from_mean_field(mf, comm=None, **given) as ci:
            return ci.kernel()

    wanted, renewed = computed_once("NH2", alone), MoleculeRun.renew_world
    monkeypatch.setattr(MoleculeRun, "renew_world", renew)
    geometry, results = shared_tmp_path / "nh2.xyz", shared_tmp_path / "results.json"
    if comm.rank == 0:
        geometry.write_text("3\nNH2\n" + NH2.replace("; ", "\n") + "\n")
    comm.Barrier()
    given = ("--spin", "1", "--cas", "7,6", "--frozen", "1", "--integrals", "ri", "--basis", "6-31g")
    sets = ("--auxbasis", "cc-pvdz-ri", "--jkbasis", "cc-pvdz-jkfit")
    run = (
        "mrci",
        str(geometry),
        *given,
        *sets,
        "--conv-tol",
        "1e-11",
        "--threads",
        "1",
        "--json",
        str(results),
    )
    assert cli.run(list(run)) == 0
    comm.Barrier()
    assert json.loads(results.read_text())["energies_hartree"][0] == pytest.approx(wanted, abs=2e-8)


def test_references_by_weight_are_those_of_the_first_process(comm):
    from pyscf import mcscf

    mc = mcscf.CASCI(mean_field(WATER), 4, 4).run(verbose=0)
    if comm.rank:
        mc.ci = mc.ci[::-1].copy()
    with World(comm, memory="300MB") as world, MRCI(mc, references=0.9, comm=world) as ci:
        assert comm.allgather(ci.records.references.tolist()) == [[31]] * comm.size
        assert ci.kernel() == pytest.approx(CISD, abs=1e-9)


def test_states_of_references_are_those_of_the_first_process(comm, monkeypatch):
    """Other processes may find them with other signs, and near thresholds with other references."""

    def of(*_):
        raise AssertionError("a process finds states of its own")

    if comm.rank:
        monkeypatch.setattr(reference_states, "of", of)
    with World(comm, memory="300MB") as world, water(world, references=0.9) as ci:
        assert len(ci.records.references) == 1
        assert ci.kernel() == pytest.approx(CISD, abs=1e-9)


def test_a_reference_that_one_process_refuses_is_an_error_of_all(comm):
    """Before integrals are fitted."""
    from pyscf import gto, scf

    mf = scf.RHF(gto.M(atom=WATER, basis="cc-pvdz", verbose=0)).run()
    if comm.rank == 0:
        mf.mo_occ[4] = 1.9
    with (
        World(comm, memory="300MB") as world,
        pytest.raises(OutcoreError, match=r"orbital 5 has an occupation of 1\.9"),
    ):
        MRCI.from_mean_field(mf, inactive=1, active=6, integrals="ri", comm=world)


def test_all_refuse_what_cannot_be(comm):
    with (
        World(comm, memory="300MB") as world,
        pytest.raises(OutcoreError, match="active orbitals cannot hold"),
    ):
        MRCI.from_mean_field(mean_field(WATER), inactive=1, active=1, comm=world)


def test_one_electron(comm):
    """Each process has the Hamiltonian, and the first one has the vectors."""
    mf = mean_field("H 0 0 0; H 0 0 1", "6-31g", spin=0)
    ion = mf.mol.copy()
    ion.build(charge=1, spin=1, dump_input=False, parse_arg=False)
    from pyscf import scf

    cation = scf.ROHF(ion).run(conv_tol=1e-12)
    cation.mo_coeff = mf.mo_coeff  # which are not those of the ion, so that it has something to mix
    with (
        World(comm, memory="300MB") as world,
        MRCI.from_mean_field(cation, inactive=0, active=1, comm=world) as ci,
    ):
        assert ci.kernel() == pytest.approx(cation.e_tot, abs=1e-9)
        assert ci.e_reference > cation.e_tot + 1e-3
        assert ci.make_rdm1().trace() == pytest.approx(1)
