"""RI-SCF and RI-MP2 on several processes."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem.mp2 import MP2
from outcore.job.world import World

pytest.importorskip("pyscf")
from pyscf import dft, gto
from pyscf import scf as reference
from pyscf.mp import dfmp2_native, dfump2_native

from outcore.chem import ri
from outcore.chem.ri import disk_pass, jk

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
OXYGEN = "O 0 0 0; O 0 0 1.2"


def molecule(**given) -> gto.Mole:
    return gto.M(verbose=0, **given)


def pyscfs_energies(method, correlated, mol, frozen):
    mf = getattr(reference, method)(mol).density_fit()
    mf.conv_tol = 1e-12
    mf.kernel()
    return mf.e_tot, correlated(mf, frozen=frozen).kernel()


@pytest.mark.parametrize(
    ("nodes", "storage"),
    [
        ("hosts", "auto"),
        ("processes", "disk"),
        pytest.param("hosts", "disk", marks=pytest.mark.long),
        pytest.param("processes", "auto", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    ("method", "correlated", "given", "frozen"),
    [
        ("RHF", dfmp2_native.DFRMP2, {"atom": WATER, "basis": "cc-pvdz"}, 1),
        ("UHF", dfump2_native.DFUMP2, {"atom": OXYGEN, "basis": "6-31g*", "spin": 2}, 2),
    ],
)
def test_energies_are_pyscfs_on_every_process(
    comm, computed_once, storage, nodes, method, correlated, given, frozen
):
    mol = molecule(**given)
    scf_energy, correlation = computed_once(
        f"{method} {given} {frozen}", lambda: pyscfs_energies(method, correlated, mol, frozen)
    )
    with World(nodes=nodes) as world, getattr(ri, method)(mol, storage=storage, comm=world) as mf:
        mf.conv_tol = 1e-12
        assert mf.kernel() == pytest.approx(scf_energy, abs=1e-9)
        mp2 = MP2(mf, frozen, storage=storage, comm=world)
        assert mp2.kernel() == pytest.approx(correlation, abs=1e-9)
        assert len(set(comm.allgather((mf.e_tot, mp2.e_corr)))) == 1


def test_rows_can_be_read_by_each_process_alone(comm):
    with ri.RHF(molecule(atom=WATER, basis="6-31g"), storage="disk") as mf:
        mf.with_df.build()
        blocks = list(mf.with_df.loop(10 + comm.rank))
        products = [block.T @ block for block in blocks]
        everyone = comm.allgather(sum(products))
        np.testing.assert_allclose(everyone[0], everyone[-1], atol=1e-12)


@pytest.mark.parametrize("storage", [pytest.param("auto", marks=pytest.mark.long), "disk"])
def test_j_and_k_of_a_symmetric_molecule_on_every_process(comm, storage):
    mol = molecule(atom="O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3", basis="6-31g*")
    random = np.random.default_rng(1).normal(size=(mol.nao, mol.nao))
    densities = np.array([reference.hf.init_guess_by_minao(mol), random])
    results = []
    for group in (None, "C1"):
        fitting = ri.DensityFitting(mol, "def2-universal-jkfit", storage=storage, group=group)
        j, k = fitting.get_jk(densities, 0)
        results.append((j, k, fitting.get_jk(densities[0], with_k=False)[0]))
        assert fitting.three_index.symmetry.order == (1 if group else 2)
        fitting.close()
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-11 * np.abs(theirs).max())
        assert all(np.array_equal(mine, each) for each in comm.allgather(mine))


def test_range_separated_hybrids_on_every_process(comm, computed_once):
    mol = molecule(atom=WATER, basis="6-31g")
    mf = dft.RKS(mol, xc="camb3lyp")
    mf.grids.level = 0
    theirs = computed_once("camb3lyp", lambda: mf.density_fit().kernel())
    with ri.density_fit(mf, storage="disk") as ours:
        assert ours.kernel() == pytest.approx(theirs, abs=1e-7)
        assert len(set(comm.allgather(ours.e_tot))) == 1


def test_an_error_of_rank_0_inside_the_iterations_reaches_all(comm):
    def fail(_state):
        raise OutcoreError(errno.EINTR, "stop here")

    with ri.RHF(molecule(atom=WATER, basis="6-31g")) as mf:
        mf.callback = fail
        with pytest.raises(OutcoreError, match="stop here"):
            mf.kernel()


def test_a_process_without_memory_for_its_part_of_j_and_k_ends_them_for_all(comm, monkeypatch):
    def no_memory(*_):
        raise MemoryError("no room for K")

    with ri.RHF(molecule(atom=WATER, basis="6-31g*"), storage="disk") as mf:
        density = mf.get_init_guess()
        expected = mf.with_df.build().get_jk(density)
        with monkeypatch.context() as patch:
            if comm.rank == comm.size - 1:
                patch.setattr(jk, "JkWorker", no_memory)
            with pytest.raises((MemoryError, OutcoreError), match="no room for K"):
                mf.with_df.get_jk(density)
        np.testing.assert_allclose(mf.with_df.get_jk(density), expected, rtol=0, atol=1e-13)


def test_a_process_that_cannot_begin_to_read_ends_j_and_k_for_all(comm, monkeypatch):
    def cannot(_pass):
        raise OutcoreError(errno.EINTR, "begin to read")

    with ri.RHF(molecule(atom=WATER, basis="6-31g*"), storage="disk") as mf:
        density = mf.get_init_guess()
        expected = mf.with_df.build().get_jk(density)
        with monkeypatch.context() as patch:
            if comm.rank == comm.size - 1:
                patch.setattr(disk_pass.DiskPass, "start", cannot)
            with pytest.raises(OutcoreError, match="begin to read"):
                mf.with_df.get_jk(density)
        np.testing.assert_allclose(mf.with_df.get_jk(density), expected, rtol=0, atol=1e-13)


def test_a_communicator_of_one_needs_no_others(comm):
    from mpi4py import MPI

    mol = molecule(atom=f"Ne 0 0 {comm.rank + 1}", basis="cc-pvdz")
    with ri.RHF(mol, comm=MPI.COMM_SELF) as mf:
        mf.conv_tol = 1e-12
        mf.kernel()
        mp2 = MP2(mf, comm=MPI.COMM_SELF)
        energies = comm.allgather(mp2.kernel())
        mp2.close()
    assert energies == pytest.approx([energies[0]] * comm.size, abs=1e-10)
