"""A planned product on a simulated clock: the same pieces of work, dealt out in the same way, on machines that are
not here. Disks and processors take a little more or less time for each request, by chance; the seed decides."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.tensor.geometry import Step
from outcore.tensor.product_plan import Held, Planned
from outcore.tensor.rates import Rates

_SPREAD = 0.1  # of the logarithm of each time


@dataclass(frozen=True, eq=False)
class Simulated:
    """What has happened. `read_bytes`, `busy_seconds`: of each process, from disk and in products."""

    seconds: float
    read_bytes: np.ndarray[Any, np.dtype[np.float64]]
    busy_seconds: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def idle(self) -> float:
        """The share of all processes' time in which they do not multiply."""
        return 1 - float(self.busy_seconds.sum()) / (self.seconds * len(self.busy_seconds))


class _Disks:
    """One for each node; a file lies on any of them, by chance."""

    def __init__(self, rates: Rates, seed: int, spread: float) -> None:
        self._rates, self._spread = rates, spread
        self._random = np.random.default_rng(seed)
        self._free_at = np.zeros(rates.nodes)

    def chance(self) -> float:
        """By how much a time is longer or shorter."""
        return float(np.exp(self._spread * self._random.standard_normal())) if self._spread else 1.0

    def serve(self, now: float, number: int, size: float, rate: float) -> float:
        """When a request of a process is served."""
        rates = self._rates
        node = int(self._random.integers(rates.nodes))
        done = max(now, float(self._free_at[node])) + size / rate * self.chance()
        self._free_at[node] = done
        own = number * rates.nodes // rates.processes == node
        return done if own else done + size / rates.network


class _Process:
    def __init__(self, planned: Planned) -> None:
        self.steps: deque[Step] = deque()
        self.held = Held(planned.plan.slots[0]), Held(planned.plan.slots[1])
        self.free_at = 0.0  # its processor


def simulate(planned: Planned, rates: Rates, seed: int = 0, *, spread: float = _SPREAD) -> Simulated:
    """Runs all pieces of work. A panel lies on the disk of one node, by chance, and comes over the network from
    another; a disk serves one request at a time; the panels of the next step of a task come while one is worked
    on."""
    geometry, problem = planned.geometry, planned.problem
    processes = [_Process(planned) for _ in range(rates.processes)]
    disks = _Disks(rates, seed, spread)
    read, busy = np.zeros(rates.processes), np.zeros(rates.processes)
    elements = (geometry.elements(geometry.left, (0, 1, 3)), geometry.elements(geometry.right, (0, 3, 2)))
    results = geometry.elements(geometry.out, (0, 1, 2)) * problem.out.item_bytes
    _, a, w, c = (float(sizes.mean()) for sizes in geometry.sizes)
    speed = float(rates.flops(min(a / rates.threads, w, c))) * rates.threads
    units = iter(planned.units)
    ready = [(0.0, number, 0.0) for number in range(rates.processes)]  # when, who, bytes to put first
    end = 0.0

    while ready:
        now, number, to_put = heapq.heappop(ready)
        process = processes[number]
        if to_put:
            process.free_at = disks.serve(now, number, to_put, rates.write)
            heapq.heappush(ready, (process.free_at, number, 0.0))
            continue
        if not process.steps:
            unit = next(units, None)
            if unit is None:
                end = max(end, process.free_at)
                continue
            process.steps.extend(step for task in unit for step in task)
        step = process.steps.popleft()
        arrived = now
        if step.inner >= 0:
            panels = (step.batch, step.rows, step.inner), (step.batch, step.inner, step.columns)
            for side, facts in enumerate((problem.left, problem.right)):
                if process.held[side].take(panels[side])[1] and facts.where == "disk":
                    size = float(elements[side][panels[side]]) * facts.item_bytes
                    read[number] += size
                    arrived = max(arrived, disks.serve(now, number, size, rates.read))
        begun = max(arrived, process.free_at)
        b, m, n, k = (geometry.sizes[group][panel] for group, panel in enumerate(step))
        seconds = 2.0 * b * m * n * k / speed * disks.chance() if step.inner >= 0 else 0.0
        busy[number] += seconds
        process.free_at = begun + seconds
        following = process.steps[0] if process.steps else None
        if (following is None or following[:3] != step[:3]) and problem.out.where == "disk":
            size = float(results[step.batch, step.rows, step.columns])
            heapq.heappush(ready, (process.free_at, number, size))
        else:
            heapq.heappush(ready, (begun, number, 0.0))
    return Simulated(end, read, busy)
