"""A contraction with its arrays: checked, planned, carried out. Collective over the world of the arrays."""

from __future__ import annotations

import errno
import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from outcore import _core
from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.base.errors import OutcoreError
from outcore.base.recent import Recent
from outcore.job import arguments
from outcore.job import world as world_module
from outcore.job.resources import parse_bytes
from outcore.job.world import World
from outcore.tensor.arrays.array import Array as ExtendedArray
from outcore.tensor.arrays.extended import ExtendedOperand, layout_facts, operand
from outcore.tensor.layout.cells import Axis, cut_for
from outcore.tensor.layout.description import tiled
from outcore.tensor.layout.expression import Expression, parse
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.letters import common_tilings
from outcore.tensor.layout.operands import (
    Facts,
    LocalOperand,
    OnesOperand,
    Operand,
    SummedOperand,
    Where,
    numbered,
    plain,
)
from outcore.tensor.layout.result_check import (
    as_number,
    check_apart,
    check_symmetry,
    check_type,
    check_written,
    type_of_result,
)
from outcore.tensor.layout.symmetry import Symmetry
from outcore.tensor.plan import rates as rates_module
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.beside import cache_bytes
from outcore.tensor.plan.plan import Plan, contract, least_memory, problems, products, result_tiles
from outcore.tensor.plan.product_plan import Planned
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.schedule import too_little
from outcore.tensor.run.execute import Product
from outcore.tensor.run.progress import Told

_ZEROS = 1 << 18  # elements that are put at a time
_MAX_THREADS = 256
_NO_SYMMETRY = Symmetry(0)
_recently_alike: Recent[None] = Recent(1000)  # arrays whose tilings agree: loops contract the same ones again


