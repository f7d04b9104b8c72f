"""Orbitals as users name them: how many, or lists of their numbers in the mean-field object, from 0."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError

_LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*,?", re.ASCII)
_LISTS = (list, tuple, range, set, frozenset)
_MOST = 1_000_000  # largest number: longer lists would only fill the memory

Lists = tuple[tuple[int, ...], ...]


def read(asked: Any, spins: int, attempted: str) -> int | Lists | None:
    """Reads how many orbitals, or a list for each of `spins` spins; None if it is neither.

    asked: a number, a list, or [list of alpha, list of beta]. As text: "2", "0,5", "0-2,7", "0,1/0" for alpha and
    beta. Raises OutcoreError (EINVAL)."""
    given: Any = _parsed(asked, attempted) if isinstance(asked, str) else asked
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, _LISTS):
        each_spin = [each.tolist() if isinstance(each, np.ndarray) else each for each in given]
        return tuple(_lists(each_spin, spins, attempted))
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        return None
    return int(given)


def _parsed(text: str, attempted: str) -> Any:
    plain = "".join(text.split())
    if plain.isascii() and plain.isdigit() and len(plain) < 10:
        return int(plain)
    parts = [part.removeprefix("[").removesuffix("]") for part in plain.split("/")]
    if len(parts) > 2 or not all(part == "" or _LIST.fullmatch(part) for part in parts) or not any(parts):
        return None
    lists = [[each for item in part.split(",") if item for each in _range(item, attempted)] for part in parts]
    return lists[0] if len(lists) == 1 else lists


def _range(text: str, attempted: str) -> range:
    first, _, last = text.partition("-")
    if max(len(first), len(last)) < 10 and int(first) <= int(last or first) < int(first) + _MOST:
        return range(int(first), int(last or first) + 1)
    raise OutcoreError(errno.EINVAL, attempted, detail=f"{text} is no range of orbitals")


def _lists(given: list[Any], spins: int, attempted: str) -> list[tuple[int, ...]]:
    """A list for each spin."""
    nested = [isinstance(each, _LISTS) for each in given]
    if not any(nested):
        return [_numbers(given, attempted)] * spins
    if nested != [True, True]:
        detail = f"{given}: take one list, or one of alpha and one of beta orbitals"
        raise OutcoreError(errno.EINVAL, attempted, detail=detail)
    if spins == 1:
        detail = f"{given}: both spins share their orbitals, give one list"
        raise OutcoreError(errno.EINVAL, attempted, detail=detail)
    return [_numbers(list(each), attempted) for each in given]


def _numbers(given: list[Any], attempted: str) -> tuple[int, ...]:
    for each in given:
        if isinstance(each, bool | np.bool_) or not isinstance(each, int | np.integer):
            raise OutcoreError(
                errno.EINVAL, attempted, detail=f"'{each}' in a list is no number of an orbital"
            )
    return tuple(int(each) for each in given)


def check(numbers: Sequence[int], count: int, spin: str, attempted: str) -> None:
    """Raises OutcoreError (EINVAL) unless each number is below `count` and is listed once. spin: the text of
    `of_spin`."""
    outside = [each for each in numbers if not 0 <= each < count]
    if outside:
        detail = f"there is no orbital {outside[0]}{spin}: they are 0 to {count - 1}"
        raise OutcoreError(errno.EINVAL, attempted, detail=detail)
    twice = sorted({each for each in numbers if numbers.count(each) > 1})
    if twice:
        detail = f"orbital {twice[0]}{spin} is listed more than once"
        raise OutcoreError(errno.EINVAL, attempted, detail=detail)


def of_spin(spin: int, spins: Sequence[object]) -> str:
    """Text for a message that names the spin; "" if both spins share a list."""
    return "" if len(spins) == 1 else f" of spin {('alpha', 'beta')[spin]}"
