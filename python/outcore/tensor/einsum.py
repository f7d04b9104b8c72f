"""`outcore.einsum`: contractions of arrays wherever they lie, planned onto memory and disk.

g = outcore.einsum("Qia,Qjb->iajb", b, b, out=disk_array)
print(outcore.einsum.plan("ijcd,Qac,Qbd->ijab", t2, bvv, bvv))   # what it would take; nothing runs
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.base.errors import OutcoreError
from outcore.job import world as world_module
from outcore.job.resources import parse_bytes
from outcore.job.world import World
from outcore.tensor import rates as rates_module
from outcore.tensor.execute import Product
from outcore.tensor.expression import Expression, parse
from outcore.tensor.operands import Facts, LocalOperand, OnesOperand, Operand, operand, plain
from outcore.tensor.plan import Plan, contract, described, problems
from outcore.tensor.product_plan import Amounts, Planned
from outcore.tensor.rates import Rates

Progress = Callable[[float], None]
_SHARE = 0.75  # of what is left of the budget, if the caller names no memory
_LOCAL_BYTES = 256 << 20  # of a NumPy result that nobody asked for on disk


@dataclass(frozen=True)
class Counted:
    """What a run has moved and taken, over all processes, and what was predicted of it."""

    plan: Plan
    actual: Amounts

    def __str__(self) -> str:
        p, a = self.plan.predicted, self.actual
        rows = [
            ("read from disk", p.disk_read / 1e6, a.disk_read / 1e6, "MB"),
            ("written to disk", p.disk_written / 1e6, a.disk_written / 1e6, "MB"),
            ("from other processes", p.network / 1e6, a.network / 1e6, "MB"),
            ("operations", p.flops / 1e9, a.flops / 1e9, "Gflop"),
            ("time", p.seconds, a.seconds, "s"),
        ]
        return "\n".join(
            f"{name:22s} predicted {mine:12.4g}, was {was:12.4g} {unit}" for name, mine, was, unit in rows
        )


class Einsum:
    """See `__call__` and `plan`; `last` is what the last call of this process has counted."""

    last: Counted | None = None

    def __call__(
        self,
        subscripts: str,
        *operands: Any,
        out: Any = None,
        accumulate: bool = False,
        scale: complex = 1,
        memory: int | str | None = None,
        plan: Plan | None = None,
        world: World | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Contracts arrays as `numpy.einsum` does; returns the result. Collective over the world of the arrays.

        Args:
            subscripts: as for `numpy.einsum`, in its form with text.
            operands: arrays of NumPy (the same at all processes), GlobalArray, DiskArray, NodeArray,
                BlockSparseArray, Array.
            out: where the result goes, none of the operands; None: an array of NumPy if all operands are, else a
                new GlobalArray if the memory holds it, else a new DiskArray (scratch).
            accumulate: add to what is in `out`.
            scale: of the product.
            memory: of each process, for panels and intermediate arrays: bytes, or text such as "2GB"; None: three
                quarters of what is left of the world's budget.
            plan: one that `plan` has made for such arrays; None: the best.
            world: if no array says which; None then: this process alone.
            threads: of each process; None: its share of the cores.
            progress: called with the fraction that is done, now and then.

        Raises (the same at all processes):
            OutcoreError: EINVAL (subscripts, shapes, tilings, a plan for other arrays, a result that is an
            operand), ENOMEM (memory too small: says what is needed), ENOSPC, and what reading and writing raise.
        """
        job = _Job(subscripts, operands, out, world, memory, threads)
        rates = _rates(job)
        chosen = job.check(plan) if plan is not None else job.make_plan(rates)
        result, counted = job.run(chosen, accumulate=accumulate, scale=scale, progress=progress)
        self.last = Counted(chosen, counted)
        return result

    def plan(
        self,
        subscripts: str,
        *operands: Any,
        out: Any = None,
        memory: int | str | None = None,
        world: World | None = None,
        threads: int | None = None,
        rates: Rates | None = None,
    ) -> Plan:
        """What a call with these arguments would do; nothing is moved. Collective, unless `rates` are given."""
        job = _Job(subscripts, operands, out, world, memory, threads, creates=False)
        return job.make_plan(_rates(job) if rates is None else rates)


