"""Forecasts of a calculation before it begins: memory, disk, bytes moved, time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base import html
from outcore.base.sizes import in_words
from outcore.chem.ri.jk import JkWorker, OrbitalGroup
from outcore.chem.ri.plan import TransformPlan, TransformSizes, pair_tasks
from outcore.job import machine
from outcore.job.machine import Call, frequency

if TYPE_CHECKING:
    from outcore.chem.ri.pairs import Pairs
    from outcore.chem.ri.three_index import ThreeIndex

_SAMPLE_S = 0.02
_COPIES = (
    10  # copies in the cache of a core that take as long as a byte from the disk (request, check, placement)
)
_DRIVER = 90  # a cycle takes so many times n^3 operations of matrix products in addition to J and K
_DOUBLE = 8


@dataclass(frozen=True)
class Forecast:
    """Numbers of all processes together. memory_bytes: integrals and work space, without the memory that processes
    hold anyway."""

    memory_bytes: int
    disk_bytes: int
    written_bytes: int
    read_bytes: int
    seconds: float
    disk_measured: bool = True  # else a slow one is assumed

    def __str__(self) -> str:
        return (
            f"memory {self.memory_bytes / 1e6:.0f} MB, disk {self.disk_bytes / 1e6:.0f} MB, "
            f"to disk {self.written_bytes / 1e6:.0f} MB, from disk {self.read_bytes / 1e6:.0f} MB, "
            f"{self.seconds:.1f} s" + ("" if self.disk_measured else ", disk not measured")
        )

    def _repr_html_(self) -> str:
        rows = [
            ("memory", in_words(self.memory_bytes)),
            ("disk", in_words(self.disk_bytes)),
            ("to disk", in_words(self.written_bytes)),
            ("from disk", in_words(self.read_bytes)),
            ("time", f"{self.seconds:.1f} s" + ("" if self.disk_measured else ", disk not measured")),
        ]
        return html.facts("Integrals of density fitting, estimate", rows)

    def against(self, written: int, read: int, seconds: float) -> str:
        """The line that compares a finished run with this forecast."""
        return (
            f"predicted / actual: to disk {self.written_bytes / 1e6:.0f} / {written / 1e6:.0f} MB, "
            f"from disk {self.read_bytes / 1e6:.0f} / {read / 1e6:.0f} MB, {self.seconds:.1f} / {seconds:.1f} s"
        )


@dataclass(frozen=True)
class FittingRates:
    """Rates of one thread while other threads do the same, each measured on a sample of the real work (a few
    hundredths of a second); and rates of the disk."""

    integrals: float  # a second
    expanded: float  # elements
    flops: float  # of products of matrices
    summed: float  # elements of pair energies
    copied: float  # bytes
    read: float  # bytes
    written: float
    disk_measured: bool = True

    @classmethod
    def measure(
        cls, native: Any, pairs: Pairs, auxiliary: int, orbitals: int, threads: int, scratch: str | None
    ) -> FittingRates:
        """Measures rates for so many auxiliary functions and occupied orbitals. scratch: None: no disk is used. Not
        collective."""
        from outcore.trace.report import RawRates

        n = pairs.functions
        disk, measured = RawRates(math.inf, math.inf), True
        if scratch is not None:
            disk, measured = machine.planning_disk(scratch)
        some, width = pairs.sample(40)
        row = np.zeros((1, pairs.columns))
        energies, gap = np.ones(128), np.array([-1.0])
        shells = native.auxiliary_shells

        def integrals() -> Call:
            values = np.zeros((auxiliary, width))
            return lambda: native.integrals(some, 0, shells, values, 1)

        def expand() -> Call:
            matrix = np.zeros((1, n, n))
            return lambda: native.expand(pairs.table, row, matrix, 1)

        def pair_sums() -> Call:
            v = np.ones((128, 1, 128))
            return lambda: _core.pair_sums(v, gap, energies, energies, True)

        def rate(amount: float, make: Callable[[], Call]) -> float:
            return amount * frequency(make, threads)

        return cls(
            rate(auxiliary * width, integrals),
            rate(n * n, expand),
            machine.gemm(orbitals, n, n, threads),
            rate(128 * 128, pair_sums),
            machine.copying(threads),
            disk.read_bytes_per_s,
            disk.write_bytes_per_s,
            measured,
        )


def jk_rate(integrals: ThreeIndex, threads: int) -> float:
    """Rows a second that one thread contracts to J and K while others do the same, from a sample."""
    pairs, spins, rows = integrals.pairs, integrals.spins, integrals.plan.half_rows
    orbitals = np.ones((max(integrals.orbitals, 1), pairs.functions))

    def use() -> Call:
        columns = np.zeros((integrals.columns.irreps, spins, pairs.columns))
        groups = list[list[OrbitalGroup]]()
        if integrals.symmetry.order == 1:
            groups += [[OrbitalGroup(orbitals)]] * spins
        else:
            some = np.array_split(orbitals, integrals.columns.irreps)
            of_irreps = [OrbitalGroup(each, irrep=irrep) for irrep, each in enumerate(some) if len(each)]
            groups += [of_irreps] * spins
        worker, values = JkWorker(integrals, columns, groups, len(orbitals)), np.zeros((rows, pairs.columns))
        return lambda: worker.add(0, values)

    return rows * frequency(use, threads, 4 * _SAMPLE_S)  # nearly all of the time of an SCF


def scf(integrals: ThreeIndex, rates: FittingRates, threads: int, cycles: int) -> Forecast:
    """Of making the integrals, and J and K in so many cycles, and once before and after."""
    plan, size = integrals.plan, integrals.world.size
    n, columns = integrals.pairs.functions, integrals.pairs.columns
    rows = integrals.metric_functions
    workers, passes = threads * size, cycles + 2
    disk = (rows - plan.memory_rows) * columns * _DOUBLE
    metric = integrals.sizes.metric
    made = rows * columns / rates.integrals + metric * columns / rates.flops
    used = rows / jk_rate(integrals, threads) + _COPIES * disk / rates.copied
    seconds = max(made / workers, disk / rates.written) + metric**1.5 / rates.flops
    seconds += passes * (max(used / workers, disk / rates.read) + _DRIVER * n**3 / rates.flops)
    memory = size * (plan.memory_bytes + max(plan.build_bytes, plan.iterate_bytes))
    return Forecast(memory, disk, disk, passes * disk, seconds, rates.disk_measured)


def mp2(
    sizes: TransformSizes,
    plan: TransformPlan,
    same: list[tuple[int, int]],
    rates: FittingRates,
    size: int,
    threads: int,
) -> Forecast:
    """The forecast of MP2. same: pairs of spins that are correlated; only (0, 0) for closed shells."""
    n, rows, workers = sizes.functions, sizes.auxiliary, threads * size
    shapes = list(zip(sizes.occupied, sizes.virtual, strict=True))
    made = rows * sizes.columns / rates.integrals + rows * n**2 / rates.expanded
    made += sum(2.0 * rows * o * n * (n + v) for o, v in shapes) / rates.flops
    fitted = sum(rows**2 * o * v for o, v in shapes) / rates.flops
    paired, read = 0.0, 0.0 if plan.in_memory else float(sizes.bytes)
    for a, b in same:
        (o_a, v_a), (o_b, v_b) = shapes[a], shapes[b]
        pairs = o_a * (o_a + 1) / 2 if a == b else o_a * o_b
        paired += pairs * (2.0 * rows / rates.flops + 1.0 / rates.summed) * v_a * v_b
        if not plan.in_memory:
            tasks = pair_tasks(o_a, o_b, plan.block, plan.tile, a == b)
            read += sum((tile[1] - tile[0]) * v_b * rows * _DOUBLE for _, tile in tasks)
            # Processes share the tiles of a block, and each of them holds the block.
            for block, count in Counter(block for block, _ in tasks).items():
                read += min(size, count) * (block[1] - block[0]) * v_a * rows * _DOUBLE
    deep, wide = plan.chunk  # whole chunks are stored
    disk = sum(-(-rows // deep) * deep * -(-o // wide) * wide * v * _DOUBLE for o, v in shapes)
    disk = 0 if plan.in_memory else disk
    fitted_read = disk
    if disk <= size * plan.cache_bytes:  # all of it stays in the caches
        fitted_read, read = 0, 0.0
    seconds = max(made / workers, disk / rates.written) + rows**3 / rates.flops
    seconds += max(fitted / workers, disk / rates.written + fitted_read / rates.read)
    seconds += max(paired / workers, read / rates.read)
    memory = size * (plan.memory_bytes + max(plan.transform_bytes, plan.fit_bytes, plan.pair_bytes))
    return Forecast(memory, disk, 2 * disk, int(read + fitted_read), seconds, rates.disk_measured)
