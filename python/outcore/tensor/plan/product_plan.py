"""The plan of one product of two arrays: what was chosen, and what it will move, multiply and take."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.recent import Recent
from outcore.tensor.layout.geometry import ProductGeometry, ProductProblem, ProductTask, Step
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.bound import bound, received_bound
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.estimates import PANEL_S, STEP_S, shortest_side
from outcore.tensor.plan.loop import step_table, steps_of
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.schedule import FULL, SLOWER, ample_bytes, may_share, search, weight
from outcore.tensor.plan.shares import Shares, divide

Panel = tuple[int, int, int]
_UNIT_S = 0.05  # of work that is dealt out at a time
_UNITS = 8  # for each process, at least, if there are so many tasks
_DEPTH, _MAX_DEPTH = 2, 4
_TRIES = 4  # of smaller panels
_WORTH = 1.01  # so many times as much must a plan weigh that shares nothing, before panels are shared


@dataclass(frozen=True)
class ProductPlan:
    """How one product is carried out.

    Attributes:
        slots: panels of the left and of the right operand that are held at a time; none of the right one: those of
            the left one serve on both sides, for it is one array.
        unit: tasks that are dealt out at a time.
        memory_bytes: what a process was given; `workspace_bytes`: what its panels take, or its share of those of
            its node.
        bound_bytes: what has to move between disk and memory whatever the plan, for all processes' memory.
        predicted: over all processes.
        sharing: processes of a node that share panels and make results together; 1: each works for itself.
        received_bound_bytes: what processes, or nodes whose processes share panels, receive and write at least,
            from disk or from each other; 0: not known.
    """

    product: str
    choice: Choice
    slots: tuple[int, int]
    unit: int
    memory_bytes: int
    workspace_bytes: int
    bound_bytes: float
    predicted: Amounts
    sharing: int = 1
    received_bound_bytes: float = 0.0

    @property
    def over_received_bound(self) -> float | None:
        """Bytes of disk and network over the bound for several processes; None where it is not known."""
        if self.received_bound_bytes <= 0:
            return None
        return (self.predicted.disk + self.predicted.network) / self.received_bound_bytes

    @property
    def over_bound(self) -> float:
        """Bytes of the disk over the bound; 1 where nothing lies on disk."""
        return self.predicted.disk / self.bound_bytes if self.bound_bytes > 0 else 1.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> ProductPlan:
        choice = values["choice"]
        return ProductPlan(
            **{
                **values,
                "choice": Choice(
                    choice["keep"],
                    choice["mixed"],
                    tuple(choice["most"]),
                    tuple(choice["pieces"]),
                    choice["parts"],
                    choice["results"],
                    choice["by_chunks"],
                    choice.get("half", False),
                    choice.get("block", 1),
                ),
                "slots": tuple(values["slots"]),
                "predicted": Amounts(**values["predicted"]),
            }
        )


@dataclass(frozen=True)
class Planned:
    """A plan with the panels that it means."""

    problem: ProductProblem
    plan: ProductPlan

    def again(self, plan: ProductPlan) -> Planned:
        """With another plan of the same choice."""
        other = Planned(self.problem, plan)
        for name in ("geometry", "dtype", "largest", "shares", "tasks", "at_once"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def geometry(self) -> ProductGeometry:
        return self.plan.choice.geometry(self.problem)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements that are multiplied."""
        return self.problem.dtype

    @cached_property
    def largest(self) -> tuple[int, int, int]:
        """Elements of a panel of the left and the right operand and of the result, at most."""
        b, m, n, k = (int(sizes.max(initial=0)) for sizes in self.geometry.sizes)
        return b * m * k, b * k * n, b * m * n

    @cached_property
    def shares(self) -> Shares:
        """How processes that share panels divide those of the result."""
        return divide(self.geometry, self.plan.sharing)

    @property
    def largest_share(self) -> int:
        """Elements of a panel of the result that one process makes."""
        if self.plan.sharing == 1:
            return self.largest[2]
        sides = [int(sizes.max(initial=0)) for sizes in self.geometry.sizes[:3]]
        sides[self.shares.group] = self.shares.largest
        return math.prod(sides)

    @cached_property
    def workspace_bytes(self) -> int:
        """Of a process."""
        panels = sum(slots * each for slots, each in zip(self.plan.slots, self.panel_bytes, strict=True))
        return self.results_bytes + math.ceil(panels / self.plan.sharing)

    @cached_property
    def own_bytes(self) -> int:
        """Of a process, without panels that it shares with others."""
        if self.plan.sharing == 1:
            return self.workspace_bytes
        copies = zip(self.plan.slots, self.largest[:2], self.problem.copied[:2], strict=True)
        return self.results_bytes + math.ceil(sum(map(math.prod, copies)) / self.plan.sharing)

    @property
    def panel_bytes(self) -> tuple[int, int]:
        """Of the largest of the left and of the right operand, and of what is beside it while it comes."""
        word, (left, right, _) = self.dtype.itemsize, self.problem.copied
        return self.largest[0] * (word + left), self.largest[1] * (word + right)

    @property
    def results_bytes(self) -> int:
        """Of a process, for panels of the result that it makes, or its shares of them."""
        beside = self.problem.copied[2]  # of one at a time
        return self.largest_share * (self.dtype.itemsize * self.plan.choice.results + beside)

    @cached_property
    def tasks(self) -> list[ProductTask]:
        """In their order."""
        choice = self.plan.choice
        return self.geometry.tasks(choice.keep, choice.parts, half=choice.half, block=choice.block)

    @cached_property
    def at_once(self) -> int:
        """Panels of the result that a task makes, at most."""
        choice = self.plan.choice
        return self.geometry.partition(choice.block, half=choice.half).most if choice.block > 1 else 1

    def wanted(self, step: Step) -> tuple[tuple[int, Panel], tuple[int, Panel]]:
        """Of a step that multiplies, for each side the operand (0 left, 1 right) that has the panel, and which."""
        left = step.batch, step.rows, step.inner
        if self.plan.slots[1] == 0:
            return (0, left), (0, (step.batch, step.columns, step.inner))
        return (0, left), (1, (step.batch, step.inner, step.columns))

    def dealt(self, processes: int) -> list[NDArray[np.int32]]:
        """The steps that multiply, of each of so many processes, if units are dealt out in turn; see
        `step_table`."""
        table = step_table(self.tasks)
        if processes == 1:
            return [table[table[:, 3] >= 0]]
        owner = np.arange(len(self.tasks)) // self.plan.unit % processes
        owner = np.repeat(owner, [len(task) for task in self.tasks])
        owner[table[:, 3] < 0] = processes
        order = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[order], np.arange(1, processes + 1))
        return np.split(table[order], ends)[:-1]

    @cached_property
    def steps(self) -> _core.Steps:
        """The same as native code carries them out."""
        return steps_of(self.geometry, self.tasks, half=self.plan.choice.half)

    @property
    def multiplications(self) -> float:
        """Zeros within panels included."""
        half = self.plan.choice.half
        return self.geometry.multiplications_of_half if half else self.geometry.multiplications

    @cached_property
    def units(self) -> list[list[ProductTask]]:
        """Tasks as they are dealt out."""
        return [
            self.tasks[first : first + self.plan.unit] for first in range(0, len(self.tasks), self.plan.unit)
        ]


