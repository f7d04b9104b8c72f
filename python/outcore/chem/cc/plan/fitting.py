"""Where the arrays of a coupled-cluster calculation lie: integrals of the ladder in memory, on disk, or nowhere, as
each product recomputes them. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from outcore.chem.cc.plan.describe import ITERATIONS
from outcore.chem.cc.plan.ladder_kernels import LadderProduct
from outcore.chem.cc.plan.work import PANELS
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan.statements import ArraySpec, Call, Contract, Role
from outcore.tensor.program.room_place import lower_bound, place_room
from outcore.tensor.program.room_ways import Placement, Resident, RoomWays

if TYPE_CHECKING:
    from outcore.chem.cc.plan.describe import Describe, RecordingRoom
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.plan.rates import Rates

_LARGEST_CACHE = 4 << 20  # more makes nothing faster
_CACHES = 4  # larger caches take 1 / _CACHES of the spare memory at most
CACHE_BYTES = 1 << 20
"""The least cache of an array on disk, at each process."""


@dataclass(frozen=True)
class Entry:
    """One array of the plan. cache_bytes: at each process, if it is on disk."""

    spec: ArraySpec
    in_memory: bool
    cache_bytes: int = CACHE_BYTES

    @property
    def layout(self) -> Layout:
        return self.spec.layout

    @property
    def store_dtype(self) -> str | None:
        return self.spec.store_dtype

    @property
    def bytes(self) -> int:
        return self.spec.bytes

    def bytes_of_process(self, processes: int) -> int:
        """Memory that the array takes in each process."""
        return self.bytes // processes if self.in_memory else self.cache_bytes


@dataclass(frozen=True)
class IntegralsWay:
    """One way to have the integrals of the ladder. once_s: seconds to make them. ladder_s: seconds of the ladder's
    products in an iteration. stored_bytes: bytes of the stored integrals. read_bytes: bytes that an iteration
    reads."""

    once_s: float
    ladder_s: float
    stored_bytes: int
    read_bytes: int

    @property
    def seconds(self) -> float:
        """Seconds of a usual number of iterations."""
        return self.once_s + ITERATIONS * self.ladder_s

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds_once": self.once_s,
            "seconds_of_an_iteration": self.ladder_s,
            "stored_bytes": self.stored_bytes,
            "read_bytes_of_an_iteration": self.read_bytes,
        }


@dataclass(frozen=True)
class PlacedRecording:
    """A recording whose arrays have been placed."""

    recording: RecordingRoom
    room: Resident
    placement: Placement
    rates: Rates

    @property
    def kernels(self) -> list[LadderProduct]:
        calls = [each.kernel for each in self.recording.description.statements if isinstance(each, Call)]
        return [each for each in calls if isinstance(each, LadderProduct)]

    @property
    def passes(self) -> int:
        return max((each.parts(self.placement.work_bytes) for each in self.kernels), default=1)

    def entries(self) -> dict[str, Entry]:
        results = {each.name for kernel in self.kernels for each in kernel.results}
        found = {}
        for array in self.recording.arrays:
            number, spec = array.number, array.spec
            inside = self.placement.inside[number]
            if spec.name in results:
                spec = replace(spec, layout=_in_parts(spec.layout, self.passes))
            found[spec.name] = Entry(spec, inside, self.room.caches[number])
        return found

    @property
    def disk_bytes(self) -> int:
        return sum(each.bytes for each in self.entries().values() if not each.in_memory)

    @property
    def iteration_s(self) -> float:
        return sum(each.seconds for each in self.placement.predicted if each.repeats > 1)

    @property
    def has_integrals(self) -> bool:
        """Whether all integrals of ladders are in memory."""
        return all(self.placement.inside[number] for number in _integrals(self.recording))

    def way(self, inside: Mapping[int, bool] | None = None) -> IntegralsWay:
        """The cost of the ladder's integrals in these places. inside: other places of some arrays."""
        placed = {**self.placement.inside, **(inside or {})}
        description, work = self.recording.description, self.placement.work_bytes
        ways = RoomWays(description, 0, self.rates, {}, replace(self.room, fixed=placed))
        seconds = {True: 0.0, False: 0.0}
        for number, each in enumerate(description.statements):
            if isinstance(each, Call):
                predicted = ways.predicted(number, {}, work)
                seconds[predicted.repeats > 1] += predicted.seconds
        integrals = [each for kernel in self.kernels for each in kernel.integrals]
        stored = sum(each.nbytes for each in integrals)
        read = sum(each.nbytes for each in integrals if not placed[each.number])
        return IntegralsWay(seconds[False], seconds[True], stored, self.passes * read)