class Contraction:
    """The checked arguments of a call. `checks_symmetry`: false if the caller knows that the result has the
    symmetry of `out`, or symmetrizes it."""

    def __init__(
        self,
        subscripts: str,
        operands: Sequence[Any],
        out: Any,
        world: World | None,
        memory: int | str | None,
        threads: int | None,
        *,
        symmetry: str | Sequence[str] | Symmetry | None = None,
        checks_symmetry: bool = True,
        scale: complex = 1,
        accumulate: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self._arrays, self.result = list(operands), out
        self.world = _world_of([*operands, out], world)
        self.threads = 0 if threads is not None else rates_module.threads_of(self.world)
        self._symmetry = _NO_SYMMETRY
        self._make: Callable[[], Any] | None = None  # makes the result, if the caller gave none
        self._made: tuple[int, Where] | None = None  # its bytes, and where it is if it is in memory

        def bring() -> tuple[Any, ...]:
            self.inputs = [operand(each) for each in operands]
            self.expression: Expression = parse(subscripts, [each.facts.shape for each in self.inputs])
            self.memory_bytes = 0 if memory is None else parse_bytes(memory)
            self.scale = as_number(self._what, "scale", scale)
            if threads is not None:
                self.threads = arguments.integer("threads", threads)
                if not 1 <= self.threads <= _MAX_THREADS:
                    raise ValueError(f"threads={threads}; there may be 1 to {_MAX_THREADS}")
            if out is not None and symmetry is not None:
                raise OutcoreError(errno.EINVAL, self._what, detail="`out` has its symmetry; give no other")
            self._facts_of_inputs = numbered(self._arrays, [each.facts for each in self.inputs])
            if self.world.size == 1:  # there are no others to compare with
                return ()
            told = _told(*self.inputs), [each.array for each in self._facts_of_inputs]
            return str(self.expression), self.memory_bytes, self.threads, checks_symmetry, told

        with self.world.together_with("einsum", bring):
            pass
        if memory is None:
            self.memory_bytes = rates_module.memory_of(self.world)
        self._given_bytes = self.memory_bytes

        def bring_result() -> tuple[Any, ...]:
            self.out = self._new(symmetry) if out is None else operand(out)
            self._check_out()
            self._check_tilings()
            if checks_symmetry and self._symmetry:
                self._check_symmetry()
            if plan is not None:
                self.check(plan)
            if self.world.size == 1:
                return ()
            given = None if plan is None else plan.as_json()
            told = type(out).__name__, _told(self.out), self._symmetry.as_json()
            return *told, self.scale, bool(accumulate), given

        with self.world.together_with("the result of einsum", bring_result):
            pass

    def create(self) -> None:
        """Makes the result, if the caller gave none. Collective; may be repeated."""
        if self._make is not None:
            self.result = self._make()
            self.out, self._make = operand(self.result), None

    def _check_out(self) -> None:
        if self.out.facts.shape != self._shape:
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail=f"the result has shape {self._shape}, `out` {self.out.facts.shape}",
            )
        check_type(self._what, "`out`", self._dtype, self.out.facts.dtype)
        check_written(self._what, "`out`", self.out)
        numbered = [(f"operand {number}", each) for number, each in enumerate(self.inputs)]
        check_apart(self._what, "the result", self.out, numbered)
        if isinstance(self.out, ExtendedOperand):
            self._symmetry = self.out.array.layout.symmetry

    def _check_tilings(self) -> None:
        facts, labels = self.facts, [*self.expression.inputs, self.expression.output]
        names = [*(f"operand {number}" for number in range(len(self.inputs))), "`out`"]

        def look() -> None:
            tilings = [each.tilings for each in facts]
            common_tilings(self._what, zip(names, labels, tilings, strict=True))

        _recently_alike.get((*labels, *(each.form for each in facts)), look)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return type_of_result([each.facts.dtype for each in self.inputs], self.scale)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements that are multiplied; float64 if there are no rates for that type."""
        found = np.result_type(*(each.dtype for each in self.facts))
        return found if found.name in rates_module.TYPES else np.dtype(np.float64)

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.expression.shape(self.expression.output)

    @property
    def _what(self) -> str:
        return f"einsum '{self.expression}'"

    @property
    def facts(self) -> list[Facts]:
        return [*self._facts_of_inputs, self.out.facts]

    def _check_symmetry(self) -> None:
        """Raises OutcoreError (EINVAL) if the result need not have the symmetry of `out`."""
        symmetries = [
            each.array.layout.symmetry
            if isinstance(each, ExtendedOperand)
            else Symmetry(len(each.facts.shape))
            for each in self.inputs
        ]
        hint = "; symmetrize=True makes it so"
        check_symmetry(self._what, self.expression, self._arrays, symmetries, self._symmetry, hint)

    def _new_extended(self, symmetry: Any) -> Operand:
        """A new Array with the tiles of the operands; other axes get tiles of moderate size, equal ones for equal
        extents."""
        inputs, dtype = self.expression.inputs, self._dtype
        tiles, mask = result_tiles(inputs, self.expression.output, [each.facts for each in self.inputs])
        own = {tile.size: tile for tile in tiled(self._shape, dtype.itemsize)}
        tilings = [
            own[extent] if tiling is None else tiling
            for extent, tiling in zip(self._shape, tiles, strict=True)
        ]
        found = Symmetry.parse(symmetry, len(self._shape))
        if any(tiling is None for tiling in tiles):
            mask = None
        if mask is not None:
            for permutation in found.elements:
                mask = mask | np.transpose(mask, permutation)
        layout = Layout(tilings, mask, found)
        where = self._place(layout.elements * dtype.itemsize, "process" if self.world.size == 1 else "global")
        self._symmetry = found
        self._make = lambda: ExtendedArray(self.world, layout, dtype, where=where)
        return _Nothing(layout_facts(layout, dtype, where, dtype.itemsize))

    def _place(self, nbytes: int, inside: Where) -> Where:
        """The place of a new array, whose memory is subtracted from the memory to plan with."""
        self._made = nbytes, inside
        where, self.memory_bytes = self._placed(self._given_bytes)
        return where

    def _placed(self, memory_bytes: int) -> tuple[Where, int]:
        """Where the result lies if `memory_bytes` are given, and the rest of the memory, to plan with."""
        if self._made is None:
            return self.out.facts.where, memory_bytes
        nbytes, inside = self._made
        if nbytes / self.world.size > memory_bytes / 4:
            return "disk", memory_bytes
        return inside, memory_bytes - nbytes // self.world.size

    def _new(self, symmetry: Any) -> Operand:
        """The operand of a result that the caller has not given."""
        shape, dtype, world = self._shape, self._dtype, self.world
        if not shape and symmetry is not None:
            raise OutcoreError(errno.EINVAL, self._what, detail=f"symmetry={symmetry!r} of a number")
        if shape and (symmetry is not None or any(isinstance(each, ExtendedOperand) for each in self.inputs)):
            return self._new_extended(symmetry)
        if shape == () or all(isinstance(each, LocalOperand) for each in self.inputs):
            self._make = lambda: np.zeros(shape, dtype)
            return _Nothing(plain(shape, dtype, "process"))
        where = self._place(math.prod(shape) * dtype.itemsize, "global")
        kind = DiskArray if where == "disk" else GlobalArray
        self._make = lambda: kind(world, shape, dtype)
        return _Nothing(plain(shape, dtype, where))

    def make_plan(self, rates: Rates, *, adds: bool = False) -> Plan:
        if 0 in self.expression.extents.values():
            return Plan(
                str(self.expression),
                tuple(each.described for each in self.facts),
                (),
                self.memory_bytes,
                rates,
            )
        try:
            return contract(self.expression, self.facts, self.memory_bytes, rates, adds=adds)
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
            needed = least_memory(
                lambda memory_bytes: self._fits(memory_bytes, rates, adds), self._given_bytes
            )
            raise OutcoreError(
                errno.ENOMEM,
                self._what,
                detail=too_little(
                    ", with intermediate and new arrays that are in memory", needed, self._given_bytes
                ),
            ) from error

    def _fits(self, memory_bytes: int, rates: Rates, adds: bool) -> bool:
        """Whether a call with `memory_bytes` can be planned."""
        where, left = self._placed(memory_bytes)
        facts = [*self._facts_of_inputs, replace(self.out.facts, where=where)]
        try:
            contract(self.expression, facts, left, rates, adds=adds)
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
            return False
        return True

    def check(self, plan: Plan) -> Plan:
        if not isinstance(plan, Plan):
            raise OutcoreError(errno.EINVAL, self._what, detail=f"plan={plan!r} is no plan of einsum")
        found = tuple(each.described for each in self.facts)
        given, here = "; ".join(plan.operands), "; ".join(found)
        if plan.expression != str(self.expression) or plan.operands != found:
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail=f"the plan is for '{plan.expression}' of {given}; here are {here}",
            )
        halves = [each.plan.choice.half for each in plan.statements]
        if any(halves) and any(
            half and not problem.is_symmetric
            for half, problem in zip(halves, problems(plan, self.expression, self.facts), strict=True)
        ):
            raise OutcoreError(
                errno.EINVAL,
                self._what,
                detail="the plan is for an array that is multiplied by itself; here are two",
            )
        return plan

    def run(
        self, plan: Plan, *, accumulate: bool, scale: complex, progress: Told | None
    ) -> tuple[Any, Amounts]:
        self.create()
        total = Amounts()
        arrays: list[Operand] = [*self.inputs]
        cache = cache_bytes(self.world, sum(each.where == "disk" for each in plan.statements))
        with ExitStack() as temporary:
            for number, (statement, planned) in enumerate(
                zip(plan.statements, products(plan, self.expression, self.facts), strict=True)
            ):
                problem = planned.problem
                last = number == len(plan.statements) - 1
                target = self.out if last else self._intermediate(problem.out, cache, temporary)
                right = (
                    OnesOperand(problem.right.shape, problem.right.dtype)
                    if statement.right < 0
                    else arrays[statement.right]
                )
                total = total + carry_out(
                    self.world,
                    planned,
                    (arrays[statement.left], right, target),
                    scale=scale if last else 1,
                    add=accumulate and last,
                    threads=self.threads,
                    progress=_part(progress, plan, number),
                )
                arrays.append(target)
        if not plan.statements and not accumulate and self.out.facts.bytes:
            fill_zero(self.world, self.out)
        result = self.result
        if isinstance(result, np.ndarray) and result.shape == () and self.expression.output == "":
            return result[()], total
        return result, total

    def _intermediate(self, facts: Facts, cache: int, temporary: ExitStack) -> Operand:
        if not facts.shape:  # one at each process; they are added up
            return LocalOperand(np.empty(facts.shape, facts.dtype))
        if facts.stored is not None:
            layout = Layout([tiling for tiling in facts.tilings if tiling is not None], facts.stored)
            options: dict[str, Any] = {"cache_bytes": cache} if facts.where == "disk" else {}
            tiled = ExtendedArray(self.world, layout, facts.dtype, where=facts.where, **options)
            return operand(temporary.enter_context(tiled))
        if facts.where == "process":
            return LocalOperand(np.empty(facts.shape, facts.dtype))
        if facts.where == "disk":
            made: Any = DiskArray(self.world, facts.shape, facts.dtype, cache_bytes=cache)
        else:
            made = GlobalArray(self.world, facts.shape, facts.dtype)
        return operand(temporary.enter_context(made))


def _told(*operands: Operand) -> list[str]:
    """Descriptions of arrays, which processes compare."""
    return [each.facts.described for each in operands]


def _world_of(arrays: Sequence[Any], given: World | None) -> World:
    """The world of the arrays. Raises OutcoreError (EINVAL) if they have different ones."""
    worlds = [found for each in arrays if isinstance(found := getattr(each, "world", None), World)]
    if any(each is not worlds[0] for each in worlds):
        raise OutcoreError(errno.EINVAL, "einsum", detail="the arrays are of different worlds")
    return worlds[0] if worlds else given if given is not None else world_module.shared(None)


class _Nothing(Operand):
    """Stands for a result that is only planned."""

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
    progress: Told | None = None,
) -> Amounts:
    """Carries out one product on all processes; returns the amounts of all together. Collective. The work space
    counts against the budget."""
    left, right, out = arrays
    with ExitStack() as temporary:
        target = out
        if out.copies(world) > 1:  # it is added up somewhere else, and each copy takes all of it
            target = _gathered(world, out.facts, temporary)
        is_new = target is not out
        parts = planned.plan.choice.parts > 1
        if parts:
            target.share_adds(world)
        if parts and not add and not is_new:
            fill_zero(world, out)
        memory = None
        reserved = planned.own_bytes
        if planned.plan.sharing > 1:
            memory = _shared(world, planned)
        workers = world.size // planned.plan.sharing
        counter = world.counter() if workers > 1 else None
        with world.together("einsum", planned.plan.product):
            try:
                world.budget.reserve(reserved, f"workspace of einsum '{planned.plan.product}'")
            except OutcoreError:
                if memory is not None:
                    memory.fail()
                raise
            try:
                adds = parts or (add and not is_new)
                run = Product(
                    planned, left, right, target, scale=scale, add=adds, threads=threads, memory=memory
                )
                mine = run.run(counter, progress if world.rank == 0 else None)
                if progress is not None and world.rank == 0:
                    progress(1.0, len(planned.tasks), len(planned.tasks))
            finally:
                world.budget.release(reserved)
        target.sync()
        if is_new:
            out.take(world, target, add=add)
    if world.size == 1:
        return mine
    values = world.all_reduce(np.array(mine.values())).tolist()
    values[-1] = float(world.all_reduce(mine.seconds, "max"))
    return Amounts(*values)


def _shared(world: World, planned: Planned) -> _core.NodePanels:
    """Memory for panels that the processes of a node share. Collective."""
    sharing, nbytes = planned.plan.sharing, planned.plan.workspace_bytes
    with world.together("einsum", sharing):
        world.budget.reserve(nbytes, f"workspace of einsum '{planned.plan.product}'")  # raises without it
        world.budget.release(nbytes)
        if world.node_size != sharing:
            raise OutcoreError(
                errno.EINVAL,
                f"einsum '{planned.plan.product}'",
                detail=f"in its plan {sharing} processes of a node share panels; here a node has {world.node_size}",
            )
    left, right = (elements * planned.dtype.itemsize for elements in planned.largest[:2])
    return _core.NodePanels(world, planned.plan.slots, (left, right), len(planned.units))


def _gathered(world: World, facts: Facts, temporary: ExitStack) -> Operand:
    """Zeros for a result that has copies."""
    if not facts.shape:
        return SummedOperand(world, facts.dtype)
    return operand(temporary.enter_context(GlobalArray(world, facts.shape, facts.dtype)))


def rates_of(job: Contraction) -> Rates:
    """Rates of this machine, for the type of the elements. Collective."""
    return rates_module.measured(job.world, job.threads, job.dtype)


def _part(progress: Told | None, plan: Plan, number: int) -> Told | None:
    """The function that tells the progress of one product, by predicted time."""
    if progress is None:
        return None
    seconds = [each.plan.predicted.seconds for each in plan.statements]
    begins = list(itertools.accumulate(seconds, initial=0.0))
    before, own, total = begins[number], seconds[number], max(begins[-1], 1e-30)
    # Divided last: at the end of the last product it is 1, without rounding.
    return lambda fraction, task, tasks: progress((before + own * fraction) / total, task, tasks)


def fill_zero(world: World, out: Operand) -> None:
    """Fills an array with zeros. Collective."""
    if isinstance(out, ExtendedOperand):
        with world.together("fill with zeros"):
            for tile in out.array.own_tiles():
                out.array.put_tile(tile, np.zeros(out.array.layout.tile_shape(tile), out.facts.dtype))
        out.sync()
        return
    axes = [
        Axis(str(i), n, cuts)
        for i, (n, cuts) in enumerate(zip(out.facts.shape, out.facts.tiles, strict=True))
    ]
    cells = cut_for(axes, _ZEROS).cells
    mine = cells if out.facts.where == "process" else cells[world.rank :: world.size]
    with world.together("fill with zeros"):
        for box in mine:
            zeros = np.zeros([end - begin for begin, end in box], out.facts.dtype)
            for request in out.put(list(box), zeros, add=False):
                request.wait()
    out.sync()
