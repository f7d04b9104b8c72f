"""Basis sets and effective core potentials from files in NWChem's format. A file is read correctly, or refused with
the line and the reason.

PySCF's own reader gives an element that the file lacks the functions of another element, and merges elements that
no comment separates.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.chem import words

Shells = list[Any]  # of an element, as PySCF keeps them: [l, [exponent, coefficient, ...], ...] each
Potential = list[Any]  # [electrons, [[l, [terms of r^0, r^1, ...]], ...]], l = -1 for the local part

_READ = "read basis set"
_MOMENTA = "SPDFGHIKLM"  # "L" is not one of them: in a file it is SP
_MAX_POWER = 6  # largest power of r in a potential
_FORMAT = "; files are read in NWChem's format"


@dataclass
class BasisFile:
    """Shells and potentials of a file, by element. `cartesian`: True if its header says CARTESIAN, False if it says
    SPHERICAL, None if neither."""

    path: Path
    shells: dict[str, Shells] = field(default_factory=dict)
    potentials: dict[str, Potential] = field(default_factory=dict)
    cartesian: bool | None = None


def read(path: Path) -> BasisFile:
    """Reads a file. Raises OutcoreError: it is missing, unreadable, or has a line that is not understood (with its
    number)."""
    return _Parser(path).parse()


class _Parser:
    def __init__(self, path: Path) -> None:
        self._path, self._file = path, BasisFile(path)
        self._section = 0  # number of the section of shells: an element in two sections has two basis sets
        self._of_section: dict[str, int] = {}
        self._in_potential = False
        self._element = ""
        self._rows: list[list[float]] | None = None  # of the shell that is being read
        self._columns = 0  # numbers in each of its rows; 0: any number is accepted
        self._shell_line = 0
        self._opened: list[tuple[str, str, int, list[list[float]]]] = []  # element, type, line, rows

    def parse(self) -> BasisFile:
        for number, line in enumerate(words.read_lines(self._path, _READ), 1):
            text = line.partition("#")[0].partition("!")[0]
            if "BASIS SET" in line.upper() and not text.strip():
                self._section += 1
            row = words.split(text)
            if row:
                self._line(number, line, row)
        for element, kind, number, rows in self._opened:
            self._take(element, kind, number, rows)
        for element, potential in self._file.potentials.items():
            if potential[0] is None or not potential[1]:
                raise self._bad(
                    f"the potential of {element} has no {'nelec' if potential[0] is None else 'terms'}"
                )
            potential[1].sort(key=lambda part: part[0])
        if not self._file.shells and not self._file.potentials:
            raise self._bad("it has no basis functions")
        return self._file

    def _line(self, number: int, line: str, row: list[str]) -> None:
        first = row[0].upper()
        if first == "BASIS":
            self._header(number, line)
        elif first == "ECP" and len(row) == 1:
            self._in_potential, self._rows = True, None
        elif first == "SO" and len(row) == 1:
            raise self._bad(
                f"line {number} begins a spin-orbit potential, which Hartree-Fock here does not have"
            )
        elif first == "END" and len(row) == 1:
            self._in_potential, self._rows = False, None
            self._section += 1
        elif words.number(row[0]) is not None:
            self._numbers(number, line, row)
        else:
            self._begin(number, line, row)

    def _header(self, number: int, line: str) -> None:
        said = {"CARTESIAN", "SPHERICAL"} & set(re.sub('"[^"]*"', " ", line).upper().split())
        cartesian = "CARTESIAN" in said if said else self._file.cartesian
        if len(said) > 1 or (self._file.cartesian is not None and cartesian != self._file.cartesian):
            raise self._bad(f"line {number} says CARTESIAN and SPHERICAL, or contradicts an earlier line")
        self._file.cartesian = cartesian
        self._in_potential, self._rows = False, None
        self._section += 1

    def _begin(self, number: int, line: str, row: list[str]) -> None:
        """Reads a line that names an element and begins a shell or a potential of it."""
        from pyscf.data.elements import ELEMENTS

        element = row[0].capitalize()
        if element not in ELEMENTS[1:]:
            raise self._bad(
                f"line {number} names no element: {words.quoted(line)}{words.oddity(line)}{_FORMAT}"
            )
        kind = row[1].upper() if len(row) > 1 else ""
        self._element = element
        if self._in_potential or kind in ("NELEC", "UL"):
            self._potential(number, line, kind, row[2:])
            return
        if len(row) != 2 or not (kind in ("SP", "L") or (kind in _MOMENTA and len(kind) == 1)):
            raise self._not_understood(number, line)
        self._rows, self._columns = [], 3 if kind in ("SP", "L") else 0
        self._opened.append((element, "SP" if kind == "L" else kind, number, self._rows))
        section = self._of_section.setdefault(element, self._section)
        previous = self._opened[-2][0] if len(self._opened) > 1 else element
        if section != self._section or (
            previous != element and any(e == element for e, *_ in self._opened[:-1])
        ):
            raise self._bad(
                f"line {number} begins a second basis set of {element}: it is not clear which one is meant"
            )

    def _potential(self, number: int, line: str, kind: str, rest: list[str]) -> None:
        self._in_potential, self._rows = True, None
        potential = self._file.potentials.setdefault(self._element, [None, []])
        if kind == "NELEC" and len(rest) == 1:
            electrons = words.integer(rest[0])
            if electrons is None or electrons < 0 or electrons % 2 or potential[0] is not None:
                raise self._not_understood(number, line)
            potential[0] = electrons
            return
        momentum = -1 if kind == "UL" else _MOMENTA.find(kind) if len(kind) == 1 else -2
        if momentum < -1 or (kind != "UL" and momentum < 0) or rest:
            raise self._not_understood(number, line)
        if any(part[0] == momentum for part in potential[1]):
            raise self._bad(f"line {number} begins a second potential of {self._element}")
        self._terms: list[list[list[float]]] = [[] for _ in range(_MAX_POWER + 1)]
        potential[1].append([momentum, self._terms])
        self._rows, self._columns = [], 3

    def _numbers(self, number: int, line: str, row: list[str]) -> None:
        values = [words.number(word) for word in row]
        numbers = [value for value in values if value is not None]
        if self._rows is None or len(numbers) < len(values) or len(numbers) < 2:
            raise self._not_understood(number, line)
        self._columns = self._columns or len(numbers)
        if len(numbers) != self._columns:
            raise self._bad(
                f"line {number} has {len(numbers)} numbers, {self._columns} are expected: {words.quoted(line)}"
            )
        if self._in_potential:
            power = words.integer(row[0])
            if power is None or not 0 <= power <= _MAX_POWER or numbers[1] <= 0:
                raise self._not_understood(number, line)
            self._terms[power].append(numbers[1:])
        elif numbers[0] <= 0:
            raise self._bad(f"line {number} has an exponent that is not positive: {words.quoted(line)}")
        self._rows.append(numbers)

    def _take(self, element: str, kind: str, number: int, rows: list[list[float]]) -> None:
        if not rows:
            raise self._bad(f"line {number} begins a shell of {element} that has no functions")
        shells = self._file.shells.setdefault(element, [])
        made: list[list[Any]] = (
            [[momentum, *([row[0], row[1 + momentum]] for row in rows)] for momentum in (0, 1)]
            if kind == "SP"
            else [[_MOMENTA.index(kind), *rows]]
        )
        for shell in made:
            if any(not any(row[column] for row in shell[1:]) for column in range(1, len(shell[1]))):
                raise self._bad(f"line {number} begins a shell of {element} whose coefficients are all zero")
            if shell in shells:
                raise self._bad(f"line {number} begins a shell of {element} that is there already")
            shells.append(shell)

    def _not_understood(self, number: int, line: str) -> OutcoreError:
        return self._bad(
            f"line {number} is not understood: {words.quoted(line)}{words.oddity(line)}{_FORMAT}"
        )

    def _bad(self, detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, _READ, path=self._path, detail=detail)
