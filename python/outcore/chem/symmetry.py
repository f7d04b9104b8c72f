"""Irreps of point groups, and orbitals of a molecule that are made to belong exactly to irreps."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

# Irreps in Cotton's order, so that numbers of products are exclusive-ors of numbers.
IRREPS: dict[str, tuple[str, ...]] = {
    "D2h": ("Ag", "B1g", "B2g", "B3g", "Au", "B1u", "B2u", "B3u"),
    "C2v": ("A1", "A2", "B1", "B2"),
    "C2h": ("Ag", "Bg", "Au", "Bu"),
    "D2": ("A", "B1", "B2", "B3"),
    "Cs": ("A'", 'A"'),
    "C2": ("A", "B"),
    "Ci": ("Ag", "Au"),
    "C1": ("A",),
}
_LINEAR = ("Dooh", "Coov")
_ONE_DIMENSIONAL = (
    0,
    1,
    4,
    5,
)  # PySCF's numbers of the one-dimensional irreps of these groups. Of other irreps, x has an even
# number, and y the next one
ABELIAN = {"SO3": "D2h", "Dooh": "D2h", "Coov": "C2v"}  # further groups of PySCF, and the group used for them

_TAKE = "take the symmetry of orbitals"
_CONTAMINATED = 1e-4  # an orbital has no irrep if more of its square lies in other irreps
_PARALLEL = 1e-5  # deviation of components of axes that are the same
_MIXED = 1e-12  # a smaller part in other irreps is rounding
_SAME_ENERGY = 1e-4  # Hartree: an SCF leaves a degenerate shell with energies that differ by less
_BRANCHES = 1e-6  # Hartree: a smaller difference between Fock matrices of two branches of an irrep is noise
_WORTH_TELLING = 1e-6  # change of an orbital, relative to its norm


@dataclass(frozen=True, eq=False)
class Symmetric:
    """Orbitals that belong exactly to their irreps, and are orthonormal.

    irreps: of each orbital, the number of its irrep in the abelian group. change: the largest norm of the part that
    an orbital has lost. turned: how many orbitals of degenerate shells were mixed among themselves.
    """

    coefficients: Matrix
    irreps: Integers
    change: float
    turned: int

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about changes of the orbitals, if they are worth a line."""
        told = []
        if self.turned:
            told.append(
                f"{self.turned} orbitals of degenerate shells were mixed, so that each is of one irrep"
            )
        if self.change > _WORTH_TELLING:
            told.append(
                f"orbitals were made symmetric: the largest change of one is {self.change:.1e} of its norm"
            )
        return tuple(told)


def with_symmetry(mol: Mole, group: str | None) -> Mole | None:
    """The molecule with the requested symmetry, or None for no symmetry. group: None: that of the molecule, if it
    was built with symmetry; "auto": the largest that it has; else a name.

    Raises OutcoreError (EINVAL) if the group does not exist, or the molecule does not have it."""
    if group is None:
        return mol if mol.symmetry and mol.groupname != "C1" else None
    wanted = known_group(group)
    if wanted == "C1" or (wanted == "auto" and not mol.natm):
        return None
    if not mol.natm:
        raise OutcoreError(errno.EINVAL, f"point group {group}", detail="a model without atoms has C1 alone")
    if mol.symmetry and wanted in (mol.groupname, ABELIAN.get(mol.groupname)):
        return mol
    labelled = mol.copy()
    labelled.symmetry, labelled.symmetry_subgroup = True, None
    labelled.build(dump_input=False, parse_arg=False)
    if wanted not in ("auto", labelled.groupname):
        whole = labelled.topgroup
        labelled.symmetry = wanted
        try:
            labelled.build(dump_input=False, parse_arg=False)
        except Exception as error:
            raise OutcoreError(
                errno.EINVAL, f"point group {group}", detail=f"the molecule has {whole}, not {wanted}"
            ) from error
    return None if labelled.groupname == "C1" else labelled


