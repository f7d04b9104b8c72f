"""Auxiliary basis sets: the choice of one for an orbital basis, and molecules with it."""

from __future__ import annotations

import errno
import re
import warnings
from typing import TYPE_CHECKING, Any, Literal

from outcore.base.errors import OutcoreError
from outcore.chem import basis_sets

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

Purpose = Literal["jk", "mp2"]

_UNIVERSAL = {"jk": "def2-universal-jkfit", "mp2": "def2-tzvpp-ri"}  # sets that have most elements
_SUFFIX = re.compile("-(jkfit|rifit|ri)$")  # in the name of an auxiliary set, after that of its orbital basis
_TITLE = {"jk": "Coulomb and exchange", "mp2": "MP2"}


def build(mol: Mole, name: Any = None, purpose: Purpose = "jk") -> Mole:
    """The molecule with an auxiliary basis in place of its own. name: a set of PySCF's library or a file, or
    anything else that PySCF reads as a basis; None: the set that PySCF has on record for the orbital basis;
    "auto": that set, and PySCF's even-tempered functions for elements without one; "etb" and "autoaux":
    even-tempered functions for all. A ghost atom gets the functions of its element. A set on record that was made
    for another orbital basis is used, and `stand_in` says so.

    Raises OutcoreError (EINVAL): an unknown set, or one that lacks an element; no set on record; no atoms.
    Even-tempered functions are used only on request.
    """
    from pyscf.df import addons

    symbols = list(dict.fromkeys(mol.atom_symbol(atom) for atom in range(mol.natm)))
    if not symbols:
        raise OutcoreError(
            errno.EINVAL,
            f"find an auxiliary basis for {_TITLE[purpose]}",
            detail="a model without atoms has none",
        )
    way = name.lower() if isinstance(name, str) else ""
    named, made, foreign = "", list[str](), list[str]()
    if name is None or way in ("auto", "etb", "autoaux"):
        name = {symbol: _of_element(mol, symbol, way, purpose) for symbol in symbols}
        made = [symbol for symbol, functions in name.items() if not isinstance(functions, str)]
        if made and not way:
            missing, universal = _elements(made), _UNIVERSAL[purpose]
            such = f"such as '{universal}', " if basis_sets.has(universal, missing) else ""
            raise OutcoreError(
                errno.EINVAL,
                f"find an auxiliary basis for {_TITLE[purpose]}",
                detail=f"none is on record for {', '.join(missing)} with the basis '{_name(mol.basis)}'; "
                f"name one, {such}or 'auto' for even-tempered functions (--auxbasis, or --jkbasis of the SCF)",
            )
        taken = {symbol: each for symbol, each in name.items() if isinstance(each, str)}
        named = ", ".join(sorted(set(taken.values())))
        pairs = {(each, _orbital_basis(mol, symbol)) for symbol, each in taken.items()}
        foreign = [
            f"{each} for {basis}" for each, basis in sorted(pairs) if not _made_for(each, basis, purpose)
        ]
    elif isinstance(name, str):
        name, named = basis_sets.auxiliary(name, symbols, _UNIVERSAL[purpose]), name
    else:
        named = _name(name)
    if made:
        kind = "even-tempered functions (autoaux)" if way == "autoaux" else "even-tempered functions"
        named += (" and " if named else "") + f"{kind} for {', '.join(_elements(made))}"
    auxmol = addons.make_auxmol(mol, name)
    auxmol.auxiliary_title = named
    auxmol.auxiliary_stand_in = ", ".join(foreign)
    return auxmol


def _elements(symbols: list[str]) -> list[str]:
    return list(dict.fromkeys(basis_sets.element_of(symbol) for symbol in symbols))


