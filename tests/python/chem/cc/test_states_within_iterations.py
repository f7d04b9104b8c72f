"""Searches for states that end between two products of one iteration: finished products are not computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field
from eom_support import TIGHT

from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.search import Search
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States
from outcore.keep import clock

ROOTS: Any = {"nroots": 2, "residual": 1e-8}
ENDS = 3
"""How often a search ends."""


class Ended(Exception):
    pass


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "sto-3g")


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "sto-3g")


def start(mf: Any, directory: Path | None, frozen: int) -> CCSD:
    """A calculation whose ladder has double precision, with converged amplitudes."""
    given = {"memory": "1GB", "threads": 1, "ladder": "rebuild", "checkpoint": directory, **TIGHT}
    cc = CCSD(mf, frozen, comm=None, **given)
    cc.kernel()
    return cc


@pytest.mark.parametrize(
    ("reference", "kind", "more"),
    [
        ("water", "ee", {}),
        pytest.param("water", "ee", {"multiplicity": 3}, marks=pytest.mark.long),
        pytest.param("water", "ee", {"cvs": 1}, marks=pytest.mark.long),
        pytest.param("amino", "sf", {}, marks=pytest.mark.long),
        pytest.param("water", "ip", {}, marks=pytest.mark.long),
        pytest.param("water", "ea", {}, marks=pytest.mark.long),
        pytest.param("amino", "ee", {}, marks=pytest.mark.long),
        pytest.param("amino", "ip", {}, marks=pytest.mark.long),
        pytest.param("amino", "ea", {}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_a_finished_product_of_an_iteration_is_kept(
    reference: str,
    kind: str,
    more: dict[str, Any],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run but the last ends after the first of the products of an iteration. Were this product lost, the next
    run would begin with the same small space, and with the same energies."""
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    mf, frozen = request.getfixturevalue(reference), 0 if "cvs" in more else 1
    settings = StateSettings(**ROOTS, **more)
    with start(mf, None, frozen) as cc:
        whole = States(cc, kind, settings)
    starts, needed = whole.iterations[0].products, sum(each.products for each in whole.iterations)
    right, made = Search._keep, list[int]()

    def keep(self: Search, first: int) -> None:
        right(self, first)
        made.append(len(self._multiplied))
        if len(self._vectors) > len(self._multiplied) > max(first, self.count) and len(begun) <= ENDS:
            raise Ended

    monkeypatch.setattr(Search, "_keep", keep)
    begun: list[Any] = []  # the first iteration of each run
    while len(begun) <= ENDS:
        first: list[Any] = []
        with start(mf, tmp_path / "kept", frozen) as cc:
            begun.append(None)
            try:
                found = States(cc, kind, settings, first.append)
            except Ended:
                assert len(begun) <= ENDS
            begun[-1] = first[0] if first else None
    assert found.converged.all()
    assert abs(found.energies - whole.energies).max() < 1e-8
    assert begun[0] is None  # it ended among the products of start vectors
    for number, each in enumerate(begun[1:]):
        assert each.products == 0
        if number:
            assert abs(each.energies - begun[number].energies).max() > 1e-9
    assert len(made) <= needed + starts + 2 * ENDS  # the last run multiplies start vectors again


@pytest.mark.parametrize("products", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4, 6))])
def test_a_state_of_another_symmetry_is_found_though_start_vectors_were_not_multiplied(
    products: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attachment to the singly occupied orbital, whose orbital energy lies above those of two others. The run
    ends when so many vectors have been multiplied."""
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    mf = open_mean_field("UHF", ("Be 0 0 0; H 0 0 1.34", 0, 1), "sto-3g")
    right, made = Search._keep, list[int]()

    def keep(self: Search, first: int) -> None:
        right(self, first)
        made.append(first)
        if len(made) == products:
            raise Ended

    with start(mf, tmp_path / "kept", 0) as cc, monkeypatch.context() as patched:
        patched.setattr(Search, "_keep", keep)
        with pytest.raises(Ended):
            cc.eaccsd(nroots=1, residual=1e-6)
    with start(mf, tmp_path / "kept", 0) as cc:
        energy, states = cc.eaccsd(nroots=1, residual=1e-6)
    assert states.found
    assert energy == pytest.approx(0.16352, abs=1e-5)  # of all eigenvalues of PySCF's matrix
