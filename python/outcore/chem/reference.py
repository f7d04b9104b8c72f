"""The reference of a correlated method, from an SCF object: orbitals of each spin, or a refusal with the reason."""

from __future__ import annotations

import errno
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem.frozen import Asked, Frozen

if TYPE_CHECKING:
    from outcore.job.world import World

Matrix = NDArray[np.float64]

NONCANONICAL = ("refuse", "semicanonical", "diagonal")

_ATTEMPTED = "take the reference of a correlation method"
_WHOLE = 1e-8  # largest difference of occupations from 0, 1 or 2
_ORTHONORMAL = 1e-6  # largest error of orthonormality, with the overlap of the present molecule
_CANONICAL = (
    1e-6  # Hartree: off-diagonal Fock elements below it, inside occupied and virtual orbitals, are rounding
)
_STATIONARY = (
    1e-8  # Hartree, or 10 times conv_tol: single excitations of a stationary determinant contribute less
)
_SAME_ENERGY = 1e-6  # Hartree: two energies of one determinant differ by less
_GAP = 1e-6  # least gap between occupied and virtual orbitals (Hartree)


@dataclass(frozen=True)
class Spin:
    """Orbitals of one spin, occupied ones first, each kind by energy (Hartree). `numbers`: their numbers in the
    mean-field object, from 0, before any were made canonical. `fock`: their Fock matrix, set by `as_given`."""

    coefficients: Matrix
    energies: Matrix
    occupied: int
    numbers: NDArray[np.int64]
    fock: Matrix | None = None


@dataclass(frozen=True)
class Reference:
    """One spin if `restricted`, else two. `frozen`: orbitals that are not correlated, set by `of`. `singles`:
    second-order energy of single excitations of the correlated orbitals, 0 for a stationary determinant. `note`
    says how the orbitals were changed, if at all. `given` is the fingerprint of the original orbitals: orbitals
    that are made canonical a second time differ by rounding, and degenerate ones by more. `energy`: of the
    determinant (Hartree), set by `as_given`. `overlap`: of the functions."""

    restricted: bool
    spins: list[Spin]
    frozen: Frozen = field(default_factory=Frozen)
    singles: float = 0.0
    note: str = ""
    given: str = ""
    energy: float = math.nan
    overlap: Matrix = field(default_factory=lambda: np.empty((0, 0)))


def mark_canonical(mf: Any) -> None:
    """Marks the orbitals of `mf` as those of its converged SCF, so that `of` need not check them with a Fock
    matrix. Changed orbitals or energies undo the mark."""
    mf._canonical = _fingerprint(mf)


def keep_focks(mf: Any) -> None:
    """Computes and stores the Fock matrices of the present orbitals for `of` and `as_given`, before the integrals
    of `mf` are closed. Changed orbitals or energies make them invalid. All processes that share the object call
    it."""
    given = _fingerprint(mf)
    if not _is_canonical(mf, given):
        mf._kept_focks = (given, _focks(mf))


def _is_canonical(mf: Any, given: str) -> bool:
    return not is_restricted_open(mf) and vars(mf).get("_canonical") == given


def _fingerprint(mf: Any) -> str:
    digest = hashlib.sha256()
    for name in ("mo_coeff", "mo_energy", "mo_occ"):
        digest.update(np.ascontiguousarray(getattr(mf, name)).tobytes())
    return digest.hexdigest()


def check_method(mf: Any, attempted: str = _ATTEMPTED) -> None:
    """Raises OutcoreError unless `mf` is a molecular Hartree-Fock object of one component for each spin.

    These checks come first at every process, and give the same at all that hold the same object."""
    from pyscf.scf import dhf, ghf, hf

    def refused(detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, attempted, detail=detail)

    kind = type(mf).__name__
    if not isinstance(mf, hf.SCF):
        raise refused(f"{kind} is no Hartree-Fock object of PySCF")
    if isinstance(mf, dhf.DHF):
        raise refused(f"{kind} has four components; take RHF, UHF or ROHF (scalar relativity: mf.x2c())")
    if isinstance(mf, ghf.GHF):
        raise refused(f"{kind} has generalized orbitals, which mix the spins; take RHF, UHF or ROHF")
    if "cell" in vars(mf):
        raise refused(f"{kind} is periodic; take a molecule")
    if isinstance(mf, hf.KohnShamDFT):
        raise refused(f"{kind} has Kohn-Sham orbitals; take RHF, UHF or ROHF")
    if mf.mol.omega:
        raise refused(f"the molecule has the range-separated operator of omega = {mf.mol.omega}; set it to 0")


