"""Coupled cluster on several processes: energies are those of one process."""

from __future__ import annotations

import errno
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "cc"))
from cc_support import (
    AMINO,
    IMIDOGEN,
    WATER,
    files_of_arrays,
    flip_a_bit,
    mean_field,
    open_mean_field,
    with_signs,
)

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.equations.restricted import RestrictedEquations
from outcore.chem.cc.equations.triples import Triples
from outcore.chem.cc.keep.kept_steps import KeptRows
from outcore.chem.cc.plan import fitting
from outcore.chem.doubts import DoubtfulResult
from outcore.keep import clock

SETTINGS = {"memory": "4GB", "threads": 1, "block": 5, "conv_tol": 1e-4, "conv_tol_normt": 1e-3}


def make() -> tuple[Any, float, float]:
    """The reference, and energies of one process."""
    mf = mean_field(WATER, "6-31g")
    with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
        return mf, cc.kernel()[0], cc.ccsd_t()


@pytest.mark.parametrize("storage", [pytest.param("auto", marks=pytest.mark.long), "disk"])
def test_energies_do_not_depend_on_processes(comm: Any, computed_once: Any, storage: str) -> None:
    mf, energy, triples = computed_once("ccsd of water", make)
    with CCSD(mf, 1, comm=comm, storage=storage, **SETTINGS) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert cc.converged
    assert abs(cc.e_corr - energy) < 1e-9
    assert abs(cc.e_t - triples) < 1e-9


@pytest.mark.processes(2)
@pytest.mark.parametrize(
    "method",
    [
        "dcsd",
        pytest.param("ccd", marks=pytest.mark.long),
        pytest.param("lccd", marks=pytest.mark.long),
        "cc2",
    ],
)
def test_energies_of_other_methods_do_not_depend_on_processes(
    comm: Any, computed_once: Any, method: str
) -> None:
    """One process has all arrays in memory."""
    mf = computed_once("water", lambda: mean_field(WATER, "6-31g"))
    settings: Any = {
        "memory": "4GB",
        "threads": 1,
        "method": method,
        "conv_tol": 1e-10,
        "conv_tol_normt": 1e-8,
    }
    if method != "cc2":  # which has no ladder
        settings["ladder"] = "rebuild"

    def one() -> float:
        with CCSD(mf, 1, comm=None, **settings) as cc:
            return float(cc.kernel()[0])

    expected = computed_once(f"water, {method}", one)
    with CCSD(mf, 1, comm=comm, storage="disk", block=5, **settings) as cc:
        found = cc.kernel()[0]
    assert cc.converged
    assert abs(found - expected) < 1e-9


def make_open() -> tuple[Any, float, float]:
    mf = open_mean_field("UHF", IMIDOGEN, "6-31g")
    with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
        return mf, cc.kernel()[0], cc.ccsd_t()


def test_energies_of_open_shells_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    mf, energy, triples = computed_once("ccsd of an open shell", make_open)
    with CCSD(mf, 1, comm=comm, storage="disk", **SETTINGS | {"block": 3}) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert cc.converged
    assert abs(cc.e_corr - energy) < 1e-9
    assert abs(cc.e_t - triples) < 1e-9


def test_multipliers_of_open_shells_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    def solved(**given: Any) -> list[Any]:
        steps = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}  # those of one process, converged or not
        mf = with_signs(open_mean_field("UHF", AMINO, "sto-3g"))
        with CCSD(mf, 1, memory="4GB", threads=1, **steps, **given) as cc:
            cc.kernel()
            l1, l2 = cc.solve_lambda()
            return [*l1, *map(np.asarray, l2), *cc.make_rdm1()]

    expected = computed_once("multipliers", lambda: solved(comm=None))
    for found, each in zip(solved(storage="disk"), expected, strict=True):
        assert abs(found - each).max() < 1e-9


@pytest.mark.processes(2)
def test_amplitudes_of_a_file_begin_a_run_of_any_processes(
    comm: Any, computed_once: Any, shared_tmp_path: Path
) -> None:
    pytest.importorskip("h5py")
    mf, energy, _ = computed_once("ccsd of water", make)
    paths = [shared_tmp_path / f"{name}.h5" for name in ("one", "all")]
    settings = SETTINGS | {"conv_tol": 1e-7, "conv_tol_normt": 1e-5}

    def save() -> float:
        with CCSD(mf, 1, comm=None, **settings) as cc:
            cc.kernel()
            cc.save_amplitudes(paths[0])
            return float(cc.e_corr)

    energy = computed_once("amplitudes of water", save)
    with CCSD(mf, 1, comm=comm, storage="disk", from_amplitudes=paths[0], **settings | {"block": 3}) as cc:
        cc.kernel()
        assert len(cc.iterations) <= 2
        assert abs(cc.iterations[0].energy - energy) < 1e-7
        cc.save_amplitudes(paths[1])
        mine = cc.amplitudes()
    with CCSD(mf, 1, comm=None, from_amplitudes=paths[1], **settings) as cc:
        cc.set_up()
        for one, other in zip(cc.amplitudes(), mine, strict=True):
            assert abs(one - other).max() < 1e-12


