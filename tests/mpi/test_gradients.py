"""Gradients on several processes: the same at all, and equal to those of one process."""

from __future__ import annotations

import gc

import pytest

pytest.importorskip("pyscf")
from pyscf import gto, scf

from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.mp2 import MP2
from outcore.keep import clock

WATER = "O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5"
AMINO = "N 0.02 0.01 0; H 0.9 0.1 0.3; H -0.5 0.85 -0.1"
HYDROXYL = "O 0.02 0.01 0; H 0.9 0.1 0.3"
LOOSE = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}  # the steps are those of one process, converged or not
ONE = {"conv_tol": 0.9, "conv_tol_normt": 0.9}  # one iteration, of some thousand small contractions
OTHERS = [
    ("auto", False),
    ("disk", False),
    ("auto", True),
]  # of places, and whether there are triple excitations


def converged(mf):
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
    mf.kernel()
    return mf


def pyscfs(fitted: bool):
    mf = scf.RHF(gto.M(atom=WATER, basis="6-31g*", verbose=0))
    return converged(mf.density_fit() if fitted else mf).nuc_grad_method().kernel()


@pytest.mark.parametrize("storage", [pytest.param("auto", marks=pytest.mark.long), "disk"])
def test_with_fitted_integrals_it_is_pyscfs(comm, computed_once, storage):
    expected = computed_once("fitted", lambda: pyscfs(True))
    with ri.RHF(gto.M(atom=WATER, basis="6-31g*", verbose=0), storage=storage) as mf:
        found = converged(mf).nuc_grad_method().kernel()
        assert found == pytest.approx(expected, abs=1e-8)
        every = mf.with_df.world.gather(found)
    assert all((each == found).all() for each in every)


def test_with_exact_integrals_it_is_pyscfs(comm, computed_once):
    expected = computed_once("exact", lambda: pyscfs(False))
    with hf.RHF(gto.M(atom=WATER, basis="6-31g*", verbose=0), storage="direct") as mf:
        found = converged(mf).nuc_grad_method().kernel()
    assert found == pytest.approx(expected, abs=1e-8)


SCFS = {
    "stored": (hf.RHF, {"storage": "disk"}, WATER, 0),
    "UHF": (ri.UHF, {}, AMINO, 1),
    "ROHF": (ri.ROHF, {"storage": "disk"}, AMINO, 1),
    "stored UHF": (hf.UHF, {"storage": "disk"}, AMINO, 1),
    "ROHF, exact": (hf.ROHF, {"storage": "direct"}, AMINO, 1),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in ("stored", "ROHF", "stored UHF") else pytest.mark.long)
        for each in SCFS
    ],
)
def test_of_every_scf_it_is_that_of_one_process(comm, computed_once, name):
    method, given, atoms, spin = SCFS[name]
    mol = gto.M(atom=atoms, basis="6-31g", spin=spin, verbose=0)

    def gradient(alone: bool):
        with method(mol, **given, **({"comm": None} if alone else {})) as mf:
            return converged(mf).nuc_grad_method().kernel()

    expected = computed_once(name, lambda: gradient(True))
    assert gradient(False) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "storage"),
    [
        pytest.param("RHF", "auto", marks=pytest.mark.long),
        ("RHF", "disk"),
        ("UHF", "auto"),
        pytest.param("UHF", "disk", marks=pytest.mark.long),
    ],
)
def test_of_mp2_it_is_that_of_one_process(comm, computed_once, kind, storage):
    atoms, spin = (WATER, 0) if kind == "RHF" else (AMINO, 1)
    mol = gto.M(atom=atoms, basis="6-31g", spin=spin, verbose=0)

    def gradient(alone: bool):
        with getattr(ri, kind)(mol, **({"comm": None} if alone else {})) as mf:
            converged(mf)
            mp2 = MP2(mf, 1, storage=storage, **({"comm": None} if alone else {}))
            found = mp2.nuc_grad_method().kernel()
            mp2.close()
        return found

    expected = computed_once(f"{kind}-MP2", lambda: gradient(True))
    assert gradient(False) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("storage", "triples"),
    [("disk", True), *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)],
)
def test_of_ccsd_it_is_that_of_one_process(comm, computed_once, storage, triples):
    mol = gto.M(atom=WATER, basis="6-31g", verbose=0)

    def gradient(alone: bool):
        given = {"memory": "4GB", "ladder": "rebuild", **({"comm": None} if alone else {})}
        with (
            ri.RHF(mol, **({"comm": None} if alone else {})) as mf,
            CCSD(converged(mf), 1, threads=1, storage=storage, **LOOSE, **given) as cc,
        ):
            cc.kernel()
            if triples:
                cc.ccsd_t(derivatives=True)
            return cc.nuc_grad_method().kernel()

    expected = computed_once(f"ccsd {triples}", lambda: gradient(True))
    assert gradient(False) == pytest.approx(expected, abs=1e-9)


def test_slabs_of_one_process_are_not_made_again_on_all(comm, computed_once, shared_tmp_path, monkeypatch):
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    mol = gto.M(atom=WATER, basis="sto-3g", verbose=0)
    mf = computed_once("SCF", lambda: converged(scf.RHF(mol)))
    settings = {"threads": 1, "memory": "4GB", "integrals": "ri", "auxbasis": "cc-pvdz-ri"}
    limits = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7}
    told = []

    def gradient(last: int | None = None, **given):
        def tell(part, fraction):
            told.append(part)
            if told.count("derivatives of CCSD's integrals") == last:
                raise KeyboardInterrupt

        with CCSD(mf, 1, **settings, **limits, **given) as cc:
            cc.on_progress = tell
            cc.kernel()
            if last is None:
                return cc.nuc_grad_method().kernel()
            with pytest.raises(KeyboardInterrupt):
                cc.nuc_grad_method().kernel()
            return None

    directory = shared_tmp_path / "kept"
    expected = computed_once("kept, alone", lambda: gradient(comm=None))
    slabs = computed_once("kept, slabs", lambda: told.count("derivatives of CCSD's integrals") - 1)
    told.clear()

    def stopped():
        gradient(2, comm=None, checkpoint=directory)
        gc.collect()  # frames of the error hold open objects

    computed_once("kept, stopped", stopped)
    told.clear()
    assert gradient(checkpoint=directory) == pytest.approx(expected, abs=1e-9)
    ends = comm.size  # each process reports this
    assert comm.allreduce(told.count("derivatives of CCSD's integrals")) - ends < slabs


@pytest.mark.parametrize(
    ("storage", "triples"),
    [("disk", True), *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)],
)
@pytest.mark.timeout(240, method="thread")
@pytest.mark.processes(2)
def test_of_ccsd_of_open_shells_it_is_that_of_one_process(comm, computed_once, storage, triples):
    mol = gto.M(atom=HYDROXYL, spin=1, basis="sto-3g", verbose=0)

    def gradient(alone: bool):
        given = {"memory": "4GB", "ladder": "rebuild", "block": 4, **({"comm": None} if alone else {})}
        with (
            ri.UHF(mol, **({"comm": None} if alone else {})) as mf,
            CCSD(converged(mf), 1, threads=1, storage=storage, **ONE, **given) as cc,
        ):
            cc.kernel()
            if triples:
                cc.ccsd_t(derivatives=True)
            return cc.nuc_grad_method().kernel()

    expected = computed_once(f"open ccsd {triples}", lambda: gradient(True))
    assert gradient(False) == pytest.approx(expected, abs=1e-9)
