"""Geometries from XYZ files, plain and extended. A file is read correctly, or refused with line and reason.

The reader is our own: those of ASE and qcelemental name no line, ignore columns and frames that they do not expect,
and need packages that every process of a run would load.
"""

from __future__ import annotations

import errno
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import words
from outcore.chem.geometry_comment import Column, Comment, Refusal, parse, unit_of

SPECIES = ("species", "symbols", "symbol", "element", "elements")  # names of columns in Properties
NUMBERS = ("z", "numbers", "number", "atomic_numbers", "atomic_number")
POSITIONS = ("pos", "position", "positions", "coords", "coordinates")
CHARGES = ("charge", "charges", "initial_charges", "initial_charge", "formal_charges", "formal_charge")

_READ = "read geometry"
_FARTHEST = 1e6  # largest coordinate of a molecule
_COINCIDENT = 0.05  # Angstrom: closer than that, functions of two atoms are the same within rounding
_TOO_CLOSE = 0.2  # times the sum of two covalent radii: no bond is so short, except one in nanometres
_CLOSE = 0.5
_GHOST = re.compile(
    r"(?:ghost[-_:@]?|x[-_:]|@|bq[-_:]?)(?P<before>[a-z][\w@.:-]*)|(?P<after>[a-z]\w*?)(?:[-_]bq|:)"
    r"|gh\((?P<inside>[a-z]\w*)\)",
    re.IGNORECASE | re.ASCII,
)
_LABELLED = re.compile(r"([A-Za-z]{1,2})([0-9]+|[@_.:#-]\w*)?", re.ASCII)
_ISOTOPE = re.compile(r"([0-9]{1,3})-?([A-Za-z]{1,2})", re.ASCII)
_DUMMY = re.compile(r"(?:X|Du|Bq)[0-9]*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Atom:
    """An atom or a ghost atom ("GHOST-O": the functions of an atom without its charge and electrons)."""

    element: str
    position: tuple[float, float, float]  # in the unit of the geometry
    line: int
    ghost: bool = False

    @property
    def symbol(self) -> str:
        """The symbol as PySCF reads it."""
        return f"GHOST-{self.element}" if self.ghost else self.element


@dataclass
class Geometry:
    """Atoms in `unit` ("angstrom" or "bohr"), charge and unpaired electrons as the comment gives them, and `notes`
    about steps that the author of the file may not expect."""

    path: Path
    atoms: list[Atom]
    unit: str
    comment: Comment
    charges: float | None = None  # the sum of a column of charges
    notes: list[str] = field(default_factory=list)

    def refuse(self, detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, _READ, path=self.path, detail=detail)


def read(path: str | Path, *, frame: int | None = None, unit: str | None = None) -> Geometry:
    """Reads a geometry from an XYZ file: a count, a comment, then lines of element and three coordinates, in
    Angstrom unless `unit` or the file says otherwise. `frame` counts from 1, or from -1 for the last; None: the
    file must have one frame only.

    Raises OutcoreError: missing, unreadable, or a line that is not understood (with its number).
    """
    path = Path(path)
    lines = words.read_lines(path, _READ)
    head, frames = _choose(path, lines, frame)
    count_line, comment = lines[head], lines[head + 1]
    try:
        found = parse(comment)
    except Refusal as error:
        raise _bad(path, f"line {head + 2}: {error}") from None
    geometry = Geometry(path, [], _unit(path, head, count_line, found, unit), found)
    if frames > 1:
        geometry.notes.append(
            f"frame {frame} of the file, lines {head + 1} to {head + 2 + _count(count_line)[0]}"
        )
    if geometry.unit != "angstrom":
        geometry.notes.append(f"coordinates in {geometry.unit}")
    _Atoms(geometry, lines, head).read()
    if not any(not atom.ghost for atom in geometry.atoms):
        raise _bad(path, "it has no atoms")
    _check_distances(geometry)
    return geometry


def _bad(path: Path, what: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _READ, path=path, detail=what)


# ---- frames ----


def _count(line: str) -> tuple[int, str]:
    """Number of atoms and unit ("" if none is said) of the first line of a frame. Raises Refusal."""
    parts = words.split(line)
    count = words.integer(parts[0]) if parts and not parts[0].startswith(("+", "-")) else None
    if count is None or len(parts) > 2:
        raise Refusal(f"must be the number of atoms, not {words.quoted(line, 40)}{words.oddity(line)}")
    return count, unit_of(parts[1]) if len(parts) == 2 else ""


def _choose(path: Path, lines: list[str], frame: int | None) -> tuple[int, int]:
    """Where the frame begins, and the number of frames (2 stands for "several")."""
    if frame == 0:
        raise _bad(path, "frames are counted from 1, or from -1 for the last: there is no --frame 0")
    starts: list[int] = []
    for start in _frames(path, lines):
        starts.append(start)
        if frame is not None and len(starts) == frame:
            return start, 2 if len(starts) > 1 else 1 + _has_more(lines, start)
    if frame is None:
        if len(starts) > 1:
            raise _bad(
                path,
                f"it has {len(starts)} frames, the second from line {starts[1] + 1} on: choose one with --frame "
                f"(1 to {len(starts)}, or -1 for the last)",
            )
        return starts[0], 1
    if frame > 0 or -frame > len(starts):
        raise _bad(path, f"it has {len(starts)} frames, there is no --frame {frame}")
    return starts[frame], len(starts)


def _has_more(lines: list[str], start: int) -> int:
    end = start + 2 + _count(lines[start])[0]
    return int(any(words.split(line) for line in lines[end:]))


def _frames(path: Path, lines: list[str]) -> Iterator[int]:
    """Indices of the lines with which frames begin, the first at the top of the file."""
    start = 0
    while True:
        try:
            count, _ = _count(lines[start] if lines else "")
        except Refusal as error:
            if start == 0:
                raise _bad(path, f"line 1 {error}") from None
            raise _bad(
                path,
                f"line {start + 1} follows the atoms that are announced: {words.quoted(lines[start])}; is their "
                "number right?",
            ) from None
        if count == 0:
            raise _bad(path, "it has no atoms" if start == 0 else f"line {start + 1}: a frame has no atoms")
        end = start + 2 + count
        last = len(lines)
        while last and not words.split(lines[last - 1]):
            last -= 1
        if last < end:
            there = max(0, last - start - 2)
            missing = len(words.split(lines[start + 1])) == 4 if start + 1 < last else False
            raise _bad(
                path,
                f"line {start + 1} says {count} atoms, but only {there} lines follow the comment"
                + (", which looks like an atom: line 2 must be a comment, or blank" if missing else ""),
            )
        for index in range(start + 2, end):
            if not words.split(lines[index]):
                raise _bad(path, f"line {index + 1} is blank, where line {start + 1} announces an atom")
        yield start
        start = end
        while start < last and not words.split(lines[start]):
            start += 1
        if start >= last:
            return


def _unit(path: Path, head: int, count_line: str, comment: Comment, unit: str | None) -> str:
    said = {name for name in (_count(count_line)[1], comment.unit) if name}
    if unit is not None:
        try:
            wanted = unit_of(unit)
        except Refusal as error:
            raise OutcoreError(errno.EINVAL, f"--unit {unit}", detail=str(error)) from None
        if said - {wanted}:
            raise _bad(path, f"it says {said.pop()} (lines {head + 1} and {head + 2}), --unit says {wanted}")
        return wanted
    if len(said) > 1:
        raise _bad(path, f"line {head + 1} and the comment name different units")
    for option, statement, _ in comment.ambiguous:
        if option == "--unit" and not said:
            raise _bad(
                path,
                f"line {head + 2}: the unit is not clear, {statement}: give --unit angstrom or --unit bohr",
            )
    return said.pop() if said else "angstrom"


# ---- atoms ----


class _Atoms:
    """Reads the lines of one frame into a geometry."""

    def __init__(self, geometry: Geometry, lines: list[str], head: int) -> None:
        self._geometry, self._path = geometry, geometry.path
        count, _ = _count(lines[head])
        self._rows = [
            (number, lines[number - 1], words.split(lines[number - 1]))
            for number in range(head + 3, head + 3 + count)
        ]
        self._dummies: list[int] = []
        self._isotopes: Counter[str] = Counter()

    def read(self) -> None:
        notes, columns = self._geometry.notes, self._geometry.comment.properties
        if columns is None:
            self._plain()
        else:
            self._extended(columns)
        if self._isotopes:
            notes.append(
                "read as any isotope of the element, whose mass the energy does not depend on: "
                + ", ".join(self._isotopes)
            )
        if self._dummies:
            notes.append(
                "dummy atoms, which have neither charge nor functions, are left out: "
                f"{'line' if len(self._dummies) == 1 else 'lines'} {', '.join(map(str, self._dummies))}"
            )

    def _plain(self) -> None:
        extra = 0
        for number, line, row in self._rows:
            if len(row) < 4:
                self._refuse_line(number, line)
            position = self._position(number, line, row[1:4])
            if words.integer(row[0]) is not None and len(row) > 4:
                raise _bad(
                    self._path,
                    f"line {number} begins with a number and has {len(row)} columns: it is not clear which are the "
                    "coordinates; write the symbol first, or name the columns with Properties= in the comment",
                )
            for word in row[4:]:
                if words.number(word) is None and word.upper() not in ("T", "F"):
                    raise _bad(
                        self._path,
                        f"line {number} has {words.quoted(word)} after the coordinates, which is not understood",
                    )
            extra = max(extra, len(row) - 4)
            self._add(number, row[0], position)
        if extra:
            self._refuse_shifted()
            self._geometry.notes.append(
                "columns 2 to 4 are taken as coordinates, "
                f"{'column 5 is' if extra == 1 else f'columns 5 to {4 + extra} are'} not used"
            )

    def _refuse_shifted(self) -> None:
        """Refuses columns 2 to 4 as coordinates if the second has atomic numbers, or integers where the others have
        decimals, as in files of other formats."""
        from pyscf.data.elements import charge

        rows = [row for _, _, row in self._rows]
        numbers = [words.number(row[1]) for row in rows]
        elements = [None if (found := species(row[0])[0]) is None else charge(found) for row in rows]
        whole = all(words.integer(row[1]) is not None and len(row) > 4 for row in rows)
        if numbers == elements or (whole and all("." in word for row in rows for word in row[2:5])):
            raise _bad(
                self._path,
                "column 2 has integers for all atoms, such as atomic numbers: it is not clear which columns are "
                "the coordinates; remove it, or name the columns with Properties= in the comment",
            )

    def _extended(self, columns: list[Column]) -> None:
        by_name = {column.name: column for column in columns}
        place = self._column(by_name, POSITIONS)
        named = self._column(by_name, SPECIES)
        numbered = self._column(by_name, NUMBERS)
        if place is None or place.kind != "R" or place.columns.stop - place.columns.start != 3:
            raise _bad(self._path, "Properties names no positions, pos:R:3")
        if named is None and numbered is None:
            raise _bad(self._path, "Properties names no elements, species:S:1 or Z:I:1")
        charged = self._column(by_name, CHARGES)
        width, charges = columns[-1].columns.stop, list[float]()
        for number, line, row in self._rows:
            if len(row) != width:
                raise _bad(
                    self._path,
                    f"line {number} has {len(row)} columns, Properties in the comment says {width}: "
                    f"{words.quoted(line)}",
                )
            if named is not None and numbered is not None:
                self._compare(number, row[named.columns.start], row[numbered.columns.start])
            one = named or numbered
            assert one is not None
            if charged is not None:
                charges.append(self._decimal(number, line, row[charged.columns.start]))
            self._add(number, row[one.columns.start], self._position(number, line, row[place.columns]))
        self._geometry.charges = sum(charges) if charges else None

    def _column(self, columns: dict[str, Column], names: tuple[str, ...]) -> Column | None:
        found = [columns[name] for name in names if name in columns]
        if len(found) > 1:
            raise _bad(self._path, f"Properties has both {found[0].name} and {found[1].name}")
        return found[0] if found else None

    def _compare(self, number: int, name: str, atomic: str) -> None:
        """Refuses a line whose symbol and atomic number differ. Ghosts and dummies may have the number 0."""
        one, ghost, _ = self._species(number, name)
        other, _, _ = self._species(number, atomic)
        if one != other and not (other is None and ghost):
            raise _bad(
                self._path, f"line {number} names {words.quoted(name)} with the atomic number {atomic}"
            )

    def _refuse_line(self, number: int, line: str) -> NoReturn:
        raise _bad(
            self._path,
            f"line {number} is not 'element x y z': {words.quoted(line)}{words.oddity(line)}",
        )

    def _decimal(self, number: int, line: str, word: str) -> float:
        value = words.number(word)
        if value is None:
            self._refuse_line(number, line)
        return value

    def _position(self, number: int, line: str, three: list[str]) -> tuple[float, float, float]:
        x, y, z = (self._decimal(number, line, word) for word in three)
        if max(abs(x), abs(y), abs(z)) > _FARTHEST:
            raise _bad(
                self._path, f"line {number} has a coordinate beyond {_FARTHEST:.0e}: {words.quoted(line)}"
            )
        return x, y, z

    def _species(self, number: int, word: str) -> tuple[str | None, bool, bool]:
        try:
            return species(word)
        except Refusal as error:
            raise _bad(self._path, f"line {number} {error}") from None

    def _add(self, number: int, word: str, position: tuple[float, float, float]) -> None:
        element, ghost, isotope = self._species(number, word)
        if element is None:
            self._dummies.append(number)
            return
        if isotope:
            self._isotopes[word] += 1
        self._geometry.atoms.append(Atom(element, position, number, ghost))


def species(word: str) -> tuple[str | None, bool, bool]:
    """Element (None: a dummy atom), whether it is a ghost, and whether an isotope is named. Raises Refusal."""
    number = words.integer(word)
    if number is not None:
        from pyscf.data.elements import ELEMENTS

        if not 0 <= number < len(ELEMENTS):
            raise Refusal(f"has the atomic number {number}")
        return (ELEMENTS[number] if number else None), False, False
    if _DUMMY.fullmatch(word):
        return None, False, False
    ghost = _GHOST.fullmatch(word)
    if ghost:
        inner = _element(ghost["before"] or ghost["after"] or ghost["inside"])
        if inner is not None:
            return inner[0], True, inner[1]
    found = _element(word)
    if found is None:
        raise Refusal(f"names an unknown element: {words.quoted(word)}{words.oddity(word)}")
    return found[0], False, found[1]


def _element(word: str) -> tuple[str, bool] | None:
    """The element of a symbol, perhaps with a label ("O1", "H@2") or mass number ("13C"), and whether it names an
    isotope."""
    from pyscf.data.elements import ELEMENTS

    isotope = _ISOTOPE.fullmatch(word)
    labelled = _LABELLED.fullmatch(word)
    if isotope:
        symbol, mass = isotope[2], int(isotope[1])
    elif labelled:
        symbol, mass = labelled[1], 0
    else:
        return None
    symbol = symbol.capitalize()
    if symbol in ("D", "T") and not mass:
        return "H", True
    if symbol not in ELEMENTS[1:]:
        return None
    if isotope and not ELEMENTS.index(symbol) <= mass <= 3 * ELEMENTS.index(symbol) + 1:
        return None
    return symbol, bool(isotope)


# ---- distances ----


def _check_distances(geometry: Geometry) -> None:
    """Refuses atoms that are at the same place, or so close that the unit cannot be right; notes others."""
    from pyscf.data import radii
    from pyscf.data.elements import charge
    from pyscf.data.nist import BOHR

    atoms = geometry.atoms
    scale = BOHR if geometry.unit == "bohr" else 1.0
    places = np.array([atom.position for atom in atoms]) * scale
    most = len(radii.COVALENT) - 1
    sizes = np.array([radii.COVALENT[min(charge(atom.element), most)] for atom in atoms]) * BOHR
    real = np.array([not atom.ghost for atom in atoms])
    noted = 0
    for second in range(1, len(atoms)):
        distance = np.sqrt(((places[:second] - places[second]) ** 2).sum(axis=1))
        bond = sizes[:second] + sizes[second]
        both = real[:second] & real[second]
        wrong = (distance < _COINCIDENT) | (both & (distance < _TOO_CLOSE * bond))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise geometry.refuse(_said(atoms, first, second, float(distance[first])))
        close = np.flatnonzero(both & (distance < _CLOSE * bond))
        if len(close) and not noted:
            first = int(close[0])
            geometry.notes.append(
                f"atoms {first + 1} and {second + 1} (lines {atoms[first].line} and {atoms[second].line}) are only "
                f"{distance[first]:.3f} Angstrom apart: is the unit right?"
            )
            noted = 1


def _said(atoms: list[Atom], first: int, second: int, distance: float) -> str:
    one, other = atoms[first], atoms[second]
    pair = f"atoms {first + 1} and {second + 1} ({one.symbol} and {other.symbol}, "
    pair += f"lines {one.line} and {other.line})"
    if distance < 1e-6:
        return f"{pair} are at the same place"
    return f"{pair} are {distance:.3g} Angstrom apart: nearly at the same place, or in another unit"
