"""States of a CI in rotated orbitals: one orbital is replaced at a time, in slabs of whole rows, then of columns.

Replacing orbital k by sum_j t_j phi_j changes strings with k alone: C'(J) = t_k C(J) + sum_j +- t_j C(J - k + j).
Malmqvist, Int. J. Quantum Chem. 30, 479 (1986).
"""

from __future__ import annotations

import errno
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.ci.vector import make

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian, Integers, Matrix
    from outcore.chem.ci.solver import Solved
    from outcore.chem.ci.space import Masks, StringList
    from outcore.chem.ci.vector import Vectors

_ONE = np.uint64(1)
_ZERO = 1e-12  # smaller elements of a rotation are 0
_MIXED = 1e-8  # a larger element between irreps mixes them


@dataclass(frozen=True)
class Replacements:
    """A rotation as a list of replacements: slot k gets sum_j t_j times the orbital in slot j. At the end slot k
    holds new orbital `which[k]`."""

    replaced: list[tuple[int, Matrix]]
    which: Integers


def steps(rotation: Matrix) -> Replacements:
    """The replacements for a square matrix [old][new]. Raises OutcoreError (EINVAL) if it is singular."""
    n = len(rotation)
    left, held = rotation.copy(), np.eye(n)  # the rest of the rotation; the slots' orbitals in columns
    replaced, which = [], np.full(n, -1, np.int64)
    slots, orbitals = list(range(n)), list(range(n))
    for _ in range(n):
        there = np.linalg.solve(held, left[:, orbitals])  # the new orbitals in terms of the slots
        size = abs(there[slots])
        row, column = np.unravel_index(size.argmax(), size.shape)
        if size[row, column] < _ZERO:
            raise OutcoreError(errno.EINVAL, "rotate orbitals", detail="the rotation is singular")
        slot, orbital = slots.pop(int(row)), orbitals.pop(int(column))
        replaced.append((slot, np.where(abs(there[:, column]) < _ZERO, 0.0, there[:, column])))
        held[:, slot] = rotation[:, orbital]
        which[slot] = orbital
    return Replacements(replaced, which)


class StringRotation:
    """The rotation of all strings of one irrep, along the last axis of an array."""

    def __init__(self, masks: Masks, steps: Replacements) -> None:
        self._scaled: list[tuple[Integers, float]] = []
        self._added: list[list[tuple[Integers, Integers, Matrix]]] = []
        for slot, parts in steps.replaced:
            bit = _ONE << np.uint64(slot)
            has = (masks & bit) != 0
            self._scaled.append((np.flatnonzero(has), float(parts[slot])))
            terms = []
            for other in np.flatnonzero(parts):
                if other == slot:
                    continue
                other_bit = _ONE << np.uint64(other)
                here = np.flatnonzero(has & ((masks & other_bit) == 0))
                source = np.searchsorted(masks, masks[here] ^ bit ^ other_bit)
                low, high = sorted((slot, int(other)))
                between = np.uint64(((1 << high) - 1) & ~((1 << (low + 1)) - 1))
                signs = 1.0 - 2.0 * (np.bitwise_count(masks[here] & between) & 1)
                terms.append((here, source, signs * parts[other]))
            self._added.append(terms)
        self._place, self._sign = _relabelled(masks, steps.which)

    def apply(self, x: Matrix) -> Matrix:
        for (has, factor), terms in zip(self._scaled, self._added, strict=True):
            changed = x[:, has] * factor
            x[:, has] = changed
            for here, source, factors in terms:
                x[:, here] += x[:, source] * factors
        found = np.empty_like(x)
        found[:, self._place] = x * self._sign
        return found


def _relabelled(masks: Masks, which: Integers) -> tuple[Integers, Matrix]:
    """The position of each string of slots among the strings of the orbitals in the slots, and its sign."""
    new, signs = np.zeros_like(masks), np.ones(len(masks))
    for slot, orbital in enumerate(which):
        has = (masks >> np.uint64(slot)) & _ONE
        new |= has << np.uint64(orbital)
        for below in range(slot):
            if which[below] > orbital:  # two electrons that change places
                signs *= 1.0 - 2.0 * (has & (masks >> np.uint64(below)) & _ONE)
    return np.searchsorted(masks, new), signs


