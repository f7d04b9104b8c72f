"""The determinants of a configuration interaction: strings of both spins, symmetry blocks, and how many there are.

A string is a 64-bit mask of occupied orbitals. Strings of one spin are sorted by (irrep, value); those of one irrep
are a sector. A determinant |Ia Ib> is in the space if irrep(Ia) ^ irrep(Ib) is that of the state.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError

Masks = NDArray[np.uint64]
Integers = NDArray[np.int64]

MAX_STRINGS = 1 << 27  # most strings of a spin: longer lists and tables would take too long


class Orbitals(Protocol):
    """The part of a Hamiltonian that a space needs: irreps of the orbitals, ascending; number of irreps; whether
    orbitals differ in spin."""

    @property
    def irreps(self) -> Integers: ...
    @property
    def groups(self) -> int: ...
    @property
    def unrestricted(self) -> bool: ...


@dataclass(frozen=True)
class StringList:
    """Strings of one spin: `strings[k]`, sorted by (irrep, value); the sector of irrep g is
    offsets[g] .. offsets[g + 1]."""

    strings: Masks
    offsets: Integers

    def sector(self, irrep: int) -> range:
        return range(int(self.offsets[irrep]), int(self.offsets[irrep + 1]))

    def rank(self, masks: Masks) -> Integers:
        """Indices of strings. Raises ValueError if one is not in the list."""
        found = np.empty(len(masks), np.int64)
        left = np.ones(len(masks), bool)
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            sector = self.strings[begin:end]
            at = np.minimum(np.searchsorted(sector, masks), max(len(sector) - 1, 0))
            here = left & (sector[at] == masks) if len(sector) else np.zeros(len(masks), bool)
            found[here] = begin + at[here]
            left &= ~here
        if left.any():
            raise ValueError(f"{int(left.sum())} strings are not in the list")
        return found


def list_strings(irreps: Sequence[int], groups: int, electrons: int) -> StringList:
    """All strings of so many electrons in orbitals of these irreps."""
    masks = [np.zeros(1, np.uint64)] + [np.zeros(0, np.uint64) for _ in range(electrons)]
    for orbital in range(
        len(irreps)
    ):  # ascending values: those without this orbital come before those with it
        for count in range(min(electrons, orbital + 1), 0, -1):
            masks[count] = np.concatenate([masks[count], masks[count - 1] | np.uint64(1 << orbital)])
    values = masks[electrons]
    symmetry = np.zeros(len(values), np.uint8)
    for orbital, irrep in enumerate(irreps):
        occupied = (values >> np.uint64(orbital)) & np.uint64(1)
        symmetry ^= occupied.astype(np.uint8) * np.uint8(irrep)
    order = np.argsort(symmetry, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(symmetry, minlength=groups))])
    return StringList(values[order], offsets.astype(np.int64))


def count_strings(irreps: Sequence[int], groups: int, electrons: int) -> list[int]:
    """Strings of each irrep, without making them; exact for any number."""
    counts = [[0] * groups for _ in range(electrons + 1)]
    counts[0][0] = 1
    for irrep in irreps:
        for electron in range(electrons, 0, -1):
            for g in range(groups):
                counts[electron][g] += counts[electron - 1][g ^ int(irrep)]
    return counts[electrons]


class Space:
    """The determinants with given numbers of electrons of each spin in the orbitals of a Hamiltonian.

    Args:
        hamiltonian: its orbitals are sorted by irrep.
        alpha, beta: numbers of electrons.
        irrep: of the state.
        parity: for as many alpha as beta electrons: +1 for states with C = C^T (even spin), -1 for states with
            C = -C^T (odd spin); then only tiles on and below the diagonal are stored. 0: all tiles are stored.

    Raises OutcoreError (EINVAL): the orbitals cannot hold the electrons, a parity for unequal numbers of electrons
    or for orbitals that differ in spin, no determinant of the irrep.
    """

    def __init__(self, hamiltonian: Orbitals, alpha: int, beta: int, irrep: int = 0, parity: int = 0) -> None:
        irreps, groups = [int(each) for each in hamiltonian.irreps], hamiltonian.groups
        self.orbitals, self.irreps, self.groups = len(irreps), irreps, groups
        self.electrons, self.irrep, self.parity = (alpha, beta), irrep, parity
        for spin, count in zip(("alpha", "beta"), self.electrons, strict=True):
            if not 0 <= count <= len(irreps):
                raise _impossible(f"{len(irreps)} orbitals cannot hold {count} {spin} electrons")
        if not 0 <= irrep < groups:
            raise _impossible(f"irrep {irrep} is none of {groups}")
        if parity not in (-1, 0, 1):
            raise _impossible(f"parity {parity} is none of -1, 0, 1")
        if parity and (alpha != beta or hamiltonian.unrestricted):
            raise _impossible(
                f"states of {alpha} alpha and {beta} beta electrons"
                + (" in orbitals that differ in spin" if alpha == beta else "")
                + " have no parity"
            )
        self.counts = tuple(count_strings(irreps, groups, count) for count in self.electrons)
        if self.determinants == 0:
            raise _impossible(
                f"there is no determinant of {alpha} alpha and {beta} beta electrons of irrep {irrep}"
                + (" and parity -1" if parity < 0 else "")
            )

    @property
    def blocks(self) -> list[int]:
        """Determinants of each symmetry block: those with alpha strings of irrep 0, 1, .. ."""
        return [self.counts[0][g] * self.counts[1][g ^ self.irrep] for g in range(self.groups)]

    @property
    def determinants(self) -> int:
        """Number of determinants; both halves of a folded vector count."""
        return sum(self.blocks)

    @property
    def folded(self) -> bool:
        return self.parity != 0

    @cached_property
    def alpha(self) -> StringList:
        return self._strings(0)

    @cached_property
    def beta(self) -> StringList:
        return self.alpha if self.electrons[0] == self.electrons[1] else self._strings(1)

    def _strings(self, spin: int) -> StringList:
        count = sum(self.counts[spin])
        if count > MAX_STRINGS:
            raise OutcoreError(
                errno.EFBIG,
                "full CI",
                detail=f"{count} strings of {self.electrons[spin]} electrons in {self.orbitals} orbitals; "
                f"at most {MAX_STRINGS} can be listed",
            )
        return list_strings(self.irreps, self.groups, self.electrons[spin])

    def __repr__(self) -> str:
        return (
            f"<{self.determinants} determinants of {self.electrons[0]}+{self.electrons[1]} electrons in "
            f"{self.orbitals} orbitals, irrep {self.irrep}, parity {self.parity}>"
        )


def _impossible(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "full CI", detail=detail)
