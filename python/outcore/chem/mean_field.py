"""PySCF's mean-field objects: the class for a molecule, checks before and after an SCF, and pickle for objects
whose classes are made at run time."""

from __future__ import annotations

import errno
import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.reference import mark_canonical

if TYPE_CHECKING:
    from pyscf.gto import Mole

Kind = Literal["RHF", "UHF", "ROHF"]

_DEPENDENT = 1e-9  # an eigenvalue of the overlap below it is 0 within rounding
NEAR = 1e-2  # Hartree between occupied and empty orbitals: below it noise may choose the state of an SCF
_ELECTRONS = 1e-4  # a smaller difference in the number of electrons is rounding


def make(mol: Mole, kind: Kind) -> Any:
    """PySCF's object for a molecule. The class is the one that PySCF's functions RHF, UHF and ROHF choose: RHF with
    unpaired electrons is ROHF, and a molecule with symmetry gets a class with irreducible representations."""
    from pyscf.scf import hf, hf_symm, rohf, uhf, uhf_symm

    if kind == "RHF" and mol.spin != 0:
        kind = "ROHF"
    symmetric = bool(mol.symmetry) and mol.groupname != "C1"
    classes = {
        "RHF": (hf.RHF, hf_symm.SymAdaptedRHF),
        "UHF": (uhf.UHF, uhf_symm.SymAdaptedUHF),
        "ROHF": (rohf.ROHF, hf_symm.SymAdaptedROHF),
    }
    return classes[kind][symmetric](mol)


def give_orbitals(mf: Any) -> None:
    """Gives the object placeholder orbitals of the right number and occupation: a plan reads nothing else."""
    mol = mf.mol
    overlaps, vectors = np.linalg.eigh(mol.intor_symmetric("int1e_ovlp"))
    coefficients = (vectors / np.sqrt(abs(overlaps)))[:, overlaps > _DEPENDENT]
    occupations = np.array([np.arange(coefficients.shape[1]) < count for count in mol.nelec], float)
    if mf.istype("UHF"):
        coefficients = np.stack([coefficients] * 2)
    else:
        occupations = occupations.sum(0)
    mf.mo_coeff, mf.mo_occ = coefficients, occupations
    mf.mo_energy = np.where(occupations > 0, -1.0, 1.0)
    mf.converged = True
    mark_canonical(mf)


def gradient(mf: Any) -> float:
    """What the orbital gradient is converged to."""
    return float(mf.conv_tol**0.5 if mf.conv_tol_grad is None else mf.conv_tol_grad)


def expected_cycles(mf: Any) -> int:
    """How many cycles DIIS takes as a rule to `gradient`, not more than it may take."""
    # Decades by which a cycle lowers the gradient: 0.76 of ethane, 0.44 of C14H8F6, with their electrons between.
    of_each = min(0.9, max(0.4, 1.2 - 0.35 * math.log10(max(1, mf.mol.nelectron))))
    falls = max(0.0, -math.log10(gradient(mf)))
    return int(min(1 + math.ceil(falls / of_each), mf.max_cycle))


def check_before(mf: Any) -> None:
    """Raises OutcoreError for settings that an SCF would ignore. Does not communicate with other processes."""
    from pyscf.scf import hf, rohf

    kind, mol = type(mf).__name__, mf.mol
    closed = isinstance(mf, hf.RHF) and not isinstance(mf, rohf.ROHF)
    if closed and mol.spin != 0 and "get_occ" not in vars(mf) and not mf.istype("_SmearingSCF"):
        raise OutcoreError(
            errno.EINVAL,
            "restricted Hartree-Fock",
            detail=f"{kind} has closed shells, and the molecule {mol.nelectron} electrons, {mol.spin} of them "
            "unpaired; take ROHF or UHF (the function RHF of outcore.chem does)",
        )
    knows = any("irrep_nelec" in getattr(each, "_keys", ()) for each in type(mf).__mro__)
    if vars(mf).get("irrep_nelec") and not knows:
        raise OutcoreError(
            errno.EINVAL,
            "occupy irreducible representations",
            detail=f"irrep_nelec has no effect on {kind}: build the molecule with symmetry=True or the name of a "
            "group before the object is made of it",
        )


def check_after(mf: Any) -> None:
    """Raises OutcoreError if the occupied orbitals do not hold as many electrons as the molecule has."""
    if mf.mo_occ is None:
        return
    electrons = float(np.sum([np.sum(each) for each in mf.mo_occ]))
    if abs(electrons - mf.mol.nelectron) > _ELECTRONS:
        raise OutcoreError(
            errno.EINVAL,
            "SCF",
            detail=f"its orbitals hold {electrons:.6g} electrons, the molecule has {mf.mol.nelectron}",
        )


def gap(energies: Any, occupied: Any) -> float:
    """The least difference (Hartree) between an empty and an occupied orbital of one spin."""
    least = math.inf
    pairs = ((energies, occupied),) if np.ndim(occupied) == 1 else zip(energies, occupied, strict=True)
    for each, of_each in pairs:
        for filled in {float(value) for value in of_each if value > 0}:
            below, above = each[of_each >= filled], each[of_each < filled]
            if len(below) and len(above):
                least = min(least, abs(float(above.min() - below.max())))
    return least


def refused(detail: str) -> OutcoreError:
    """An error about an operation that the object does not support."""
    return OutcoreError(errno.ENOTSUP, "use a mean-field object", detail=detail)


# ---- classes made at run time ----


def describe(cls: type) -> Any:
    """A class as (module, name) where it can be imported, else as (name, [its bases]). See `remake`."""
    module = import_module(cls.__module__)
    if getattr(module, cls.__name__, None) is cls:
        return cls.__module__, cls.__name__
    return cls.__name__, [describe(base) for base in cls.__bases__]


def remake(described: Any) -> Any:
    """An object of a class that `describe` has described, with no attributes yet."""
    cls = _class_of(described)
    return cls.__new__(cls)


def _class_of(described: Any) -> Any:
    from pyscf import lib

    first, second = described
    if isinstance(second, str):
        return getattr(import_module(first), second)
    return lib.misc.make_class(tuple(_class_of(base) for base in second), first)
