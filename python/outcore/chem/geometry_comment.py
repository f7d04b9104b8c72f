"""What the comment line of an XYZ file says about the molecule: columns, unit, charge, spin, periodicity.

`key=value` pairs are those of the extended XYZ format, values in quotes or brackets too. Charge, multiplicity and
unit are also understood in the prose that programs write ("charge: 1, multiplicity 2").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from outcore.chem import words

UNITS = {
    "angstrom": ("angstrom", "angstroms", "ang", "angs", "a", "\u00e5", "\u212b", "\u00e5ngstr\u00f6m"),
    "bohr": ("bohr", "bohrs", "au", "a.u.", "a.u", "atomic", "a0"),
}

_PAIR = re.compile(
    r"""([^\W\d][\w.-]*)\s*=\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\{[^}]*\}|\[[^\]]*\]|[^\s,;"']+)"""
)
_NUMBER = r"([+-]?[0-9]+(?:\.[0-9]*)?[+-]?)(?![\w.+-])"
_VALUE = r"[\"']?\s*(?:=|:|\bis\b)?\s*[\"']?" + _NUMBER
_CHARGE_NAME = r"(?:(?:total|net|molecular|mol|system)[ _-]?)?(?:charge|chrg|chg)"
_CHARGE = re.compile(  # the charge of the molecule, not of an atom
    r"(?<![a-z0-9_-])(?<!partial )(?<!mulliken )(?<!nuclear )(?<!atomic )(?<!point )"
    rf"(?:{_CHARGE_NAME}(?![a-z0-9]){_VALUE}|q\s*[=:]\s*([+-]?[0-9]+[+-]?)(?![\w.+-]))"
)
_SPIN_NAMES = {  # and how much the number exceeds that of unpaired electrons
    r"(?:spin[ _-]?)?mult(?:iplicity|ip)?": 1,
    r"2s\+1": 1,
    r"n?_?unpaired(?:[ _-]?electrons)?": 0,
}
_SPINS = {re.compile(rf"(?<![a-z0-9]){name}(?![a-z0-9]){_VALUE}"): more for name, more in _SPIN_NAMES.items()}
_KEYS = re.compile("|".join([_CHARGE_NAME, *_SPIN_NAMES]))  # keys whose values must be numbers
_WORDS = {  # words that hint at charge or spin, but give no value: options have to
    re.compile(r"\b(?:di|tri)?cations?\b"): "--charge",
    re.compile(r"\b(?:di|tri)?anions?\b"): "--charge",
    re.compile(r"\b(?:singlet|doublet|triplet|quartet|quintet|sextet|septet)s?\b"): "--spin",
}
_MULTIPLETS = ("singlet", "doublet", "triplet", "quartet", "quintet", "sextet", "septet")
_SPIN = re.compile(r"(?<![a-z0-9_-])spin(?![a-z0-9])" + _VALUE)
_BOHR = re.compile(
    r"\bbohrs?\b|\b(?:coordinates|geometry|positions|xyz)\b.{0,12}\bin (?:au\b|a\.u\.|atomic units)"
)
_NAME, _KIND, _COUNT = range(3)


class Refusal(ValueError):
    """A fault in the comment. The reader of the file adds file and line."""


@dataclass(frozen=True)
class Column:
    """A property of each atom: its name in small letters, type (S, R, I or L), and the columns it takes."""

    name: str
    kind: str
    columns: slice


@dataclass(frozen=True)
class Comment:
    """None: the comment does not say. `ambiguous` are statements that have several readings, each with the option
    that settles it ("--charge", "--spin", "--unit") and the value that makes it harmless."""

    properties: list[Column] | None
    charge: int | None
    unpaired: int | None
    unit: str | None
    ambiguous: list[tuple[str, str, int | str | None]]


