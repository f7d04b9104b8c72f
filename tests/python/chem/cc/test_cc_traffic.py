"""What an iteration of coupled cluster moves, as a plan reckons."""

from __future__ import annotations

import pytest
from test_cc_plan import LARGE, OPEN, plan

from outcore.chem.cc.plan import Sizes
from outcore.chem.cc.traffic import of_iteration


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_nothing_moves_where_all_is_in_memory(sizes: Sizes) -> None:
    arrays = plan(sizes, 6e10, ladder="memory").arrays
    assert of_iteration(sizes, arrays, 1 << 30, 3) == 0


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_more_work_space_and_fewer_passes_move_less(sizes: Sizes) -> None:
    arrays = plan(sizes, 1e9, storage="disk").arrays
    least = of_iteration(sizes, arrays, 1 << 30, 1)
    assert of_iteration(sizes, arrays, 1 << 28, 1) > least
    integrals = sum(each.bytes for name, each in arrays.items() if name[0] == "V")
    amplitudes = sum(each.bytes for name, each in arrays.items() if name[0] == "T")
    assert of_iteration(sizes, arrays, 1 << 30, 2) == pytest.approx(least + integrals + amplitudes)
