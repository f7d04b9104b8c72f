"""Auxiliary basis sets: which one goes with an orbital basis, and molecules that carry it."""

from __future__ import annotations

import errno
import warnings
from typing import TYPE_CHECKING, Any, Literal

from outcore.chem import basis_sets
from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

Purpose = Literal["jk", "mp2"]

_UNIVERSAL = {"jk": "def2-universal-jkfit", "mp2": "def2-tzvpp-ri"}  # sets that have most elements
_TITLE = {"jk": "Coulomb and exchange", "mp2": "MP2"}


def build(mol: Mole, name: Any = None, purpose: Purpose = "jk") -> Mole:
    """The molecule with an auxiliary basis in place of its own. `name`: a set of PySCF's library or a file; what
    else PySCF takes as a basis; None: the set that PySCF has on record for the orbital basis; "auto": that, and
    even-tempered functions for the elements without one, as PySCF makes them; "etb" and "autoaux": even-tempered
    functions for all. Those of a ghost atom are those of its element.

    Raises OutcoreError (EINVAL): an unknown set, or one that lacks an element; no set on record. Even-tempered
    functions are never taken without being asked for.
    """
    from pyscf.df import addons

    symbols = list(dict.fromkeys(mol.atom_symbol(atom) for atom in range(mol.natm)))
    way = name.lower() if isinstance(name, str) else ""
    made: list[str] = []
    if name is None or way == "auto":
        name = _on_record(mol, purpose, symbols)
        made = [symbol for symbol in symbols if symbol not in name]
        if made and way != "auto":
            missing, universal = _elements(made), _UNIVERSAL[purpose]
            such = f"such as '{universal}', " if basis_sets.has(universal, missing) else ""
            raise OutcoreError(
                errno.EINVAL,
                f"find an auxiliary basis for {_TITLE[purpose]}",
                detail=f"none is on record for {', '.join(missing)} with the basis '{_name(mol.basis)}'; "
                f"name one, {such}or 'auto' for even-tempered functions (--auxbasis, or --jkbasis of the SCF)",
            )
    elif way in ("etb", "autoaux"):
        name, made = {}, symbols
    elif isinstance(name, str):
        name = basis_sets.auxiliary(name, symbols, _UNIVERSAL[purpose])
    named = _name(name) if name else ""
    if made:
        name |= {symbol: _even_tempered(mol, symbol, way) for symbol in made}
        kind = "even-tempered functions (autoaux)" if way == "autoaux" else "even-tempered functions"
        named += (" and " if named else "") + f"{kind} for {', '.join(_elements(made))}"
    auxmol = addons.make_auxmol(mol, name)
    auxmol.auxiliary_title = named
    return auxmol


def _elements(symbols: list[str]) -> list[str]:
    return list(dict.fromkeys(basis_sets.element_of(symbol) for symbol in symbols))


def _on_record(mol: Mole, purpose: Purpose, symbols: list[str]) -> dict[str, str]:
    """Names of the sets that go with the orbital basis, of the symbols that have one."""
    from pyscf.df import addons

    try:
        with warnings.catch_warnings():  # of a package that might know more bases
            warnings.simplefilter("ignore")
            found = addons.make_auxbasis(mol, mp2fit=purpose == "mp2")
    except RuntimeError:  # it makes the others itself, and cannot for all elements
        return {}
    return {symbol: each for symbol, each in found.items() if symbol in symbols and isinstance(each, str)}


def _even_tempered(mol: Mole, symbol: str, way: str) -> Any:
    """Made from the orbital basis of the atoms with this symbol, for the charge of their element."""
    from pyscf import gto
    from pyscf.df import addons

    element = basis_sets.element_of(symbol)
    shells = mol._basis.get(symbol)
    if not element or shells is None:
        raise OutcoreError(
            errno.EINVAL, "make an auxiliary basis", detail=f"'{symbol}' has no element, or no orbital basis"
        )
    atom = gto.Mole(atom=[(element, (0.0, 0.0, 0.0))], basis={element: shells}, spin=None, verbose=0)
    atom.build(dump_input=False, parse_arg=False)
    try:
        if way == "autoaux":
            return addons.make_auxmol(atom, {element: "autoaux"})._basis[element]
        return addons.aug_etb(atom)[element]
    except RuntimeError as error:
        raise OutcoreError(errno.EINVAL, "make an auxiliary basis", detail=f"{element}: {error}") from error


def title(auxmol: Mole) -> str:
    """Its name, or names, for people to read."""
    return str(auxmol.auxiliary_title)


def _name(basis: Any) -> str:
    if isinstance(basis, str):
        return basis
    if isinstance(basis, dict):
        return ", ".join(
            sorted({each if isinstance(each, str) else "given functions" for each in basis.values()})
        )
    return "given functions"