def parse(text: str) -> Comment:
    """Reads a comment. Raises Refusal for statements that contradict each other or cannot be computed, such as a
    periodic cell."""
    pairs = {name.lower(): value.strip("\"'{}[]").strip() for name, value in _PAIR.findall(text)}
    _refuse_periodic(pairs)
    prose = text.lower()
    ambiguous: list[tuple[str, str, int | str | None]] = []
    unit = _unit(pairs)
    if unit is None and _BOHR.search(prose):
        ambiguous.append(("--unit", "it mentions bohr or atomic units", None))
    charge = _whole("charge", [one or other for one, other in _CHARGE.findall(prose)])
    unpaired = _unpaired(prose)
    for name, value in pairs.items():
        if _KEYS.fullmatch(name) and not re.fullmatch(_NUMBER, value):
            raise Refusal(f"{name}={words.quoted(value)} is not understood")
    spins = _SPIN.findall(prose)
    if unpaired is None and spins:
        if set(spins) == {"0"}:
            unpaired = 0
        else:
            ambiguous.append(("--spin", f"'spin {spins[0]}' may be 2S, 2S+1 or S", None))
    for pattern, option in _WORDS.items():
        word = pattern.search(prose)
        if word is not None and (charge if option == "--charge" else unpaired) is None:
            harmless = None
            if option == "--spin":
                harmless = _MULTIPLETS.index(word[0].removesuffix("s"))
            ambiguous.append((option, f"it mentions a {word[0]}", harmless))
    two = words.split(text)[:2]
    if len(two) == 2 and all(words.integer(word) is not None for word in two) and int(two[1]) > 0:
        ambiguous.append(("--charge", f"'{' '.join(two)}' may be charge and multiplicity", int(two[0])))
        ambiguous.append(("--spin", f"'{' '.join(two)}' may be charge and multiplicity", int(two[1]) - 1))
    declared = pairs.get("properties")
    return Comment(None if declared is None else _columns(declared), charge, unpaired, unit, ambiguous)


def unit_of(word: str) -> str:
    """The name of a unit of length. Raises Refusal for one that is not known."""
    for name, spellings in UNITS.items():
        if word.lower() in spellings:
            return name
    raise Refusal(f"the unit {words.quoted(word)} is neither angstrom nor bohr")


def _unit(pairs: dict[str, str]) -> str | None:
    found = {
        unit_of(value)
        for name, value in pairs.items()
        if name in ("unit", "units", "length_unit", "length_units", "unit_length", "units_length")
    }
    if len(found) > 1:
        raise Refusal("the comment names two units")
    return found.pop() if found else None


def _refuse_periodic(pairs: dict[str, str]) -> None:
    flags = pairs.get("pbc")
    if flags is None:
        periodic = "lattice" in pairs or "cell" in pairs
    else:
        periodic = any(flag in ("t", "true", "1") for flag in re.split(r"[\s,]+", flags.lower()))
    if periodic:
        raise Refusal(
            'it is periodic, and molecules are computed here; with pbc="F F F" it is taken as a molecule'
        )


def _whole(what: str, found: list[str]) -> int | None:
    values = {_signed(value) for value in found}
    if len(values) > 1:
        raise Refusal(f"the comment says {what} {' and '.join(found)}")
    if not values:
        return None
    (value,) = values
    if value != int(value):
        raise Refusal(f"the comment says {what} {found[0]}, which is no integer")
    return int(value)


def _signed(text: str) -> float:
    """The value of a number whose sign may come first, or last, as in "2-"."""
    return float(text[-1] + text[:-1]) if text[-1] in "+-" and text[0] not in "+-" else float(text)


def _unpaired(prose: str) -> int | None:
    stated = set()
    for pattern, more in _SPINS.items():
        value = _whole("multiplicity" if more else "unpaired electrons", pattern.findall(prose))
        if value is not None:
            stated.add(value - more)
    if len(stated) > 1 or any(value < 0 for value in stated):
        raise Refusal(
            "multiplicity and unpaired electrons in the comment contradict each other or are below 0"
        )
    return stated.pop() if stated else None


def _columns(declared: str) -> list[Column]:
    parts = declared.split(":")
    if len(parts) % 3:
        raise Refusal(
            f"Properties={words.quoted(declared)} is not a list of name:type:count with colons between"
        )
    columns, first = [], 0
    for each in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        count = words.integer(each[_COUNT])
        if not each[_NAME] or each[_KIND].upper() not in ("S", "R", "I", "L") or count is None or count < 1:
            raise Refusal(f"Properties has {words.quoted(':'.join(each))}, which is no name:type:count")
        columns.append(Column(each[_NAME].lower(), each[_KIND].upper(), slice(first, first + count)))
        first += count
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise Refusal("Properties names a property twice")
    return columns
