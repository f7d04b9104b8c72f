"""How a coupled-cluster calculation is fitted into the memory of its processes: the arrays that it has, which of
them are in memory, and how large their tiles are. Pure arithmetic, the same at all processes."""

from __future__ import annotations

import errno
import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words, times
from outcore.chem import storage as storage_words
from outcore.chem.cc import forecast, ladder_sizes
from outcore.chem.cc.layouts import arrays_of
from outcore.chem.cc.placing import CACHE_BYTES, Entry, Placing, of_role
from outcore.chem.cc.spaces import Spaces
from outcore.chem.cc.specs import ArraySpec, Role
from outcore.chem.cc.traffic import PANELS
from outcore.chem.cc.triple_sizes import block_bytes
from outcore.tensor.layout import Layout
from outcore.tensor.schedule import FULL
from outcore.tensor.tiling import Tiling

if TYPE_CHECKING:
    from outcore.chem.cc.forecast import Rates, Way

METHOD = "coupled cluster"
STORAGES = ("auto", "disk")  # what fits stays in memory; all on disk
LADDERS = ("auto", "disk", "memory", "rebuild")

_LARGEST_CACHE = 4 << 20  # more makes nothing faster
_CACHES = 4  # of the memory that nothing needs, the part that larger caches take at most

_DOUBLE = 8
_TILE_BYTES = 16 << 20  # of pairs of occupied and virtual orbitals, at most: larger ones make nothing faster
_LARGEST_BLOCK = 32
_MOST_BLOCKS = 24  # of virtual orbitals: tiles of four indices are counted by the fourth power of it
_BEGIN_MB = 4  # that processes have more or less before they begin
_GO_BY = (Role.VECTOR, Role.PREPARATION, Role.LADDER_PRODUCT)  # tile after tile, none of them again
_SHARE = 4  # of the free memory, the part that work takes at least, if arrays do not leave more


@dataclass(frozen=True)
class Sizes:
    """What is to be computed: basis functions, auxiliary functions (rows of B), active orbitals
    of each spin (one of closed shells), vectors of the extrapolation, the boundaries of rows that are
    transformed together, and the method, by its word (`methods.METHODS`)."""

    functions: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    vectors: int
    cuts: tuple[int, ...]
    method: str = "ccsd"


