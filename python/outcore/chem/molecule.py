"""Molecules from files and options, with errors that name the line, the element or the basis."""

from __future__ import annotations

import ctypes
import errno
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem import basis_sets
from outcore.chem import geometry as geometries
from outcore.chem.geometry import Geometry

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyscf.gto import Mole

_BUILD = "build the molecule"
_CHARGES_SUM = 0.05  # largest sum of the atomic charges of a neutral molecule: they are rounded

Say = Callable[[str], None]


def build(
    path: str | Path,
    basis: str,
    *,
    charge: int | None = None,
    spin: int | None = None,
    cartesian: bool = False,
    ecp: str | None = None,
    frame: int | None = None,
    unit: str | None = None,
    say: Say | None = None,
) -> Mole:
    """PySCF molecule from an XYZ file.

    basis, ecp: names of PySCF's library or files; see `basis_sets.orbital`. frame, unit: see `geometry.read`.
    charge: None: that of the comment in the file, or 0. spin: number of unpaired electrons; None: that of the
    comment, or else 0 or 1, by the number of electrons. `say` gets a line for each further decision.
    Raises OutcoreError if a statement is not understood or contradicts another, or if something is missing.
    """
    from pyscf import gto

    geometry = geometries.read(path, frame=frame, unit=unit)
    sets = basis_sets.orbital(basis, ecp, [atom.symbol for atom in geometry.atoms], cartesian=cartesian)
    mol = gto.Mole(
        atom=[(atom.symbol, atom.position) for atom in geometry.atoms],
        basis=sets.basis,
        ecp=sets.potentials,
        charge=_charge(geometry, charge),
        spin=None,
        cart=cartesian,
        verbose=0,
        unit=geometry.unit.capitalize(),
    )
    try:
        mol.build(dump_input=False, parse_arg=False)
    except Exception as error:
        raise OutcoreError(errno.EINVAL, _BUILD, path=path, detail=str(error)) from error
    if mol.nelectron < 1:
        raise _refused(path, f"charge {mol.charge} leaves {mol.nelectron} electrons")
    unpaired = _spin(geometry, spin, mol)
    if unpaired is not None:
        mol.spin = unpaired
        mol.build(dump_input=False, parse_arg=False)
    if max(mol.nelec) > mol.nao:
        raise _refused(
            path, f"{max(mol.nelec)} electrons of one spin are too many for {mol.nao} functions of '{basis}'"
        )
    ghosts = sum(atom.ghost for atom in geometry.atoms)
    if ghosts:
        geometry.notes.append(
            f"{ghosts} of {mol.natm} atoms are ghosts: functions without charge and electrons"
        )
    for note in geometry.notes + sets.notes if say else []:
        say(note)  # type: ignore[misc]
    return mol


def _charge(geometry: Geometry, charge: int | None) -> int:
    """The charge of the option, or of the comment. The two must not contradict each other."""
    said = geometry.comment.charge
    if charge is not None:
        if said is not None and said != charge:
            raise geometry.refuse(f"its comment says charge {said}, --charge says {charge}")
        return charge
    for option, statement, value in geometry.comment.ambiguous:
        if option == "--charge" and value != (said or 0):
            raise geometry.refuse(f"the charge is not clear, {statement}: give --charge")
    if said is not None:
        geometry.notes.append(f"charge {said}, as the comment of {geometry.path.name} says")
    elif geometry.charges is not None and abs(geometry.charges) > _CHARGES_SUM:
        raise geometry.refuse(
            f"the charges of its atoms add up to {geometry.charges:g}, and it says no charge of the molecule: "
            "give --charge"
        )
    return said or 0


def _spin(geometry: Geometry, spin: int | None, mol: Mole) -> int | None:
    """Number of unpaired electrons; None: as few as possible."""
    said = geometry.comment.unpaired
    if spin is not None and said is not None and said != spin:
        raise geometry.refuse(
            f"its comment says {said} unpaired electrons (multiplicity {said + 1}), --spin says {spin}"
        )
    unpaired = said if spin is None else spin
    if unpaired is not None and (unpaired < 0 or unpaired > mol.nelectron or (mol.nelectron - unpaired) % 2):
        source = f"--spin {unpaired}" if spin is not None else "as the comment says"
        raise _refused(
            geometry.path,
            f"{mol.nelectron} electrons cannot have {unpaired} unpaired ones; charge {mol.charge}, {source}",
        )
    if spin is None:
        for option, statement, value in geometry.comment.ambiguous:
            if option == "--spin" and value != (mol.nelectron % 2 if said is None else said):
                raise geometry.refuse(f"the spin is not clear, {statement}: give --spin")
        if said is not None:
            geometry.notes.append(f"{said} unpaired electrons, as the comment of {geometry.path.name} says")
    return unpaired


def _refused(path: str | Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _BUILD, path=path, detail=detail)


def integrals_key(mol: Mole) -> str:
    """A digest of everything that the integrals of this object depend on: range separation is included, electrons
    are not. It stays the same as long as the object is not changed. It is made of PySCF's own tables, so it differs
    in another run (see `chem.problem`)."""
    from pyscf.gto import mole

    digest = hashlib.sha256()
    env = mol._env.copy()
    # PySCF writes the offset of effective core potentials there when it first needs it, in the midst of an SCF.
    env[[mole.AS_ECPBAS_OFFSET, mole.AS_NECPBAS]] = 0
    for part in (mol._atm, mol._bas, env):
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(b"cartesian" if mol.cart else b"spherical")
    return digest.hexdigest()


def native_basis(mol: Mole, coordinates: NDArray[np.float64] | None = None) -> _core.Basis:
    """The molecule's basis for the native code, with the libcint that PySCF has loaded. coordinates: [atoms][3]
    (Bohr), in place of those of the molecule."""
    from pyscf.gto import mole
    from pyscf.gto.moleintor import libcgto

    env = np.array(mol._env, np.float64)
    if coordinates is not None:
        env[mol._atm[:, mole.PTR_COORD][:, None] + np.arange(3)] = coordinates

    def address(name: str) -> int:
        return int(ctypes.cast(getattr(libcgto, name), ctypes.c_void_p).value or 0)

    return _core.Basis(
        np.ascontiguousarray(mol._atm, np.int32).ravel(),
        np.ascontiguousarray(mol._bas, np.int32).ravel(),
        env,
        bool(mol.cart),
        address("int2e_cart" if mol.cart else "int2e_sph"),
        address("int2e_optimizer"),
        address("CINTdel_optimizer"),
    )
