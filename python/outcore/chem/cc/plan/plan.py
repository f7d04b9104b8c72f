"""How a coupled-cluster calculation is fitted into the memory of its processes: the arrays that it has, which of
them are in memory, and how large their tiles are. Pure arithmetic, from the recorded statements of its
equations."""

from __future__ import annotations

import errno
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words, times
from outcore.chem.cc.equations import methods
from outcore.chem.cc.plan import describe, ladder_kernels
from outcore.chem.cc.plan.fitting import CACHE_BYTES, Entry, Fitting, IntegralsWay
from outcore.chem.cc.plan.places import METHOD, check_places
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.cc.plan.work import PANELS, min_block
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.plan.statements import Role
from outcore.tensor.program.room_ways import Resident, RoomWays

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.describe import Describe
    from outcore.tensor.plan.rates import Rates
    from outcore.tensor.program.room_ways import Predicted


_DOUBLE = 8
_TILE_BYTES = 16 << 20  # largest tile of pairs of occupied and virtual orbitals: more makes nothing faster
_LARGEST_BLOCK = 32
_BEGIN_MB = 4  # by which the memory of processes varies before they begin
_SHARE = 4  # the work space is 1 / _SHARE of the free memory at least, and more if arrays leave more
_ENOUGH = 1 << 30  # bytes of work space that are always enough


@dataclass(frozen=True)
class Plan:
    """Bytes are of one process, except those on disk.

    Attributes:
        arrays: by name.
        work_bytes: work space, for tiles and panels.
        taken_bytes: the most that arrays in memory and caches take at a time.
        ladder: where its integrals are: "disk", "memory" or "rebuild"; empty without a ladder.
        passes: how many passes over them an iteration makes.
        ways: the cost of each of the three.
        why: the reason for the ladder's place, for people.
        predicted: time and traffic of each statement.
        triples: time and traffic of (T), once iterations have given back the arrays that it does not need; None:
            the method has no (T), or the plan is of another stage.
        beside_made_bytes: the part of `work_bytes` that tiles of the ladder leave while they are made.
        least_budget_bytes: least memory of all processes with arrays on disk, if the user has given a budget.
    """

    sizes: Sizes = field(repr=False)
    spaces: tuple[Spaces, ...]
    arrays: dict[str, Entry] = field(repr=False)
    work_bytes: int
    taken_bytes: int
    ladder: str
    passes: int
    ways: dict[str, IntegralsWay] = field(repr=False)
    why: str
    predicted: tuple[Predicted, ...] = field(repr=False)
    triples: Predicted | None
    processes: int
    beside_made_bytes: int
    least_budget_bytes: int | None

    @property
    def memory_bytes(self) -> int:
        """Bytes of arrays in memory."""
        return sum(each.bytes for each in self.arrays.values() if each.in_memory) // self.processes

    @property
    def disk_bytes(self) -> int:
        """Bytes of arrays on disk, over all processes."""
        return sum(each.bytes for each in self.arrays.values() if not each.in_memory)

    def __str__(self) -> str:
        on_disk = [name for name, entry in self.arrays.items() if not entry.in_memory]
        places = "all arrays in memory" if not on_disk else f"on disk {self.disk_bytes / 1e6:.0f} MB"
        found = (
            f"arrays in memory {self.memory_bytes / 1e6:.0f} MB, work {self.work_bytes / 1e6:.0f} MB in each "
            f"process; {places}"
        )
        if self.ladder:
            found += f"; ladder integrals: {_NAMES[self.ladder]}{self.why and ', '}{self.why}"
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "block": self.spaces[0].block,
            "work_bytes": self.work_bytes,
            "memory_bytes": self.memory_bytes,
            "disk_bytes": self.disk_bytes,
            "ladder": self.ladder,
            "ladder_passes": self.passes,
            "ladder_why": self.why,
            "seconds_of_an_iteration": self.iteration_s,
            "moved_bytes_of_an_iteration": self.moved_bytes,
            "moved_bytes_of_its_products": self.product_bytes,
            "seconds_of_triples": self.triples and self.triples.seconds,
            "moved_bytes_of_triples": self.triples and self.triples.bytes,
            "least_memory_bytes": self.least_budget_bytes,
            "ladder_ways": {name: way.as_json() for name, way in self.ways.items()},
            "arrays": {
                name: {"bytes": each.bytes, "in_memory": each.in_memory} for name, each in self.arrays.items()
            },
        }

    def table(self) -> str:
        lines = [f"{'array':8s} {'shape':>24s} {'MB':>10s}  where"]
        for name, entry in self.arrays.items():
            shape = "x".join(map(str, entry.layout.shape))
            place = "memory" if entry.in_memory else "disk"
            lines.append(f"{name:8s} {shape:>24s} {entry.bytes / 1e6:10.2f}  {place}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (name, times(each.layout.shape), in_words(each.bytes), "memory" if each.in_memory else "disk")
            for name, each in self.arrays.items()
        ]
        return html.table("Plan of coupled cluster", ("array", "shape", "size", "where"), rows, str(self))

    def ladder_table(self) -> str:
        """For people: the cost of each way to have the integrals of the ladder."""
        lines = [
            f"{'ladder integrals':18s} {'MB':>10s} {'MB read':>10s} {'s once':>9s} {'s':>9s}  an iteration each"
        ]
        for name, way in self.ways.items():
            chosen = "  <- this run" if name == self.ladder else ""
            lines.append(
                f"{_NAMES[name]:18s} {way.stored_bytes / 1e6:10.0f} {way.read_bytes / 1e6:10.0f} {way.once_s:9.2f} "
                f"{way.ladder_s:9.2f}{chosen}"
            )
        return "\n".join(lines)

    def entry(self, name: str) -> Entry:
        """The entry of an array. Raises OutcoreError (EINVAL) for an unknown name."""
        if name not in self.arrays:
            raise OutcoreError(errno.EINVAL, METHOD, detail=f"the plan has no array {name}")
        return self.arrays[name]

    @property
    def kept_bytes(self) -> int:
        """Bytes of all arrays that a checkpoint has copies of."""
        return sum(each.bytes for each in self.arrays.values() if each.spec.role is Role.KEPT)

    def left_by(self, kept: Iterable[Entry]) -> int:
        """Bytes of a process that are free once all other arrays are closed."""
        taken = sum(each.bytes_of_process(self.processes) for each in kept)
        return self.work_bytes + self.taken_bytes - taken

    # ---- an iteration, as predicted ----

    @property
    def iteration(self) -> list[Predicted]:
        """The statements of an iteration: those that run more than once."""
        return [each for each in self.predicted if each.repeats > 1]

    @property
    def iteration_s(self) -> float:
        return sum(each.seconds for each in self.iteration)

    @property
    def seconds_once(self) -> float:
        """Predicted seconds of all statements outside iterations."""
        return sum(each.seconds for each in self.predicted if each.repeats == 1)

    @property
    def moved_bytes(self) -> float:
        """Disk traffic of an iteration, over all processes."""
        return sum(each.bytes for each in self.iteration)

    @property
    def product_bytes(self) -> float:
        """The part of `moved_bytes` that products move."""
        return sum(each.bytes for each in self.iteration if each.is_product)

    @property
    def operations(self) -> float:
        """Operations of the products of an iteration."""
        return sum(each.operations for each in self.iteration)

    def time(self, *, triples: bool) -> str:
        """For people: predicted time and disk traffic of an iteration, and of (T)."""
        found = f"an iteration: {self.iteration_s:.3g} s"
        if self.ways:
            found += f" ({self.ways[self.ladder].ladder_s:.3g} s for the ladder)"
        if self.moved_bytes:
            found += (
                f"; to and from disk {self.moved_bytes / 1e6:.0f} MB, {self.product_bytes / 1e6:.0f} MB of them by "
                "products"
            )
        if triples and self.triples is not None:
            found += f"; (T): {self.triples.seconds:.3g} s"
            if self.triples.bytes:
                found += f", {self.triples.bytes / 1e6:.0f} MB from disk"
        return found


