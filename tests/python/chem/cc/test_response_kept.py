"""The steps after converged amplitudes resume from the checkpoint of another run: derivatives of (T),
multipliers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.equations import stream
from outcore.chem.cc.equations.transposed import TransposedProducts
from outcore.chem.cc.equations.triple_derivatives import TripleDerivatives
from outcore.chem.cc.keep.kept_sums import KeptSums
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]
LIMITS = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}


@pytest.fixture(scope="module")
def water() -> Any:
    from pyscf import scf

    mol = mean_field(WATER, "6-31g").mol
    mf = scf.RHF(mol).density_fit(auxbasis="cc-pvdz-jkfit")
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    return mf.run()


def start(mf: Any, directory: Path | None, **settings: Any) -> CCSD:
    given: dict[str, Any] = {
        "memory": "1GB",
        "threads": 1,
        "ladder": "rebuild",
        "block": 3,
        **LIMITS,
        **settings,
    }
    return CCSD(mf, 1, comm=None, auxbasis="cc-pvdz-ri", checkpoint=directory, **given)


def density(cc: CCSD, *, triples: bool) -> Values:
    cc.kernel()
    if triples:
        cc.ccsd_t(derivatives=True)
    return np.asarray(cc.make_rdm1(relaxed=True))


@pytest.fixture(scope="module")
def amplitudes(water: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves whose amplitudes have converged."""
    directory = tmp_path_factory.mktemp("amplitudes") / "kept"
    with start(water, directory) as cc:
        cc.kernel()
    return directory


@pytest.fixture
def kept(amplitudes: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    return Path(shutil.copytree(amplitudes, tmp_path / "kept"))


@pytest.fixture(scope="module")
def finished(water: Any, amplitudes: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """What runs leave that nothing has ended, of CCSD and of CCSD(T), with what they found in a file beside it."""
    found = {}
    for triples in (False, True):
        found[triples] = tmp_path_factory.mktemp("finished") / "kept"
        shutil.copytree(amplitudes, found[triples])
        with start(water, found[triples]) as cc:
            made = density(cc, triples=triples)
            np.savez(found[triples].parent / "found.npz", density=made, e_t=cc.e_t)
    return found


def result(directory: Path, name: str) -> Values:
    with np.load(directory.parent / "found.npz") as found:
        values: Values = found[name]
        return values


@pytest.fixture(scope="module")
def wanted(finished: dict[bool, Path]) -> dict[bool, Values]:
    return {triples: result(each, "density") for triples, each in finished.items()}


def stop_in(cc: CCSD, part: str, count: int) -> list[float]:
    """Interrupts a run as Ctrl-C does, once this part has reported its progress `count` times."""
    told: list[float] = []

    def tell(name: str, fraction: float) -> None:
        if name == part:
            told.append(fraction)
            if len(told) == count:
                raise KeyboardInterrupt

    cc.on_progress = tell
    return told


def steps_of(cc: CCSD, patched: pytest.MonkeyPatch) -> tuple[dict[int, list[str]], list[str]]:
    """The steps that each Lambda iteration does from now on, in their order, and the parts as `parts_of`. Planning
    calls the same functions."""
    done: dict[int, list[str]] = {}
    parts = parts_of(cc)
    places = [
        (stream, "multiply", "ladder"),
        (TransposedProducts, "_direct_rings", "direct rings"),
        (TransposedProducts, "_exchange_rings", "exchange rings"),
    ]

    def noting(step: str, right: Any) -> Any:
        def noted(*given: Any) -> Any:
            if parts and parts[-1].startswith("Lambda iteration "):
                done.setdefault(int(parts[-1].split()[-1]), []).append(step)
            return right(*given)

        return noted

    for place, name, step in places:
        patched.setattr(place, name, noting(step, getattr(place, name)))
    return done, parts


def parts_of(cc: CCSD) -> list[str]:
    told: list[str] = []
    cc.on_progress = lambda name, _: told.append(name)
    return told


@pytest.mark.parametrize("block", [pytest.param(3, marks=pytest.mark.long), 2])
def test_derivatives_of_triples_go_on_where_a_run_was_ended(
    water: Any, wanted: Any, kept: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with start(water, kept) as first, pytest.raises(KeyboardInterrupt):
        told = stop_in(first, "derivatives of triples", 3)
        density(first, triples=True)
    tasks = round(1 / told[0])
    with start(water, kept, block=block) as second:
        parts = parts_of(second)
        assert abs(density(second, triples=True) - wanted[True]).max() < 1e-9
    assert 0 < parts.count("derivatives of triples") <= tasks - 2


def test_sums_of_a_run_that_was_killed_between_two_arrays_are_completed(
    water: Any, wanted: Any, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    keep = KeptSums._keep

    def stop_after_two(self: KeptSums) -> None:
        if self._done["S3"].sum() == 3:
            self._arrays = dict(list(self._arrays.items())[:2])
            keep(self)
            raise KeyboardInterrupt
        keep(self)

    with monkeypatch.context() as patched:
        patched.setattr(KeptSums, "_keep", stop_after_two)
        with start(water, kept) as first, pytest.raises(KeyboardInterrupt):
            density(first, triples=True)
    with start(water, kept) as second:
        assert abs(density(second, triples=True) - wanted[True]).max() < 1e-9


@pytest.mark.parametrize("triples", [pytest.param(False, marks=pytest.mark.long), True])
def test_multipliers_go_on_from_those_of_another_run(
    water: Any, wanted: Any, kept: Path, monkeypatch: pytest.MonkeyPatch, triples: bool
) -> None:
    with monkeypatch.context() as patched, start(water, kept) as first:
        patched.setattr(clock, "INTERVAL_S", 0.0)
        done, _ = steps_of(first, patched)
        made = TransposedProducts._exchange_rings

        def stop(self: TransposedProducts) -> None:
            if done.get(4):
                raise KeyboardInterrupt
            made(self)

        patched.setattr(TransposedProducts, "_exchange_rings", stop)
        with pytest.raises(KeyboardInterrupt):
            density(first, triples=triples)
    assert done[3][-3:] == ["ladder", "direct rings", "exchange rings"]
    assert done[4][-2:] == ["ladder", "direct rings"]
    with monkeypatch.context() as patched, start(water, kept) as second:
        done, parts = steps_of(second, patched)
        assert abs(density(second, triples=triples) - wanted[triples]).max() < 1e-9
    assert second.multipliers.iterations[0].number == 4
    assert done[4] == ["exchange rings"]
    assert done[5][-3:] == ["ladder", "direct rings", "exchange rings"]
    assert "derivatives of triples" not in parts
    assert not list(kept.glob("lambda.*"))


def test_multipliers_of_ccsd_are_none_of_ccsd_t(
    water: Any, wanted: Any, finished: dict[bool, Path], tmp_path: Path
) -> None:
    with start(water, Path(shutil.copytree(finished[False], tmp_path / "kept"))) as cc:
        assert abs(density(cc, triples=True) - wanted[True]).max() < 1e-9


def test_multipliers_that_have_converged_are_taken(
    water: Any, wanted: Any, finished: dict[bool, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> float:
        raise AssertionError("computed again")

    monkeypatch.setattr(TripleDerivatives, "_task", refuse)
    with start(water, Path(shutil.copytree(finished[True], tmp_path / "kept"))) as cc:
        assert abs(density(cc, triples=True) - wanted[True]).max() < 1e-9
        assert cc.multipliers.iterations == []
        assert cc.e_t == result(finished[True], "e_t")
