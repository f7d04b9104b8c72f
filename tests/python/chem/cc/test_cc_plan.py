"""The plan of coupled cluster: pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from outcore import OutcoreError
from outcore.chem.cc.plan import describe, layouts
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.fitting import CACHE_BYTES
from outcore.chem.cc.plan.plan import Plan, make_plan
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.cc.plan.triple_sizes import padded
from outcore.tensor.plan.rates import ASSUMED, Rates
from outcore.tensor.plan.statements import ArraySpec, Role
from outcore.tensor.program.recorder import Recorder

LARGE = Sizes(300, 1232, (53,), (247,), 6, tuple(range(0, 1233, 16)))
OPEN = Sizes(100, 400, (10, 9), (70, 71), 6, tuple(range(0, 401, 16)))
FAST = Rates(((1024, 40e9),), copy=10e9, read=2e9, write=2e9, network=1e30, threads=2)
SLOW = replace(FAST, read=2e7, write=2e7)


def plan(sizes: Sizes, free: float, processes: int = 1, rates: Rates = FAST, **options: object) -> Plan:
    return make_plan(sizes, int(free), replace(rates, processes=processes), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("free", [4e8, pytest.param(1e9, marks=pytest.mark.long), 4e9, 5e10])
@pytest.mark.parametrize("processes", [1, 4])
def test_arrays_work_and_caches_are_within_the_memory(sizes: Sizes, free: float, processes: int) -> None:
    found = plan(sizes, free, processes)
    inside = sum(each.bytes for each in found.arrays.values() if each.in_memory)
    caches = sum(each.cache_bytes for each in found.arrays.values() if not each.in_memory)
    assert inside // processes + found.work_bytes + caches <= free + 1
    assert found.work_bytes >= min(free // 4, 1 << 30)
    assert found.taken_bytes == pytest.approx(inside / processes + caches, abs=1)
    assert found.disk_bytes == sum(each.bytes for each in found.arrays.values() if not each.in_memory)


def test_more_memory_takes_larger_caches_of_what_products_read() -> None:
    found = [plan(LARGE, free, ladder="disk").arrays for free in (4e8, 1e9, 4e9)]
    sizes = [each["V+"].cache_bytes for each in found]
    assert sizes == sorted(sizes) and sizes[0] >= CACHE_BYTES
    assert sizes[-1] == 4 * CACHE_BYTES
    assert {each["e0"].cache_bytes for each in found} == {CACHE_BYTES}


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_arrays_of_one_phase_are_few_beside_those_of_all_phases(sizes: Sizes) -> None:
    """The reason for docs/develop/decisions/phases.md."""
    room = describe.iterations(sizes, 20, 1, is_stored=True)
    found = room.description
    (loop,) = found.loops
    scratch = [each for each in room.arrays if each.spec.role is Role.SCRATCH]
    of_a_phase = [each for each in scratch if found.is_within(each, found.uses(each), loop)]
    assert 0 < sum(each.nbytes for each in of_a_phase) < 0.25 * sum(each.nbytes for each in room.arrays)


def test_more_memory_takes_more_arrays() -> None:
    inside = [plan(LARGE, free).memory_bytes for free in (1e9, 4e9, 6e10)]
    assert inside == sorted(inside)
    assert plan(LARGE, 6e10).disk_bytes == 0


def test_arrays_leave_memory_to_work_in_where_that_moves_less() -> None:
    found = plan(LARGE, 8.5e8, ladder="disk")
    inside = [each for each in found.arrays.values() if each.in_memory]
    more = [each for each in found.arrays.values() if not each.in_memory and each.bytes < 2e8]
    assert more  # they would fit, but for one more pass of the ladder's integrals
    assert sum(each.bytes for each in inside) < 8.5e8 / 2
    assert found.passes <= 2


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
    assert not {"V-a", "V-b", "Vab"} & set(rebuilt.arrays)
    with pytest.raises(OutcoreError, match="ladder integrals in memory"):
        plan(LARGE, 2e9, ladder="memory")
    assert plan(LARGE, 6e10, storage="disk").memory_bytes == 0


def test_auto_takes_what_is_fastest_of_what_there_is_room_for() -> None:
    assert plan(LARGE, 6e10, rates=FAST).ladder == "memory"
    assert plan(LARGE, 2e9, rates=FAST).ladder == "disk"
    assert plan(LARGE, 2e9, rates=SLOW).ladder == "rebuild"
    assert plan(LARGE, 6e10, rates=SLOW).ladder == "memory"
    assert plan(LARGE, 2e9, rates=FAST, disk_bytes=1e9).ladder == "rebuild"
    assert plan(LARGE, 2e9, rates=SLOW, ladder="disk").ladder == "disk"


def test_a_plan_says_why_and_what_each_way_takes() -> None:
    found = plan(LARGE, 2e9, rates=SLOW)
    assert "in memory there is no room" in found.why
    assert f"recomputed {found.ways['rebuild'].ladder_s:.3g} s" in found.why
    (chosen,) = (line for line in found.ladder_table().splitlines() if "this run" in line)
    assert chosen.startswith("recomputed")
    assert found.as_json()["ladder_ways"]["disk"]["read_bytes_of_an_iteration"] >= 2 * 300**2 * 247**2


def test_storing_and_rebuilding_cross_where_reading_takes_as_long_as_making() -> None:
    n, v, o = 300, 247, 53
    made = (1232 * n**2 * v**2 + o**2 * n**2 * v**2 / 2) / 80e9
    stored = []
    for read in (1e7, 1e8, 1e9):
        ways = plan(LARGE, 6e10, rates=replace(FAST, copy=1e30, read=read, write=1e30)).ways
        stored.append(ways["disk"].ladder_s)
        assert ways["rebuild"].ladder_s == pytest.approx(made, rel=0.1)
        assert ways["disk"].ladder_s >= 2 * n**2 * v**2 / read * 0.98
    assert stored == sorted(stored, reverse=True)


def test_amplitudes_of_a_ladder_go_in_parts_where_memory_is_small() -> None:
    small, large = plan(LARGE, 8e8), plan(LARGE, 6e10)
    assert small.passes > 1
    assert large.passes == 1
    assert len(small.arrays["A+"].layout.tilings[1]) == small.passes
    once = sum(large.arrays[name].bytes for name in ("V+", "V-"))
    assert plan(LARGE, 8e8, ladder="disk").ways["disk"].read_bytes == small.passes * once


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
    sizes = Sizes(29, 279, occupied, (20,) * len(occupied), 6, (0, 140, 279))
    found = make_plan(sizes, plans.least_bytes(sizes, 1) + more, ASSUMED)
    assert found.work_bytes >= describe.work_bytes(describe.iterations, sizes, found.spaces[0].block, 1)


def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives all arrays new names with other beginnings."""
    right: Callable[..., dict[str, ArraySpec]] = layouts.arrays_of
    array = Recorder.array

    def other(name: str) -> str:
        return f"{sum(map(ord, name)) % 7} {name}"

    def arrays_of(*given: Any) -> dict[str, ArraySpec]:
        return {other(name): replace(each, name=other(name)) for name, each in right(*given).items()}

    monkeypatch.setattr(describe, "arrays_of", arrays_of)
    monkeypatch.setattr(Recorder, "array", lambda self, name: array(self, other(name)))
    describe.forget()


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("free", [4e8, 2e9, 6e10])
def test_a_plan_does_not_go_by_names(sizes: Sizes, free: float, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan(sizes, free)
    with monkeypatch.context() as patched:
        renamed(patched)
        found = plan(sizes, free)
    describe.forget()
    assert [each.in_memory for each in found.arrays.values()] == [
        each.in_memory for each in before.arrays.values()
    ]
    assert [each.cache_bytes for each in found.arrays.values()] == [
        each.cache_bytes for each in before.arrays.values()
    ]
    assert not set(found.arrays) & set(before.arrays)
    assert replace(found, arrays={}, predicted=()) == replace(before, arrays={}, predicted=())


class Wide:
    """A kernel of which nothing but its work space is known."""

    operands = results = ()

    def work_space(self, tile: int) -> float:
        return 1e8 * tile


def with_more(add: Callable[[describe.RecordingRoom], None]) -> describe.Describe:
    """Iterations with a statement more."""

    def found(*given: Any, **options: Any) -> describe.RecordingRoom:
        room = describe.iterations.__wrapped__(*given, **options)
        add(room)
        return room

    return found


@pytest.mark.parametrize("sizes", [LARGE, OPEN], ids=["closed", "open"])
def test_the_work_space_is_that_of_the_largest_statement(sizes: Sizes) -> None:
    def need(add: Callable[[describe.RecordingRoom], None], block: int) -> int:
        return describe.work_bytes(with_more(add), sizes, block, 2)

    plain = describe.work_bytes(describe.iterations, sizes, 8, 2)
    assert need(lambda room: None, 8) == plain
    assert need(lambda room: room.kernel(Wide(), list), 8) == 8e8 > plain  # type: ignore[arg-type]

    def goes_over_tiles(room: describe.RecordingRoom) -> None:
        doubles = next(each for each in room.arrays if each.name in ("T", "Taa"))
        room.each_tile(doubles, lambda tile: None, "a pass of a new method", held=1000)

    axes = (-(-v // -(-v // 8)) for v in sizes.virtual)
    tile = 8 * (max(axes) * sizes.occupied[0]) ** 2  # of equal blocks
    assert need(goes_over_tiles, 8) == pytest.approx(2 * 1000 * tile)
    wide = with_more(lambda room: room.kernel(Wide(), list))  # type: ignore[arg-type]
    assert plans.least_bytes(sizes, 2, block=8, what=wide) > 8e8


def test_how_many_arrays_a_part_has_is_counted_once() -> None:
    counted: list[str] = []

    def part(*given: Any, kind: str, **options: Any) -> describe.RecordingRoom:
        counted.append(kind)
        return describe.iterations(*given, **options)

    found = [describe.asked(partial(part, kind=kind), OPEN) for kind in ("ee", "ip", "ee")]
    assert counted == ["ee", "ip"]
    assert found == [len(describe.iterations(OPEN, 71, 1, is_stored=True).arrays)] * 3


def test_a_name_that_no_array_has_is_an_error() -> None:
    with pytest.raises(OutcoreError, match="the plan has no array V0"):
        plan(LARGE, 2e9).entry("V0")
