"""Orbitals from files of other programs, as the start of an SCF: Molden and TREXIO files, chkfiles of PySCF."""

from __future__ import annotations

import contextlib
import errno
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.formats import trexio_file
from outcore.chem.formats.hdf5_text import text_of

if TYPE_CHECKING:
    from pyscf.gto import Mole

Array = np.ndarray[Any, np.dtype[np.float64]]

_ATTEMPTED = "begin with the orbitals of a file"
_LIMIT_BYTES = 4 << 30  # largest file: it is read whole
_MAX_MOMENTUM = 15  # largest angular momentum for which integrals exist
_DEPENDENT = 1e-4  # an orbital is left out if the part outside the earlier ones has less of its norm


def is_one(path: Path) -> bool:
    """Whether the path is a file, or a directory of TREXIO, and not one of a checkpoint."""
    return path.exists() and (not path.is_dir() or trexio_file.is_one(path))


def start(mf: Any, path: Path) -> dict[str, Array]:
    """Orbitals of the present molecule and kind (RHF, UHF, ROHF), made of those in a file. They are projected onto
    the functions of the molecule, made orthonormal, and filled in the order of their occupation in the file, then
    of their energy. So the file may have another basis, geometry, charge or kind, but not other atoms.

    Raises OutcoreError: EINVAL (other atoms, or neither kind of file), ENOENT, EIO."""
    there, found = _read(path)
    _check_atoms(there, mf.mol, path)
    overlap = mf.get_ovlp()
    spins = [_present(mf.mol, there, overlap, *each) for each in found]
    needed = max(mf.mol.nelec)
    if min(each.shape[1] for each in spins) < needed:
        raise _refused(path, f"it has fewer than {needed} orbitals that the present functions tell apart")
    alpha, beta = mf.mol.nelec
    if mf.istype("UHF"):
        least = min(each.shape[1] for each in spins)
        pair = [each[:, :least] for each in (spins if len(spins) == 2 else spins * 2)]
        occupied = np.array([np.arange(least) < count for count in (alpha, beta)], float)
        return {"mo_coeff": np.array(pair), "mo_occ": occupied, "mo_energy": np.zeros_like(occupied)}
    numbers = np.arange(spins[0].shape[1])
    occupied = (numbers < alpha).astype(float) + (numbers < beta)
    return {"mo_coeff": spins[0], "mo_occ": occupied, "mo_energy": np.zeros_like(occupied)}


def _present(
    mol: Mole, there: Mole, overlap: Array, coefficients: Any, occupied: Any, energies: Any
) -> Array:
    """Orthonormal orbitals [functions][orbitals] of the present molecule, in the order in which they are filled."""
    import scipy.linalg
    from pyscf.scf import addons

    order = np.lexsort((np.asarray(energies), -np.round(occupied, 6)))
    c = np.asarray(addons.project_mo_nr2nr(there, np.asarray(coefficients)[:, order], mol))
    values, vectors = np.linalg.eigh(overlap)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    inverse = (vectors / np.sqrt(np.maximum(values, 1e-10))) @ vectors.T
    q, r = scipy.linalg.qr(root @ c, mode="economic")
    kept = abs(np.diag(r)) > _DEPENDENT
    found: Array = inverse @ q[:, : len(kept)][:, kept]
    return found


def _read(path: Path) -> tuple[Mole, list[tuple[Any, Any, Any]]]:
    """Reads the molecule of a file, and coefficients, occupations and energies of each spin."""
    of_trexio = trexio_file.is_one(path)
    content = b"" if path.is_dir() else plain_file.read_bytes(path, _ATTEMPTED, _LIMIT_BYTES)
    try:
        if of_trexio:
            there, *values = trexio_file.read_orbitals(path)
        else:
            there, *values = _chkfile(path) if content[:8] == b"\x89HDF\r\n\x1a\n" else _molden(path)
        found = _of_spins(there, *values)
    except OutcoreError:
        raise
    except Exception as error:  # other parsers may raise anything for a damaged file
        raise _refused(
            path,
            "neither a Molden file nor a chkfile of PySCF nor a TREXIO file with orbitals "
            f"({type(error).__name__}: {error})",
        ) from error
    return there, found


