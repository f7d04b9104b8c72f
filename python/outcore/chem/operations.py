"""Operations of the point group of a molecule on its atoms, shells and basis functions, in the frame of the caller.

Those of D2h and its subgroups: they commute, and each is its own inverse. Axes may point anywhere.
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

SAME_PLACE = 1e-7  # Bohr: atoms that an operation brings as near to each other count as exchanged
_LOOSE = 1e-3  # Bohr: more than what PySCF takes for the same place
_ROUNDING = 1e-13  # of the elements of a rotation of functions
_ROWS = 64  # of a product at a time: what is beside the result stays in the caches
# Atoms that are symmetric up to a change (Bohr) have a density that is so up to some times the change, of its norm:
# nuclei are where they are, integrals those of symmetric atoms. The energy takes the square, times the repulsion of
# what is left out, which is largest in the core of a heavy atom (some 5/8 of its charge): less than 1e-10 Hartree.
_OF_CHANGE = 100.0
_MOST_OF_CHANGE = 3e-6

# Signs of the axes by operations, which make the groups that `chem.symmetry` names.
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
    """Operations of which no two move atoms alike.

    group: its name. whole: operations of the group, also those that move no atom otherwise than another one does.
    matrices: [generators][3][3], on coordinates. atoms, shells: where each goes, [operations][atoms] and
    [operations][shells], the identity not among the operations; operation o - 1 is the product of the generators
    whose bits o has. coordinates: [atoms][3] (Bohr), exactly symmetric. change: the largest that one of these is
    away from that of the molecule (Bohr). axes: in rows. signs: [operations][axes], -1 of an axis that is
    turned round.
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
        """Of operations, the identity included: as many quartets of shells are alike at most."""
        return len(self.atoms) + 1


@dataclass(frozen=True, eq=False)
class FoundOperations:
    """operations: None: none moves an atom. note: a line for the user, if there is something to say."""

    operations: Operations | None = None
    note: str = ""

    def lines(self) -> list[str]:
        """What to tell of it."""
        if self.operations is None:
            return [self.note] if self.note else []
        used = self.operations
        by = f"its {used.whole}" if used.whole == used.order else f"{used.order} of its {used.whole}"
        line = f"point group {used.group}: of integrals that are equal by {by} operations one is computed"
        return [line, *([self.note] if self.note else [])]

    def as_json(self) -> dict[str, Any] | None:
        """By what integrals stand for others; None: by nothing."""
        used = self.operations
        if used is None:
            return None
        return {"name": used.group, "operations": used.whole, "of_atoms": used.order}