@dataclass(frozen=True)
class Plan:
    """Bytes are of one process, but for those of the disk.

    Attributes:
        arrays: by name.
        work_bytes: for tiles and panels that are worked on.
        memory_bytes: of arrays in memory.
        disk_bytes: of arrays on disk, of all processes.
        ladder: where its integrals are: "disk", "memory" or "rebuild".
        passes: how often they go by in an iteration.
        ways: what each of the three would take; empty if no rates were given.
        why: for people, of the ladder.
        rest_s, triples_s: seconds of an iteration beside the ladder, and of (T); 0 if no rates were given.
        beside_made_bytes: of `work_bytes`, what tiles of the ladder leave while they are made.
        least_budget_bytes: what arrays on disk need of all processes, if the user has given them a budget.
    """

    sizes: Sizes = field(repr=False)
    spaces: tuple[Spaces, ...]
    arrays: dict[str, Entry] = field(repr=False)
    work_bytes: int
    memory_bytes: int
    disk_bytes: int
    ladder: str
    passes: int = 1
    ways: dict[str, Way] = field(default_factory=dict, repr=False)
    why: str = ""
    rest_s: float = 0.0
    triples_s: float = 0.0
    beside_made_bytes: int = 0
    least_budget_bytes: int | None = None

    def __str__(self) -> str:
        on_disk = [name for name, entry in self.arrays.items() if not entry.in_memory]
        places = "all arrays in memory" if not on_disk else f"on disk {self.disk_bytes / 1e6:.0f} MB"
        return (
            f"arrays in memory {self.memory_bytes / 1e6:.0f} MB, work {self.work_bytes / 1e6:.0f} MB in each "
            f"process; {places}; "
            f"ladder integrals: {_NAMES[self.ladder]}{self.why and ', '}{self.why}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "block": self.spaces[0].block,
            "work_bytes": self.work_bytes,
            "memory_bytes": self.memory_bytes,
            "disk_bytes": self.disk_bytes,
            "ladder": self.ladder,
            "ladder_passes": self.passes,
            "ladder_why": self.why,
            "seconds_of_an_iteration_beside_the_ladder": self.rest_s,
            "seconds_of_triples": self.triples_s,
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
        """What each way to have the integrals of the ladder takes."""
        lines = [
            f"{'ladder integrals':18s} {'MB':>10s} {'MB read':>10s} {'s once':>9s} {'s':>9s}  an iteration each"
        ]
        for name, way in self.ways.items():
            chosen = "  <- this run" if name == self.ladder else ""
            lines.append(
                f"{_NAMES[name]:18s} {way.stored_bytes / 1e6:10.0f} {way.read_bytes / 1e6:10.0f} {way.once_s:9.2f} "
                f"{way.iteration_s:9.2f}{chosen}"
            )
        return "\n".join(lines)

    def entry(self, name: str) -> Entry:
        """Raises OutcoreError (EINVAL): there is no such array."""
        if name not in self.arrays:
            raise OutcoreError(errno.EINVAL, METHOD, detail=f"the plan has no array {name}")
        return self.arrays[name]

    def of_role(self, role: Role) -> list[str]:
        """Names of the arrays that have this role."""
        return of_role(self.arrays, role)

    @property
    def kept_bytes(self) -> int:
        """Of all arrays that a checkpoint has copies of."""
        return sum(each.bytes for each in self.arrays.values() if each.spec.is_kept)

    @property
    def iteration_s(self) -> float:
        """Of an iteration, foreseen; of a plan with rates."""
        return self.ways[self.ladder].iteration_s + self.rest_s

    def time(self, *, triples: bool) -> str:
        """About how long an iteration takes, and (T)."""
        if not self.ways:
            return ""
        ladder = self.ways[self.ladder].iteration_s
        found = f"an iteration: {self.iteration_s:.3g} s, of which the ladder takes {ladder:.3g} s"
        return found + (f"; (T): {self.triples_s:.3g} s" if triples else "")


_NAMES = {"disk": "on disk", "memory": "in memory", "rebuild": "made again"}


def check_places(storage: str, ladder: str) -> None:
    """Raises OutcoreError (EINVAL) for words that are none, and for places that exclude each other."""
    storage_words.check(storage, STORAGES, METHOD)
    if ladder not in LADDERS:
        raise OutcoreError(errno.EINVAL, f"ladder '{ladder}'", detail=f"it may be {', '.join(LADDERS)}")
    if storage == "disk" and ladder == "memory":
        raise OutcoreError(errno.EINVAL, "ladder integrals in memory", detail="all arrays are to be on disk")


def make_plan(
    sizes: Sizes,
    free_bytes: int,
    processes: int,
    threads: int,
    *,
    storage: str = "auto",
    ladder: str = "auto",
    block: int | None = None,
    limit: str = "--memory",
    budget_bytes: int | None = None,
    only: Collection[str] | None = None,
    rates: Rates | None = None,
    disk_bytes: float = math.inf,
) -> Plan:
    """For `free_bytes` at each process, which `limit` leaves. `block`: virtual orbitals of a
    block at most; None: as the memory has room for. `budget_bytes`: what the user has given to all
    processes, for the message that tells how much is needed. `only`: arrays that are needed; None: all. `rates`: by
    which ladder="auto" decides; None: the integrals are in memory if they fit there, else on disk. `disk_bytes`:
    that are free on all disks.

    Raises OutcoreError: ENOMEM if nothing fits, with what does; EINVAL."""
    check_places(storage, ladder)
    least = least_bytes(sizes, threads, block=block, only=only)
    chosen = _block(sizes, free_bytes, free_bytes - CACHE_BYTES * _count(sizes, only), threads, block)
    work = max(_work(sizes, chosen, threads), free_bytes // _SHARE)
    spaces = tuple(Spaces(o, v, chosen) for o, v in zip(sizes.occupied, sizes.virtual, strict=True))
    specs = arrays_of(sizes, spaces, only)
    budget = None if budget_bytes is None else budget_bytes + (least - free_bytes) * processes
    if free_bytes < least:
        more = "" if budget is None else f"; {enough(budget)} for all of them are enough"
        raise OutcoreError(
            errno.ENOMEM,
            METHOD,
            detail=f"{max(sizes.occupied)} occupied and {max(sizes.virtual)} virtual orbitals with "
            f"{sizes.auxiliary} auxiliary functions need at least {in_words(least)} more in each of "
            f"{processes} processes, but {limit} leaves {in_words(free_bytes)} to each{more}",
        )
    cached = _caches(specs, free_bytes - work)
    left = (free_bytes - work - sum(cached.values())) * processes if storage == "auto" else 0
    entries = {each.name: Entry(each, False, cached[each.name]) for each in specs}
    integrals = of_role(entries, Role.LADDER_INTEGRALS)
    placing = Placing(sizes, entries, free_bytes, left, processes, threads, chosen)
    found = {way: placing.best(way) for way in forecast.WAYS}
    passes = {way: each.passes for way, each in found.items()}
    ways = {} if rates is None else forecast.ladder(sizes, rates, passes)
    inside = found["memory"].arrays
    room = {
        "memory": all(inside[name].in_memory for name in integrals),
        "disk": found["disk"].disk <= disk_bytes,
        "rebuild": True,
    }
    if ladder == "memory" and not room["memory"]:
        needed = sum(entries[name].bytes for name in integrals)
        others = sum(x.bytes for name, x in inside.items() if x.in_memory and name not in integrals)
        raise OutcoreError(
            errno.ENOMEM,
            "ladder integrals in memory",
            detail=f"they take {in_words(needed)}, {limit} leaves {in_words(left - others)}",
        )
    way, why = _way(ladder, ways, room)
    taken = found[way]
    arrays, work, count = taken.arrays, taken.work, taken.passes
    rest_s, triples_s = (
        (0.0, 0.0)
        if rates is None
        else (
            forecast.rest_of_iteration(sizes, rates, taken.handled, taken.moved),
            forecast.triples(sizes, rates),
        )
    )
    for name in of_role(arrays, Role.LADDER_PRODUCT):
        spec = arrays[name].spec
        arrays[name] = replace(arrays[name], spec=replace(spec, layout=_in_parts(spec.layout, count)))
    return Plan(
        sizes,
        spaces,
        arrays,
        work,
        taken.memory // processes,
        taken.disk,
        way,
        count,
        ways,
        why,
        rest_s,
        triples_s,
        beside_made_bytes=max(0, work - ladder_sizes.tiles(sizes, chosen, threads, "rebuild")),
        least_budget_bytes=None if ladder == "memory" else budget,
    )


def least_bytes(
    sizes: Sizes, threads: int, *, block: int | None = None, only: Collection[str] | None = None
) -> int:
    """What `make_plan` needs of each process, whatever the ladder, if not in memory."""
    chosen = _least_block(sizes) if block is None else _asked(sizes, block)
    return _work(sizes, chosen, threads) + CACHE_BYTES * _count(sizes, only)


def _count(sizes: Sizes, only: Collection[str] | None) -> int:
    """Of arrays, which is the same for all blocks."""
    spaces = tuple(Spaces(o, v, v) for o, v in zip(sizes.occupied, sizes.virtual, strict=True))
    return len(arrays_of(sizes, spaces, only))


def _caches(specs: Collection[ArraySpec], free_bytes: int) -> dict[str, int]:
    """Of arrays on disk. Tiles that are brought ahead share that of their array: where little fits into it the disk
    rests between one piece and the next. Products read those that are as large as amplitudes again and again;
    vectors of the extrapolation go by one after another."""
    amplitudes = min((each.bytes for each in specs if each.role is Role.AMPLITUDES), default=0)
    often = [each.name for each in specs if each.role not in _GO_BY and 0 < amplitudes <= each.bytes]
    spare = (free_bytes - CACHE_BYTES * len(specs)) // (_CACHES * max(1, len(often)))
    larger = min(max(CACHE_BYTES, CACHE_BYTES + spare), _LARGEST_CACHE)
    return {each.name: larger if each.name in often else CACHE_BYTES for each in specs}


def _way(asked: str, ways: dict[str, Way], room: dict[str, bool]) -> tuple[str, str]:
    """Where the integrals of the ladder are to be, and why."""
    if asked != "auto":
        return asked, "as asked"
    if not ways:
        return next(name for name in room if room[name]), "the first that there is room for"
    told = [
        f"{_NAMES[name]} " + (f"{each.iteration_s:.3g} s" if room[name] else "there is no room")
        for name, each in ways.items()
    ]
    way = forecast.choose(ways, [name for name in ways if room[name]])
    return way, f"forecast of its part of an iteration: {', '.join(told)}"


def _in_parts(layout: Layout, passes: int) -> Layout:
    """The last axis, of occupied pairs or orbitals, in so many tiles, if it has as many elements."""
    *others, last = layout.tilings
    parts = min(passes, last.size)
    return Layout((*others, Tiling(last.size, [last.size * n // parts for n in range(parts + 1)])))


def enough(needed_bytes: int) -> str:
    """For people: more than that, as what a process has before it begins is not the same each time."""
    return f"{math.ceil(needed_bytes / 1e6) + _BEGIN_MB} MB"


def _asked(sizes: Sizes, block: int) -> int:
    if block < 1:
        raise OutcoreError(errno.EINVAL, f"blocks of {block} orbitals", detail="1 or more are needed")
    return min(max(block, _least_block(sizes)), max(sizes.virtual))


def _block(sizes: Sizes, free_bytes: int, room_bytes: int, threads: int, asked: int | None) -> int:
    """The largest that the memory has room for, and that makes anything faster. room_bytes: without caches."""
    if asked is not None:
        return _asked(sizes, asked)
    virtual = max(sizes.virtual)
    most = max(1, min(_LARGEST_BLOCK, int((_TILE_BYTES / _DOUBLE) ** 0.5) // max(sizes.occupied)))
    found = max(min(most, virtual), _least_block(sizes))
    while found > _least_block(sizes) and (
        _work(sizes, found, threads) > min(free_bytes // 2, room_bytes)
        or ladder_sizes.tiles(sizes, found, threads, "rebuild") > free_bytes // _SHARE
    ):
        found -= 1
    return int(np.ceil(virtual / np.ceil(virtual / found)))


def _least_block(sizes: Sizes) -> int:
    return -(-max(sizes.virtual) // _MOST_BLOCKS)


def _of_its_rows(sizes: Sizes, block: int, threads: int) -> list[int]:
    """Elements that work on what a ladder makes of occupied orbitals."""
    o = max(sizes.occupied)
    hole, one, pair = o**4, o**3 * block, (o * block) ** 2
    if len(sizes.occupied) == 2:
        # The last: panels of dressed integrals of open shells, which have a row of virtual orbitals.
        row = sizes.auxiliary * block * (6 * max(sizes.virtual) + 3 * o)
        return [4 * hole + 3 * one * threads, row]
    return [hole + 3 * one * threads, hole + (one + 5 * pair) * threads, hole // 2 + 7 * pair * threads]


def _of_occupied_panels(sizes: Sizes) -> int:
    """Elements of the work space in which `einsum` can multiply B[Q,k,i] by another of its kind: tiles of occupied
    orbitals are not cut, and of both operands there are one that is multiplied and one that comes next. Where
    orbitals are mostly occupied nothing else takes as much."""
    square = max(sizes.occupied) ** 2
    return math.ceil((4 * sizes.auxiliary * square + square * square) / (PANELS * FULL)) + 1


def _work(sizes: Sizes, block: int, threads: int) -> int:
    """Bytes of the largest tiles and panels that are worked on at a time."""
    o, q, n = max(sizes.occupied), sizes.auxiliary, sizes.functions
    most = max(b - a for a, b in pairwise(sizes.cuts))
    pair, square = (block * o) ** 2, o * o
    rows = block * max(o, block)
    hole = o * (o + 1) // 2
    ladder = ladder_sizes.streamed(sizes, block, threads) // ladder_sizes.most_passes(sizes)
    ladder += max(ladder_sizes.tiles(sizes, block, threads, way) for way in forecast.WAYS)
    at_once = (
        5 * pair,  # rings
        6 * pair * threads,  # tile by tile
        ladder // _DOUBLE,
        5 * rows * square * threads,  # its result
        4 * square * square,
        *_of_its_rows(sizes, block, threads),
        q * block * (o + 4 * block) * threads,  # operands of rings
        q * block * (7 * block + 4 * o),  # panels of products with three-index integrals
        3 * q * block * o + 3 * pair,  # Coulomb
        q * (2 * square + 3 * block * max(o, block)),  # exchange
        3 * q * (rows * threads + hole),  # fit
        _of_occupied_panels(sizes),
        q * q,  # metric
        most * 4 * n * n * threads,  # transformation
    )
    triples = block_bytes(sizes.occupied, sizes.virtual, q, 1, threads)
    return max(int(max(at_once)) * _DOUBLE, triples)