class _Job:
    """The arguments of a call, checked."""

    def __init__(
        self,
        subscripts: str,
        operands: Sequence[Any],
        out: Any,
        world: World | None,
        memory: int | str | None,
        threads: int | None,
        *,
        creates: bool = True,
    ) -> None:
        self.inputs = [operand(each) for each in operands]
        self.expression: Expression = parse(subscripts, [each.facts.shape for each in self.inputs])
        target = None if out is None else operand(out)
        worlds = [each.world for each in [*self.inputs, *([] if target is None else [target])] if each.world]
        if any(each is not worlds[0] for each in worlds):
            raise OutcoreError(errno.EINVAL, self._what, detail="the arrays are of different worlds")
        self.world = worlds[0] if worlds else world if world is not None else world_module.shared(None)
        self.threads = rates_module.threads_of(self.world) if threads is None else threads
        free = self.world.budget.limit_bytes - self.world.budget.used_bytes
        self.memory_bytes = int(free * _SHARE) if memory is None else parse_bytes(memory)
        self._check_aliases(operands, out)
        self.result = out
        self.out = self._new(creates) if target is None else target
        if self.out.facts.shape != self._shape:
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail=f"the result has shape {self._shape}, `out` {self.out.facts.shape}",
            )
        dtype = np.result_type(*(each.facts.dtype for each in self.inputs))
        if not np.can_cast(dtype, self.out.facts.dtype, "same_kind"):
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail=f"a result of type {dtype} into `out` of {self.out.facts.dtype}",
            )

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.expression.shape(self.expression.output)

    @property
    def _what(self) -> str:
        return f"einsum '{self.expression}'"

    @property
    def facts(self) -> list[Facts]:
        return [each.facts for each in [*self.inputs, self.out]]

    def _check_aliases(self, operands: Sequence[Any], out: Any) -> None:
        for number, each in enumerate(operands):
            both = isinstance(out, np.ndarray) and isinstance(each, np.ndarray)
            if out is not None and (each is out or (both and np.may_share_memory(out, each))):
                raise OutcoreError(errno.EINVAL, self._what, detail=f"the result is operand {number}")

    def _new(self, creates: bool) -> Operand:
        """Of a result that the caller has not made."""
        shape = self._shape
        dtype = np.result_type(*(each.facts.dtype for each in self.inputs))
        if all(isinstance(each, LocalOperand) for each in self.inputs):
            self.result = np.zeros(shape, dtype) if creates else None
            return _Nothing(plain(shape, dtype, "process")) if not creates else operand(self.result)
        if shape == ():
            self.result = np.zeros(shape, dtype)
            return operand(self.result)
        nbytes = math.prod(shape) * dtype.itemsize
        in_memory = nbytes / self.world.size <= self.memory_bytes / 4
        if not creates:
            return _Nothing(plain(shape, dtype, "global" if in_memory else "disk"))
        self.result = (
            GlobalArray(self.world, shape, dtype) if in_memory else DiskArray(self.world, shape, dtype)
        )
        if in_memory:
            self.memory_bytes -= nbytes // self.world.size
        return operand(self.result)

    def make_plan(self, rates: Rates) -> Plan:
        if 0 in self.expression.extents.values():
            return Plan(str(self.expression), tuple(map(described, self.facts)), (), self.memory_bytes, rates)
        return contract(self.expression, self.facts, self.memory_bytes, rates)

    def check(self, plan: Plan) -> Plan:
        found = tuple(map(described, self.facts))
        given, here = "; ".join(plan.operands), "; ".join(found)
        if plan.expression != str(self.expression) or plan.operands != found:
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail=f"the plan is for '{plan.expression}' of {given}; here are {here}",
            )
        return plan

    def run(
        self, plan: Plan, *, accumulate: bool, scale: complex, progress: Progress | None
    ) -> tuple[Any, Amounts]:
        total = Amounts()
        arrays: list[Operand] = [*self.inputs]
        with ExitStack() as temporary:
            for number, (statement, problem) in enumerate(
                zip(plan.statements, problems(plan, self.expression, self.facts), strict=True)
            ):
                last = number == len(plan.statements) - 1
                target = self.out if last else self._intermediate(problem.out, temporary)
                right = (
                    OnesOperand(problem.right.shape, problem.right.dtype)
                    if statement.right < 0
                    else arrays[statement.right]
                )
                planned = Planned(problem, statement.plan)
                total = total + carry_out(
                    self.world,
                    planned,
                    (arrays[statement.left], right, target),
                    scale=scale if last else 1,
                    add=accumulate and last,
                    threads=self.threads,
                    progress=_part(progress, number, len(plan.statements)),
                )
                arrays.append(target)
        if not plan.statements and not accumulate and self.out.facts.bytes:
            _fill_zero(self.world, self.out)
        result = self.result
        if isinstance(result, np.ndarray) and result.shape == () and self.expression.output == "":
            return result[()], total
        return result, total

    def _intermediate(self, facts: Facts, temporary: ExitStack) -> Operand:
        if facts.where == "process":
            return LocalOperand(np.empty(facts.shape, facts.dtype))
        kind = DiskArray if facts.where == "disk" else GlobalArray
        return operand(temporary.enter_context(kind(self.world, facts.shape, facts.dtype)))


