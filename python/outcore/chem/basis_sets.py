"""Basis sets, effective core potentials and auxiliary sets of elements, by name or from a file: the one place where
they are found, or refused by name."""

from __future__ import annotations

import difflib
import errno
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import basis_file
from outcore.chem.basis_file import BasisFile, Potential, Shells

_SUFFIXES = (".nw", ".nwchem", ".bas", ".basis", ".gbs", ".dat", ".txt", ".ecp")  # endings of basis set files

# The set whose potentials each of these sets was made for, where PySCF has the potentials under another name.
_FAMILIES = (
    (re.compile(r"bfdv.z"), "bfdpp"),
    (re.compile(r"ccecp(28|36|he|reg)?(aug)?ccpv.z"), r"ccecp\1"),
    (re.compile(r"(aug)?ccpw?c?v.zpp"), "ccpvdzpp"),
    (re.compile(r"(ma)?def2.*"), "def2tzvp"),
)
_ALWAYS = (  # families whose elements need a potential, from which atomic number on
    (re.compile(r"bfdv.z|ccecp.*|.*ppnr"), 1),
    (re.compile(r"(ma)?def2.*"), 37),
)

# Least share of the energy of one electron at the bare nucleus that a set with core functions reproduces. Sets
# contracted for relativistic Hamiltonians reproduce less at heavy atoms, but have tight functions.
_CORE_SHARE, _RELATIVISTIC_SHARE, _HEAVY = 0.9, 0.35, 54
_TIGHT = 2.0  # exponents of all-electron sets reach this times the square of the nuclear charge


@dataclass
class Sets:
    """For PySCF's Mole: the basis of each symbol of atoms, and the potential of each element. `notes` name the
    sets that the caller has not named."""

    basis: dict[str, Any] = field(default_factory=dict)
    potentials: dict[str, Potential] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def element_of(symbol: str) -> str:
    """The element of an atom as PySCF names it: "O" of "O1", "GHOST-O" and "X-O1"; empty if it has none."""
    bare = re.sub(r"^(GHOST|X(?!E))", "", symbol.upper())
    return "".join(each for each in bare if each.isalpha()).capitalize()


def orbital(basis: str, ecp: str | None, symbols: Iterable[str], *, cartesian: bool = False) -> Sets:
    """The orbital basis of atoms with these symbols ("O", "GHOST-O"), and the effective core potentials that belong
    to it. `ecp` names a set or file of potentials; for its elements they replace those of the basis.

    Raises OutcoreError (EINVAL): the set is unknown or lacks an element; the functions belong to a potential that
    is missing, or to another potential.
    """
    symbols = list(dict.fromkeys(symbols))
    source, potentials = _Source(basis, "basis"), None if ecp is None else _Source(ecp, "ecp")
    sets = Sets()
    for symbol in symbols:
        shells = source.shells(element_of(symbol))
        sets.basis[symbol] = shells if source.file else basis
    if source.file:
        _check_kind(source.file, sets, cartesian)
    elements = [symbol for symbol in symbols if element_of(symbol) == symbol]
    taken: dict[str, list[str]] = {}
    for element in elements:
        potential, origin = _potential(source, potentials, element, sets)
        if potential is not None:
            sets.potentials[element] = potential
            taken.setdefault(origin, []).append(f"{element} ({potential[0]} electrons)")
    if potentials is not None and potentials.title not in taken:
        raise OutcoreError(
            errno.EINVAL,
            f"--ecp {ecp}",
            detail=f"it has no effective core potential for {', '.join(elements)}; it has some for "
            f"{_ranges(potentials.elements('ecp')) or 'no element'}",
        )
    sets.notes += [f"effective core potentials {name}: {', '.join(each)}" for name, each in taken.items()]
    return sets


def auxiliary(name: str, symbols: Iterable[str], fallback: str) -> dict[str, Any]:
    """The functions of each symbol in the auxiliary set `name`, or in the file of that name. If it lacks an element
    the error suggests `fallback`. Raises OutcoreError (EINVAL)."""
    source = _Source(
        name, "auxiliary basis", f"'{fallback}' has most elements, and 'auto' makes what is missing"
    )
    found = {symbol: source.shells(element_of(symbol)) for symbol in dict.fromkeys(symbols)}
    return found if source.file else dict.fromkeys(found, name)


def has(name: str, elements: Iterable[str]) -> bool:
    """Whether a set of PySCF's library has functions of all these elements."""
    return all(_load(name, element) for element in elements)