def of(
    mf: Any,
    *,
    frozen: Asked = None,
    frozen_virtual: Asked = None,
    noncanonical: str = "refuse",
    force: bool = False,
) -> Reference:
    """The orbitals of an RHF, UHF or ROHF object. All processes that share the object call it.

    frozen, frozen_virtual: see `outcore.chem.frozen.of`. Listed orbitals stay as they are: they are set apart
    before the others are made canonical. A number counts canonical orbitals.
    noncanonical: the treatment of orbitals that do not diagonalize the Fock matrix. Orbitals of a stationary
    determinant (say, localized ones) are always made canonical, which does not change the determinant. For others,
    such as those of ROHF: "refuse" raises an error. "semicanonical": occupied and virtual orbitals of each spin are
    rotated so that they diagonalize the Fock matrix of their spin, and single excitations are added (Knowles,
    Andrews, Amos, Handy, Pople, Chem. Phys. Lett. 186, 130 (1991); Lauderdale, Stanton, Gauss, Watts, Bartlett,
    ibid. 187, 21 (1991)). "diagonal": orbitals stay as they are, with the diagonal of the Fock matrix as energies
    and no singles, as in PySCF's `mp.MP2(mf.to_uhf())`.
    force: accept an SCF that has not converged, with its orbitals and energies as they are.
    """
    if noncanonical not in NONCANONICAL:
        raise OutcoreError(
            errno.EINVAL,
            "RI-MP2",
            detail=f"noncanonical '{noncanonical}' is none of {', '.join(NONCANONICAL)}",
        )
    restricted, spins, note, given = _checked(mf, force)
    left_out = frozen_orbitals.of(
        mf.mol, frozen, frozen_virtual, [(each.numbers, each.occupied) for each in spins]
    )
    if force and not mf.converged:
        return Reference(restricted, spins, left_out, note=note, given=given)
    if _is_canonical(mf, given):
        reference = Reference(restricted, spins, left_out)
    else:
        reference = _canonical(mf, restricted, spins, left_out, noncanonical)
    _check_gaps(reference)
    return replace(reference, given=given)


def as_given(mf: Any, *, force: bool = False) -> Reference:
    """The orbitals of an RHF, UHF or ROHF object as they are, occupied ones first, with the full Fock matrix of
    each spin (off-diagonal elements count) and the energy of their determinant. `force`: as for `of`. All
    processes that share the object call it."""
    restricted, spins, note, given = _checked(mf, force)
    if _is_canonical(mf, given):
        found = [replace(each, fock=np.diag(each.energies)) for each in spins]
        return Reference(restricted, found, note=note, given=given, energy=float(mf.e_tot))
    over_functions = _focks(mf)
    focks = [
        each.coefficients.T @ fock @ each.coefficients
        for each, fock in zip(spins, over_functions, strict=False)
    ]
    found = [
        replace(each, fock=fock, energies=np.diag(fock).copy())
        for each, fock in zip(spins, focks, strict=True)
    ]
    energy, other = _energy(mf, over_functions)
    note = ", ".join(each for each in (note, other) if each)
    return Reference(restricted, found, note=note, given=given, energy=energy)


def _energy(mf: Any, focks: list[Matrix]) -> tuple[float, str]:
    """The energy of the determinant of the present orbitals (Hartree), and a note if it differs from that of the
    SCF."""
    density, core = mf.make_rdm1(), mf.get_hcore()
    potential = np.stack([fock - core for fock in focks]) if np.ndim(density) == 3 else focks[0] - core
    found = float(mf.energy_tot(density, core, potential))
    stored = float(mf.e_tot)
    if abs(found - stored) < _SAME_ENERGY:
        return stored, ""
    return found, f"whose determinant has an energy of {found:.10f} Eh, not {stored:.10f} Eh as the SCF says"


def of_rank_0(
    world: World, mf: Any, attempted: str, take: Callable[[Any], Reference], *alike: Any
) -> Reference:
    """`take(mf)` of rank 0, at all processes: the orbitals of rank 0 count. The others take part if the Fock matrix
    of `mf` is collective. `alike`: arguments that must be the same at all processes. Collective. Raises
    OutcoreError, the same at all."""
    from outcore.chem.driver import RootDriven

    found: Any = None
    with world.together(attempted, *alike):
        if world.rank == 0 or isinstance(mf, RootDriven):
            found = replace(take(mf), overlap=np.asarray(mf.get_ovlp()))
    reference: Reference = world.broadcast(found)
    return reference


