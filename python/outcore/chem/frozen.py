"""Frozen orbitals, which are not correlated: a number of the lowest and of the highest ones, or lists of them."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import orbital_numbers

Asked = int | str | Sequence[int] | Sequence[Sequence[int]] | None
"""See `of`."""

Integers = NDArray[np.int64]

_FREEZE = "freeze orbitals"


@dataclass(frozen=True)
class Frozen:
    """Orbitals that are not correlated.

    lowest: number of frozen lowest occupied orbitals of each spin; a spin with fewer freezes all that it has.
    highest: number of frozen highest virtual orbitals of each spin, likewise.
    listed: a list for each spin, or one for closed shells. Numbers are those of the mean-field object, from 0, in
        rising order.
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

        numbers: the number of each of its orbitals in the mean-field object: the occupied ones first, each kind by
        energy."""
        stays = ~self.apart(spin, numbers)
        inside = np.flatnonzero(stays[:occupied])[self.lowest :]
        outside = occupied + np.flatnonzero(stays[occupied:])
        return inside, outside[: max(0, len(outside) - self.highest)]

    def apart(self, spin: int, numbers: Sequence[int] | Integers) -> NDArray[np.bool_]:
        """For each of these orbitals whether it is listed."""
        return np.isin(numbers, self.listed[spin])

    def as_json(self) -> Any:
        """A number if only the lowest orbitals are frozen; a list of numbers if only a list is, the same for both
        spins; else a dict."""
        alike = len(set(self.listed)) == 1
        listed: Any = list(self.listed[0]) if alike else [list(each) for each in self.listed]
        if not self.has_list and not self.highest:
            return self.lowest
        if not self.lowest and not self.highest:
            return listed
        return {"lowest": self.lowest, "highest": self.highest, "listed": listed}

    def __str__(self) -> str:
        """Text for the user."""
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
    """The frozen orbitals that a user asks for, among given orbitals.

    frozen: as in PySCF, one of
        a number of the lowest occupied orbitals;
        None: no orbitals;
        "auto": the cores that no effective core potential has replaced;
        a list of orbital numbers of the mean-field object, from 0, for both spins, or [alpha list, beta list]; it
        may have virtual orbitals.
        As text: "2", "0,5", "0-2,7", "0,1/0" for alpha and beta.
    virtual: a number of the highest virtual orbitals, or a list of virtual ones.
    spins: for each spin, or once for closed shells: the numbers of all orbitals in the mean-field object, occupied
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
        which = orbital_numbers.of_spin(number, spins)
        orbital_numbers.check([*one, *other], len(numbers), which, _FREEZE)
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
    """As `of`, but before an SCF, so that errors are found early: it assumes one orbital for each basis function,
    the lowest ones occupied. spins: 1 for closed shells, else 2."""
    numbers = np.arange(int(mol.nao))
    return of(mol, frozen, virtual, [(numbers, int(each)) for each in mol.nelec[:spins]])


def counts(mol: Any, frozen: Frozen, spins: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of correlated orbitals, occupied and virtual, for each spin, or once for closed shells, if basis
    functions are linearly independent."""
    numbers = np.arange(int(mol.nao))
    each = [frozen.active(spin, numbers, int(mol.nelec[spin])) for spin in range(spins)]
    return tuple(len(inside) for inside, _ in each), tuple(len(outside) for _, outside in each)


def _read(mol: Any, asked: Asked, spins: int) -> tuple[int, orbital_numbers.Lists]:
    """Reads a number, or lists for each spin. mol: None where "auto" is not allowed."""
    if mol is not None and isinstance(asked, str) and asked.strip() == "auto":
        from pyscf.data import elements

        return int(elements.chemcore(mol)), ((),) * spins
    found = 0 if asked is None else orbital_numbers.read(asked, spins, _FREEZE)
    if found is None:
        raise _unknown(asked, mol is not None)
    return (found, ((),) * spins) if isinstance(found, int) else (0, found)


def _unknown(asked: Any, auto: bool) -> OutcoreError:
    either = "neither a number of orbitals nor " + ("'auto' nor " if auto else "")
    return _refused(f"'{asked}' is {either}a list such as 0,5")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _FREEZE, detail=detail)
