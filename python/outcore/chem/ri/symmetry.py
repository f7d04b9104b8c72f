"""Point-group symmetry of three-index integrals: the integrals that are computed, and how others follow from them.

Integrals are those of the molecule along the axes of its group. There an operation o turns each basis function m
into plus or minus another one, s_o(m) o(m). Each row belongs to a combination of auxiliary functions with one
irrep. With the characters c of this irrep,

    B[P, o(m) o(n)] = c_o s_o(m) s_o(n) B[P, mn],

so one of the pairs of shells that operations exchange stands for all of them, and the metric has a block for each
irrep. Without operations there is one irrep, and each pair stands for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outcore.chem import operations
from outcore.chem.operations import FewInRows
from outcore.chem.ri import pairs as pair_lists
from outcore.chem.ri.axes import Axes
from outcore.chem.ri.pairs import Pairs, Table
from outcore.chem.ri.plan import IntegralSizes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.operations import FoundOperations
    from outcore.job.world import World

Matrix = NDArray[np.float64]
Integers = NDArray[np.int32]


class FittingSymmetry(Axes):
    """Operations on the functions of a molecule and on those of its auxiliary basis.

    Attributes, in addition to those of Axes:
        auxmol: along the axes, for integrals only.
        characters: [irreps][operations]; those of the first irrep are all 1.
        adapted: orthonormal combinations of auxiliary functions, each with one irrep, in rows
            [combinations][functions], one irrep after the other; None: there are no operations.
        irreps: number of combinations of each irrep; empty without operations.
        combinations: combinations of orbital functions, likewise, and their number in each irrep.
        standing_shells: for each shell whether it stands for its images. standing: functions of these shells.
    """

    def __init__(self, mol: Mole, auxmol: Mole, found: FoundOperations) -> None:
        super().__init__(mol, found)
        self.auxmol = auxmol
        self.adapted: FewInRows | None = None
        self.irreps: tuple[int, ...] = ()
        used = found.operations
        if used is None:
            return
        self.auxmol = operations.along_axes(auxmol, used)
        self.characters: Matrix = linalg.hadamard(used.order).astype(np.float64)
        self.adapted, self.irreps = _adapted(self.characters, *operations.functions(auxmol, used))
        self.combinations = _adapted(self.characters, self.images, self.signs)
        shells = np.arange(mol.nbas)
        self.standing_shells = np.all(used.shells >= shells, axis=0)
        of = np.repeat(shells, pair_lists.shell_sizes(mol))
        self.standing = np.flatnonzero(self.standing_shells[of])

    @classmethod
    def find(cls, world: World, mol: Mole, auxmol: Mole, group: str | None) -> FittingSymmetry:
        """Finds the operations of `group` that exchange atoms together with their functions in both bases.
        Collective. Raises OutcoreError: as `operations.find`."""
        return cls(mol, auxmol, operations.find_at_all(world, mol, group, auxmol))


class Columns:
    """Columns of pairs that stand for others, and the pairs for which they stand."""

    def __init__(self, symmetry: FittingSymmetry, pairs: Pairs, native: Any) -> None:
        self.symmetry, self._pairs, self._native = symmetry, pairs, native
        if symmetry.shells is None:
            return
        sizes, standing = pair_lists.shell_sizes(symmetry.mol), symmetry.standing_shells
        self._table = pairs.images(symmetry.shells)
        self._places = (np.cumsum(sizes) - sizes).astype(np.int32)
        kept = standing[self._table[:, 0]] | standing[self._table[:, 1]]
        self._standing_table = np.ascontiguousarray(self._table[kept])
        places = np.cumsum(sizes * standing) - sizes * standing
        self._standing_places = np.where(standing, places, -1).astype(np.int32)

    @property
    def irreps(self) -> int:
        return self.symmetry.order

    @property
    def standing(self) -> int:
        """Number of functions that stand for others."""
        return self._pairs.functions if self.irreps == 1 else len(self.symmetry.standing)

    def gather(self, matrices: Matrix) -> Matrix:
        """Packs matrices [count][n][n] into rows [irreps][count][columns], so that the product with a row of
        integrals of an irrep is a sum over all m and n. Only the symmetric part counts."""
        symmetry, pairs = self.symmetry, self._pairs
        if symmetry.order == 1:
            return pairs.gather(matrices)[None]
        turned = symmetry.densities_to_axes(matrices)
        found = np.zeros((symmetry.order, len(turned), pairs.columns))
        for image, sign, characters in zip(
            symmetry.images, symmetry.signs, symmetry.characters.T, strict=True
        ):
            row, column = image[pairs.row], image[pairs.column]
            of_image = turned[:, row, column]
            of_image += turned[:, column, row]
            of_image *= sign[pairs.row] * sign[pairs.column] * (pairs.weight / 2)
            for irrep, character in enumerate(characters):
                found[irrep] += character * of_image
        return found

    def expand(self, irrep: int, rows: Matrix, out: Matrix) -> None:
        """Expands rows [count][columns] of an irrep to symmetric matrices [count][n][n] over the functions along
        the axes. Elements of pairs that were left out do not change."""
        symmetry = self.symmetry
        if symmetry.order == 1:
            self._native.expand(self._pairs.table, rows, out, 1)
        else:
            self._images(self._table, self._places, irrep, rows, out)

    def expand_standing(self, irrep: int, rows: Matrix, out: Matrix) -> None:
        """As `expand`, to matrices [count][n][standing]: the second index has only functions that stand for
        others."""
        self._images(self._standing_table, self._standing_places, irrep, rows, out)

    def _images(self, table: Table, places: Integers, irrep: int, rows: Matrix, out: Matrix) -> None:
        symmetry = self.symmetry
        self._native.expand_images(table, rows, symmetry.signs, symmetry.characters[irrep], places, out, 1)

    def total(self, sums: Matrix) -> Matrix:
        """Expands sums of rows [irreps][count][columns] to symmetric matrices [count][n][n] over the functions of
        the molecule."""
        n = self._pairs.functions
        found = np.zeros((sums.shape[1], n, n))
        of_irrep = found if self.irreps == 1 else np.zeros_like(found)
        for irrep, rows in enumerate(sums):
            self.expand(irrep, rows, of_irrep)
            if of_irrep is not found:
                found += of_irrep
        return self.symmetry.from_axes(found)


def sizes(
    symmetry: FittingSymmetry, bounds: Matrix, *, screening: float, orbitals: int, spins: int
) -> IntegralSizes:
    """The sizes of a fitting. bounds: of pairs, see Pairs."""
    shells = pair_lists.shell_sizes(symmetry.mol)
    return IntegralSizes(
        int(symmetry.mol.nao),
        int(symmetry.auxmol.nao),
        pair_lists.kept_columns(bounds, shells, screening, symmetry.shells),
        orbitals,
        int(shells.max()) ** 2,
        spins,
        symmetry.irreps,
    )


def _adapted(characters: Matrix, images: Integers, signs: Matrix) -> tuple[FewInRows, tuple[int, ...]]:
    """Symmetry-adapted combinations and their number in each irrep: sums over the images of each function that
    stands for others, with the signs of the irrep."""
    first = np.flatnonzero(images.min(axis=0) == np.arange(images.shape[1]))
    images, signs = images[:, first], signs[:, first]
    same = images[:, None] == images  # operations with the same image of a function
    fresh = ~np.array([same[number, :number].any(axis=0) for number in range(len(images))])
    rows, columns, values, irreps = list[Any](), list[Any](), list[Any](), list[int]()
    for each in characters:
        sums = np.einsum("abf,bf->af", same, each[:, None] * signs)
        used = fresh & (sums != 0.0)  # 0 if an operation that leaves a function in place reverses it
        counts = used.sum(axis=0)
        row = np.cumsum(counts > 0) - 1 + sum(irreps)
        which, function = np.nonzero(used)
        rows.append(row[function])
        columns.append(images[which, function].astype(np.intp))
        values.append(np.sign(sums[which, function]) / np.sqrt(counts[function]))
        irreps.append(int(np.count_nonzero(counts)))
    where = np.concatenate(rows), np.concatenate(columns)
    return FewInRows.of(*where, np.concatenate(values), sum(irreps)), tuple(irreps)
