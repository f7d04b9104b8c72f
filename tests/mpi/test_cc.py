"""Coupled cluster on several processes: the energies of one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "cc"))
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD

SETTINGS = {"memory": "4GB", "threads": 1, "block": 5, "conv_tol": 1e-4, "conv_tol_normt": 1e-3}


def make() -> tuple[Any, float, float]:
    """The reference, and energies of one process."""
    mf = mean_field(WATER, "6-31g")
    with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
        return mf, cc.kernel(), cc.ccsd_t()


@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_energies_do_not_depend_on_processes(comm: Any, computed_once: Any, storage: str) -> None:
    mf, energy, triples = computed_once("ccsd of water", make)
    with CCSD(mf, 1, comm=comm, storage=storage, **SETTINGS) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert cc.converged
    assert abs(cc.e_corr - energy) < 1e-9
    assert abs(cc.e_t - triples) < 1e-9


def make_open() -> tuple[Any, float, float]:
    mf = open_mean_field("UHF", AMINO, "6-31g")
    with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
        return mf, cc.kernel(), cc.ccsd_t()


def test_energies_of_open_shells_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    mf, energy, triples = computed_once("ccsd of an open shell", make_open)
    with CCSD(mf, 1, comm=comm, storage="disk", **SETTINGS | {"block": 3}) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert cc.converged
    assert abs(cc.e_corr - energy) < 1e-9
    assert abs(cc.e_t - triples) < 1e-9
