"""Which orbitals are not correlated: a number of the lowest and of the highest ones, or lists of them."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError

Asked = int | str | Sequence[int] | Sequence[Sequence[int]] | None
"""See `of`."""

Integers = NDArray[np.int64]

_LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*,?", re.ASCII)
_LISTS = (list, tuple, range, set, frozenset)
_MOST = 1_000_000  # numbers of a range: more would only fill the memory


@dataclass(frozen=True)
class Frozen:
    """Orbitals that are not correlated.

    lowest: number of the lowest occupied ones of each spin; a spin with fewer freezes those.
    highest: number of the highest virtual ones of each spin, likewise.
    listed: of each spin, or of both of closed shells, numbers of orbitals as the mean-field object has them, from
        0, rising.
    """

    lowest: int = 0
    highest: int = 0
    listed: tuple[tuple[int, ...], ...] = ((), ())

    @property
    def has_list(self) -> bool:
        return any(self.listed)

    def __bool__(self) -> bool:
        return bool(self.lowest or self.highest or self.has_list)

    def active(
        self, spin: int, numbers: Sequence[int] | Integers, occupied: int
    ) -> tuple[Integers, Integers]:
        """Positions of the occupied and of the virtual orbitals of a spin that are correlated.

        numbers: of all its orbitals, as the mean-field object has them: the occupied ones first, each kind by
        energy."""
        stays = ~self.apart(spin, numbers)
        inside = np.flatnonzero(stays[:occupied])[self.lowest :]
        outside = occupied + np.flatnonzero(stays[occupied:])
        return inside, outside[: max(0, len(outside) - self.highest)]

    def apart(self, spin: int, numbers: Sequence[int] | Integers) -> NDArray[np.bool_]:
        """Which of these orbitals are listed."""
        return np.isin(numbers, self.listed[spin])

    def as_json(self) -> Any:
        """A number if only lowest ones are frozen; a list of numbers, the same of both spins; else a dict."""
        alike = len(set(self.listed)) == 1
        listed: Any = list(self.listed[0]) if alike else [list(each) for each in self.listed]
        if not self.has_list and not self.highest:
            return self.lowest
        if not self.lowest and not self.highest:
            return listed
        return {"lowest": self.lowest, "highest": self.highest, "listed": listed}

    def __str__(self) -> str:
        """For people."""
        each = [", ".join(map(str, numbers)) or "none" for numbers in self.listed]
        lists = each[0] if len(set(each)) == 1 else f"{each[0]} (alpha) and {each[1]} (beta)"
        counts = [
            f"{self.lowest} frozen orbitals" if self.lowest or not self else "",
            f"{self.highest} frozen virtual orbitals" if self.highest else "",
            f"frozen orbitals {lists}, counted from 0" if self.has_list else "",
        ]
        return " and ".join(count for count in counts if count)


def of(
    mol: Any, frozen: Asked, virtual: Asked, spins: Sequence[tuple[Sequence[int] | Integers, int]]
) -> Frozen:
    """What a user asks for, of given orbitals.

    frozen: a number of the lowest occupied orbitals; None for none; "auto" for the cores that no effective core
        potential has taken; or a list of numbers as the mean-field object has its orbitals, from 0, virtual ones
        among them, of both spins, or [list of alpha, list of beta]. As in PySCF. As text: "2", "0,5", "0-2,7",
        "0,1/0" for alpha and beta.
    virtual: a number of the highest virtual orbitals, or a list of virtual ones.
    spins: of each spin, or of both of closed shells, the numbers of all orbitals as the object has them, occupied
        ones first, and how many are occupied.

    Raises OutcoreError (EINVAL)."""
    lowest, named = _read(mol, frozen, len(spins))
    highest, outer = _read(None, virtual, len(spins))
    most = max(occupied for _, occupied in spins)
    if lowest > most:
        raise _refused(f"{lowest} frozen, but only {most} are occupied")
    most = max(len(numbers) - occupied for numbers, occupied in spins)
    if highest > most:
        raise _refused(f"{highest} virtual ones frozen, but there are only {most}")
    for number, (one, other, (numbers, occupied)) in enumerate(zip(named, outer, spins, strict=True)):
        which = "" if len(spins) == 1 else f" of spin {('alpha', 'beta')[number]}"
        _check_list([*one, *other], len(numbers), which)
        inside = sorted({int(each) for each in numbers[:occupied]} & set(other))
        if inside:
            raise _refused(f"orbital {inside[0]}{which} is occupied, not virtual (numbers count from 0)")
        if highest and set(one) - {int(each) for each in numbers[:occupied]}:
            raise _refused(
                "a number of virtual orbitals beside a list that has virtual ones; give one of the two"
            )
    found = Frozen(lowest, highest, tuple(tuple(sorted((*a, *b))) for a, b in zip(named, outer, strict=True)))
    left = [found.active(number, *each) for number, each in enumerate(spins)]
    if (highest or found.has_list) and not any(len(o) or len(v) for o, v in left):
        raise _refused("all orbitals are frozen")
    return found


def before_scf(mol: Any, frozen: Asked, virtual: Asked = None, *, spins: int) -> Frozen:
    """As `of`, for orbitals that the lowest of a molecule are going to be, one for each function: what is wrong is
    found before an SCF. spins: 1 for closed shells, else 2."""
    numbers = np.arange(int(mol.nao))
    return of(mol, frozen, virtual, [(numbers, int(each)) for each in mol.nelec[:spins]])


def count_frozen(mol: Any, frozen: Asked, occupied: int) -> int:
    """Lowest orbitals that are not correlated, of so many occupied ones, for methods that have no lists of others.

    frozen: as `of` takes it; a list has to name the lowest ones. Raises OutcoreError (EINVAL)."""
    lowest, (named,) = _read(mol, frozen, 1)
    if sorted(named) != list(range(len(named))):
        raise _refused(
            f"{list(named)} are not the lowest orbitals 0 to {len(named) - 1}, each once; others cannot be "
            "frozen, give the number of the lowest ones"
        )
    count = lowest + len(named)
    if count > occupied:
        raise _refused(f"{count} frozen, but only {occupied} are occupied")
    return count


def _read(mol: Any, asked: Asked, spins: int) -> tuple[int, list[tuple[int, ...]]]:
    """A number, or lists for each spin. mol: None where there is no "auto"."""
    none: list[tuple[int, ...]] = [()] * spins
    if asked is None:
        return 0, none
    if isinstance(asked, str):
        asked = _parsed(asked, mol is not None)
        if asked == "auto":
            from pyscf.data import elements

            return int(elements.chemcore(mol)), none
    given: Any = asked.tolist() if isinstance(asked, np.ndarray) else asked
    if isinstance(given, _LISTS):
        return 0, _lists([each.tolist() if isinstance(each, np.ndarray) else each for each in given], spins)
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise _unknown(given, mol is not None)
    return int(given), none


def _parsed(text: str, auto: bool) -> Any:
    """Of a command line: a number, "auto" or lists."""
    plain = "".join(text.split())
    if plain == "auto" and auto:
        return plain
    if plain.isascii() and plain.isdigit():
        return int(plain)
    parts = [part.removeprefix("[").removesuffix("]") for part in plain.split("/")]
    if len(parts) > 2 or not all(part == "" or _LIST.fullmatch(part) for part in parts) or not any(parts):
        raise _unknown(text, auto)
    lists = [[each for item in part.split(",") if item for each in _range(item)] for part in parts]
    return lists[0] if len(lists) == 1 else lists


def _range(text: str) -> list[int]:
    first, _, last = text.partition("-")
    begin, end = int(first), int(last or first)
    if not begin <= end < begin + _MOST:
        raise _refused(f"{text} is no range of orbitals")
    return list(range(begin, end + 1))


def _lists(given: list[Any], spins: int) -> list[tuple[int, ...]]:
    """Of each spin."""
    nested = [isinstance(each, _LISTS) for each in given]
    if not any(nested):
        return [_numbers(given)] * spins
    if nested != [True, True]:
        raise _refused(f"{given}: take one list, or one of alpha and one of beta orbitals")
    if spins == 1:
        raise _refused(f"{given}: of closed shells there is one list, as both spins have the same orbitals")
    return [_numbers(list(each)) for each in given]


def _numbers(given: list[Any]) -> tuple[int, ...]:
    for each in given:
        if isinstance(each, bool | np.bool_) or not isinstance(each, int | np.integer):
            raise _refused(f"'{each}' in a list is no number of an orbital")
    return tuple(int(each) for each in given)


def _check_list(numbers: list[int], count: int, which: str) -> None:
    outside = [each for each in numbers if not 0 <= each < count]
    if outside:
        raise _refused(f"there is no orbital {outside[0]}{which}: they are 0 to {count - 1}")
    twice = sorted({each for each in numbers if numbers.count(each) > 1})
    if twice:
        raise _refused(f"orbital {twice[0]}{which} is listed more than once")


def _unknown(asked: Any, auto: bool) -> OutcoreError:
    either = "neither a number of orbitals nor " + ("'auto' nor " if auto else "")
    return _refused(f"'{asked}' is {either}a list such as 0,5")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "freeze orbitals", detail=detail)
