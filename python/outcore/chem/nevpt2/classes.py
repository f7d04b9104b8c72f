"""Energies of the classes of perturbers with two, three and four outer orbitals.

A perturber has a norm N and an energy K / N above the state, both for its active part. It contributes
-N / (e + K / N), where e is from the energies of outer orbitals. Its contribution to the coupling with another
state is the same with the overlap of the perturbers of both states in place of the first N. i, j are core
orbitals, r, s virtual ones, a, b, .. active ones. A pair i, j or r, s occurs twice, and counts half each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.mp2.pairs import PairKind, pairs_of
from outcore.chem.mp2.tiles import TileReader
from outcore.chem.nevpt2.active import exchanged_norm, moved_norm
from outcore.chem.ri.plan import pair_tasks
from outcore.parallel import team
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from outcore.chem.nevpt2.active import Between, Particles
    from outcore.chem.nevpt2.integrals import OuterIntegrals
    from outcore.chem.nevpt2.orbitals import CasOrbitals
    from outcore.job.world import World

Matrix = NDArray[np.float64]

NAMES = ("ijrs", "ijr", "rsi", "ij", "rs", "ir", "i", "r")
_ZERO = 1e-14  # a perturber with a smaller norm does not exist


@dataclass
class ClassSums:
    """Energies by `NAMES` (Hartree), their contributions to couplings [other state][name], and the least e + K / N
    of all perturbers."""

    energies: Matrix
    couplings: Matrix
    least: float = np.inf

    @classmethod
    def none(cls, others: int = 0) -> ClassSums:
        return cls(np.zeros(len(NAMES)), np.zeros((others, len(NAMES))))

    @classmethod
    def of_numbers(cls, numbers: Matrix) -> ClassSums:
        """Restores the sums from `numbers`."""
        energies, *couplings = numbers[:-1].reshape(-1, len(NAMES))
        return cls(energies.copy(), np.array(couplings).reshape(-1, len(NAMES)), float(numbers[-1]))

    @property
    def numbers(self) -> Matrix:
        """All sums in one row."""
        return np.concatenate([self.energies, self.couplings.ravel(), [self.least]])

    def add(
        self,
        name: str,
        norm: Matrix,
        energy: Matrix,
        outer: Matrix,
        weight: float = 1.0,
        overlaps: Sequence[Matrix] = (),
    ) -> None:
        """Adds perturbers of one class, in arrays of one shape. outer: energies e. overlaps: with the perturbers of
        each other state."""
        there, number = norm > _ZERO, NAMES.index(name)
        gaps = (outer + energy / np.where(there, norm, 1.0))[there]
        self.energies[number] -= weight * (norm[there] / gaps).sum()
        for sums, each in zip(self.couplings, overlaps, strict=True):
            sums[number] -= weight * (each[there] / gaps).sum()
        self.least = min(self.least, float(gaps.min(initial=np.inf)))

    def of_all(self, world: World) -> ClassSums:
        """The sums over all processes. Collective."""
        parts = world.gather((self.energies, self.couplings, self.least))
        return ClassSums(
            np.sum([each for each, _, _ in parts], axis=0),
            np.sum([each for _, each, _ in parts], axis=0),
            min(least for _, _, least in parts),
        )


def energies(
    world: World,
    orbitals: CasOrbitals,
    integrals: OuterIntegrals,
    electrons: Particles,
    holes: Particles,
    others: Sequence[Between],
    threads: int,
    tell: Callable[[float], None],
) -> ClassSums:
    """Sums for the classes ijrs, ijr, rsi, ij, rs and ir. others: transition densities to the states that couple.
    Collective."""
    classes = _Classes(orbitals, integrals, electrons, holes, others)
    core, _, virtual = orbitals.counts
    blocks = [slice(each, each + integrals.plan.block) for each in range(0, virtual, integrals.plan.block)]
    counter = world.counter()
    with world.together("perturbers of NEVPT2"):
        for number in tasks_of(counter, core + len(blocks)):
            if number < core:
                classes.core_orbital(number, blocks)
            else:
                classes.virtual_pairs(blocks[number - core])
            tell(number / (core + len(blocks)))
    counter.reset()
    if integrals.core_virtual is not None:
        with world.together("perturbers of NEVPT2"), team.blas_of_one_thread():
            classes.core_pairs(lambda count: tasks_of(counter, count), threads)
    return classes.sums.of_all(world)


class _Classes:
    """The sums of one process."""

    def __init__(
        self,
        orbitals: CasOrbitals,
        integrals: OuterIntegrals,
        electrons: Particles,
        holes: Particles,
        others: Sequence[Between],
    ) -> None:
        self._integrals = integrals
        self._electrons, self._holes = electrons, holes
        self._low, self._high = orbitals.core_energies, orbitals.virtual_energies
        self._outer_field = orbitals.core.T @ orbitals.core_field @ orbitals.virtual
        active = orbitals.counts[1]
        self._inside = integrals.active[:, :, :active]
        self._outside = np.ascontiguousarray(integrals.active[:, :, active:])
        self.sums = ClassSums.none(len(others))
        self._others = [_Overlaps(each) for each in others]
        size = active * active
        of_moved, of_exchanged = electrons.moved, electrons.exchanged
        self._moved = [each.reshape(size, size) for each in of_moved]
        self._exchanged = [_turned(each) for each in of_exchanged]
        self._pairs = [_of_pairs(each) for each in (electrons, holes)]

    # ---- one core orbital ----

    def core_orbital(self, i: int, blocks: list[slice]) -> None:
        """Adds perturbers ij, rsi and ir of a core orbital."""
        of_i = self._integrals.core_active[:, i]
        all_cores = self._integrals.product(of_i, self._integrals.core_active).transpose(1, 0, 2)
        norm, energy, *overlaps = _quadratic(
            all_cores, [*self._pairs[1], *(each.pairs[1] for each in self._others)]
        )
        self.sums.add("ij", norm, energy, -self._low[i] - self._low, 0.5, overlaps)
        if not blocks:
            return
        outer = self._integrals.core_orbital(i)
        for number, one in enumerate(blocks):
            for other in blocks[: number + 1]:
                self._core_and_virtual_pairs(i, outer, one, other)
            self._moved_from(i, outer, of_i, one)

    def _core_and_virtual_pairs(self, i: int, outer: Matrix, one: slice, other: slice) -> None:
        u = self._integrals.product(outer[:, one], self._outside[:, :, other])  # (ri|as): [r][a][s]
        w = self._integrals.product(outer[:, other], self._outside[:, :, one]).transpose(2, 1, 0)
        of_state = self._electrons.one, self._electrons.gone_one
        forms = *of_state, *(each.one for each in self._others)
        norm, energy, *overlaps = (_coupled(u, w, each) for each in forms)
        gaps = self._high[one, None] + self._high[other] - self._low[i]
        self.sums.add("rsi", norm, energy, gaps, 0.5 if one == other else 1.0, overlaps)

    def _moved_from(self, i: int, outer: Matrix, of_i: Matrix, virtual: slice) -> None:
        """Adds perturbers ir: an active electron moves as well, with or without an exchange (see `Particles`)."""
        integrals = self._integrals
        j = integrals.product(outer[:, virtual], self._inside)  # (ri|ab): [r][a][b]
        k = integrals.product(of_i, self._outside[:, :, virtual]).transpose(2, 0, 1)  # (ra|bi): [r][b][a]
        j, k = j.reshape(len(j), -1), k.reshape(len(k), -1)
        h, one = self._outer_field[i, virtual], self._electrons.one.ravel()
        norm = 2 * h * (h + (2 * j - k) @ one)
        overlaps = [
            2 * h * ((2 * j - k) @ each.one.ravel()) + _forms(j, k, each.moved, each.exchanged)
            for each in self._others
        ]
        of_norm, of_energy = (
            _forms(j, k, moved, exchanged)
            for moved, exchanged in zip(self._moved, self._exchanged, strict=True)
        )
        gaps = self._high[virtual] - self._low[i]
        self.sums.add("ir", norm + of_norm, of_energy, gaps, overlaps=overlaps)

    # ---- virtual pairs ----

    def virtual_pairs(self, virtual: slice) -> None:
        """Adds perturbers rs."""
        all_pairs = self._integrals.product(self._outside[:, :, virtual], self._outside)  # [a][r][b][s]
        norm, energy, *overlaps = _quadratic(
            all_pairs.transpose(1, 3, 0, 2), [*self._pairs[0], *(each.pairs[0] for each in self._others)]
        )
        self.sums.add("rs", norm, energy, self._high[virtual, None] + self._high, 0.5, overlaps)

    # ---- core pairs ----

    def core_pairs(self, numbers: Callable[[int], Iterator[int]], threads: int) -> None:
        """Adds perturbers ijrs, computed like pairs of RI-MP2, and ijr."""
        source, plan = self._integrals.core_virtual, self._integrals.plan.transform
        assert source is not None
        count, virtual = source.orbitals.shape
        tasks = pair_tasks(count, count, plan.block, plan.tile, same=True)
        sums = np.zeros((2, count, count))
        products = [np.empty(virtual * plan.tile * virtual) for _ in range(threads)]
        kind = PairKind("", 0, 0)
        reader = TileReader(source, source, plan)
        for block, tile in reader.tiles(tasks[number] for number in numbers(len(tasks))):

            def work(thread: int, i: int, block: object = block, tile: object = tile) -> None:
                signs = self._integrals.signs
                pairs_of(kind, source, source, i, block, tile, products[thread], sums, signs)

            team.each(range(block.begin, block.end), threads, work)
            for i in range(block.begin, block.end):
                for j in range(tile.begin, min(tile.end, i + 1)):
                    of_i, of_j = block.values[:, i - block.begin], tile.values[:, j - tile.begin]
                    self._core_pair(i, j, np.ascontiguousarray(of_i), np.ascontiguousarray(of_j))
        lower = sums + np.tril(sums, -1)
        self.sums.energies[NAMES.index("ijrs")] += 2 * lower[0].sum() - lower[1].sum()

    def _core_pair(self, i: int, j: int, of_i: Matrix, of_j: Matrix) -> None:
        active = self._integrals.core_active
        u = self._integrals.product(of_i, active[:, j])[:, :, None]  # (ri|aj): [r][a][1]
        w = self._integrals.product(of_j, active[:, i])[:, :, None]
        forms = self._holes.one, self._holes.gone_one, *(each.hole_one for each in self._others)
        norm, energy, *overlaps = (_coupled(u, w, each)[:, 0] for each in forms)
        gaps = self._high - self._low[i] - self._low[j]
        self.sums.add("ijr", norm, energy, gaps, 0.5 if i == j else 1.0, overlaps)


# ---- forms ----


class _Overlaps:
    """Quadratic forms for overlaps of the perturbers of a state with those of another one."""

    def __init__(self, between: Between) -> None:
        self.one, self.hole_one = between.one, between.hole_one
        size = len(self.one) ** 2
        self.moved = moved_norm(between.one, between.two).reshape(size, size)
        self.exchanged = _turned(exchanged_norm(between.one, between.two))
        self.pairs = [_of_norm(each) for each in (between.two, between.hole_two)]


def _turned(form: Matrix) -> Matrix:
    return form.transpose(1, 0, 3, 2).reshape(len(form) ** 2, -1)


def _of_norm(two: Matrix) -> Matrix:
    return np.ascontiguousarray(two.transpose(0, 2, 1, 3)).reshape(len(two) ** 2, -1)


def _coupled(u: Matrix, w: Matrix, form: Matrix) -> Matrix:
    """2 uFu + 2 wFw - uFw - wFu over the middle indices of u and w."""
    of_u, of_w = form @ u, form @ w
    found: Matrix = np.sum(u * (2 * of_u - of_w) + w * (2 * of_w - of_u), axis=1)
    return found


def _of_pairs(particles: Particles) -> list[Matrix]:
    """Quadratic forms [ab][cd] of norms and energies for two particles that leave."""
    size = len(particles.h) ** 2
    return [_of_norm(particles.two), np.ascontiguousarray(particles.gone_two).reshape(size, size)]


def _quadratic(values: Matrix, forms: list[Matrix]) -> list[Matrix]:
    """values F values over the last two indices, for each form F."""
    flat = values.reshape(*values.shape[:-2], -1)
    return [np.sum((flat @ form) * flat, axis=-1) for form in forms]


def _forms(j: Matrix, k: Matrix, moved: Matrix, exchanged: Matrix) -> Matrix:
    """2 jMj - jMk - kMj + kXk for each row, with the forms M = moved and X = exchanged."""
    found: Matrix = np.sum((j @ moved) * (2 * j - k) - (k @ moved) * j + (k @ exchanged) * k, axis=1)
    return found
