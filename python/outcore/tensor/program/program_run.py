"""Runs a planned program: makes arrays when they are needed, frees them when they are not, and writes
checkpoints."""

from __future__ import annotations

import errno
import math
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.arrays.node_array import NodeArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.job import scratch
from outcore.job.world import World
from outcore.keep import checkpoint
from outcore.tensor.arrays.array import Array as ExtendedArray
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.cells import Axis, cut_for
from outcore.tensor.layout.operands import LocalOperand, Operand, slices
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.rates import learn
from outcore.tensor.plan.statements import Loop
from outcore.tensor.program.fusion import candidates
from outcore.tensor.program.parts import Parts
from outcore.tensor.program.program_plan import ProgramPlan, uses
from outcore.tensor.program.recorded import Variable
from outcore.tensor.run.progress import Tell, Watch, watching

if TYPE_CHECKING:
    from outcore.tensor.program.program import Program

_EVERY_S = 60.0  # between two checkpoints, unless the caller says otherwise
_SAVING = 20  # least ratio of the time of computing to that of saving


@dataclass(frozen=True)
class Ran:
    """One run of a statement."""

    text: str
    predicted_seconds: float
    predicted_bytes: float
    seconds: float
    moved_bytes: float


@dataclass(frozen=True)
class ProgramReport:
    """Actual beside predicted time and traffic of a run; bytes are of disk and network, over all processes."""

    statements: tuple[Ran, ...]
    plan: ProgramPlan
    restarted: bool

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.statements)

    @property
    def moved_bytes(self) -> float:
        return sum(each.moved_bytes for each in self.statements)

    def __str__(self) -> str:
        lines = [f"  {'predicted':>10s} {'was':>10s}   {'predicted':>11s} {'was':>11s}  statement"]
        for each in self.statements:
            lines.append(
                f"  {each.predicted_seconds:8.3g} s {each.seconds:8.3g} s   {each.predicted_bytes / 1e6:8.1f} MB "
                f"{each.moved_bytes / 1e6:8.1f} MB  {each.text}"
            )
        lines.append(f"  in all {self.seconds:.3g} s, {self.moved_bytes / 1e6:.1f} MB moved")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (
                each.text,
                f"{each.predicted_seconds:.3g}",
                f"{each.seconds:.3g}",
                in_words(each.predicted_bytes),
                in_words(each.moved_bytes),
            )
            for each in self.statements
        ]
        return html.table(
            "Run of a program" + (", restarted" if self.restarted else ""),
            ("statement", "seconds predicted", "seconds", "moved, predicted", "moved"),
            rows,
            f"in all {self.seconds:.3g} s, {in_words(self.moved_bytes)} moved",
        )


def run(program: Program, plan: ProgramPlan, restart: bool, progress: Tell | None) -> ProgramReport:
    """Runs a program. Collective. After an error arrays of the program are gone; the last checkpoint stays."""
    world = program.world
    with world.together("run a program", program.fingerprint(), bool(restart), program.checkpoint is None):
        if not isinstance(plan, ProgramPlan):
            raise OutcoreError(errno.EINVAL, "run a program", detail=f"plan={plan!r} is no plan of a program")
        if plan.fingerprint != program.fingerprint():
            raise OutcoreError(errno.EINVAL, "run a program", detail="the plan is of another program")
        if restart and program.checkpoint is None:
            raise OutcoreError(errno.EINVAL, "run a program", detail="restart=True needs a checkpoint")
    share = 0
    with world.together("run a program"):
        share = scratch.bytes_here(world, world.scratch, math.ceil(plan.disk_bytes))
    scratch.check_room(world, "run a program", [(Path(world.scratch), share)])
    with watching(progress, world, plan.seconds) as watch:
        running = _Run(program, plan, watch)
        try:
            restarted = restart and running.restore()
            running.work()
        except BaseException:
            running.abandon()
            raise
    return ProgramReport(tuple(running.ran), plan, restarted)