class Held:
    """Which panels are in which slot. A slot that was not used for longest is taken for a new panel."""

    def __init__(self, slots: int) -> None:
        self._free = list(range(slots))
        self._slots: OrderedDict[Panel, int] = OrderedDict()

    def __contains__(self, panel: Panel) -> bool:
        return panel in self._slots

    def take(self, panel: Panel) -> tuple[int, bool]:
        """The slot of a panel, and whether it has to be fetched into it."""
        if panel in self._slots:
            self._slots.move_to_end(panel)
            return self._slots[panel], False
        slot = self._free.pop() if self._free else self._slots.popitem(last=False)[1]
        self._slots[panel] = slot
        return slot, True


def make_plan(
    problem: ProductProblem, memory_bytes: int, rates: Rates, choice: Choice | None = None
) -> ProductPlan:
    """The best plan, or that of a given choice. Processes of a node share panels where that plan
    weighs less, in seconds and bytes. Raises OutcoreError (ENOMEM) if the memory does not do, and says how much
    does."""
    # Of small arrays the memory that other arrays leave, which is another one each time, is always enough.
    given = min(memory_bytes, ample_bytes(problem))
    key = problem.key, given, rates, choice
    found = _recent.get(key, lambda: _best(problem, given, rates, choice))
    return found if given == memory_bytes else replace(found, memory_bytes=memory_bytes)


_recent: Recent[ProductPlan] = Recent(2000)  # programs and loops plan the same products again