class _Source:
    """A set of PySCF's library, by name, or a file."""

    def __init__(self, name: str, kind: str, advice: str = "") -> None:
        self.name, self.title, self._kind, self._advice = name, name, kind, advice
        self.file: BasisFile | None = None
        path = self._path()
        if path is not None:
            self.file = basis_file.read(path)
        elif "gth" in name.lower() and "\n" not in name:
            raise self._bad(
                f"choose {kind}", f"{kind} '{name}' belongs to GTH pseudopotentials, which are not supported"
            )

    def _path(self) -> Path | None:
        """The path of the file, if the name means a file."""
        name = self.name
        if os.sep in name or name.lower().endswith(_SUFFIXES):
            return Path(name)
        try:
            if not name or not Path(name).exists():
                return None
        except (OSError, ValueError):
            return None
        if _is_known(name):
            if not Path(name).is_file():
                return None
            raise self._bad(
                f"choose {self._kind}",
                f"'{name}' is a {self._kind} set, and a file here: write ./{name} for the file",
            )
        return Path(name)

    def shells(self, element: str) -> Shells:
        """Functions of an element. Raises OutcoreError."""
        attempted = f"find a basis for {element}"
        if self.file is not None:
            if element not in self.file.shells:
                raise OutcoreError(
                    errno.EINVAL,
                    attempted,
                    path=self.file.path,
                    detail=f"it has no element {element}; it has {_ranges(self.file.shells) or 'none'}",
                )
            return self.file.shells[element]
        shells = _load(self.name, element)
        if shells:
            return shells
        if "@" in self.name and _load(self.name.partition("@")[0], element):
            detail = f"{self._kind} '{self.name}' asks for other functions of {element} than there are"
        elif _is_known(self.name):
            detail = f"{self._kind} '{self.name}' has no element {element}; it has {_ranges(self.elements())}"
        else:
            close = difflib.get_close_matches(_plain(self.name), _names(), 3)
            similar = f"; similar: {', '.join(close)}" if close else ""
            detail = f"unknown {self._kind} '{self.name}'{similar}"
        raise self._bad(attempted, detail + (f"; {self._advice}" if self._advice else ""))

    def potential(self, element: str) -> Potential | None:
        """The effective core potential that goes with the functions of an element."""
        if self.file is not None:
            return self.file.potentials.get(element)
        own = _load_potential(self.name, element)
        plain = _plain(self.name)
        for pattern, family in _FAMILIES:
            match = pattern.fullmatch(plain)
            if own is None and match:
                own = _load_potential(match.expand(family), element)
        return own

    def needs_potential(self, element: str) -> bool:
        """Whether the functions of an element were made for a potential, whatever they look like."""
        from pyscf.gto import charge

        plain = _plain(self.name)
        return self.file is None and any(
            pattern.fullmatch(plain) and charge(element) >= first for pattern, first in _ALWAYS
        )

    def elements(self, what: str = "basis") -> list[str]:
        """Elements that the set has."""
        from pyscf.data.elements import ELEMENTS

        if self.file is not None:
            return list(self.file.potentials if what == "ecp" else self.file.shells)
        load = _load_potential if what == "ecp" else _load
        return [element for element in ELEMENTS[1:] if load(self.name, element)]

    def _bad(self, attempted: str, detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, attempted, detail=detail)


def _potential(
    source: _Source, given: _Source | None, element: str, sets: Sets
) -> tuple[Potential | None, str]:
    """The potential that replaces the core of an element, and the name of the set it belongs to."""
    own = source.potential(element)
    chosen = None if given is None else given.potential(element)
    if given is not None and given.file is None and chosen is None and not _has_potentials(given):
        raise OutcoreError(
            errno.EINVAL, f"--ecp {given.name}", detail="it is no set of effective core potentials"
        )
    if chosen is not None and own is not None and chosen[0] != own[0]:
        raise OutcoreError(
            errno.EINVAL,
            f"find a potential for {element}",
            detail=f"--ecp '{given.name if given else ''}' replaces {chosen[0]} electrons of {element}, the "
            f"functions of '{source.name}' belong to a potential that replaces {own[0]}",
        )
    found = own if chosen is None else chosen
    if found is not None and any(len(term) > 2 for part in found[1] for terms in part[1] for term in terms):
        sets.notes.append(f"spin-orbit terms of the potential of {element} are left out")
    has_core = _has_core(element, source.shells(element))
    if found is None:
        if not has_core or source.needs_potential(element):
            raise OutcoreError(
                errno.EINVAL,
                f"find a potential for {element}",
                detail=f"basis '{source.name}' has valence functions of {element} only, and no effective core "
                "potential is on record with it: name one with --ecp, or take an all-electron basis",
            )
    elif found[0] and own is None and has_core:
        sets.notes.append(
            f"'{source.name}' has functions for the core of {element}, which the potential replaces"
        )
    return found, given.title if given is not None and chosen is not None else source.title