def group_line(mol: Mole) -> str:
    """The point group in words, with the axes of its irreps if those are not the axes of the geometry."""
    if not mol.symmetry:
        return "point group C1"
    axes, line = np.asarray(mol._symm_axes, np.float64), f"point group {mol.groupname}"
    if np.allclose(abs(axes), np.eye(3), atol=_PARALLEL):
        return line
    if np.allclose(abs(axes).max(1), 1, atol=_PARALLEL):
        found = ["xyz"[each] for each in abs(axes).argmax(1)]
    else:
        found = ["(" + ", ".join(f"{each:.3f}" for each in axis) + ")" for axis in axes.round(3) + 0.0]
    return f"{line}; axes x, y, z of its irreps are {', '.join(found)} of the geometry"


def known_group(text: str) -> str:
    """The name of a group as this module spells it, or "auto". Raises OutcoreError (EINVAL) for an unknown
    group."""
    names = {name.casefold(): name for name in (*IRREPS, *ABELIAN, "auto")}
    wanted = names.get(text.strip().casefold())
    if wanted is None:
        raise OutcoreError(errno.EINVAL, f"point group {text}", detail=f"it may be {', '.join(IRREPS)}")
    return wanted


@contextmanager
def own_branches(mol: Mole, differ: Callable[[Mole], bool]) -> Iterator[None]:
    """A context in which PySCF uses the irreps of the abelian subgroup, if the two branches of an irrep of a linear
    molecule differ, as in a partly filled shell. PySCF alone treats both branches like the first, and such an SCF
    never converges."""
    group = mol.groupname if mol.symmetry else None
    if group in _LINEAR and differ(mol):
        mol.groupname = ABELIAN[group]
    try:
        yield
    finally:
        if group is not None:
            mol.groupname = group


def focks_differ(fock: Matrix, mol: Mole) -> bool:
    """Whether the parts of a Fock matrix [n][n] or [spin][n][n] for two branches of an irrep differ. False for
    generalized orbitals, which are left to PySCF."""
    if fock.shape[-1] != mol.nao:
        return False
    orbitals = dict(zip(mol.irrep_id, mol.symm_orb, strict=True))
    pairs = [(x, orbitals[n + 1]) for n, x in orbitals.items() if n % 2 == 0 and n not in _ONE_DIMENSIONAL]
    return any(abs(x.T @ fock @ x - y.T @ fock @ y).max(initial=0.0) > _BRANCHES for x, y in pairs)


def occupations_differ(irreps: Integers, occupied: Matrix, mol: Mole) -> bool:
    """Whether two branches of an irrep have different numbers of electrons. irreps, occupied: [orbital] or
    [spin][orbital]."""
    return any(
        np.any(np.sum(occupied * (irreps == n) - occupied * (irreps == n + 1), -1))
        for n in mol.irrep_id
        if n % 2 == 0 and n not in _ONE_DIMENSIONAL
    )


def irrep_of_linear(group: str, text: str | int) -> int | None:
    """The number in the abelian subgroup of an irrep of a linear molecule or an atom, by PySCF's name for the
    irrep; None: there is no irrep of that name, or the group is another one."""
    if group not in ABELIAN:
        return None
    from pyscf.symm import irrep_name2id

    try:
        return int(irrep_name2id(group, str(text))) % 10
    except (KeyError, ValueError, RuntimeError, IndexError):
        return None


def irrep_number(group: str, text: str | int) -> int:
    """The number of an irrep in the abelian group that stands for a point group of PySCF, by its name in either
    group. Raises OutcoreError (EINVAL)."""
    found = irrep_of_linear(group, text)
    if found is not None:
        return found
    abelian = ABELIAN.get(group, group)
    names, wanted = IRREPS[abelian], str(text).strip().casefold().replace("''", '"')
    for number, name in enumerate(names):
        if name.casefold() == wanted:
            return number
    of = f"point group {group}" if abelian == group else f"{abelian}, which stands for {group},"
    raise OutcoreError(errno.EINVAL, f"irrep {str(text).strip()}", detail=f"{of} has {', '.join(names)}")


