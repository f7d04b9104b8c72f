"""Active orbitals of each spin, as coupled cluster takes them from a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.frozen import Frozen
    from outcore.chem.reference import Reference, Spin

Values = np.ndarray[Any, np.dtype[Any]]

KINDS = ("semicanonical", "standard")

_CANONICAL = (
    1e-6  # Hartree: off-diagonal Fock elements below it, in occupied or in virtual orbitals, are rounding
)


@dataclass(frozen=True)
class CorrelatedOrbitals:
    """Correlated orbitals of one spin, or of both spins of closed shells: coefficients [n][orbitals], occupied ones
    first, and their Fock matrix (Hartree).

    turned: the rotation [orbitals][orbitals] from the correlated orbitals of the reference to these; None: they are
    the same, or no rotation relates them (orbitals that became semicanonical before some were frozen).
    missing: true numbers of occupied and of virtual orbitals, where one is 0 and the other spin has both. Then
    there is one placeholder of each here; its integrals and amplitudes are 0.
    """

    coefficients: Values
    fock: Values
    occupied: int
    turned: Values | None = None
    missing: tuple[int, int] | None = None

    @property
    def virtual(self) -> int:
        return len(self.fock) - self.occupied

    @property
    def sizes(self) -> tuple[int, int]:
        """True numbers of occupied and virtual orbitals."""
        return self.missing or (self.occupied, self.virtual)

    @property
    def energies(self) -> Values:
        """The diagonal of the Fock matrix."""
        return np.diag(self.fock).copy()

    def gaps(self, shift: float = 0.0) -> Values:
        """e_i - e_a - shift, [i][a]"""
        energies, o = self.energies, self.occupied
        return energies[:o, None] - energies[o:] - shift

    def boxes(self) -> tuple[slice, slice]:
        """Slices of occupied and of virtual orbitals."""
        return slice(0, self.occupied), slice(self.occupied, len(self.fock))


def take(reference: Reference, frozen: Frozen, kind: str, *, open_shell: bool) -> list[CorrelatedOrbitals]:
    """The active orbitals of a reference, without frozen ones of each spin. Occupied and virtual orbitals that do
    not diagonalize their blocks of the Fock matrix are rotated until they do, which changes no energy of CCSD: for
    ROHF (`open_shell`) and kind "semicanonical" before orbitals are frozen, else after."""
    found = [
        CorrelatedOrbitals(each.coefficients, _fock(each.fock), each.occupied) for each in reference.spins
    ]
    if open_shell and kind == "semicanonical":
        found = [_semicanonical(each) for each in found]
    found = [
        _semicanonical(_left(each, *frozen.active(number, given.numbers, given.occupied)))
        for number, (each, given) in enumerate(zip(found, reference.spins, strict=True))
    ]
    empty = [not all(each.sizes) for each in found]
    if any(empty) and not all(empty):
        found = [_replaced(each) if none else each for each, none in zip(found, empty, strict=True)]
    return found


def note(spins: Sequence[CorrelatedOrbitals], kind: str, *, open_shell: bool) -> str:
    """Changes of the orbitals, for people; empty: there are none."""
    notes = []
    if open_shell:
        order = "before" if kind == "semicanonical" else "after"
        notes.append(f"made semicanonical {order} orbitals are frozen")
    elif any(each.turned is not None for each in spins):
        notes.append("made semicanonical")
    for name, each in zip(("alpha", "beta"), reversed(spins), strict=False):
        if each.missing:
            notes.append(f"electrons of spin {name} alone are correlated")
    return ", ".join(notes)


def described(spins: Sequence[CorrelatedOrbitals], block: int) -> str:
    """How many orbitals and electrons are correlated, for people. block: virtual orbitals of a tile."""
    counts = [f"{o} occupied and {v} virtual" for o, v in (each.sizes for each in spins)]
    if len(spins) == 1:
        return f"{counts[0]} orbitals in blocks of {block}"
    alpha, beta = (each.sizes[0] for each in spins)
    return (
        f"{counts[0]} orbitals of spin alpha, {counts[1]} of spin beta, in blocks of {block}; "
        f"{alpha} alpha and {beta} beta electrons are correlated"
    )


def _fock(fock: Values | None) -> Values:
    assert fock is not None
    return fock


def _left(spin: CorrelatedOrbitals, occupied: Values, virtual: Values) -> CorrelatedOrbitals:
    """The orbitals at these positions alone."""
    stay = np.concatenate([occupied, virtual])
    if len(stay) == len(spin.fock):
        return spin
    return CorrelatedOrbitals(
        np.ascontiguousarray(spin.coefficients[:, stay]),
        np.ascontiguousarray(spin.fock[np.ix_(stay, stay)]),
        len(occupied),
    )


def correlated(spin: Spin, number: int, frozen: Frozen) -> Values:
    """Coefficients of the orbitals of one spin of a reference that are not frozen, [n][orbitals]."""
    return spin.coefficients[:, np.concatenate(frozen.active(number, spin.numbers, spin.occupied))]


def _semicanonical(spin: CorrelatedOrbitals) -> CorrelatedOrbitals:
    blocks = [spin.fock[box, box] for box in spin.boxes()]
    if all(abs(each - np.diag(np.diag(each))).max(initial=0.0) < _CANONICAL for each in blocks):
        return spin
    n = len(spin.fock)
    rotation = np.zeros((n, n))
    for box, block in zip(spin.boxes(), blocks, strict=True):
        rotation[box, box] = eigenvectors(block)
    return replace(
        spin,
        coefficients=spin.coefficients @ rotation,
        fock=rotation.T @ spin.fock @ rotation,
        turned=rotation,
    )


def _replaced(spin: CorrelatedOrbitals) -> CorrelatedOrbitals:
    """Placeholders: one occupied and one virtual orbital, which couple to nothing."""
    return CorrelatedOrbitals(
        np.zeros((len(spin.coefficients), 2)),
        np.diag([-1.0, 1.0]),
        1,
        missing=(spin.occupied, spin.virtual),
    )


def given_coefficients(spin: CorrelatedOrbitals) -> Values:
    """[n][orbitals] of the orbitals of the reference, where these are known; of a spin that is not missing."""
    return spin.coefficients if spin.turned is None else spin.coefficients @ spin.turned.T


def given_singles(t1: Values, spin: CorrelatedOrbitals) -> Values:
    """[i,a] of the orbitals of the reference, where these are known."""
    if spin.missing:
        return np.zeros(spin.missing)
    if spin.turned is None:
        return t1.copy()
    o, v = (spin.turned[box, box] for box in spin.boxes())
    turned: Values = o @ t1 @ v.T
    return turned


def given_doubles(t2: Values, first: CorrelatedOrbitals, second: CorrelatedOrbitals) -> Values:
    """[i,j,a,b] of the orbitals of the reference, where these are known; i and a of the first spin."""
    if first.missing or second.missing:
        (i, a), (j, b) = first.sizes, second.sizes
        return np.zeros((i, j, a, b))
    turned = t2
    for axis, (spin, box) in enumerate((spin, box) for box in (0, 1) for spin in (first, second)):
        if spin.turned is not None:
            part = spin.turned[spin.boxes()[box], spin.boxes()[box]]
            turned = np.moveaxis(np.tensordot(part, turned, ([1], [axis])), 0, axis)
    return np.ascontiguousarray(turned)


def eigenvectors(matrix: Values) -> Values:
    """Eigenvectors of a symmetric matrix; the largest element of each is positive, so that signs repeat."""
    vectors: Values = np.linalg.eigh(matrix)[1]
    if not len(matrix):
        return vectors
    largest = np.take_along_axis(vectors, abs(vectors).argmax(0)[None], 0)
    return vectors * np.where(largest < 0, -1.0, 1.0)


def sketch(spins: Sequence[CorrelatedOrbitals]) -> list[list[float]]:
    """Two numbers for each orbital, which differ where the orbital does, or its row of the Fock matrix."""
    found = []
    for each in spins:
        generator = np.random.default_rng(7)
        # In one order of elements, as sums in another one differ in the last bits.
        matrices = [np.ascontiguousarray(part) for part in (each.coefficients, each.fock)]
        parts = [generator.normal(size=len(part)) @ part for part in matrices]
        found.append(np.concatenate(parts).tolist())
    return found