def _has_potentials(source: _Source) -> bool:
    return bool(source.elements("ecp"))


def _check_kind(file: BasisFile, sets: Sets, cartesian: bool) -> None:
    """The file may say whether d functions and higher ones are cartesian."""
    if file.cartesian is None or file.cartesian == cartesian:
        return
    if any(shell[0] > 1 for shells in sets.basis.values() for shell in shells):
        said, way = ("CARTESIAN", "give --cart") if file.cartesian else ("SPHERICAL", "leave --cart out")
        raise OutcoreError(
            errno.EINVAL,
            "choose a basis",
            path=file.path,
            detail=f"its functions are {said}, it says: {way}, or change the file",
        )


def _has_core(element: str, shells: Shells) -> bool:
    """Whether s functions reach down to the nucleus: they must give about the energy of a single electron at the
    bare nucleus. Functions made for an effective core potential do not."""
    from pyscf import gto

    charge = gto.charge(element)
    if charge <= 2:
        return True
    s_shells = [shell for shell in shells if shell[0] == 0 and not isinstance(shell[1], int)]
    if not s_shells:
        return False
    atom = gto.Mole(atom=[("H", (0.0, 0.0, 0.0))], basis={"H": s_shells}, spin=1, verbose=0)
    atom.build(dump_input=False, parse_arg=False)
    values, vectors = np.linalg.eigh(atom.intor("int1e_ovlp"))
    scaled = vectors[:, values > 1e-10] / np.sqrt(values[values > 1e-10])
    energy = np.linalg.eigvalsh(
        scaled.T @ (atom.intor("int1e_kin") + charge * atom.intor("int1e_nuc")) @ scaled
    )[0]
    share = energy / (-0.5 * charge**2)
    if charge <= _HEAVY or share >= _CORE_SHARE:
        return bool(share >= _CORE_SHARE)
    tightest = max(row[0] for shell in s_shells for row in shell[1:])
    return bool(share >= _RELATIVISTIC_SHARE and tightest >= _TIGHT * charge**2)


# ---- PySCF's library ----


def _plain(name: str) -> str:
    """The name as the library spells it, without the part that truncates the set ("cc-pvtz@3s2p")."""
    return re.sub(r"[-_ ]", "", name.partition("@")[0]).lower()


def _names() -> set[str]:
    from pyscf.gto import basis as library

    return {_plain(name) for name in library.ALIAS}


def _is_known(name: str) -> bool:
    return _plain(name) in _names() or any(_load(name, element) for element in ("H", "C", "Au"))


def _load(name: str, element: str) -> Shells | None:
    """None: the library has no such set, or not for this element."""
    from pyscf.gto import basis as library

    plain = _plain(name)
    if not plain or not element or "\n" in name:
        return None
    # The library ignores the end of the name of a Pople set that it does not understand.
    if "(" in plain and not re.fullmatch(r"[0-9]+\+{0,2}g\((?:[0-9]?[dfg])+(?:,(?:[0-9]?[pdf])+)?\)", plain):
        return None
    try:
        with warnings.catch_warnings():  # the library warns about a package that might know more bases
            warnings.simplefilter("ignore")
            return list(library.load(name, element)) or None
    except Exception:  # many kinds: unknown names, missing files and elements
        return None


def _load_potential(name: str, element: str) -> Potential | None:
    from pyscf.gto import basis as library

    if _plain(name) not in _names() and not _load(name, element):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(library.load_ecp(name, element)) or None
    except Exception:  # many kinds: sets without potentials
        return None


def _ranges(elements: Iterable[str]) -> str:
    """ "H-Ne, Ar": elements in order of their numbers, neighbours together."""
    from pyscf.data.elements import ELEMENTS

    numbers = sorted(ELEMENTS.index(element) for element in elements)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(ELEMENTS[a] if a == b else f"{ELEMENTS[a]}-{ELEMENTS[b]}" for a, b in runs)
