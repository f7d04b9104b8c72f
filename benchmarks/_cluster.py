"""A modelled cluster: the rates and sizes of its nodes, and the time that a method takes on some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from outcore.cli.bench import Claim
from outcore.tensor.plan.rates import ASSUMED, Rates

NODES = (1, 8, 64, 512)


@dataclass(frozen=True)
class Cluster:
    """All assumptions about the machine. A core has the rates of `tensor.plan.rates.ASSUMED`. Threads of a process
    and processes of a node do not slow each other. Every node sends and receives at the full rate of its network,
    to and from any other node.

    Attributes:
        nodes: number of nodes, which are alike.
        cores, processes: per node; a process has one thread per core that it has.
        memory, disk: bytes per node; methods get the fraction `usable` of the memory.
        read, write: bytes per second of all disks of a node.
        network: bytes per second of a node, in each direction.
    """

    nodes: int = 1
    cores: int = 128
    processes: int = 8
    memory: float = 512e9
    usable: float = 0.9
    disk: float = 8e12
    read: float = 12e9
    write: float = 12e9
    network: float = 12.5e9

    def __str__(self) -> str:
        return (
            f"nodes of {self.processes} processes with {self.threads} threads each, {self.memory / 1e9:.0f} GB of "
            f"memory, {self.usable:g} of it for methods, {self.disk / 1e12:g} TB of disks that read "
            f"{self.read / 1e9:g} and write {self.write / 1e9:g} GB/s, a network of "
            f"{self.network / 1e9:g} GB/s each way; a core multiplies with {core(256) / 1e9:.0f} Gflop/s"
        )

    def of(self, nodes: int, **changes: Any) -> Cluster:
        return replace(self, nodes=nodes, **changes)

    @property
    def threads(self) -> int:
        return self.cores // self.processes

    @property
    def size(self) -> int:
        """Number of processes on all nodes."""
        return self.nodes * self.processes

    @property
    def free_bytes(self) -> int:
        """Bytes of memory for methods, per process."""
        return int(self.memory * self.usable / self.processes)

    def rates(self) -> Rates:
        """The rates for the planners of contractions and of coupled cluster."""
        return replace(
            ASSUMED,
            read=self.read,
            write=self.write,
            network=self.network / self.processes if self.nodes > 1 else math.inf,
            processes=self.size,
            nodes=self.nodes,
            threads=self.threads,
            sharing=self.processes,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def core(shortest: int) -> float:
    """Operations per second of a core in double-precision matrix products. shortest: the shortest side."""
    return float(ASSUMED.flops(shortest))


@dataclass(frozen=True)
class Taken:
    """Time and traffic of a method on some nodes.

    Attributes:
        ideal: seconds of its operations if all cores are busy all the time.
        parts: seconds of each part; the key names the part or its limit. Parts run one after another.
        disk, network: bytes that all nodes move.
        how: a description for readers.
    """

    ideal: float
    parts: dict[str, float]
    disk: float
    network: float
    how: str = ""

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    @property
    def efficiency(self) -> float:
        return self.ideal / self.seconds

    @property
    def limit(self) -> str:
        """The name of the longest part."""
        return max(self.parts, key=lambda name: self.parts[name])


def longest(parts: dict[str, float]) -> dict[str, float]:
    """The longest of parts that run at the same time, alone."""
    name = max(parts, key=lambda each: parts[each])
    return {name: parts[name]}


def together(*every: dict[str, float]) -> dict[str, float]:
    """Adds the seconds of parts that have the same name."""
    names = dict.fromkeys(name for parts in every for name in parts)
    return {name: sum(parts.get(name, 0.0) for parts in every) for name in names}


def claims(method: str, what: str, found: dict[int, Taken | str]) -> list[Claim]:
    """Claims about a method. found: the result for each number of nodes, or a text that says why there is none."""
    result = []
    for nodes, taken in found.items():
        on = f"on {nodes} {'node' if nodes == 1 else 'nodes'}"
        if isinstance(taken, str):
            result.append(Claim(f"{method}: time {on}", None, "s", None, "", f"{what}: {taken}"))
            continue
        parts = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in taken.parts.items())
        how = f"{what}; {parts}; {taken.how}"
        result += [
            Claim(f"{method}: time {on}", taken.seconds, "s", None, f"limit: {taken.limit}", how),
            Claim(f"{method}: efficiency {on}", taken.efficiency, "", None, "all cores busy", ""),
            Claim(f"{method}: disk {on}", taken.disk / 1e12, "TB moved", None, "", ""),
            Claim(f"{method}: network {on}", taken.network / 1e12, "TB moved", None, "", ""),
        ]
    return result


def largest(sizes: Sequence[int], fits: Any) -> int | None:
    """The largest of the ascending sizes that fits, or None if none fits."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(sizes[middle]) else (low, middle)
    return sizes[low - 1] if low else None
