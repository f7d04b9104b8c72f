"""The text of a loop of a program, as the function that writes it was compiled: whether `for` asks for its numbers,
and which numbers its body carries from one run to the next. Statements are recorded once, so a number that seems to
change from run to run would have its first value in all of them."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from numbers import Number
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_BETWEEN = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")  # instructions that do nothing here
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def is_head(caller: FrameType) -> bool:
    """Whether `caller` asks for an iterator as the head of a `for` statement does: not for `enumerate`, `zip`,
    `list` or a comprehension, which see one number alone."""
    if caller.f_code.co_name in _COMPREHENSIONS:
        return False
    here = [each for each in dis.get_instructions(caller.f_code) if each.opname not in _BETWEEN]
    names = {each.offset: i for i, each in enumerate(here)}
    at = names.get(caller.f_lasti)
    return at is not None and here[at].opname == "GET_ITER" and here[at + 1].opname == "FOR_ITER"


def numbers_of(caller: FrameType) -> dict[str, Number]:
    """Numbers in the variables of `caller`, by name."""
    return {name: each for name, each in caller.f_locals.items() if isinstance(each, Number)}


def carried(caller: FrameType) -> set[str]:
    """Names that the body of the loop, whose next number `caller` asks for, reads before it gives them a value."""
    every = list(dis.get_instructions(caller.f_code))
    head = next((each for each in every if each.offset == caller.f_lasti), None)
    if head is None or head.opname != "FOR_ITER":
        return set()
    first: dict[str, str] = {}
    given = set[str]()
    for each in every:
        if head.offset < each.offset < head.argval:
            for access, name in _accesses(each):
                first.setdefault(name, access)
                if access == "STORE":
                    given.add(name)
    return {name for name in given if first[name] == "LOAD"}


def _accesses(each: dis.Instruction) -> Iterator[tuple[str, str]]:
    """How an instruction uses names: some of Python 3.13 use two."""
    ways = [part for part in each.opname.split("_") if part in ("LOAD", "STORE")]
    names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
    yield from ((way, name) for way, name in zip(ways, names, strict=False) if isinstance(name, str))
