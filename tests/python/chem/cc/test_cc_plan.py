"""The plan of coupled cluster: pure arithmetic."""

from __future__ import annotations

import pytest

from outcore import OutcoreError
from outcore.chem.cc.plan import CACHE_BYTES, Plan, Sizes, make_plan

LARGE = Sizes(300, 1232, (53,), (247,), 6, tuple(range(0, 1233, 16)))
OPEN = Sizes(100, 400, (10, 9), (70, 71), 6, tuple(range(0, 401, 16)))


def plan(sizes: Sizes, free: float, processes: int = 1, **options: object) -> Plan:
    return make_plan(sizes, int(free), processes, 2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("free", [4e8, 1e9, 4e9, 5e10])
@pytest.mark.parametrize("processes", [1, 4])
def test_arrays_work_and_caches_are_within_the_memory(sizes: Sizes, free: float, processes: int) -> None:
    found = plan(sizes, free, processes)
    inside = sum(each.bytes for each in found.arrays.values() if each.in_memory)
    outside = sum(not each.in_memory for each in found.arrays.values())
    assert inside // processes + found.work_bytes + outside * CACHE_BYTES <= free + 1
    assert found.work_bytes >= free // 4
    assert found.disk_bytes == sum(each.bytes for each in found.arrays.values() if not each.in_memory)


def test_more_memory_takes_more_arrays() -> None:
    inside = [plan(LARGE, free).memory_bytes for free in (1e9, 4e9, 6e10)]
    assert inside == sorted(inside)
    assert plan(LARGE, 6e10).disk_bytes == 0


def test_too_little_memory_says_what_is_enough() -> None:
    with pytest.raises(OutcoreError, match=r"need at least (\d+) MB") as error:
        plan(LARGE, 1e7)
    least = float(str(error.value).split("need at least ")[1].split()[0])
    plan(LARGE, (least + 1) * 1e6)


def test_places_of_the_ladder_are_as_asked() -> None:
    assert plan(OPEN, 5e10).ladder == "memory"
    assert plan(OPEN, 5e10, ladder="disk").ladder == "disk"
    rebuilt = plan(OPEN, 5e10, ladder="rebuild")
    assert rebuilt.ladder == "rebuild"
    assert not [name for name in rebuilt.arrays if name[0] == "V"]
    with pytest.raises(OutcoreError, match="ladder integrals in memory"):
        plan(LARGE, 2e9, ladder="memory")
    assert plan(LARGE, 6e10, storage="disk").memory_bytes == 0
