"""The plan of coupled cluster: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from outcore import OutcoreError
from outcore.chem.cc import forecast, layouts
from outcore.chem.cc import plan as plans
from outcore.chem.cc.forecast import Rates
from outcore.chem.cc.plan import CACHE_BYTES, Plan, Sizes, make_plan
from outcore.chem.cc.specs import ArraySpec, Role
from outcore.chem.cc.triple_sizes import padded

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
    caches = sum(each.cache_bytes for each in found.arrays.values() if not each.in_memory)
    assert inside // processes + found.work_bytes + caches <= free + 1
    assert found.work_bytes >= free // 4
    assert found.disk_bytes == sum(each.bytes for each in found.arrays.values() if not each.in_memory)


def test_more_memory_takes_larger_caches_of_what_products_read() -> None:
    found = [plan(LARGE, free, ladder="disk").arrays for free in (4e8, 1e9, 4e9)]
    sizes = [each["V+"].cache_bytes for each in found]
    assert sizes == sorted(sizes) and sizes[0] >= CACHE_BYTES
    assert sizes[-1] == 4 * CACHE_BYTES
    assert {each["e0"].cache_bytes for each in found} == {CACHE_BYTES}


def test_more_memory_takes_more_arrays() -> None:
    inside = [plan(LARGE, free).memory_bytes for free in (1e9, 4e9, 6e10)]
    assert inside == sorted(inside)
    assert plan(LARGE, 6e10).disk_bytes == 0


def test_arrays_leave_memory_to_work_in_where_that_moves_less() -> None:
    found = plan(LARGE, 8.5e8, ladder="disk")
    could = sum(found.arrays[name].bytes for name in ("Boo", "Doo", "Soo", "Bvo", "Dvo"))
    assert could < 8.5e8 / 2  # they would fit, but for two more passes of the ladder's integrals
    assert not found.arrays["Dvo"].in_memory
    assert found.passes == 2


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
    assert not rebuilt.of_role(Role.LADDER_INTEGRALS)
    with pytest.raises(OutcoreError, match="ladder integrals in memory"):
        plan(LARGE, 2e9, ladder="memory")
    assert plan(LARGE, 6e10, storage="disk").memory_bytes == 0


FAST, SLOW = Rates(80e9, 20e9, 2e9, 2e9), Rates(80e9, 20e9, 2e7, 2e7)


def test_auto_takes_what_is_fastest_of_what_there_is_room_for() -> None:
    assert plan(LARGE, 6e10, rates=FAST).ladder == "memory"
    assert plan(LARGE, 2e9, rates=FAST).ladder == "disk"
    assert plan(LARGE, 2e9, rates=SLOW).ladder == "rebuild"
    assert plan(LARGE, 6e10, rates=SLOW).ladder == "memory"
    assert plan(LARGE, 2e9, rates=FAST, disk_bytes=1e9).ladder == "rebuild"
    assert plan(LARGE, 2e9, disk_bytes=1e9).ladder == "rebuild"
    assert plan(LARGE, 2e9, rates=SLOW, ladder="disk").ladder == "disk"


def test_a_plan_says_why_and_what_each_way_takes() -> None:
    found = plan(LARGE, 2e9, rates=SLOW)
    assert "in memory there is no room" in found.why
    assert f"made again {found.ways['rebuild'].iteration_s:.3g} s" in found.why
    (chosen,) = (line for line in found.ladder_table().splitlines() if "this run" in line)
    assert chosen.startswith("made again")
    assert found.as_json()["ladder_ways"]["disk"]["read_bytes_of_an_iteration"] >= 2 * 300**2 * 247**2


def test_storing_and_rebuilding_cross_where_reading_takes_as_long_as_making() -> None:
    ways = {
        read: forecast.ladder(LARGE, Rates(80e9, 1e30, read, 1e30)) for read in (1e7, 3e7, 1e8, 3e8, 1e9, 3e9)
    }
    stored = [each["disk"].iteration_s for each in ways.values()]
    assert stored == sorted(stored, reverse=True)
    n, v, o = 300, 247, 53
    made = (1232 * n**2 * v**2 + o**2 * n**2 * v**2 / 2) / 80e9
    for read, each in ways.items():
        assert each["rebuild"].iteration_s == pytest.approx(made, rel=0.02)
        assert each["disk"].iteration_s >= 2 * n**2 * v**2 / read * 0.98


def test_amplitudes_of_a_ladder_go_in_parts_where_memory_is_small() -> None:
    small, large = plan(LARGE, 8e8), plan(LARGE, 6e10)
    assert small.passes > 1
    assert large.passes == 1
    assert len(small.arrays["A+"].layout.tilings[1]) == small.passes
    ways = [plan(LARGE, free, rates=FAST).ways["disk"] for free in (8e8, 6e10)]
    assert ways[0].read_bytes == small.passes * ways[1].read_bytes


@pytest.mark.parametrize("occupied", [1, 15, 24, 31, 32, 64, 253])
def test_rows_of_triples_are_whole_registers_and_fall_on_different_places_of_a_cache(occupied: int) -> None:
    room = padded(occupied)
    assert occupied <= room < occupied + 8
    assert room % 4 == 0 and room % 32 != 0


@pytest.mark.parametrize("more", [0, 10**6, 10**7])
@pytest.mark.parametrize("occupied", [(5,), (5, 4), (9, 7)])
def test_the_least_memory_leaves_room_for_the_blocks_that_are_chosen(
    occupied: tuple[int, ...], more: int
) -> None:
    sizes = plans.Sizes(29, 279, occupied, (20,) * len(occupied), 6, (0, 140, 279))
    found = plans.make_plan(sizes, plans.least_bytes(sizes, 1) + more, 1, 1)
    assert found.work_bytes >= plans._work(sizes, found.spaces[0].block, 1)


def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays get other names, none of which begins as it did."""
    for table in ("_restricted", "_unrestricted"):
        right = getattr(layouts, table)

        def of(*given: Any, right: Any = right) -> Iterator[ArraySpec]:
            for number, each in enumerate(right(*given)):
                yield replace(each, name=f"{number} {each.name}")

        monkeypatch.setattr(layouts, table, of)


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("free", [4e8, 8.5e8, 2e9, 1e10, 6e10])
def test_a_plan_does_not_go_by_names(sizes: Sizes, free: float, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan(sizes, free, rates=FAST)
    renamed(monkeypatch)
    found = plan(sizes, free, rates=FAST)
    assert [each.in_memory for each in found.arrays.values()] == [
        each.in_memory for each in before.arrays.values()
    ]
    assert [each.cache_bytes for each in found.arrays.values()] == [
        each.cache_bytes for each in before.arrays.values()
    ]
    assert not set(found.arrays) & set(before.arrays)
    assert replace(found, arrays={}) == replace(before, arrays={})


def test_a_name_that_no_array_has_is_an_error() -> None:
    with pytest.raises(OutcoreError, match="there is no array t9, x"):
        plan(LARGE, 2e9, only=["T", "x", "t9"])
    with pytest.raises(OutcoreError, match="the plan has no array V0"):
        plan(LARGE, 2e9).entry("V0")
