"""Checks whether an array can take a result, before anything is computed."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.expression import Expression
from outcore.tensor.layout.operands import Operand
from outcore.tensor.layout.result_symmetry import factors, missing
from outcore.tensor.layout.symmetry import Symmetry


def as_number(what: str, name: str, value: Any) -> Any:
    """The value as a Python number. Raises OutcoreError (EINVAL) if it is no number, as None or a text."""
    if type(value) is float:
        return value
    found = np.asarray(value)
    if found.ndim > 0 or found.dtype.kind not in "biufc":
        text = repr(value) if value is None or isinstance(value, str) else type(value).__name__
        raise OutcoreError(errno.EINVAL, what, detail=f"{name}={text} is no number")
    return found.item()


def type_of_result(operands: Sequence[np.dtype[Any]], *factors: complex) -> np.dtype[Any]:
    """The type of products and sums of arrays of these types with Python numbers, whose precision does not
    count."""
    found = np.result_type(*operands)
    for factor in factors:
        if isinstance(factor, complex) or (isinstance(factor, float) and found.kind in "biu"):
            found = np.result_type(found, factor)
    return found


def check_written(what: str, name: str, out: Operand) -> None:
    """Raises OutcoreError (EROFS) if an array can only be read."""
    if out.read_only:
        raise OutcoreError(
            errno.EROFS, what, detail=f"{name} cannot be given the result: this array is only read"
        )


def check_type(what: str, name: str, dtype: np.dtype[Any], held: np.dtype[Any]) -> None:
    """Raises OutcoreError (EINVAL) if an array cannot hold elements of the result: it is real and they are complex,
    or it is of integers and they are not."""
    if not np.can_cast(dtype, held, "same_kind"):
        raise OutcoreError(errno.EINVAL, what, detail=f"a result of type {dtype} into {name} of {held}")


def check_apart(what: str, name: str, out: Operand, others: Iterable[tuple[str, Operand]]) -> None:
    """Raises OutcoreError (EINVAL) if another array shares memory or storage with the result."""
    for other, each in others:
        if _are_together(out.storage, each.storage):
            raise OutcoreError(errno.EINVAL, what, detail=f"{name} is {other}, or has elements of it")


def _are_together(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    return a is b


def check_symmetry(
    what: str,
    expression: Expression,
    arrays: Sequence[object],
    symmetries: Sequence[Symmetry],
    wanted: Symmetry,
    hint: str = "",
) -> None:
    """Raises OutcoreError (EINVAL) if the product of the arrays need not have the symmetry of the result."""
    wrong = missing(expression, factors(expression, arrays, symmetries), wanted) if wanted else None
    if wrong is not None:
        raise OutcoreError(
            errno.EINVAL,
            what,
            detail=f"the result need not have the symmetry of `out` that permutes axes as {wrong}{hint}",
        )
