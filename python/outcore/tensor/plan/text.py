"""Plans as text for C and Fortran: `oc_einsum` carries them out. src/tensor/plan_text.cpp reads them."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.expression import Expression
from outcore.tensor.layout.operands import Facts, Where, plain
from outcore.tensor.plan.product_plan import Planned

_HEADING = "outcore-plan 1"
_TYPES = ("float32", "float64", "complex64", "complex128")
_WHERE: tuple[Where, ...] = ("process", "global", "disk")
_GROUPS = ("batch", "rows", "columns", "inner")
_DESCRIBED = re.compile(r"(number|[\dx]+) (\w+) (\w+)(?:, chunks of ([\dx]+))?")


Link = tuple[int, int, Where | None]
"""Numbers of the operands of a product, and where its result lies."""


def text_of(
    expression: Expression,
    facts: Sequence[Facts],
    memory_bytes: int,
    processes: int,
    products: Iterable[tuple[Link, Planned]],
) -> str:
    """Raises OutcoreError (ENOTSUP) for what C does not contract."""
    if len({each.dtype for each in facts}) > 1:
        raise _refused("its arrays have elements of several types")
    for number, labels in enumerate(expression.inputs):
        if len(set(labels)) < len(labels):
            raise _refused(f"operand {number} has a letter twice")
    lines = [_HEADING, f"einsum {expression}"]
    lines += [_line("operand", each) for each in facts[:-1]]
    lines += [_line("result", facts[-1]), f"memory {memory_bytes}", f"processes {processes}"]
    for (left, right, where), planned in products:
        lines += _product(left, right, where, planned)
    body = "\n".join([*lines, ""])
    return f"{body}checksum {_checksum(body):016x}\n"


def facts_of(described: str) -> Facts:
    """Of an array, as plans keep it. Raises OutcoreError (ENOTSUP) for one that C does not contract."""
    found = _DESCRIBED.fullmatch(described)
    if found is None:
        raise _refused(f"an array of it has tiles: {described}")
    shape, dtype, where, chunk = found.groups()
    if dtype not in _TYPES:
        raise _refused(f"elements of {dtype}; they may be {', '.join(_TYPES)}")
    place = next((each for each in _WHERE if each == where), None)
    if place is None:
        raise _refused(f"an array in the memory of a {where}")
    made = plain(_numbers(shape), np.dtype(dtype), place)
    return made if chunk is None else replace(made, chunk=_numbers(chunk))


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "number" else tuple(map(int, text.split("x")))


def _line(what: str, facts: Facts) -> str:
    chunk = () if facts.chunk is None else ("chunk", *facts.chunk)
    return _words(what, facts.dtype.name, facts.where, "shape", *facts.shape, *chunk)


def _product(left: int, right: int, where: Where | None, planned: Planned) -> Iterable[str]:
    product, plan, geometry = planned.problem.product, planned.plan, planned.geometry
    letters = (labels or "-" for labels in (product.left, product.right, product.out))
    yield _words("product", left, right, *letters, where or "result")
    choice = plan.choice
    parts = min(choice.parts, len(geometry.panels[3]))
    yield _words("way", choice.keep, parts, *plan.slots, choice.results, plan.unit, plan.sharing)
    for name, labels, cut, panels in zip(
        _GROUPS, product.groups, geometry.cuts, geometry.panels, strict=True
    ):
        yield _words(name, labels or "-")
        for label, cuts in zip(labels, cut.cuts, strict=True):
            yield _words("cuts", label, *cuts)
        ends = [0]
        for cells in panels:
            assert tuple(cells) == tuple(
                range(ends[-1], ends[-1] + len(cells))
            )  # without zeros all are alike
            ends.append(ends[-1] + len(cells))
        yield _words("panels", *ends)
    if plan.sharing > 1:
        group, bounds = planned.shares.native
        yield _words("shares", group, *(place for each in bounds for place in each))


def _words(*words: object) -> str:
    return " ".join(map(str, words))


def _checksum(text: str) -> int:
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, "write a plan as text", detail=detail)