def rotated(solved: Solved, root: int, hamiltonian: Hamiltonian, alpha: Matrix, beta: Matrix) -> Vectors:
    """A state in rotated orbitals. alpha, beta: rotations [old][new] of sorted orbitals, which must not mix irreps.
    Needs space for one further unfolded vector, and memory for a row of tiles. Collective.

    Raises OutcoreError (EINVAL) for rotations that mix irreps, are singular, or differ where vectors are folded."""
    states, space = solved.states, solved.space
    apart = hamiltonian.irreps[:, None] != hamiltonian.irreps
    if max(abs(alpha[apart]).max(initial=0.0), abs(beta[apart]).max(initial=0.0)) > _MIXED:
        raise OutcoreError(errno.EINVAL, "rotate orbitals", detail="the rotation mixes irreps")
    if space.parity and abs(alpha - beta).max() > _MIXED:
        raise OutcoreError(
            errno.EINVAL, "rotate orbitals", detail="folded states have one rotation for both spins"
        )
    clean = [np.where(apart, 0.0, each) for each in (alpha, beta)]
    world, plan = states.world, solved.plan
    whole = VectorTiling(Space(hamiltonian, *space.electrons, space.irrep, 0), states.tiling.side)
    between = make(world, whole, plan.kind, cache_bytes=plan.cache_bytes)
    found = make(world, states.tiling, plan.kind, cache_bytes=plan.cache_bytes)
    with world.together("rotate orbitals"):
        _rows(states, root, between, _sectors(space.beta, steps(clean[1])))
    between.sync()
    with world.together("rotate orbitals"):
        _columns(between, found, _sectors(space.alpha, steps(clean[0])))
    found.sync()
    between.close()
    return found


def _sectors(strings: StringList, made: Replacements) -> list[StringRotation]:
    cuts = strings.offsets
    return [StringRotation(strings.strings[a:b], made) for a, b in itertools.pairwise(cuts)]


def _rows(source: Vectors, root: int, target: Vectors, beta: list[StringRotation]) -> None:
    """Rotates the rows of this process."""
    tiling, space = target.tiling, target.tiling.space
    for row in range(source.world.rank, len(tiling.rows) - 1, source.world.size):
        columns = np.flatnonzero(tiling.there[row])
        if not len(columns):
            continue
        begin, sector = _sector(tiling.rows[row], space.alpha, space.beta, space.irrep)
        slab = np.zeros((tiling.rows[row + 1] - tiling.rows[row], len(sector)))
        for column in columns:
            part = slice(tiling.columns[column] - sector.start, tiling.columns[column + 1] - sector.start)
            slab[:, part] = _tile(source, root, row, int(column))
        slab = beta[begin ^ space.irrep].apply(slab)
        for column in columns:
            part = slice(tiling.columns[column] - sector.start, tiling.columns[column + 1] - sector.start)
            target.put(0, tiling[int(tiling.number[row, column])], np.ascontiguousarray(slab[:, part]))


def _columns(source: Vectors, target: Vectors, alpha: list[StringRotation]) -> None:
    """Rotates columns. Of a folded target it stores the tiles on and below the diagonal."""
    tiling, kept = source.tiling, target.tiling
    space, parity = tiling.space, kept.parity
    for column in range(source.world.rank, len(tiling.columns) - 1, source.world.size):
        rows = np.flatnonzero(tiling.there[:, column])
        if not len(rows):
            continue
        begin, sector = _sector(tiling.columns[column], space.beta, space.alpha, space.irrep)
        slab = np.zeros((tiling.columns[column + 1] - tiling.columns[column], len(sector)))
        for row in rows:
            part = slice(tiling.rows[row] - sector.start, tiling.rows[row + 1] - sector.start)
            slab[:, part] = source.get(0, tiling[int(tiling.number[row, column])]).T
        slab = alpha[begin ^ space.irrep].apply(slab)
        for row in rows:
            number = int(kept.number[row, column])
            if number < 0:
                continue
            part = slice(tiling.rows[row] - sector.start, tiling.rows[row + 1] - sector.start)
            block = np.ascontiguousarray(slab[:, part].T)
            if parity and kept[number].on_diagonal:
                block = (block + parity * block.T) / 2
            target.put(0, kept[number], block)


def _sector(first: int, strings: StringList, others: StringList, irrep: int) -> tuple[int, range]:
    """The irrep of the string with this index, and the sector of strings of the other spin that combine with it."""
    mine = int(np.searchsorted(strings.offsets, first, side="right")) - 1
    return mine, others.sector(mine ^ irrep)


def _tile(source: Vectors, root: int, row: int, column: int) -> Matrix:
    """A tile of a vector, also of the half that is not stored."""
    tiling = source.tiling
    number = int(tiling.number[row, column])
    if number >= 0:
        return np.asarray(source.get(root, tiling[number]))
    return np.asarray(tiling.parity * source.get(root, tiling[int(tiling.number[column, row])]).T)
