"""Orbitals of an SCF in files for other programs: of each spin, with energies and occupations."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.formats import trexio_file

_ATTEMPTED = "write orbitals"


def check(option: str, path: Path | None) -> None:
    """Raises OutcoreError (EINVAL) if the ending of the name belongs to no format."""
    if path is not None and path.suffix not in FORMATS:
        raise OutcoreError(
            errno.EINVAL, f"{option} {path}", detail=f"its name must end in {' or '.join(FORMATS)}"
        )
    if path is not None and path.suffix in trexio_file.SUFFIXES:
        trexio_file.module(_ATTEMPTED)


def write(path: Path, mf: Any) -> None:
    """Writes the orbitals of a PySCF mean-field object that has been run. Replaces an existing file. Not
    collective.

    Raises OutcoreError: EINVAL (another ending, no orbitals), and errors of the system."""
    check("write", path)
    if mf.mo_coeff is None:
        raise OutcoreError(errno.EINVAL, _ATTEMPTED, path=path, detail="the SCF has not been run")
    with plain_file.replaced(path, _ATTEMPTED) as new:
        FORMATS[path.suffix](new, mf)


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


FORMATS: dict[str, Callable[[Path, Any], None]] = {
    ".molden": _molden,
    ".chk": _chkfile,
    **dict.fromkeys(trexio_file.SUFFIXES, trexio_file.write_state),
}
