"""States of EOM-CCSD on several processes: energies are those of one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "cc"))
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States
from outcore.keep import clock

SETTINGS = {"memory": "4GB", "threads": 1, "conv_tol": 1e-4, "conv_tol_normt": 1e-3}
EE, TRIPLETS = ("ee", None), ("ee", 3)
KINDS = {"memory": (EE, TRIPLETS), "disk": (EE, TRIPLETS, ("ip", None), ("ea", None))}


def energies(mf: Any, comm: Any, where: str = "disk", **settings: Any) -> list[float]:
    """Energies of states of each kind; the steps to them are the same for any number of processes, so they
    may end early."""
    with CCSD(mf, 1, comm=comm, **SETTINGS | settings) as cc:
        cc.kernel()
        return [
            float(cc.states(kind, multiplicity=multiplicity, tolerance=1e-2).energies[0])
            for kind, multiplicity in KINDS[where]
        ]


def make(where: str) -> tuple[Any, list[float]]:
    mf = mean_field(WATER, "sto-3g")
    return mf, energies(mf, None, where, **placed(where))


def placed(where: str) -> dict[str, Any]:
    return {"ladder": where, "block": 1, "storage": "disk" if where == "disk" else "auto"}


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_energies_do_not_depend_on_processes(comm: Any, computed_once: Any, where: str) -> None:
    mf, expected = computed_once(f"states of water, {where}", lambda: make(where))
    found = energies(mf, comm, where, **placed(where))
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_search_of_one_process_goes_on_at_all(
    comm: Any, computed_once: Any, shared_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = computed_once("water", lambda: mean_field(WATER, "sto-3g"))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    settings: Any = SETTINGS | {"checkpoint": shared_tmp_path / "kept"}

    def begin() -> list[float]:
        def stop(found: Any) -> None:
            if found.number == 3:
                raise KeyboardInterrupt

        with CCSD(mf, 1, comm=None, **settings) as cc:
            cc.kernel()
            with pytest.raises(KeyboardInterrupt):
                States(cc, "ee", StateSettings(tolerance=1e-7), stop)
        with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
            cc.kernel()
            return [float(cc.states("ee", tolerance=1e-7).energies[0])]

    (expected,) = computed_once("a search that was ended", begin)
    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.kernel()
        states = cc.states("ee", tolerance=1e-7)
    assert states.found
    assert states.energies[0] == pytest.approx(expected, abs=1e-7)


def strengths(mf: Any, comm: Any, **settings: Any) -> list[float]:
    with CCSD(mf, 1, comm=comm, **SETTINGS | settings) as cc:
        cc.kernel()
        states = cc.states("ee", tolerance=1e-7)
        return [float(each) for each in states.properties().oscillator_strengths]


def make_strengths() -> tuple[Any, list[float]]:
    mf = mean_field(WATER, "sto-3g")
    return mf, strengths(mf, None)


@pytest.mark.processes(2)  # some thousand small contractions
def test_strengths_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    mf, expected = computed_once("strengths of water", make_strengths)
    found = strengths(mf, comm, ladder="disk", block=1, storage="disk")
    assert found == pytest.approx(expected, abs=1e-7)


def open_energies(comm: Any, mf: Any, **settings: Any) -> list[float]:
    with CCSD(mf, 1, comm=comm, **SETTINGS | settings) as cc:
        cc.kernel()
        return [float(cc.states(kind, tolerance=3e-2).energies[0]) for kind in ("ee", "sf", "ip", "ea")]


def make_open() -> tuple[Any, list[float]]:
    mf = open_mean_field("UHF", AMINO, "sto-3g")
    return mf, open_energies(None, mf)


@pytest.mark.processes(2)  # some thousand small contractions
def test_energies_of_open_shells_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    mf, expected = computed_once("states of amino", make_open)
    found = open_energies(comm, mf, ladder="disk", block=4, storage="disk")
    assert found == pytest.approx(expected, abs=1e-7)


def poles(mf: Any, comm: Any, kind: str, **settings: Any) -> list[float]:
    with CCSD(mf, 0, comm=comm, **SETTINGS | settings) as cc:
        cc.kernel()
        found = cc.states(kind, tolerance=1e-6).properties()
        return [*map(float, found.pole_strengths), *map(float, found.dipoles[0])]


def make_poles(mf: Any) -> tuple[Any, list[float]]:
    return mf, poles(mf, None, "ea")


HYDROGENS = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2; H 1.8 0.9 0.4"


@pytest.mark.processes(2)  # some thousand small contractions
@pytest.mark.parametrize("charge", [-1, 0], ids=["closed", "open"])
def test_ions_do_not_depend_on_processes(comm: Any, computed_once: Any, charge: int) -> None:
    mf, expected = computed_once(
        f"poles of hydrogens, charge {charge}",
        lambda: make_poles(
            open_mean_field("UHF" if charge == 0 else "RHF", (HYDROGENS, charge, charge + 1), "sto-3g")
        ),
    )
    found = poles(mf, comm, "ea", ladder="disk", block=1, storage="disk")
    assert found == pytest.approx(expected, abs=1e-5)
