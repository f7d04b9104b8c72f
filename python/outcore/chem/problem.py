"""Everything that integrals and orbitals depend on, as settings for `outcore.keep.problem`. They come from
libcint's tables, in an order that does not depend on offsets in the tables, and from PySCF's objects."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyscf.gto import Mole

Settings = dict[str, Any]

ROUNDED = ("contractions", "auxiliary contractions")  # up to rounding: their normalisation is computed


def integrals(mol: Mole) -> Settings:
    """Settings of integrals over basis functions with the Coulomb operator of the molecule, without nuclei and
    electrons."""
    from pyscf.gto import mole

    env = mol._env
    return {
        "geometry": np.ravel(mol.atom_coords()),  # Bohr
        "cartesian": bool(mol.cart),
        **_functions(mol),
        "omega": float(env[mole.PTR_RANGE_OMEGA]),
        "F12 exponent": float(env[mole.PTR_F12_ZETA]),
        "GTG exponent": float(env[mole.PTR_GTG_ZETA]),
        "cutoff of primitives": float(env[mole.PTR_EXPCUTOFF]),
        "gauge origin": env[mole.PTR_COMMON_ORIG : mole.PTR_COMMON_ORIG + 3],
    }


def auxiliary(auxmol: Mole) -> Settings:
    """Settings of an auxiliary basis of a molecule."""
    of_its_own = integrals(auxmol)
    return {
        "auxiliary basis": [of_its_own["basis"], of_its_own["cartesian"], of_its_own["geometry"]],
        "auxiliary contractions": of_its_own["contractions"],
        "omega of the metric": of_its_own["omega"],
    }


def molecule(mol: Mole) -> Settings:
    """Settings of orbitals: nuclei and electrons too."""
    from pyscf.gto import mole

    env, atoms = mol._env, mol._atm
    return {
        **integrals(mol),
        "nuclear charges": np.asarray(mol.atom_charges(), float),
        "nuclear model": [
            [int(atom[mole.NUC_MOD_OF]), float(env[atom[mole.PTR_ZETA]])]
            for atom in atoms  # point, Gaussian with this exponent, core potential
        ],
        "ECP": _core_potentials(mol),
        "pseudopotential": _plain(getattr(mol, "_pseudo", None) or None),
        "charge": int(mol.charge),
        "spin": int(mol.spin),
        "electrons": int(mol.nelectron),
    }


def mean_field(mf: Any) -> Settings:
    """Settings of orbitals of a PySCF mean-field object, without its one-electron Hamiltonian (see `restart`)."""
    from pyscf.lib import param

    own = vars(mf)  # to ask the object for a missing attribute would load all of PySCF
    x2c = own.get("with_x2c")
    relativity = None
    if x2c is not None:
        names = ("approx", "xuncontract", "basis")
        relativity = {name: _plain(getattr(x2c, name, None)) for name in names}
        relativity |= {"kind": type(x2c).__name__, "light speed": float(param.LIGHT_SPEED)}
    mol = mf.mol
    return {
        **molecule(mol),
        "relativistic treatment": relativity,
        "symmetry": mol.groupname if mol.symmetry else None,
        "irrep_nelec": _plain(own.get("irrep_nelec") or None),
        "functional": _plain(own.get("xc")),
        **{name: _plain(own[name]) for name in ("swapped", "sigma") if own.get(name)},
    }


def digest(*arrays: Any) -> str:
    """A digest of arrays that have to be the same bit by bit, such as orbitals."""
    total = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        total.update(f"{values.dtype.str} {values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()


def _functions(mol: Mole) -> Settings:
    from pyscf.gto import mole

    env, shells, contractions = mol._env, [], []
    for shell in mol._bas:
        primitives, contracted = int(shell[mole.NPRIM_OF]), int(shell[mole.NCTR_OF])
        numbers = [int(shell[which]) for which in (mole.ATOM_OF, mole.ANG_OF, mole.KAPPA_OF)]
        exponents, coefficients = int(shell[mole.PTR_EXP]), int(shell[mole.PTR_COEFF])
        shells.append([*numbers, contracted, *env[exponents : exponents + primitives].tolist()])
        contractions.append(env[coefficients : coefficients + primitives * contracted].tolist())
    return {"basis": shells, "contractions": contractions}


def _core_potentials(mol: Mole) -> list[list[Any]]:
    from pyscf.gto import mole

    env, found = mol._env, []
    for row in mol._ecpbas:
        primitives = int(row[mole.NPRIM_OF])
        numbers = [
            int(row[which]) for which in (mole.ATOM_OF, mole.ANG_OF, 3, mole.SO_TYPE_OF)
        ]  # 3: power of r
        for start in (int(row[mole.PTR_EXP]), int(row[mole.PTR_COEFF])):
            numbers += env[start : start + primitives].tolist()
        found.append(numbers)
    return found


def _plain(value: Any) -> Any:
    """The value in types that JSON can hold."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(type(value))