def learn_from(report: ProgramReport, world: World) -> None:
    """Corrects the rates of later plans by a run whose plan has been made with those of this machine."""
    if world.rank == 0:
        predicted = sum(each.predicted_seconds for each in report.statements)
        moved = sum(each.predicted_bytes for each in report.statements)
        expected = Amounts(disk_read=moved, seconds=predicted)
        learn(report.plan.rates, "float64", expected, Amounts(seconds=report.seconds))


class _Run:
    def __init__(self, program: Program, plan: ProgramPlan, watch: Watch | None) -> None:
        self.program, self.plan, self.watch = program, plan, watch
        self.world = program.world
        self.arrays: dict[int, Any] = {}
        self.operands: dict[int, Operand] = {}
        self.next = 0  # statement
        self.rounds: dict[int, int] = {}  # of loops that are under way, by number
        self.ran: list[Ran] = []
        self.part: tuple[str, int] | None = None  # letter and place up to which the next statement is done
        self._saved = time.monotonic()
        self._saving_s = 0.0  # time of the last checkpoint
        self._uses = {v.number: uses(program, plan.statements, v) for v in program.variables}
        self._lives = {v.number: program.life(v, self._uses[v.number]) for v in program.variables}
        interval = None if program.checkpoint is None else self._interval
        self._parts = Parts(program, plan, self._operand, self._is_done, interval)

    # ---- the order of statements ----

    def work(self) -> None:
        program = self.program
        while self.next < len(program.statements):
            if self._skips_empty_loop():
                continue
            number = self.next
            self._statement(number, self.part)
            self.part = None
            self._go_on(number)
            self._keep(finished=False)
        for variable in program.variables:
            if variable.is_output:
                self._operand(variable)  # which no statement may have needed
                own = variable.source is None
                variable.result = self.arrays.pop(variable.number) if own else variable.source
        self._keep(finished=True)
        self._free(lambda variable: True)

    def _skips_empty_loop(self) -> bool:
        for which, loop in reversed(list(enumerate(self.program.loops))):  # from the outermost
            if loop.count <= 0 and loop.first == self.next and loop.last > loop.first:
                self._go_on(loop.last - 1, skipped=which)
                return True
        return False

    def _go_on(self, number: int, skipped: int = -1) -> None:
        """Goes to the statement that follows this one, or that follows a skipped loop (by number); frees arrays
        that nothing needs any more."""
        self.next = number + 1
        back: Loop | None = None
        for which, loop in sorted(enumerate(self.program.loops), key=lambda each: -each[1].first):
            if loop.last != number + 1 or loop.first == loop.last:
                continue
            if which <= skipped and loop.first >= self.program.loops[skipped].first:
                continue  # the skipped one, or within it
            done = self.rounds.get(which, 0) + 1
            if done < loop.count and not self._ends(loop, done - 1):
                self.rounds[which] = done
                self.next, back = loop.first, loop
                break
            self.rounds.pop(which, None)

        def is_over(variable: Variable) -> bool:
            life = self._lives[variable.number]
            if variable.is_output or life is None or life[1] != number:
                return False
            return back is None or self.program.is_within(variable, self._uses[variable.number], back)

        self._free(is_over)

    def _ends(self, loop: Loop, iteration: int) -> bool:
        if loop.until is None:
            return False
        answer = False
        with self.world.together("until"):
            answer = bool(loop.until(iteration))
        return bool(self.world.all_reduce(int(answer), "max"))

    # ---- arrays ----

    def _operand(self, variable: Variable) -> Operand:
        found = self.operands.get(variable.number)
        if found is None:
            found = self.operands[variable.number] = self._made(variable)
        return found

    def _made(self, variable: Variable) -> Operand:
        world = self.world
        if variable.source is not None and variable.name not in self.plan.copied:
            return operand(variable.source)
        if not variable.shape:
            array = self.arrays[variable.number] = np.zeros((), variable.dtype)
            self.program.values[variable.number] = array
            return LocalOperand(array)
        # An array that the plan leaves out was kept by an earlier run.
        where = "global" if variable.source is not None else self.plan.where.get(variable.name, "disk")
        made: Any
        if variable.layout is not None:
            options: dict[str, Any] = {"cache_bytes": self.plan.cache_bytes} if where == "disk" else {}
            made = ExtendedArray(world, variable.layout, variable.dtype, where=where, **options)
        elif where == "disk":
            made = DiskArray(world, variable.shape, variable.dtype, cache_bytes=self.plan.cache_bytes)
        else:
            made = GlobalArray(world, variable.shape, variable.dtype)
        self.arrays[variable.number] = made
        if variable.source is not None:
            with world.together("copy an array into memory", variable.name):
                patch = made.patch
                if made.local.size:
                    box = [(side.start, side.stop) for side in patch]
                    for request in operand(variable.source).get(box, made.local):
                        request.wait()
            made.sync()
        if isinstance(made, GlobalArray) and world.size == 1:
            return LocalOperand(made.local)
        return operand(made)

    def _free(self, is_over: Callable[[Variable], bool]) -> None:
        for variable in self.program.variables:
            if is_over(variable):
                self.operands.pop(variable.number, None)
                array = self.arrays.pop(variable.number, None)
                if array is not None and not isinstance(array, np.ndarray):
                    array.close()

    def abandon(self) -> None:
        """After an error: the arrays vanish with the job, or when the world is closed."""
        self.operands.clear()
        self.arrays.clear()

    # ---- one statement ----

    def _statement(self, number: int, resumed: tuple[str, int] | None = None) -> None:
        """`resumed`: a letter, and the place along that axis up to which it was done by an earlier run."""
        statement, placed = self.program.statements[number], self.plan.statements[number]
        if placed.skipped:
            return
        begun = time.perf_counter()
        if self.watch is not None:
            self.watch.begin(placed.text, placed.seconds)
        within = placed.within
        if within is not None and self.program.named(within.variable).number in self.arrays:
            within = None  # an earlier run has kept it
        amounts = self._parts.run(number, within, resumed, self.watch)
        seconds = float(self.world.all_reduce(time.perf_counter() - begun, "max"))
        self.ran.append(
            Ran(str(statement), placed.seconds, placed.moved_bytes, seconds, amounts.disk + amounts.network)
        )

    def _is_done(self, number: int, letter: str, place: int) -> None:
        """Notes that all of a statement is done up to a place along an axis."""
        if number == self.next:  # else it is recomputed for a later one
            self.part = letter, place
            self._keep(finished=False)

    # ---- checkpoints ----

    def _keep(self, *, finished: bool) -> None:
        path = self.program.checkpoint
        if path is None:
            return
        due = finished or time.monotonic() - self._saved >= self._interval()
        if not self.world.all_reduce(int(due), "max"):
            return
        begun = time.monotonic()
        arrays: dict[str, Any] = {}
        packed: list[Any] = []
        for variable in self._to_keep():
            array = self._array(variable)
            if isinstance(array, ExtendedArray):
                array = _packed(array)
                packed.append(array)
            elif isinstance(array, NodeArray):
                array = array.view
            elif not variable.shape:
                array = np.asarray(array).reshape(1)
            arrays[f"v{variable.number}"] = array
        meta = {
            "what": "program of outcore",
            "program": self.program.fingerprint(),
            "next": self.next,
            "rounds": {str(k): v for k, v in self.rounds.items()},
            "part": self.part,
        }
        checkpoint.save(self.world, path, arrays, meta)
        for array in packed:
            array.close()
        self._saved = time.monotonic()
        self._saving_s = self._saved - begun

    def _interval(self) -> float:
        """Least seconds between two checkpoints."""
        if self.program.every is not None:
            return self.program.every
        rates = self.plan.rates
        nbytes = sum(variable.facts.bytes for variable in self._to_keep())
        predicted = nbytes * (1 / rates.read + 1 / rates.write) / rates.nodes
        return max(_EVERY_S, _SAVING * max(predicted, self._saving_s))

    def _array(self, variable: Variable) -> Any:
        if variable.result is not None and variable.number not in self.arrays and variable.source is None:
            return variable.result
        if isinstance(variable.source, BlockSparseArray):
            return ExtendedArray.wrap(self.world, variable.source)
        return variable.source if variable.source is not None else self.arrays[variable.number]

    def _to_keep(self) -> Iterator[Variable]:
        """Arrays that the rest needs and that the program has changed."""
        for variable in self.program.variables:
            written = any(each.out is variable for each in self.program.statements)
            is_there = (
                variable.number in self.arrays or variable.source is not None or variable.result is not None
            )
            if written and is_there:
                yield variable

    def restore(self) -> bool:
        """Goes on from the checkpoint. Returns whether one exists."""
        path = self.program.checkpoint
        try:
            kept = checkpoint.load(self.world, path)
        except OutcoreError as error:
            if error.errno != errno.ENOENT:  # none, or a run was killed before the first one was complete
                raise
            return False
        with kept as saved:
            with self.world.together("go on with a program"):
                meta = saved.meta if isinstance(saved.meta, dict) else {}
                if (
                    meta.get("what") != "program of outcore"
                    or meta.get("program") != self.program.fingerprint()
                ):
                    raise OutcoreError(
                        errno.EINVAL,
                        "go on with a program",
                        path=path,
                        detail="the checkpoint is of another program",
                    )
                self.next = int(meta["next"])
                self.rounds = {int(k): int(v) for k, v in meta["rounds"].items()}
                part = meta["part"]
                self.part = None if part is None else (str(part[0]), int(part[1]))
                if self.watch is not None:
                    runs = [
                        self.program.runs_before(s, self.next, self.rounds)
                        for s in range(len(self.program.statements))
                    ]
                    seconds = [each.seconds for each in self.plan.statements]
                    self.watch.went_on(sum(map(operator.mul, runs, seconds)))
            for variable in self.program.variables:
                name = f"v{variable.number}"
                if name in saved:
                    with saved.open(name) as kept_array:
                        self._restored(variable, kept_array)
        self._make_what_was_left_out()
        return True

    def _make_what_was_left_out(self) -> None:
        """Makes intermediate arrays that the plan of the earlier run left out, and this one does not."""
        for number, candidate in candidates(self.program).items():
            life = self._lives[number]
            if number not in self.arrays and life is not None and candidate.producer < self.next <= life[1]:
                self._statement(candidate.producer)

    def _restored(self, variable: Variable, kept: DiskArray) -> None:
        target, array = self._operand(variable), self._array(variable)
        if isinstance(array, ExtendedArray):
            _unpack(kept, array)
            return
        world = self.world
        if not variable.shape:
            array[...] = kept[0]
            return
        cells = cut_for([Axis(str(i), n) for i, n in enumerate(variable.shape)], (8 << 20) // 8).cells
        with world.together("restore an array", variable.name):
            first, step = world.rank, world.size
            if target.copies(world) > 1:
                alone = target.facts.where == "process"
                first, step = (0, 1) if alone else (world.node_rank, world.node_size)
            mine = cells[first::step]
            for box in mine:
                block = kept.get(slices(box))
                for request in target.put(list(box), block, add=False):
                    request.wait()
        target.sync()


def _packed(array: ExtendedArray) -> DiskArray:
    """A disk array with the stored tiles one after another. Collective."""
    layout = array.layout
    made = DiskArray(array.world, (max(1, layout.elements),), array.dtype)
    with array.world.together("keep tiles"):
        for tile in array.own_tiles():
            first, last = layout.offsets[layout.numbers[tile] :][:2]
            made.put(np.s_[int(first) : int(last)], np.asarray(array.get_tile(tile)).ravel())
    made.flush()
    return made


def _unpack(kept: DiskArray, array: ExtendedArray) -> None:
    layout = array.layout

    def tile(number: int) -> Any:
        first, last = layout.offsets[number:][:2]
        return kept.get(np.s_[int(first) : int(last)]).reshape(layout.tile_shape(layout.stored[number]))

    array.fill_copies(tile, "restore tiles")