def _of_spins(
    there: Mole, coefficients: Any, occupied: Any, energies: Any
) -> list[tuple[Array, Array, Array]]:
    """Coefficients, occupations and energies of each spin. Raises ValueError where they do not fit together."""
    several = len(occupied) == 2 and np.ndim(occupied[0]) == 1
    spins = (
        zip(coefficients, occupied, energies, strict=True)
        if several
        else [(coefficients, occupied, energies)]
    )
    found = [tuple(np.asarray(part, float) for part in spin) for spin in spins]
    for c, o, e in found:
        if c.ndim != 2 or c.shape[0] != there.nao or not c.shape[1] == len(o) == len(e):
            raise ValueError(
                f"coefficients {c.shape} of {there.nao} functions, {len(o)} occupations and {len(e)} energies"
            )
        if not all(np.isfinite(part).all() for part in (c, o, e)):
            raise ValueError("orbitals that are not finite")
    return [(c, o, e) for c, o, e in found]


def _check_tables(there: Mole) -> None:
    """Checks that offsets in PySCF's tables, which native code follows, lead to numbers. Raises ValueError."""
    from pyscf.gto import mole

    atoms, shells, numbers = there._atm, there._bas, len(there._env)
    if (
        atoms.ndim != 2
        or atoms.shape[1] != mole.ATM_SLOTS
        or shells.ndim != 2
        or shells.shape[1] != mole.BAS_SLOTS
    ):
        raise ValueError(f"tables of shapes {atoms.shape} and {shells.shape}")
    momentum, primitives, contractions = (
        shells[:, slot].astype(np.int64) for slot in (mole.ANG_OF, mole.NPRIM_OF, mole.NCTR_OF)
    )
    places = [(atoms[:, mole.PTR_COORD], 3), (shells[:, mole.PTR_EXP], primitives)]
    places.append((shells[:, mole.PTR_COEFF], primitives * contractions))
    ends = [(first, first.astype(np.int64) + count) for first, count in places]
    of_atom = shells[:, mole.ATOM_OF]
    if (
        ((momentum < 0) | (momentum > _MAX_MOMENTUM) | (primitives < 1) | (contractions < 1)).any()
        or ((of_atom < 0) | (of_atom >= len(atoms))).any()
        or any(((first < 0) | (end > numbers)).any() for first, end in ends)
        or not np.isfinite(there._env).all()
    ):
        raise ValueError("its table of functions leads nowhere")


def _molden(path: Path) -> tuple[Any, ...]:
    from pyscf.tools import molden

    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        there, energies, coefficients, occupied, *_ = molden.load(str(path))
    if coefficients is None or occupied is None:
        raise ValueError("no section [MO]")
    return there, coefficients, occupied, energies


def _value(file: Any, name: str, path: Path) -> Any:
    """The value of a dataset. It must not have more elements than the file has bytes: a damaged file may claim any
    shape. Raises ValueError."""
    dataset = file[name]
    if math.prod(dataset.shape) > path.stat().st_size:
        raise ValueError(f"{name} of shape {dataset.shape}")
    return dataset[()]


def _chkfile(path: Path) -> tuple[Any, ...]:
    """Reads a chkfile. It takes the molecule from tables of numbers only: PySCF's own reader evaluates text of the
    file."""
    import json

    import h5py
    from pyscf import gto

    with h5py.File(path, "r") as file:
        tables = json.loads(text_of(file["mol"], path))
        scf = [_value(file, f"scf/{name}", path) for name in ("mo_coeff", "mo_occ", "mo_energy")]
    there = gto.Mole()
    there.verbose, there.cart = 0, bool(tables.get("cart", False))
    there._atm, there._bas = (np.array(tables[name], np.int32) for name in ("_atm", "_bas"))
    there._env, there._built = np.array(tables["_env"], float), True
    _check_tables(there)
    return (there, *scf)


def _check_atoms(there: Mole, mol: Mole, path: Path) -> None:
    """Refuses a file with other atoms. With an effective core potential a file may have the reduced charge."""
    ours = [int(mol.atom_charge(atom)) for atom in range(mol.natm)]
    whole = [_nuclear_charge(mol, atom) for atom in range(mol.natm)]
    theirs = [int(there.atom_charge(atom)) for atom in range(there.natm)]
    if len(theirs) != len(ours) or any(
        found not in choices for found, choices in zip(theirs, zip(ours, whole, strict=True), strict=True)
    ):
        raise _refused(path, "it is of other atoms than the molecule, or has them in another order")


def _nuclear_charge(mol: Mole, atom: int) -> int:
    from pyscf.data.elements import charge

    return int(charge(mol.atom_pure_symbol(atom))) if mol.atom_charge(atom) else 0


def _refused(path: Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _ATTEMPTED, path=path, detail=detail)
