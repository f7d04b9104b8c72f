"""Room on disks for the stages after iterations: it is checked before they begin, with numbers."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from outcore import OutcoreError, _core, trace
from outcore.chem.cc import CCSD, disks
from outcore.chem.cc.least import AfterIterations
from outcore.chem.cc.plan import fitting
from outcore.job import scratch

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0.1 -0.7572 -0.4692"
HYDROXYL = "O 0 0 0; H 0 0.3 0.9"
OF_GRADIENT = AfterIterations(triples=True, multipliers=True, relaxed=True, gradient=True)
LOOSE = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}


def mean_field(atoms: str, spin: int = 0, basis: str = "sto-3g") -> Any:
    import pyscf

    mol = pyscf.M(atom=atoms, spin=spin, basis=basis, verbose=0)
    mf = (mol.UHF() if spin else mol.RHF()).density_fit(auxbasis="cc-pvdz-jkfit")
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-9
    return mf.run()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((WATER, 0), id="closed"),
        pytest.param((HYDROXYL, 1), id="open", marks=pytest.mark.long),
    ],
)
def molecule(request: pytest.FixtureRequest) -> Any:
    return mean_field(*request.param)


def start(mf: Any, folder: Path, **settings: Any) -> CCSD:
    given = {
        "memory": "1GB",
        "threads": 1,
        "auxbasis": "cc-pvdz-ri",
        "storage": "disk",
        "ladder": "rebuild",
    }
    return CCSD(mf, 1, comm=None, scratch=str(folder), **{**given, **LOOSE, **settings})


def leave(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    """Disks have so many free bytes from now on."""
    system = SimpleNamespace(free_bytes=free_bytes, network=False)
    monkeypatch.setattr(scratch, "_core", SimpleNamespace(file_system=lambda _: system))


def refused(caught: Any, stage: str, path: Path) -> None:
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.path == str(path)
    assert stage in str(caught.value)


def test_a_gradient_is_refused_before_the_first_iteration(
    molecule: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(molecule, tmp_path) as cc:
        iterations = cc.prepare().disk_bytes
        needs = disks.stages(disks.plans_of(cc, OF_GRADIENT))
        stage = max(needs, key=lambda name: needs[name].arrays)
        assert needs[stage].arrays > iterations
        leave(monkeypatch, needs[stage].arrays - 1)
        cc.has_triples = True
        with pytest.raises(OutcoreError, match=r"arrays take [\d.]+ .B, there are [\d.]+ .B") as caught:
            cc.relaxed_densities(gradient=True)
        refused(caught, stage, tmp_path)
        assert not cc.iterations
    leave(monkeypatch, needs[stage].arrays)
    with start(molecule, tmp_path) as cc:  # the same room is enough for iterations alone, and for this check
        cc.follows = OF_GRADIENT
        cc.kernel()
        assert cc.converged


def test_a_checkpoint_needs_room_for_all_stages(
    molecule: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(molecule, tmp_path, storage="auto", checkpoint=tmp_path / "kept") as cc:
        cc.prepare()
        needs = disks.stages(disks.plans_of(cc, OF_GRADIENT))
        assert [each.arrays for each in needs.values()][:2] == [0, 0]
        most = max(each.kept for each in needs.values())
        leave(monkeypatch, 2 * most - 1)
        cc.has_triples = True
        with pytest.raises(OutcoreError, match="arrays take") as caught:
            cc.relaxed_densities(gradient=True)
        refused(caught, disks.LAMBDA, tmp_path / "kept")
        assert not cc.iterations


def test_each_stage_is_refused_before_its_work(
    molecule: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "check", lambda *_: None)  # as if the disk had filled since
    told: list[str] = []
    with start(molecule, tmp_path) as cc:
        cc.on_progress = lambda part, _: told.append(part)
        cc.kernel()
        with monkeypatch.context() as patch:
            leave(patch, 0)
            with pytest.raises(OutcoreError) as caught:
                cc.ccsd_t(derivatives=True)
            refused(caught, disks.TRIPLES, tmp_path)
        assert "derivatives of triples" not in told
    with start(molecule, tmp_path) as cc:
        cc.on_progress = lambda part, _: told.append(part)
        cc.kernel()
        with monkeypatch.context() as patch:
            leave(patch, 0)
            with pytest.raises(OutcoreError) as caught:
                cc.solve_lambda()
            refused(caught, disks.LAMBDA, tmp_path)
        assert not any(part.startswith("Lambda iteration") for part in told)
    with start(molecule, tmp_path) as cc:
        cc.kernel()
        cc.solve_lambda()
        leave(monkeypatch, disks.of_densities(cc.multipliers.room.plan.sizes) - 1)
        with pytest.raises(OutcoreError) as caught:
            cc.nuc_grad_method().kernel()
        refused(caught, disks.DENSITIES, tmp_path)


def test_what_the_checkpoint_gets_is_what_was_predicted(molecule: Any, tmp_path: Path) -> None:
    """Names of kept arrays come from the equations; those of the account must not fall behind."""
    kept = tmp_path / "kept"
    with start(molecule, tmp_path, checkpoint=kept) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        plans = disks.plans_of(cc, OF_GRADIENT)
        sums = disks._SUMS & set(plans[disks.TRIPLES].arrays)
        assert len(list(kept.glob("derivatives.*"))) == len(sums)


def test_stages_take_as_much_disk_space_as_was_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CACHE_BYTES", "_LARGEST_CACHE"):  # caches of the usual size would hold the arrays
        monkeypatch.setattr(fitting, name, 4096)
    mf = mean_field(WATER, basis="6-31g")
    with start(mf, tmp_path) as cc:
        cc.kernel()
        plans = disks.plans_of(cc, OF_GRADIENT)
        most = max(each.arrays for each in disks.stages(plans).values())
        arrays = max(len(each.arrays) for each in plans.values())
        trace.reset()
        cc.ccsd_t(derivatives=True)
        cc.nuc_grad_method().kernel()
        used = _core.peak_disk_bytes()
    assert most / 2 < used < 1.2 * most + arrays * 8192  # whole blocks of each
