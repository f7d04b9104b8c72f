"""Active orbitals of each spin, as coupled cluster takes them from a reference."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.reference import Reference

Values = np.ndarray[Any, np.dtype[Any]]

KINDS = ("semicanonical", "standard")


@dataclass(frozen=True)
class Active:
    """Orbitals of one spin that are correlated, or of both of closed shells: coefficients [n][orbitals],
    occupied ones first, and their Fock matrix (Hartree)."""

    coefficients: Values
    fock: Values
    occupied: int

    @property
    def virtual(self) -> int:
        return len(self.fock) - self.occupied

    @property
    def energies(self) -> Values:
        """The diagonal of the Fock matrix."""
        return np.diag(self.fock).copy()

    def gaps(self, shift: float = 0.0) -> Values:
        """e_i - e_a - shift, [i][a]"""
        energies, o = self.energies, self.occupied
        return energies[:o, None] - energies[o:] - shift


def take(reference: Reference, frozen: int, kind: str, *, rotate: bool) -> list[Active]:
    """The active orbitals of a reference, without the lowest `frozen` ones of each spin.

    rotate: occupied and virtual orbitals are made to diagonalize their blocks of the Fock matrix (of ROHF). kind:
    "semicanonical" does so before orbitals are frozen, "standard" after.

    Raises OutcoreError (ENOTSUP) where only one spin has occupied and virtual orbitals.
    """
    found = [Active(each.coefficients, _fock(each.fock), each.occupied) for each in reference.spins]
    if rotate and kind == "semicanonical":
        found = [_semicanonical(each) for each in found]
    found = [_frozen(each, min(frozen, each.occupied)) for each in found]
    if rotate and kind == "standard":
        found = [_semicanonical(each) for each in found]
    empty = [not each.occupied or not each.virtual for each in found]
    if any(empty) and not all(empty):
        raise OutcoreError(
            errno.ENOTSUP,
            "coupled cluster",
            detail=f"electrons of spin {('alpha', 'beta')[empty.index(False)]} alone are correlated; both spins "
            "must have occupied and virtual orbitals",
        )
    return found


def _fock(fock: Values | None) -> Values:
    assert fock is not None
    return fock


def _frozen(spin: Active, count: int) -> Active:
    return Active(
        np.ascontiguousarray(spin.coefficients[:, count:]),
        np.ascontiguousarray(spin.fock[count:, count:]),
        spin.occupied - count,
    )


def _semicanonical(spin: Active) -> Active:
    o, n = spin.occupied, len(spin.fock)
    rotation = np.zeros((n, n))
    for box in (slice(0, o), slice(o, n)):
        rotation[box, box] = eigenvectors(spin.fock[box, box])
    return replace(spin, coefficients=spin.coefficients @ rotation, fock=rotation.T @ spin.fock @ rotation)


def eigenvectors(matrix: Values) -> Values:
    """Of a symmetric matrix; the largest element of each is positive, so that they repeat."""
    vectors: Values = np.linalg.eigh(matrix)[1]
    largest = np.take_along_axis(vectors, abs(vectors).argmax(0)[None], 0)
    return vectors * np.where(largest < 0, -1.0, 1.0)


def sketch(spins: Sequence[Active]) -> list[list[float]]:
    """A number for each orbital, which differs where the orbital does."""
    found = []
    for each in spins:
        weights = np.random.default_rng(7).normal(size=len(each.coefficients))
        found.append((weights @ each.coefficients).tolist())
    return found