def find(mol: Mole, group: str | None = None, *beside: Mole) -> FoundOperations:
    """The operations of `group` (None: of the largest that PySCF finds) that a molecule has: atoms and the
    functions on them are exchanged. Those that hold to PySCF's tolerance but not to SAME_PLACE are left out, with a
    note. beside: the same atoms with other functions, which have to be exchanged, too.

    Raises OutcoreError (EINVAL) for a group that there is not, or the molecule has not."""
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
        # As good as what was found: some groups leave the direction of some axes open.
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

    columns, values: [rows][most that a row has], filled up with zeros.
    """

    columns: NDArray[np.intp]
    values: Floats

    @staticmethod
    def of(rows: NDArray[np.intp], columns: NDArray[np.intp], values: Floats, size: int) -> FewInRows:
        """Of elements of a square matrix, each given once."""
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
        """Of a square matrix."""
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
    """Of a density matrix D over orthonormal functions, tr(S D S D^T)^(1/2): coefficients of functions that are
    almost dependent may be large without a meaning."""
    return float(np.sqrt(abs(np.sum((overlap @ matrix) * (matrix @ overlap)))))


def left_out(change: float, norm: float) -> float:
    """The norm of what a density of this norm may have in other irreps only because atoms are symmetric up to a
    change (Bohr)."""
    return min(_OF_CHANGE * change * norm, _MOST_OF_CHANGE)


def find_at_all(world: World, mol: Mole, group: str | None = None, *beside: Mole) -> FoundOperations:
    """As `find`, by the first process: the same at all. Collective."""
    found = FoundOperations()
    with world.together("point group of the molecule", group):
        if world.rank == 0:
            found = find(mol, group, *beside)
    return world.broadcast(found)


def matrices(mol: Mole, operations: Operations) -> list[FewInRows]:
    """Matrices U [functions][functions] of the generators, which turn a density matrix D into U D U^T, and a
    matrix F of an operator into U^T F U."""
    return [
        _rotation(mol, rotation, _of_shells(mol, atoms))
        for rotation, atoms in zip(operations.matrices, operations.generators, strict=True)
    ]


def along_axes(mol: Mole, operations: Operations) -> Mole:
    """A copy whose atoms lie along the axes, at symmetric places. For integrals alone: nothing else is changed.
    mol: also one with other functions on the same atoms."""
    from pyscf.gto import mole

    placed = mol.copy()
    placed._env = np.array(mol._env, np.float64)
    where = placed._atm[:, mole.PTR_COORD][:, None] + np.arange(3)
    placed._env[where] = operations.coordinates @ operations.axes.T
    return placed


def to_axes(mol: Mole, operations: Operations) -> FewInRows:
    """The matrix W [functions][functions] that turns a density matrix D of the molecule into W D W^T of
    `along_axes`, and a matrix F there into W^T F W here."""
    return _rotation(mol, operations.axes, np.arange(mol.nbas, dtype=np.int32))


def functions(mol: Mole, operations: Operations) -> tuple[Integers, Floats]:
    """Where each operation, the identity first, brings each function of `along_axes`, and with which sign:
    [operations][functions] both."""
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
    """The matrix of functions that turns them with a matrix on coordinates, and brings each shell to another of its
    kind."""
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

    # Coordinates may have been changed in place, which the list of atoms of the molecule does not know.
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
    """Whether a group has operations on the axes of the frame that move atoms in the same way; those of `moves` are
    numbered by generators."""
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
    """A number of each atom: the same where nuclei and potentials are, and functions, also those of `beside`."""
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
        for each in (mol, *beside):  # of others the potentials are not theirs
            facts += ["of a basis", *_facts(each._bas, each._env, (mole.NPRIM_OF, mole.NCTR_OF), atom)]
        found.append(numbers.setdefault(tuple(facts), len(numbers)))
    return np.array(found, np.int32)


def _facts(table: Any, env: Floats, counts: tuple[int, ...], atom: int) -> list[Any]:
    """Of the shells of an atom, or the terms of its potential, in a table of libcint. counts: columns whose product
    is the number of coefficients."""
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
    """Where a matrix brings each atom, and how far away the atom there is at most; None: it permutes no atoms that
    are alike."""
    image, away = np.empty(len(place), np.int32), 0.0
    for atom, moved in enumerate(place @ matrix.T):
        distances = np.linalg.norm(place - moved, axis=1)
        distances[alike != alike[atom]] = np.inf
        image[atom] = distances.argmin()
        away = max(away, float(distances[image[atom]]))
    permutes = len(np.unique(image)) == len(image)
    return (image if permutes and away < _LOOSE else None), away


def _generated(images: dict[Signs, Integers], *, moving: bool = False) -> tuple[list[Signs], list[Signs]]:
    """Generators of a group among these operations, and the group. moving: one in which no two move atoms alike."""
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
    """Of the group that these operations are."""
    rotations = sum(signs[0] * signs[1] * signs[2] > 0 for signs in images) - 1
    kinds = (len(images), rotations, _INVERSION in images)
    names = {
        (8, 3, True): "D2h", (4, 1, False): "C2v", (4, 1, True): "C2h", (4, 3, False): "D2",
        (2, 0, False): "Cs", (2, 1, False): "C2", (2, 0, True): "Ci",
    }  # fmt: skip
    return names.get(kinds, "C1")


def _of_shells(mol: Mole, atoms: Integers) -> Integers:
    """Where each shell goes: those of an atom keep their order, and may lie among those of others."""
    atom = mol._bas[:, 0]
    shells = np.argsort(atom, kind="stable")  # by atoms
    counts = np.bincount(atom, minlength=mol.natm)
    first = np.cumsum(counts) - counts
    found = np.empty(mol.nbas, np.int32)
    found[shells] = shells[first[atoms[atom[shells]]] + np.arange(mol.nbas) - first[atom[shells]]]
    return found


def _turned(angular: int, matrix: Floats, *, cartesian: bool) -> Floats:
    """[2l+1][2l+1], or all Cartesian ones: column f is function f after the operation, in terms of all."""
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
