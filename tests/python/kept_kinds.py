"""Checkpoints of chemistry, made and read for tests that damage them. The numbers that are read depend on all
of a checkpoint."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pyscf import gto
from pyscf import scf as reference

import outcore
from outcore import _core
from outcore.chem import ri
from outcore.chem.hf import scf
from outcore.chem.molecule import native_basis
from outcore.chem.mp2 import MP2
from outcore.chem.reference import mark_canonical

SCREENING = 1e-12
RECORD = 1 << 16  # bytes
_DIGITS = 9  # that do not depend on whether something was recomputed


@cache
def orbitals() -> Any:
    mf = reference.RHF(gto.M(atom="H 0 0 0; F 0 0 0.917", basis="sto-3g", verbose=0))
    mf.conv_tol = 1e-12
    mf.run()
    mark_canonical(mf)
    return mf


def read_integrals(world: outcore.World, place: Path, way: str = "mixed") -> Any:
    """The energy and its derivatives by the density; missing integrals are recomputed."""
    settings = {"storage": way, "screening": SCREENING, "threads": 1, "record_bytes": 1 << 16}
    if way == "mixed":
        settings["disk_bytes"] = 1 << 17  # not all finds a place
    with scf.RHF(orbitals().mol, comm=world, keep=str(place), **settings) as mf:
        potential = mf.get_veff(dm=orbitals().make_rdm1())
    return np.round(np.asarray(potential), _DIGITS)


def make_integrals(world: outcore.World, place: Path, seed: int) -> None:
    read_integrals(world, place)


def native_integrals() -> tuple[_core.TwoElectron, _core.Screening]:
    """Native integrals of a small molecule, for reading records that are not trusted."""
    mol = gto.M(atom="H 0 0 0; H 0 0 0.7", basis="6-31g", verbose=0)
    basis = native_basis(mol)
    screening = _core.Screening(basis, SCREENING, 1)
    return _core.TwoElectron(basis, screening, _core.KeepRule(True), 1), screening


def native_options(scratch: Path, kept_name: str = "") -> _core.IntegralFileOptions:
    return _core.IntegralFileOptions(
        scratch=str(scratch),
        record_bytes=RECORD,
        prefetch=2,
        accuracy=_core.Accuracy(SCREENING),
        page_cache="buffered",
        expected_bytes=0,
        memory_bytes=0,
        disk_bytes=1 << 40,
        small_below=0.0,
        may_overflow=False,
        kept_name=kept_name,
    )


def contract(native: _core.TwoElectron) -> Any:
    """J and K from the records."""
    native.begin(np.ones((1, 4, 4)), [1], 0.0)
    native.contract_kept(None)
    return native.end(1)


def read_fitted(world: outcore.World, place: Path) -> Any:
    """Numbers from three-index integrals, and from the stages of MP2."""
    mf = orbitals()
    fitting = ri.DensityFitting(
        mf.mol, "def2-svp-jkfit", comm=world, memory="2GB", threads=1, checkpoint=place
    )
    try:
        exchange = fitting.get_jk(mf.make_rdm1())[1]
    finally:
        fitting.close_integrals()
    mp2 = MP2(mf, auxbasis="def2-svp-ri", comm=world, memory="2GB", threads=1, checkpoint=place)
    mp2.kernel()
    return np.round(exchange, _DIGITS), np.round(mp2.pair_energies["os"], _DIGITS)


def make_fitted(world: outcore.World, place: Path, seed: int) -> None:
    read_fitted(world, place)
