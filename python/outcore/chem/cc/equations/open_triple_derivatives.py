"""Derivatives of the energy of (T) of open shells by amplitudes, integrals and the Fock matrices, in tiles of
virtual orbitals as the energy is (`open_triples`); closed shells have the same in `triple_derivatives`.

Products of `open_triple_products` add to derivatives by the arguments of the energy's kernel: amplitudes and
integrals of one and of two blocks of virtual orbitals. These become derivatives by T and by B before the next ones.

Elements of the density of two virtual orbitals come from their rotation, and those of orbitals of (nearly) the same
energy from triples of their own.

Watts, Gauss, Bartlett, J. Chem. Phys. 98, 8718 (1993); Hald, Halkier, Jorgensen, Coriani, Haettig, Helgaker,
J. Chem. Phys. 118, 2985 (2003).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore.chem.cc.equations.open_triple_arrays import (
    BOO,
    BVO_ROWS,
    BVV_ROWS,
    MIXED_ROWS,
    SAME_ROWS,
    SMALL,
    SPINS,
    OpenDerivatives,
    OpenRows,
    OpenSums,
)
from outcore.chem.cc.equations.open_triple_products import (
    Folds,
    MixedSpin,
    OpenPart,
    PairPart,
    QuotientsOfTriples,
    SameSpin,
    Three,
)
from outcore.chem.cc.equations.open_triples import OpenTriples
from outcore.chem.cc.equations.triple_arrays import groups
from outcore.chem.cc.keep.kept_sums import KeptSums
from outcore.chem.cc.plan.buffers import Buffers
from outcore.chem.cc.plan.triple_sizes import TripleDerivativesKernel, derivative_bytes
from outcore.parallel import team

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outcore.chem.cc.equations.open_triples import OpenTriplesOf
    from outcore.chem.cc.keep.kept_steps import KeptSteps
    from outcore.chem.cc.plan.triple_sizes import Range
    from outcore.parallel.tasks import Progress

Values = np.ndarray[Any, np.dtype[Any]]


class _Task(NamedTuple):
    """Blocks a and b of spin s, by number, with all third blocks: of the same spin up to b, or (`mixed`) of the
    other spin. group: the task makes the density of these orbitals alone; they take the place of the third blocks,
    or, without b, of block b."""

    mixed: bool
    s: int
    a: int
    b: int | None
    group: Range | None = None


class OpenTripleDerivatives(OpenTriples):
    """Collective. `run` returns the energy (Hartree); then `found` has the derivatives.

    Raises OutcoreError (ENOMEM).
    """

    need = staticmethod(derivative_bytes)

    def __init__(
        self,
        of: OpenTriplesOf,
        singles: Sequence[Values],
        free_bytes: int,
        block: int | None = None,
        steps: KeptSteps | None = None,
    ) -> None:
        """steps: keeps the sums of finished tasks."""
        super().__init__(of, singles, free_bytes, block)
        self._of, self._steps = of, steps
        division = None if steps is None else KeptSums.division_of(steps, SMALL)
        if division is not None and all(
            end - begin <= self.most for spin in division["blocks"] for begin, end in spin
        ):
            self.blocks = [[(begin, end) for begin, end in spin] for spin in division["blocks"]]
        spaces = of.spaces
        self._energies_of = [
            (np.diag(f)[: each.occupied].copy(), np.diag(f)[each.occupied :].copy())
            for f, each in zip(of.fock, spaces, strict=True)
        ]
        self.groups = [groups(virtual) for _, virtual in self._energies_of]
        self.tasks = self._all_tasks()
        room = self._room
        zeros = [np.zeros((each.occupied, each.virtual)) for each in spaces]
        self.found = OpenDerivatives(room, zeros, [np.zeros((each.orbitals,) * 2) for each in spaces])
        self._rows, self._small = OpenRows(room), room.array(SMALL)
        self.sums = OpenSums(room.sizes.occupied, room.sizes.virtual)
        self._arrays = {**self._rows.named, **dict(zip(BOO, self.found.boo, strict=True)), SMALL: self._small}
        self._adds = set(self._arrays)  # arrays to which the present task adds
        self._guard = threading.Lock()
        self._folds = [Folds(each.occupied) for each in spaces]
        self._one_spin = [
            SameSpin(energies, folds)
            for (energies, _), folds in zip(self._energies_of, self._folds, strict=True)
        ]
        self._two_spins = [
            MixedSpin(self._energies_of[s][0], self._energies_of[1 - s][0], self._folds[s]) for s in SPINS
        ]
        self._buffers = [Buffers() for _ in range(room.threads)]

    def _all_tasks(self) -> list[_Task]:
        """All tasks, those with most work first; those of the density alone come last."""
        self._order()
        spaces = self._of.spaces
        found = [_Task(*task) for task in self.tasks if not task[0] or spaces[1 - task[1]].occupied]
        for mixed, s, a, b, _ in list(found):
            found += [_Task(mixed, s, a, b, group) for group in self.groups[1 - s if mixed else s]]
        for s in SPINS:
            for a in sorted({task.a for task in found if task.mixed and task.s == s}):
                found += [_Task(True, s, a, None, group) for group in self.groups[s]]
        return found

    def run(self, progress: Progress | None = None) -> float:
        room, of, found = self._room, self._of, self.found

        def work() -> list[float]:
            super(OpenTripleDerivatives, self).run(progress)
            return [1.0]

        operands = (*of.same, of.mixed, *(array for each in of.integrals for array in each.arrays))
        room.kernel(
            TripleDerivativesKernel(room.sizes, room.threads, operands, tuple(self._arrays.values())), work
        )
        for each in self._arrays.values():
            each.sync()
        self.sums.values[...] = self._small.get_tile((0,))
        room.release(self._small)
        found.collect(room, self._rows, [each.v.cuts for each in of.spaces])
        for s in SPINS:
            sums, o = self.sums.spins[s], of.spaces[s].occupied
            found.t1[s][...] = sums.t1
            coupling = of.fock[s][:o, o:], sums.ov
            doubles = of.same[s], of.mixed
            m = found.rotation(room, s, self._singles[s], doubles, of.integrals[s], coupling)
            found.one[s][...] = sums.one_particle(self._energies_of[s][1], self.groups[s], m)
        return float(self.sums.spins[0].energy[0])

    # ---- tasks ----

    def _keeps(self) -> KeptSums:
        division = {"blocks": self._facts(), "groups": [[list(g) for g in each] for each in self.groups]}
        return KeptSums(self._room.world, self._arrays, len(self.tasks), division, self._steps)

    def _run_task(self, number: int, done: KeptSums) -> float:
        self._adds = done.lacking(number)
        self.sums.values[...] = 0.0
        self.sums.spins[0].energy[0] += self._task(self.tasks[number])
        if SMALL in self._adds:
            self._small.acc_tile((0,), self.sums.values)
        return 0.0

    def _task(self, task: Any) -> float:
        if task.group is not None:
            self._of_group(task)
            return 0.0
        mixed, s, (a, b) = task.mixed, task.s, (self.blocks[task.s][each] for each in (task.a, task.b))
        first = self._part(s, a, mixed=mixed)
        second = first if a == b else self._part(s, b, mixed=mixed)
        ab, energy = self._pair(first, second), 0.0
        if mixed:
            for block in self.blocks[1 - s]:
                third = OpenPart(1 - s, self._spins[s].other_block(block))
                energy += self._third(first, second, third, ab)
        else:
            for block in self.blocks[s][: task.b + 1]:
                same = {a: first, b: second}.get(block)
                energy += self._third(first, second, same or self._part(s, block, mixed=False), ab)
        self._contract_pair(ab)
        for part in {first, second}:
            self._flush(part)
        return energy

    def _part(self, s: int, of: Range, *, mixed: bool) -> OpenPart:
        return OpenPart(s, self._spins[s].block(of, mixed=mixed))

    def _pair(self, x: OpenPart, y: OpenPart) -> PairPart:
        spins = self._spins[x.spin]
        if x.spin == y.spin:
            return PairPart.of_same(x, y, spins.same_pair(x.block, y.block))
        return PairPart.of_mixed(x, y, spins.mixed_pair(x.block, y.block))

    def _third(self, a: OpenPart, b: OpenPart, c: OpenPart, ab: PairPart) -> float:
        """The energy of three blocks; adds to its derivatives by the arguments of the kernel."""
        new = c is not a and c is not b
        ac = ab if c is b else self._pair(a, c)
        bc = ab if c is a else ac if a is b else self._pair(b, c)
        weight = 1.0 if b is not c else 1.0 / 3.0 if a is b else 0.5  # how often a product of three comes
        three = Three(a, b, c, ab, ac, bc, weight, a is b)
        energy = self._sum_all(three)
        for pair in {ac, bc} - {ab}:
            self._contract_pair(pair)
        if new:
            self._flush(c)
        return energy

    def _sum_all(self, three: Three) -> float:
        """The energy and derivatives of all orbitals a, by all threads."""
        s, is_mixed = three.a.spin, three.c.spin != three.a.spin
        mine, other = (self.sums.spins[each].oo for each in (s, 1 - s))
        energies = np.zeros(self._room.threads)

        def work(thread: int, a: int) -> None:
            occupied, beside = np.zeros_like(mine), np.zeros_like(other)
            made = self._forward(three, a, thread)
            energies[thread] += made.energy
            if is_mixed:
                self._two_spins[s].backward(three, a, made, occupied, beside)
            else:
                self._one_spin[s].backward(three, a, made, occupied)
            with self._guard:
                np.subtract(mine, occupied, out=mine)
                np.subtract(other, beside, out=other)

        team.each(_rows(three), self._room.threads, work)
        return float(energies.sum())

    def _forward(self, three: Three, a: int, thread: int) -> QuotientsOfTriples:
        s, buffers = three.a.spin, self._buffers[thread]
        if three.c.spin != s:
            return self._two_spins[s].forward(three, a, buffers)
        return self._one_spin[s].forward(three, a, buffers)

    # ---- three-index derivatives ----

    def _contract_pair(self, pair: PairPart) -> None:
        """Turns derivatives by integrals of two blocks into derivatives by B; adds those by amplitudes to the
        blocks."""
        x, y = pair.x, pair.y
        (xvo, xvv), (yvo, yvv) = (_flat(x), _flat(y))
        v = x.block.bvv.shape[2]
        by = pair.integrals.sums[..., :v]
        if pair.turned is None:
            # (iy|xd) - (ix|yd) as [x][y][i][d]; -t_il^xy
            yi_xd = np.ascontiguousarray(by.transpose(1, 2, 0, 3)).reshape(yvo.shape[1], -1)
            xi_yd = -np.ascontiguousarray(by.transpose(0, 2, 1, 3)).reshape(xvo.shape[1], -1)
            self._add_product(x.of_vv, yvo, yi_xd)
            self._add_product(y.of_vo, xvv, yi_xd.T)
            self._add_product(y.of_vv, xvo, xi_yd)
            self._add_product(x.of_vo, yvv, xi_yd.T)
            folds = self._folds[x.spin]
            exchange = folds.unpacked(pair.second.sums[:, :, 0], 2)
            by_t = pair.integrals.sums[..., v:]
            by_t = by_t[..., folds.second, folds.first] - by_t[..., folds.first, folds.second]
            x.same.sums[:, slice(*y.block.range)] += by_t + pair.second.sums[:, :, 1]
        else:
            # (xd|kz) as [x][z][k][d], t_lk^xz; (ix|zD) as [x][z][i][D], -t_iL^xz
            w = y.block.bvv.shape[2]
            zk_xd = np.ascontiguousarray(by.transpose(1, 2, 0, 3)).reshape(yvo.shape[1], -1)
            by = pair.turned.sums[..., :w]
            xi_zd = np.ascontiguousarray(by.transpose(0, 2, 1, 3)).reshape(xvo.shape[1], -1)
            self._add_product(x.of_vv, yvo, zk_xd)
            self._add_product(y.of_vo, xvv, zk_xd.T)
            self._add_product(y.of_vv, xvo, xi_zd)
            self._add_product(x.of_vo, yvv, xi_zd.T)
            exchange = pair.second.sums[:, :, 0]
            by_t = pair.integrals.sums[..., v:].transpose(0, 1, 3, 2) - pair.turned.sums[..., w:]
            x.other.sums[:, slice(*y.block.range)] += by_t + pair.second.sums[:, :, 1]
        flat = np.ascontiguousarray(exchange.transpose(0, 2, 1, 3)).reshape(xvo.shape[1], -1)  # (ix|jy)
        self._add_product(y.of_vo, xvo, flat)
        self._add_product(x.of_vo, yvo, flat.T)

    def _add_product(self, out: Values, rows: Values, matrix: Values) -> None:
        """out[Q,..] += sum rows[Q,..] matrix, of arrays that are flat but for Q; by all threads."""
        count = len(rows)
        step = -(-count // self._room.threads)
        to = out.reshape(count, -1)

        def work(_: int, begin: int) -> None:
            box = slice(begin, begin + step)
            to[box] += rows[box] @ matrix

        team.each(range(0, count, step), self._room.threads, work)

    def _flush(self, part: OpenPart) -> None:
        """Adds the sums of a block to the arrays."""
        s, x = part.spin, part.block
        box = slice(*x.range)
        sums, first = self.sums.spins[s], part.first.sums
        sums.t1[:, box] += first[:, 0].T
        sums.ov[:, box] += first[:, 1].T
        sums.diagonal[box] += part.density
        if part.same.values.size:
            self._flush_same(part)
        if part.other.values.size:
            self._flush_other(part)
        cuts = self._of.spaces[s].v.cuts
        for n in range(x.count):
            row = x.range[0] + n
            if BVO_ROWS[s] in self._adds:
                self._rows.vo[s].acc_tile((0, row, 0), np.ascontiguousarray(part.of_vo[:, n : n + 1]))
            for tile in range(len(cuts) - 1):
                if BVV_ROWS[s] in self._adds:
                    values = part.of_vv[:, n : n + 1, cuts[tile] : cuts[tile + 1]]
                    self._rows.vv[s].acc_tile((0, row, tile), np.ascontiguousarray(values))

    def _flush_same(self, part: OpenPart) -> None:
        """Adds derivatives by t_ij^xd, then by (li|jx) - (lj|ix), which lie as [x][d or l][pairs]."""
        s, v = part.spin, part.block.bvv.shape[2]
        folds = self._folds[s]
        by = folds.unpacked(part.same.sums[:, v:], 2)  # [x,l,i,j] of (li|jx)
        self._of_occupied(part, s, by.transpose(1, 2, 0, 3))
        if SAME_ROWS[s] in self._adds:
            for n in range(part.block.count):
                by = folds.unpacked(part.same.sums[n, :v], 1)  # [d,i,j]
                self._acc_row(self._rows.same[s], s, part.block.range[0] + n, by.transpose(1, 0, 2))

    def _flush_other(self, part: OpenPart) -> None:
        s = part.spin
        r = 1 - s
        w = self._of.spaces[r].virtual
        by, count = part.other.sums, part.block.count
        if not len(part.same.values):  # a third one: t_ik^dz, then -(li|kz), as [z][d or l][i][k]
            self._of_occupied(part, r, -by[:, w:].transpose(1, 2, 0, 3))
            rows = by[:, :w].transpose(0, 3, 1, 2)
        else:  # t_ik^xD, then (Lk|ix), as [x][D or L][i][k]
            self._of_occupied(part, r, by[:, w:].transpose(1, 3, 0, 2))
            rows = by[:, :w].transpose(0, 2, 1, 3)
        if MIXED_ROWS[s] in self._adds:
            for n in range(count):
                self._acc_row(self._rows.mixed[s], r, part.block.range[0] + n, rows[n])

    def _of_occupied(self, part: OpenPart, r: int, by: Values) -> None:
        """Adds derivatives `by` (li|jx), [l,i,x,j], orbitals l and i of spin r."""
        boo, q = self._boo[r], len(self._boo[r])
        o, p = boo.shape[1], by.shape[3]
        flat = np.ascontiguousarray(by).reshape(o * o, -1)
        if BOO[r] in self._adds:
            found = part.block.bvo.reshape(q, -1) @ flat.T
            self.found.boo[r].acc_tile((0, 0, 0), found.reshape(q, o, o))
        part.of_vo += (boo.reshape(q, -1) @ flat).reshape(q, -1, p)

    def _acc_row(self, to: Any, spin: int, row: int, values: Values) -> None:
        """values [i,d,j], d of a spin."""
        cuts = self._of.spaces[spin].v.cuts
        for tile in range(len(cuts) - 1):
            part = values[None, :, cuts[tile] : cuts[tile + 1]]
            to.acc_tile((row, 0, tile, 0), np.ascontiguousarray(part))

    def _begin(self) -> None:
        super()._begin()
        self._boo = [each.boo.get_tile((0, 0, 0)) for each in self._of.integrals]

    def _end(self) -> None:
        super()._end()
        del self._boo
        for each in self._buffers:
            each.clear()

    # ---- the one-particle density ----

    def _of_group(self, task: _Task) -> None:
        """Adds elements of the density between orbitals of one energy."""
        mixed, s, group = task.mixed, task.s, task.group
        assert group is not None
        first = self._part(s, self.blocks[s][task.a], mixed=mixed)
        if task.b is None:
            second = self._part(s, group, mixed=True)
            ab = self._pair(first, second)
            for block in self.blocks[1 - s]:
                third = OpenPart(1 - s, self._spins[s].other_block(block))
                self._add_density(s, group, self._three(first, second, third, ab), in_place_of_b=True)
            return
        same = task.a == task.b
        second = first if same else self._part(s, self.blocks[s][task.b], mixed=mixed)
        third = (
            OpenPart(1 - s, self._spins[s].other_block(group)) if mixed else self._part(s, group, mixed=False)
        )
        three = self._three(first, second, third, self._pair(first, second))
        self._add_density(third.spin, group, three, in_place_of_b=False)

    def _three(self, a: OpenPart, b: OpenPart, c: OpenPart, ab: PairPart) -> Three:
        ac = self._pair(a, c)
        return Three(a, b, c, ab, ac, ac if a is b else self._pair(b, c), triangle=a is b)

    def _add_density(self, spin: int, group: Range, three: Three, *, in_place_of_b: bool) -> None:
        size = group[1] - group[0]
        total = np.zeros((size, size))
        times = 1.0 if three.c.spin != three.a.spin else 3.0

        def work(thread: int, a: int) -> None:
            made = self._forward(three, a, thread)
            x, y = (
                (each if in_place_of_b else each.swapaxes(0, 1)).reshape(size, -1)
                for each in (made.x, made.y)
            )
            found = x @ y.T
            with self._guard:
                np.add(total, found, out=total)

        team.each(_rows(three), self._room.threads, work)
        np.fill_diagonal(total, 0.0)
        box = slice(*group)
        self.sums.spins[spin].vv[box, box] += (total + total.T) / (2.0 * times)


def _rows(three: Three) -> list[int]:
    """Orbitals a, those with most work first."""
    return list(range(three.a.block.count))[::-1][: -1 if three.triangle else None]


def _flat(part: OpenPart) -> tuple[Values, Values]:
    """B[Q,x,i] and B[Q,x,d] as [Q][..]."""
    q = part.block.bvo.shape[0]
    return part.block.bvo.reshape(q, -1), part.block.bvv.reshape(q, -1)
