"""Connected triple excitations of open shells by perturbation theory, (T), in triples of occupied orbitals.

Integrals of three virtual orbitals and of two are in memory, in all processes; triples of occupied orbitals are
dealt out. Semicanonical orbitals are needed.

Watts, Gauss, Bartlett, J. Chem. Phys. 98, 8718 (1993).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.parallel.tasks import Progress, each_task

if TYPE_CHECKING:
    from outcore.chem.cc.unrestricted import UnrestrictedEquations

Values = np.ndarray[Any, np.dtype[Any]]

_CANONICAL = 1e-5  # Hartree: off-diagonal Fock elements below it are what an SCF leaves
_DOUBLE = 8


class OpenTriples:
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError: EINVAL (orbitals that are not semicanonical), ENOMEM.
    """

    def __init__(self, equations: UnrestrictedEquations, singles: list[Values], free_bytes: int) -> None:
        self._equations, self._room, self._singles = equations, equations.room, singles
        with self._room.world.together("triple excitations"):
            self._check_canonical()
            need = self._bytes()
            if need > free_bytes:
                raise OutcoreError(
                    errno.ENOMEM,
                    "triple excitations of open shells",
                    detail=f"they need {need / 1e6:.0f} MB in each process, but {free_bytes / 1e6:.0f} MB are free",
                )

    def _check_canonical(self) -> None:
        for fock, space in zip(self._equations.fock, self._equations.spaces, strict=True):
            o = space.occupied
            for box in (slice(0, o), slice(o, None)):
                inside = fock[box, box]
                off = abs(inside - np.diag(np.diag(inside))).max(initial=0.0)
                if off > _CANONICAL:
                    raise OutcoreError(
                        errno.EINVAL,
                        "triple excitations",
                        detail="the orbitals are not semicanonical: the Fock matrix has off-diagonal elements of "
                        f"{off:.1e} Eh inside occupied or virtual ones; take those of the SCF",
                    )

    def _bytes(self) -> int:
        o = max(each.occupied for each in self._equations.spaces)
        v = max(each.virtual for each in self._equations.spaces)
        q = self._equations.integrals[0].boo.shape[0]
        kept = 2 * o * v**3 + o * o * v * (4 * o + 5 * v) + q * (o + v) ** 2
        return int(_DOUBLE * (3 * kept + 8 * self._room.threads * v**3))

    def run(self, progress: Progress | None = None) -> float:
        """The energy (Hartree)."""
        world = self._room.world
        total = 0.0
        for s in (0, 1):
            part = _Spins(self._equations, self._singles, s)
            for tasks, work in ((part.same_tasks(), part.same), (part.mixed_tasks(), part.mixed)):
                if not tasks:
                    continue
                counter = world.counter()
                sums = np.zeros(self._room.threads)

                def take(
                    thread: int, task: int, tasks: Any = tasks, work: Any = work, sums: Values = sums
                ) -> None:
                    sums[thread] += work(*tasks[task])

                with world.together("triple excitations"):
                    each_task(counter, len(tasks), self._room.threads, take, progress)
                total += float(world.all_reduce(sums.sum()))
        return total


def _swapped(x: Values) -> Values:
    """x of a, b less that of b, a."""
    return x - x.transpose(1, 0, 2)


