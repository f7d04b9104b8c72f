"""Auxiliary basis sets: which one goes with an orbital basis, and molecules that carry it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Literal

from outcore.chem.molecule import check_basis
from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

Purpose = Literal["jk", "mp2"]

_UNIVERSAL = {"jk": "def2-universal-jkfit", "mp2": "def2-tzvpp-ri"}  # sets that have most elements
_TITLE = {"jk": "Coulomb and exchange", "mp2": "MP2"}


def build(mol: Mole, name: Any = None, purpose: Purpose = "jk") -> Mole:
    """The molecule with an auxiliary basis in place of its own: `name` (what PySCF takes as a basis, or "etb" for
    even-tempered functions), or the set that PySCF has on record for the orbital basis.

    Raises OutcoreError (EINVAL): an unknown set, or one that lacks an element; no set on record. Even-tempered
    functions are never taken without being asked for.
    """
    from pyscf.df import addons

    if name is None:
        name = addons.make_auxbasis(mol, mp2fit=purpose == "mp2")
        missing = sorted(element for element, found in name.items() if not isinstance(found, str))
        if missing:
            raise OutcoreError(
                errno.EINVAL,
                f"find an auxiliary basis for {_TITLE[purpose]}",
                detail=f"none is on record for {', '.join(missing)} with the basis '{_name(mol.basis)}'; name one, "
                f"such as '{_UNIVERSAL[purpose]}', or 'etb' for even-tempered functions (--auxbasis)",
            )
    elif isinstance(name, str) and name.lower() == "etb":
        name = addons.aug_etb(mol)
    elif isinstance(name, str) and name.lower() != "autoaux":
        for element in dict.fromkeys(mol.atom_pure_symbol(atom) for atom in range(mol.natm)):
            check_basis(name, element, kind="auxiliary basis", fallback=_UNIVERSAL[purpose])
    return addons.make_auxmol(mol, name)


def title(auxmol: Mole) -> str:
    """Its name, or names, for people to read."""
    return _name(auxmol.basis)


def _name(basis: Any) -> str:
    if isinstance(basis, str):
        return basis
    if isinstance(basis, dict):
        return ", ".join(
            sorted({each if isinstance(each, str) else "given functions" for each in basis.values()})
        )
    return "given functions"
