"""Densities of RI-MP2, by the Hylleraas functional, which is stationary in the amplitudes t:

    closed shells, of each spin, u = 2 t - t':    gamma_ij = -sum u_ik t_jk,  gamma_ab = sum u_ij t_ij
    open shells, v = t - t' of one spin:          gamma_ij = -sum (v_ik v_jk / 2 + t_ik t_jk of both spins), ..
    Gamma[P,ia] = 2 sum_jb u B[P,jb]              v and t in the place of u

One task has an orbital k, and some virtual ones a: it makes t_ki^ab with all i and b, in tiles of i, and ends all
sums over them. Amplitudes are never stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.mp2.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outcore.chem.ri.plan import TransformPlan, TransformSizes
    from outcore.chem.ri.transformed import Transformed
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

Matrix = np.ndarray[Any, np.dtype[np.float64]]

_DOUBLE = 8
_TILES = 4  # tiles that are read ahead or worked on, and one for a product


def bytes_of(sizes: TransformSizes, tile: int, columns: int) -> int:
    """Bytes of tasks with `columns` virtual orbitals in each process, with tiles of `tile` orbitals."""
    occupied, virtual = max(sizes.occupied), max(sizes.virtual)
    amplitudes = (3 * occupied + 2 * tile) * columns * virtual
    sums = sum(o * o + v * v for o, v in zip(sizes.occupied, sizes.virtual, strict=True)) + virtual**2
    passing = (2 + _TILES * tile) * sizes.auxiliary * virtual + sizes.auxiliary * columns
    return (amplitudes + sums + passing) * _DOUBLE


@dataclass(frozen=True)
class OneParticle:
    """The unrelaxed density of one spin: between active occupied orbitals, and between active virtual ones."""

    occupied: Matrix
    virtual: Matrix


def densities(
    world: World,
    integrals: list[Transformed],
    gammas: list[Transformed],
    plan: TransformPlan,
    columns: int,
    closed: bool,
    progress: Progress | None = None,
) -> list[OneParticle]:
    """Returns one-particle densities of each spin that has pairs, or of both spins of closed shells, and puts Gamma
    into `gammas`, which have the orbitals of `integrals` (B). columns: virtual orbitals of a task. Collective."""
    sums = [
        OneParticle(np.zeros((occupied,) * 2), np.zeros((virtual,) * 2))
        for occupied, virtual in (each.orbitals.shape for each in integrals)
    ]
    tasks = [
        (spin, orbital, begin)
        for spin, each in enumerate(integrals)
        for orbital in range(each.orbitals.shape[0])
        for begin in range(0, each.orbitals.shape[1], columns)
    ]
    counter = world.counter()
    with world.together("densities of MP2"):
        while (number := counter.next()) < len(tasks):
            spin, orbital, begin = tasks[number]
            _Task(integrals, spin, orbital, begin, columns, plan, closed).work(gammas, sums)
            if progress is not None:
                progress((number + 1) / len(tasks))
        if progress is not None:
            progress(1.0)
    for each in gammas:
        each.sync()
    return [OneParticle(world.all_reduce(each.occupied), world.all_reduce(each.virtual)) for each in sums]


class _Task:
    """The task of orbital k of a spin, and a range of its virtual orbitals a."""

    def __init__(
        self,
        integrals: list[Transformed],
        spin: int,
        orbital: int,
        begin: int,
        columns: int,
        plan: TransformPlan,
        closed: bool,
    ) -> None:
        self._closed = closed
        self._integrals, self._spin, self._orbital, self._plan = integrals, spin, orbital, plan
        self._box = slice(begin, min(begin + columns, integrals[spin].orbitals.shape[1]))

    def work(self, gammas: list[Transformed], sums: list[OneParticle]) -> None:
        mine = self._integrals[self._spin]
        gamma = np.zeros((mine.rows, self._box.stop - self._box.start))
        for other, integrals in enumerate(self._integrals):
            self._add(other, integrals, sums[other], gamma)
        gammas[self._spin].put_orbital(self._orbital, self._box.start, gamma).wait()

    def _add(self, other: int, integrals: Transformed, sums: OneParticle, gamma: Matrix) -> None:
        """Adds the terms of amplitudes with orbitals of a spin."""
        mine, closed = self._integrals[self._spin], self._closed
        occupied, virtual = integrals.orbitals.shape
        t = np.empty((occupied, gamma.shape[1], virtual))
        same = other == self._spin
        u = np.empty_like(t) if same else t
        block: Any = None
        for block, first, tile in self._tiles(mine, integrals):
            box = slice(first, first + tile.shape[1])
            self._amplitudes(block, tile, mine, integrals, box, t[box])
            if same:
                self._with_exchange(block, tile, mine, box, t[box], u[box])
            for i, of_i in enumerate(u[box]):
                gamma += 2.0 * (tile[:, i] @ of_i.T)
        # Pairs of one spin of open shells have v twice, and half of that
        left, right, factor = (u, u, 0.5) if same and not closed else (u, t, 1.0)
        flat = [each.reshape(occupied, -1) for each in (left, right)]
        sums.occupied[...] -= factor * (flat[0] @ flat[1].T)
        flat = [each.reshape(-1, virtual) for each in (left, right)]
        sums.virtual[...] += factor * (flat[0].T @ flat[1])

    def _tiles(self, mine: Transformed, integrals: Transformed) -> Iterator[tuple[Matrix, int, Matrix]]:
        """B[P,a] of orbital k, and B[P,i,b] of some i, with the number of the first."""
        reader = TileReader(mine, integrals, self._plan)
        wanted = (self._orbital, self._orbital + 1)
        step, count = self._plan.tile, integrals.orbitals.shape[0]
        for held, tile in reader.tiles((wanted, (i, min(i + step, count))) for i in range(0, count, step)):
            yield held.values[:, 0], tile.begin, tile.values
        mine.waited_seconds += reader.waited_seconds

    def _amplitudes(
        self, block: Matrix, tile: Matrix, mine: Transformed, integrals: Transformed, box: slice, out: Matrix
    ) -> None:
        """Puts t_ki^ab, [i][a][b]."""
        for i, of_i in enumerate(out):
            np.matmul(block[:, self._box].T, tile[:, i], out=of_i)
        self._divide(mine, integrals, box, out)

    def _with_exchange(
        self,
        block: Matrix,
        tile: Matrix,
        mine: Transformed,
        box: slice,
        t: Matrix,
        out: Matrix,
    ) -> None:
        """Puts t_ki^ab (2 t_ki^ab for closed shells) less t_ki^ba."""
        for i, of_i in enumerate(out):
            np.matmul(tile[:, i, self._box].T, block, out=of_i)
        self._divide(mine, mine, box, out)
        np.subtract((2.0 if self._closed else 1.0) * t, out, out=out)

    def _divide(self, mine: Transformed, integrals: Transformed, box: slice, values: Matrix) -> None:
        first, second = mine.orbitals, integrals.orbitals
        for i, energy in enumerate(second.occupied_energies[box]):
            values[i] /= (
                first.occupied_energies[self._orbital]
                + energy
                - first.virtual_energies[self._box, None]
                - second.virtual_energies
            )