def _of_element(mol: Mole, symbol: str, way: str, purpose: Purpose) -> Any:
    """The functions for the atoms with this symbol: the name of the set on record for their basis, or functions
    that PySCF makes from their basis. PySCF makes them for an atom of the element, as a ghost has no nucleus."""
    from pyscf import gto
    from pyscf.df import addons

    element = basis_sets.element_of(symbol)
    basis = _orbital_basis(mol, symbol) or _entry(mol._basis, symbol)
    if not element or basis is None:
        raise OutcoreError(
            errno.EINVAL, "find an auxiliary basis", detail=f"'{symbol}' has no element, or no orbital basis"
        )
    try:
        with warnings.catch_warnings():  # the library warns about a package that might know more bases
            warnings.simplefilter("ignore")
            atom = gto.Mole(atom=[(element, (0.0, 0.0, 0.0))], basis=basis, spin=None, verbose=0)
            atom.build(dump_input=False, parse_arg=False)
            if way == "autoaux":
                return addons.make_auxmol(atom, {element: "autoaux"})._basis[element]
            if way == "etb":
                return addons.aug_etb(atom)[element]
            return addons.make_auxbasis(atom, mp2fit=purpose == "mp2")[element]
    except RuntimeError as error:
        raise OutcoreError(errno.EINVAL, "make an auxiliary basis", detail=f"{element}: {error}") from error


def _orbital_basis(mol: Mole, symbol: str) -> str:
    """The name of the orbital basis of the atoms with this symbol; empty if it has none."""
    basis = mol.basis if isinstance(mol.basis, str) else _entry(mol.basis, symbol)
    return basis if isinstance(basis, str) else ""


def _made_for(name: str, basis: str, purpose: Purpose) -> bool:
    """Whether an auxiliary set has the name of an orbital basis, or the Basis Set Exchange assigns it to that
    basis."""
    from pyscf.gto import basis as names
    from pyscf.gto import mole

    plain = names._format_basis_name(basis).lower()
    kind = "jkfit" if purpose == "jk" else "rifit"
    on_record = mole.BSE_META.get(plain, (None, None, {}))[2].get(kind)
    return bool(name == on_record or names._format_basis_name(_SUFFIX.sub("", name)).lower() == plain)


def _entry(table: Any, symbol: str) -> Any:
    """The entry of a PySCF table for a symbol: its own, or that of the symbol without its label, or that of its
    element, or the one for all others."""
    if not isinstance(table, dict):
        return None
    plain = {re.sub("[^A-Z0-9]", "", str(key).upper()): value for key, value in table.items()}
    own = re.sub("[^A-Z0-9]", "", symbol.upper())
    names = (own, re.sub("[0-9]", "", own), basis_sets.element_of(symbol).upper(), "DEFAULT")
    return next((plain[name] for name in names if name in plain), None)


def title(auxmol: Mole) -> str:
    """The name or names of the auxiliary basis, for the user."""
    return str(auxmol.auxiliary_title)


def stand_in(auxmol: Mole) -> str:
    """The sets on record that were made for another orbital basis than that of the molecule, as in "def2-svp-jkfit
    for sto-3g"; "" if there are none."""
    return str(auxmol.auxiliary_stand_in)


def warning(auxmol: Mole, purpose: Purpose) -> str:
    """A line about sets that were made for another orbital basis; "" if there are none."""
    sets = stand_in(auxmol)
    return (
        f"auxiliary basis of {_TITLE[purpose]}: {sets}, which it was not made for: errors may be larger than "
        "usual; name a set, or 'autoaux' for functions made from the basis"
        if sets
        else ""
    )


def warn(auxmol: Mole, purpose: Purpose, world: World) -> None:
    """Writes the line of `warning` to PySCF's log of the molecule, at the first process."""
    line = warning(auxmol, purpose)
    if line and world.rank == 0:
        from pyscf.lib import logger

        logger.warn(auxmol, "%s", line)


def _name(basis: Any) -> str:
    if isinstance(basis, str):
        return basis
    if isinstance(basis, dict):
        return ", ".join(
            sorted({each if isinstance(each, str) else "given functions" for each in basis.values()})
        )
    return "given functions"
