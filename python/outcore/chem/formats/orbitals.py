"""Orbitals of an SCF in files for other programs: of each spin, with energies and occupations; or some of them on a
grid."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.formats import cube, trexio_file

CUBE = ".cube"
_ATTEMPTED = "write orbitals"


def check(option: str, path: Path | None) -> None:
    """Raises OutcoreError (EINVAL) if the ending of the name belongs to no format."""
    if path is not None and path.suffix not in (*FORMATS, CUBE):
        raise OutcoreError(
            errno.EINVAL, f"{option} {path}", detail=f"its name must end in {' or '.join((*FORMATS, CUBE))}"
        )
    if path is not None and path.suffix in trexio_file.SUFFIXES:
        trexio_file.module(_ATTEMPTED)


def write(path: Path, mf: Any, chosen: Sequence[Sequence[int]] | None = None) -> None:
    """Writes the orbitals of a PySCF mean-field object that has been run. Replaces an existing file. Not
    collective.

    chosen: numbers of the orbitals of a cube file, from 0, for each spin or for both together. Default: the highest
        occupied and the lowest empty one.
    Raises OutcoreError: EINVAL (another ending, no orbitals), and errors of the system."""
    check("write", path)
    if mf.mo_coeff is None:
        raise OutcoreError(errno.EINVAL, _ATTEMPTED, path=path, detail="the SCF has not been run")
    with plain_file.replaced(path, _ATTEMPTED) as new:
        if path.suffix == CUBE:
            _cube(new, mf, chosen)
        else:
            FORMATS[path.suffix](new, mf)


def _cube(path: Path, mf: Any, chosen: Sequence[Sequence[int]] | None) -> None:
    several = np.ndim(mf.mo_occ) == 2
    spins = [np.asarray(each) for each in mf.mo_coeff] if several else [np.asarray(mf.mo_coeff)]
    lists = [_frontier(each) for each in np.atleast_2d(mf.mo_occ)] if chosen is None else chosen
    if max((number for numbers in lists for number in numbers), default=0) >= spins[0].shape[1]:
        raise OutcoreError(errno.EINVAL, _ATTEMPTED, detail=f"there are {spins[0].shape[1]} orbitals")
    names = ("alpha", "beta") if several else ("",)
    titles = [(name, number) for name, numbers in zip(names, lists, strict=True) for number in numbers]
    columns = [c[:, list(numbers)] for c, numbers in zip(spins, lists, strict=True)]
    cube.write_orbitals(path, mf.mol, titles, np.hstack(columns))


def _frontier(occupied: Any) -> tuple[int, ...]:
    """The highest occupied and the lowest empty orbital, as far as there are such."""
    full, empty = np.flatnonzero(occupied > 0), np.flatnonzero(occupied <= 0)
    return (*map(int, full[-1:]), *map(int, empty[:1]))


def _molden(path: Path, mf: Any) -> None:
    from pyscf.tools import molden

    with path.open("w") as file:
        molden.header(mf.mol, file)
        spins = zip(*(np.asarray(each) for each in (mf.mo_coeff, mf.mo_energy, mf.mo_occ)), strict=True)
        every = list(spins) if np.ndim(mf.mo_occ) == 2 else [(mf.mo_coeff, mf.mo_energy, mf.mo_occ)]
        for spin, (coefficients, energies, occupied) in zip(("Alpha", "Beta"), every, strict=False):
            molden.orbital_coeff(
                mf.mol, file, np.asarray(coefficients), spin=spin, ene=np.asarray(energies), occ=occupied
            )


def _chkfile(path: Path, mf: Any) -> None:
    from pyscf.scf import chkfile

    energy, orbitals = float(mf.e_tot), (np.asarray(each) for each in (mf.mo_energy, mf.mo_coeff, mf.mo_occ))
    chkfile.dump_scf(mf.mol, str(path), energy, *orbitals)


FORMATS: dict[str, Callable[[Path, Any], None]] = {  # beside cube files, which have some of the orbitals
    ".molden": _molden,
    ".chk": _chkfile,
    **dict.fromkeys(trexio_file.SUFFIXES, trexio_file.write_state),
}
