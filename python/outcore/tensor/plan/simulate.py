"""A planned product on a simulated clock: the same pieces of work, dealt out in the same way, on machines that are
not here. Disks and processors take a little more or less time for each request, by chance; the seed decides."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.tensor.layout.geometry import Step
from outcore.tensor.plan.estimates import shortest_side
from outcore.tensor.plan.product_plan import Held, Planned
from outcore.tensor.plan.rates import Rates

_STRIPE = 64 << 20  # bytes of a panel on one disk, unless it has more than there are disks
_SPREAD = 0.1  # of the logarithm of each time

Slower = Mapping[int, float]


@dataclass(frozen=True, eq=False)
class Simulated:
    """What has happened. `read_bytes`, `busy_seconds`: from disk and in products, of each process, or of each node
    whose processes share panels."""

    seconds: float
    read_bytes: np.ndarray[Any, np.dtype[np.float64]]
    busy_seconds: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def idle(self) -> float:
        """The share of all processes' time in which they do not multiply."""
        return 1 - float(self.busy_seconds.sum()) / (self.seconds * len(self.busy_seconds))


class _Disks:
    """One for each node; a file lies on any of them, by chance."""

    def __init__(self, rates: Rates, seed: int, spread: float, slower: Slower) -> None:
        self._rates, self._spread = rates, spread
        self._slower = np.array([slower.get(node, 1.0) for node in range(rates.nodes)])
        self._random = np.random.default_rng(seed)
        self._free_at = np.zeros(rates.nodes)

    def node_of(self, number: int) -> int:
        """Of a process."""
        return number * self._rates.nodes // self._rates.processes

    def slowness(self, number: int) -> float:
        """Of a process: how many times slower than others it is."""
        return float(self._slower[self.node_of(number)])

    def chance(self) -> float:
        """By how much a time is longer or shorter."""
        return float(np.exp(self._spread * self._random.standard_normal())) if self._spread else 1.0

    def serve(self, now: float, number: int, size: float, rate: float) -> float:
        """When a request of a process is served: by several disks, if it is large."""
        rates = self._rates
        parts = min(rates.nodes, math.ceil(size / _STRIPE))
        begin, own = int(self._random.integers(rates.nodes)), self.node_of(number)
        last, from_others = now, 0.0
        for node in (np.arange(begin, begin + parts) % rates.nodes).tolist():
            seconds = size / parts / rate * float(self._slower[node]) * self.chance()
            done = max(now, float(self._free_at[node])) + seconds
            self._free_at[node] = done
            last = max(last, done)
            from_others += 0.0 if node == own else size / parts
        return last + from_others / parts / rates.network


class _Process:
    def __init__(self, planned: Planned) -> None:
        self.steps: deque[tuple[Step, bool]] = deque()  # and whether it ends its panel of the result
        self.ahead: deque[tuple[Step, bool, float]] = deque()  # and when its panels are here
        self.held = Held(planned.plan.slots[0]), Held(planned.plan.slots[1])
        self.free_at = 0.0  # its processor
        self.puts: deque[float] = deque()  # when results that go to disk will be there
        self.results = planned.plan.choice.results

    def put(self, done: float) -> None:
        """A result goes to disk until then. The next one waits, if there is no memory for it meanwhile."""
        self.puts.append(done)
        if len(self.puts) >= self.results:
            self.free_at = max(self.free_at, self.puts.popleft())


class _Run:
    def __init__(self, planned: Planned, rates: Rates, seed: int, spread: float, slower: Slower) -> None:
        geometry, problem = planned.geometry, planned.problem
        self.planned, self.problem, self.rates, self.sizes = planned, problem, rates, geometry.sizes
        self.processes = [_Process(planned) for _ in range(rates.processes)]
        self.disks = _Disks(rates, seed, spread, slower)
        self.read, self.busy = np.zeros(rates.processes), np.zeros(rates.processes)
        self.elements = (
            geometry.elements(geometry.left, (0, 1, 3)),
            geometry.elements(geometry.right, (0, 3, 2)),
        )
        self.results = geometry.elements(geometry.out, (0, 1, 2)) * problem.out.item_bytes
        _, a, w, c = (float(sizes.mean()) for sizes in geometry.sizes)
        self.speed = float(rates.flops(shortest_side(a, w, c, rates.threads))) * rates.threads
        if planned.plan.sharing > 1:
            self.speed /= planned.shares.uneven
        self.units = iter(planned.units)

    def ask(self, number: int, now: float) -> None:
        """For the panels of one step more of a process, if there is one."""
        process = self.processes[number]
        if not process.steps:
            unit = next(self.units, None)
            if unit is None:
                return
            for task in unit:
                process.steps.extend((step, step.inner == task.inner[-1]) for step in task)
        step, last = process.steps.popleft()
        arrived = now
        if step.inner >= 0:
            for side, panel in self.planned.wanted(step):
                facts = (self.problem.left, self.problem.right)[side]
                if process.held[side].take(panel)[1] and facts.where == "disk":
                    size = float(self.elements[side][panel]) * facts.item_bytes
                    self.read[number] += size
                    arrived = max(arrived, self.disks.serve(now, number, size, self.rates.read))
        process.ahead.append((step, last, arrived))

    def multiply(self, number: int, now: float) -> float:
        """The step whose panels are here, and asks for those of the next; bytes to put after it."""
        process = self.processes[number]
        step, last, _ = process.ahead.popleft()
        b, m, n, k = (self.sizes[group][panel] for group, panel in enumerate(step))
        seconds = 2.0 * b * m * n * k / self.speed * self.disks.chance() if step.inner >= 0 else 0.0
        seconds *= self.disks.slowness(number)
        self.busy[number] += seconds
        process.free_at = now + seconds
        self.ask(number, now)
        if not last or self.problem.out.where != "disk":
            return 0.0
        is_put_twice = self.planned.plan.choice.half and step.rows != step.columns
        return float(self.results[step.batch, step.rows, step.columns]) * (2 if is_put_twice else 1)


def simulate(
    planned: Planned, rates: Rates, seed: int = 0, *, spread: float = _SPREAD, slower: Slower | None = None
) -> Simulated:
    """Runs all pieces of work. A panel lies on the disks of one node or more, by chance, and comes over the network
    from others; a disk serves one request at a time. As in a run, the panels of the next step are asked for when
    one begins, whatever piece of work it belongs to, and a result is put while the next one is made, if the plan
    has memory for both. Processes that share panels are as one. `slower`: how many times slower the disk and the
    processors of some nodes are."""
    rates = rates.of_nodes if planned.plan.sharing > 1 else rates
    run = _Run(planned, rates, seed, spread, slower or {})
    ready = [(0.0, number, 0.0) for number in range(rates.processes)]  # when, who, bytes to put first
    end = 0.0
    while ready:
        now, number, to_put = heapq.heappop(ready)
        process = run.processes[number]
        if to_put:
            process.put(run.disks.serve(now, number, to_put, rates.write))
            heapq.heappush(ready, (process.free_at, number, 0.0))
            continue
        if not process.ahead:
            run.ask(number, now)
        if not process.ahead:
            end = max(end, process.free_at, *process.puts)
            continue
        begun = max(process.ahead[0][2], process.free_at)
        if begun > now:  # others ask for their panels before
            heapq.heappush(ready, (begun, number, 0.0))
            continue
        to_put = run.multiply(number, now)
        heapq.heappush(ready, (process.free_at, number, to_put))
    return Simulated(end, run.read, run.busy)