@dataclass(frozen=True)
class Fitting:
    """Fits blocks of `block` orbitals into `free_bytes` of each process. on_disk: all arrays are on disk. most: the
    largest number of arrays at a time, now or later: arrays that stay keep their caches. given: arrays that exist
    already, and stay where they are."""

    sizes: Sizes
    block: int
    free_bytes: int
    work_bytes: int
    rates: Rates
    on_disk: bool
    what: Describe
    most: int
    given: Mapping[str, Entry] = field(default_factory=dict)

    def recording(self, *, is_stored: bool) -> RecordingRoom:
        rates = self.rates
        return self.what(self.sizes, self.block, rates.threads, rates.processes, is_stored=is_stored)

    def ways(self, asked: str, disk_bytes: float) -> tuple[dict[str, PlacedRecording], set[str]]:
        """The ways that `asked` allows, that have room and could be the best; and the names of the ways that lack
        room."""
        found, lacking = dict[str, PlacedRecording](), set[str]()
        needed, left = self.of_integrals
        if self.on_disk or needed > left:
            lacking.add("memory")
        elif asked == "memory":
            found["memory"] = self.placed(is_stored=True, inside=True)
        if asked == "disk":
            found["disk"] = self.placed(is_stored=True, inside=False)
        if asked == "auto":
            placed = self.placed(is_stored=True)
            if placed.disk_bytes > disk_bytes:
                lacking.add("disk")
                placed = self.placed(is_stored=True, inside="memory" not in lacking)
            if placed.disk_bytes <= disk_bytes:
                found["memory" if placed.has_integrals else "disk"] = placed
        best = min((each.placement.seconds for each in found.values()), default=math.inf)
        if asked in ("rebuild", "auto") and self._could_take(best, is_stored=False):
            found["rebuild"] = self.placed(is_stored=False)
        return found, lacking

    def _could_take(self, seconds: float, *, is_stored: bool) -> bool:
        recording = self.recording(is_stored=is_stored)
        room = self._room(recording)
        return lower_bound(recording.description, self.free_bytes, self.rates, room) < seconds

    @property
    def of_integrals(self) -> tuple[int, int]:
        """Bytes of the integrals of ladders, over all processes, and bytes that all else can leave to them."""
        recording = self.recording(is_stored=True)
        numbers = _integrals(recording)
        needed = sum(recording.description.variables[n].nbytes for n in numbers)
        caches = sum(b for n, b in self._caches(recording).items() if n not in numbers)
        return needed, (self.free_bytes - self.work_bytes - caches) * self.rates.processes

    def placed(self, *, is_stored: bool, inside: bool | None = None) -> PlacedRecording:
        """The recording with its arrays placed. inside: whether integrals of ladders are in memory; None: as is
        best."""
        recording = self.recording(is_stored=is_stored)
        room = self._room(recording, inside)
        placement = place_room(recording.description, self.free_bytes, self.rates, room)
        return PlacedRecording(recording, room, placement, self.rates)

    def _room(self, recording: RecordingRoom, inside: bool | None = None) -> Resident:
        caches, processes = self._caches(recording), self.rates.processes
        fixed = {  # a small array takes less memory than its caches
            each.number: not self.on_disk
            for each in recording.arrays
            if self.on_disk or each.nbytes <= caches[each.number] * processes
        }
        if inside is not None:
            fixed |= dict.fromkeys(_integrals(recording), inside)
        fixed |= {n: each.in_memory for n, each in self._given(recording)}
        return Resident(caches, fixed, self.work_bytes, PANELS)

    def _caches(self, recording: RecordingRoom) -> dict[int, int]:
        """Bytes of the cache of each array, if it is on disk. Tiles that are fetched ahead share the cache of their
        array: if few fit into it, the disk rests between one piece and the next. Products read large arrays again
        and again, so those get larger caches that are no smaller than kept arrays that products read. Products read
        all others one tile after another."""
        read: set[int] = set()
        for each in recording.description.statements:
            if isinstance(each, Contract | Call):
                read |= {
                    array.number for array in (each.arrays if isinstance(each, Contract) else each.reads)
                }
        sizes = {each.number: each.nbytes for each in recording.arrays}
        kept = {each.number for each in recording.arrays if each.spec.role is Role.KEPT}
        least = min((sizes[n] for n in read & kept), default=0)
        often = [n for n, bytes_ in sizes.items() if n in read and 0 < least <= bytes_]
        spare = (self.free_bytes - self.work_bytes - CACHE_BYTES * self.most) // (
            _CACHES * max(1, len(often))
        )
        larger = min(max(CACHE_BYTES, CACHE_BYTES + spare), _LARGEST_CACHE)
        found = {n: larger if n in often else CACHE_BYTES for n in sizes}
        return found | {n: each.cache_bytes for n, each in self._given(recording)}

    def _given(self, recording: RecordingRoom) -> list[tuple[int, Entry]]:
        return [(each.number, self.given[each.name]) for each in recording.arrays if each.name in self.given]

    def table(self, found: Mapping[str, PlacedRecording], way: str) -> dict[str, IntegralsWay]:
        """The cost of each way to have the integrals of the ladder. For a way without room, or that was not asked
        for, all other arrays stay as they are."""
        if not found[way].kernels:
            return {}
        stored = next((found[each] for each in ("disk", "memory") if each in found), None)
        if stored is None:
            stored = replace(found[way], recording=self.recording(is_stored=True))
        made = found.get("rebuild")
        if made is None:
            made = replace(found[way], recording=self.recording(is_stored=False))
        integrals = _integrals(stored.recording)
        return {
            name: stored.way(dict.fromkeys(integrals, name == "memory")) for name in ("memory", "disk")
        } | {"rebuild": made.way()}


def _integrals(recording: RecordingRoom) -> list[int]:
    """Numbers of the arrays of stored integrals of ladders."""
    calls = [each.kernel for each in recording.description.statements if isinstance(each, Call)]
    products = [each for each in calls if isinstance(each, LadderProduct)]
    return [array.number for each in products for array in each.integrals]


def _in_parts(layout: Layout, passes: int) -> Layout:
    """Cuts the last axis, of occupied pairs or orbitals, into `passes` tiles, or into its elements if these are
    fewer."""
    *others, last = layout.tilings
    parts = min(passes, last.size)
    return Layout((*others, Tiling(last.size, [last.size * n // parts for n in range(parts + 1)])))
