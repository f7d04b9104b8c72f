"""What a plan reckons with: how fast this machine multiplies, copies and moves, and how many do it."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base.recent import Recent
from outcore.job import machine, rate_cache, resources
from outcore.tensor.plan.amounts import Amounts

if TYPE_CHECKING:
    from outcore.job.world import World

_GEMM = 1024  # rows and columns of what is measured
_INNER = (16, 64, 128, 256, 1024)
_CORRECTION = "contractions"
_TELLING_S = 0.3  # of a run
_ALIKE = 0.03  # rates are not corrected by less
_MUCH_FASTER = 2.0  # than predicted: the machine was busy before
_LOOK_S = 1.0  # between two looks at what is known of the machine
_SHARE = 0.75  # of what is left of the budget
TYPES = ("float32", "float64", "complex64", "complex128")  # whose products are measured
_COMPLEX = {"complex64": "float32", "complex128": "float64"}  # four real multiplications each


@dataclass(frozen=True)
class Rates:
    """Of all processes of a job on alike nodes. Bytes and operations a second.

    Attributes:
        gemm: of one thread, by inner extent, for large rows and columns, two operations a multiplication.
        copy: of one thread.
        read, write: of the disk of a node.
        network: of one process.
        threads: of a process.
        sharing: processes of each node that can share panels, if all nodes have as many; 1: they cannot.
        storage: names the disk that was measured.
        compute, disk: how many times as fast as measured alone products and disks are here.
    """

    gemm: tuple[tuple[int, float], ...]
    copy: float
    read: float
    write: float
    network: float
    processes: int = 1
    nodes: int = 1
    threads: int = 1
    sharing: int = 1
    storage: str = ""
    compute: float = 1.0
    disk: float = 1.0

    @property
    def of_nodes(self) -> Rates:
        """Of processes that share panels, taken together: as if a node were one process with all its threads."""
        return replace(
            self,
            network=self.network * self.sharing,
            processes=max(1, self.processes // self.sharing),
            threads=self.threads * self.sharing,
            sharing=1,
        )

    def flops(self, shortest: Any) -> Any:
        """Of one thread in products whose shortest side is so long; of arrays of such, too."""
        shortest = np.maximum(shortest, 1.0)
        sides = np.log([side for side, _ in self.gemm])
        thin = np.minimum(1.0, shortest / self.gemm[0][0])
        return np.interp(np.log(shortest), sides, [rate for _, rate in self.gemm]) * thin

    @cached_property
    def peak(self) -> float:
        """Operations a second of all."""
        return max(rate for _, rate in self.gemm) * self.threads * self.processes

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> Rates:
        return Rates(**{**values, "gemm": tuple((int(n), float(rate)) for n, rate in values["gemm"])})

    def scaled(self, compute: float, disk: float) -> Rates:
        """As runs have shown it: so many times as fast."""
        return replace(
            self,
            gemm=tuple((n, rate * compute) for n, rate in self.gemm),
            read=self.read * disk,
            write=self.write * disk,
            compute=self.compute * compute,
            disk=self.disk * disk,
        )


ASSUMED = Rates(
    gemm=((16, 15e9), (64, 26e9), (128, 34e9), (256, 38e9), (1024, 40e9)),
    copy=5e9,
    read=1e9,
    write=1e9,
    network=math.inf,
)
"""Of a machine that nobody has measured."""


def measured(world: World, threads: int, dtype: Any = "float64") -> Rates:
    """Of the machine of this job, as `rate_cache` knows it. Collective, the same at all: of process 0, the
    network of the slowest."""
    name = np.dtype(dtype).name
    network = machine.network(world)
    sharing = sharing_of(world)
    settings = threads, world.size, world.node_count, world.node_size, world.scratch, network, sharing, name
    device = _core.engine_name(), _core.emulation()
    moment = device, resources.cores(), rate_cache.changes(), int(time.monotonic() / _LOOK_S)

    def look() -> Rates:
        return _looked_up(world, threads, name, network, sharing)

    found = None
    with world.together("measure rates"):
        found = _recent.get((settings, moment), look) if world.rank == 0 else None
    result = world.broadcast(found)
    assert result is not None
    return result


_recent: Recent[Rates] = Recent(8)  # so that small contractions do not look at the disk again and again


def _looked_up(world: World, threads: int, dtype: str, network: float, sharing: int) -> Rates:
    """By process 0: what is known of the machine; what is not is measured."""
    real = _COMPLEX.get(dtype, dtype)
    share = 4.0 if dtype in _COMPLEX else 1.0
    busy = threads * world.node_size
    speeds = [machine.gemm(_GEMM, _GEMM, n, busy, real) / share for n in _INNER]
    disk, _ = machine.planning_disk(world.scratch)
    rates = Rates(
        gemm=tuple((n, max(speeds[: i + 1])) for i, n in enumerate(_INNER)),
        copy=machine.copying(busy),
        read=disk.read_bytes_per_s,
        write=disk.write_bytes_per_s,
        network=network,
        processes=world.size,
        nodes=world.node_count,
        threads=threads,
        sharing=sharing,
        storage=machine.disk_name(world.scratch),
    )
    factors = corrections(rates, dtype)
    return rates.scaled(factors["compute"], factors["disk"])


def sharing_of(world: World) -> int:
    """Processes of each node that share memory; 1 if nodes have different numbers of them. Collective."""
    least, most = (int(world.all_reduce(world.node_size, how)) for how in ("min", "max"))
    return least if least == most else 1


def corrections(rates: Rates, dtype: str) -> rate_cache.Values:
    """How many times as fast as measured alone products and disks were in contractions: 1 before the first. What
    runs have shown holds for rates that have been measured anew since."""
    result = {}
    for name, rate in _alone(rates).items():
        found = rate_cache.current(_CORRECTION, _settings(rates, dtype, name), due=True)
        result[name] = 1.0 if found is None else _limited(found["rate"] / rate)
    return result


def learn(rates: Rates, dtype: str, predicted: Amounts, actual: Amounts) -> None:
    """Corrects what later plans reckon with by a run: half way, in logarithms, to what would have been right. By
    one process. Short runs tell nothing, nor do those that took about as long as was predicted. A run in less than
    half of the predicted time shows that earlier ones had a busy machine: what they have shown is forgotten."""
    if actual.seconds < _TELLING_S or predicted.seconds <= 0:
        return
    faster = predicted.seconds / actual.seconds
    ratio = min(max(faster, 0.25), 4.0) ** 0.5
    if abs(ratio - 1) < _ALIKE:  # other rates would make all plans anew
        return
    disk = predicted.disk_read / rates.read + predicted.disk_written / rates.write
    which = "disk" if disk / rates.nodes >= 0.9 * predicted.seconds else "compute"
    known = corrections(rates, dtype)[which]
    factor = _limited(known * ratio)
    if faster > _MUCH_FASTER:
        factor = max(factor, min(1.0, known * faster))
    shown = {"rate": factor * _alone(rates)[which]}
    rate_cache.add(_CORRECTION, _settings(rates, dtype, which), shown, alone=True)


def _alone(rates: Rates) -> rate_cache.Values:
    """What is corrected, as it was measured."""
    peak = max(rate for _, rate in rates.gemm)
    return {"compute": peak / rates.compute, "disk": rates.read / rates.disk}


def _limited(factor: float) -> float:
    return min(max(factor, 0.05), 4.0)


def _settings(rates: Rates, dtype: str, which: str) -> dict[str, Any]:
    """What a correction depends on: that of a disk on which one it is, too."""
    storage = {"storage": rates.storage} if which == "disk" else {}
    return {
        "of": which,
        "threads": rates.threads,
        "processes": rates.processes,
        "type": dtype,
        **storage,
    }


def memory_of(world: World) -> int:
    """Bytes of each process, if the caller names none: three quarters of what is left of the least budget.
    Collective."""
    free = world.budget.limit_bytes - world.budget.used_bytes
    return int(world.all_reduce(free, "min") * _SHARE)


def threads_of(world: World) -> int:
    """Threads of each process if all of a node compute."""
    return max(1, resources.cores() // world.node_size)
