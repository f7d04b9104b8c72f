"""Molecules from files, with errors that name the line, the element or the basis."""

from __future__ import annotations

import difflib
import errno
import hashlib
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

Atoms = list[tuple[str, tuple[float, float, float]]]


def read_xyz(path: str | Path) -> Atoms:
    """Atoms of an XYZ file: a count, a comment, then lines of element and three coordinates in Angstrom.

    Raises OutcoreError: file missing or unreadable, or a line that is not understood (with its number).
    """
    path = Path(path)
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "read geometry", path=path) from error
    except UnicodeDecodeError as error:
        raise _bad(path, "it is not a text file") from error

    if not lines or not re.fullmatch("[0-9]{1,9}", lines[0].strip()):
        raise _bad(path, f"line 1 must be the number of atoms, not '{lines[0][:40] if lines else ''}'")
    count = int(lines[0])
    if count == 0:
        raise _bad(path, "it has no atoms")
    if len(lines) < count + 2:
        raise _bad(
            path, f"line 1 says {count} atoms, but only {max(0, len(lines) - 2)} lines follow the comment"
        )
    return [_atom(path, number, lines[number - 1]) for number in range(3, count + 3)]


def _atom(path: Path, number: int, line: str) -> tuple[str, tuple[float, float, float]]:
    from pyscf.data.elements import ELEMENTS

    words = line.split()
    try:
        x, y, z = (float(word) for word in words[1:4])
    except ValueError:
        raise _bad(path, f"line {number} is not 'element x y z': '{line[:60]}'") from None
    symbol = words[0].capitalize()
    if symbol not in ELEMENTS[1:]:
        raise _bad(path, f"line {number} names an unknown element: '{words[0]}'")
    return symbol, (x, y, z)


def build(
    path: str | Path, basis: str, *, charge: int = 0, spin: int | None = None, cartesian: bool = False
) -> Mole:
    """PySCF molecule from an XYZ file. `spin` is the number of unpaired electrons; None: 0 or 1, as the
    number of electrons demands. Raises OutcoreError for a basis that is unknown or lacks an element, and for
    a charge or spin that the electrons cannot have."""
    from pyscf import gto

    atoms = read_xyz(path)
    for element in dict.fromkeys(symbol for symbol, _ in atoms):
        check_basis(basis, element)
    mol = gto.Mole(
        atom=atoms, basis=basis, charge=charge, spin=None, cart=cartesian, verbose=0, unit="Angstrom"
    )
    try:
        mol.build(dump_input=False, parse_arg=False)
    except Exception as error:
        raise OutcoreError(errno.EINVAL, "build the molecule", path=path, detail=str(error)) from error
    electrons = mol.nelectron
    if electrons < 1:
        raise OutcoreError(
            errno.EINVAL,
            "build the molecule",
            path=path,
            detail=f"charge {charge} leaves {electrons} electrons",
        )
    if spin is not None:
        if spin < 0 or spin > electrons or (electrons - spin) % 2:
            raise OutcoreError(
                errno.EINVAL,
                "build the molecule",
                path=path,
                detail=f"{electrons} electrons cannot have {spin} unpaired ones; charge {charge}, --spin {spin}",
            )
        mol.spin = spin
        mol.build(dump_input=False, parse_arg=False)
    return mol


def check_basis(basis: str, element: str, kind: str = "basis", fallback: str = "") -> None:
    """Raises OutcoreError (EINVAL) for a basis that is unknown or lacks an element; `fallback` is suggested."""
    from pyscf.gto import basis as library

    try:
        with warnings.catch_warnings():  # of a package that might know more bases
            warnings.simplefilter("ignore")
            shells = library.load(basis, element)
    except Exception as error:
        known = {name.replace("-", "").lower() for name in library.ALIAS}
        wanted = basis.replace("-", "").replace("_", "").lower()
        if wanted in known:
            detail = f"{kind} '{basis}' has no element {element}"
        else:
            close = difflib.get_close_matches(wanted, known, 3)
            hint = f"; similar: {', '.join(close)}" if close else ""
            detail = f"unknown {kind} '{basis}'{hint}"
        if fallback:
            detail += f"; '{fallback}' has most elements"
        raise OutcoreError(errno.EINVAL, f"find a basis for {element}", detail=detail) from error
    if not shells:
        raise OutcoreError(
            errno.EINVAL, f"find a basis for {element}", detail=f"{kind} '{basis}' has no element {element}"
        )


def _bad(path: Path, what: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "read geometry", path=path, detail=what)


def problem(mol: Mole) -> NDArray[np.float64]:
    """What makes the problem, as numbers: nuclei, shells, electrons. Not PySCF's own tables: where things lie in
    those changes from run to run."""
    parts: list[Any] = [[mol.charge, mol.spin, mol.cart], mol.atom_charges(), np.ravel(mol.atom_coords())]
    for shell in range(mol.nbas):
        parts.append([mol.bas_atom(shell), mol.bas_angular(shell)])
        parts += [mol.bas_exp(shell), np.ravel(mol.bas_ctr_coeff(shell))]
    return np.concatenate(parts).astype(np.float64)


def integrals_key(mol: Mole) -> str:
    """What the integrals of this very object depend on, electrons not among it, but range separation: the same as
    long as it is not changed. Of PySCF's own tables, so not the same in another run (see `problem`)."""
    digest = hashlib.sha256()
    for part in (mol._atm, mol._bas, mol._env):
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(b"cartesian" if mol.cart else b"spherical")
    return digest.hexdigest()


def same_problem(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether two problems differ by no more than the rounding of a geometry that was written and read."""
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=1e-12))