@pytest.mark.processes(2)
def test_damaged_integrals_are_an_error_of_all(
    comm: Any, computed_once: Any, shared_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = computed_once("water in a larger basis", lambda: mean_field(WATER, "aug-cc-pvdz"))
    for each in ("CACHE_BYTES", "_LARGEST_CACHE"):
        monkeypatch.setattr(fitting, each, 512)
    files = files_of_arrays(monkeypatch)
    options = {"storage": "disk", "ladder": "disk", "scratch": str(shared_tmp_path)}
    cc = CCSD(mf, 1, comm=comm, memory="4GB", threads=1, **options)
    cc.set_up()
    if comm.rank == 0:
        flip_a_bit(files["V+"])
    comm.Barrier()
    with pytest.raises(OutcoreError, match="checksum") as caught:
        cc.kernel()
    assert set(comm.allgather(caught.value.errno)) == {errno.EIO}


@pytest.mark.parametrize("method", [pytest.param("_exchange_rings", marks=pytest.mark.long), "_add_pairs"])
def test_an_iteration_of_one_process_goes_on_on_all(
    comm: Any, computed_once: Any, shared_tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf, energy, _ = computed_once("ccsd of water", make)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    settings = SETTINGS | {"checkpoint": shared_tmp_path / "kept"}

    def begin() -> int:
        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, CCSD(mf, 1, comm=None, **settings) as cc:
            cc.prepare()
            patched.setattr(RestrictedEquations, method, stop)
            with pytest.raises(KeyboardInterrupt):
                cc.kernel()
        return 0

    computed_once(f"amplitudes, and what is before {method}", begin)
    rows: list[int] = []
    right = KeptRows.finish
    monkeypatch.setattr(
        KeptRows, "finish", lambda self, part, row: (rows.append(row), right(self, part, row))
    )
    before: list[int] = []
    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.on_iteration = lambda found: before.append(len(rows))
        cc.kernel()
    assert sum(comm.allgather(before[0])) == 0
    assert sum(comm.allgather(before[1])) > 0
    assert cc.converged
    assert abs(cc.e_corr - energy) < 1e-9
    comm.Barrier()
    assert not list((shared_tmp_path / "kept").glob("iteration.*"))


@pytest.mark.processes(2)
def test_an_error_in_triples_leaves_no_tasks_to_others(
    comm: Any, computed_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf, _, _ = computed_once("ccsd of water", make)
    done: list[Any] = []

    def work(_: Any, task: Any) -> float:
        if comm.rank == 0:
            raise OutcoreError(errno.EIO, "read a tile")
        time.sleep(0.05)
        done.append(task)
        return 0.0

    with CCSD(mf, 1, comm=comm, **SETTINGS | {"block": 1}) as cc:
        cc.kernel()
        monkeypatch.setattr(Triples, "_task", work)
        with pytest.raises(OutcoreError, match="read a tile"):
            cc.ccsd_t()
    assert len(done) <= 4  # of 36 tasks


def test_a_doubtful_result_is_told_to_all_and_warned_of_by_one(comm: Any) -> None:
    mf = mean_field(WATER, "sto-3g").copy()
    mf.mo_occ, mf.converged = mf.mo_occ.copy(), False
    mf.mo_occ[[4, 5]] = 0, 2
    said: list[str] = []
    swapped = {"frozen": [5], "frozen_virtual": [4], "force": True, "integrals": "conventional"}
    with CCSD(mf, comm=comm, max_cycle=1, memory="4GB", threads=1, **swapped) as cc:
        cc.on_warning = said.append
        cc.kernel()
        cc.on_warning = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cc.kernel()
    assert "the determinant is not the lowest of its occupation" in said[0]
    assert comm.allgather(said) == [said] * comm.size
    ours = [str(each.message) for each in caught if each.category is DoubtfulResult]
    assert comm.allgather(ours) == [said] + [[]] * (comm.size - 1)


@pytest.mark.processes(2)
def test_an_error_at_one_process_ends_all_and_what_was_kept_can_be_opened(
    comm: Any, computed_once: Any, shared_tmp_path: Path
) -> None:
    mf, energy, _ = computed_once("ccsd of water", make)
    kept = {**SETTINGS, "checkpoint": shared_tmp_path / "kept"}

    def stop(found: Any) -> None:
        if found.number == 3 and comm.rank == comm.size - 1:
            raise KeyError

    with pytest.raises(KeyError if comm.rank == comm.size - 1 else OutcoreError) as held:  # noqa: SIM117
        with CCSD(mf, 1, comm=comm, **kept) as cc:
            cc.on_iteration = stop
            cc.kernel()
    with CCSD(mf, 1, comm=comm, **kept) as cc:
        assert cc.kernel()[0] == pytest.approx(energy, abs=1e-4)
    assert held.traceback
