"""What a calculation is made of, before anything of it runs: arrays, and statements that read and write them.

`Program` writes such a description, and `Recorder` finds that of equations in Python. Lifetimes, bytes and
operations follow from the statements: nothing is read off the name of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from outcore.tensor.layout.layout import Layout
    from outcore.tensor.layout.operands import Facts
    from outcore.tensor.plan.rates import Rates

_DOUBLE = 8

Function = Callable[..., Any]
Space = Callable[[int], float]
"""The least bytes of work space of a process. The argument is the most elements of a tile along axes whose tiles a
plan chooses."""


def no_space(tile: int) -> float:
    """The space of a statement that takes none beside its arrays."""
    return 0.0


class Role(Enum):
    """What an array is for.

    INPUT: is made once, before the loop that a method is.
    KEPT: outlasts a turn of the loop; a checkpoint has a copy.
    VECTOR: one of several of an extrapolation or of a search.
    SCRATCH: is undefined between the statements that fill it and use it.
    """

    INPUT = "input"
    KEPT = "kept"
    VECTOR = "vector"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class ArraySpec:
    """One array of real numbers, as a method asks for it.

    Attributes:
        name: by which equations ask for it; for people and checkpoints.
        store_dtype: of elements where they lie; None: double precision.
    """

    name: str
    layout: Layout
    role: Role
    store_dtype: str | None = None

    @property
    def item_bytes(self) -> int:
        return np.dtype(self.store_dtype).itemsize if self.store_dtype else _DOUBLE

    @property
    def bytes(self) -> int:
        return self.layout.elements * self.item_bytes


@dataclass(eq=False)
class Described:
    """An array of a description, without values.

    Attributes:
        source: the array of the caller; None: the calculation makes it.
        layout: of tiles; None: without tiles.
        is_output: is there when all statements are over.
    """

    number: int
    name: str
    facts: Facts
    source: Any = None
    layout: Layout | None = None
    is_output: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.facts.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.facts.dtype


class Point(NamedTuple):
    """Memory of a process for panels, seconds, bytes moved, and the least that have to be."""

    workspace_bytes: float
    seconds: float
    moved: float
    bound: float

    def then(self, after: Point, times: int = 1) -> Point:
        """This, and after it the other so many times, in the same memory."""
        return Point(
            max(self.workspace_bytes, after.workspace_bytes),
            *(mine + times * its for mine, its in zip(self[1:], after[1:], strict=True)),
        )


class Touched(NamedTuple):
    """Bytes that a pass takes from an array, and gives it."""

    read: float
    written: float

    @property
    def total(self) -> float:
        return self.read + self.written


# ---- statements: `reads`, `writes` are arrays; one that is added to is among both ----


class OneResult:
    """A statement with operands and one result, which it fills or adds to."""

    operands: tuple[Any, ...]
    out: Any
    accumulate: bool

    @property
    def reads(self) -> tuple[Any, ...]:
        return (*self.operands, self.out) if self.accumulate else self.operands

    @property
    def writes(self) -> tuple[Any, ...]:
        return (self.out,)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Each once."""
        return tuple(dict.fromkeys((*self.operands, self.out)))


@dataclass(frozen=True, eq=False)
class Contract(OneResult):
    """out = scale times a contraction, or added to what is there. work_space: of its panels, in a room."""

    subscripts: str
    operands: tuple[Any, ...]
    out: Any
    accumulate: bool
    scale: complex = 1
    work_space: Space = no_space

    def __str__(self) -> str:
        names = ", ".join(each.name for each in self.operands)
        factor = "" if self.scale == 1 else f"{self.scale} "
        return f"{self.out.name} {'+=' if self.accumulate else '='} {factor}{self.subscripts} ({names})"


@dataclass(frozen=True, eq=False)
class Map(OneResult):
    """Each tile of out = function(box, tiles of operands), or added to what is there."""

    function: Function
    operands: tuple[Any, ...]
    out: Any
    accumulate: bool
    text: str

    def __str__(self) -> str:
        return f"{self.out.name} {'+=' if self.accumulate else '='} {self.text}"


