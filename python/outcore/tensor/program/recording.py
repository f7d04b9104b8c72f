"""The state of recording a program: which loops are open, and whether its statements mean the same in each run of a
loop."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, NoReturn

from outcore.base.errors import OutcoreError
from outcore.tensor.plan.statements import Loop
from outcore.tensor.program import loop_text
from outcore.tensor.program.recorded import Linear, LoopNumber, Recorded, Term, Variable

if TYPE_CHECKING:
    from types import FrameType

    from outcore.tensor.program.program import Program


@dataclass(frozen=True)
class Moment:
    """A moment before a statement, within loops (by their numbers in order of their begin)."""

    statement: int
    loops: tuple[int, ...]


class Recording:
    """The recording of one program. It refuses a statement where it is written, or when its loop or block ends."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._open: list[int] = []  # loops, by number
        self._loops = 0  # number of loops that were begun
        self._used: list[tuple[Term, Moment]] = []
        self._wrong = ""  # why the record differs from the program as written, for ever
        self._is_over = False

    def now(self) -> Moment:
        return Moment(len(self._program.statements), tuple(self._open))

    def begin(self) -> None:
        self._is_over = False

    def end(self, exception: BaseException | None) -> None:
        """Ends the block."""
        self._is_over = True
        if exception is None:
            self.check_whole()
        else:
            self._wrong = self._wrong or f"its block was left by {type(exception).__name__}"

    def check(self) -> None:
        """Raises OutcoreError (EINVAL) if nothing may be recorded any more."""
        if self._wrong:
            _refuse(self._wrong)
        if self._is_over:
            _refuse("its block is over: statements are written within it")

    def check_whole(self) -> None:
        """Raises OutcoreError (EINVAL) if the record differs from the program as written."""
        if self._open and not self._wrong:
            _refuse("a loop is not over: plan and run the program after it")
        if self._wrong:
            _refuse(self._wrong)

    # ---- loops ----

    def loop(self, count: int, until: Callable[[int], bool] | None) -> Iterator[LoopNumber]:
        """Gives the loop's number once; the statements recorded until the next one is asked for are the body."""
        return _Numbers(self._loop(count, until))

    def _loop(self, count: int, until: Callable[[int], bool] | None) -> Iterator[LoopNumber]:
        self.check()
        number, first = self._loops, len(self._program.statements)
        before, numbers = _arrays_of(sys._getframe(2)), loop_text.numbers_of(sys._getframe(2))
        self._loops += 1
        self._open.append(number)
        is_left = True
        try:
            yield LoopNumber()
            is_left = False
        finally:
            if is_left:  # the body was left, or the caller asked for one number only
                self._wrong = self._wrong or (
                    f"a loop of up to {count} times was left by break, return or an exception; it is recorded "
                    "once, and ended by `until` alone"
                )
        if self._wrong:
            _refuse(self._wrong)
        if self._open[-1] != number:
            _refuse("a loop ends before one that began later")
        self._check_rebound(before, _arrays_of(sys._getframe(2)), first)
        self._check_numbers(numbers, sys._getframe(2))
        last = len(self._program.statements)
        if last == first:
            _refuse("a loop without statements: they are written in the body of `for _ in p.iterate(n):`")
        self._open.pop()
        self._check_sums(number, first)
        self._program.loops.append(Loop(first, last, count, until))

    def _check_rebound(self, before: dict[str, Recorded], after: dict[str, Recorded], first: int) -> None:
        """Raises for a name whose array the body reads and replaces: the next run of the body would read the first
        one again."""
        read = {id(each) for s in self._program.statements[first:] for each in s.operands}
        read |= {id(term) for term, moment in self._used if moment.statement >= first}
        for name, old in before.items():
            new = after.get(name, old)
            if new is old or not isinstance(new, Variable | Linear):
                continue
            parts = {id(old)} if isinstance(old, Variable) else {id(each) for each in _terms(old)}
            again = {id(each) for term in _terms(new) for each in (term, term.variable)}
            if parts & (read | again):
                self._wrong = (
                    f"'{name}' is another array at the end of a loop than at its begin, and statements are "
                    f"recorded once: assign to the array, {name}[...] = .., not to its name"
                )
                _refuse(self._wrong)

    def _check_numbers(self, before: dict[str, Number], caller: FrameType) -> None:
        """Raises for a number that the body reads and changes: it is recorded with its first value."""
        after = loop_text.numbers_of(caller)
        changed = [name for name, old in before.items() if name in after and after[name] != old]
        for name in sorted(loop_text.carried(caller).intersection(changed)):
            self._wrong = (
                f"'{name}' is another number at the end of a loop than at its begin, and statements are recorded "
                "once, with its first value; an array of shape () of the program may count"
            )
            _refuse(self._wrong)

    # ---- sums ----

    def use(self, terms: Iterable[Term]) -> None:
        """Notes that a statement uses a sum. Its arrays must not have changed since it was written."""
        here = self.now()
        for term in terms:
            name = term.variable.name
            if not set(term.moment.loops) <= set(here.loops):
                _refuse(
                    f"a sum with {name} was written in a loop and is used after it: assign it to an array there"
                )
            if self._is_written(term.variable, term.moment.statement):
                _refuse(
                    f"{name} was changed after a sum with it was written: assign the sum to an array first"
                )
            self._used.append((term, here))

    def _check_sums(self, number: int, first: int) -> None:
        """Raises for a sum that was written before a loop whose body uses it and changes one of its arrays."""
        for term, used in self._used:
            inside = number in used.loops and number not in term.moment.loops
            if inside and self._is_written(term.variable, first):
                self._wrong = (
                    f"a sum with {term.variable.name} was written before a loop that uses it and changes "
                    f"{term.variable.name}: write it in the loop, or assign it to an array first"
                )
                _refuse(self._wrong)

    def _is_written(self, variable: Variable, since: int) -> bool:
        return any(each.out is variable for each in self._program.statements[since:])


class _Numbers:
    """The iterator of a loop, for the head of a `for` statement."""

    def __init__(self, numbers: Iterator[LoopNumber]) -> None:
        self._numbers = numbers

    def __iter__(self) -> Iterator[LoopNumber]:
        if not loop_text.is_head(sys._getframe(1)):
            _refuse(
                "a loop of a program is written `for _ in p.iterate(n):`, as it is recorded once: not within "
                "enumerate, zip, list or a comprehension, which would see one run alone"
            )
        return self

    def __next__(self) -> LoopNumber:
        return next(self._numbers)


def _terms(value: Recorded) -> tuple[Term, ...]:
    return value.terms if isinstance(value, Linear) else ()


def _arrays_of(caller: FrameType) -> dict[str, Recorded]:
    """Recorded objects in the variables of the function that writes a loop, by name."""
    return {name: each for name, each in caller.f_locals.items() if isinstance(each, Recorded)}


def _refuse(detail: str) -> NoReturn:
    raise OutcoreError(errno.EINVAL, "record a program", detail=detail)