def functions_of_irreps(mol: Mole) -> list[int]:
    """Number of basis functions of each irrep of the abelian group; of all functions for a molecule without
    symmetry."""
    if not mol.symmetry:
        return [int(mol.nao)]
    groups = len(IRREPS[ABELIAN.get(mol.groupname, mol.groupname)])
    sizes = [each.shape[1] for each in mol.symm_orb]
    return [int(each) for each in np.bincount(np.array(mol.irrep_id) % 10, sizes, groups)]


def made_symmetric(
    mol: Mole, coefficients: Matrix, overlap: Matrix, energies: Matrix, spaces: Integers
) -> Symmetric:
    """Projects orbitals on their irreps and makes them orthonormal within each irrep. Before that, orbitals of a
    degenerate shell are mixed, so that each belongs to one irrep.

    mol: with symmetry. energies (Hartree), spaces: of each orbital; orbitals of one space may be mixed if their
    energies are the same.

    Raises OutcoreError (EINVAL) if an orbital belongs to no irrep."""
    c, turned = np.array(coefficients), 0
    for shell in _shells(energies, spaces, _projected(mol, c, overlap)[2] > _MIXED):
        inside = _parts(mol, c[:, shell])
        numbered = sum(k * (part.T @ overlap @ part) for k, part in enumerate(inside))
        c[:, shell] = c[:, shell] @ np.linalg.eigh(numbered)[1]
        turned += len(shell)
    projected, of_which, lost = _projected(mol, c, overlap)
    impure = np.flatnonzero(lost > _CONTAMINATED)
    if len(impure):
        raise OutcoreError(
            errno.EINVAL,
            _TAKE,
            detail=f"orbital {impure[0] + 1} is of no irrep of {mol.groupname}: run the SCF with that symmetry "
            "(mol.symmetry), or take group C1",
        )
    for which in np.unique(of_which):
        mine = of_which == which
        part = projected[:, mine]
        values, vectors = np.linalg.eigh(part.T @ overlap @ part)
        c[:, mine] = part @ (vectors / np.sqrt(values)) @ vectors.T
    irreps = np.array([mol.irrep_id[each] for each in of_which], np.int64) % 10
    return Symmetric(c, irreps, float(np.sqrt(lost.max(initial=0.0))), turned)


def _parts(mol: Mole, coefficients: Matrix) -> list[Matrix]:
    """The part of the orbitals in each irrep; the orbitals are the sum of the parts."""
    whole, counts = np.hstack(mol.symm_orb), [each.shape[1] for each in mol.symm_orb]
    shares = np.split(np.linalg.solve(whole, coefficients), np.cumsum(counts)[:-1])
    return [basis @ share for basis, share in zip(mol.symm_orb, shares, strict=True)]


def _projected(mol: Mole, coefficients: Matrix, overlap: Matrix) -> tuple[Matrix, Integers, Matrix]:
    """For each orbital its largest part in one irrep, the position of that irrep, and the square of the lost
    rest."""
    parts = np.array(_parts(mol, coefficients))
    of_which = np.einsum("kpi,kpi->ki", parts, overlap @ parts).argmax(0)
    projected = np.ascontiguousarray(parts[of_which, :, np.arange(len(of_which))].T)
    rest = coefficients - projected
    return projected, of_which, np.einsum("pi,pi->i", rest, overlap @ rest).clip(0.0)


def _shells(energies: Matrix, spaces: Integers, impure: NDArray[np.bool_]) -> list[Integers]:
    """Groups of two or more impure orbitals (mixed from several irreps) with the same space and energy."""
    order = np.lexsort((energies, spaces))
    apart = (np.diff(spaces[order]) != 0) | (np.diff(energies[order]) > _SAME_ENERGY)
    shells = np.split(order, np.flatnonzero(apart) + 1)
    found = [each[impure[each]] for each in shells]
    return [np.sort(each) for each in found if len(each) > 1]
