"""How fast the machine of a job is, as plans and forecasts of a CI reckon with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.job import machine

if TYPE_CHECKING:
    from outcore.job.world import World

OF_PEAK = 0.5  # of the rate of large products of matrices that a whole product H x reaches
_GEMM = (256, 256, 256)


@dataclass(frozen=True)
class Speeds:
    """What a forecast reckons with. gemm: operations a second of one thread in products of 256 rows, columns and
    inner extent, of the type of the work. read, write: bytes a second of the disks of all nodes together; infinite
    where a plan has nothing on disk. network: bytes a second that all processes together get from other nodes.
    disk_measured: else the disk is assumed to be slow. copy: bytes a second that a thread copies."""

    gemm: float
    read: float = math.inf
    write: float = math.inf
    network: float = math.inf
    nodes: int = 1
    disk_measured: bool = True
    copy: float = 5e9

    def of_product(self, flops: float, threads: int) -> float:
        """Seconds of the operations of a product H x in so many threads of all processes."""
        return flops / (OF_PEAK * self.gemm * threads)


def measured(world: World, threads: int, dtype: str, *, disks: bool) -> Speeds:
    """Of the machine of this job, with so many threads of each process; `disks`: those for scratch, too.
    Collective, the same at all processes."""
    network = machine.network(world) * world.size if world.node_count > 1 else math.inf
    found = None
    with world.together("measure rates", threads, dtype):
        if world.rank == 0:
            found = _here(world, threads, dtype, network, disks)
    found = world.broadcast(found) if world.size > 1 else found
    assert found is not None
    return found


def _here(world: World, threads: int, dtype: str, network: float, disks: bool) -> Speeds:
    gemm = machine.gemm(*_GEMM, threads, dtype)
    copy = machine.copying(threads) if world.node_count > 1 else Speeds.copy
    if not disks:
        return Speeds(gemm, network=network, nodes=world.node_count, copy=copy)
    disk, known = machine.planning_disk(world.scratch)
    read, write = (each * world.node_count for each in (disk.read_bytes_per_s, disk.write_bytes_per_s))
    return Speeds(gemm, read, write, network, world.node_count, known, copy)
