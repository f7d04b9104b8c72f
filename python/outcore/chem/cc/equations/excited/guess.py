"""Vectors that a search for states begins with.

First come states of single excitations, of those with the smallest differences of energies. Their matrix is
diagonalised as a whole, so that each symmetry of a low state occurs. Then come double excitations, products of two
of these: a low state may have a symmetry that no low single excitation has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, pairwise, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

MORE = 4
"""How many more start vectors of singles there are than roots. Correlation changes the order of states: with 2, two
triplets of hydrogen cyanide lacked the lowest pair of one symmetry."""
LARGEST = 1200  # excitations whose matrix is diagonalised
SHARE = 0.25  # share of the work space for this matrix


@dataclass(frozen=True)
class FirstState:
    """A start vector: singles, and tiles [part, tile] of doubles, which any thread may make; None: no doubles."""

    singles: Values
    doubles: Callable[[int, Tile], Values] | None = None


Product = Callable[[tuple[Values, Values], int, "Tile"], Values]
"""A tile of doubles that are the product of two factors: [factors, part, tile]. Any thread."""


def excitations(
    of: TransformedHamiltonian, product: Product, count: int, *, coulomb: float, core: Values | None = None
) -> list[FirstState]:
    """Start vectors: `count` of singles [i,a], `MORE` more than roots, and about as many doubles, products of two
    of these; fewer if no more exist. Collective."""
    energies, states = singles(of, count, coulomb=coulomb, core=core)
    above, others = (energies, states) if core is None else singles(of, count, coulomb=coulomb)
    every = (
        combinations_with_replacement(range(len(states)), 2)
        if core is None
        else np.ndindex(len(states), len(others))
    )
    pairs = sorted(every, key=lambda pq: energies[pq[0]] + above[pq[1]])
    nothing = np.zeros_like(states[0])
    ones = [FirstState(each) for each in states]
    return in_turn(
        ones, [FirstState(nothing, partial(product, (states[p], others[q]))) for p, q in pairs[:count]]
    )


def ions(
    of: TransformedHamiltonian, product: Product, matrix: Values, count: int, *, core: Values | None = None
) -> list[FirstState]:
    """Start vectors: `count` of one orbital, eigenvectors of `matrix`, and about as many doubles, products of an
    excitation (the first factor) and one of these. Collective."""
    chosen = np.arange(len(matrix)) if core is None else np.flatnonzero(core)
    whole = (matrix + matrix.T) / 2
    energies, found = np.linalg.eigh(whole[np.ix_(chosen, chosen)])
    states = np.zeros((len(matrix), len(chosen)))
    states[chosen] = found
    above, excited = singles(of, count, coulomb=2.0)
    places = sorted(np.ndindex(len(above), len(energies)), key=lambda pq: above[pq[0]] + energies[pq[1]])
    nothing = np.zeros(len(matrix))
    ones = [FirstState(each) for each in states.T[:count]]
    return in_turn(
        ones, [FirstState(nothing, partial(product, (excited[p], states[:, q]))) for p, q in places[:count]]
    )


def in_turn(ones: list[FirstState], twos: list[FirstState]) -> list[FirstState]:
    """As many of `ones` as there are roots, then `twos` and the rest of `ones` in turn."""
    roots = max(1, len(ones) - MORE)
    rest = [each for pair in zip_longest(twos, ones[roots:]) for each in pair if each is not None]
    return [*ones[:roots], *rest]


def singles(
    of: TransformedHamiltonian, count: int, *, coulomb: float, core: Values | None = None
) -> tuple[Values, list[Values]]:
    """Energies (Hartree) and vectors [i,a] of the lowest states of configuration interaction of singles, `count` at
    most. coulomb: how often Coulomb integrals count, 2 for singlets, 0 for triplets. core: occupied orbitals that
    excitations are from. Collective."""
    room, o, v = of.room, of.spaces.occupied, of.spaces.virtual
    gaps = np.diag(of.fvv)[None, :] - np.diag(of.foo)[:, None]
    most = int((SHARE * room.plan.work_bytes / 8 / 3) ** 0.5)
    there = gaps.size if core is None else int(core.sum()) * v
    ordered = gaps if core is None else np.where(core[:, None], gaps, np.inf)
    chosen = np.argsort(ordered, axis=None, kind="stable")[: min(max(count, most), LARGEST, there)]
    i, a = np.unravel_index(chosen, (o, v))
    h = np.diag(gaps[i, a]) + _integrals(of, i, a, coulomb)
    energies, states = np.linalg.eigh((h + h.T) / 2)
    found = []
    for state in states.T[:count]:
        values = np.zeros((o, v))
        values[i, a] = state
        found.append(values)
    return energies[:count], found


def _integrals(of: TransformedHamiltonian, i: Values, a: Values, coulomb: float) -> Values:
    """coulomb (ia|jb) - (ij|ab) of chosen pairs."""
    room, cuts, n = of.room, of.spaces.v.cuts, len(i)
    total, guard = np.zeros((n, n)), threading.Lock()
    signs = room.signs
    boo = of.boo.get_tile((0, 0, 0))
    if signs is not None:
        boo = boo * signs[:, None, None]
    blocks = [np.flatnonzero((a >= begin) & (a < end)) for begin, end in pairwise(cuts)]
    bvv = of.of.integrals.bvv

    def work(tile: Tile) -> None:
        _, p, r = tile
        left, right = blocks[p], blocks[r]
        if not len(left) or not len(right):
            return
        exchange = np.tensordot(boo, bvv.get_tile(tile), ([0], [0]))  # [i,j,a,b]
        rows, columns = np.ix_(left, right)
        values = -exchange[i[rows], i[columns], a[rows] - cuts[p], a[columns] - cuts[r]]
        if coulomb:
            one, other = (
                of.bvo.get_tile((0, block, 0))[:, a[part] - cuts[block], i[part]]
                for block, part in ((p, left), (r, right))
            )
            weighted = one if signs is None else one * signs[:, None]
            values = values + coulomb * (weighted.T @ other)
        with guard:
            total[rows, columns] = values
            if p != r:
                total[columns.T, rows.T] = values.T

    room.each_tile(bvv, work, "first states")
    found: Values = np.asarray(room.world.all_reduce(total))
    return found
