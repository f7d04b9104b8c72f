"""Configurations: the doubly and the singly occupied internal orbitals.

A configuration is a 64-bit number: bit p of the lower half says that orbital p is doubly occupied, bit p of the
upper half that it is singly occupied.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import comb

import numpy as np
from numpy.typing import NDArray

Configurations = NDArray[np.uint64]
Masks = NDArray[np.uint64]
Integers = NDArray[np.int64]

MAX_INTERNAL = 32
_HALF = np.uint64(32)
_LOWER = np.uint64((1 << 32) - 1)


def made(double: int, single: int) -> int:
    return double | single << 32


def doubles(configurations: Configurations) -> Masks:
    """Doubly occupied orbitals of each configuration, as masks."""
    return configurations & _LOWER


def singles(configurations: Configurations) -> Masks:
    """Singly occupied orbitals of each configuration, as masks."""
    return configurations >> _HALF


def of_occupation(occupation: Iterable[int]) -> int:
    """The configuration with 0, 1 or 2 electrons in each orbital."""
    double = single = 0
    for orbital, electrons in enumerate(occupation):
        if electrons not in (0, 1, 2):
            raise ValueError(f"{electrons} electrons in an orbital")
        double |= (electrons == 2) << orbital
        single |= (electrons == 1) << orbital
    return made(double, single)


def of_strings(alpha: Masks, beta: Masks) -> Configurations:
    """The configurations of determinants."""
    return (alpha & beta) | (alpha ^ beta) << _HALF


def electrons(configurations: Configurations) -> Integers:
    return 2 * np.bitwise_count(doubles(configurations)).astype(np.int64) + np.bitwise_count(
        singles(configurations)
    )


def irreps(configurations: Configurations, orbitals: Iterable[int]) -> Integers:
    """The irrep of each configuration. orbitals: their irreps."""
    found = np.zeros(len(configurations), np.int64)
    open_shells = singles(configurations)
    for orbital, irrep in enumerate(orbitals):
        found ^= np.where(open_shells >> np.uint64(orbital) & np.uint64(1), int(irrep), 0)
    return found


def every(orbitals: Iterable[int], count: int, below: int = 0) -> Configurations:
    """All configurations of `count` electrons in these orbitals, above a doubly occupied core `below` (a mask)."""
    found = {0: [(below, 0)]}
    for orbital in orbitals:
        bit = 1 << orbital
        more: dict[int, list[tuple[int, int]]] = {}
        for there, each in found.items():
            for added in (0, 1, 2):
                if there + added <= count:
                    double, single = bit * (added == 2), bit * (added == 1)
                    more.setdefault(there + added, []).extend((d | double, s | single) for d, s in each)
        found = more
    return np.unique(np.array([made(d, s) for d, s in found.get(count, [])], np.uint64))


def count_every(orbitals: int, count: int) -> int:
    """Number of configurations that `every` makes."""
    return sum(
        comb(orbitals, pairs) * comb(orbitals - pairs, count - 2 * pairs)
        for pairs in range(count // 2 + 1)
        if pairs <= orbitals
    )


def with_one_less(configurations: Configurations, orbitals: int) -> Configurations:
    """All configurations with one electron less than one of these, each once."""
    parts = []
    for orbital in range(orbitals):
        low, high = np.uint64(1 << orbital), np.uint64(1 << (orbital + 32))
        parts.append(configurations[(configurations & low) != 0] ^ (low | high))
        parts.append(configurations[(configurations & high) != 0] ^ high)
    return np.unique(np.concatenate(parts)) if parts else configurations[:0]


def with_one_more(configurations: Configurations, orbitals: int) -> Configurations:
    """All configurations with one electron more than one of these, each once."""
    parts = []
    for orbital in range(orbitals):
        low, high = np.uint64(1 << orbital), np.uint64(1 << (orbital + 32))
        parts.append(configurations[(configurations & high) != 0] ^ (low | high))
        parts.append(configurations[(configurations & (low | high)) == 0] ^ high)
    return np.unique(np.concatenate(parts)) if parts else configurations[:0]


def reached(
    references: Configurations, orbitals: int
) -> tuple[Configurations, Configurations, Configurations]:
    """Internal configurations that differ from a reference by at most two electrons: those with 0, with 1 and with
    2 electrons in external orbitals."""
    one = with_one_less(references, orbitals)
    two = with_one_less(one, orbitals)
    back = with_one_more(two, orbitals)
    with_one = np.unique(np.concatenate([one, back]))
    with_none = np.unique(np.concatenate([references, with_one_more(with_one, orbitals)]))
    return with_none, with_one, two


def determinants(configurations: Configurations, alpha: int, beta: int) -> tuple[Masks, Masks]:
    """Strings of all determinants of the configurations with `alpha` and `beta` electrons."""
    strings: list[Masks] = []
    partners: list[Masks] = []
    double, single = doubles(configurations), singles(configurations)
    pairs, open_shells = np.bitwise_count(double).astype(int), np.bitwise_count(single).astype(int)
    for count in np.unique(open_shells):
        for closed in np.unique(pairs[open_shells == count]):
            up = alpha - int(closed)
            if not 0 <= up <= count or beta - int(closed) != count - up:
                continue
            d, s = (each[(open_shells == count) & (pairs == closed)] for each in (double, single))
            bits = _bits(s, int(count))
            for chosen in itertools.combinations(range(int(count)), up):
                string = np.bitwise_or.reduce(bits[list(chosen)], axis=0, initial=np.uint64(0))
                string = np.broadcast_to(string, d.shape)
                strings.append(d | string)
                partners.append(d | (s & ~string))
    none = np.zeros(0, np.uint64)
    return np.concatenate([none, *strings]), np.concatenate([none, *partners])


def count_determinants(configurations: Configurations, alpha: int, beta: int) -> int:
    """Number of determinants that `determinants` makes."""
    pairs, open_shells = (
        np.bitwise_count(each).astype(int) for each in (doubles(configurations), singles(configurations))
    )
    kinds, counts = np.unique(np.array([pairs, open_shells]), axis=1, return_counts=True)
    return sum(
        int(count) * comb(int(single), alpha - int(closed))
        for (closed, single), count in zip(kinds.T, counts, strict=True)
        if closed <= min(alpha, beta) and 2 * closed + single == alpha + beta
    )


def _bits(masks: Masks, count: int) -> NDArray[np.uint64]:
    """[number][mask]: each occupied orbital of each mask, as a mask of one bit."""
    found = np.zeros((count, len(masks)), np.uint64)
    left = masks.copy()
    for number in range(count):
        found[number] = left & (~left + np.uint64(1))
        left &= left - np.uint64(1)
    return found


def functions(open_shells: int, spin: int) -> int:
    """Number of spin functions with 2S = `spin` of so many singly occupied orbitals."""
    if spin < 0 or open_shells < spin or (open_shells - spin) % 2:
        return 0
    down = (open_shells - spin) // 2
    return comb(open_shells, down) - (comb(open_shells, down - 1) if down else 0)
