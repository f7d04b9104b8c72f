"""Checks of arguments of constructors and collective calls: TypeError or ValueError that names the argument."""

from __future__ import annotations

import json
import operator
import os
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.job.resources import parse_bytes

Size = int | str | None

DTYPES = tuple(
    np.dtype(name)
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128"
    )
)  # fmt: skip
"""Element types of arrays."""


def text(name: str, value: Any) -> str:
    """A string without zero bytes; surrogates in it stand for bytes of a file name."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, no string")
    if "\0" in value:
        raise ValueError(f"{name} {value!r} has a zero in it")
    value.encode("utf-8", "surrogateescape")  # UnicodeEncodeError, a ValueError
    return value


def path(name: str, value: Any) -> str:
    """A file name; "" for None. ValueError for an empty name."""
    if value is None:
        return ""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} is {value!r}, neither a string nor a PathLike")
    if not os.fspath(value):
        raise ValueError(f"{name} is empty")
    return text(name, os.fspath(value))


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}, neither True nor False")
    return bool(value)


def integer(name: str, value: Any, *, bits: int = 64) -> int:
    """A signed integer of so many bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} {value!r} is none of the integers") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise OverflowError(f"{name} {number} does not fit into {bits} bits")
    return number


def integers(name: str, values: Any) -> list[int]:
    """One integer, or a list of them."""
    array = np.asarray(values)
    if array.ndim > 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} {values!r} is not made of integers")
    return [integer(name, value) for value in np.atleast_1d(array)]


def size_bytes(name: str, value: Size) -> int:
    """Bytes, given as a number or as text such as "2GB"; None is 0."""
    try:
        return 0 if value is None else parse_bytes(value)
    except OutcoreError as error:
        raise ValueError(f"{name}: {error}") from None


def element_type(value: Any) -> np.dtype[Any]:
    wanted: np.dtype[Any] = np.dtype(value)
    if wanted not in DTYPES:
        raise TypeError(f"dtype {wanted}; it may be {', '.join(d.name for d in DTYPES)}")
    return wanted


def _plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, np.floating):  # a type with more digits than Python's numbers have
        if float(plain) != plain:
            raise TypeError(f"{value!r} has more digits than a number of JSON keeps")
        return float(plain)
    if plain is value or isinstance(plain, np.generic):
        raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")
    return plain


def as_json(name: str, value: Any) -> str:
    """Metadata as JSON text, as files hold them. Scalars of NumPy become numbers and booleans."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from error
