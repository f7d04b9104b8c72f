"""Coupled cluster goes on from what another run has kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore import OutcoreError
from outcore.chem.cc import CCSD, fno, kept, orbitals

LIMITS = {"conv_tol": 1e-8, "conv_tol_normt": 1e-6, "threads": 1}


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def imidogen() -> Any:
    return open_mean_field("UHF", IMIDOGEN, "6-31g")


@pytest.fixture(scope="module")
def wanted(water: Any) -> tuple[float, float]:
    with CCSD(water, 1, comm=None, memory="500MB", **LIMITS) as cc:
        return cc.kernel(), cc.ccsd_t()


def start(mf: Any, directory: Path, **settings: Any) -> CCSD:
    return CCSD(mf, 1, comm=None, memory="500MB", checkpoint=directory, **{**LIMITS, **settings})


def test_a_run_goes_on_from_the_amplitudes_of_another(
    water: Any, wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "INTERVAL_S", 0.0)
    with start(water, tmp_path / "kept", max_cycle=3, block=8) as first:
        first.kernel()
        assert not first.converged
    with start(water, tmp_path / "kept", block=3) as second:
        second.kernel()
        assert second.found == 3
        assert second.converged
        assert second.iterations[0].number == 4
    assert abs(second.e_corr - wanted[0]) < 1e-8


@pytest.mark.parametrize("name", ["water", "imidogen"])
def test_triples_go_on_where_a_run_was_ended(
    name: str, request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = request.getfixturevalue(name)
    monkeypatch.setattr(kept, "INTERVAL_S", 0.0)
    told: list[float] = []

    def stop_after_two(part: str, fraction: float) -> None:
        if part == "triple excitations":
            told.append(fraction)
            if len(told) == 3:
                raise KeyboardInterrupt

    loose = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}
    with start(mf, tmp_path / "kept", block=2, **loose) as first:
        first.kernel()
        first.on_progress = stop_after_two
        with pytest.raises(KeyboardInterrupt):
            first.ccsd_t()
    tasks = round(1 / told[0])
    told.clear()
    with start(mf, tmp_path / "kept", block=3, **loose) as second:
        second.kernel()
        assert second.converged
        assert not second.iterations
        second.on_progress = lambda part, fraction: told.append(fraction)
        energy = second.ccsd_t()
    assert len(told) == tasks - 2
    with start(mf, tmp_path / "other", **loose) as whole:
        whole.kernel()
        assert abs(energy - whole.ccsd_t()) < 1e-9


def test_amplitudes_of_another_problem_are_refused(water: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", max_cycle=1, conv_tol=0.9, conv_tol_normt=0.9) as first:
        first.kernel()
    with pytest.raises(OutcoreError, match="frozen = 1, now it is 0"):
        CCSD(water, comm=None, memory="500MB", checkpoint=tmp_path / "kept").kernel()


def test_amplitudes_of_orbitals_that_were_made_anew_are_refused(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"fno": 1e-3, "max_cycle": 1, "conv_tol": 0.9, "conv_tol_normt": 0.9}
    with start(water, tmp_path / "kept", **settings) as first:
        first.kernel()
    with start(water, tmp_path / "kept", **settings) as again:
        again.kernel()
        assert again.found == 1
    right = orbitals.eigenvectors
    monkeypatch.setattr(fno, "eigenvectors", lambda matrix: -right(matrix))
    with pytest.raises(OutcoreError, match="it is of other orbitals"):
        start(water, tmp_path / "kept", **settings).kernel()


def test_looser_amplitudes_are_a_start(water: Any, wanted: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", conv_tol=1e-3, conv_tol_normt=1e-1) as first:
        first.kernel()
        assert first.converged
    with start(water, tmp_path / "kept") as second:
        second.kernel()
        assert second.iterations
        assert second.converged
    assert abs(second.e_corr - wanted[0]) < 1e-8


def test_damaged_amplitudes_are_named(water: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", max_cycle=1, conv_tol=0.9, conv_tol_normt=0.9) as first:
        first.kernel()
    for path in (tmp_path / "kept" / kept.AMPLITUDES).rglob("*"):
        if path.is_file() and path.stat().st_size > 4096:
            data = bytearray(path.read_bytes())
            middle = len(data) // 2
            data[middle - 1000 : middle + 1000] = bytes(2000)
            path.write_bytes(data)
    with pytest.raises(OutcoreError, match=kept.AMPLITUDES):
        start(water, tmp_path / "kept").kernel()
