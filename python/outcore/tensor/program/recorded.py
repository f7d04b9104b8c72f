"""The objects that a program is written with: its arrays, sums of them, and numbers of its loops. None has a value
while the program is recorded, so each refuses operations that need one: a program must not depend on it in
silence."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.result_check import as_number
from outcore.tensor.layout.symmetry import Symmetry
from outcore.tensor.plan.statements import Described

if TYPE_CHECKING:
    from outcore.tensor.program.program import Program
    from outcore.tensor.program.recording import Moment


def _refused(what: str) -> Callable[..., Any]:
    def refuse(self: Recorded, *_: object, **__: object) -> NoReturn:
        raise OutcoreError(errno.EINVAL, "record a program", detail=f"{what} {self.without_value}")

    return refuse


class Recorded:
    """An object without a value: each operation that needs one raises OutcoreError (EINVAL)."""

    without_value: str
    __array_ufunc__ = None  # NumPy's numbers and arrays leave operations to ours

    __bool__ = _refused("the truth of")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refused("a comparison with")
    __int__ = __float__ = __complex__ = __index__ = __round__ = _refused("the number of")
    __len__ = _refused("the length of")
    __iter__ = __contains__ = __getitem__ = _refused("an element of")
    __array__ = _refused("a NumPy array of")
    __hash__ = object.__hash__


class LoopNumber(Recorded):
    """The k of `for k in p.iterate(n)`. The statements of the loop are recorded once, and run n times."""

    without_value = (
        "the number of a loop, which is recorded once and has no value then; an array of shape () of the program "
        "may count"
    )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused(
        "arithmetic with"
    )
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _refused("arithmetic with")
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = _refused("arithmetic with")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refused("arithmetic with")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refused("arithmetic with")
    __str__ = __format__ = _refused("the text of")
    __hash__ = _refused("the hash of")

    def __repr__(self) -> str:
        return "<number of a loop of a program>"


@dataclass(frozen=True)
class Term:
    """An array of a program, as it is at a moment, times a number."""

    factor: complex
    variable: Variable
    moment: Moment


class Linear(Recorded):
    """A sum of arrays of a program, each times a number, until it is assigned or used."""

    without_value = "a sum of arrays of a program, which has no values while it is recorded"

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)

    def __add__(self, other: Variable | Linear) -> Linear:
        return Linear([*self.terms, *as_linear(other).terms])

    def __sub__(self, other: Variable | Linear) -> Linear:
        return self + -as_linear(other)

    def __mul__(self, number: complex) -> Linear:
        if isinstance(number, Variable | Linear):
            detail = f"factor={type(number).__name__} is no number; outcore.einsum multiplies arrays"
            raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
        number = as_number("record a program", "factor", number)
        return Linear([Term(each.factor * number, each.variable, each.moment) for each in self.terms])

    __rmul__ = __mul__

    def __neg__(self) -> Linear:
        return self * -1


@dataclass(eq=False, kw_only=True)
class Variable(Described, Recorded):
    """An array of a program. `result` is the array itself, of outputs, after a run."""

    program: Program
    result: Any = field(default=None, repr=False)

    @property
    def without_value(self) -> str:  # type: ignore[override]
        return (
            f"{self.name}, an array of a program, which has no values while it is recorded; those of an output are "
            "in its `result` after a run"
        )

    @property
    def symmetry(self) -> Symmetry:
        """The symmetry that it has whatever its elements are."""
        return Symmetry(len(self.shape)) if self.layout is None else self.layout.symmetry

    def __add__(self, other: Variable | Linear) -> Linear:
        return as_linear(self) + other

    def __sub__(self, other: Variable | Linear) -> Linear:
        return as_linear(self) - other

    def __mul__(self, number: complex) -> Linear:
        return as_linear(self) * number

    __rmul__ = __mul__

    def __neg__(self) -> Linear:
        return as_linear(self) * -1

    def __iadd__(self, other: Variable | Linear) -> Self:
        self.program.combine(as_linear(other), out=self, accumulate=True)
        return self

    def __isub__(self, other: Variable | Linear) -> Self:
        self.program.combine(-as_linear(other), out=self, accumulate=True)
        return self

    def __imul__(self, number: complex) -> Self:
        self.program.combine(self * number, out=self)
        return self

    def __setitem__(self, index: Any, value: Variable | Linear) -> None:
        """`x[...] = sum` assigns all elements."""
        if index is not Ellipsis:
            raise OutcoreError(errno.EINVAL, f"assign to {self.name}", detail="all of it: x[...] = y")
        self.program.combine(as_linear(value), out=self)

    def __hash__(self) -> int:
        return id(self)


def as_linear(value: Variable | Linear) -> Linear:
    """A value as a sum. Raises OutcoreError (EINVAL) if it is no array of a program, and no sum."""
    if isinstance(value, Variable):
        return Linear([Term(1, value, value.program.recording.now())])
    if not isinstance(value, Linear):
        detail = f"{type(value).__name__} in place of an array of the program, or a sum of them"
        raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
    return value