def _best(problem: ProductProblem, memory_bytes: int, rates: Rates, choice: Choice | None) -> ProductPlan:
    if choice is not None or not may_share(problem, rates):
        return _alone(problem, memory_bytes, rates, choice)
    together = _together(problem, memory_bytes, rates)
    try:
        alone = _alone(problem, memory_bytes, rates, None)
    except OutcoreError:
        if together is None:
            raise
        return together
    if together is None:
        return alone
    fastest = min(each.predicted.seconds for each in (alone, together))
    good = [each for each in (alone, together) if each.predicted.seconds <= SLOWER * fastest]
    weights = [
        weight(each.predicted.disk + each.predicted.network, each.predicted.seconds) * worth
        for each, worth in ((alone, 1.0), (together, _WORTH))
        if each in good
    ]
    return good[int(np.argmin(weights))]


def _alone(problem: ProductProblem, memory_bytes: int, rates: Rates, choice: Choice | None) -> ProductPlan:
    if choice is None:
        choice = search(problem, memory_bytes, rates)
    return _planned(problem, memory_bytes, rates, choice, 1)


def _together(problem: ProductProblem, memory_bytes: int, rates: Rates) -> ProductPlan | None:
    """Of processes that share panels; None if they do not fit. A panel of the result that cannot be divided evenly
    takes more memory: then panels are smaller."""
    given = memory_bytes
    for _ in range(_TRIES):
        try:
            choice = search(problem, given * rates.sharing, rates.of_nodes)
        except OutcoreError:
            return None
        plan = _planned(problem, memory_bytes, rates, choice, rates.sharing)
        if plan.workspace_bytes <= memory_bytes:
            return plan
        given = int(given * min(0.9, memory_bytes / plan.workspace_bytes))
    return None


