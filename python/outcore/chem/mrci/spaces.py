"""The frozen, inactive, active and external orbitals of a multireference CI, as users choose them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import active as active_orbitals
from outcore.chem import frozen as frozen_orbitals
from outcore.chem.active import Active
from outcore.chem.symmetry import functions_of_irreps

Integers = NDArray[np.int64]

_CHOOSE = "choose orbitals of a multireference CI"


@dataclass(frozen=True)
class OrbitalChoice:
    """Numbers of orbitals. frozen: always doubly occupied; inactive: doubly occupied in references; active:
    references differ in their occupation; left_out: always empty."""

    frozen: int
    inactive: int
    active: int
    left_out: int = 0

    @property
    def internal(self) -> int:
        return self.inactive + self.active


@dataclass(frozen=True)
class Asked:
    """A user's choice of orbitals.

    frozen, frozen_virtual: see `outcore.chem.frozen.of`.
    inactive, active: see `outcore.chem.active.read`; 0 and None: none. Numbers count the next orbitals by
        occupation and energy: inactive ones above frozen ones, active ones above these. With lists or numbers for
        irreps, all doubly occupied orbitals that neither names are inactive, too.
    """

    frozen: frozen_orbitals.Asked = None
    frozen_virtual: frozen_orbitals.Asked = None
    inactive: active_orbitals.Asked = None
    active: active_orbitals.Asked = None

    def read(self) -> tuple[Active, Active]:
        """The choices of inactive and of active orbitals. Raises OutcoreError (EINVAL)."""
        return _read(self.inactive), _read(self.active)


@dataclass(frozen=True)
class GivenOrbitals:
    """Orbitals by occupation and energy. numbers: their numbers for users, from 0. filled: how many are doubly
    occupied; single: how many of the next ones are singly occupied."""

    numbers: Integers
    filled: int
    single: int = 0

    @classmethod
    def of(cls, orbitals: int, electrons: Sequence[int]) -> GivenOrbitals:
        """Orbitals in order, the lowest ones occupied."""
        low, high = sorted(int(each) for each in electrons)
        return cls(np.arange(orbitals), low, high - low)


@dataclass(frozen=True)
class OrbitalSpaces:
    """Positions of orbitals. notes: lines about choices that the user has not made."""

    frozen: Integers
    inactive: Integers
    active: Integers
    external: Integers
    left_out: Integers
    notes: tuple[str, ...] = ()

    @property
    def choice(self) -> OrbitalChoice:
        each = (self.frozen, self.inactive, self.active, self.left_out)
        return OrbitalChoice(*(len(positions) for positions in each))


def before_irreps(mol: Any, asked: Asked, given: GivenOrbitals) -> NDArray[np.int64]:
    """A number for each orbital, equal for orbitals that may be mixed with each other: frozen, inactive, active and
    external ones, as far as numbers and lists determine them. mol: None without a molecule."""
    inactive, active = asked.read()
    found = np.zeros(len(given.numbers), np.int64)
    if _of_irreps(inactive, active):
        left_out = frozen_orbitals.of(
            mol, asked.frozen, asked.frozen_virtual, [(given.numbers, given.filled)]
        )
        left = np.concatenate(left_out.active(0, given.numbers, given.filled))
        found[: given.filled] = 4
        found[given.filled + given.single :] = 5
        found[left] += 10
        for k, each in enumerate((inactive, active)):
            found += 20 * (k + 1) * each.listed_among(0, given.numbers)
        return found
    spaces = choose(mol, asked, given)
    for k, positions in enumerate((spaces.frozen, spaces.inactive, spaces.active, spaces.left_out)):
        found[positions] = k + 1
    return found


def choose(
    mol: Any,
    asked: Asked,
    given: GivenOrbitals,
    irreps: Integers | None = None,
    number_of: Callable[[str], int] | None = None,
) -> OrbitalSpaces:
    """Chooses the spaces. mol: None without a molecule. irreps: of each orbital. number_of: returns the number of
    an irrep by its name. Both may be None if the choice needs no irreps.

    Raises OutcoreError (EINVAL)."""
    left_out = frozen_orbitals.of(mol, asked.frozen, asked.frozen_virtual, [(given.numbers, given.filled)])
    left = np.concatenate(left_out.active(0, given.numbers, given.filled))
    places = np.arange(len(given.numbers))
    inactive, active = asked.read()
    labels = np.zeros(len(places), np.int64) if irreps is None else irreps
    listed = places[active.listed_among(0, given.numbers)]
    filled = np.setdiff1d(left[left < given.filled], listed)
    _check_inactive(inactive, given, listed)

    def pick(wanted: Active, among: Integers) -> Integers:
        if wanted.count is not None:
            return among[: wanted.count]
        return wanted.choose(0, among, given.numbers, labels, number_of or _no_irreps)

    named = inactive.named or active.named
    first = pick(inactive, filled if named else left)
    chosen = pick(active, np.setdiff1d(left, first))
    wanted = [len(some) if n is None else n for n, some in ((inactive.count, first), (active.count, chosen))]
    if wanted != [len(first), len(chosen)]:
        below = given.filled - int((left < given.filled).sum())
        raise _refused(
            f"{wanted[0]} inactive and {wanted[1]} active orbitals, but there are {len(left)} above {below} frozen "
            "ones"
        )
    more = np.setdiff1d(filled, np.concatenate([first, chosen])) if named else filled[:0]
    notes: tuple[str, ...] = ()
    if len(more) and (inactive.named or inactive.count):
        numbers = ", ".join(map(str, sorted(given.numbers[more].tolist())))
        notes = (f"orbitals {numbers} (from 0) are doubly occupied and not active: they are inactive, too",)
    single = np.setdiff1d(np.arange(given.filled, given.filled + given.single), chosen)
    if len(single) and (named or left_out.has_list):
        raise _refused(f"orbital {given.numbers[single[0]]} (from 0) holds one electron: it has to be active")
    core = np.setdiff1d(places[: given.filled], left)
    first = np.sort(np.concatenate([first, more]))
    external = np.setdiff1d(left, np.concatenate([first, chosen]))
    return OrbitalSpaces(core, first, chosen, external, np.setdiff1d(places[given.filled :], left), notes)


def before_scf(mol: Any, asked: Asked, number_of: Callable[[str], int]) -> OrbitalChoice | None:
    """Checks the choice before an SCF, and returns the numbers of orbitals; None if the choice needs irreps. Raises
    OutcoreError (EINVAL)."""
    given = GivenOrbitals.of(int(mol.nao), mol.nelec)
    inactive, active = asked.read()
    if not _of_irreps(inactive, active):
        return choose(mol, asked, given).choice
    frozen_orbitals.of(mol, asked.frozen, asked.frozen_virtual, [(given.numbers, given.filled)])
    for each in (inactive, active):
        each.check(len(given.numbers), number_of, functions_of_irreps(mol))
    return None


def _of_irreps(*asked: Active) -> bool:
    return any(each.of_irreps is not None for each in asked)


def _read(asked: active_orbitals.Asked) -> Active:
    text = asked.strip() if isinstance(asked, str) else asked
    if text is None or (type(text) is not bool and text in (0, "0", "", "none")):
        return Active(count=0)
    return active_orbitals.read(text)


def _check_inactive(inactive: Active, given: GivenOrbitals, active: Integers) -> None:
    listed = np.flatnonzero(inactive.listed_among(0, given.numbers))
    both = np.intersect1d(listed, active)
    if len(both):
        raise _refused(f"orbital {given.numbers[both[0]]} is inactive and active")
    empty = listed[listed >= given.filled]
    if len(empty):
        raise _refused(f"orbital {given.numbers[empty[0]]} is not doubly occupied, so it cannot be inactive")


def _no_irreps(name: str) -> int:
    raise _refused(f"there is no irrep {name}")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _CHOOSE, detail=detail)
