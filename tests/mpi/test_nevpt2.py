"""NEVPT2 on two processes."""

from __future__ import annotations

import pytest

from outcore import World
from outcore.base.errors import OutcoreError


@pytest.mark.processes(2)
@pytest.mark.parametrize("storage", [pytest.param("auto", marks=pytest.mark.long), "disk"])
def test_energy_is_that_of_one_process(comm, computed_once, shared_tmp_path, storage):
    import pyscf
    from pyscf import fci, lib, mcscf, mrpt

    from outcore.chem.ci import FCISolver
    from outcore.chem.nevpt2 import NEVPT2
    from outcore.parallel.team import blas_of_one_thread

    def casci():
        mol = pyscf.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="sto-3g", verbose=0)
        with lib.with_omp_threads(1), blas_of_one_thread():
            mc = mcscf.CASCI(mol.RHF().run(conv_tol=1e-12), 3, 2)
        mc.verbose = 0
        return mc

    def expected():
        mc = casci()
        mc.fcisolver = fci.direct_spin0.FCI(mc.mol)
        mc.fcisolver.conv_tol = 1e-13
        mc.kernel()
        return float(mrpt.NEVPT(mc).kernel())

    wanted = computed_once("water NEVPT2", expected)
    with World(comm, scratch=shared_tmp_path, memory="4GB") as world:
        mc = casci()
        mc.fcisolver = FCISolver(mc.mol, comm=world, threads=1)
        mc.fcisolver.conv_tol = 1e-13
        mc.kernel()
        found = NEVPT2(mc, storage=storage)
        assert found.kernel() == pytest.approx(wanted, abs=1e-8)
        assert max(comm.allgather(found.e_corr)) - min(comm.allgather(found.e_corr)) < 1e-12
        mc.fcisolver.close()


@pytest.mark.processes(2)
def test_mixed_states_are_those_of_one_process(comm, computed_once, shared_tmp_path):
    import pyscf
    from pyscf import lib, mcscf

    from outcore.chem.ci import FCISolver
    from outcore.chem.nevpt2 import QDNEVPT2
    from outcore.parallel.team import blas_of_one_thread

    def energies(world):
        mol = pyscf.M(atom="Li 0 0 0; H 0 0 1.6", basis="6-31g", verbose=0)
        with lib.with_omp_threads(1), blas_of_one_thread():
            mc = mcscf.CASCI(mol.RHF().run(conv_tol=1e-12), 2, 2)
        mc.verbose, mc.fcisolver = 0, FCISolver(mol, comm=world, threads=1, scratch=str(shared_tmp_path))
        mc.fcisolver.nroots, mc.fcisolver.conv_tol, mc.fcisolver.spin = 2, 1e-13, 0
        mc.kernel()
        found = QDNEVPT2(mc).kernel()
        mc.fcisolver.close()
        return [float(each) for each in found]

    wanted = computed_once("lithium hydride QD-NEVPT2", lambda: energies(None))
    with World(comm, scratch=shared_tmp_path, memory="4GB") as world:
        assert energies(world) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.processes(2)
def test_the_command_is_refused_on_several_processes(comm, shared_tmp_path):
    from outcore.cli import main as cli

    geometry = shared_tmp_path / "he.xyz"
    if comm.rank == 0:
        geometry.write_text("1\n\nHe 0 0 0\n")
    comm.barrier()
    with pytest.raises(OutcoreError, match="it runs on one process, not on 2"):
        cli.run(["casscf", str(geometry), "--basis", "6-31g", "--cas", "2,2"])


@pytest.mark.processes(2)
def test_states_and_perturbers_that_one_process_has_kept_are_gone_on_with(comm, shared_tmp_path, monkeypatch):
    import pyscf
    from pyscf import lib, mcscf

    from outcore.chem.ci import FCISolver
    from outcore.chem.nevpt2 import NEVPT2
    from outcore.chem.nevpt2.perturbers import Perturbers
    from outcore.keep import clock
    from outcore.parallel.team import blas_of_one_thread

    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    moments, calls, kept = Perturbers.moments, [], shared_tmp_path / "kept"

    def casci(world, checkpoint):
        mol = pyscf.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="6-31g", verbose=0)
        with lib.with_omp_threads(1), blas_of_one_thread():
            mc = mcscf.CASCI(mol.RHF().run(conv_tol=1e-12), 4, 4)
        mc.verbose, mc.fcisolver = 0, FCISolver(mol, comm=world, threads=1, checkpoint=checkpoint)
        mc.fcisolver.conv_tol, mc.fcisolver.keeps_all = 1e-13, True
        mc.kernel()
        return mc

    def counted(self, *given):
        calls.append(given)
        if len(calls) == 4 and self._world.size == 1:
            raise KeyboardInterrupt
        return moments(self, *given)

    whole, every = 0.0, 0
    if comm.rank == 0:
        kept.mkdir()
        with World("self", scratch=shared_tmp_path, memory="1GB") as world:
            mc = casci(world, None)
            monkeypatch.setattr(
                Perturbers, "moments", lambda self, *given: calls.append(1) or moments(self, *given)
            )
            whole, every = NEVPT2(mc).kernel(), len(calls)
            mc.fcisolver.close()
            calls.clear()
            monkeypatch.setattr(Perturbers, "moments", counted)
            mc = casci(world, kept / "ci")
            with pytest.raises(KeyboardInterrupt):
                NEVPT2(mc, checkpoint=kept).kernel()
            mc.fcisolver.close()
            calls.clear()
    whole, every = comm.bcast((whole, every))
    monkeypatch.setattr(Perturbers, "moments", counted)
    with World(comm, scratch=shared_tmp_path, memory="4GB") as world:
        mc = casci(world, kept / "ci")
        assert mc.ci.ci.solved.kept_iteration > 0
        assert NEVPT2(mc, checkpoint=kept).kernel() == pytest.approx(whole, abs=1e-9)
        assert len(calls) == every - 3
        mc.fcisolver.close()