def _planned(
    problem: ProductProblem, memory_bytes: int, rates: Rates, choice: Choice, sharing: int
) -> ProductPlan:
    """Of a choice. `sharing`: processes of a node that share panels."""
    geometry = choice.geometry(problem)
    least = _least_slots(choice, geometry)
    draft = ProductPlan(
        product=str(problem.product),
        choice=choice,
        slots=least,
        unit=1,
        memory_bytes=memory_bytes,
        workspace_bytes=0,
        bound_bytes=bound(problem, memory_bytes * rates.processes),
        predicted=Amounts(),
        sharing=sharing,
        received_bound_bytes=received_bound(problem, memory_bytes * sharing, rates.processes // sharing),
    )
    planned = Planned(problem, draft)
    planned.__dict__["geometry"] = geometry
    on_both_sides = least[1] == 0
    one_more = 2 * planned.panel_bytes[0] if on_both_sides else sum(planned.panel_bytes)
    deeper = math.ceil(one_more / sharing)  # one panel more of each
    room = memory_bytes * FULL - planned.workspace_bytes
    more = int(min(_MAX_DEPTH - _DEPTH, max(0, room) // max(1, deeper)))
    of_workers = rates.of_nodes if sharing > 1 else rates
    unit = _unit(planned, of_workers)
    slots = (least[0] + 2 * more, 0) if on_both_sides else (least[0] + more, least[1] + more)
    draft = replace(draft, slots=slots, unit=unit)
    planned = planned.again(draft)
    return replace(draft, workspace_bytes=planned.workspace_bytes, predicted=predict(planned, of_workers))


def _least_slots(choice: Choice, geometry: ProductGeometry) -> tuple[int, int]:
    """Panels of each operand that have to be held at a time."""
    inner = len(geometry.panels[3])
    all_of_one = min(inner + 1, 2 * inner)
    if choice.block > 1:
        return geometry.partition(choice.block, half=choice.half).held
    if choice.keep == "result":
        return (2 * _DEPTH, 0) if choice.half else (_DEPTH, _DEPTH)
    return (all_of_one, _DEPTH) if choice.keep == "left" else (_DEPTH, all_of_one)


def _unit(planned: Planned, rates: Rates) -> int:
    """Tasks at a time: all of a strip that keeps an operand, as far as every process gets enough of them."""
    geometry, choice, tasks = planned.geometry, planned.plan.choice, len(planned.tasks)
    most = max(1, tasks // (_UNITS * rates.processes)) if rates.processes > 1 else tasks
    strip = {"left": len(geometry.panels[2]), "right": len(geometry.panels[1])}.get(choice.keep, 1)
    if strip > 1:
        return max(1, min(strip, most)) if rates.processes > 1 else strip
    seconds = 2.0 * planned.multiplications / (rates.peak / rates.processes) / max(1, tasks)
    return max(1, min(most, math.ceil(_UNIT_S / max(seconds, 1e-9))))


def predict(planned: Planned, rates: Rates) -> Amounts:
    """Walks through the steps as the processes will, if units are dealt out in turn. `rates`: of nodes, if their
    processes share panels."""
    problem, plan, geometry = planned.problem, planned.plan, planned.geometry
    amounts = {"disk_read": 0.0, "disk_written": 0.0, "network": 0.0, "copied": 0.0}
    names = {"disk": "disk_read", "global": "network", "node": "copied", "process": "copied"}
    elements = (geometry.elements(geometry.left, (0, 1, 3)), geometry.elements(geometry.right, (0, 3, 2)))
    come = 0  # panels of operands
    first = 0.0  # seconds until the first process has its first panels, while the others fetch theirs
    disk_each = rates.read * rates.nodes / rates.processes
    for process, steps in enumerate(planned.dealt(rates.processes)):
        fetched = _core.fetched_panels(steps, plan.slots)
        for side in range(2):
            batch, rows, columns, inner = steps[fetched[:, side]].T
            operand = 0 if plan.slots[1] == 0 else side
            facts = (problem.left, problem.right)[operand]
            panel = (batch, inner, columns) if operand else (batch, columns if side else rows, inner)
            counts = elements[operand][panel]
            come += len(counts)
            amounts[names[facts.where]] += float(counts.sum()) * facts.item_bytes
            if process == 0 and len(steps) and fetched[0, side]:
                rate = disk_each if facts.where == "disk" else rates.copy
                first += float(counts[0]) * facts.item_bytes / rate
    adds = problem.adds or plan.choice.parts > 1
    sizes = geometry.elements(geometry.out, (0, 1, 2))
    half = plan.choice.half
    written = problem.out.item_bytes * sum(
        float(sizes[task.batch, rows, columns]) * (2 if half and rows != columns else 1)
        for task in planned.tasks
        for rows, columns in task.pairs
    )
    amounts[names[problem.out.where] if problem.out.where != "disk" else "disk_written"] += written
    if adds and problem.out.where == "disk":
        amounts["disk_read"] += written
    flops = 2.0 * planned.multiplications
    put = again = 0.0
    if problem.out.where == "disk":
        again = 0.0 if adds else written * geometry.parts_of_chunks  # read before a part is put
        put = (written * (2 if adds else 1)) / rates.write + again / rates.read
    seconds = _seconds(planned, rates, flops, amounts, put / rates.nodes, first, again, come)
    return Amounts(**amounts, flops=flops, seconds=seconds)


def _seconds(
    planned: Planned,
    rates: Rates,
    flops: float,
    amounts: dict[str, float],
    put: float,
    first: float,
    again: float,
    come: int,
) -> float:
    """`put`: seconds in which results go to disk; a process that makes one meanwhile waits for the last alone.
    `first`: seconds before the first product. `again`: bytes that are read of chunks that are put in parts;
    `come`: panels of operands. Where the disk takes longest, the last product comes after it."""
    geometry = planned.geometry
    _, a, w, c = (float(sizes.mean()) for sizes in geometry.sizes)
    workers = rates.threads * rates.processes
    rate = float(rates.flops(shortest_side(a, w, c, rates.threads)))
    units = len(planned.units)
    lengths = [sum(map(len, unit)) for unit in planned.units]
    uneven = max(lengths, default=1) * units / max(1, sum(lengths)) - 1
    idle = (math.ceil(units / rates.processes) + uneven) * rates.processes / max(1, units)
    idle = idle if rates.processes > 1 else 1.0
    if planned.plan.sharing > 1:
        idle *= planned.shares.uneven
    work = flops / (rate * workers) * idle
    work += sum(amounts.values()) / (rates.copy * workers)
    work += amounts["network"] / (rates.network * rates.processes)
    read = (amounts["disk_read"] + again) / (rates.read * rates.nodes)
    disk = read + amounts["disk_written"] / (rates.write * rates.nodes)
    steps = sum(map(len, planned.tasks)) / rates.processes
    work += steps * STEP_S + come / rates.processes * PANEL_S
    if planned.plan.choice.results > planned.at_once:
        put /= max(1.0, len(planned.tasks) / rates.processes)
    return max(first + work + put, disk + work / max(1, steps))
