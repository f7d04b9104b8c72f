"""What a calculation will take, told before it begins: memory, disk, bytes moved, time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.chem.ri.plan import TransformPlan, TransformSizes, pair_tasks
from outcore.chem.ri.team import blas_of_one_thread

if TYPE_CHECKING:
    from outcore.chem.ri.pairs import Pairs
    from outcore.chem.ri.three_index import ThreeIndex

CYCLES = 10  # of an SCF, as a rule
_SAMPLE_S = 0.02
_DOUBLE = 8


@dataclass(frozen=True)
class Forecast:
    """All processes together; memory of integrals and work space, beside what a process has anyway."""

    memory_bytes: int
    disk_bytes: int
    written_bytes: int
    read_bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"memory {self.memory_bytes / 1e6:.0f} MB, disk {self.disk_bytes / 1e6:.0f} MB, "
            f"to disk {self.written_bytes / 1e6:.0f} MB, from disk {self.read_bytes / 1e6:.0f} MB, "
            f"{self.seconds:.1f} s"
        )

    def against(self, written: int, read: int, seconds: float) -> str:
        """The line of a run that is done."""
        return (
            f"predicted / actual: to disk {self.written_bytes / 1e6:.0f} / {written / 1e6:.0f} MB, "
            f"from disk {self.read_bytes / 1e6:.0f} / {read / 1e6:.0f} MB, {self.seconds:.1f} / {seconds:.1f} s"
        )


@dataclass(frozen=True)
class Rates:
    """Of one thread, measured on samples of the real thing (a few hundredths of a second each); of the disk."""

    integrals: float  # a second
    expanded: float  # elements
    flops: float  # of products of matrices
    contracted: float  # elements of a row in J
    summed: float  # elements of pair energies
    read: float  # bytes
    written: float

    @classmethod
    def measure(cls, native: Any, pairs: Pairs, auxiliary: int, orbitals: int, scratch: str | None) -> Rates:
        """For `auxiliary` functions, and `orbitals` occupied ones; `scratch` None: no disk is used. Not
        collective."""
        from outcore.doctor import measure_rates
        from outcore.report import RawRates

        n = pairs.functions
        disk = RawRates(math.inf, math.inf) if scratch is None else measure_rates(Path(scratch))
        some, width = pairs.sample(40)
        values = np.zeros((auxiliary, width))
        rows, matrix, left = np.zeros((8, pairs.columns)), np.zeros((1, n, n)), np.ones((max(orbitals, 1), n))
        v, energies, gap = np.ones((128, 1, 128)), np.ones(128), np.array([-1.0])
        shells = native.auxiliary_shells
        with blas_of_one_thread():
            return cls(
                values.size * _frequency(lambda: native.integrals(some, 0, shells, values, 1)),
                n * n * _frequency(lambda: native.expand(pairs.table, rows[:1], matrix, 1)),
                2.0 * len(left) * n * n * _frequency(lambda: np.matmul(left, matrix)),
                rows.size * _frequency(lambda: (rows[:1] @ rows.T) @ rows),
                v.size * _frequency(lambda: _core.pair_sums(v, gap, energies, energies, True)),
                disk.read_bytes_per_s,
                disk.write_bytes_per_s,
            )


def scf(integrals: ThreeIndex, rates: Rates, threads: int) -> Forecast:
    """Of making the integrals, and J and K in CYCLES cycles, and once before and after."""
    plan, size = integrals.plan, integrals.world.size
    n, columns = integrals.pairs.functions, integrals.pairs.columns
    rows = integrals.metric_functions
    team, passes = threads * size, CYCLES + 2
    disk = (rows - plan.memory_rows) * columns * _DOUBLE
    made = rows * columns / rates.integrals + rows**2 * columns / rates.flops
    half, whole = 2.0 * rows * integrals.orbitals * n**2, rows * integrals.orbitals * n**2
    used = (half + whole) / rates.flops + rows * n**2 / rates.expanded + rows * columns / rates.contracted
    seconds = max(made / team, disk / rates.written) + rows**3 / rates.flops
    seconds += passes * max(used / team, disk / rates.read)
    memory = size * (plan.memory_bytes + max(plan.build_bytes, plan.iterate_bytes))
    return Forecast(memory, disk, disk, passes * disk, seconds)


def mp2(
    sizes: TransformSizes,
    plan: TransformPlan,
    same: list[tuple[int, int]],
    rates: Rates,
    size: int,
    threads: int,
) -> Forecast:
    """`same`: pairs of spins whose orbitals are correlated, (0, 0) alone of closed shells."""
    n, rows, team = sizes.functions, sizes.auxiliary, threads * size
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
            held = None
            for block, tile in pair_tasks(o_a, o_b, plan.block, plan.tile, a == b):
                read += (tile[1] - tile[0]) * v_b * rows * _DOUBLE
                read += 0 if block == held else (block[1] - block[0]) * v_a * rows * _DOUBLE
                held = block
    deep, wide = plan.chunk  # what is stored are whole chunks
    disk = sum(-(-rows // deep) * deep * -(-o // wide) * wide * v * _DOUBLE for o, v in shapes)
    disk = 0 if plan.in_memory else disk
    seconds = max(made / team, disk / rates.written) + rows**3 / rates.flops
    seconds += max(fitted / team, disk / rates.written + disk / rates.read)
    seconds += max(paired / team, read / rates.read)
    memory = size * (plan.memory_bytes + max(plan.transform_bytes, plan.fit_bytes, plan.pair_bytes))
    return Forecast(memory, disk, 2 * disk, int(read), seconds)


def _frequency(call: Callable[[], Any]) -> float:
    """Calls a second."""
    call()
    count, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < _SAMPLE_S or count == 0:
        call()
        count += 1
    return count / passed
