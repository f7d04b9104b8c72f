"""Which arrays are in memory: the more there are the less is left to work with. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from outcore.chem.cc import ladder_sizes, traffic
from outcore.chem.cc.specs import Role

if TYPE_CHECKING:
    from outcore.chem.cc.plan import Sizes
    from outcore.chem.cc.specs import ArraySpec
    from outcore.tensor.layout import Layout

CACHE_BYTES = 1 << 20
"""Of each array on disk, at each process, at least."""
_AS_GOOD = 1.02  # times the least that an iteration may move


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


def of_role(entries: Mapping[str, Entry], role: Role) -> list[str]:
    """Names of the arrays that have this role."""
    return [name for name, entry in entries.items() if entry.spec.role is role]


@dataclass(frozen=True)
class Placed:
    """Arrays where they are to be, bytes of those in memory, what is left to work in at each process, how often
    integrals of the ladder go by in an iteration then. About how many bytes an iteration moves: integrals of the
    ladder that are read or made; all else that is handled, and what is moved to and from disk of that."""

    arrays: dict[str, Entry]
    memory: int
    work: int
    passes: int
    ladder: float
    handled: float
    moved: float

    @property
    def disk(self) -> int:
        return sum(each.bytes for each in self.arrays.values() if not each.in_memory)


class Placing:
    """Weighs arrays in memory against what is left to work in.

    Args:
        entries: of all arrays on disk, those first that are used most for their size.
        free_bytes: at each process.
        left_bytes: what arrays may take of it, at all processes together.
        block: virtual orbitals of a block.
    """

    def __init__(
        self,
        sizes: Sizes,
        entries: Mapping[str, Entry],
        free_bytes: int,
        left_bytes: int,
        processes: int,
        threads: int,
        block: int,
    ) -> None:
        self._sizes, self._entries = sizes, entries
        self._free, self._left, self._processes = free_bytes, left_bytes, processes
        self._threads, self._block = threads, block
        self._integrals = of_role(entries, Role.LADDER_INTEGRALS)

    def best(self, way: str) -> Placed:
        """With integrals of the ladder that are "disk", "memory" or "rebuild": of what moves about least, that with
        most arrays in memory."""
        names = self._fitting(way)
        fewest = max((n + 1 for n, name in enumerate(names) if name in self._integrals), default=0)
        several = [self._placed(way, names[:count]) for count in range(len(names), fewest - 1, -1)]
        least = min(each.ladder + each.moved for each in several)
        return next(each for each in several if each.ladder + each.moved <= _AS_GOOD * least)

    def _fitting(self, way: str) -> list[str]:
        found, memory = [], 0
        for name, entry in self._entries.items():
            if not (name in self._integrals and way != "memory") and memory + entry.bytes <= self._left:
                found.append(name)
                memory += entry.bytes
        return found

    def _placed(self, way: str, inside: Collection[str]) -> Placed:
        arrays = {
            name: replace(entry, in_memory=name in inside)
            for name, entry in self._entries.items()
            if not (name in self._integrals and way == "rebuild")
        }
        memory = sum(each.bytes for each in arrays.values() if each.in_memory)
        caches = sum(each.cache_bytes for each in arrays.values() if not each.in_memory)
        work = self._free - memory // self._processes - caches
        passes = ladder_sizes.passes(self._sizes, self._block, self._threads, work, way)
        on_disk = {name: each for name, each in arrays.items() if not each.in_memory}
        # Integrals that are made again cost no less than those that are read.
        ladder = traffic.of_ladder(self._entries if way == "rebuild" else on_disk, passes)
        handled, moved = (
            traffic.beside_ladder(self._sizes, each, arrays, work, passes) for each in (arrays, on_disk)
        )
        return Placed(arrays, memory, work, passes, ladder, handled, moved)
