"""Relaxed densities and nuclear gradients of RI-MP2, with the SCF's own integrals and those of the set of MP2.

Weigend, Haeser, Theor. Chem. Acc. 97, 331 (1997), whose SCF has exact integrals; with a fitted SCF:
Bozkaya, J. Chem. Phys. 141, 124108 (2014).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.gradients import correlation
from outcore.chem.gradients import densities as densities_of
from outcore.chem.gradients import scf as of_scf
from outcore.chem.gradients.densities import Densities, DensityOfSpin
from outcore.chem.gradients.fitted import independent
from outcore.chem.gradients.response import Unrelaxed, with_response
from outcore.chem.gradients.two_electron import least_of_jk
from outcore.chem.mp2 import densities as mp2_densities
from outcore.chem.ri.bound import once
from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.plan import TransformPlan, TransformSizes, min_for_transform, plan_transform
from outcore.chem.ri.rows import FittedRows
from outcore.chem.ri.traffic import TrafficWatch
from outcore.chem.ri.transformed import Transformed
from outcore.job.processes import free_memory

if TYPE_CHECKING:
    from outcore.chem.method import Means
    from outcore.chem.mp2.densities import Matrix, OneParticle
    from outcore.chem.mp2.mp2 import MP2
    from outcore.chem.ri.traffic import Traffic

_HELD_BYTES = 16 << 20  # of densities and buffers, while J and K are made


@dataclass(frozen=True)
class DensityPlan:
    """transform: of B and of Gamma, each. columns: virtual orbitals of a task."""

    transform: TransformPlan
    columns: int


def least_bytes(sizes: TransformSizes, processes: int, threads: int, storage: str) -> int:
    """The least bytes of each process, while densities are made."""
    return min_for_transform(sizes, processes, threads, "disk") + mp2_densities.bytes_of(sizes, 1, 1)


def plan(
    sizes: TransformSizes,
    free_bytes: int,
    processes: int,
    threads: int,
    storage: str,
    *,
    beside_bytes: int,
    limit: str,
) -> DensityPlan:
    """A plan for `free_bytes` at each process. limit: for messages, what leaves these bytes. B and Gamma are in
    memory if they take less than half of it, and Gamma leaves room for J and K of the SCF, `beside_bytes`. Raises
    OutcoreError (ENOMEM)."""
    least = least_bytes(sizes, processes, threads, storage)
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "densities of RI-MP2",
            detail=f"{sizes.auxiliary} auxiliary functions and {max(sizes.virtual)} virtual orbitals need at least "
            f"{in_words(least)} more in each of {processes} processes, but {limit} leaves {in_words(free_bytes)} "
            "to each",
        )
    small = mp2_densities.bytes_of(sizes, 1, 1)
    share = -(-sizes.bytes // processes)
    fits = 4 * share < free_bytes and share + _HELD_BYTES + beside_bytes < free_bytes
    for place in ("auto", "disk") if storage == "auto" and fits else ("disk",):
        left = free_bytes - small - (2 * share if place == "auto" else 0)
        if left < min_for_transform(sizes, processes, threads, place):
            continue
        found = plan_transform(sizes, left, processes, threads, place, limit=limit)
        if place == "auto" and not found.in_memory:
            continue
        left = free_bytes - 2 * (found.memory_bytes + found.cache_bytes)
        columns = max(sizes.virtual)
        while columns > 1 and mp2_densities.bytes_of(sizes, found.tile, columns) > left:
            columns = -(-columns // 2)
        return DensityPlan(replace(found, block=1), columns)
    raise AssertionError(f"{free_bytes} bytes are enough, but no plan was found")


class Response:
    """Relaxed densities of an MP2 object, and the arrays that its gradient needs beside them. Methods are
    collective; `close` gives these arrays back."""

    def __init__(self, mp2: MP2) -> None:
        """Raises OutcoreError for references without a gradient (ENOTSUP, EINVAL)."""
        self._mp2, self.world = mp2, mp2.world
        with self.world.together("gradient of RI-MP2"):
            _check(mp2)
        means = mp2.means()
        of_scf.scf_reference(means, mp2.scf_object)
        self._rows = FittedRows(self.world, mp2.mol, mp2.given_auxbasis, mp2.threads, mp2.settings.screening)
        self._weight = 2 if mp2.restricted else 1
        self._watch, self._least_moved = TrafficWatch(), -least_of_jk(mp2.scf_object)
        self._gammas: list[Transformed] = []
        self._y: Matrix | None = None
        self.densities = self._make(means)

    def _make(self, means: Means) -> Densities:
        mp2, world, rows = self._mp2, self.world, self._rows
        if mp2.uncorrelated:
            return densities_of.of_scf(of_scf.scf_reference(means, mp2.scf_object))
        sizes = mp2.sizes(rows)
        free = min(world.gather(free_memory(world, means.memory_bytes, means.threads)))
        fitting = vars(mp2.scf_object).get("with_df")
        beside = 0
        if isinstance(fitting, DensityFitting):
            fitting.plan_for(2, 1)  # J and K leave half of the memory to the gradient
            beside = 2 * fitting.min_bytes()
        with world.together("densities of RI-MP2"):
            chosen = plan(
                sizes,
                free.bytes,
                world.size,
                means.threads,
                mp2.storage,
                beside_bytes=beside,
                limit=free.reason,
            )
        one_particle = self._amplitudes(chosen)
        # What does not fit of Gamma is written before all of it is known, and read after that.
        self._least_moved += mp2.least_bytes() + 2 * once(sizes.bytes, free.bytes * world.size)
        found = correlation.orbital_gradient(world, rows, self._gammas, self._slabs())
        return self._relax(one_particle, found)

    def _amplitudes(self, chosen: DensityPlan) -> list[OneParticle]:
        """Returns one-particle densities; puts X into `_gammas`, and makes Y."""
        mp2, world = self._mp2, self.world
        present = mp2.fitted_integrals(chosen.transform)
        self._present, integrals = list(present), list(present.values())
        try:
            if mp2.dropped:
                independent(world, self._rows)  # raises
            self._gammas = [
                Transformed(world, self._rows.count, each.orbitals, chosen.transform) for each in integrals
            ]
            found = mp2_densities.densities(
                world,
                integrals,
                self._gammas,
                chosen.transform,
                chosen.columns,
                mp2.restricted,
                mp2.progress("densities of MP2"),
            )
            factor = independent(world, self._rows)
            self._y = correlation.metric_density(self._weight, self._gammas, integrals, factor)
        finally:
            for each in integrals:
                each.close()
        for each in self._gammas:
            each.apply(factor.coefficients, mp2.threads)
            each.sync()
        return found

    def _relax(self, one_particle: list[OneParticle], orbital: list[tuple[Matrix, Matrix]]) -> Densities:
        mp2, unrelaxed = self._mp2, []
        for number, spin in enumerate(mp2.reference.spins):
            inside, outside = mp2.reference.frozen.active(number, spin.numbers, spin.occupied)
            count = len(spin.energies)
            correlated = np.zeros(count, bool)
            correlated[inside] = correlated[outside] = True
            gamma, w = np.zeros((count, count)), np.zeros((count, count))
            if number in self._present:
                at = self._present.index(number)
                gamma[np.ix_(inside, inside)] = one_particle[at].occupied
                gamma[np.ix_(outside, outside)] = one_particle[at].virtual
                w[:, inside], w[:, outside] = (spin.coefficients.T @ each for each in orbital[at])
            unrelaxed.append(Unrelaxed(spin.coefficients, spin.energies, spin.occupied, correlated, gamma, w))
        self.unrelaxed = Densities(
            [
                DensityOfSpin(each.coefficients[:, : each.occupied], each.coefficients, each.density)
                for each in unrelaxed
            ],
            np.zeros_like(mp2.reference.overlap),
        )
        return with_response(self.world, mp2.scf_object, unrelaxed)

    def _slabs(self) -> correlation.Slabs:
        """The slabs for the free memory. Collective. Raises OutcoreError (ENOMEM)."""
        mp2, rows = self._mp2, self._rows
        shapes = [each.orbitals.shape for each in self._gammas]
        free = min(self.world.gather(free_memory(self.world, mp2.means().memory_bytes, mp2.threads)))
        return correlation.slabs(rows, shapes, free.bytes, mp2.threads)

    def gradient(self) -> Matrix:
        """[atom][x] (Hartree/Bohr), the same bits at all processes."""
        mp2, world = self._mp2, self.world
        means = mp2.means()
        found, least_moved = of_scf.gradient(
            mp2.scf_object, means, self.densities, mp2.progress("derivatives of the SCF's integrals")
        )
        self._least_moved += least_moved
        if self._y is None:
            return found
        more = correlation.gradient(
            world,
            mp2.mol,
            self._rows,
            self._weight,
            self._gammas,
            self._y,
            self._slabs(),
            mp2.progress("derivatives of MP2's integrals"),
        )
        total: Matrix = found + world.all_reduce(more)
        return total

    def traffic(self) -> Traffic:
        """Disk traffic so far, of densities and the gradient. Collective."""
        return self._watch.traffic(self.world, self._least_moved + least_of_jk(self._mp2.scf_object))

    def close(self) -> None:
        """Collective."""
        for each in self._gammas:
            each.close()
        self._gammas = []


@contextmanager
def response(mp2: MP2) -> Iterator[Response]:
    """Collective."""
    made = Response(mp2)
    try:
        yield made
    finally:
        made.close()


def _check(mp2: MP2) -> None:
    reference = mp2.reference
    if reference.singles or reference.note:
        raise _refused(
            f"the orbitals are {reference.note or 'not those of the SCF'}: gradients are of RHF and UHF with their "
            "canonical orbitals"
        )
    if mp2.given_integrals:
        raise _refused("the integrals are given, not fitted, and have no derivatives")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, "gradient of RI-MP2", detail=detail)
