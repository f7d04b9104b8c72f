"""The choice of active orbitals: a number of them, a list, or a number for each irrep."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import orbital_numbers

Integers = NDArray[np.int64]

Asked = int | str | Sequence[int] | Sequence[Sequence[int]] | Mapping[str, int] | None
"""See `read`."""

_CHOOSE = "choose active orbitals"
_OF_IRREP = re.compile(r"\s*([^=,:]+?)\s*[=:]\s*(\d{1,6})\s*", re.ASCII)


@dataclass(frozen=True)
class Active:
    """A choice of active orbitals. One field at most is set; if all are None, every orbital that is not frozen is
    active.

    count: number of active orbitals: the next ones by occupation and energy.
    listed: a list of orbitals for each spin, or one for both. Numbers are those of the mean-field object, from 0.
    of_irreps: number of active orbitals for each irrep: the next ones by occupation and energy.
    """

    count: int | None = None
    listed: tuple[tuple[int, ...], ...] | None = None
    of_irreps: tuple[tuple[str, int], ...] | None = None

    @property
    def named(self) -> bool:
        """Whether orbitals are chosen by more than their order."""
        return self.listed is not None or self.of_irreps is not None

    def listed_among(self, spin: int, numbers: Integers) -> NDArray[np.bool_]:
        """For each of these orbitals of a spin whether a list names it."""
        return np.isin(numbers, self.listed[spin] if self.listed is not None else ())

    def check(
        self, orbitals: int, number_of: Callable[[str], int], of_irreps: Sequence[int] | None = None
    ) -> None:
        """Checks the choice before an SCF. orbitals: how many the molecule will have. number_of: returns the number
        of an irrep of its group, by name. of_irreps: number of functions of each irrep, if they are known. Raises
        OutcoreError (EINVAL)."""
        for spin, listed in enumerate(self.listed or ()):
            orbital_numbers.check(listed, orbitals, orbital_numbers.of_spin(spin, self.listed or ()), _CHOOSE)
        numbers = [number_of(name) for name, _ in self.of_irreps or ()]
        if len(set(numbers)) < len(numbers):
            raise _refused("an irrep is named more than once")
        for number, (name, count) in zip(numbers, self.of_irreps or (), strict=True):
            if of_irreps is not None and count > of_irreps[number]:
                raise _refused(f"{count} orbitals of {name}, but the molecule has {of_irreps[number]}")

    def choose(
        self, spin: int, left: Integers, numbers: Integers, irreps: Integers, number_of: Callable[[str], int]
    ) -> Integers:
        """Positions of the active orbitals, in rising order.

        left: positions that may be active, by occupation and energy. numbers: the orbital number at each position,
        as the mean-field object has it. irreps: the irrep at each position. Raises OutcoreError (EINVAL)."""
        if self.listed is not None:
            wanted = self.listed[spin]
            places = {int(number): place for place, number in enumerate(numbers)}
            orbital_numbers.check(wanted, len(numbers), orbital_numbers.of_spin(spin, self.listed), _CHOOSE)
            found = np.sort(np.array([places[each] for each in wanted], np.int64))
            frozen = np.setdiff1d(found, left)
            if len(frozen):
                raise _refused(f"orbital {numbers[frozen[0]]} is frozen as well")
            return found
        if self.of_irreps is not None:
            self.check(len(numbers), number_of)
            chosen = [self._first(left, irreps, number_of(name), name, n) for name, n in self.of_irreps]
            return np.sort(np.concatenate(chosen))
        if self.count is not None and not 1 <= self.count <= len(left):
            raise _refused(
                f"{self.count} active orbitals, but {len(left)} are left beside "
                f"{len(numbers) - len(left)} frozen ones"
            )
        return left[: self.count]

    @staticmethod
    def _first(left: Integers, irreps: Integers, number: int, name: str, count: int) -> Integers:
        mine: Integers = left[irreps[left] == number]
        if count > len(mine):
            raise _refused(f"{count} active orbitals of {name}, but {len(mine)} are left beside frozen ones")
        return mine[:count]


def read(asked: Asked, spins: int = 1) -> Active:
    """Reads a user's choice of active orbitals.

    asked: one of
        a number of orbitals: the next ones above the frozen ones, by occupation and energy;
        a list of orbital numbers of the mean-field object, from 0, for both spins, or [alpha list, beta list];
        a dict with a number for each irrep, by name, such as {"A1": 3, "B1": 1};
        None: all orbitals.
        As text: "6", "3,4,6-8", "A1=3,B1=1".
    spins: 1 if both spins have the same orbitals, else 2.

    Raises OutcoreError (EINVAL)."""
    if asked is None:
        return Active()
    if isinstance(asked, str) and "=" in asked:
        parts = [_OF_IRREP.fullmatch(each) for each in asked.split(",")]
        if not all(parts):
            raise _unknown(asked)
        pairs = [(part[1], int(part[2])) for part in parts if part]
        if len(dict(pairs)) < len(pairs):
            raise _refused("an irrep is named more than once")
        asked = dict(pairs)
    if isinstance(asked, Mapping):
        return Active(of_irreps=_of_irreps(asked))
    found = orbital_numbers.read(asked, spins, _CHOOSE)
    if found is None:
        raise _unknown(asked)
    if isinstance(found, int):
        if found < 1:
            raise _refused(f"{found} active orbitals")
        return Active(count=found)
    if not all(found):
        raise _refused("an empty list")
    return Active(listed=found)


def _of_irreps(asked: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    pairs = []
    for name, count in asked.items():
        if isinstance(count, bool | np.bool_) or not isinstance(count, int | np.integer) or count < 0:
            raise _refused(f"'{count}' is no number of orbitals of {name}")
        pairs.append((str(name), int(count)))
    if not sum(count for _, count in pairs):
        raise _refused("no orbital of any irrep")
    return tuple(pairs)


def _unknown(asked: object) -> OutcoreError:
    return _refused(
        f"'{asked}' is neither a number of orbitals nor a list such as 3,4,6-8 nor one such as A1=3,B1=1"
    )


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _CHOOSE, detail=detail)
