"""Whole programs of contractions, recorded first, then planned and run as one.

with outcore.Program(world, memory="1GB") as p:
    t, b = p.input(t2, "t2"), p.input(bvv, "B")
    r = p.output(p.array((o, o, v, v)), "r")
    for _ in p.iterate(10):
        w = outcore.einsum("Qac,Qbd->acbd", b, b)
        outcore.einsum("ijcd,acbd->ijab", t, w, out=r)
        r += 0.5 * t
print(p.plan())
p.run()
r.result[:2]

Nothing runs inside of the block: its statements are recorded. The plan decides where each array lies.
"""

from __future__ import annotations

import errno
import hashlib
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.job import arguments
from outcore.job.resources import parse_bytes
from outcore.tensor.arrays.extended import layout_facts, operand
from outcore.tensor.layout.description import element_type
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.letters import common_tilings
from outcore.tensor.layout.operands import Facts, Operand, plain
from outcore.tensor.layout.result_check import (
    as_number,
    check_apart,
    check_symmetry,
    check_type,
    check_written,
    type_of_result,
)
from outcore.tensor.plan.plan import result_tiles
from outcore.tensor.plan.statements import Contract, Description, Function, Map
from outcore.tensor.program.recorded import Linear, LoopNumber, Variable, as_linear
from outcore.tensor.program.recording import Recording
from outcore.tensor.run.progress import Tell

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.tensor.program.program_plan import ProgramPlan
    from outcore.tensor.program.program_run import ProgramReport