@dataclass(frozen=True, eq=False)
class Pass:
    """What goes tile by tile, or row by row, over arrays of any shapes.

    Attributes:
        touched: what it takes and gives of each array.
        filled: arrays whose elements it writes before it reads them.
        work_space: of the tiles that all threads have at a time.
    """

    text: str
    touched: Mapping[Any, Touched]
    filled: frozenset[Any] = frozenset()
    work_space: Space = no_space

    @property
    def reads(self) -> tuple[Any, ...]:
        return tuple(each for each in self.touched if each not in self.filled)

    @property
    def writes(self) -> tuple[Any, ...]:
        return tuple(each for each, bytes_ in self.touched.items() if bytes_.written)

    def __str__(self) -> str:
        return f"{self.text}: {', '.join(each.name for each in self.touched)}"


class Kernel(Protocol):
    """What a method does by itself with arrays, and says what it takes. Operands and results are arrays of a
    description where it is recorded, and arrays where it runs. It goes by in parts, in less memory in more."""

    @property
    def operands(self) -> tuple[Any, ...]: ...

    @property
    def results(self) -> tuple[Any, ...]: ...

    def work_space(self, tile: int) -> float:
        """See `Space`."""
        ...

    def parts(self, memory_bytes: float) -> int:
        """In so much memory of a process."""
        ...

    def moved(self, done: Sequence[float]) -> Mapping[Any, Touched]:
        """Of each operand and result, of all processes. done: of each part the share that is done."""
        ...

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        """Seconds of processors in so much memory of a process if these arrays are on disk."""
        ...

    def operations(self) -> float: ...

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        """That have to be moved if these are on disk, in so much memory of all processes."""
        ...


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel in a description."""

    kernel: Kernel

    @property
    def reads(self) -> tuple[Any, ...]:
        return self.kernel.operands

    @property
    def writes(self) -> tuple[Any, ...]:
        return self.kernel.results

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))

    def work_space(self, tile: int) -> float:
        return self.kernel.work_space(tile)

    def __str__(self) -> str:
        return str(self.kernel)


@dataclass
class Loop:
    """Statements first .. last - 1, `count` times at most; `until(iteration)` after each ends it if it is true."""

    first: int
    last: int
    count: int
    until: Callable[[int], bool] | None = None


# ---- all of it ----


@dataclass(eq=False)
class Description:
    """Arrays, statements in their order, and loops around some of them."""

    variables: list[Any] = field(default_factory=list)
    statements: list[Any] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    def uses(self, variable: Any) -> list[int]:
        """Statements that read or write it."""
        return [
            number
            for number, each in enumerate(self.statements)
            if any(other is variable for other in (*each.reads, *each.writes))
        ]

    def repeats(self, statement: int) -> int:
        """How often a statement runs, at most."""
        result = 1
        for loop in self.loops:
            if loop.first <= statement < loop.last:
                result *= loop.count
        return result

    def life(self, variable: Any, uses: Sequence[int] | None = None) -> tuple[int, int] | None:
        """The first and the last statement in whose time an array is needed; None: it never is. What is carried
        from one iteration to the next, or comes from before a loop, lives through all of it. `uses`: statements
        that need it; None: those that name it."""
        if uses is None:
            uses = self.uses(variable)
        if not uses:
            return (0, len(self.statements) - 1) if variable.is_output else None
        first, last = uses[0], uses[-1]
        for loop in sorted(self.loops, key=lambda each: each.last - each.first):
            if first < loop.last and last >= loop.first and not self.is_within(variable, uses, loop):
                first, last = min(first, loop.first), max(last, loop.last - 1)
        if variable.is_output:
            last = len(self.statements) - 1
        return first, last

    def is_within(self, variable: Any, uses: Sequence[int], loop: Loop) -> bool:
        """Whether each iteration makes it anew and nothing else needs it."""
        if (
            variable.source is not None
            or variable.is_output
            or not all(loop.first <= u < loop.last for u in uses)
        ):
            return False
        first = self.statements[uses[0]]
        read = any(other is variable for other in first.reads)
        return not read and any(other is variable for other in first.writes)

    def text(self) -> str:
        """The statements, as they were recorded."""
        lines = []
        for number, each in enumerate(self.statements):
            depth = sum(loop.first <= number < loop.last for loop in self.loops)
            lines += [
                "  " * (depth - 1) + f"up to {loop.count} times:"
                for loop in self.loops
                if loop.first == number
            ]
            lines.append("  " * depth + str(each))
        return "\n".join(lines)