class _Nothing(Operand):
    """Of a result that is only planned."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def get(self, box: Any, out: Any) -> Any:
        raise OutcoreError(errno.EBADF, "read a planned array")

    def put(self, box: Any, value: Any, *, add: bool) -> Any:
        raise OutcoreError(errno.EBADF, "write a planned array")


def carry_out(
    world: World,
    planned: Planned,
    arrays: tuple[Operand, Operand, Operand],
    *,
    scale: complex = 1,
    add: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> Amounts:
    """One product, on all processes; what it has counted over all. Collective. Workspace is accounted to the
    budget."""
    left, right, out = arrays
    many = world.size > 1
    local = out if many and isinstance(out, LocalOperand) and out.facts.where == "process" else None
    target = out
    if local is not None:
        target = LocalOperand(np.zeros(local.facts.shape, local.facts.dtype))
    counter = world.counter() if many else None
    reserved = planned.plan.workspace_bytes
    mine = Amounts()
    with world.together("einsum", planned.plan.product):
        world.budget.reserve(reserved, f"workspace of einsum '{planned.plan.product}'")
        try:
            run = Product(
                planned, left, right, target, scale=scale, add=add and local is None, threads=threads
            )
            mine = run.run(counter, progress if world.rank == 0 else None)
        finally:
            world.budget.release(reserved)
    target.sync()
    if local is not None:
        total = world.all_reduce(target.array) if isinstance(target, LocalOperand) else None
        local.array[...] = total + local.array if add else total
    if not many:
        return mine
    values = world.all_reduce(np.array(mine.values())).tolist()
    values[-1] = float(world.all_reduce(mine.seconds, "max"))
    return Amounts(*values)


def _rates(job: _Job) -> Rates:
    dtype = np.result_type(*(each.dtype for each in job.facts))
    if dtype.kind not in "fc" or dtype.itemsize > 16:
        dtype = np.dtype(np.float64)
    return rates_module.measured(job.world, job.threads, dtype)


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    if progress is None:
        return None
    return lambda fraction: progress((number + fraction) / count)


def _fill_zero(world: World, out: Operand) -> None:
    box = [(0, extent) for extent in out.facts.shape]
    with world.together("fill with zeros"):
        if world.rank == 0 or out.facts.where == "process":
            for request in out.put(box, np.zeros(out.facts.shape, out.facts.dtype), add=False):
                request.wait()
    out.sync()


einsum = Einsum()
