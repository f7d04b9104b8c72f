"""Forecasts of the resources of a run, against the actual ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from outcore import World, _core
from outcore.chem.hf import scf
from outcore.chem.hf.estimate import forecast
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.settings import Settings

pyscf = pytest.importorskip("pyscf")
from pyscf import gto  # noqa: E402

MOLECULES = {
    "benzene": {
        "atom": "C 0 1.396 0; C 1.209 .698 0; C 1.209 -.698 0; C 0 -1.396 0; C -1.209 -.698 0; C -1.209 .698 0;"
        "H 0 2.479 0; H 2.147 1.24 0; H 2.147 -1.24 0; H 0 -2.479 0; H -2.147 -1.24 0; H -2.147 1.24 0",
        "basis": "6-31g",
    },
    "water": {"atom": "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", "basis": "cc-pvtz"},
}


@pytest.mark.parametrize("name", MOLECULES)
def test_integrals_and_bytes_are_foretold(name, tmp_path):
    mol = gto.M(verbose=0, **MOLECULES[name])
    with World("self") as world:
        found = forecast(mol, Settings(scratch=str(tmp_path)), world)
    with scf.RHF(mol, comm=None, scratch=str(tmp_path)) as mf:
        stored = mf.two_electron.summary()
    assert found.ways["disk"].kept == pytest.approx(stored.computed, rel=0.1)
    assert found.ways["disk"].bytes == pytest.approx(stored.bytes, rel=0.1)
    assert found.ways["direct"].bytes == 0


def test_the_ways_are_ordered_by_what_they_keep(tmp_path):
    mol = gto.M(verbose=0, **MOLECULES["benzene"])
    with World("self") as world:
        found = forecast(mol, Settings("auto", scratch=str(tmp_path), disk_bytes=400_000), world)
    disk, mixed, direct, auto = found.ways.values()
    assert direct.bytes < mixed.bytes <= 400_000 < disk.bytes
    assert direct.kept < mixed.kept < disk.kept
    assert disk.seconds < direct.seconds  # ten times; that of mixed comes from another sample
    assert auto.seconds <= disk.seconds * 1.001  # all of it fits into memory


def test_the_margin_of_a_disk_is_left_once(tmp_path, monkeypatch):
    """Records may take all that is free; the rule plans for less."""
    free = 400_000
    monkeypatch.setattr(_core, "file_system", lambda _: SimpleNamespace(free_bytes=free, network=False))
    with World("self") as world:
        mol = gto.M(verbose=0, **MOLECULES["benzene"])
        integrals = TwoElectronIntegrals(mol, Settings("mixed", scratch=str(tmp_path)), world=world)
        assert integrals.estimate().disk_bytes == free
        assert integrals.rule.least == integrals.survey().rule(0, free).least > 0
        integrals.close()
