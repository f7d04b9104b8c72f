"""Derivatives of the energy of (T) of closed shells by amplitudes, integrals and the Fock matrix, in tiles of
virtual orbitals as the energy is (`triples`).

    E = 1/3 sum_abc sum_ijk Z(W) V / D,    W = P6 { sum_d (bd|ai) t_kj^cd - sum_l (ai|jl) t_lk^bc }

with D = e_i + e_j + e_k - e_a - e_b - e_c. Three blocks of virtual orbitals at a time have W_ = 2 Z(W + V) / D, the
derivative by the sum that P6 permutes; the products of the energy, backwards, turn it into

    T_[c,k,d,j] = sum_abi W_ (bd|ai),    (bd|ai)_ = sum_cjk W_ t_kj^cd,    and the same of (ai|jl) and t_lk^bc,

in each order of the blocks. Integrals with four indices are those of three blocks at most: their derivatives become
Gamma[Q,..] = dE/dB before the next. No array has three occupied and three virtual orbitals but these blocks.

The Fock matrix acts on triples with all its elements. Its virtual elements f_ab of two orbitals need two triples
(a,b,c) at once; but E does not change if virtual orbitals rotate, so that

    2 (e_a - e_b) gamma[a,b] = M[b,a] - M[a,b],    M[b,a] = sum of X[b,..] dE/dX[a,..]

over all indices of all other arrays X. Orbitals of (nearly) the same energy need triples of their own. Rounding of
M is 1e-15, so that little is lost to small gaps.

Lee, Rendell, Chem. Phys. Lett. 177, 229 (1991); Hald, Halkier, Jorgensen, Coriani, Haettig, Helgaker, J. Chem.
Phys. 118, 2985 (2003); Bozkaya, Sherrill, J. Chem. Phys. 147, 044104 (2017).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.chem.cc.equations.triple_arrays import (
    DERIVATIVES,
    ROWS,
    SMALL,
    Derivatives,
    Part,
    Sums,
    amplitudes_of,
    groups,
    integrals_of,
)
from outcore.chem.cc.equations.triples import Pair, Single, Triples, TriplesBlock
from outcore.chem.cc.keep.kept_sums import KeptSums
from outcore.chem.cc.plan.triple_sizes import TripleDerivativesKernel, derivative_bytes
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.cc.equations.triples import TriplesOf
    from outcore.chem.cc.keep.kept_steps import KeptSteps
    from outcore.parallel.tasks import Progress

Values = np.ndarray[Any, np.dtype[Any]]


class TripleDerivatives(Triples):
    """Collective. `run` returns the energy (Hartree); then `found` has the derivatives.

    Raises OutcoreError (ENOMEM).
    """

    need = staticmethod(derivative_bytes)

    def __init__(
        self,
        of: TriplesOf,
        t1: Values,
        free_bytes: int,
        block: int | None = None,
        steps: KeptSteps | None = None,
    ) -> None:
        """steps: keeps the sums of finished tasks."""
        super().__init__(of, t1, free_bytes, block)
        self._steps = steps
        division = None if steps is None else KeptSums.division_of(steps, SMALL)
        if division is not None and all(end - begin <= self.most for begin, end in division["blocks"]):
            self.blocks = [[(begin, end) for begin, end in division["blocks"]]]
            self._order()
        room = self._room
        o, v = self._o, self._v
        self.found = Derivatives(room, np.zeros((o, v)), np.zeros((o + v, o + v)))
        self._rows = [room.array(name) for name in ROWS]
        self._small = room.array(SMALL)
        self._adds = {*ROWS, SMALL, DERIVATIVES[1]}  # arrays to which the present task adds
        self._energies_of_virtual = np.diag(self._fock)[o:]
        self.groups = groups(self._energies_of_virtual)
        count = len(self.blocks[0])
        self.tasks = [(a, b, None) for a, b in self.tasks]
        self.tasks += [(b, b, each) for each in self.groups for b in reversed(range(count))]
        self.sums = Sums(o, v)
        self._blocks_read: dict[int, TriplesBlock] = {}
        self._parts: dict[int, Part] = {}
        self._mixed: dict[tuple[int, int], Values] = {}  # (bd|ai)_ [x,i][y,d] of blocks of a = x and b = y

    def run(self, progress: Progress | None = None) -> float:
        room, found = self._room, self.found

        def work() -> list[float]:
            super(TripleDerivatives, self).run(progress)
            return [1.0]

        operands = (self._equations.t2, *self._equations.integrals.arrays)
        room.kernel(
            TripleDerivativesKernel(
                room.sizes, room.threads, operands, (*self._rows, found.boo, self._small)
            ),
            work,
        )
        for each in (*self._rows, found.boo, self._small):
            each.sync()
        self.sums.values[...] = self._small.get_tile((0,))
        room.release(self._small)
        found.collect(room, self._rows, self._equations.spaces.v.cuts)
        found.t1[...] = self.sums.t1
        m = found.rotation(room, self._t1, self._equations.t2, self._equations.integrals)
        found.one[...] = self.sums.one_particle(self._energies_of_virtual, self.groups, m)
        return float(self.sums.energy[0])

    # ---- tasks ----

    def _keeps(self) -> KeptSums:
        arrays = dict(
            zip((*ROWS, SMALL, DERIVATIVES[1]), (*self._rows, self._small, self.found.boo), strict=True)
        )
        division = {
            "blocks": [list(each) for each in self.blocks[0]],
            "groups": [list(g) for g in self.groups],
        }
        return KeptSums(self._room.world, arrays, len(self.tasks), division, self._steps)

    def _run_task(self, number: int, done: KeptSums) -> float:
        self._adds = done.lacking(number)
        self.sums.values[...] = 0.0
        self.sums.energy[0] += self._task(self.tasks[number])
        if SMALL in self._adds:
            self._small.acc_tile((0,), self.sums.values)
        return 0.0

    def _end(self) -> None:
        super()._end()
        for each in (self._parts, self._mixed, self._blocks_read):
            each.clear()

    def _task(self, task: Any) -> float:
        a, b, group = task
        if group is not None:
            self._of_group(b, group)
            return 0.0
        self._parts.clear()
        self._mixed.clear()
        self._blocks_read.clear()
        energy = super()._task((a, b))
        self._flush_pairs()
        for number in list(self._parts):
            self._flush(number)
        return energy

    def _sum(self, task: tuple[int, int], c: int, given: tuple[Any, ...]) -> float:
        (a, b), (x, y, z, xy, xz, yz) = task, given
        numbers = (a, b, c)
        parts = [self._part(n, single) for n, single in zip(numbers, (x, y, z), strict=True)]
        self._blocks_read.clear()  # parts have those that are needed; the memory has room for three
        sizes = [each.block.size for each in parts]
        o = self._o
        by_w = self._given.take("by w", (*sizes, o, o, o))
        energy = self._connected(task, c, given, by_w, parts)
        self._multiply(numbers, {(0, 1): xy, (0, 2): xz, (1, 2): yz}, by_w)
        for pair in [each for each in self._mixed if c in each and c not in task]:
            self._contract_pair(pair)
        if c not in task:
            self._flush(c)
        return energy

    def _connected(
        self, task: tuple[int, int], c: int, given: tuple[Any, ...], by_w: Values, parts: list[Part]
    ) -> float:
        """The energy of three blocks; puts W_ into `by_w`, and adds derivatives by the factors of disconnected
        amplitudes."""
        (a, b), (x, y, z, xy, xz, yz) = task, given
        o, padded, threads = self._o, x[0].shape[-1], self._room.threads
        rows = [(i, j) for i in range(x[-1].size) for j in range(y[-1].size) if a != b or j <= i]
        sizes = [each.block.size for each in parts]
        pairs = [(0, 1), (0, 2), (1, 2)]

        def sums_of(thread: int) -> tuple[Any, ...]:
            def take(name: Any, *shape: int) -> Values:
                found = self._given.take((thread, name), shape)
                found.fill(0.0)
                return found

            singles = [(take(n, s, o), take((n, "f"), s, o), take((n, "g"), s)) for n, s in enumerate(sizes)]
            return (
                take("oo", o, padded),
                *singles,
                *(take(p, sizes[p[0]], sizes[p[1]], o, padded) for p in pairs),
            )

        sums = [sums_of(thread) for thread in range(threads)]
        energies = np.zeros(threads)

        def work(thread: int, row: tuple[int, int]) -> None:
            energies[thread] += _core.triples_derivatives(
                self._energies, self._v, *row, x, y, z, xy, xz, yz, a == b, b == c, by_w, sums[thread]
            )

        team.each(rows[::-1], threads, work)
        for each in sums:
            self.sums.oo -= each[0][:, :o]
            for part, (t1, fock, density) in zip(parts, each[1:4], strict=True):
                box = slice(part.block.begin, part.block.end)
                self.sums.t1[:, box] += t1.T
                self.sums.ov[:, box] += fock.T
                self.sums.diagonal[box] += density
        for number, (m, n) in enumerate(pairs):
            total = sum(each[4 + number] for each in sums)[..., :o]
            self._exchange(parts[m], parts[n], np.ascontiguousarray(total.transpose(0, 2, 1, 3)))
        return float(energies.sum())

    def _read(self, number: int) -> TriplesBlock:
        found = self._blocks_read[number] = super()._read(number)
        return found

    def _part(self, number: int, single: Single) -> Part:
        if number not in self._parts:
            block, o, v = self._blocks_read[number], self._o, self._v
            slot = ("part", len(self._parts))
            q, n = block.bvo.shape[0], block.size

            def zeros(name: str, *shape: int) -> Values:
                found = self._given.take((*slot, name), shape)
                found.fill(0.0)
                return found

            flat = self._given.take((*slot, "flat"), (n, o, o, v))
            flat[...] = single[0][..., :o].transpose(0, 1, 3, 2)
            self._parts[number] = Part(
                block,
                single,
                flat.reshape(n, o * o, v),
                zeros("t", n, o * o, v),
                zeros("ooo", n, o * o, o),
                zeros("vv", q, n, v),
                zeros("vo", q, n, o),
                [threading.Lock() for _ in range(n)],
            )
        return self._parts[number]

    # ---- products ----

    def _multiply(
        self, numbers: tuple[int, int, int], pairs: dict[tuple[int, int], Pair], by_w: Values
    ) -> None:
        """Makes products of W_ of three blocks, in each order of the blocks."""
        jobs: list[Callable[[], None]] = []
        seen: set[tuple[int, ...]] = set()
        for order in permutations(range(3)):
            blocks = tuple(numbers[n] for n in order)
            if blocks in seen:
                continue
            seen.add(blocks)
            turned = by_w.transpose(*order, *(3 + n for n in order))
            x, y, z = (self._parts[n] for n in blocks)
            mixed = self._mixed_of(blocks[0], blocks[1], order[:2])
            given = partial(integrals_of, pairs, *order[:2]), partial(amplitudes_of, pairs, *order[1:])
            jobs += [
                partial(self._of_one, x, y, z, mixed, *given, turned, number)
                for number in range(x.block.size)
            ]
        team.each(jobs, self._room.threads, lambda _, job: job())

    def _mixed_of(self, a: int, b: int, places: tuple[int, ...]) -> Values:
        if (a, b) not in self._mixed:
            one, other = self._parts[a].block, self._parts[b].block
            made = self._given.take(("mixed", *places), (one.size, self._o * other.size, self._v))
            made.fill(0.0)
            self._mixed[a, b] = made
        return self._mixed[a, b]

    def _of_one(
        self,
        x: Part,
        y: Part,
        z: Part,
        mixed: Values,
        integrals: Callable[[int], Values],
        amplitudes: Callable[[int], Values],
        by_w: Values,
        a: int,
    ) -> None:
        """Products of one orbital a of x, with all b of y and c of z."""
        o, v, n = self._o, self._v, y.block.size
        take, box = self._products.take, slice(y.block.begin, y.block.end)
        of_vvvo = take("vvvo", (o, n, v))
        of_vvvo[...] = integrals(a)[..., :o].transpose(2, 0, 1)
        of_vvvo = of_vvvo.reshape(o * n, v)
        of_ooo = np.ascontiguousarray(x.single[2][a][..., :o]).reshape(o * o, o)  # -(ai|jl)
        for c in range(z.block.size):
            block = by_w[a, :, c]  # [b,i,j,k]
            first = take("first", (o, n, o, o))
            first[...] = block.transpose(1, 0, 2, 3)
            first = first.reshape(o * n, o * o)
            made = take("made", (o * n, v))
            mixed[a] += np.matmul(first, z.flat[c], out=made)
            of_t = np.matmul(first.T, of_vvvo, out=take("t", (o * o, v)))
            second = take("first", (o, o, n, o))
            second[...] = block.transpose(1, 2, 0, 3)
            second = second.reshape(o * o, n * o)
            of_ooo_ = second @ np.ascontiguousarray(amplitudes(c)[..., :o]).reshape(n * o, o)
            more = (of_ooo.T @ second).reshape(o, n, o).transpose(0, 2, 1)  # [l,k,b]
            of_t.reshape(o, o, v)[:, :, box] += more
            with z.guards[c]:
                z.of_t[c] += of_t
            with x.guards[a]:
                x.of_ooo[a] -= of_ooo_

    # ---- three-index derivatives ----

    def _exchange(self, x: Part, y: Part, by_g: Values) -> None:
        """Adds derivatives by B, from those by (ix|jy). by_g: [x,i,y,j]."""
        flat = by_g.reshape(by_g.shape[0] * by_g.shape[1], -1)
        self._add_product(x.of_vo, y.block.bvo, flat.T)
        self._add_product(y.of_vo, x.block.bvo, flat)

    def _contract_pair(self, pair: tuple[int, int]) -> None:
        """Turns (bd|ai)_ of blocks of a and b into derivatives by B."""
        x, y = (self._parts[n] for n in pair)
        flat = self._mixed.pop(pair).reshape(x.block.size * self._o, -1)
        self._add_product(y.of_vv, x.block.bvo, flat)
        self._add_product(x.of_vo, y.block.bvv, flat.T)

    def _add_product(self, out: Values, rows: Values, matrix: Values) -> None:
        """out[Q,..] += sum rows[Q,..] matrix, of arrays that are flat but for Q; by all threads."""
        count = len(rows)
        step = -(-count // self._room.threads)
        flat, to = rows.reshape(count, -1), out.reshape(count, -1)

        def work(_: int, begin: int) -> None:
            box = slice(begin, begin + step)
            to[box] += flat[box] @ matrix

        team.each(range(0, count, step), self._room.threads, work)

    def _flush_pairs(self) -> None:
        for pair in list(self._mixed):
            self._contract_pair(pair)

    def _flush(self, number: int) -> None:
        """Adds the sums of a block to the arrays."""
        part = self._parts.pop(number)
        o, v, q, boo = self._o, self._v, len(self._boo), self._boo.reshape(len(self._boo), -1)
        cuts = self._equations.spaces.v.cuts
        of_ooo = part.of_ooo.reshape(-1, o * o)
        part.of_vo += (boo @ of_ooo.T).reshape(part.of_vo.shape)
        if DERIVATIVES[1] in self._adds:
            of_oo = part.block.bvo.reshape(q, -1) @ of_ooo
            self.found.boo.acc_tile((0, 0, 0), of_oo.reshape(q, o, o))
        of_rows, of_vo, of_vv = self._rows
        adds = [name in self._adds for name in ROWS]
        for x in range(part.block.size):
            row = part.block.begin + x
            of_t = part.of_t[x].reshape(o, o, v)
            if adds[1]:
                of_vo.acc_tile((0, row, 0), part.of_vo[:, x : x + 1])
            for tile in range(len(cuts) - 1):
                box = slice(cuts[tile], cuts[tile + 1])
                values = of_t[:, :, box].transpose(1, 2, 0)[None]  # [c,k,d,j]
                if adds[0]:
                    of_rows.acc_tile((row, 0, tile, 0), np.ascontiguousarray(values))
                if adds[2]:
                    of_vv.acc_tile((0, row, tile), np.ascontiguousarray(part.of_vv[:, x : x + 1, box]))

    # ---- the one-particle density ----

    def _of_group(self, b: int, group: tuple[int, int]) -> None:
        """Adds elements of the density between orbitals of one energy, for all b of a block and c of blocks up to
        it."""
        begin, end = group
        size = end - begin
        total = [np.zeros((size, size)) for _ in range(self._room.threads)]
        of_a, of_b = self._read_range(begin, end), super()._read(b)
        singles, (of_ab,) = self._made({"a": of_a, "b": of_b}, {"ab": (of_a, of_b)})
        for c in range(b + 1):
            if c == b:
                _, (of_bc,) = self._made({}, {"bc": (of_b, of_b)})
                of_ac, single = of_ab, singles[1]
            else:
                of_c = super()._read(c)
                (single,), (of_ac, of_bc) = self._made({"c": of_c}, {"ac": (of_a, of_c), "bc": (of_b, of_c)})
            given = *singles, single, of_ab, of_ac, of_bc

            def work(thread: int, row: int, c: int = c, given: tuple[Any, ...] = given) -> None:
                x, y, z, xy, xz, yz = given
                _core.triples_density(
                    self._energies, self._v, row, x, y, z, xy, xz, yz, b == c, total[thread]
                )

            team.each(range(of_b.size), self._room.threads, work)
        found = np.sum(total, axis=0)
        np.fill_diagonal(found, 0.0)
        self.sums.vv[begin:end, begin:end] += 0.5 * (found + found.T)