class Program(Description):
    """Statements over arrays, planned as a whole. Recording, `plan` and `run` are collective: all processes
    do the same.

    Args:
        world: the processes.
        memory: memory of each process for arrays in memory, boxes and panels: bytes or as "1GB"; None: three
            quarters of the rest of the budget. Beside it arrays on disk have caches, and elements are on their way
            between processes, within the budget: `plan().beside_bytes` says how much that is at most.
        disk: bytes of all disks together that the program may fill; None: any. `run` refuses more than is free.
        checkpoint: a directory in which finished statements are kept, so that a killed run can go on, on any
            number of processes and with any memory; None: nothing is kept.
        every: least seconds between two checkpoints, which are also written within long statements. None: a minute,
            or twenty times the time that one takes, if that is longer.

    Raises OutcoreError EINVAL for statements that do not fit, when they are recorded.
    """

    @keywords.checked()
    def __init__(
        self,
        world: World,
        *,
        memory: int | str | None = None,
        disk: int | str | None = None,
        checkpoint: Any = None,
        every: float | None = None,
    ) -> None:
        super().__init__()
        self.variables: list[Variable] = []
        self.world = world
        self.memory = None if memory is None else parse_bytes(memory)
        self.disk = None if disk is None else parse_bytes(disk)
        self.checkpoint, self.every = checkpoint, None if every is None else _seconds(every)
        self.report: ProgramReport | None = None
        self.values: dict[int, Any] = {}
        self.recording = Recording(self)
        self._sources: dict[int, Operand] = {}  # inputs, by the numbers of variables

    # ---- recording ----

    def __enter__(self) -> Self:
        self.recording.begin()
        return self

    def __exit__(self, kind: object, exception: BaseException | None, trace: object) -> None:
        self.recording.end(exception)

    def input(self, array: Any, name: str | None = None) -> Variable:
        """An array of the caller, of any kind that `einsum` takes. Statements may change it."""
        found = operand(array)
        written = {each.out.number for each in self.statements} & self._sources.keys()
        for number in written:
            other = self.variables[number].name
            check_apart("record a program", "this input", found, [(other, self._sources[number])])
        variable = self._variable(name, found.facts, source=array, layout=getattr(array, "layout", None))
        self._sources[variable.number] = found
        return variable

    def array(
        self, shape: Sequence[int] | Layout, dtype: Any = "float64", name: str | None = None
    ) -> Variable:
        """An array that the program makes, zero at first, of a shape or a layout of tiles."""
        try:
            kind = element_type(dtype) if isinstance(shape, Layout) else arguments.element_type(dtype)
            extents = () if isinstance(shape, Layout) else tuple(arguments.integers("shape", shape))
        except (TypeError, ValueError) as error:
            raise OutcoreError(errno.EINVAL, "record a program", detail=str(error)) from error
        if isinstance(shape, Layout):
            return self._variable(name, layout_facts(shape, kind, "disk", kind.itemsize), layout=shape)
        if len(extents) > 8 or any(extent < 1 for extent in extents):
            detail = f"an array of shape {extents}; it has up to 8 axes, each of one element at least"
            raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
        return self._variable(name, plain(extents, kind, "disk" if extents else "process"))

    def output(self, variable: Variable, name: str | None = None) -> Variable:
        """Marks an array that exists after a run, as `variable.result`; the caller closes it."""
        self.recording.check()
        if not isinstance(variable, Variable) or variable.program is not self:
            detail = f"output of {type(variable).__name__}: an array of the program is one"
            raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
        variable.is_output = True
        if name is not None and name != variable.name:
            variable.name = self._new_name(name)
        return variable

    def iterate(self, count: int, until: Callable[[int], bool] | None = None) -> Iterator[LoopNumber]:
        """The statements in the body of `for _ in p.iterate(n):` are recorded once and run `count` times. `until`,
        the same at all processes, ends the loop if it returns true, and may look at numbers by `value`. The loop
        gives no numbers, and only `until` may leave it: uses of a number, `break` and `return` raise OutcoreError
        (EINVAL), and so does a name that the body reads and gives to another array."""
        if not isinstance(count, int | np.integer) or count < 0 or not (until is None or callable(until)):
            detail = f"iterate({count!r}, {until!r}): a number of times, and a function or None"
            raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
        return self.recording.loop(int(count), until)

    def einsum(
        self,
        subscripts: str,
        *operands: Any,
        out: Variable | None = None,
        accumulate: bool = False,
        scale: complex = 1,
    ) -> Variable:
        """Records a contraction; `outcore.einsum` of variables does. Other operands become inputs."""
        found = [self._operand(each) for each in operands]
        expression = parse(subscripts, [each.shape for each in found])
        shape = expression.shape(expression.output)
        self._check_tilings(f"einsum '{expression}'", expression.inputs, found)
        scale = as_number(f"einsum '{expression}'", "scale", scale)
        dtype = type_of_result([each.dtype for each in found], scale)
        if out is None:
            tiles, mask = result_tiles(expression.inputs, expression.output, [each.facts for each in found])
            tilings = [tiling for tiling in tiles if tiling is not None]
            if shape and mask is not None and len(tilings) == len(shape):
                out = self.array(Layout(tilings, mask), dtype)
            else:
                out = self._variable(None, plain(shape, dtype, "disk" if shape else "process"))
        if out.shape != shape:
            raise OutcoreError(
                errno.EINVAL,
                f"einsum '{subscripts}'",
                detail=f"the result has shape {shape}, `out` {out.shape}",
            )
        what = f"einsum '{subscripts}'"
        if any(each is out for each in found):
            detail = f"the result, {out.name}, is an operand"
            raise OutcoreError(errno.EINVAL, what, detail=detail)
        self._check_result(what, out, dtype)
        check_symmetry(what, expression, found, [v.symmetry for v in found], out.symmetry)
        self._check_tilings(f"einsum '{expression}'", [*expression.inputs, expression.output], [*found, out])
        self._record(Contract(str(expression), tuple(found), out, accumulate, scale))
        return out

    def combine(self, value: Linear, out: Variable | None = None, *, accumulate: bool = False) -> Variable:
        """Records out = sum of arrays, or adds the sum to `out`. If the result lacks tiles, only those that it has
        are computed. If it has a symmetry, all arrays must have it: arrays whose layout lacks it are refused; for
        arrays without layout the caller has to know."""
        terms = as_linear(value).terms
        self.recording.use(terms)
        factors, variables = tuple(each.factor for each in terms), [each.variable for each in terms]

        def add(box: Any, *blocks: Any) -> Any:
            total = factors[0] * blocks[0]
            for factor, block in zip(factors[1:], blocks[1:], strict=True):
                total = total + factor * block  # perhaps of another type
            return total

        text = " + ".join(
            f"{factor} {v.name}" if factor != 1 else v.name
            for factor, v in zip(factors, variables, strict=True)
        )
        dtype = type_of_result([v.dtype for v in variables], *factors)
        if out is None:
            out = self._variable(None, plain(variables[0].shape, dtype, "disk"))
        self._check_result("record a program", out, dtype)
        self._check_permutations(out, variables, with_signs=True)
        return self.map(add, *variables, out=out, accumulate=accumulate, text=text)

    def map(
        self,
        function: Function,
        *operands: Any,
        out: Variable | None = None,
        accumulate: bool = False,
        text: str | None = None,
    ) -> Variable:
        """Records function(box, *blocks) for every box of arrays of one shape: the block of the result. It may be
        called for boxes of any size and in any thread. `box` is a tuple of slices.

        If the result lacks tiles, only those that it has are computed. If it has a symmetry, the results of the
        function must have it, which nobody checks; operands whose layout lacks its permutations, with any sign, are
        refused.
        """
        if not callable(function) or (out is None and not operands):
            what = (
                "no operands and no `out`"
                if callable(function)
                else f"{type(function).__name__} is no function"
            )
            raise OutcoreError(errno.EINVAL, "record a program", detail=f"map: {what}")
        found = [self._operand(each) for each in operands]
        if out is None:
            dtype = np.result_type(*(each.dtype for each in found))
            out = self._variable(None, plain(found[0].shape, dtype, "disk"))
        for each in found:
            if each.shape != out.shape:
                detail = f"{each.name} has shape {each.shape}, {out.name} {out.shape}"
                raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
        self._check_result("record a program", out)
        self._check_permutations(out, found)
        axes = string.ascii_letters[: len(out.shape)]
        self._check_tilings("record a program", [axes] * (len(found) + 1), [*found, out])
        name = text or str(getattr(function, "__name__", "function"))
        self._record(Map(function, tuple(found), out, accumulate, name))
        return out

    def _check_result(self, what: str, out: Variable, dtype: np.dtype[Any] | None = None) -> None:
        """Raises OutcoreError if `out` cannot take a result, of type `dtype` if that is known."""
        if dtype is not None:
            check_type(what, out.name, dtype, out.dtype)
        mine = self._sources.get(out.number)
        if mine is not None:
            check_written(what, out.name, mine)
            others = [v for v in self.variables if v is not out and v.number in self._sources]
            check_apart(
                what, f"the result, {out.name},", mine, [(v.name, self._sources[v.number]) for v in others]
            )

    def _check_permutations(
        self, out: Variable, operands: Sequence[Variable], *, with_signs: bool = False
    ) -> None:
        """Raises OutcoreError if an operand with a layout need not have the symmetry of the result, element by
        element: else tiles that are not computed could differ from those that follow by symmetry."""
        if out.layout is None:
            return
        for permutation, sign in out.layout.symmetry.elements.items():
            for each in operands:
                found = sign if each.layout is None else each.layout.symmetry.elements.get(permutation)
                if found is None or (with_signs and found != sign):
                    raise OutcoreError(
                        errno.EINVAL,
                        "record a program",
                        detail=f"{each.name} need not have the symmetry of {out.name} that permutes axes as "
                        f"{permutation}",
                    )

    def _check_tilings(self, what: str, labels: Sequence[str], arrays: Sequence[Variable]) -> None:
        names, tilings = [each.name for each in arrays], [each.facts.tilings for each in arrays]
        common_tilings(what, zip(names, labels, tilings, strict=True))

    def _operand(self, value: Any) -> Variable:
        if isinstance(value, Linear):
            return self.combine(value)
        if isinstance(value, Variable):
            if value.program is not self:
                raise OutcoreError(errno.EINVAL, "record a program", detail=f"{value.name} is of another one")
            return value
        for known in self.variables:
            if known.source is value:
                return known
        return self.input(value)

    def _record(self, statement: Contract | Map) -> None:
        self.recording.check()
        self.statements.append(statement)

    def _variable(self, name: str | None, facts: Facts, **more: Any) -> Variable:
        self.recording.check()
        number = len(self.variables)
        variable = Variable(number, self._new_name(name or f"x{number}"), facts, program=self, **more)
        self.variables.append(variable)
        return variable

    def _new_name(self, name: str) -> str:
        if not isinstance(name, str):
            raise OutcoreError(errno.EINVAL, "record a program", detail=f"name={name!r} is no text")
        if any(each.name == name for each in self.variables):
            raise OutcoreError(errno.EINVAL, "record a program", detail=f"two arrays have the name '{name}'")
        return name

    # ---- facts ----

    def runs_before(self, statement: int, following: int, rounds: Mapping[int, int]) -> int:
        """How often a statement has run when `following` is the next. rounds: finished rounds of each loop under
        way, by number. Loops that ended early count as if they had not."""
        runs, times = 0, self.repeats(statement)
        around = [(n, loop) for n, loop in enumerate(self.loops) if loop.first <= statement < loop.last]
        for number, loop in sorted(around, key=lambda each: each[1].first - each[1].last):
            if not loop.first <= following < loop.last:
                break
            times //= max(1, loop.count)
            runs += rounds.get(number, 0) * times
        return runs + (times if statement < following else 0)

    def fingerprint(self) -> str:
        """Identifies statements and arrays: equal for equal programs, whatever values are in the arrays."""
        facts = [
            (v.name, v.is_output, v.shape, v.dtype.name, v.facts.tiles, v.layout and v.layout.as_json())
            for v in self.variables
        ]
        return hashlib.sha256(repr((self.text(), facts)).encode()).hexdigest()

    # ---- planning and running ----

    def plan(self, rates: Any = None) -> ProgramPlan:
        """Where each array lies and how each statement runs. Collective."""
        from outcore.tensor.program import place

        self.recording.check_whole()
        return place.plan_program(self, rates)

    def run(self, *, plan: Any = None, restart: bool = False, progress: Tell | None = None) -> ProgramReport:
        """Carries out all statements. Collective.

        Args:
            plan: a plan that `plan` has made; None: the best one.
            restart: go on from `checkpoint`, if it exists.
            progress: a function that process 0 calls with a `Progress`, ten times a second at most; True: a bar in
                the terminal or the notebook, with the time that is left.
        """
        from outcore.tensor.program import program_run

        self.recording.check_whole()
        made = self.plan() if plan is None else plan
        self.report = program_run.run(self, made, restart, progress)
        if plan is None and not self.report.restarted:
            program_run.learn_from(self.report, self.world)
        return self.report

    def named(self, name: str) -> Variable:
        return next(each for each in self.variables if each.name == name)

    def value(self, variable: Variable) -> Any:
        """The present value of an array without axes, while a program runs or after it."""
        array = self.values.get(variable.number)
        if array is None:
            raise OutcoreError(errno.EINVAL, f"value of {variable.name}", detail="it was not computed")
        return array[()]


def _seconds(value: Any) -> float:
    number = as_number("record a program", "every", value)
    if isinstance(number, complex) or not number >= 0:
        raise OutcoreError(errno.EINVAL, "record a program", detail=f"every={value!r}: seconds, or None")
    return float(number)


def recording(values: Sequence[Any]) -> Program | None:
    """The program of the variables or sums among these values; None without any."""
    for each in values:
        if isinstance(each, Variable):
            return each.program
        if isinstance(each, Linear):
            return each.terms[0].variable.program
    return None
