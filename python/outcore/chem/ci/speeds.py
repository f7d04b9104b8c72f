"""The rates of a machine that plans and forecasts of a CI need: fewer than products of arrays need, so that a CI
measures no more than these."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from outcore.job import machine
from outcore.tensor.plan.rates import ASSUMED, Rates

if TYPE_CHECKING:
    from outcore.job.world import World

OF_PEAK = 0.5  # of the rate of large products of matrices that a whole product H x reaches
_GEMM = (256, 256, 256)


def of_product(rates: Rates, flops: float, threads: int) -> float:
    """Seconds of the operations of a product H x in so many threads of all processes."""
    return flops / (OF_PEAK * gemm(rates) * threads)


def gemm(rates: Rates) -> float:
    """Operations a second of one thread in products of 256 rows, columns and inner extent."""
    return float(rates.flops(_GEMM[-1]))


def network(rates: Rates) -> float:
    """Bytes a second that all processes together get from other nodes."""
    return rates.network * rates.processes


def measured(world: World, threads: int, dtype: str, *, disks: bool) -> Rates:
    """The rates of the machine of this job, with so many threads of each process, in products of the type of the
    work. disks: those for scratch are measured, too; else they count as infinitely fast. Collective, the same at
    all processes."""
    of_process = machine.network(world) if world.node_count > 1 else math.inf
    found = None
    with world.together("measure rates", threads, dtype):
        if world.rank == 0:
            found = _here(world, threads, dtype, of_process, disks)
    found = world.broadcast(found) if world.size > 1 else found
    assert found is not None
    return found


def _here(world: World, threads: int, dtype: str, of_process: float, disks: bool) -> Rates:
    read, write, storage = math.inf, math.inf, ""
    if disks:
        disk, known = machine.planning_disk(world.scratch)
        read, write = disk.read_bytes_per_s, disk.write_bytes_per_s
        storage = machine.disk_name(world.scratch) if known else ""
    return Rates(
        gemm=((_GEMM[-1], machine.gemm(*_GEMM, threads, dtype)),),
        copy=machine.copying(threads) if world.node_count > 1 else ASSUMED.copy,
        read=read,
        write=write,
        network=of_process,
        processes=world.size,
        nodes=world.node_count,
        threads=threads,
        storage=storage,
    )
