"""Three-index integrals between core, active and virtual orbitals. All other integrals are products of two of them.

B[P, i, r] of core and virtual orbitals is stored as in RI-MP2, and read orbital by orbital. Integrals with an
active orbital are fewer, and stay in the memory of every process.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.nevpt2.orbitals import TITLE
from outcore.chem.ri import bound
from outcore.chem.ri.plan import TransformPlan, TransformSizes, min_for_transform, plan_transform
from outcore.chem.ri.transformed import ActiveOrbitals, Transformed, transform

if TYPE_CHECKING:
    from outcore.chem.nevpt2.orbitals import CasOrbitals
    from outcore.chem.ri.rows import Rows
    from outcore.job.resources import Allowance
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

Matrix = NDArray[np.float64]

_DOUBLE = 8
_FORMS = 4  # forms for overlaps with perturbers of another state, each as large as a two-particle density
_WIDEST = 64  # most virtual orbitals of a block; more do not make BLAS faster


@dataclass(frozen=True)
class Plan:
    """transform: plan of the three-index integrals. block: number of virtual orbitals whose products with all
    others are in memory together."""

    transform: TransformPlan
    block: int


@dataclass(frozen=True)
class _Needs:
    """Bytes that each process needs. counts: of core, active and virtual orbitals. rows: number of functions P.
    others: number of states that couple."""

    counts: tuple[int, int, int]
    rows: int
    others: int = 0

    @property
    def held(self) -> int:
        """Arrays that are held all the time: integrals with an active orbital, twice while they are read;
        integrals of perturbers with one outer orbital; pairs; forms."""
        core, active, virtual = self.counts
        three = 2 * self.rows * active * (core + active + virtual)
        return _DOUBLE * (
            three + (core + virtual) * active**3 + (core**2 + 8 * active**2) * active**2
        ) + _DOUBLE * (_FORMS * self.others * active**4)

    def block(self, width: int) -> int:
        """Work space for `width` virtual orbitals: products with a core orbital, and with all active and virtual
        orbitals, and their contractions with densities."""
        _, active, virtual = self.counts
        of_pairs = 3 * width * virtual * active**2
        return _DOUBLE * (max(4 * width * virtual * active, of_pairs) + self.rows * virtual)


def plan(
    sizes: TransformSizes,
    counts: tuple[int, int, int],
    free: Allowance,
    processes: int,
    threads: int,
    storage: str,
    others: int = 0,
) -> Plan:
    """The plan for the free memory of each process. Raises OutcoreError (ENOMEM), which says how much is enough."""
    needs = _Needs(counts, sizes.auxiliary, others)
    least = min_for_transform(sizes, processes, threads, storage) + needs.held + needs.block(1)
    if free.bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            TITLE,
            detail=f"three-index integrals of {counts[0]} core, {counts[1]} active and {counts[2]} virtual "
            f"orbitals need at least {in_words(least)} more in each of {processes} processes, but {free.reason} "
            f"leaves {in_words(free.bytes)} to each",
        )
    width, spare = min(_WIDEST, max(counts[2], 1)), free.bytes - least
    while width > 1 and needs.block(width) - needs.block(1) > spare // 2:
        width //= 2
    left = free.bytes - needs.held - needs.block(width)
    return Plan(plan_transform(sizes, left, processes, threads, storage, limit=free.reason), width)


def least_bytes(
    functions: int,
    columns: int,
    rows: int,
    counts: tuple[int, int, int],
    processes: int,
    threads: int,
    storage: str,
    others: int = 0,
) -> int:
    """The least memory of each process for `plan`. functions, columns, rows: see `outcore.chem.ri.rows.Rows`."""
    sizes, needs = _sizes(functions, columns, rows, counts), _Needs(counts, rows, others)
    return min_for_transform(sizes, processes, threads, storage) + needs.held + needs.block(1)


def _sizes(functions: int, columns: int, rows: int, counts: tuple[int, int, int]) -> TransformSizes:
    """The sizes of all kinds of integrals that are not empty."""
    core, active, virtual = counts
    shapes = [(core, virtual), (core, active), (active, active + virtual)]
    first, second = zip(*(each for each in shapes if all(each)), strict=True)
    return TransformSizes(functions, columns, rows, first, second)


class OuterIntegrals:
    """The three-index integrals. core_virtual: B[P, i, r], None without such pairs. core_active: B[P, i, a].
    active: B[P, a, any active or virtual]. The constructor and `close` are collective."""

    def __init__(
        self,
        world: World,
        rows: Rows,
        orbitals: CasOrbitals,
        free: Allowance,
        threads: int,
        storage: str,
        progress: Progress | None,
        others: int = 0,
    ) -> None:
        self._signs = rows.signs
        core, active, virtual = orbitals.core, orbitals.active, orbitals.virtual
        self.counts = orbitals.counts
        none = np.zeros(self.counts[1])
        kinds = {
            "core_virtual": _kind(core, virtual, orbitals.core_energies, orbitals.virtual_energies),
            "core_active": _kind(core, active, orbitals.core_energies, none),
            "active": _kind(
                active, np.hstack([active, virtual]), none, np.append(none, orbitals.virtual_energies)
            ),
        }
        kinds = {name: each for name, each in kinds.items() if all(each.shape)}
        sizes = _sizes(rows.functions, rows.columns, rows.count, self.counts)
        with world.together(TITLE):
            self.plan = plan(sizes, self.counts, free, world.size, threads, storage, others)
        self.bytes = sizes.bytes
        made = {
            name: Transformed(world, sizes.auxiliary, each, self.plan.transform)
            for name, each in kinds.items()
        }
        transform(world, rows, list(made.values()), self.plan.transform.batch_rows, threads, progress)
        metric = rows.fit(world)
        self._fitted, self._memory_bytes = replace(sizes, auxiliary=metric.rank), free.bytes * world.size
        for each in made.values():
            each.complete("transformed")
            each.fit(metric, threads)
        self.core_virtual = made.pop("core_virtual", None)
        whole = {name: _whole(each) for name, each in made.items()}
        world.barrier()
        for each in made.values():
            each.close()
        self.active = whole["active"]
        self.core_active = whole.get("core_active", np.zeros((len(self.active), 0, self.counts[1])))

    def least_moved(self, *, pairs: bool) -> float:
        """Bytes that all processes together had to move to and from disk, in this memory. pairs: whether any two
        core orbitals had to meet."""
        if not pairs:
            return bound.once(self._fitted.bytes, self._memory_bytes)
        core, _, virtual = self.counts
        kinds = [(0, 0)] if core and virtual else []
        return bound.pairs(self._fitted, kinds, self._memory_bytes)

    @property
    def signs(self) -> Matrix | None:
        """See `outcore.chem.ri.source.Source`."""
        return self._signs

    def product(self, left: Matrix, right: Matrix) -> Matrix:
        """sum_P left[P, ...] right[P, ...]."""
        first = left.reshape(len(left), -1)
        if self._signs is not None:
            first = self._signs[: len(first), None] * first
        found = first.T @ right.reshape(len(right), -1)
        return np.asarray(found.reshape(left.shape[1:] + right.shape[1:]))

    def core_orbital(self, i: int) -> Matrix:
        """B[P, r] of core orbital i with all virtual ones. Not collective."""
        assert self.core_virtual is not None
        found = self.core_virtual.local(i, i + 1)
        if found is None:
            found = np.empty((self.core_virtual.rows, 1, self.counts[2]))
            self.core_virtual.get(i, i + 1, found).wait()
        return np.ascontiguousarray(found[:, 0])

    def close(self) -> None:
        """Collective; may be repeated."""
        if self.core_virtual is not None:
            self.core_virtual.close()
            self.core_virtual = None


def _kind(occupied: Matrix, virtual: Matrix, low: Matrix, high: Matrix) -> ActiveOrbitals:
    numbers: Any = np.arange(occupied.shape[1])
    return ActiveOrbitals(np.ascontiguousarray(occupied), np.ascontiguousarray(virtual), low, high, numbers)


def _whole(integrals: Transformed) -> Matrix:
    occupied, virtual = integrals.orbitals.shape
    found = np.empty((integrals.rows, occupied, virtual))
    integrals.get(0, occupied, found).wait()
    return found
