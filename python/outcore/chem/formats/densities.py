"""One-particle densities in files for other programs. The ending of a name chooses the format."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.formats import cube, trexio_file
from outcore.job import preflight

Matrix = np.ndarray[Any, np.dtype[np.float64]]

SUFFIXES = (".molden", ".npz", ".cube", *trexio_file.SUFFIXES)
_ATTEMPTED = "write the density"


def check(option: str, path: Path | None) -> None:
    """Raises OutcoreError if the ending of the name belongs to no format, or if the package of the format is
    missing."""
    if path is not None and path.suffix not in SUFFIXES:
        raise OutcoreError(
            errno.EINVAL,
            f"{option} {path}",
            detail="its name must end in .molden (natural orbitals), .npz (matrices), .cube (values on a grid), "
            ".h5 or .trexio (TREXIO)",
        )
    if path is not None and path.suffix in trexio_file.SUFFIXES:
        trexio_file.module(_ATTEMPTED)


def check_root(number: str, roots: int, files: Mapping[str, Path | None]) -> None:
    """Raises OutcoreError (EINVAL) if --density-of names a root that is not there, or if no file (by its option) is
    asked for."""
    if all(each is None for each in files.values()):
        preflight.refuse({"--density-of": number != "1"}, f"without {' or '.join(files)}")
    if number not in map(str, range(1, max(1, roots) + 1)):
        raise OutcoreError(
            errno.EINVAL, f"--density-of {number}", detail=f"it may be a number from 1 to {roots}"
        )


def natural_orbitals(mol: Any, density: Matrix) -> tuple[Matrix, Matrix]:
    """Natural orbitals of a density over basis functions: occupations, the largest first, and orbitals [n][N]."""
    overlap = mol.intor_symmetric("int1e_ovlp")
    values, vectors = np.linalg.eigh(overlap)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    occupations, orbitals = np.linalg.eigh(root @ density @ root)
    return occupations[::-1], (inverse @ orbitals)[:, ::-1]


def write(path: Path, mol: Any, spins: Sequence[Matrix], weighted: Matrix | None = None) -> None:
    """Writes the symmetric densities [n][n] of alpha and of beta over basis functions, or one of both together for
    states whose spin density is not known. Replaces an existing file. Not collective.

    .molden: natural orbitals with their occupations.
    .npz: NumPy arrays over basis functions: `total`, `spin` (alpha minus beta, if known), and `weighted` (Hartree),
        if a method has it: see `gradients.Densities`.
    .cube: the density of all electrons (1/Bohr^3) at 80 points of each axis of a box around the molecule.
    .h5, .trexio: densities in natural orbitals.

    Raises OutcoreError."""
    with plain_file.replaced(path, _ATTEMPTED) as new:
        _write(new, mol, spins, weighted)


def _write(path: Path, mol: Any, spins: Sequence[Matrix], weighted: Matrix | None) -> None:
    total = np.sum(spins, axis=0)
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {"total": total}
        if len(spins) == 2:
            arrays["spin"] = spins[0] - spins[1]
        if weighted is not None:
            arrays["weighted"] = weighted
        with path.open("wb") as file:
            np.savez(file, **arrays)
    elif path.suffix == ".cube":
        cube.write_density(path, mol, total)
    elif path.suffix in trexio_file.SUFFIXES:
        trexio_file.write_densities(path, mol, spins, natural_orbitals(mol, total))
    else:
        from pyscf.tools import molden

        occupations, orbitals = natural_orbitals(mol, total)
        molden.from_mo(mol, str(path), orbitals, occ=occupations, ene=np.zeros(len(occupations)))
