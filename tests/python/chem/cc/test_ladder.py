"""The particle-particle ladder: integrals stored, and made in each product; amplitudes whole, and in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.equations.integrals import Integrals
from outcore.chem.cc.equations.ladder import Ladder
from outcore.chem.cc.equations.opposite_ladder import OppositeLadder
from outcore.chem.cc.plan import ladder_kernels


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "6-31g")


def residual(mf: Any, **settings: Any) -> list[np.ndarray[Any, Any]]:
    """The residual of second-order amplitudes."""
    with CCSD(mf, 1, comm=None, memory="1GB", block=3, threads=2, **settings) as cc:
        equations = cc.set_up()
        singles = equations.residual(cc.singles)
        return [*singles, *(each.residual.to_numpy() for each in equations.doubles)]


@pytest.mark.parametrize("reference", ["water", "amino"])
@pytest.mark.parametrize("ladder", ["memory", "disk", "rebuild"])
def test_residuals_do_not_depend_on_parts_and_places(
    reference: str, ladder: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = request.getfixturevalue(reference)
    wanted = residual(mf, ladder="rebuild")
    monkeypatch.setattr(ladder_kernels, "passes", lambda *_, **__: 3)
    found = residual(mf, ladder=ladder)
    precision = 1e-12 if ladder == "rebuild" else 1e-7
    for one, other in zip(wanted, found, strict=True):
        assert abs(one - other).max() < precision


@pytest.mark.parametrize("parts", [1, 2])
def test_each_tile_is_made_once_for_each_part(
    amino: Any, water: Any, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[type, int, int]] = []
    for kind in (Ladder, OppositeLadder):
        original = kind.tile

        def tile(self: Any, row: int, column: int, original: Any = original, kind: type = kind) -> Any:
            made.append((kind, row, column))
            return original(self, row, column)

        monkeypatch.setattr(kind, "tile", tile)
    monkeypatch.setattr(ladder_kernels, "passes", lambda *_, **__: parts)
    residual(water, ladder="rebuild")
    assert len(made) == parts * len(set(made)) == parts * 10 * 6  # pairs of 4 blocks, of 3 virtual ones
    made.clear()
    residual(amino, ladder="rebuild")
    opposite = [each for each in made if each[0] is OppositeLadder]
    assert len(opposite) == parts * len(set(opposite))
    made.clear()
    residual(water, ladder="disk")
    assert len(made) == len(set(made)) == 10 * 6


@pytest.mark.parametrize("has_room", [True, False])
def test_blocks_are_read_once_for_many_tiles(
    water: Any, has_room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []
    right = Integrals.block

    def block(self: Any, p: int, c: int) -> Any:
        read.append((p, c))
        return right(self, p, c)

    monkeypatch.setattr(Integrals, "block", block)
    if not has_room:
        recent = Integrals.recent
        monkeypatch.setattr(Integrals, "recent", lambda self, _: recent(self, 0))
    with CCSD(water, 1, comm=None, memory="1GB", block=3, threads=1, storage="disk", ladder="disk") as cc:
        cc.set_up()
    blocks = 4 * 3  # all of them, of virtual ones
    assert len(set(read)) == blocks
    assert (len(read) == blocks) == has_room
