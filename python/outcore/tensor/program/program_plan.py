"""The plan of a program: where its arrays lie, and with how much memory each statement works."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.tensor.layout.operands import Where
from outcore.tensor.plan.rates import Rates
from outcore.tensor.program.fusion import Within

if TYPE_CHECKING:
    from outcore.tensor.program.program import Program
    from outcore.tensor.program.recorded import Variable

FORMAT = 3  # with plans of products of format 4


@dataclass(frozen=True)
class PlacedStatement:
    """The choice for one statement, and the prediction for one run of it.

    Attributes:
        within: an operand that it makes for itself, box by box.
        skipped: it does not run: the statements that need its result make that for themselves.
    """

    text: str
    memory_bytes: int
    seconds: float
    moved_bytes: float
    bound_bytes: float
    repeats: int
    within: Within | None = None
    skipped: bool = False


@dataclass(frozen=True)
class ProgramPlan:
    """A plan of a whole program.

    Attributes:
        fingerprint: identifies the program.
        where: the place of each variable, by name: process, node, global or disk.
        copied: disk arrays of the caller that are copied into memory first.
        memory: bytes of arrays in memory and panels in a process, during each statement.
        cache_bytes: the cache of each array on disk that the program makes, in each process, beside `memory`.
        beside_bytes: most bytes of the budget of a process that these caches, and elements on their way between
            processes, take beside `memory`.
    """

    fingerprint: str
    where: dict[str, Where]
    copied: tuple[str, ...]
    statements: tuple[PlacedStatement, ...]
    memory: tuple[int, ...]
    memory_bytes: int
    disk_bytes: float
    bound_bytes: float
    solver_seconds: float
    rates: Rates
    cache_bytes: int
    beside_bytes: int

    @property
    def seconds(self) -> float:
        return sum(each.seconds * each.repeats for each in self.statements)

    @property
    def moved_bytes(self) -> float:
        """Traffic of disk and network."""
        return sum(each.moved_bytes * each.repeats for each in self.statements)

    def as_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})

    @staticmethod
    def from_json(text: str) -> ProgramPlan:
        """Raises OutcoreError (EINVAL) for text that is no plan of a program, (ENOTSUP) for another format."""
        try:
            values = json.loads(text)
            found = values.pop("format")
            if found != FORMAT:
                raise OutcoreError(
                    errno.ENOTSUP, "read a plan", detail=f"format {found}; this program knows {FORMAT}"
                )
            return ProgramPlan(
                **{
                    **values,
                    "copied": tuple(values["copied"]),
                    "statements": tuple(_placed(each) for each in values["statements"]),
                    "memory": tuple(values["memory"]),
                    "rates": Rates.from_json(values["rates"]),
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            raise OutcoreError(errno.EINVAL, "read the plan of a program", detail=str(error)) from error

    def table(self) -> str:
        """The plan as a table, for people."""
        team = f"{self.rates.processes} x {self.rates.threads} threads"
        lines = [f"{self.memory_bytes / 1e6:.4g} MB of memory, {team}"]
        for place in ("process", "node", "global", "disk"):
            names = [name for name, where in self.where.items() if where == place]
            if names:
                lines.append(f"  {place}: {', '.join(names)}")
        if self.copied:
            lines.append(f"  copied into memory first: {', '.join(self.copied)}")
        lines.append(f"  {'seconds':>9s} {'moved':>11s} {'bound':>11s} {'memory':>11s}  statement")
        for each, memory in zip(self.statements, self.memory, strict=True):
            times = f" ({each.repeats} times)" if each.repeats > 1 else ""
            if each.skipped:
                lines.append(f"  {'made where it is used':>46s}  {each.text}")
                continue
            if each.within is not None:
                times += f", with {each.within.variable} in {len(each.within.cuts) - 1} boxes"
            lines.append(
                f"  {each.seconds:9.3g} {each.moved_bytes / 1e6:8.1f} MB {each.bound_bytes / 1e6:8.1f} MB "
                f"{memory / 1e6:8.1f} MB  {each.text}{times}"
            )
        lines.append(
            f"  in all {self.seconds:.3g} s, {self.moved_bytes / 1e6:.1f} MB moved (at least "
            f"{self.bound_bytes / 1e6:.1f} "
            f"MB), {self.disk_bytes / 1e6:.1f} MB on disk at a time; beside that memory caches and transfers take "
            f"{self.beside_bytes / 1e6:.1f} MB at most"
        )
        return "\n".join(lines)

    __str__ = table

    def _repr_html_(self) -> str:
        rows = []
        for each, memory in zip(self.statements, self.memory, strict=True):
            if each.skipped:
                rows.append((each.text, "", "made where it is used", "", "", ""))
                continue
            within = f", with {each.within.variable}" if each.within is not None else ""
            moved, bound = in_words(each.moved_bytes), in_words(each.bound_bytes)
            rows.append(
                (each.text + within, str(each.repeats), moved, bound, in_words(memory), f"{each.seconds:.3g}")
            )
        places = [
            f"{place}: {', '.join(name for name, where in self.where.items() if where == place)}"
            for place in ("process", "node", "global", "disk")
            if place in self.where.values()
        ]
        return html.table(
            f"Plan of a program, {in_words(self.memory_bytes)} of memory",
            ("statement", "times", "moved", "bound", "memory", "seconds"),
            rows,
            f"{'; '.join(places)}. In all {self.seconds:.3g} s, {in_words(self.moved_bytes)} moved (at least "
            f"{in_words(self.bound_bytes)}), {in_words(self.disk_bytes)} on disk at a time",
        )


def _placed(values: dict[str, Any]) -> PlacedStatement:
    within = values["within"]
    if within is not None:
        within = Within(**{**within, "cuts": tuple(within["cuts"])})
    return PlacedStatement(**{**values, "within": within})


def uses(program: Program, statements: Sequence[PlacedStatement], variable: Variable) -> list[int]:
    """Statements that need an array when they run as planned. Where a statement makes an operand for itself, it
    needs the arrays from which that is made, too."""
    found = set(program.uses(variable))
    for number, each in enumerate(statements):
        if each.within is None:
            continue
        if any(v is variable for v in program.statements[each.within.producer].operands):
            found.add(number)
    return sorted(found)
