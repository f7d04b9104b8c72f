"""Three-particle densities of a state, in slabs D[p, q, :, :, :, :], which exist one at a time.

D[p, q, r, s, t, u] = <p+ r+ t+ u s q>, of both spins together, follows from the two-particle density between the
state and E_pq times the state. The latter usually has another irrep, so both are copied into a space without
symmetry, on disk if memory is short.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.ci import densities, hamiltonian, mapped, solver, vector
from outcore.chem.ci.mapped import StringMap
from outcore.chem.ci.passes import Place
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.job.processes import free_memory_of_each

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix
    from outcore.chem.ci.plan import Plan
    from outcore.chem.ci.vector import Vectors

_COPIES = 2  # copies of a whole density: over sorted orbitals and over those of the caller
PRODUCTS = 2  # pairs of a vector and H times it for which a plan has room


@dataclass(frozen=True, eq=False)
class _Held:
    """See `densities.StateVectors`."""

    states: Vectors
    space: Space
    hamiltonian: Hamiltonian
    plan: Plan


def without_symmetry(found: Hamiltonian) -> Hamiltonian:
    """The Hamiltonian of the same orbitals in the same order, all in one irrep."""
    return hamiltonian.make(found.one, found.two, core_energy=found.core_energy)


def slabs(
    place: Place, found: Hamiltonian, *, memory_bytes: int | None, threads: int, begin: int = 0
) -> Iterator[tuple[int, int, Matrix]]:
    """Yields p, q and D[p, q, :, :, :, :] for p >= q over the sorted orbitals of `found`, from pair number `begin`
    on; D[q, p, r, s, t, u] is D[p, q, s, r, u, t]. Collective, and so is each step; all processes get all slabs.
    memory_bytes: as for `solver.plan`.

    Raises OutcoreError (ENOMEM): less memory than tiles and panels of the vectors need; the error says how much is
    enough."""
    numbers = [(p, q) for p in range(found.orbitals) for q in range(p + 1)][begin:]
    if not numbers:
        return
    source, plain = place.vectors.tiling.space, without_symmetry(found)
    space, world = Space(plain, *source.electrons, 0, source.parity), place.vectors.world
    options = SearchOptions(vectors=PRODUCTS, threads=threads)
    plan = solver.plan(world, space, options, memory_bytes=memory_bytes)
    states = vector.make(world, plan.tiling, plan.kind, count=2, cache_bytes=plan.cache_bytes)
    held = _Held(states, space, plain, plan)
    bra, ket = Place(states, 0), Place(states, 1)
    try:
        unchanged = _same(space, space)
        mapped.write(place, bra, [_same(source, space)])
        two = densities.compute(held, 0, 0, threads=threads).two
        for p, q in numbers:
            alpha = StringMap.replaced(space.alpha, space.alpha, p, q)
            beta = StringMap.replaced(space.beta, space.beta, p, q)
            mapped.write(bra, ket, [(alpha, unchanged[1]), (unchanged[0], beta)])
            slab = densities.compute(held, 0, 1, threads=threads).two
            slab[:, p] -= two[:, q]
            slab[:, :, :, p] -= two[:, :, :, q]
            yield p, q, slab
    finally:
        states.close()


def _same(source: Space, target: Space) -> mapped.Product:
    return StringMap.same(source.alpha, target.alpha), StringMap.same(source.beta, target.beta)


def whole(place: Place, found: Hamiltonian, *, memory_bytes: int | None, threads: int) -> Matrix:
    """All of D, n^6 elements, at every process. Collective. Raises OutcoreError (ENOMEM), which says how much is
    enough."""
    n, world = found.orbitals, place.vectors.world
    free, needed = free_memory_of_each(world, memory_bytes, threads), _COPIES * 8 * n**6
    with world.together("three-particle density", n):
        if needed > free.bytes:
            raise OutcoreError(
                errno.ENOMEM,
                "three-particle density",
                detail=f"that of {n} orbitals needs {in_words(needed)} more in each process, but "
                f"{free.reason} leaves {in_words(free.bytes)} to each; `slabs` has it in parts",
            )
    every = np.zeros((n,) * 6)
    for p, q, slab in slabs(place, found, memory_bytes=memory_bytes, threads=threads):
        every[p, q] = slab
        every[q, p] = slab.transpose(1, 0, 3, 2)
    return every