class _Spins:
    """Triples of three orbitals of one spin, and those of two of it (i, j, a, b) with one of the other (k, c)."""

    def __init__(self, equations: UnrestrictedEquations, singles: list[Values], s: int) -> None:
        r = 1 - s
        self._o, self._p = equations.spaces[s].occupied, equations.spaces[r].occupied
        self._v, self._w = equations.spaces[s].virtual, equations.spaces[r].virtual
        self._f, self._g = equations.fock[s], equations.fock[r]
        self._t1, self._s1 = singles[s], singles[r]
        self._t2 = equations.same[s].to_numpy().transpose(1, 3, 0, 2)  # [i,j,a,b]
        mixed = equations.mixed.to_numpy()
        self._m = mixed.transpose((1, 3, 0, 2) if s == 0 else (3, 1, 2, 0))  # [i,k,a,c]
        b, c = equations.integrals[s], equations.integrals[r]
        oo, vo, vv = (each.to_numpy() for each in (b.boo, b.bvo, b.bvv))
        other_oo, other_vo, other_vv = (each.to_numpy() for each in (c.boo, c.bvo, c.bvv))
        self._vvov = _product(vo, vv)  # [b,i,c,d] of (bi|cd)
        self._ooov = _product(oo, vo).transpose(0, 1, 3, 2)  # [l,j,k,a] of (lj|ka)
        g = _product(vo, vo)  # [a,i,b,j]
        self._gab = (g - g.transpose(0, 3, 2, 1)).transpose(1, 3, 0, 2)  # [i,j,a,b] of (ia|jb) - (ib|ja)
        self._gm = _product(vo, other_vo).transpose(1, 3, 0, 2)  # [j,k,b,c] of (jb|kc)
        self._bdkc = _product(other_vo, vv)  # [c,k,b,d] of (kc|bd)
        self._cdjb = _product(vo, other_vv)  # [b,j,c,d] of (jb|cd)
        self._lkjb = _product(other_oo, vo).transpose(0, 1, 3, 2)  # [L,k,j,b] of (Lk|jb)
        self._ljkc = _product(oo, other_vo).transpose(0, 1, 3, 2)  # [l,j,k,c] of (lj|kc)
        energies, others = np.diag(self._f), np.diag(self._g)
        self._eo, self._ev = energies[: self._o], energies[self._o :]
        self._po, self._pv = others[: self._p], others[self._p :]

    def same_tasks(self) -> list[tuple[int, int, int]]:
        if self._v < 3:
            return []
        return [(i, j, k) for i in range(self._o) for j in range(i) for k in range(j)]

    def mixed_tasks(self) -> list[tuple[int, int, int]]:
        if self._v < 2:
            return []
        return [(i, j, k) for i in range(self._o) for j in range(i) for k in range(self._p)]

    def same(self, i: int, j: int, k: int) -> float:
        """Of three occupied orbitals of one spin, and all virtual ones."""
        v, t2 = self._v, self._t2
        w, u = np.zeros((v, v, v)), np.zeros((v, v, v))
        for sign, x, y, z in ((1, i, j, k), (-1, j, i, k), (-1, k, j, i)):
            # <bc||di> = (bd|ci) - (cd|bi), as [b,c,d]
            m = self._vvov[:, x].transpose(1, 0, 2)
            three = np.tensordot(t2[y, z], m - m.transpose(1, 0, 2), ([1], [2]))  # [a,b,c]
            ring = self._ooov[:, y, z] - self._ooov[:, z, y]  # [l,a]
            three -= np.tensordot(ring, t2[x], ([0], [0]))
            w += sign * three
            u += sign * np.multiply.outer(self._t1[x], self._gab[y, z])
            u += sign * np.multiply.outer(self._f[x, self._o :], t2[y, z])
        w, u = _cyclic(w), _cyclic(u)
        gaps = self._eo[i] + self._eo[j] + self._eo[k] - _sums(self._ev, self._ev, self._ev)
        return float(np.sum(w * (w + u) / gaps)) / 6

    def mixed(self, i: int, j: int, k: int) -> float:
        """Of two occupied orbitals of this spin, and one of the other."""
        t2, m = self._t2, self._m
        w = _swapped(np.tensordot(t2[i, j], self._bdkc[:, k], ([1], [2])).transpose(0, 2, 1))
        u = np.multiply.outer(self._gab[i, j], self._s1[k]) + np.multiply.outer(
            t2[i, j], self._g[k, self._p :]
        )
        for sign, x, y in ((1, i, j), (-1, j, i)):
            part = np.tensordot(m[x, k], self._cdjb[:, y], ([1], [2]))  # [a,b,c]
            part -= np.tensordot(self._vvov[:, x], m[y, k], ([2], [0])).transpose(1, 0, 2)
            part -= np.tensordot(m[x], self._lkjb[:, k, y], ([0], [0])).transpose(0, 2, 1)
            part += np.tensordot(m[:, k], self._ooov[:, y, x], ([0], [0])).transpose(0, 2, 1)
            w += sign * _swapped(part)
            w -= sign * np.tensordot(t2[x], self._ljkc[:, y, k], ([0], [0]))
            disconnected = np.multiply.outer(self._t1[x], self._gm[y, k])
            disconnected += np.multiply.outer(self._f[x, self._o :], m[y, k])
            u += sign * _swapped(disconnected)
        gaps = self._eo[i] + self._eo[j] + self._po[k] - _sums(self._ev, self._ev, self._pv)
        return float(np.sum(w * (w + u) / gaps)) / 2


def _cyclic(x: Values) -> Values:
    """P(a/bc) of what is antisymmetric in b and c."""
    return x - x.transpose(1, 0, 2) - x.transpose(2, 1, 0)


def _sums(a: Values, b: Values, c: Values) -> Values:
    return a[:, None, None] + b[:, None] + c


def _product(left: Values, right: Values) -> Values:
    """sum_Q left[Q,p,q] right[Q,r,s] as [p,q,r,s]."""
    flat = left.reshape(len(left), -1).T @ right.reshape(len(right), -1)
    return flat.reshape(*left.shape[1:], *right.shape[1:])
