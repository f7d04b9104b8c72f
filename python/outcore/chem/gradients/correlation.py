"""Three-index densities of a method after the SCF, in its own auxiliary set: with B[P,pq] of the set and

    E = .. + Gamma[P,pq] B[P,pq] / 2,  Gamma = dE/dB,  X = (P|Q)^-1/2 Gamma

derivatives of the integrals count with X, those of the metric with Y = -X C / 2, C = (P|Q)^-1 (Q|pq). `Transformed`
holds Gamma, then X, for pairs of orbitals p, q of each spin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from outcore.chem.gradients import three_index
from outcore.parallel.tasks import each_task

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix
    from outcore.chem.ri.metric import Metric
    from outcore.chem.ri.rows import Block, FittedRows
    from outcore.chem.ri.transformed import Transformed
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

Shapes = Sequence[tuple[int, int]]

_DOUBLE = 8
_MAX_ROWS = 32  # most rows of a slab


class Slabs(NamedTuple):
    """rows: auxiliary functions that a thread works on together, at most, or those of one shell. threads: at
    work."""

    rows: int
    threads: int


def slab_bytes(functions: int, columns: int, shapes: Shapes, rows: int) -> int:
    """Bytes of each thread, in both passes over slabs of `rows` auxiliary functions. shapes: of pairs of orbitals
    of each spin. columns: of rows of integrals."""
    n, widest = functions, max(max(each) for each in shapes)
    values = rows * (sum(left * right for left, right in shapes) + columns)
    return (values + (3 * n + 3 * widest + sum(map(sum, shapes))) * n) * _DOUBLE


def slabs(rows: FittedRows, shapes: Shapes, free_bytes: int, threads: int) -> Slabs:
    """The slabs for `free_bytes`, which must not be less than the bytes of one thread with the largest shell."""
    largest = int(np.diff(rows.auxmol.ao_loc_nr()).max())

    def bytes_of(count: int) -> int:
        return slab_bytes(rows.functions, rows.columns, shapes, count)

    at_once = int(min(max(free_bytes // bytes_of(largest), 1), threads))
    count = largest
    while count < _MAX_ROWS and at_once * bytes_of(count + 1) <= free_bytes:
        count += 1
    return Slabs(count, at_once)


def metric_density(
    weight: int, densities: list[Transformed], integrals: list[Transformed], factor: Metric
) -> Matrix:
    """Y [P][Q], this process's share, from Gamma and B of the same pairs; each counts for `weight` spins. Not
    collective; see `three_index.metric`."""
    count = factor.functions
    y = np.zeros((count, count))
    for gamma, b in zip(densities, integrals, strict=True):
        for (first, tile), (other, of_b) in zip(gamma.tiles(), b.tiles(), strict=True):
            assert first == other
            for orbital in range(tile.shape[1]):
                left, right = (np.ascontiguousarray(each[:, orbital]) for each in (tile, of_b))
                blas.dgemm(-weight / 2, left.T, right.T, beta=1.0, c=y.T, trans_a=1, overwrite_c=1)
    factor.coefficients(y)
    factor.coefficients(y.T)
    return y


def orbital_gradient(
    world: World, rows: FittedRows, densities: list[Transformed], chosen: Slabs
) -> list[tuple[Matrix, Matrix]]:
    """For each spin, with X in `densities`: sum_P,q (P|mq) X[P,pq] as [n][p], and sum_P,p (P|mp) X[P,pq] as [n][q],
    m over basis functions: derivatives of the energy by the coefficients of p and of q. Collective."""
    blocks = rows.blocks(chosen.rows)
    counter = world.counter()
    with world.together("orbital gradient"):
        longest = max(each.stop - each.start for _, each in blocks)
        workers = [_OrbitalGradient(rows, densities, longest) for _ in range(chosen.threads)]
        each_task(
            counter, len(blocks), chosen.threads, lambda thread, task: workers[thread].work(blocks[task])
        )
        found = workers[0].found
        for each in workers[1:]:
            for sums, more in zip(found, each.found, strict=True):
                for number, part in enumerate(more):
                    sums[number] += part
    return [(world.all_reduce(first), world.all_reduce(second)) for first, second in found]


class _OrbitalGradient:
    """The sums of one thread."""

    def __init__(self, rows: FittedRows, densities: list[Transformed], longest: int) -> None:
        self._maker, self._densities = rows.maker(longest), densities
        n = rows.functions
        self.found = [[np.zeros((n, count)) for count in each.orbitals.shape] for each in densities]
        self._values = [np.empty((longest, *each.orbitals.shape)) for each in densities]

    def work(self, block: Block) -> None:
        box, first = block[1], 0
        count = box.stop - box.start
        for each, values in zip(self._densities, self._values, strict=True):
            each.get_rows(box.start, box.stop, values[:count]).wait()
        for matrices in self._maker.matrices(block):
            for each, values, sums in zip(self._densities, self._values, self.found, strict=True):
                left, right = each.orbitals.occupied, each.orbitals.virtual
                for matrix, x in zip(matrices, values[first : first + len(matrices)], strict=True):
                    sums[0] += matrix @ (right @ x.T)
                    sums[1] += (matrix @ left) @ x
            first += len(matrices)


def gradient(
    world: World,
    mol: Any,
    rows: FittedRows,
    weight: int,
    densities: list[Transformed],
    y: Matrix,
    chosen: Slabs,
    progress: Progress | None = None,
    keeper: three_index.SlabKeeper | None = None,
) -> Matrix:
    """[atom][x] of this process's share (Hartree/Bohr), with X in `densities`. weight: spins that each stands for.
    keeper: keeps the results of slabs. Collective."""
    sizes = [each.orbitals.shape[0] * each.orbitals.shape[1] for each in densities]
    longest = max(each.stop - each.start for _, each in rows.blocks(chosen.rows))
    buffers = [np.empty(longest * max(sizes)) for _ in range(chosen.threads)]

    def make(thread: int, box: slice, z: Matrix) -> None:
        z[...] = 0.0
        for each, size in zip(densities, sizes, strict=True):
            count = box.stop - box.start
            values = buffers[thread][: count * size].reshape(count, *each.orbitals.shape)
            each.get_rows(box.start, box.stop, values).wait()
            for row, x in enumerate(values):
                z[row] += weight * rows.pairs.elements(each.orbitals.occupied @ x @ each.orbitals.virtual.T)

    found = three_index.metric(mol, rows.auxmol, y)
    found += three_index.three_index(world, mol, rows, chosen.rows, chosen.threads, make, progress, keeper)
    return found
