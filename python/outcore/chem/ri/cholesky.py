"""Cholesky decomposition of two-electron integrals to any tolerance: (mn|ls) = sum_J L[J,mn] L[J,ls].

There are two steps. The first finds the pivots, which are products K of two functions. Its vectors cover only the
products that may become pivots; they lie in memory, and on scratch if memory is too small. Its vectors at the
pivots are a factor of the matrix (K|K'). Pivots and their order depend on the integrals only, not on memory,
processes and threads; nor do they depend on rounding if equivalent atoms have equal diagonal elements. The second
step makes rows (K|mn) on request, shell by shell, and solves with that factor: vectors over all products never
exist together.

Among pairs of shells that the operations of the molecule exchange, both steps compute the integrals of one pair;
those of the others are the same at other places, with signs. The axes have to be those of the frame: otherwise a
product of rotated functions is a sum of products, each of which has an error up to the tolerance.

Beebe, Linderberg, Int. J. Quantum Chem. 12, 683 (1977); Koch, Sanchez de Meras, Pedersen, J. Chem. Phys. 118, 9481
(2003); Folkestad, Kjonstad, Koch, J. Chem. Phys. 150, 194112 (2019).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import operations
from outcore.chem.operations import FoundOperations
from outcore.chem.ri.axes import Axes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.problem import Settings
    from outcore.chem.ri.given import GivenIntegrals
    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]

EXACT = 1e-11  # Hartree: with this tolerance energies agree with those of all integrals within 1e-9
_SPAN = 1e-2  # relative to the largest diagonal element: pivots of a batch have larger elements
_PIECE = 32  # rows that are transformed at once, if no pair of shells has more
_BATCH_BYTES = 1 << 30  # columns of a batch, whatever the memory: the choice of pivots depends on the batch
_TIED = 1e-10  # relative: diagonal elements that differ by less are equal except for rounding
_ROUNDING = 1e-14  # relative to the largest diagonal element: rounding of elements that have become small
_COLUMNS = 4  # columns take this fraction of the memory of the first step
_COPIES = 6  # copies of columns
_PANEL_BYTES = 8 << 20  # bytes of vectors that are read or broadcast at once
_OF_CHANGE = 100.0  # Hartree per Bohr: change of integrals with places of atoms


class Cholesky:
    """Rows of the pivots, and the factor that turns them into vectors. The constructor is collective; rank 0
    decides, and all processes have the same pivots.

    tolerance: largest error of the diagonal (mn|mn), and so of all integrals (Hartree).
    group: point group whose symmetry is used (None: the largest that a molecule has; "C1": none).
    limit_bytes: memory of the first step, and of the factor. check: called when `rank` and `cuts` are known,
        before the factor is made, in place of the check that the factor fits; collective. Raises OutcoreError:
        ENOMEM, ENOSPC, EINVAL.
    """

    signs: Values | None = None  # all are 1, see `given.Signed`

    def __init__(
        self,
        world: World,
        source: Mole | GivenIntegrals,
        tolerance: float,
        limit_bytes: int,
        *,
        check: Callable[[Cholesky], None] | None = None,
        group: str | None = None,
    ) -> None:
        if not 0 < tolerance < 1:
            raise OutcoreError(
                errno.EINVAL, f"tolerance {tolerance:g}", detail="it lies between 0 and 1 Hartree"
            )
        self._shells = _symmetric(world, source, tolerance, group)
        found: _Found | None = None
        with world.together("Cholesky decomposition", tolerance):
            if world.rank == 0:
                found = search(self._shells, tolerance, limit_bytes, world.scratch)
        try:
            products: Any = None if found is None else (found.m, found.n)
            self._order_rows(*world.broadcast(products))
            if check is None:
                with world.together("factor of a Cholesky decomposition"):
                    _check(self.rank, limit_bytes, tolerance)
            else:
                check(self)
            with world.together("factor of a Cholesky decomposition"):
                self._factor = np.empty((self.rank, self.rank)) if found is None else found.factor()
        finally:
            if found is not None:
                found.vectors.close()
        some = max(1, _PANEL_BYTES // (8 * max(1, self.rank)))
        for first in range(0, self.rank if world.size > 1 else 0, some):
            self._factor[first : first + some] = world.broadcast(self._factor[first : first + some])
        self.settings = {"Cholesky tolerance": tolerance} | self._shells.of_symmetry
        self.title = f"{self.rank} Cholesky vectors, tolerance {tolerance:g} Eh"

    def _order_rows(self, m: Values, n: Values) -> None:
        """Sets the order of rows for the pivots m n, and the pieces in which they are made."""
        self.rank = len(m)
        # Rows are in the order of pairs of shells, whose integrals are computed together. Pairs that operations
        # exchange lie side by side, and in one piece if it has room for them.
        pairs = self._shells.of[m] * self._shells.count + self._shells.of[n]
        standing = self._shells.standing(m, n)
        rows = np.lexsort((pairs, standing))
        self._m, self._n, self._order = m[rows], n[rows], np.argsort(rows)
        ends = np.flatnonzero(np.diff(pairs[rows], append=-1)) + 1
        whole = np.flatnonzero(np.diff(standing[rows], append=-1)) + 1
        lengths = np.diff(whole, prepend=0)
        parted = np.repeat(lengths > _PIECE, lengths)
        self._ends = set(ends.tolist())
        self.cuts = _pieces(ends[parted[ends - 1] | np.isin(ends, whole)].tolist())

    def matrices(self, piece: int) -> Values:
        """(K|mn) for the pivots K of one piece, as symmetric matrices [K][n][n]."""
        first, last = self.cuts[piece], self.cuts[piece + 1]
        count = len(self._shells.of)
        result = np.empty((last - first, count, count))
        i, j = np.tril_indices(count)
        ends = [each for each in range(first + 1, last + 1) if each in self._ends]
        parts = [slice(*each) for each in pairwise([first, *ends])]
        for number, rows in self._shells.rows_of([(self._m[part], self._n[part]) for part in parts]):
            part = slice(parts[number].start - first, parts[number].stop - first)
            result[part, i, j] = rows
            result[part, j, i] = rows
        return self._shells.from_axes(result)

    def fit(self, block: Values) -> Values:
        return np.asarray(
            linalg.solve_triangular(
                self._factor, block[self._order], lower=True, overwrite_b=True, check_finite=False
            )
        )


def _pieces(ends: list[int]) -> tuple[int, ...]:
    cuts = [0]
    for end, after in zip(ends, [*ends[1:], 1 << 60], strict=True):
        if after - cuts[-1] > _PIECE:
            cuts.append(end)
    return tuple(cuts)


class Shells:
    """Integrals (mn|K) of all products m >= n with those of one pair of shells. With symmetry they are along the
    axes of the molecule, and one of the pairs that operations exchange stands for all."""

    def __init__(self, mol: Mole, axes: Axes | None = None) -> None:
        self._axes = Axes(mol, FoundOperations()) if axes is None else axes
        self._mol = self._axes.mol
        self._first = self._mol.ao_loc_nr()
        self.of = np.repeat(np.arange(self._mol.nbas), np.diff(self._first))
        """The shell of each function."""

    @property
    def count(self) -> int:
        """Number of shells."""
        return int(self._mol.nbas)

    @property
    def of_symmetry(self) -> Settings:
        """Settings that integrals depend on, in addition to the molecule."""
        return self._axes.settings

    @cached_property
    def _optimizer(self) -> Any:
        from pyscf.gto import moleintor

        mol = self._mol
        return moleintor.make_cintopt(mol._atm, mol._bas, mol._env, self._name)

    @property
    def _name(self) -> str:
        return str(self._mol._add_suffix("int2e"))

    def rows(self, m: Values, n: Values, of: Values | None = None) -> Values:
        """(K|mn) as [K][mn] for products K = m n of one pair of shells. of: which products mn; None: all."""
        a, b = int(self.of[m[0]]), int(self.of[n[0]])
        return self._taken(self._block(a, b), a, b, m, n, of)

    def rows_of(
        self, products: list[tuple[Values, Values]], of: Values | None = None
    ) -> Iterator[tuple[int, Values]]:
        """Yields the number and the rows of each of several pairs of shells. Pairs that operations exchange come
        one after the other, and their integrals are computed once."""
        if self._axes.order == 1:
            yield from ((number, self.rows(*each, of)) for number, each in enumerate(products))
            return
        together: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for number, (m, n) in enumerate(products):
            a, b, operation = self._standing(int(self.of[m[0]]), int(self.of[n[0]]))
            together.setdefault((a, b), []).append((number, operation))
        for (a, b), members in together.items():
            block = self._block(a, b)
            for number, operation in members:
                m, n = products[number]
                image, sign = self._axes.images[operation], self._axes.signs[operation]
                to_m, to_n = image[m], image[n]
                if self.of[to_m[0]] != a:
                    to_m, to_n = to_n, to_m
                where, signs = self._images(operation, of)
                rows = self._taken(block, a, b, to_m, to_n, where)
                rows *= (sign[m] * sign[n])[:, None] * signs
                yield number, rows

    def standing(self, m: Values, n: Values) -> Values:
        """For each product m n the number of the pair of shells that stands for its pair."""
        a, b = self.of[m], self.of[n]
        return np.asarray(np.min([_number(image[a], image[b]) for image in self._shell_images], axis=0))

    def from_axes(self, matrices: Values) -> Values:
        """Transforms matrices [count][n][n] to the functions of the molecule, in place."""
        return self._axes.from_axes(matrices)

    def diagonal(self) -> Values:
        """(mn|mn) in rows of the lower triangle."""
        mol, first = self._mol, self._first
        full = np.empty((len(self.of), len(self.of)))
        for a in range(mol.nbas):
            for b in range(a + 1):
                if self._standing(a, b)[2]:
                    continue
                block = mol.intor("int2e", shls_slice=(a, a + 1, b, b + 1, a, a + 1, b, b + 1))
                elements = np.einsum("mnmn->mn", block)
                for image in self._shell_images:
                    # The functions of a shell keep their order.
                    to_a, to_b = (slice(first[shell], first[shell + 1]) for shell in (image[a], image[b]))
                    full[to_a, to_b], full[to_b, to_a] = elements, elements.T
        return full[np.tril_indices(len(self.of))]

    @cached_property
    def _shell_images(self) -> list[Values]:
        """The image of each shell under each operation, the identity first."""
        shells = self._axes.shells
        return [np.arange(self.count), *(() if shells is None else shells)]

    def _standing(self, a: int, b: int) -> tuple[int, int, int]:
        """The pair of shells that stands for the pair a, b, and the operation that moves a, b there: 0 if it
        stands for itself."""
        images = [(int(image[a]), int(image[b])) for image in self._shell_images]
        operation = min(range(len(images)), key=lambda which: _number(*images[which]))
        return max(images[operation]), min(images[operation]), operation

    def _images(self, operation: int, of: Values | None) -> tuple[Values, Values]:
        """The images of products mn under an operation, as numbers in rows of the lower triangle, and their
        signs."""
        image, sign = self._axes.images[operation], self._axes.signs[operation]
        i, j = np.tril_indices(len(self.of))
        if of is not None:
            i, j = i[of], j[of]
        return _number(image[i], image[j]), sign[i] * sign[j]

    def _block(self, a: int, b: int) -> Values:
        """(mn|K) as [mn][K], for all products mn and the products K of a pair of shells."""
        from pyscf.gto import moleintor

        mol, first = self._mol, self._first
        block = moleintor.getints4c(
            self._name,
            mol._atm,
            mol._bas,
            mol._env,
            (0, mol.nbas, 0, mol.nbas, a, a + 1, b, b + 1),
            aosym="s2ij",
            ao_loc=first,
            cintopt=self._optimizer,
        )
        flat: Values = block.reshape(-1, int((first[a + 1] - first[a]) * (first[b + 1] - first[b])))
        return flat

    def _taken(self, block: Values, a: int, b: int, m: Values, n: Values, of: Values | None) -> Values:
        first = self._first
        columns = (m - first[a]) * int(first[b + 1] - first[b]) + n - first[b]
        return np.ascontiguousarray((block if of is None else block[of])[:, columns].T)


def _number(i: Any, j: Any) -> Any:
    """The number of a pair, in either order, in rows of the lower triangle."""
    high, low = np.maximum(i, j).astype(np.int64), np.minimum(i, j)
    return high * (high + 1) // 2 + low


class _Vectors:
    """A growing list of rows of one length: the first are in memory, the others in a file of this process."""

    def __init__(self, width: int, limit_bytes: int, scratch: str) -> None:
        self._width, self._limit, self._scratch = width, limit_bytes, scratch
        self._blocks: list[Values] = []
        self._file: _core.ExclusiveFile | None = None
        self._written = 0

    def add(self, block: Values) -> None:
        if sum(each.nbytes for each in self._blocks) + block.nbytes <= self._limit:
            self._blocks.append(block)
            return
        if self._file is None:
            self._file = _core.ExclusiveFile("Cholesky vectors", scratch=self._scratch)
        self._file.write(np.ascontiguousarray(block), self._written)
        self._written += block.nbytes

    def panels(self) -> Iterator[Values]:
        """Yields all rows in order, in panels. A panel is valid until the next one is requested."""
        yield from self._blocks
        if self._file is None:
            return
        some = max(1, _PANEL_BYTES // (8 * self._width)) * 8 * self._width
        for begin in range(0, self._written, some):
            panel = np.empty((min(some, self._written - begin) // (8 * self._width), self._width))
            self._file.read(panel, begin)
            yield panel

    def close(self) -> None:
        self._blocks.clear()
        if self._file is not None:
            self._file.delete()


def _symmetric(
    world: World, source: Mole | GivenIntegrals, tolerance: float, group: str | None
) -> Shells | GivenIntegrals:
    """The source of integrals: given ones, or those of a molecule. It uses symmetry if each integral is then still
    right within the tolerance: atoms must be symmetric enough, and the axes those of the frame. Collective."""
    if hasattr(source, "packed"):
        return source
    axes = Axes(source, operations.find_at_all(world, source, group))
    used = axes.found.operations
    right = used is None or (axes.aligned and _OF_CHANGE * used.change <= tolerance)
    return Shells(source, axes if right else None)


@dataclass(frozen=True)
class _Found:
    """The pivots, as products of functions m >= n in the order in which they were found. where: their positions in
    `vectors`, whose rows cover the products that may become pivots. The caller closes `vectors`."""

    m: Values
    n: Values
    where: Values
    vectors: _Vectors

    def factor(self) -> Values:
        """L with (K|K') = L L^T, lower triangular."""
        made = np.empty((len(self.where), len(self.where)))
        row = 0
        for panel in self.vectors.panels():
            made[:, row : row + len(panel)] = panel[:, self.where].T
            row += len(panel)
        return made


def search(shells: Shells | GivenIntegrals, tolerance: float, limit_bytes: int, scratch: str) -> _Found:
    """The first step: finds the pivots. Raises OutcoreError: ENOSPC, EINVAL."""
    diagonal = shells.diagonal()
    kept = np.flatnonzero(diagonal > tolerance)  # others never become pivots
    diagonal = diagonal[kept]
    i, j = (index[kept] for index in np.tril_indices(len(shells.of)))
    pairs = shells.of[i] * shells.count + shells.of[j]
    vectors = _Vectors(len(kept), limit_bytes - limit_bytes // _COLUMNS, scratch)
    rounding = _ROUNDING * float(diagonal.max(initial=0.0))
    most = max(1, limit_bytes // _COLUMNS // (16 * max(1, len(kept))))
    pivots: list[int] = []
    try:
        while len(kept) and diagonal.max() > tolerance:
            least = max(tolerance, _SPAN * float(diagonal.max()))
            batch = _batch(pairs, diagonal, np.arange(len(kept)), least, _BATCH_BYTES // (16 * len(kept)))
            choice = _Choice(np.sort(np.concatenate(batch)), diagonal, least, rounding)
            while (first := choice.next()) is not None:
                here = _batch(pairs, diagonal, choice.products, least, most, pairs[first])
                rows = dict(shells.rows_of([(i[each], j[each]) for each in here], kept))
                columns = np.concatenate([rows.pop(number) for number in range(len(here))])
                of_columns = np.concatenate(here)
                for panel in vectors.panels():
                    columns -= panel[:, of_columns].T @ panel
                found, block = _eliminate(columns, of_columns, choice)
                pivots += found
                vectors.add(block)
    except BaseException:
        vectors.close()
        raise
    where = np.array(pivots, int)
    return _Found(i[where], j[where], where, vectors)


def search_bytes(functions: int, largest_pair: int) -> int:
    """The least memory of the first step: all copies of the integrals of all products with those of one pair of
    shells, and panels of vectors."""
    return _COPIES * 8 * (functions * (functions + 1) // 2) * largest_pair + 2 * _PANEL_BYTES


def factor_bytes(rank: int) -> int:
    """The least memory of the factor while it is made from vectors that lie partly in memory."""
    return 8 * rank * rank * 8 // 5 + 2 * _PANEL_BYTES


def _batch(
    pairs: Values, diagonal: Values, of: Values, least: float, most: int, first: int | None = None
) -> list[Values]:
    """Products of the pairs of shells with the largest diagonal elements, at most `most` products, but at least one
    pair. of: products from which to choose. first: the pair that comes first."""
    order = of[diagonal[of] >= least]
    # Elements that are equal except for rounding come in the order of their numbers.
    digits = np.round(np.log(diagonal[order]) / _TIED / 100)
    order = order[np.argsort(-digits, kind="stable")]
    listed = pairs[order].tolist() if first is None else [int(first), *pairs[order].tolist()]
    every = np.argsort(pairs[of], kind="stable")
    begins = np.searchsorted(pairs[of], listed, "left", sorter=every)
    ends = np.searchsorted(pairs[of], listed, "right", sorter=every)
    found: list[Values] = []
    count = 0
    for begin, end in dict.fromkeys(zip(begins.tolist(), ends.tolist(), strict=True)):
        if found and count + end - begin > most:
            break
        found.append(of[every[begin:end]])
        count += end - begin
    return found


class _Choice:
    """Chooses the next pivot of a batch: the product with the largest diagonal element, as long as it is above
    `least`. Among equal ones it is the first, as rounding differs from run to run. The caller changes the
    diagonal."""

    def __init__(self, products: Values, diagonal: Values, least: float, rounding: float) -> None:
        self.products, self.diagonal, self._least, self._rounding = products, diagonal, least, rounding

    def next(self) -> int | None:
        values = self.diagonal[self.products]
        largest = float(values.max())
        if not largest > self._least:
            return None
        enough = max(largest * (1 - _TIED) - self._rounding, self._least)
        return int(self.products[np.argmax((values >= enough) & (values > self._least))])


def _eliminate(columns: Values, of_columns: Values, choice: _Choice) -> tuple[list[int], Values]:
    """Eliminates pivots as long as the next one has its column here. Returns the pivots and their vectors. Changes
    the diagonal."""
    diagonal, found = choice.diagonal, list[int]()
    vectors = np.empty_like(columns)
    place = dict(zip(of_columns.tolist(), range(len(of_columns)), strict=True))
    while (pivot := choice.next()) is not None and pivot in place:
        count = len(found)
        row = columns[place[pivot]] - vectors[:count, pivot] @ vectors[:count]
        row /= np.sqrt(diagonal[pivot])
        vectors[count] = row
        diagonal -= row * row
        diagonal[pivot] = 0.0
        found.append(pivot)
    return found, vectors[: len(found)].copy()


def _check(rank: int, limit_bytes: int, tolerance: float) -> None:
    if 2 * 8 * rank * rank > limit_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            "Cholesky decomposition",
            detail=f"{rank} vectors and more are needed for a tolerance of {tolerance:g} Eh, whose factor takes "
            f"{in_words(2 * 8 * rank * rank)}, but {in_words(limit_bytes)} are left",
        )
