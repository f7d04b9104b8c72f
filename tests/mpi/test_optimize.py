"""The search for a geometry on several processes: all compute each step together, and get the same result or the
same error."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyscf")
pytest.importorskip("geometric")
from pyscf import gto

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import ri
from outcore.chem.optimize.search import GeometrySearch
from outcore.chem.optimize.steps import GeometrySteps

pytestmark = pytest.mark.processes(2)

WATER = "O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5"


def searched(most=30, convergence="GAU_LOOSE", checkpoint=None, scanner=None, **given):
    """Number of steps, energy, places and gradient, and how many steps were computed."""
    mol = gto.M(atom=WATER, basis="sto-3g", verbose=0)
    with ri.RHF(mol, **given) as mf:
        world, computed = mf.with_df.world, []
        gradients = mf.nuc_grad_method().as_scanner()

        def scan(molecule):
            computed.append(molecule)
            return gradients(molecule) if scanner is None else scanner(world, gradients, molecule)

        steps = GeometrySteps(mol, {}, checkpoint, None) if world.rank == 0 else None
        search = GeometrySearch(world, mol, scan, steps, lambda *_: None)
        search.run(convergence, "tric", most)
        return search.count, search.energy, search.places, search.gradient, len(computed)


def test_it_is_that_of_one_process(comm, computed_once):
    count, energy, places, gradient, _ = computed_once("alone", lambda: searched(comm=None))
    found = searched()
    assert found[0] == found[-1] == count
    assert found[1] == pytest.approx(energy, abs=1e-8)
    assert found[2] == pytest.approx(places, abs=1e-5)
    assert found[3] == pytest.approx(gradient, abs=1e-5)
    for every in comm.allgather(found):
        assert every[:2] == found[:2]
        assert (every[2] == found[2]).all() and (every[3] == found[3]).all()


def test_kept_steps_are_computed_by_none(comm, shared_tmp_path):
    kept = shared_tmp_path / "kept"
    if comm.rank == 0:
        kept.mkdir()
    comm.barrier()
    first = searched(checkpoint=kept)
    second = searched(checkpoint=kept)
    assert second[-1] == 0
    assert second[:2] == first[:2] and np.array_equal(second[2], first[2])


def test_too_few_steps_are_an_error_at_all(comm):
    with pytest.raises(NotConverged, match="after 2 steps"):
        searched(most=1, convergence="GAU_TIGHT")


def test_an_error_of_a_step_is_one_at_all(comm):
    def fails(world, gradients, molecule):
        with world.together("a step"):
            if world.rank == 1:
                raise OutcoreError(5, "a step", detail="it fails")
        return gradients(molecule)

    with pytest.raises(OutcoreError, match="it fails"):
        searched(scanner=fails)


def test_a_step_that_does_not_converge_says_so_at_all(comm):
    def fails(world, gradients, molecule):
        raise NotConverged(None, "CCSD", detail="its amplitudes")

    with pytest.raises(NotConverged, match=r"CCSD.*its amplitudes"):
        searched(scanner=fails)
