"""Vectors that a search for states of open shells begins with; see `guess`."""

from __future__ import annotations

import threading
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.guess import LARGEST, SHARE, FirstState, in_turn
from outcore.chem.cc.equations.excited.open_blocks import NONE, Pair, flat

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.open_states import OpenStates
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

EXCITATIONS: tuple[Pair, ...] = ((0, 0), (1, 1))


def excitation_blocks(of: OpenTransformedHamiltonian, row: Values) -> list[Values]:
    """[i,a] of both spins, of excitations that keep it."""
    cut = of.spaces[0].occupied * of.spaces[0].virtual
    return [
        each.reshape(space.occupied, space.virtual)
        for each, space in zip((row[:cut], row[cut:]), of.spaces, strict=True)
    ]


def states(of: OpenStates, count: int) -> list[FirstState]:
    """Start vectors: `count` of singles, and about as many doubles, products of an excitation that keeps the spin
    (the first factor) and one of these. Collective."""
    energies, found = _singles(of.of, of.kind.singles, count)
    above, excited = _singles(of.of, EXCITATIONS, count)
    places = sorted(np.ndindex(len(above), len(energies)), key=lambda pq: above[pq[0]] + energies[pq[1]])
    nothing = np.zeros_like(found[0])
    ones = [FirstState(each) for each in found]
    return in_turn(
        ones, [FirstState(nothing, partial(of.product, (excited[p], found[q]))) for p, q in places[:count]]
    )


def _singles(
    of: OpenTransformedHamiltonian, kinds: tuple[Pair, ...], count: int
) -> tuple[Values, list[Values]]:
    """Energies (Hartree) and rows of the lowest states of single excitations of these kinds, `count` at most."""
    room = of.room
    inside = [*(np.diag(each) for each in of.foo), np.zeros(1)]
    outside = [*(np.diag(each) for each in of.fvv), np.zeros(1)]
    gaps = [outside[a][None, :] - inside[i][:, None] for a, i in kinds]
    every = flat(gaps)
    most = int((SHARE * room.plan.work_bytes / 8 / 4) ** 0.5)
    chosen = np.sort(np.argsort(every, kind="stable")[: min(max(count, most), LARGEST, every.size)])
    h, begin, places = np.diag(every[chosen]), 0, []
    for (a, i), gap in zip(kinds, gaps, strict=True):
        where = np.flatnonzero((chosen >= begin) & (chosen < begin + gap.size))
        rows, columns = np.unravel_index(chosen[where] - begin, gap.shape)
        places.append((a, i, where, rows, columns))
        begin += gap.size
    h += _integrals(of, places, len(chosen))
    for a, i, where, rows, columns in places:
        one, other = (n.ravel() for n in np.meshgrid(range(len(where)), range(len(where)), indexing="ij"))
        if i != NONE:
            same = (columns[one] == columns[other]) & (rows[one] != rows[other])
            h[where[one[same]], where[other[same]]] -= of.foo[i][rows[one[same]], rows[other[same]]]
        if a != NONE:
            same = (rows[one] == rows[other]) & (columns[one] != columns[other])
            h[where[one[same]], where[other[same]]] += of.fvv[a][columns[one[same]], columns[other[same]]]
    energies, vectors = np.linalg.eigh((h + h.T) / 2)
    found = []
    for state in vectors.T[:count]:
        row = np.zeros(every.size)
        row[chosen] = state
        found.append(row)
    return energies[:count], found


def _integrals(
    of: OpenTransformedHamiltonian, places: list[tuple[int, int, Values, Values, Values]], n: int
) -> Values:
    """(ia|jb) of excitations that keep the spin, less (ij|ab) of those of one kind."""
    room, total, guard = of.room, np.zeros((n, n)), threading.Lock()
    signs = np.ones(of.bvo[0].shape[0]) if room.signs is None else room.signs
    rows = np.zeros((len(signs), n))
    for a, i, where, of_i, of_a in places:
        if NONE in (a, i):
            continue
        cuts = of.spaces[a].v.cuts
        blocks = [np.flatnonzero((of_a >= begin) & (of_a < end)) for begin, end in pairwise(cuts)]
        boo = of.boo[i].get_tile((0, 0, 0)) * signs[:, None, None]
        bvv = of.bvv[a]

        def work(
            tile: Tile,
            cuts: Any = cuts,
            blocks: Any = blocks,
            boo: Any = boo,
            bvv: Any = bvv,
            place: Any = (where, of_i, of_a),
        ) -> None:
            _, p, r = tile
            where, of_i, of_a = place
            left, right = blocks[p], blocks[r]
            if not len(left) or not len(right):
                return
            exchange = np.tensordot(boo, bvv.get_tile(tile), ([0], [0]))  # [i,j,a,b]
            one, other = np.ix_(left, right)
            values = -exchange[of_i[one], of_i[other], of_a[one] - cuts[p], of_a[other] - cuts[r]]
            with guard:
                total[np.ix_(where[left], where[right])] += values
                if p != r:
                    total[np.ix_(where[right], where[left])] += values.T

        room.each_tile(bvv, work, "first states")
        if a == i:
            for number, block in enumerate(blocks):
                if len(block):
                    values = of.bvo[a].get_tile((0, number, 0))
                    rows[:, where[block]] = values[:, of_a[block] - cuts[number], of_i[block]]
    found: Values = np.asarray(room.world.all_reduce(total))
    return found + (rows * signs[:, None]).T @ rows
