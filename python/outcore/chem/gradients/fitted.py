"""Coulomb and exchange energies with fitted integrals: three-index densities Z and a two-index one, Y, of the set
that the SCF is fitted with.

With d the density of the SCF, p half of it plus the correction of a method, C[P,mn] = (P|Q)^-1 (Q|mn),
rho_x[P] = C[P] x:

    E = rho_p (P|mn) d - sum_s tr (p_s C[P] d_s (P|..))
    Z[P] = rho_d p + rho_p d - sum_s (p_s C[P] d_s + d_s C[P] p_s)
    Y[P,Q] = -rho_p rho_d + sum_s tr (C[P] p_s C[Q] d_s)

An SCF has p = d / 2. C is needed only between occupied orbitals and the space of p, which an SCF spans by occupied
ones.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.gradients import three_index
from outcore.chem.ri.bound import once
from outcore.chem.ri.metric import Metric
from outcore.chem.ri.plan import TransformPlan, TransformSizes, min_for_transform, plan_transform
from outcore.chem.ri.transformed import ActiveOrbitals, Transformed, transform

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Densities, DensityOfSpin, Matrix
    from outcore.chem.ri.rows import FittedRows
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

_DOUBLE = 8
_MATRICES = 12  # matrices of n*n doubles that are held at a time
_MAX_ROWS = 32  # most rows of a slab
_INNER = 64  # fewest rows of each product of matrices in the sum Y


@dataclass(frozen=True)
class FittedSizes:
    """Sizes of the transformed integrals, and number of functions of the largest auxiliary shell."""

    transformed: TransformSizes
    largest_shell: int

    @classmethod
    def of(cls, rows: FittedRows, shapes: list[tuple[int, int]]) -> FittedSizes:
        """shapes: numbers of occupied orbitals and of orbitals of the space, of each spin."""
        occupied, space = (tuple(each) for each in zip(*shapes, strict=True))
        sizes = TransformSizes(rows.functions, rows.columns, rows.count, occupied, space)
        return cls(sizes, int(np.diff(rows.auxmol.ao_loc_nr()).max()))

    @property
    def held_bytes(self) -> int:
        """Bytes of densities, and of Y with its derivatives."""
        n, auxiliary = self.transformed.functions, self.transformed.auxiliary
        y = auxiliary**2 * _DOUBLE + three_index.metric_bytes(auxiliary)
        return _MATRICES * len(self.transformed.occupied) * n**2 * _DOUBLE + y

    @property
    def tile_bytes(self) -> int:
        """Bytes of factors of Y, of some orbitals at a time."""
        return 3 * (_INNER + max(self.transformed.virtual)) * self.transformed.auxiliary * _DOUBLE

    def slab_bytes(self, rows: int) -> int:
        """Bytes of each thread, while Z is contracted."""
        n, shapes = self.transformed.functions, self.transformed
        pairs = max(o * r for o, r in zip(shapes.occupied, shapes.virtual, strict=True))
        row = pairs * _DOUBLE + three_index.slab_bytes(shapes.columns)
        return rows * row + (3 * n + 2 * max(shapes.occupied)) * n * _DOUBLE + 2 * shapes.columns * _DOUBLE

    def least_bytes(self, processes: int, threads: int, storage: str) -> int:
        """The least bytes of each process."""
        transformation = min_for_transform(self.transformed, processes, threads, storage)
        return self.held_bytes + max(transformation + self.tile_bytes, self.slab_bytes(self.largest_shell))


@dataclass(frozen=True)
class Plan:
    """transform: of the transformed integrals. slab_rows, slab_threads: of the pass over derivatives. least_moved:
    bytes that all processes together move to and from disk at least, in this memory."""

    transform: TransformPlan
    slab_rows: int
    slab_threads: int
    least_moved: float


def plan(
    sizes: FittedSizes, free_bytes: int, processes: int, threads: int, storage: str = "auto", *, limit: str
) -> Plan:
    """A plan for `free_bytes` at each process. limit: for messages, what leaves these bytes. Raises OutcoreError
    (ENOMEM) if nothing fits."""
    least = sizes.least_bytes(processes, threads, storage)
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "gradient",
            detail=f"{sizes.transformed.functions} functions with {sizes.transformed.auxiliary} auxiliary ones "
            f"need at least {in_words(least)} more in each of {processes} processes, but {limit} leaves "
            f"{in_words(free_bytes)} to each",
        )
    left = free_bytes - sizes.held_bytes
    slab = sizes.slab_bytes(sizes.largest_shell)
    for_transform = left - sizes.tile_bytes
    transformation = plan_transform(
        sizes.transformed, for_transform, processes, threads, storage, limit=limit
    )
    if transformation.in_memory and left - transformation.memory_bytes < slab:
        transformation = plan_transform(
            sizes.transformed, for_transform, processes, threads, "disk", limit=limit
        )
    left -= transformation.memory_bytes + transformation.cache_bytes
    slab_threads = int(min(max(left // slab, 1), threads))
    rows = sizes.largest_shell
    while rows < _MAX_ROWS and slab_threads * sizes.slab_bytes(rows + 1) <= left:
        rows += 1
    # What does not fit is written before all of it is known, and read after that.
    least_moved = 2 * once(sizes.transformed.bytes, free_bytes * processes)
    return Plan(transformation, rows, slab_threads, least_moved)


def fitted(
    world: World,
    mol: Any,
    rows: FittedRows,
    densities: Densities,
    chosen: Plan,
    threads: int,
    progress: Progress | None = None,
    keeper: three_index.SlabKeeper | None = None,
) -> Matrix:
    """[atom][x] of this process's share (Hartree/Bohr). keeper: keeps the results of slabs. Collective. Raises
    OutcoreError (ENOTSUP) for linearly dependent auxiliary functions."""
    # A spin without electrons has no exchange.
    there = [each for each in densities.spins if each.occupied.size]
    every = [_Exchange(world, rows, each, chosen.transform) for each in there]
    try:
        return _gradient(world, mol, rows, densities, chosen, threads, every, progress, keeper)
    finally:
        for each in every:
            each.pairs.close()


def _gradient(
    world: World,
    mol: Any,
    rows: FittedRows,
    densities: Densities,
    chosen: Plan,
    threads: int,
    every: list[_Exchange],
    progress: Progress | None,
    keeper: three_index.SlabKeeper | None,
) -> Matrix:
    weight = densities.weight
    of_scf = weight * np.sum([each.of_scf for each in densities.spins], axis=0)
    half = of_scf / 2 + weight * np.sum([each.changed for each in densities.spins], axis=0)
    both, rho = np.stack([of_scf, half], axis=-1).reshape(-1, 2), np.zeros((rows.count, 2))

    def fit_densities(first: int, matrices: Matrix) -> None:
        rho[first : first + len(matrices)] = matrices.reshape(len(matrices), -1) @ both

    transform(
        world, rows, [each.pairs for each in every], chosen.transform.batch_rows, threads, use=fit_densities
    )
    for each in every:
        each.pairs.sync()
    rho = world.all_reduce(rho)
    factor = independent(world, rows)
    factor.coefficients(factor.fit(rho))
    y = np.zeros((rows.count, rows.count))
    for each in every:
        each.pairs.fit(factor, threads)
        each.add_overlap(weight, y)
    factor.coefficients(y)
    factor.coefficients(y.T)
    for each in every:
        each.pairs.apply(factor.coefficients, threads)
        each.pairs.sync()
    del factor
    if world.rank == 0:
        y -= np.outer(rho[:, 1], rho[:, 0])
    found = three_index.metric(mol, rows.auxmol, y)
    del y
    coulomb = rows.pairs.elements(np.stack([half, of_scf]))
    slabs = [_Slab(every, chosen.slab_rows) for _ in range(chosen.slab_threads)]

    def make(thread: int, box: slice, z: Matrix) -> None:
        np.matmul(rho[box], coulomb, out=z)
        slabs[thread].subtract(weight, box, rows, z)

    found += three_index.three_index(
        world, mol, rows, chosen.slab_rows, chosen.slab_threads, make, progress, keeper
    )
    return found


def independent(world: World, rows: FittedRows) -> Metric:
    """The metric of an auxiliary set whose functions are linearly independent: if some are left out, derivatives
    neglect how this choice changes with the geometry. Collective. Raises OutcoreError (ENOTSUP)."""
    factor = rows.fit(world)
    if factor.smallest is not None:
        raise OutcoreError(
            errno.ENOTSUP,
            "gradient",
            detail=f"{factor.dropped} of {factor.functions} auxiliary functions depend on others within rounding "
            f"(the least eigenvalue of their metric is {factor.smallest:.1e}): take another auxiliary set",
        )
    return factor


class _Exchange:
    """C[P, i, q] of one spin: occupied orbitals i, and q of the space of p."""

    def __init__(self, world: World, rows: FittedRows, spin: DensityOfSpin, chosen: TransformPlan) -> None:
        """Collective."""
        self.spin = spin
        none, numbers = np.empty(0), np.empty(0, np.int64)
        self.pairs = Transformed(
            world, rows.count, ActiveOrbitals(spin.occupied, spin.space, none, none, numbers), chosen
        )
        # p over its space: one half for the SCF's orbitals, plus the correction
        inside = np.eye(spin.space.shape[1]) / 2
        if spin.change is not None:
            # The space contains the SCF's orbitals, too.
            overlap = np.linalg.lstsq(spin.space, spin.occupied, rcond=None)[0]
            inside = overlap @ overlap.T / 2 + spin.change
        self.inside = inside
        self.to_functions = spin.space @ inside

    def add_overlap(self, weight: int, y: Matrix) -> None:
        """y[P,Q] += weight tr (B[P] p B[Q] d), of this process's orbitals."""
        some = max(1, _INNER // self.pairs.orbitals.shape[1])
        for _, tile in self.pairs.tiles():
            for first in range(0, tile.shape[1], some):
                right = np.ascontiguousarray(tile[:, first : first + some])
                left = (right @ (weight * self.inside)).reshape(len(y), -1)
                # y is symmetric: BLAS adds to its transpose, in place
                blas.dgemm(
                    1.0, left.T, right.reshape(len(y), -1).T, beta=1.0, c=y.T, trans_a=1, overwrite_c=1
                )


class _Slab:
    """Subtracts exchange from Z, in one thread."""

    def __init__(self, every: list[_Exchange], rows: int) -> None:
        self._every = every
        self._values = np.empty(
            rows * max(each.pairs.orbitals.shape[0] * each.pairs.orbitals.shape[1] for each in every)
        )

    def subtract(self, weight: int, box: slice, rows: FittedRows, z: Matrix) -> None:
        count = box.stop - box.start
        for each in self._every:
            occupied, space = each.pairs.orbitals.shape
            values = self._values[: count * occupied * space].reshape(count, occupied, space)
            each.pairs.get_rows(box.start, box.stop, values).wait()
            for row, value in enumerate(values):
                mixed = (each.to_functions @ value.T) @ each.spin.occupied.T
                z[row] -= 2 * weight * rows.pairs.elements(mixed)
