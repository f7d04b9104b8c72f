"""Perturbers with one core or one virtual orbital, as vectors: no density of three or four particles is needed.

A perturber V|0> with one electron in virtual orbital x, or one hole in core orbital x, lies in the space of the
active orbitals and x. The integrals (xa|bc) and h_xa form a Hamiltonian V in this space. The product of V with the
state, in which x is empty or doubly occupied, is the perturber. <V H V> needs one product with the active
Hamiltonian.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.ci import hamiltonian, mapped, solver, vector
from outcore.chem.ci import plan as plans
from outcore.chem.ci.mapped import StringMap
from outcore.chem.ci.passes import Place, dots
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.sigma import Sigma, SigmaTraffic
from outcore.chem.ci.space import Space
from outcore.chem.ci.three_particle import PRODUCTS
from outcore.chem.ci.tiles import VectorTiling

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix


def least_bytes(found: Hamiltonian, source: Space, threads: int) -> int:
    """The least memory of a process for vectors of perturbers. found, source: Hamiltonian and space of the CI."""
    n, electrons = found.orbitals, source.electrons
    plain = _Plain(n + 1)
    spaces = [Space(plain, electrons[0] + each, electrons[1] + each, 0, source.parity) for each in (0, 1)]
    options = SearchOptions(vectors=PRODUCTS, threads=threads)
    return max(
        plans.least_bytes(each, VectorTiling(each), options, roots=1, processes=1, states_on_disk=False)
        for each in spaces
    )


class _Plain:
    """A number of orbitals that all have one irrep."""

    groups, unrestricted = 1, False

    def __init__(self, orbitals: int) -> None:
        self.irreps = np.zeros(orbitals, np.int64)


class Perturbers:
    """Perturbers of one state, with an outer orbital that is occupied (core) or empty (virtual). The constructor
    and all methods are collective.

    place: the state, over the sorted orbitals of the integrals h[p, q] and g[p, q, r, s] (Hartree). energy: <H> of
    the state. memory_bytes: as for `solver.plan`. Raises OutcoreError (ENOMEM), which says how much is enough."""

    def __init__(
        self,
        place: Place,
        h: Matrix,
        g: Matrix,
        energy: float,
        *,
        occupied: bool,
        memory_bytes: int | None,
        threads: int,
    ) -> None:
        self._world, self._threads, self._energy = place.vectors.world, threads, energy
        source, self._orbital = place.vectors.tiling.space, len(h)
        one, two = self._enlarged(h, g)
        self._active = hamiltonian.make(one, two)
        electrons = [each + (1 if occupied else 0) for each in source.electrons]
        self._space = Space(self._active, electrons[0], electrons[1], 0, source.parity)
        options = SearchOptions(vectors=PRODUCTS, threads=threads)
        self._plan = solver.plan(self._world, self._space, options, memory_bytes=memory_bytes)
        self._moved = SigmaTraffic()
        self._vectors = vector.make(
            self._world, self._plan.tiling, self._plan.kind, count=3, cache_bytes=self._plan.cache_bytes
        )
        x, occupation = self._orbital, occupied
        alpha = StringMap.enlarged(source.alpha, self._space.alpha, x, occupied=occupation)
        beta = StringMap.enlarged(source.beta, self._space.beta, x, occupied=occupation)
        mapped.write(place, Place(self._vectors, 0), [(alpha, beta)])
        self._back = [(alpha.reversed(len(source.alpha.strings)), beta.reversed(len(source.beta.strings)))]

    def _enlarged(self, h: Matrix, g: Matrix) -> tuple[Matrix, Matrix]:
        """Integrals over the active orbitals and a last orbital, for which all are zero."""
        n = len(h)
        one, two = np.zeros((n + 1,) * 2), np.zeros((n + 1,) * 4)
        one[:n, :n], two[:n, :n, :n, :n] = h, g
        return one, two

    def moments(self, h: Matrix, g: Matrix, others: Sequence[Place] = ()) -> Matrix:
        """<V V> and <V (H - E) V> for integrals h[a] = h_xa in the field of the core and g[a, b, c] = (xa|bc), and
        <V V> between the state and each of `others`, which are vectors of its space. The latter need one further
        product, V times the perturber, for all together. Collective."""
        n = self._orbital
        one, two = np.zeros((n + 1,) * 2), np.zeros((n + 1,) * 4)
        one[n, :n] = one[:n, n] = h
        two[n, :n, :n, :n] = g
        two[:n, n, :n, :n] = g
        two[:n, :n, n, :n] = two[:n, :n, :n, n] = g.transpose(1, 2, 0)
        state, perturber, product = (Place(self._vectors, each) for each in range(3))
        operator = hamiltonian.make(one, two)
        self._multiply(operator, state, perturber)
        self._multiply(self._active, perturber, product)
        found = dots(self._world, [perturber], [perturber, product], self._threads)[0]
        moments = [found[0], found[1] - self._energy * found[0]]
        if others:
            self._multiply(operator, perturber, product)
            moments.extend(mapped.dots(product, self._back, others))
        return np.array(moments)

    def _multiply(self, found: Hamiltonian, x: Place, y: Place) -> None:
        """Sets y to H x."""
        y.vectors.clear(y.index)
        with self._world.together("CI kernel"):
            kernel = solver.make_kernel(self._space, found)
        plan = self._plan
        sigma = Sigma(
            self._world,
            kernel,
            plan.tiling,
            plan.tasks,
            plan.bands,
            plan.deal,
            threads=self._threads,
            overlaps=plan.overlaps,
        )
        sigma.apply(x, y)
        self._moved = SigmaTraffic.sum([self._moved, sigma.moved])
        sigma.close()

    def moved(self) -> SigmaTraffic:
        """What all processes have moved in products so far; nothing if vectors are in memory. Collective."""
        if self._plan.kind != "disk":
            return SigmaTraffic()
        return SigmaTraffic.sum(self._world.gather(self._moved))

    def close(self) -> None:
        """Collective."""
        self._vectors.close()
