"""The part of the active electrons: densities of electrons and of holes, and their contractions with the
Hamiltonian.

Densities are those of both spins together: one[p, q] = <p+ q>, two[p, q, r, s] = <p+ r+ s q>, and for three
particles D[p, q, r, s, t, u] = <p+ r+ t+ u s q>, of which only slabs D[p, q] exist. For a hole, creators and
annihilators are exchanged. Its one-electron integrals are those of an electron in the field of the full shell,
with the opposite sign; its two-electron integrals are the same. So formulas for electrons that leave also hold for
electrons that arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Particles:
    """Densities of electrons or of holes and their integrals: h[p, q], g[p, q, r, s] = (pq|rs), in Hartree.

    field_two[p, q, r, s] = sum_t h_st two[p, q, r, t] + sum_tuv (st|uv) D[p, q, r, t, u, v], which is
    <p+ r+ [s, H] q>.
    """

    h: Matrix
    g: Matrix
    one: Matrix
    two: Matrix
    field_two: Matrix

    @property
    def field_one(self) -> Matrix:
        """F[p, q] = <p+ [q, H]>."""
        found: Matrix = self.one @ self.h + np.einsum("qtuv,ptuv->pq", self.g, self.two)
        return found

    @property
    def gone_one(self) -> Matrix:
        """K[a, b] = <a+ [H, b]>, for a particle that leaves."""
        return -self.field_one

    @property
    def gone_two(self) -> Matrix:
        """K[a, b, c, d] = <a+ b+ [H, d c]>, where c has the spin of a, for two particles that leave."""
        pair = np.einsum("cqds,aqbs->abcd", self.g, self.two)
        found: Matrix = -self.field_two.transpose(0, 2, 1, 3) - self.field_two.transpose(2, 0, 3, 1)
        found -= pair
        return found

    @property
    def moved(self) -> tuple[Matrix, Matrix]:
        """N[a, b, c, d] = <E_ba E_cd> and K[a, b, c, d] = <E_ba [H, E_cd]>, for a particle that moves."""
        h, g, one, two = self.h, self.g, self.one, self.two
        unit, norm = np.eye(len(h)), moved_norm(one, two)
        found = self.field_two.transpose(0, 1, 3, 2) - self.field_two.transpose(1, 0, 2, 3)
        found = found - np.einsum("ac,bd->abcd", unit, self.field_one)
        found += np.einsum("ac,bd->abcd", h, one) + np.einsum("acrs,bdrs->abcd", g, two)
        found += np.einsum("pcas,pdbs->abcd", g, two) - np.einsum("dqas,cqbs->abcd", g, two)
        return norm, found

    @property
    def exchanged(self) -> tuple[Matrix, Matrix]:
        """N[a, b, c, d] = <a+ b d+ c> and K[a, b, c, d] = <a+ b [H, d+ c]>, where a and c have one spin, b and d
        another, both summed over: for a particle that moves and may flip its spin."""
        h, g, one, two = self.h, self.g, self.one, self.two
        unit, field, norm = np.eye(len(h)), self.field_one, exchanged_norm(one, two)
        found = np.einsum("dbac->abcd", self.field_two) - np.einsum("cabd->abcd", self.field_two)
        found += 2 * (np.einsum("bd,ac->abcd", h, one) + np.einsum("bdrs,acrs->abcd", g, two))
        found -= 2 * np.einsum("bd,ac->abcd", unit, field)
        found += np.einsum("cqbs,aqds->abcd", g, two) - np.einsum("pdbs,acps->abcd", g, two)
        return norm, found

    @property
    def energy(self) -> float:
        """<H>."""
        return float(np.sum(self.h * self.one) + np.sum(self.g * self.two) / 2)


@dataclass(frozen=True, eq=False)
class Between:
    """Transition densities between a state and another one that is orthogonal to it, the mean of both orders, of
    electrons and of holes. Overlaps of perturbers of two states are the same function of them as norms are of the
    densities of a state, except that constants are multiplied by <1> = 0."""

    one: Matrix
    two: Matrix
    hole_one: Matrix
    hole_two: Matrix

    @classmethod
    def of(cls, one: Matrix, two: Matrix) -> Between:
        """one[p, q] = <p+ q>, two[p, q, r, s] = <p+ r+ s q>, in one order."""
        one, two = (one + one.T) / 2, (two + two.transpose(1, 0, 3, 2)) / 2
        return cls(one, two, -one.T, holes_of_two(one, two, 0.0))


def moved_norm(one: Matrix, two: Matrix) -> Matrix:
    """N[a, b, c, d] = <E_ba E_cd>."""
    found: Matrix = two.transpose(1, 0, 2, 3) + np.einsum("ac,bd->abcd", np.eye(len(one)), one)
    return found


def exchanged_norm(one: Matrix, two: Matrix) -> Matrix:
    """N[a, b, c, d] = <a+ b d+ c>, see `Particles.exchanged`."""
    found: Matrix = 2 * np.einsum("bd,ac->abcd", np.eye(len(one)), one) - two.transpose(0, 3, 1, 2)
    return found


def of(
    h: Matrix,
    g: Matrix,
    one: Matrix,
    two: Matrix,
    slabs: Iterable[tuple[int, int, Matrix]],
    fields: tuple[Matrix, Matrix],
) -> tuple[Particles, Particles]:
    """The particles for electrons and for holes. slabs: p, q and D[p, q], p >= q, of electrons. fields:
    `field_two` of both as sums over earlier slabs; each slab is added to them before the next one is requested."""
    n = len(h)
    of_holes = -(h + 2 * np.einsum("pqrr->pq", g) - np.einsum("prrq->pq", g))
    hole_one = 2 * np.eye(n) - one.T
    hole_two = holes_of_two(one, two)
    found, hole_found = fields
    for p, q, slab in slabs:
        hole_slab = holes_of_three(p, q, slab, one, two)
        for field, of_one, of_two, of_three in (
            (found, h, two, slab),
            (hole_found, of_holes, hole_two, hole_slab),
        ):
            for a, c, three in ((p, q, of_three), (q, p, of_three.transpose(1, 0, 3, 2))):
                field[a, c] = of_two[a, c] @ of_one + np.einsum("stuv,rtuv->rs", g, three, optimize=True)
    return Particles(h, g, one, two, found), Particles(of_holes, g, hole_one, hole_two, hole_found)


# ---- holes ----


def holes_of_two(one: Matrix, two: Matrix, norm: float = 1.0) -> Matrix:
    """<p r s+ q+>, summed over the spin of p and q and over that of r and s. norm: <1>."""
    unit = np.eye(len(one))
    found: Matrix = two + norm * (
        4 * np.einsum("pq,rs->pqrs", unit, unit) - 2 * np.einsum("ps,rq->pqrs", unit, unit)
    )
    found -= 2 * (np.einsum("rs,pq->pqrs", unit, one) + np.einsum("pq,rs->pqrs", unit, one))
    found += np.einsum("rq,ps->pqrs", unit, one) + np.einsum("ps,rq->pqrs", unit, one)
    return found


def holes_of_three(p: int, q: int, three: Matrix, one: Matrix, two: Matrix) -> Matrix:
    """<p r t u+ s+ q+> as [r, s, t, u] for a pair p, q, from D[p, q].

    Sums over all ways to pair operators: deltas of both spins, with the sign of the permutation, a factor of 2 for
    each loop of deltas, and a density of the other operators with a sign for each of its electrons. For real
    orbitals."""
    unit, d = np.eye(len(one)), two
    found = -three
    # One delta, and the density of two electrons.
    found += 2 * (unit[p, q] * d + np.einsum("rs,tu->rstu", unit, d[p, q]))
    found += 2 * np.einsum("tu,rs->rstu", unit, d[p, q])
    found -= np.einsum("s,rtu->rstu", unit[p], d[:, q]) + np.einsum("r,stu->rstu", unit[:, q], d[p])
    found -= np.einsum("u,trs->rstu", unit[p], d[:, q]) + np.einsum("t,urs->rstu", unit[:, q], d[p])
    found -= np.einsum("ru,ts->rstu", unit, d[p, q]) + np.einsum("ts,ru->rstu", unit, d[p, q])
    rows, columns = " rt", " su"
    for order in permutations(range(3)):
        loops = _loops(order)
        sign = (-1) ** (len(order) - loops)
        for inside in (None, 0, 1, 2):  # the row whose partner comes from a density
            factor = sign * 2.0 ** (loops if inside is None else loops - 1) * (1 if inside is None else -1)
            parts, names = [], []
            for row, column in enumerate(order):
                matrix = one if row == inside else unit
                parts.append(matrix[p if row == 0 else slice(None), q if column == 0 else slice(None)])
                names.append((rows[row] + columns[column]).replace(" ", ""))
            found += factor * np.einsum(f"{','.join(names)}->rstu", *parts)
    return found


def _loops(order: tuple[int, ...]) -> int:
    """Number of loops of a permutation."""
    left, found = set(range(len(order))), 0
    while left:
        at, found = left.pop(), found + 1
        while (at := order[at]) in left:
            left.remove(at)
    return found
