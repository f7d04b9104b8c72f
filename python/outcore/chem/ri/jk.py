"""J and K from three-index integrals, in one pass over them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outcore.chem.ri.exchange import Blocks, unfolded
from outcore.chem.ri.plan import matrices_at_once
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.ri.disk_pass import Batch
    from outcore.chem.ri.symmetry import FittingSymmetry
    from outcore.chem.ri.three_index import ThreeIndex

Matrix = NDArray[np.float64]

_CACHED_BYTES = 1 << 20  # rows that J uses twice stay in the cache of a core if they have no more bytes
_NEGLIGIBLE = 1e-14  # occupations below it, relative to the largest, are rounding


@dataclass(frozen=True)
class DensityFactors:
    """A density matrix as sum_i sign_i left_i right_i^T; `right` None: it is `left`. [n][any]"""

    left: Matrix
    right: Matrix | None
    signs: Matrix

    @classmethod
    def of(cls, density: Matrix, orbitals: Matrix | None = None) -> DensityFactors:
        """Factors of a density. orbitals: those of the density, scaled by the roots of their occupations, if they
        are known; else factors are eigenvectors, or singular vectors if the density is not symmetric."""
        if orbitals is not None and np.allclose(orbitals @ orbitals.T, density, rtol=0, atol=1e-12):
            return cls(orbitals, None, np.ones(orbitals.shape[1]))
        if np.allclose(density, density.T, rtol=0, atol=1e-14):
            values, vectors = linalg.eigh(density)
            kept = abs(values) > _NEGLIGIBLE * max(abs(values).max(), 1e-300)
            values, vectors = values[kept], vectors[:, kept]
            return cls(vectors * np.sqrt(abs(values)), None, np.sign(values))
        left, values, right = linalg.svd(density)
        kept = values > _NEGLIGIBLE * max(values.max(), 1e-300)
        return cls(left[:, kept] * values[kept], right[kept].T.copy(), np.ones(int(kept.sum())))


@dataclass(frozen=True)
class JKRequest:
    """A request. densities: [count][n][n] for J; None: no J. factors: of the densities for K; None: no K."""

    densities: Matrix | None
    factors: list[DensityFactors] | None

    @classmethod
    def of(cls, dm: Any, *, with_j: bool, with_k: bool) -> JKRequest:
        """The request for real density matrices [...][n][n], with or without PySCF's tags `mo_coeff` and
        `mo_occ`."""
        densities = np.asarray(dm, np.float64)
        densities = densities.reshape(-1, *densities.shape[-2:])
        factors = None
        if with_k:
            orbitals = _tagged_orbitals(dm, len(densities))
            factors = [DensityFactors.of(*each) for each in zip(densities, orbitals, strict=True)]
        return cls(densities if with_j else None, factors)


def _tagged_orbitals(dm: Any, count: int) -> list[Matrix | None]:
    """For each density its orbitals times the roots of their occupations; None if it has no tags with them."""
    if getattr(dm, "mo_coeff", None) is None or getattr(dm, "mo_occ", None) is None:
        return [None] * count
    occupations = np.asarray(dm.mo_occ, np.float64)
    occupations = occupations.reshape(-1, occupations.shape[-1])
    coefficients = np.asarray(dm.mo_coeff)
    if np.iscomplexobj(coefficients):
        return [None] * count
    coefficients = coefficients.reshape(-1, *coefficients.shape[-2:])
    if len(occupations) * 2 == count:  # restricted open shells: one density for each spin
        occupations = np.concatenate([occupations > 0, occupations == 2]).astype(np.float64)
        coefficients = np.concatenate([coefficients, coefficients])
    if len(occupations) != count:
        return [None] * count
    return [
        c[:, occupied > 0] * np.sqrt(occupied[occupied > 0])
        for c, occupied in zip(coefficients, occupations, strict=True)
    ]


def jk(integrals: ThreeIndex, request: JKRequest, threads: int, orbitals: int) -> tuple[Any, Any]:
    """J and K [count][n][n], or None if not requested: sums over all processes, bit by bit the same at each.
    Collective; the request must be the same at all. orbitals: most orbitals that are transformed at once, which
    bounds the memory. threads: most threads."""
    world, symmetry = integrals.world, integrals.symmetry
    columns = None if request.densities is None else integrals.columns.gather(request.densities)
    groups = _all_groups(integrals, request.factors or [], orbitals)
    stop = None if groups or columns is None else integrals.needed(columns)  # K needs all rows
    if not groups and integrals.rows_in_memory < integrals.rows:
        # J without K waits for the disk: this leaves a core for the threads that read. [M33]
        threads = max(1, threads - 1)
    workers = list[JkWorker]()
    batches = integrals.batches(stop)
    failure: Exception | None = None

    def use(thread: int, batch: Batch) -> None:
        try:
            for irrep, rows in integrals.by_irreps(batch):
                workers[thread].add(irrep, rows)
        finally:  # another thread may wait for the buffer
            batch.release()

    try:
        workers += [JkWorker(integrals, columns, groups, orbitals) for _ in range(threads)]
        team.each(batches, threads, use)
    except Exception as error:
        failure = error
    finally:
        batches.close()
    with world.together("J and K", len(groups), columns is None):
        if failure is not None:
            raise failure
        coulomb, exchange = JkWorker.total(workers)
    k = None
    if groups:
        sums = [world.all_reduce(each) for each in exchange]
        k = symmetry.from_axes(
            np.array([unfolded(symmetry, each) if each.ndim > 2 else each for each in sums])
        )
    del exchange
    j = None if columns is None else integrals.columns.total(world.all_reduce(coulomb))
    return j, k


class OrbitalGroup(NamedTuple):
    """Orbitals as rows, left and right (None: the same), their sign, and their irrep if all have the same irrep and
    the density is symmetric."""

    left: Matrix
    right: Matrix | None = None
    sign: float = 1.0
    irrep: int | None = None


def _all_groups(integrals: ThreeIndex, factors: list[DensityFactors], most: int) -> list[list[OrbitalGroup]]:
    """Groups of orbitals for each density. The first process decides whether a density is symmetric. Collective."""
    symmetry = integrals.symmetry
    if symmetry.order == 1 or not factors:
        return [_groups(symmetry, each, most) for each in factors]
    blocks = list[Blocks | None]()
    for each in factors:
        left = symmetry.orbitals_to_axes(each.left)
        blocks.append(None if each.right is not None else Blocks(symmetry, (left * each.signs) @ left.T))
    symmetric = integrals.world.broadcast([each is not None and each.is_symmetric for each in blocks])
    return [
        _groups(symmetry, each, most)
        if block is None or not is_symmetric
        else [
            OrbitalGroup(orbitals[first : first + most], None, sign, irrep)
            for irrep, sign, orbitals in block.orbitals()
            for first in range(0, len(orbitals), most)
        ]
        for each, block, is_symmetric in zip(factors, blocks, symmetric, strict=True)
    ]


def _groups(symmetry: FittingSymmetry, factors: DensityFactors, most: int) -> list[OrbitalGroup]:
    """Groups of at most `most` orbitals of one sign, along the axes of the integrals."""
    order = np.argsort(factors.signs, kind="stable")
    left, signs = symmetry.orbitals_to_axes(factors.left[:, order]), factors.signs[order]
    right = None if factors.right is None else symmetry.orbitals_to_axes(factors.right[:, order])
    negative = int(np.count_nonzero(signs < 0))
    ends = sorted({len(signs), *range(0, negative, most), *range(negative, len(signs), most)})
    return [
        OrbitalGroup(
            np.ascontiguousarray(left[:, a:b].T),
            None if right is None else np.ascontiguousarray(right[:, a:b].T),
            float(signs[a]),
        )
        for a, b in pairwise(ends)
    ]


class JkWorker:
    """The sums of one thread: J as a row of columns for each irrep,
    K = sum_P sum_i sign_i (B_P left_i)(B_P right_i)^T."""

    def __init__(
        self, integrals: ThreeIndex, columns: Matrix | None, groups: list[list[OrbitalGroup]], most: int
    ) -> None:
        self._integrals, self._columns, self._groups = integrals, columns, groups
        n = integrals.pairs.functions
        self.coulomb: Any = 0.0 if columns is None else np.zeros_like(columns)
        irreps, standing = integrals.columns.irreps, integrals.columns.standing
        of_irreps = [bool(each) and each[0].irrep is not None for each in groups]
        self.exchange = [np.zeros((irreps, standing, standing) if each else (n, n)) for each in of_irreps]
        if groups:
            both = 2 if any(group.right is not None for each in groups for group in each) else 1
            self._half = np.empty((both, max(1, integrals.plan.half_rows // both) * most * n))
        if any(of_irreps):
            room = matrices_at_once(n) * n // standing
            self._standing = np.zeros((room, n, standing))
            self._of_irrep = np.empty((standing, standing))
        if not all(of_irreps):
            self._matrices = np.zeros((matrices_at_once(n), n, n))
            self._product = np.empty((n, n))

    @staticmethod
    def total(workers: list[JkWorker]) -> tuple[Any, list[Matrix]]:
        """Sums of J and K over all workers. It empties the list, so that work space is freed before more memory is
        needed."""
        coulomb, exchange = workers[0].coulomb, workers[0].exchange
        workers.pop(0)
        while workers:
            worker = workers.pop()
            coulomb += worker.coulomb
            for number, each in enumerate(worker.exchange):
                exchange[number] += each
        return coulomb, exchange

    def add(self, irrep: int, rows: Matrix) -> None:
        """Adds the contribution of rows of one irrep."""
        if self._columns is not None:
            columns, coulomb = self._columns[irrep], self.coulomb[irrep]
            few = max(1, _CACHED_BYTES // rows[0].nbytes)
            for first in range(0, len(rows), few):
                part = rows[first : first + few]
                coulomb += (columns @ part.T) @ part
        for groups, total in zip(self._groups, self.exchange, strict=True):
            if total.ndim > 2:
                self._add_symmetric(irrep, rows, groups, total)
                continue
            for group in groups:
                at_once = max(1, len(self._half[0]) // (len(group.left) * self._integrals.pairs.functions))
                for first in range(0, len(rows), at_once):
                    self._add(irrep, rows[first : first + at_once], group, total)

    def _add_symmetric(self, irrep: int, rows: Matrix, groups: list[OrbitalGroup], total: Matrix) -> None:
        """Adds the contribution of rows to K of a symmetric density; see `exchange`."""
        standing, room = total.shape[-1], len(self._half[0])
        begin = 0
        while begin < len(groups):
            # As many orbitals as fit into the work space share the expanded rows.
            counts = np.cumsum([len(group.left) for group in groups[begin:]])
            end = begin + max(1, int(np.searchsorted(counts * standing, room, side="right")))
            some = groups[begin:end]
            at_once = max(1, room // (int(counts[end - begin - 1]) * standing))
            for first in range(0, len(rows), at_once):
                self._add_of_irreps(irrep, rows[first : first + at_once], some, total)
            begin = end

    def _add_of_irreps(self, irrep: int, rows: Matrix, groups: list[OrbitalGroup], total: Matrix) -> None:
        standing, at_once, at = total.shape[-1], len(self._standing), 0
        halves = list[Matrix]()
        for group in groups:
            size = len(rows) * len(group.left) * standing
            halves.append(self._half[0][at : at + size].reshape(len(rows), len(group.left), standing))
            at += size
        for first in range(0, len(rows), at_once):
            part = rows[first : first + at_once]
            self._integrals.columns.expand_standing(irrep, part, self._standing)
            for group, half in zip(groups, halves, strict=True):
                np.matmul(group.left, self._standing[: len(part)], out=half[first : first + len(part)])
        for group, half in zip(groups, halves, strict=True):
            x = half.reshape(-1, standing)
            np.matmul(x.T, x, out=self._of_irrep)
            if group.sign != 1.0:
                self._of_irrep *= group.sign
            total[irrep ^ (group.irrep or 0)] += self._of_irrep

    def _add(self, irrep: int, rows: Matrix, group: OrbitalGroup, total: Matrix) -> None:
        left, right, sign, _ = group
        n, at_once = len(total), len(self._matrices)
        sides = [left] if right is None else [left, right]
        halves = [
            half[: len(rows) * side.size].reshape(len(rows), *side.shape)
            for half, side in zip(self._half, sides, strict=False)
        ]
        for first in range(0, len(rows), at_once):
            part = rows[first : first + at_once]
            self._integrals.columns.expand(irrep, part, self._matrices)
            for side, half in zip(sides, halves, strict=True):
                np.matmul(side, self._matrices[: len(part)], out=half[first : first + len(part)])
        x, y = halves[0].reshape(-1, n), halves[-1].reshape(-1, n)
        np.matmul(x.T, y, out=self._product)  # BLAS does half the work for x with itself
        if sign != 1.0:
            self._product *= sign
        total += self._product