def _checked(mf: Any, force: bool) -> tuple[bool, list[Spin], str, str]:
    """Whether both spins have the same orbitals and occupations; the orbitals of each spin; a note; the fingerprint
    of the given orbitals."""
    check_method(mf)
    mo_coeff, mo_energy, mo_occ = (getattr(mf, name) for name in ("mo_coeff", "mo_energy", "mo_occ"))
    if mo_coeff is None or mo_occ is None or mo_energy is None:
        raise _refused("the reference has no orbitals; run its kernel() first")
    if not mf.converged and not force:
        raise _refused(
            "the SCF has not converged (mf.converged is False); converge it, or give force=True to take its "
            "orbitals as they are"
        )
    if any(np.iscomplexobj(each) for each in _each_spin(mo_coeff, 3)):
        raise _refused("the orbitals are complex; take real ones")
    restricted, spins = _spins(mf)
    note = "" if mf.converged else "of an SCF that has not converged"
    return restricted, [_sorted(*each) for each in spins], note, _fingerprint(mf)


def is_restricted_open(mf: Any) -> bool:
    """Whether one set of orbitals holds different numbers of electrons of each spin."""
    from pyscf.scf import rohf

    return isinstance(mf, rohf.ROHF)


Occupied = tuple[Matrix, Matrix, NDArray[np.bool_]]  # coefficients, energies, which are occupied


def _spins(mf: Any) -> tuple[bool, list[Occupied]]:
    """Whether both spins have the same orbitals and occupations, and the orbitals of each spin."""
    mol = mf.mol
    coefficients = [np.asarray(each, np.float64) for each in _each_spin(mf.mo_coeff, 3)]
    energies = [np.asarray(each, np.float64) for each in _each_spin(mf.mo_energy, 2)]
    occupations = [np.asarray(each, np.float64) for each in _each_spin(mf.mo_occ, 2)]
    limit = 2.0 if len(coefficients) == 1 else 1.0
    for occupation in occupations:
        whole = np.round(occupation)
        odd = limit == 2.0 and not is_restricted_open(mf)  # closed shells have no occupation of 1
        wrong = (abs(occupation - whole) > _WHOLE) | (whole < 0) | (whole > limit) | (odd & (whole == 1))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise _refused(
                f"orbital {first + 1} has an occupation of {occupation[first]:.6g} (smearing or fractional "
                f"occupations); take {'2 or 0' if odd else 'whole numbers'}: switch smearing and frac_occ off"
            )
    electrons = round(float(sum(occupation.sum() for occupation in occupations)))
    if electrons != mol.nelectron:
        raise _refused(
            f"the occupied orbitals have {electrons} electrons, the molecule {mol.nelectron}; "
            "run the SCF of this molecule, with ROHF or UHF if electrons are unpaired"
        )
    overlap = mf.get_ovlp()
    for each in coefficients:
        if (
            len(each) != len(overlap)
            or abs(each.T @ overlap @ each - np.eye(each.shape[1])).max() > _ORTHONORMAL
        ):
            raise _refused(
                "the orbitals are not orthonormal in the present molecule and basis (was the geometry changed, or "
                "the overlap of a model?); run the SCF again"
            )
    if len(coefficients) == 2:
        return False, [(c, e, o > 0.5) for c, e, o in zip(coefficients, energies, occupations, strict=True)]
    (c,), (e,), (o,) = coefficients, energies, occupations
    if not (is_restricted_open(mf) and (np.round(o) == 1).any()):
        return True, [(c, e, o > 1.5)]
    return False, [(c, e, o > 0.5), (c, e, o > 1.5)]


def _each_spin(values: Any, dimensions: int) -> list[Any]:
    """A list of one array, or of one for each spin. The spins may have different numbers of orbitals."""
    if isinstance(values, np.ndarray) and values.ndim < dimensions:
        return [values]
    return list(values)


def _sorted(coefficients: Matrix, energies: Matrix, occupied: NDArray[np.bool_]) -> Spin:
    order = np.lexsort((energies, ~occupied))
    return Spin(coefficients[:, order], energies[order], int(occupied.sum()), order)


