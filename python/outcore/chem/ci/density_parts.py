"""Sums of products of coefficients that two-particle densities are made of, part by part of a task.

Of two electrons of different spin: D_K(q, s) = C(Ka + q, Kb + s) with its signs, for every pair K of strings with
one electron less; the density is the sum of D_K(p, r) D_K(q, s). Of two electrons of one spin: the same with
strings that have two electrons less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ci.space import list_strings

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers, Masks, Space, StringList

    Matrix = NDArray[np.float64]

_ONE = np.uint64(1)
_BATCH = 4096  # beta holes of a product of matrices


def below(masks: Masks, orbital: int) -> Integers:
    """Electrons in lower orbitals."""
    return np.asarray(np.bitwise_count(masks & np.uint64((1 << orbital) - 1)), np.int64)


class Blocks:
    """Some rows and columns of a vector C[alpha][beta], transposed C[beta][alpha]: for each irrep of the rows a
    matrix [row][column] with a last column of zeros, which index -1 means."""

    def __init__(self, space: Space, rows: Integers, columns: Integers, *, transposed: bool = False) -> None:
        lists = (space.beta, space.alpha) if transposed else (space.alpha, space.beta)
        self.space, self.transposed = space, transposed
        self.rows = [_inside(rows, each) for each in _sectors(lists[0])]
        self.columns = [_inside(columns, each) for each in _sectors(lists[1])]
        self.values: list[Matrix] = [
            np.zeros((len(mine), len(self.columns[g ^ space.irrep]) + 1)) for g, mine in enumerate(self.rows)
        ]
        self.row_of = _places(self.rows, len(lists[0].strings))
        self.column_of = _places(self.columns, len(lists[1].strings))

    def load(self, row: int, column: int, tile: Matrix) -> None:
        """What is here of a tile, whose first row and column are these; it lies in one sector of each."""
        height, width = tile.shape
        for g, values in enumerate(self.values):
            mine, theirs = self.rows[g], self.columns[g ^ self.space.irrep]
            i, j = np.searchsorted(mine, (row, row + height))
            k, m = np.searchsorted(theirs, (column, column + width))
            if j > i and m > k:
                values[i:j, k:m] = tile[np.ix_(mine[i:j] - row, theirs[k:m] - column)]


def _sectors(strings: StringList) -> list[range]:
    return [strings.sector(g) for g in range(len(strings.offsets) - 1)]


def _inside(indices: Integers, sector: range) -> Integers:
    first, last = np.searchsorted(indices, (sector.start, sector.stop))
    return indices[first:last]


def _places(parts: list[Integers], count: int) -> Integers:
    """Of each string of a list its place in its part, -1 if it is in none."""
    found = np.full(count + 1, -1, np.int64)
    for part in parts:
        found[part] = np.arange(len(part))
    return found


@dataclass(frozen=True)
class _Added:
    """Strings of one electron more than holes of one irrep, in orbitals of one irrep. indices: [orbital][hole], -1
    where the orbital is occupied. signs: the same."""

    orbitals: Integers
    indices: Integers
    signs: Matrix


class Opposite:
    """Of two electrons of different spin. `sums[x]` is the density of pairs (q, s) whose product has irrep x."""

    def __init__(self, space: Space) -> None:
        self.space = space
        alpha, beta = space.electrons
        self.irreps = np.asarray(space.irreps, np.int64)
        self.holes: Masks = np.sort(list_strings(space.irreps, space.groups, alpha - 1).strings)
        theirs = list_strings(space.irreps, space.groups, beta - 1)
        self._beta = [theirs.strings[each.start : each.stop] for each in _sectors(theirs)]
        self._added = [
            [self._with_one_more(masks, np.flatnonzero(self.irreps == j)) for j in range(space.groups)]
            for masks in self._beta
        ]
        n = space.orbitals
        self.number = np.zeros((n, n), np.int64)  # of a pair among those of its irrep
        self.pairs: list[Integers] = []
        for x in range(space.groups):
            q, s = np.nonzero((self.irreps[:, None] ^ self.irreps) == x)
            self.number[q, s] = np.arange(len(q))
            self.pairs.append(np.stack([q, s]))

    def new_sums(self) -> list[Matrix]:
        return [np.zeros((each.shape[1],) * 2) for each in self.pairs]

    def _with_one_more(self, masks: Masks, orbitals: Integers) -> _Added:
        indices = np.full((len(orbitals), len(masks)), -1, np.int64)
        signs = np.zeros((len(orbitals), len(masks)))
        for k, orbital in enumerate(orbitals):
            bit = np.uint64(1 << int(orbital))
            empty = (masks & bit) == 0
            indices[k, empty] = self.space.beta.rank(masks[empty] | bit)
            signs[k] = 1 - 2 * (below(masks, int(orbital)) & 1)
        return _Added(orbitals, indices, signs)

    def add(self, sums: list[Matrix], bra: Blocks, ket: Blocks, hole: int) -> None:
        """The pairs of one alpha hole with all beta holes; of a folded space with those up to itself, and half of
        that with itself: the rest follows by exchange of spins."""
        space, mask = self.space, int(self.holes[hole])
        own = 0
        for orbital in range(space.orbitals):
            own ^= int(self.irreps[orbital]) if mask >> orbital & 1 else 0
        rows = self._rows(mask)
        for g, holes in enumerate(self._beta):
            x = space.irrep ^ own ^ g
            count = int(np.searchsorted(holes, self.holes[hole], "right")) if space.folded else len(holes)
            for first in range(0, count, _BATCH):
                part = slice(first, min(first + _BATCH, count))
                matrices = [
                    self._gathered(each, rows, own, g, part)
                    for each in ((bra,) if bra is ket else (bra, ket))
                ]
                if matrices[0] is None:
                    continue
                left, which = matrices[0]
                right = matrices[-1][0]  # type: ignore[index]
                if space.folded and part.stop == count and count and holes[count - 1] == self.holes[hole]:
                    right = right.copy()
                    right[:, -1] *= 0.5
                sums[x][np.ix_(which, which)] += left @ right.T

    def _rows(self, mask: int) -> list[tuple[Integers, Integers, Matrix]]:
        """For each irrep of an added alpha electron: orbitals, indices of strings, signs."""
        found = []
        for i in range(self.space.groups):
            orbitals = np.array(
                [q for q in np.flatnonzero(self.irreps == i) if not mask >> int(q) & 1], np.int64
            )
            masks = np.uint64(mask) | (_ONE << orbitals.astype(np.uint64))
            signs = np.array(
                [-1.0 if (mask & ((1 << int(q)) - 1)).bit_count() & 1 else 1.0 for q in orbitals]
            )
            found.append((orbitals, self.space.alpha.rank(masks), signs))
        return found

    def _gathered(
        self, blocks: Blocks, rows: list[tuple[Integers, Integers, Matrix]], own: int, g: int, part: slice
    ) -> tuple[Matrix, Integers] | None:
        """D[pair (q, s)][beta hole], and the numbers of the pairs."""
        found, which = [], []
        for i, (orbitals, strings, signs) in enumerate(rows):
            row_irrep = own ^ i
            added = self._added[g][row_irrep ^ self.space.irrep ^ g]
            if not len(orbitals) or not len(added.orbitals):
                continue
            own_rows = blocks.values[row_irrep][blocks.row_of[strings]] * signs[:, None]
            places = blocks.column_of[added.indices[:, part]]
            gathered = np.take(own_rows, places.ravel(), axis=1).reshape(len(orbitals), *places.shape)
            gathered *= added.signs[:, part]
            found.append(gathered.reshape(-1, places.shape[1]))
            which.append(self.number[np.ix_(orbitals, added.orbitals)].ravel())
        return (np.concatenate(found), np.concatenate(which)) if found else None

    def density(self, sums: list[Matrix]) -> Matrix:
        """[p][q][r][s] = <a+_p b+_r b_s a_q>."""
        n = self.space.orbitals
        found = np.zeros((n,) * 4)
        for (q, s), values in zip(self.pairs, sums, strict=True):
            found[q[:, None], q, s[:, None], s] = values
        if self.space.folded:
            found = found + found.transpose(2, 3, 0, 1)
        return found


class Same:
    """Of two electrons of the spin of the columns. `sums[y]` is the density of pairs p > r whose product has irrep
    y."""

    def __init__(self, space: Space, *, transposed: bool = False) -> None:
        self.space, self.transposed = space, transposed
        strings = space.alpha if transposed else space.beta
        irreps, n = np.asarray(space.irreps, np.int64), space.orbitals
        self.pairs: list[Integers] = []
        number = np.zeros((n, n), np.int64)
        p_all, r_all = np.tril_indices(n, -1)
        for y in range(space.groups):
            mine = (irreps[p_all] ^ irreps[r_all]) == y
            number[p_all[mine], r_all[mine]] = np.arange(mine.sum())
            self.pairs.append(np.stack([p_all[mine], r_all[mine]]))
        left, index, pair, irrep, sign = [], [], [], [], []
        for p, r in zip(p_all, r_all, strict=True):
            bits = np.uint64((1 << int(p)) | (1 << int(r)))
            here = np.flatnonzero((strings.strings & bits) == bits)
            without = strings.strings[here] ^ bits
            left.append(without)
            index.append(here)
            pair.append(np.full(len(here), number[p, r]))
            irrep.append(np.full(len(here), irreps[p] ^ irreps[r]))
            sign.append(1.0 - 2.0 * ((below(without, int(r)) + below(without, int(p))) & 1))
        of_holes: Masks = np.concatenate(left) if left else np.empty(0, np.uint64)
        self._index, self._pair, self._irrep = (
            np.concatenate(each) if each else np.empty(0, np.int64) for each in (index, pair, irrep)
        )
        self._sign = np.concatenate(sign) if sign else np.empty(0)
        column_irrep = np.searchsorted(strings.offsets, self._index, side="right") - 1
        order = np.lexsort((self._irrep, of_holes, column_irrep))
        self._index, self._pair, self._irrep = (
            each[order] for each in (self._index, self._pair, self._irrep)
        )
        self._sign, self._sector = self._sign[order], column_irrep[order]
        changed = (np.diff(of_holes[order]) != 0) | (np.diff(self._irrep) != 0) | (np.diff(self._sector) != 0)
        cuts = np.flatnonzero(changed) + 1
        self.cuts = np.concatenate([[0], cuts, [len(order)]]) if len(order) else np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def new_sums(self) -> list[Matrix]:
        return [np.zeros((each.shape[1],) * 2) for each in self.pairs]

    def add(self, sums: list[Matrix], bra: Blocks, ket: Blocks, hole: int) -> None:
        """All rows of the blocks, which have all columns, with one hole of two electrons and one irrep of pairs."""
        part = slice(int(self.cuts[hole]), int(self.cuts[hole + 1]))
        sector, y = int(self._sector[part.start]), int(self._irrep[part.start])
        row_irrep = sector ^ self.space.irrep
        if not len(bra.values[row_irrep]):
            return
        columns, which, signs = bra.column_of[self._index[part]], self._pair[part], self._sign[part]
        left = bra.values[row_irrep][:, columns]
        right = left if bra is ket else ket.values[row_irrep][:, columns]
        sums[y][np.ix_(which, which)] += (left.T @ right) * np.outer(signs, signs)

    def density(self, sums: list[Matrix]) -> Matrix:
        """[p][q][r][s] = <p+ r+ s q>."""
        n = self.space.orbitals
        found = np.zeros((n,) * 4)
        for (p, r), values in zip(self.pairs, sums, strict=True):
            for left, right, sign in (
                ((p, r), (p, r), 1),
                ((r, p), (p, r), -1),
                ((p, r), (r, p), -1),
                ((r, p), (r, p), 1),
            ):
                found[left[0][:, None], right[0], left[1][:, None], right[1]] = sign * values
        return found
