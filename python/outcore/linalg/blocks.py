"""Parts of the collective functions of global arrays: the gate that they begin and end with, and the blocks that a
process works on."""

from __future__ import annotations

import builtins
import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray, Section
from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.job.world import World

Array = np.ndarray[Any, np.dtype[Any]]
Operand = GlobalArray | Section
Box = tuple[tuple[int, ...], tuple[int, ...]]

BLOCK_ELEMENTS = 1 << 16  # worked on at once: NumPy's intermediate results stay in the processor's cache
FETCH_ELEMENTS = 1 << 18  # the same where an operand comes from other processes


# ---- the gate ----


@contextmanager
def collective(what: str, operands: Sequence[Operand], *arguments: object) -> Iterator[list[Section]]:
    """The body runs once all processes have come here with the same arguments and their earlier puts have arrived;
    it gets the operands as sections. Afterwards the puts of the body have arrived, and all processes know whether
    it failed: if it failed anywhere, all raise the same OutcoreError. The body must not wait for other processes.

    Raises TypeError, at this process alone, if no operand is a global array: then it knows of no other processes.
    """
    world = world_of(*operands)
    sections: list[Section] = []

    def bring() -> object:
        sections.extend(as_section(each) for each in operands)
        if any(section.array.world is not world for section in sections):
            raise ValueError("the arrays belong to different worlds")
        return [(s.array._native.number, s.begin, s.end, s.dtype.name) for s in sections], arguments

    world.flush()
    with world.together_with(what, bring):
        try:
            yield sections
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise OutcoreError(errno.EINVAL, what, detail=str(error)) from error
        except MemoryError as error:
            raise OutcoreError(errno.ENOMEM, what, detail=str(error)) from error
        finally:
            world.flush()


def world_of(*operands: Operand) -> World:
    """The processes that work on operands."""
    for each in operands:
        if isinstance(each, GlobalArray):
            return each.world
        if isinstance(each, Section):
            return each.array.world
    raise TypeError(
        f"no global array or section of one is among {[type(each).__name__ for each in operands]}"
    )


@contextmanager
def reserved(world: World, size_bytes: int, what: str) -> Iterator[None]:
    """Accounts memory to the budget of this process; OutcoreError (ENOMEM) if it does not fit."""
    world.budget.reserve(size_bytes, what)
    try:
        yield
    finally:
        world.budget.release(size_bytes)


# ---- checks ----


def as_section(operand: Operand) -> Section:
    if not isinstance(operand, GlobalArray | Section):
        raise TypeError(f"neither a global array nor a section of one, but {type(operand).__name__}")
    return operand if isinstance(operand, Section) else operand.section()


def same_shape(a: Section, b: Section) -> None:
    if a.shape != b.shape:
        raise ValueError(f"sections of shapes {a.shape} and {b.shape}")


def same_type(a: Section, b: Section) -> None:
    if a.dtype != b.dtype:
        raise TypeError(f"sections of types {a.dtype} and {b.dtype}: nothing is converted")


def no_overlap(result: Section, operand: Section, *, or_the_same: bool) -> None:
    """Raises ValueError if the result overlaps the operand; with `or_the_same` both may be the same box."""
    if result.array is not operand.array:
        return
    if or_the_same and (result.begin, result.end) == (operand.begin, operand.end):
        return
    if all(
        builtins.max(b, c) < builtins.min(e, d)
        for b, e, c, d in zip(result.begin, result.end, operand.begin, operand.end, strict=True)
    ):
        raise ValueError("the result overlaps an operand")


# ---- blocks ----


@dataclass(frozen=True)
class Block:
    """A box of a section that this process holds, and a view of its elements in the local memory."""

    section: Section
    begin: tuple[int, ...]
    end: tuple[int, ...]
    view: Array

    def part(self, begin: Sequence[int], end: Sequence[int]) -> Array:
        """The view of a box inside, given in indices of the array."""
        return self.view[tuple(slice(b - o, e - o) for b, e, o in zip(begin, end, self.begin, strict=True))]


def slices(begin: Sequence[int], end: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(int(b), int(e)) for b, e in zip(begin, end, strict=True))


def own_parts(section: Section) -> Iterator[Block]:
    """The parts of a section that this process holds, one block of the distribution after the other."""
    array = section.array
    local = array.local
    for begin, end, at in array.distribution.parts_of(array.world.rank, section.begin, section.end):
        stop = [a + e - b for a, b, e in zip(at, begin, end, strict=True)]
        yield Block(section, tuple(begin), tuple(end), local[slices(at, stop)])


def own_blocks(section: Section, elements: int = BLOCK_ELEMENTS) -> Iterator[Block]:
    """As `own_parts`, in blocks of at most so many elements."""
    for part in own_parts(section):
        for begin, end in split(part.begin, part.end, elements):
            yield Block(section, begin, end, part.part(begin, end))


def split(begin: Sequence[int], end: Sequence[int], elements: int) -> Iterator[Box]:
    """Cuts a box into boxes of at most so many elements, as contiguous as can be."""
    shape = [e - b for b, e in zip(begin, end, strict=True)]
    if 0 in shape:
        return
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    step = builtins.max(elements // inner, 1)
    for outer in np.ndindex(*shape[:axis]):
        first = [b + o for b, o in zip(begin, outer, strict=False)]
        for start in range(begin[axis], end[axis], step):
            stop = builtins.min(start + step, end[axis])
            yield (
                (*first, start, *begin[axis + 1 :]),
                (*(i + 1 for i in first), stop, *end[axis + 1 :]),
            )


def aligned(a: Section, b: Section) -> bool:
    """Whether each process holds the same elements of both sections."""
    return a.begin == b.begin and a.array.distribution == b.array.distribution


def elements(array: GlobalArray, begin: Sequence[int], end: Sequence[int]) -> Array:
    """A box of an array: a view where this process holds it as one block, else a copy."""
    mine = array.distribution.parts_of(array.world.rank, begin, end)
    if len(mine) == 1 and mine[0][0] == list(begin) and mine[0][1] == list(end):
        at = mine[0][2]
        return array.local[slices(at, [a + e - b for a, b, e in zip(at, begin, end, strict=True)])]
    return array.get(slices(begin, end))


def fetch(operand: Section, block: Block) -> Array:
    """The elements of an operand that belong to a block of another section of the same shape."""
    shift = [o - s for o, s in zip(operand.begin, block.section.begin, strict=True)]
    begin = [b + s for b, s in zip(block.begin, shift, strict=True)]
    end = [e + s for e, s in zip(block.end, shift, strict=True)]
    return elements(operand.array, begin, end)


# ---- numbers that are added up ----


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which elements of a type are added up."""
    return np.dtype({"i": "int64", "u": "int64", "f": "float64", "c": "complex128"}[dtype.kind])


def wide(array: Array) -> Array:
    return array.astype(wide_type(array.dtype), copy=False)
