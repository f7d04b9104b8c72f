"""Operations of the point group of a molecule on its atoms, shells and basis functions, in the frame of the caller.

The groups are D2h and its subgroups: their operations commute, and each is its own inverse. Axes may point
anywhere.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem.symmetry import ABELIAN, known_group

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Signs = tuple[int, ...]

SAME_PLACE = 1e-7  # Bohr: an operation exchanges two atoms if it moves one this close to the other
_LOOSE = 1e-3  # Bohr: more than PySCF's tolerance for the same place
_ROUNDING = 1e-13  # elements of a rotation of functions below it are rounding
_ROWS = 64  # rows of a product at a time, so that the work space stays in the caches
# If atoms are symmetric up to a change (Bohr), their density is symmetric up to _OF_CHANGE times the change,
# relative to its norm: nuclei are where they are, integrals those of symmetric atoms. The error of the energy is
# the square of that, times the repulsion of the part left out, which is largest in the core of a heavy atom (some
# 5/8 of its charge): less than 1e-10 Hartree.
_OF_CHANGE = 100.0
_MOST_OF_CHANGE = 3e-6

# Signs of the axes under the operations of each group. `chem.symmetry` has the names of the groups.
_IDENTITY, _INVERSION = (1, 1, 1), (-1, -1, -1)
_C2X, _C2Y, _C2Z = (1, -1, -1), (-1, 1, -1), (-1, -1, 1)
_SX, _SY, _SZ = (-1, 1, 1), (1, -1, 1), (1, 1, -1)
_GROUPS = {
    "D2h": (_C2Z, _C2Y, _C2X, _INVERSION, _SZ, _SY, _SX),
    "C2v": (_C2Z, _SX, _SY),
    "C2h": (_C2Z, _INVERSION, _SZ),
    "D2": (_C2Z, _C2Y, _C2X),
    "Cs": (_SZ,),
    "C2": (_C2Z,),
    "Ci": (_INVERSION,),
    "C1": (),
}


@dataclass(frozen=True, eq=False)
class Operations:
    """Operations of a point group. No two of them move the atoms alike.

    group: its name. whole: number of all operations of the group, also those that move the atoms like another one.
    matrices: [generators][3][3], act on coordinates. atoms, shells: the image of each atom and shell,
    [operations][atoms] and [operations][shells], without the identity; operation o - 1 is the product of the
    generators whose bits are set in o. coordinates: [atoms][3] (Bohr), exactly symmetric. change: the largest
    difference of one of these from the coordinate in the molecule (Bohr). axes: in rows. signs:
    [operations][axes], -1 if the operation reverses the axis.
    """

    group: str
    whole: int
    matrices: Floats
    generators: Integers  # [generators][atoms]
    atoms: Integers
    shells: Integers
    coordinates: Floats
    change: float
    axes: Floats
    signs: Integers

    @property
    def order(self) -> int:
        """Number of operations, with the identity: at most so many quartets of shells are equivalent."""
        return len(self.atoms) + 1


@dataclass(frozen=True, eq=False)
class FoundOperations:
    """The result of `find`. operations: None if no operation moves an atom. note: a line for the user, or ""."""

    operations: Operations | None = None
    note: str = ""

    def lines(self) -> list[str]:
        """Lines for the user about the operations."""
        if self.operations is None:
            return [self.note] if self.note else []
        used = self.operations
        by = f"its {used.whole}" if used.whole == used.order else f"{used.order} of its {used.whole}"
        line = f"point group {used.group}: of integrals that are equal by {by} operations one is computed"
        return [line, *([self.note] if self.note else [])]

    def as_json(self) -> dict[str, Any] | None:
        """The symmetry by which one integral stands for others; None: no symmetry."""
        used = self.operations
        if used is None:
            return None
        return {"name": used.group, "operations": used.whole, "of_atoms": used.order}


def find(mol: Mole, group: str | None = None, *beside: Mole) -> FoundOperations:
    """Finds the operations of `group` (None: of the largest group that PySCF finds) that exchange atoms of the
    molecule together with their functions. Operations that hold within PySCF's tolerance but not within SAME_PLACE
    are left out, with a note. beside: the same atoms with other functions, which have to be exchanged, too.

    Raises OutcoreError (EINVAL) if the group does not exist, or the molecule does not have it."""
    wanted = None if group is None else known_group(group)
    asked = None if wanted == "auto" else wanted
    if asked == "C1" or (asked is None and mol.natm < 2):
        return FoundOperations()
    if mol.natm < 1:
        raise _refused(group, "a model without atoms has C1 alone")
    name, center, axes = _detected(mol, asked)
    place, alike = mol.atom_coords() - center, _alike(mol, *beside)
    images: dict[Signs, Integers] = {_IDENTITY: np.arange(mol.natm, dtype=np.int32)}
    apart = 0.0
    for signs in _GROUPS[name]:
        image, away = _image(place, alike, _matrix(axes, signs))
        if image is not None and away <= SAME_PLACE:
            images[signs] = image
        elif image is not None:
            apart = max(apart, away)
    images = {signs: images[signs] for signs in _generated(images)[1]}
    to_what = f"{name} holds to {apart:.0e} Bohr, not to {SAME_PLACE:.0e}"
    if asked is not None and len(images) <= len(_GROUPS[name]):
        raise _refused(group, to_what if apart else f"the molecule has {_name_of(images)}, not {name}")
    note = f"point group {to_what}: it is not used for integrals" if apart else ""
    generators, members = _generated(images, moving=True)
    if not generators:
        return FoundOperations(None, note)
    atoms = np.array([images[signs] for signs in members])
    turns = {signs: _matrix(axes, signs) for signs in members}
    if _of_frame(place, [(images[signs], turns[signs]) for signs in members]):
        # The axes of the frame serve as well: some groups leave the direction of some axes open.
        axes, turns = np.eye(3), {signs: np.diag(np.diag(turn).round()) for signs, turn in turns.items()}
    symmetric = np.mean(
        [place[image] @ turns[signs] for image, signs in zip(atoms, members, strict=True)], axis=0
    )
    found = Operations(
        group=_name_of(images),
        whole=len(images),
        matrices=np.array([turns[signs] for signs in generators]),
        generators=np.array([images[signs] for signs in generators]),
        atoms=atoms[1:],
        shells=np.array([_of_shells(mol, image) for image in atoms[1:]]),
        coordinates=symmetric + center,
        change=float(np.abs(symmetric - place).max()),
        axes=axes,
        signs=np.array([np.diag(axes @ turns[signs] @ axes.T).round() for signs in members[1:]], np.int32),
    )
    return FoundOperations(found, note)


@dataclass(frozen=True, eq=False)
class FewInRows:
    """A matrix with few elements in each row.

    columns, values: [rows][most elements of a row], filled up with zeros.
    """

    columns: NDArray[np.intp]
    values: Floats

    @staticmethod
    def of(rows: NDArray[np.intp], columns: NDArray[np.intp], values: Floats, size: int) -> FewInRows:
        """Makes a square matrix of its elements, each given once."""
        order = np.lexsort((columns, rows))
        rows, counts = rows[order], np.bincount(rows, minlength=size)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        most = int(counts.max(initial=0))
        found = FewInRows(np.zeros((size, most), np.intp), np.zeros((size, most)))
        found.columns[rows, place], found.values[rows, place] = columns[order], values[order]
        return found

    def rows(self, which: slice) -> FewInRows:
        """Some of the rows."""
        return FewInRows(self.columns[which], self.values[which])

    @property
    def transposed(self) -> FewInRows:
        """The transposed matrix. This one must be square."""
        rows, place = np.nonzero(self.values)
        return FewInRows.of(self.columns[rows, place], rows, self.values[rows, place], len(self.columns))

    def turned(self, matrix: Floats) -> Floats:
        """U D U^T."""
        found: Floats = (self @ np.ascontiguousarray((self @ matrix).T)).T
        return found

    def __matmul__(self, matrix: Floats) -> Floats:
        result = np.zeros((len(self.columns), matrix.shape[1]))
        for begin in range(0, len(result), _ROWS):
            rows = slice(begin, begin + _ROWS)
            for column, value in zip(self.columns[rows].T, self.values[rows].T, strict=True):
                result[rows] += value[:, None] * matrix[column]
        return result


def norm_of(overlap: Floats, matrix: Floats) -> float:
    """The norm tr(S D S D^T)^(1/2) of a density matrix D, as over orthonormal functions: coefficients of almost
    linearly dependent functions may be large without a meaning."""
    return float(np.sqrt(abs(np.sum((overlap @ matrix) * (matrix @ overlap)))))


def left_out(change: float, norm: float) -> float:
    """The largest norm of the parts of a density in other irreps that is explained by atoms that are symmetric up
    to a change (Bohr) only. norm: of the density."""
    return min(_OF_CHANGE * change * norm, _MOST_OF_CHANGE)


def find_at_all(world: World, mol: Mole, group: str | None = None, *beside: Mole) -> FoundOperations:
    """As `find`. The first process searches, all processes get its result. Collective."""
    found = FoundOperations()
    with world.together("point group of the molecule", group):
        if world.rank == 0:
            found = find(mol, group, *beside)
    return world.broadcast(found)


def matrices(mol: Mole, operations: Operations) -> list[FewInRows]:
    """Matrices U [functions][functions] of the generators: they transform a density matrix D into U D U^T, and a
    matrix F of an operator into U^T F U."""
    return [
        _rotation(mol, rotation, _of_shells(mol, atoms))
        for rotation, atoms in zip(operations.matrices, operations.generators, strict=True)
    ]


def along_axes(mol: Mole, operations: Operations) -> Mole:
    """A copy of the molecule whose atoms lie along the axes, at symmetric places. It serves integrals alone:
    nothing but places changes. mol: may have other functions on the same atoms."""
    from pyscf.gto import mole

    placed = mol.copy()
    placed._env = np.array(mol._env, np.float64)
    where = placed._atm[:, mole.PTR_COORD][:, None] + np.arange(3)
    placed._env[where] = operations.coordinates @ operations.axes.T
    return placed


def to_axes(mol: Mole, operations: Operations) -> FewInRows:
    """The matrix W [functions][functions] that transforms a density matrix D of the molecule into W D W^T of
    `along_axes`, and a matrix F of `along_axes` into W^T F W of the molecule."""
    return _rotation(mol, operations.axes, np.arange(mol.nbas, dtype=np.int32))


def functions(mol: Mole, operations: Operations) -> tuple[Integers, Floats]:
    """The function to which each operation moves each function of `along_axes`, and the sign: both
    [operations][functions], the identity first."""
    first = mol.ao_loc_nr()
    images = np.tile(np.arange(mol.nao, dtype=np.int32), (operations.order, 1))
    signs = np.ones(images.shape)
    kinds = [(int(mol.bas_angular(shell)), int(mol.bas_nctr(shell))) for shell in range(mol.nbas)]
    for number, (atoms, axes) in enumerate(zip(operations.atoms, operations.signs, strict=True), 1):
        shells = _of_shells(mol, atoms)
        turned = {
            angular: np.sign(np.diag(_turned(angular, np.diag(axes.astype(float)), cartesian=bool(mol.cart))))
            for angular in {angular for angular, _ in kinds}
        }
        for shell, (angular, contracted) in enumerate(kinds):
            own = slice(first[shell], first[shell + 1])
            images[number, own] += first[shells[shell]] - first[shell]
            signs[number, own] = np.tile(turned[angular], contracted)
    return images, signs


def _rotation(mol: Mole, rotation: Floats, shells: Integers) -> FewInRows:
    """The matrix over functions for a rotation of coordinates that also moves each shell to another of its kind."""
    first, rows, columns, values = mol.ao_loc_nr(), [], [], []
    blocks: dict[tuple[int, int], Floats] = {}
    for shell in range(mol.nbas):
        angular, contracted = int(mol.bas_angular(shell)), int(mol.bas_nctr(shell))
        if (angular, contracted) not in blocks:
            turned = _turned(angular, rotation, cartesian=bool(mol.cart))
            blocks[angular, contracted] = np.asarray(np.kron(np.eye(contracted), turned), np.float64)
        block = blocks[angular, contracted]
        row, column = np.nonzero(block)
        rows.append(row + first[shells[shell]])
        columns.append(column + first[shell])
        values.append(block[row, column])
    where = np.concatenate(rows), np.concatenate(columns)
    return FewInRows.of(*where, np.concatenate(values), int(mol.nao))


def _detected(mol: Mole, wanted: str | None) -> tuple[str, Floats, Floats]:
    """Name of the subgroup of D2h, centre (Bohr), and axes in rows."""
    from pyscf.symm import geom

    # The program may have changed coordinates in place; the list of atoms of the molecule does not show it.
    atoms = [(mol.atom_symbol(atom), place) for atom, place in enumerate(mol.atom_coords())]
    try:
        whole, center, axes = geom.detect_symm(atoms, mol._basis)
        name, axes = geom.as_subgroup(whole, axes, wanted)
    except (geom.PointGroupSymmetryError, AssertionError, IndexError, ValueError) as error:
        if wanted is None:
            return "C1", np.zeros(3), np.eye(3)
        raise _refused(wanted, str(error)) from error
    return ABELIAN.get(name, name), np.asarray(center), np.linalg.qr(np.asarray(axes).T)[0].T


def _of_frame(place: Floats, moves: list[tuple[Integers, Floats]]) -> bool:
    """Whether operations on the axes of the frame form a group that moves atoms as `moves` do, whose index has a
    bit for each generator."""
    signs = [np.diag(turn).round() for _, turn in moves]
    return all(
        np.abs(sign).min() == 1.0 and np.linalg.norm(place * sign - place[image], axis=1).max() <= SAME_PLACE
        for sign, (image, _) in zip(signs, moves, strict=True)
    ) and all(
        np.array_equal(signs[a] * signs[b], signs[a ^ b])
        for a in range(len(signs))
        for b in range(len(signs))
    )


def _matrix(axes: Floats, signs: Signs) -> Floats:
    matrix: Floats = (axes.T * signs) @ axes
    return matrix


def _alike(mol: Mole, *beside: Mole) -> Integers:
    """A number for each atom: equal if nuclei, potentials and functions are, also the functions of `beside`."""
    from pyscf.gto import mole

    numbers: dict[tuple[Any, ...], int] = {}
    found, potentials = [], (mole.NPRIM_OF,)
    for atom in range(mol.natm):
        row = mol._atm[atom]
        facts: list[Any] = [
            int(row[mole.CHARGE_OF]),
            int(row[mole.NUC_MOD_OF]),
            float(mol._env[row[mole.PTR_ZETA]]),
            *_facts(mol._ecpbas, mol._env, potentials, atom),
        ]
        for each in (mol, *beside):  # functions only: potentials are those of `mol`
            facts += ["of a basis", *_facts(each._bas, each._env, (mole.NPRIM_OF, mole.NCTR_OF), atom)]
        found.append(numbers.setdefault(tuple(facts), len(numbers)))
    return np.array(found, np.int32)


def _facts(table: Any, env: Floats, counts: tuple[int, ...], atom: int) -> list[Any]:
    """Values that describe the shells of an atom, or the terms of its potential, in a table of libcint. counts:
    columns whose product is the number of coefficients."""
    from pyscf.gto import mole

    facts = list[Any]()
    for shell in table[table[:, mole.ATOM_OF] == atom] if len(table) else ():
        primitives, coefficients = int(shell[mole.NPRIM_OF]), int(np.prod(shell[list(counts)]))
        exponent, coefficient = int(shell[mole.PTR_EXP]), int(shell[mole.PTR_COEFF])
        facts += [*map(int, shell[mole.ANG_OF : mole.PTR_EXP])]
        facts += [env[exponent : exponent + primitives].tobytes()]
        facts += [env[coefficient : coefficient + coefficients].tobytes()]
    return facts


def _image(place: Floats, alike: Integers, matrix: Floats) -> tuple[Integers | None, float]:
    """The image of each atom under a matrix, and the largest distance of an image from the atom there. None in
    place of the images: the matrix does not permute equal atoms."""
    image, away = np.empty(len(place), np.int32), 0.0
    for atom, moved in enumerate(place @ matrix.T):
        distances = np.linalg.norm(place - moved, axis=1)
        distances[alike != alike[atom]] = np.inf
        image[atom] = distances.argmin()
        away = max(away, float(distances[image[atom]]))
    permutes = len(np.unique(image)) == len(image)
    return (image if permutes and away < _LOOSE else None), away


def _generated(images: dict[Signs, Integers], *, moving: bool = False) -> tuple[list[Signs], list[Signs]]:
    """Generators of a group among these operations, and the group. moving: choose a group in which no two
    operations move the atoms alike."""
    group: list[Signs] = [_IDENTITY]
    generators: list[Signs] = []
    for signs, image in images.items():
        more = [_product(signs, each) for each in group]
        known = moving and any(np.array_equal(image, images[each]) for each in group)
        if signs not in group and not known and all(each in images for each in more):
            group += more
            generators.append(signs)
    return generators, group


def _name_of(images: dict[Signs, Integers]) -> str:
    """The name of the group that these operations form."""
    rotations = sum(signs[0] * signs[1] * signs[2] > 0 for signs in images) - 1
    kinds = (len(images), rotations, _INVERSION in images)
    names = {
        (8, 3, True): "D2h", (4, 1, False): "C2v", (4, 1, True): "C2h", (4, 3, False): "D2",
        (2, 0, False): "Cs", (2, 1, False): "C2", (2, 0, True): "Ci",
    }  # fmt: skip
    return names.get(kinds, "C1")


def _of_shells(mol: Mole, atoms: Integers) -> Integers:
    """The image of each shell. The shells of an atom keep their order, and may lie among those of others."""
    atom = mol._bas[:, 0]
    shells = np.argsort(atom, kind="stable")  # by atoms
    counts = np.bincount(atom, minlength=mol.natm)
    first = np.cumsum(counts) - counts
    found = np.empty(mol.nbas, np.int32)
    found[shells] = shells[first[atoms[atom[shells]]] + np.arange(mol.nbas) - first[atom[shells]]]
    return found


def _turned(angular: int, matrix: Floats, *, cartesian: bool) -> Floats:
    """The matrix [2l+1][2l+1], or that of all Cartesian functions: column f is function f after the operation, in
    terms of all functions."""
    points = np.random.default_rng(angular).normal(size=(4 * (angular + 1) * (angular + 2), 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    before, after = (_functions(angular, each, cartesian=cartesian) for each in (points, points @ matrix))
    found = np.linalg.lstsq(before, after, rcond=None)[0]
    whole = np.round(found)
    turned: Floats = np.where(np.abs(found - whole) < _ROUNDING, whole, found)
    return turned


def _functions(angular: int, points: Floats, *, cartesian: bool) -> Floats:
    """Values of the functions of a shell [points][functions], as libcint orders them."""
    from pyscf.gto.mole import cart2sph

    x, y, z = points.T
    powers = [(a, b, angular - a - b) for a in range(angular, -1, -1) for b in range(angular - a, -1, -1)]
    values: Floats = np.array([x**a * y**b * z**c for a, b, c in powers]).T
    return values if cartesian else np.asarray(values @ cart2sph(angular, normalized="sp"))


def _product(a: Signs, b: Signs) -> Signs:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _refused(group: str | None, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, f"point group {group}", detail=detail)