def _focks(mf: Any) -> list[Matrix]:
    """The Fock matrix of each spin, over basis functions."""
    of_orbitals, kept = vars(mf).get("_kept_focks", ("", []))
    if of_orbitals == _fingerprint(mf):
        return list(kept)
    fock = mf.get_fock(dm=mf.make_rdm1())
    each = [fock.focka, fock.fockb] if is_restricted_open(mf) else _each_spin(np.asarray(fock), 3)
    return [np.asarray(one, np.float64) for one in each]


def _canonical(mf: Any, restricted: bool, spins: list[Spin], frozen: Frozen, noncanonical: str) -> Reference:
    """Checks the orbitals with a Fock matrix, and rotates them so that they diagonalize its blocks, as
    `noncanonical` says."""
    found, rotated, of_all, singles = list[Spin](), 0.0, 0.0, 0.0
    for number, (c, matrix) in enumerate(zip(spins, _focks(mf), strict=False)):
        inside = c.coefficients.T @ matrix @ c.coefficients
        n, apart = c.occupied, frozen.apart(number, c.numbers)
        off = inside - np.diag(np.diag(inside))
        rotated = max(rotated, abs(off[:n, :n]).max(initial=0.0), abs(off[n:, n:]).max(initial=0.0))
        rotated = max(rotated, abs(np.diag(inside) - c.energies).max())
        rotation, energies = np.zeros_like(inside), np.zeros(len(inside))
        for first, last in ((0, n), (n, len(inside))):
            for box in (first + np.flatnonzero(apart[first:last] == each) for each in (False, True)):
                energies[box], rotation[np.ix_(box, box)] = np.linalg.eigh(inside[np.ix_(box, box)])
        gaps = energies[:n, None] - energies[n:]
        coupling = (rotation.T @ inside @ rotation)[:n, n:]
        parts = (2 if restricted else 1) * np.divide(
            coupling**2, gaps, out=np.zeros_like(gaps), where=abs(gaps) > _GAP
        )
        o, v = frozen.active(number, c.numbers, n)
        of_all += float(parts.sum())
        singles += float(parts[np.ix_(o, v - n)].sum())
        if noncanonical == "diagonal" and not restricted:
            diagonal = np.diag(inside).copy()
            order = np.lexsort((diagonal, np.arange(len(diagonal)) >= n))
            found.append(Spin(c.coefficients[:, order], diagonal[order], n, c.numbers[order]))
        else:
            found.append(Spin(c.coefficients @ rotation, energies, n, c.numbers))
    if abs(of_all) <= max(_STATIONARY, 10 * mf.conv_tol):
        kept = noncanonical == "diagonal" and not restricted
        return Reference(
            restricted,
            found,
            frozen,
            note="made canonical" if rotated > _CANONICAL and not kept else "",
        )
    if noncanonical == "refuse":
        raise _refused(
            f"the orbitals of {type(mf).__name__} are not those of a stationary determinant of RHF or UHF "
            f"(single excitations contribute {of_all:.2e} Eh): take UHF as the reference; or "
            "noncanonical='semicanonical', which is ROHF-MP2 with singles; or noncanonical='diagonal', which "
            "neglects off-diagonal elements of the Fock matrix, as PySCF's mp.MP2(mf.to_uhf()) does"
        )
    if noncanonical == "diagonal":
        return Reference(restricted, found, frozen, note="diagonal of the Fock matrix, no singles")
    return Reference(restricted, found, frozen, singles, "semicanonical, with singles (ROHF-MP2)")


def _check_gaps(reference: Reference) -> None:
    """Raises OutcoreError if an occupied orbital lies at or above an empty one of its spin: denominators must not
    change sign."""
    for number, spin in enumerate(reference.spins):
        boxes = reference.frozen.active(number, spin.numbers, spin.occupied)
        occupied, virtual = (spin.energies[box] for box in boxes)
        if len(occupied) and len(virtual) and virtual.min() - occupied.max() < _GAP:
            which = "" if reference.restricted else (" of spin alpha", " of spin beta")[number]
            raise _refused(
                f"an occupied orbital{which} at {occupied.max():.6f} Eh is not below an empty one at "
                f"{virtual.min():.6f} Eh (an excited state, or a hole in the occupied orbitals): the perturbation "
                "series has no meaning there; take the ground state of this spin"
            )


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _ATTEMPTED, detail=detail)
