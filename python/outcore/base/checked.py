"""Checks values of parsed JSON; a message names the place of a fault in the data."""

from __future__ import annotations

from typing import Any

_MOST = 2**52  # microseconds: as nanoseconds the sum of two still fits into 64 bits


class FormatError(ValueError):
    """Data does not have the form it should; the text says where and why."""


def item(data: object, key: str, where: str) -> Any:
    """The value of a key that must be there."""
    if not isinstance(data, dict):
        raise FormatError(f"{where} is not an object")
    if key not in data:
        raise FormatError(f"{where}.{key} is missing")
    return data[key]


def mapping(data: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    """Returns the data if they are an object without other keys than these."""
    if not isinstance(data, dict):
        raise FormatError(f"{where} is not an object")
    for key in data:
        if key not in keys:
            raise FormatError(f"{where}.{key} is unknown")
    return data


def integer(data: object, key: str, where: str, least: int = 0) -> int:
    """A whole number of 64 bits, at least `least`."""
    value = item(data, key, where)
    if type(value) is not int or not least <= value < 2**63:
        raise FormatError(f"{where}.{key} is not a whole number of at least {least}: {value!r}")
    return value


def number(data: object, key: str, where: str) -> float:
    """A number of at least 0, and not absurdly large."""
    value = item(data, key, where)
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        raise FormatError(f"{where}.{key} is not a number from 0 to {_MOST}: {value!r}")
    return float(value)


def text(data: object, key: str, where: str) -> str:
    value = item(data, key, where)
    if not isinstance(value, str):
        raise FormatError(f"{where}.{key} is not a text: {value!r}")
    return value


def integers(data: object, key: str, count: int, where: str) -> tuple[int, ...]:
    """`count` whole numbers of at least 0."""
    value = item(data, key, where)
    if not isinstance(value, list | tuple) or len(value) != count:
        raise FormatError(f"{where}.{key} is not a list of {count}")
    if any(type(entry) is not int or entry < 0 for entry in value):
        raise FormatError(f"{where}.{key} holds something else than whole numbers of at least 0")
    return tuple(value)
