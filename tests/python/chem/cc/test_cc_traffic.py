"""What an iteration of coupled cluster moves, as a plan reckons."""

from __future__ import annotations

import pytest
from test_cc_plan import LARGE, OPEN, plan

from outcore.chem.cc.plan import Sizes
from outcore.chem.cc.specs import Role
from outcore.chem.cc.traffic import beside_ladder, of_ladder


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_more_work_space_and_fewer_passes_move_less(sizes: Sizes) -> None:
    arrays = plan(sizes, 1e9, storage="disk").arrays
    least = beside_ladder(sizes, arrays, arrays, 1 << 30, 1)
    assert beside_ladder(sizes, arrays, arrays, 1 << 28, 1) > least
    amplitudes = sum(each.bytes for each in arrays.values() if each.spec.role is Role.AMPLITUDES)
    assert beside_ladder(sizes, arrays, arrays, 1 << 30, 2) == pytest.approx(least + amplitudes)


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_what_is_in_memory_is_not_moved(sizes: Sizes) -> None:
    arrays = plan(sizes, 1e9, storage="disk").arrays
    assert beside_ladder(sizes, {}, arrays, 1 << 30, 3) == 0
    some = {name: each for name, each in arrays.items() if name not in ("E", "Ea")}
    assert (
        0 < beside_ladder(sizes, some, arrays, 1 << 30, 1) < beside_ladder(sizes, arrays, arrays, 1 << 30, 1)
    )


def test_integrals_of_a_ladder_go_by_in_each_pass() -> None:
    arrays = plan(LARGE, 1e9, ladder="disk").arrays
    assert of_ladder(arrays, 3) == 3 * (arrays["V+"].bytes + arrays["V-"].bytes)