_NAMES = {"memory": "in memory", "disk": "on disk", "rebuild": "recomputed"}


def make_plan(
    sizes: Sizes,
    free_bytes: int,
    rates: Rates = ASSUMED,
    *,
    storage: str = "auto",
    ladder: str = "auto",
    block: int | None = None,
    limit: str = "--memory",
    budget_bytes: int | None = None,
    disk_bytes: float = math.inf,
    what: Describe = describe.iterations,
    later: Describe | None = None,
    given: Mapping[str, Entry] | None = None,
) -> Plan:
    """A plan for `free_bytes` at each process of `rates`. `limit`: for messages, what leaves these bytes. `block`:
    most virtual orbitals of a block; None: as the memory has room for. `budget_bytes`: memory that the user has
    given to all processes, for the message that says how much is needed. `disk_bytes`: free bytes of all disks.
    `what`: the stage to plan. `later`: a stage that may go on with its blocks and arrays. `given`: arrays that
    exist already, and stay where they are; their bytes belong to `free_bytes`.

    Raises OutcoreError: ENOMEM if nothing fits, with the memory that is enough; EINVAL."""
    check_places(storage, ladder)
    threads, processes = rates.threads, rates.processes
    given = given or {}
    least = least_bytes(sizes, threads, block=block, what=what)
    least += sum(each.cache_bytes - CACHE_BYTES for each in given.values() if not each.in_memory)
    most = max(describe.asked(each, sizes, threads) for each in (what, later) if each is not None)
    room_bytes = free_bytes - CACHE_BYTES * most

    def need(size: int) -> int:
        return describe.work_bytes(what, sizes, size, threads)

    chosen = _block(sizes, free_bytes, room_bytes, threads, block, need)
    budget = None if budget_bytes is None else budget_bytes + (least - free_bytes) * processes
    if free_bytes < least:
        more = ""
        if budget is not None:
            # Parts after this one may need more; their plans will say so.
            more = f"{enough(budget)} for all of them"
            more = f"; this part needs {more}" if given else f"; {more} are enough"
        raise OutcoreError(
            errno.ENOMEM,
            METHOD,
            detail=f"{max(sizes.occupied)} occupied and {max(sizes.virtual)} virtual orbitals with "
            f"{sizes.auxiliary} auxiliary functions need at least {in_words(least)} more in each of "
            f"{processes} processes, but {limit} leaves {in_words(free_bytes)} to each{more}",
        )
    work = max(need(chosen), min(free_bytes // _SHARE, _ENOUGH))
    fitting = Fitting(
        sizes, chosen, free_bytes, work, rates, on_disk=storage == "disk", what=what, most=most, given=given
    )
    found, lacking = fitting.ways(ladder, disk_bytes)
    if ladder == "memory" and "memory" in lacking:
        needed, left = fitting.of_integrals
        raise OutcoreError(
            errno.ENOMEM,
            "ladder integrals in memory",
            detail=f"they take {in_words(needed)}, {limit} leaves {in_words(left)}",
        )
    way = ladder if ladder != "auto" else min(found, key=lambda name: found[name].placement.seconds)
    taken = found[way]
    ways, work = fitting.table(found, way), taken.placement.work_bytes
    if work < need(chosen):
        raise OutcoreError(
            errno.ENOMEM,
            METHOD,
            detail=f"arrays that are in memory leave {in_words(max(0, work))} to work in",
        )
    beside_made = work - ladder_kernels.tiles(sizes, chosen, threads, is_stored=False)
    found_plan = Plan(
        sizes,
        describe.spaces_of(sizes, chosen),
        taken.entries(),
        work,
        taken.placement.taken_bytes,
        way if ways else "",
        taken.passes,
        ways,
        _why(ladder, ways, lacking),
        taken.placement.predicted,
        None,
        processes,
        beside_made_bytes=max(0, beside_made),
        least_budget_bytes=None if ladder == "memory" else budget,
    )
    if what is not describe.iterations or not methods.of(sizes.method).has_triples:
        return found_plan
    return replace(found_plan, triples=_triples(found_plan, rates, block))


def _triples(plan: Plan, rates: Rates, block: int | None) -> Predicted:
    """The prediction for (T) after the iterations of a plan. block: most orbitals of its blocks; None: as many
    as the memory has room for."""
    sizes, blocks = plan.sizes, plan.spaces[0].block
    recording = describe.triples(sizes, blocks, rates.threads, rates.processes, most=block)
    kept = {each.number: plan.arrays[each.name] for each in recording.arrays}
    inside = {number: each.in_memory for number, each in kept.items()}
    room = Resident({}, inside, plan.work_bytes, PANELS)
    memory = max(plan.work_bytes, plan.left_by(kept.values()))
    return RoomWays(recording.description, memory, rates, {}, room).predicted(0, {}, memory)


def least_bytes(
    sizes: Sizes, threads: int, *, block: int | None = None, what: Describe = describe.iterations
) -> int:
    """The least bytes of each process for `make_plan`, if integrals of the ladder are not in memory."""
    chosen = min_block(sizes) if block is None else _asked(sizes, block)
    work = describe.work_bytes(what, sizes, chosen, threads)
    return work + CACHE_BYTES * describe.asked(what, sizes, threads)


def _why(asked: str, ways: Mapping[str, IntegralsWay], lacking: Collection[str]) -> str:
    """For people: the reason for the place of the ladder's integrals."""
    if asked != "auto" or not ways:
        return "as asked" if ways else ""
    told = [
        f"{_NAMES[name]} " + ("there is no room" if name in lacking else f"{way.ladder_s:.3g} s")
        for name, way in ways.items()
    ]
    return f"predicted for its part of an iteration: {', '.join(told)}"


def enough(needed_bytes: int) -> str:
    """For people: the bytes and a reserve, as the memory of a process before the calculation varies."""
    return f"{math.ceil(needed_bytes / 1e6) + _BEGIN_MB} MB"


def _asked(sizes: Sizes, block: int) -> int:
    if block < 1:
        raise OutcoreError(errno.EINVAL, f"blocks of {block} orbitals", detail="1 or more are needed")
    return min(max(block, min_block(sizes)), max(sizes.virtual))


def _block(
    sizes: Sizes,
    free_bytes: int,
    room_bytes: int,
    threads: int,
    asked: int | None,
    need: Callable[[int], int],
) -> int:
    """The largest block that the memory has room for, and that makes anything faster: see
    docs/develop/decisions/blocks.md. room_bytes: free bytes
    without caches. need: the least work space with blocks of some size."""
    if asked is not None:
        return _asked(sizes, asked)
    virtual, least = max(sizes.virtual), min_block(sizes)
    most = max(1, min(_LARGEST_BLOCK, int((_TILE_BYTES / _DOUBLE) ** 0.5) // max(sizes.occupied)))

    def fits(size: int) -> bool:
        made = ladder_kernels.tiles(sizes, size, threads, is_stored=False)
        return need(size) <= min(free_bytes // 2, room_bytes) and made <= free_bytes // _SHARE

    found = max(min(most, virtual), least)
    if not fits(found):
        found = max(
            least, bisect_left(range(least, found), True, key=lambda size: not fits(size)) + least - 1
        )
    return int(np.ceil(virtual / np.ceil(virtual / found)))
