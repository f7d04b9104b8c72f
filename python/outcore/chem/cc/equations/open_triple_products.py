"""Products of (T) of open shells for one virtual orbital a, all b of a block and all c of another, and the same
products backwards. Arrays are those of chem/cc/open_triples.hpp, of whole blocks; each has beside it derivatives of
the energy by its elements.

Connected amplitudes w are sums of products of matrices of a pair of orbitals with those of the third one; the
disconnected ones v are sums of two outer products each. With gaps D

    E = sum w (w + v) / D,    by w: (2 w + v) / D,    by v: w / D

over a > b > c and i > j > k of one spin, and over a > b, i > j of one spin and c, k of the other.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.plan.buffers import Buffers

if TYPE_CHECKING:
    from outcore.chem.cc.equations.open_triples import OpenBlock

Values = np.ndarray[Any, np.dtype[Any]]


class Summed:
    """Values, and sums of derivatives by them, to which threads add."""

    def __init__(self, values: Values) -> None:
        self.values, self.sums = values, np.zeros_like(values)
        self._guard = threading.Lock()

    def add(self, where: Any, values: Values) -> None:
        with self._guard:
            self.sums[where] += values

    def subtract(self, where: Any, values: Values) -> None:
        with self._guard:
            self.sums[where] -= values


class OpenPart:
    """A block of virtual orbitals x.

    Attributes:
        same, other: as OpenSingle has them.
        first: [x][2][i] of singles, and of Fock elements.
        density: [x], diagonal elements.
        of_vo, of_vv: derivatives by B[Q,x,i] and B[Q,x,d].
    """

    def __init__(self, spin: int, block: OpenBlock) -> None:
        same, other, t1, fock, self.energies = block.given
        self.spin, self.block = spin, block
        self.same, self.other = Summed(same), Summed(other)
        self.first = Summed(np.stack([t1, fock], axis=1))
        self.density = np.zeros(block.count)
        self.of_vo, self.of_vv = np.zeros_like(block.bvo), np.zeros_like(block.bvv)
        self.guard = threading.Lock()


@dataclass(eq=False)
class PairPart:
    """Two blocks of virtual orbitals x and y. turned: of different spins.

    Attributes:
        second: [x][y][2][..] of (ix|jy), antisymmetric for equal spins, and of amplitudes.
    """

    x: OpenPart
    y: OpenPart
    integrals: Summed
    second: Summed
    turned: Summed | None = field(default=None)

    @classmethod
    def of_same(cls, x: OpenPart, y: OpenPart, given: tuple[Values, ...]) -> PairPart:
        integrals, exchange, amplitudes = given
        return cls(x, y, Summed(integrals), Summed(np.stack([exchange, amplitudes], axis=2)))

    @classmethod
    def of_mixed(cls, x: OpenPart, y: OpenPart, given: tuple[Values, ...]) -> PairPart:
        integrals, turned, exchange, amplitudes = given
        second = Summed(np.stack([exchange, amplitudes], axis=2))
        return cls(x, y, Summed(integrals), second, Summed(turned))


@dataclass(frozen=True)
class Three:
    """Blocks of a, b and c, and their pairs. weight: of the energy; `triangle`: b < a, in one block."""

    a: OpenPart
    b: OpenPart
    c: OpenPart
    ab: PairPart
    ac: PairPart
    bc: PairPart
    weight: float = 1.0
    triangle: bool = False

    def count(self, a: int) -> int:
        """Number of orbitals b beside a."""
        return a if self.triangle else self.b.block.count


@dataclass
class QuotientsOfTriples:
    """For one a, all b and c: x = (w + v) / D and y = w / D, [b][c][..], and the energy."""

    x: Values
    y: Values
    energy: float


class Folds:
    """Antisymmetric sums over orders of i, j, k, of o occupied orbitals; [i][pairs j > k] has all three places."""

    def __init__(self, o: int) -> None:
        self.first, self.second = np.tril_indices(o, -1)
        place, sign = np.zeros((o, o), np.intp), np.zeros((o, o))
        place[self.first, self.second] = place[self.second, self.first] = np.arange(len(self.first))
        sign[self.first, self.second], sign[self.second, self.first] = 1.0, -1.0
        i = np.arange(o)[:, None]
        j, k, pairs = self.first[None, :], self.second[None, :], len(self.first)
        self._at = [(j * pairs + place[i, k]).ravel(), (k * pairs + place[i, j]).ravel()]
        self._signs = [-sign[i, k].ravel(), sign[i, j].ravel()]
        self._o = o

    def triple(self, x: Values) -> Values:
        """x[..][i][jk] - x[j][ik] + x[k][ij], flat but for `..`."""
        flat = x.reshape(-1, self._o * len(self.first))
        found = flat.copy()
        for at, signs in zip(self._at, self._signs, strict=True):
            found += np.take(flat, at, axis=1) * signs
        return found

    def pair(self, x: Values) -> Values:
        """x[..][i][j][k] - x[..][j][i][k] as [..][pairs][k]."""
        found: Values = x[:, :, self.first, self.second] - x[:, :, self.second, self.first]
        return found

    def unpacked(self, x: Values, axis: int) -> Values:
        """[pairs] at an axis as [i][j], antisymmetric."""
        full = np.zeros((*x.shape[:axis], self._o, self._o, *x.shape[axis + 1 :]))
        turned = np.moveaxis(full, (axis, axis + 1), (0, 1))  # a view
        values = np.moveaxis(x, axis, 0)
        turned[self.first, self.second] = values
        turned[self.second, self.first] = -values
        return full


# ---- products of matrices, result [b][c][r][q], where pairs have [r][n] and the third orbital [n][q] ----


def _add_matrices(
    buffers: Buffers,
    name: str,
    three: Three,
    a: int,
    given: tuple[Summed, Summed, Summed],
    last: tuple[Values, ...],
) -> Values:
    """of_bc a - of_ac b + of_ab c. given: of pairs bc, ac, ab; last: of a, b, c, flat but for x and n."""
    nb, nc = three.count(a), three.c.block.count
    bc, ac, ab = (each.values for each in given)
    of_a, of_b, of_c = last
    r, n, q = bc.shape[2], bc.shape[3], of_a.shape[-1]
    out = buffers.take(name, (nb, nc, r, q))
    more = buffers.take("more", (nb, nc * r, q))
    np.matmul(bc[:nb].reshape(nb * nc * r, n), of_a[a], out=out.reshape(nb * nc * r, q))
    np.matmul(ac[a].reshape(1, nc * r, n), of_b[:nb], out=more)
    out -= more.reshape(out.shape)
    flat = ab[a, :nb].reshape(nb * r, -1)
    part = buffers.take("more", (nb * r, q))
    for c in range(nc):
        out[:, c] += np.matmul(flat, of_c[c], out=part).reshape(nb, r, q)
    return out


def _take_back(
    three: Three,
    a: int,
    by: Values,
    given: tuple[Summed, Summed, Summed],
    last: tuple[Summed, ...],
    sign: float,
) -> None:
    """`_add_matrices` backwards: adds derivatives by its operands, from those `by` its result. sign: of the
    result."""
    nb, nc = three.count(a), three.c.block.count
    bc, ac, ab = given
    of_a, of_b, of_c = last
    r, n, q = bc.values.shape[2], bc.values.shape[3], by.shape[-1]
    if sign < 0:
        by = -by

    shape = of_a.values.shape[1:]
    whole = by.reshape(nb * nc * r, q)
    of_a.add(a, (bc.values[:nb].reshape(-1, n).T @ whole).reshape(shape))
    bc.add(slice(nb), (whole @ of_a.values[a].reshape(n, q).T).reshape(nb, nc, r, n))
    left, b_values = ac.values[a].reshape(nc * r, n), of_b.values.reshape(-1, n, q)
    total = np.zeros((nc * r, n))
    for b in range(nb):
        rows = by[b].reshape(nc * r, q)
        of_b.subtract(b, (left.T @ rows).reshape(of_b.values.shape[1:]))
        total += rows @ b_values[b].T
    ac.subtract(a, total.reshape(nc, r, n))
    n = ab.values.shape[3]  # of the spin of a and b
    left, c_values = ab.values[a, :nb].reshape(nb * r, n), of_c.values.reshape(-1, n, q)
    total = np.zeros((nb * r, n))
    for c in range(nc):
        rows = np.ascontiguousarray(by[:, c]).reshape(nb * r, q)
        of_c.add(c, (left.T @ rows).reshape(of_c.values.shape[1:]))
        total += rows @ c_values[c].T
    ab.add((a, slice(nb)), total.reshape(nb, r, n))


# ---- one spin ----


class SameSpin:
    """Triples with a, b, c of one spin. energies: of its occupied orbitals."""

    def __init__(self, energies: Values, folds: Folds) -> None:
        self._folds, self._o = folds, len(energies)
        self._gaps = (energies[:, None] + (energies[folds.first] + energies[folds.second])[None, :]).ravel()

    def forward(self, three: Three, a: int, buffers: Buffers) -> QuotientsOfTriples:
        nb, nc, o = three.count(a), three.c.block.count, self._o
        pairs = three.bc.integrals, three.ac.integrals, three.ab.integrals
        last = three.a.same.values, three.b.same.values, three.c.same.values
        w = self._folds.triple(_add_matrices(buffers, "w", three, a, pairs, last))
        bc, ac, ab = (each.second.values for each in (three.bc, three.ac, three.ab))
        first, of_b, of_c = (each.first.values for each in (three.a, three.b, three.c))
        v = buffers.take("w", (nb, nc, o, bc.shape[-1]))
        more = buffers.take("more", v.shape)
        np.matmul(first[a].T, bc[:nb], out=v)
        v -= np.matmul(of_b[:nb].transpose(0, 2, 1)[:, None], ac[a][None], out=more)
        v += np.matmul(of_c.transpose(0, 2, 1)[None], ab[a, :nb][:, None], out=more)
        return _divided(three, a, w, self._folds.triple(v), self._gaps, 3.0, (nb, nc, o, -1))

    def backward(self, three: Three, a: int, made: QuotientsOfTriples, occupied: Values) -> None:
        """occupied: [i][l], to which the density is added, without its sign."""
        nb, f = three.count(a), three.weight
        by_v = f * made.y
        pairs = three.bc.integrals, three.ac.integrals, three.ab.integrals
        last = three.a.same, three.b.same, three.c.same
        _take_back(three, a, f * made.x + by_v, pairs, last, 1.0)
        z, zt = by_v, by_v.transpose(0, 1, 3, 2)
        bc, ac, ab = three.bc.second, three.ac.second, three.ab.second
        of_a, of_b, of_c = three.a.first, three.b.first, three.c.first
        of_a.add(a, np.matmul(bc.values[:nb], zt).sum((0, 1)))
        bc.add(slice(nb), np.matmul(of_a.values[a], z))
        of_b.subtract(slice(nb), np.matmul(ac.values[a][None], zt).sum(1))
        ac.subtract(a, np.matmul(of_b.values[:nb][:, None], z).sum(0))
        of_c.add(slice(None), np.matmul(ab.values[a, :nb][:, None], zt).sum(0))
        ab.add((a, slice(nb)), np.matmul(of_c.values[None], z).sum(1))
        occupied += np.matmul(made.x, zt).sum((0, 1))
        _diagonal(three, a, made, f / 3.0)


# ---- two of one spin, one of the other ----


class MixedSpin:
    """Triples with a, b of one spin and c of the other. energies, others: of their occupied orbitals."""

    def __init__(self, energies: Values, others: Values, folds: Folds) -> None:
        self._folds, self._o, self._p = folds, len(energies), len(others)
        pairs = energies[folds.first] + energies[folds.second]
        self._gaps = (pairs[:, None] + others[None, :]).ravel()

    def _turned(self, three: Three) -> tuple[Summed, Summed, Summed]:
        assert three.bc.turned is not None and three.ac.turned is not None
        return three.bc.turned, three.ac.turned, three.ab.integrals

    def forward(self, three: Three, a: int, buffers: Buffers) -> QuotientsOfTriples:
        nb, nc, o, p = three.count(a), three.c.block.count, self._o, self._p
        folds = self._folds
        # With the opposite of the usual signs
        turned = self._turned(three)
        last = [
            each.other.values.reshape(len(each.other.values), -1, o * p)
            for each in (three.a, three.b, three.c)
        ]
        second = _add_matrices(buffers, "w", three, a, turned, tuple(last))
        w = -folds.pair(second.reshape(nb, nc, o, o, p))
        w += self._first(three, a, buffers).transpose(0, 1, 3, 2)
        bc, ac, ab = (each.second.values for each in (three.bc, three.ac, three.ab))
        first, of_b, of_c = (each.first.values for each in (three.a, three.b, three.c))
        full = buffers.take("w", (nb, nc, o, o * p))
        more = buffers.take("more", full.shape)
        np.matmul(first[a].T, bc[:nb].reshape(nb, nc, 2, o * p), out=full)
        full -= np.matmul(of_b[:nb].transpose(0, 2, 1)[:, None], ac[a].reshape(1, nc, 2, o * p), out=more)
        v = folds.pair(full.reshape(nb, nc, o, o, p))
        v += np.matmul(ab[a, :nb].transpose(0, 2, 1)[:, None], of_c[None])
        return _divided(three, a, w, v, self._gaps, 1.0, (nb, nc, -1, p))

    def _first(self, three: Three, a: int, buffers: Buffers) -> Values:
        """The term (xd|kz) t_ij^yd, [b][c][k][ij]."""
        nb, nc, p = three.count(a), three.c.block.count, self._p
        bc, ac = three.bc.integrals.values, three.ac.integrals.values
        of_a, of_b = three.a.same.values, three.b.same.values
        n, q = of_a.shape[1:]
        found = buffers.take("first", (nb, nc, p, q))
        np.matmul(bc[:nb].reshape(nb * nc * p, n), of_a[a], out=found.reshape(-1, q))
        more = buffers.take("more", (nb, nc * p, q))
        found -= np.matmul(ac[a].reshape(1, nc * p, n), of_b[:nb], out=more).reshape(found.shape)
        return found

    def _first_back(self, three: Three, a: int, by: Values) -> None:
        nb, nc, p = three.count(a), three.c.block.count, self._p
        bc, ac, of_a, of_b = three.bc.integrals, three.ac.integrals, three.a.same, three.b.same
        n, q = of_a.values.shape[1:]
        whole = by.reshape(nb * nc * p, q)
        of_a.add(a, bc.values[:nb].reshape(-1, n).T @ whole)
        bc.add(slice(nb), (whole @ of_a.values[a].T).reshape(nb, nc, p, n))
        left, total = ac.values[a].reshape(nc * p, n), np.zeros((nc * p, n))
        for b in range(nb):
            rows = by[b].reshape(nc * p, q)
            of_b.subtract(b, left.T @ rows)
            total += rows @ of_b.values[b].T
        ac.subtract(a, total.reshape(nc, p, n))

    def backward(
        self, three: Three, a: int, made: QuotientsOfTriples, occupied: Values, other: Values
    ) -> None:
        """occupied, other: [i][l] of either spin, to which densities are added, without their sign."""
        nb, nc, o, p = three.count(a), three.c.block.count, self._o, self._p
        folds, z = self._folds, made.y
        by = made.x + z
        self._first_back(three, a, np.ascontiguousarray(by.transpose(0, 1, 3, 2)))
        full = folds.unpacked(by, 2).reshape(nb, nc, o, o * p)
        _take_back(three, a, full, self._turned(three), (three.a.other, three.b.other, three.c.other), -1.0)
        bc, ac, ab = three.bc.second, three.ac.second, three.ab.second
        of_a, of_b, of_c = three.a.first, three.b.first, three.c.first
        zt = z.transpose(0, 1, 3, 2)
        ab.add((a, slice(nb)), np.matmul(of_c.values[None], zt).sum(1))
        of_c.add(slice(None), np.matmul(ab.values[a, :nb][:, None], z).sum(0))
        full = folds.unpacked(z, 2).reshape(nb, nc, o, o * p)
        turned = full.transpose(0, 1, 3, 2)
        shape = bc.values.shape[2:]
        of_a.add(a, np.matmul(bc.values[:nb].reshape(nb, nc, 2, o * p), turned).sum((0, 1)))
        bc.add(slice(nb), np.matmul(of_a.values[a], full).reshape(nb, nc, *shape))
        of_b.subtract(slice(nb), np.matmul(ac.values[a].reshape(1, nc, 2, o * p), turned).sum(1))
        ac.subtract(a, np.matmul(of_b.values[:nb][:, None], full).sum(0).reshape(nc, *shape))
        left = folds.unpacked(made.x, 2).reshape(nb, nc, o, o * p)
        occupied += np.matmul(left, turned).sum((0, 1))
        other += np.matmul(made.x.transpose(0, 1, 3, 2), z).sum((0, 1))
        _diagonal(three, a, made, 1.0)


def _divided(
    three: Three, a: int, w: Values, v: Values, gaps: Values, times: float, shape: tuple[int, ...]
) -> QuotientsOfTriples:
    """Divides by gaps, and sums the energy. times: how often each product of three is in w."""
    nb, nc = three.count(a), three.c.block.count
    above = three.a.energies[a] + three.b.energies[:nb, None] + three.c.energies[None, :]
    d = gaps - above.reshape(nb * nc, 1)
    w, v = w.reshape(d.shape), v.reshape(d.shape)
    v += w
    v /= d
    energy = three.weight / times * float(np.vdot(v, w))
    w /= d
    return QuotientsOfTriples(v.reshape(shape), w.reshape(shape), energy)


def _diagonal(three: Three, a: int, made: QuotientsOfTriples, factor: float) -> None:
    nb = three.count(a)
    found = factor * np.einsum("bcij,bcij->bc", made.x, made.y)
    for part, where, values in (
        (three.a, a, found.sum()),
        (three.b, slice(nb), found.sum(1)),
        (three.c, slice(None), found.sum(0)),
    ):
        with part.guard:
            part.density[where] += values
