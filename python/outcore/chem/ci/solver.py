"""The lowest states of a Hamiltonian in a space of determinants, within a budget of memory."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.ci import bounds, guess, speeds, spins, vector
from outcore.chem.ci.bounds import Bound
from outcore.chem.ci.kept_products import Commits, KeptProducts
from outcore.chem.ci.packed_search import PackedSearch
from outcore.chem.ci.passes import Place, copy
from outcore.chem.ci.plan import Plan, make_plan
from outcore.chem.ci.restart import FoundStates, KeptStates, allocated_bytes
from outcore.chem.ci.search import FoundVectors, Iteration, MakeVectors, Search, SearchOptions
from outcore.chem.ci.sigma import Sigma, SigmaTraffic
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.small_space import Matrix
from outcore.job.processes import free_memory
from outcore.job.scratch import bytes_here, check_room

if TYPE_CHECKING:
    from outcore.chem.ci.guess import Guess
    from outcore.chem.ci.hamiltonian import Hamiltonian
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.vector import Vectors
    from outcore.job.world import World

__all__ = ["Iteration", "SearchOptions", "Solved", "make_kernel", "plan", "solve"]

_SMALL_ARRAYS_BYTES = 4 << 20  # counters and the like


@dataclass
class Solved:
    """The result of `solve`.

    energies: of each root, with the core energy and without the spin shift (Hartree). residuals: norms. bounds: of
    the errors of energies. why: the reason if roots have not converged. states: the roots in double precision,
    then H times each. kept_iteration: number of the iteration of another run that this one began with, 0 if none.
    moved: traffic of all processes. products: number of products H x. commits: within iterations.
    """

    space: Space
    tiling: VectorTiling
    hamiltonian: Hamiltonian
    energies: Matrix
    residuals: Matrix
    bounds: list[Bound]
    converged: bool
    why: str
    iterations: list[Iteration]
    states: Vectors
    plan: Plan
    moved: SigmaTraffic
    products: int
    kept_iteration: int
    commits: Commits

    @property
    def roots(self) -> list[Place]:
        return [Place(self.states, root) for root in range(min(len(self.energies), self.states.count))]

    def close(self) -> None:
        """Closes the states. Collective."""
        self.states.close()


def make_kernel(space: Space, hamiltonian: Hamiltonian, spin_shift: float = 0.0) -> Any:
    """The native kernel for products and densities."""
    return _core.CIKernel(
        space.irreps,
        space.groups,
        *space.electrons,
        space.irrep,
        space.parity,
        hamiltonian.one,
        hamiltonian.two,
        spin_shift,
    )


def plan(
    world: World,
    space: Space,
    options: SearchOptions,
    *,
    roots: int = 1,
    memory_bytes: int | None = None,
    kept: bool = False,
    ordered: bool = False,
) -> Plan:
    """For a budget of all processes together (None: half of the free memory). `ordered`: the same tasks at any
    measured speed of the machine. Collective. Raises OutcoreError (ENOMEM)."""
    free = min(world.gather(free_memory(world, memory_bytes, options.threads)))
    nodes: tuple[int, ...] = ()
    array_bytes, rates = math.inf, None
    if world.node_count > 1 and not ordered:
        nodes = tuple(world.gather(world.node))
        left = min(world.gather(world.budget.limit_bytes - world.budget.used_bytes))
        array_bytes = left - _SMALL_ARRAYS_BYTES
        dtype = "float32" if options.precision == "mixed" else "float64"
        rates = speeds.measured(world, options.threads, dtype, disks=False)
    with world.together("full CI", repr(space), repr(options)):
        return make_plan(
            space,
            VectorTiling(space),
            options,
            free.bytes,
            roots=roots,
            processes=world.size,
            states_on_disk=kept,
            limit=free.reason,
            nodes=nodes,
            array_bytes=array_bytes,
            rates=rates,
        )


def _check_disks(world: World, chosen: Plan, checkpoint: Path | None) -> None:
    needs = []
    with world.together("look at disks", str(checkpoint)):
        if chosen.scratch_bytes:
            needs.append((Path(world.scratch), bytes_here(world, world.scratch, chosen.scratch_bytes)))
        if checkpoint is not None:
            here = bytes_here(world, checkpoint, chosen.kept_bytes)
            needs.append((checkpoint, max(here - allocated_bytes(checkpoint), 0)))
    check_room(world, "full CI", needs)


def solve(
    world: World,
    space: Space,
    hamiltonian: Hamiltonian,
    *,
    roots: int = 1,
    spin: int | None = None,
    options: SearchOptions | None = None,
    memory_bytes: int | None = None,
    guess_size: int = guess.SIZE,
    guess_selection: str = guess.SELECTIONS[0],
    spin_shift: float = 0.0,
    checkpoint: Path | None = None,
    any_integrals: bool = False,
    ordered: bool = False,
    start: Sequence[Place] | None = None,
    on_iteration: Callable[[Iteration, Vectors], None] | None = None,
    chosen: Plan | None = None,
) -> Solved:
    """The lowest `roots` states. Collective.

    Args:
        spin: 2S of the states that the search begins with, None: any.
        memory_bytes: budget of all processes, including the memory that they hold already; None: half of the free
            memory.
        guess_size: determinants of the small space whose states are the start.
        guess_selection: how these are chosen, see Settings.
        spin_shift: Hartree; the search adds it times S^2 - M(M+1); energies are without it.
        checkpoint: directory where states are kept in each iteration, and found again.
        any_integrals: states that are found there may belong to other integrals: the search begins with them.
        ordered: sums are always made in one order: runs with the same tasks repeat bit by bit.
        start: vectors of this space to begin with, in place of those of the small space; as many as roots.
        chosen: a plan, in place of the one for the budget.

    Raises OutcoreError, the same at all processes: ENOMEM (says how much is enough), EINVAL (kept states of another
    problem, fewer states than roots, start vectors of another space), EIO (damaged), ENOSPC; NotConverged for roots
    that converged to another spin.
    """
    options = options or SearchOptions()
    if chosen is None:
        kept_too = checkpoint is not None
        chosen = plan(
            world, space, options, roots=roots, memory_bytes=memory_bytes, kept=kept_too, ordered=ordered
        )
    if start is not None:
        _check_start(start, chosen.tiling, roots)
    _check_disks(world, chosen, checkpoint)
    with world.together("CI kernel"):
        kernel = make_kernel(space, hamiltonian, spin_shift)
    kept: KeptProducts | None = None
    if checkpoint is not None:
        states = KeptStates(
            world,
            checkpoint,
            chosen.tiling,
            hamiltonian,
            roots,
            spin,
            spin_shift,
            chosen,
            any_integrals=any_integrals,
        )
        kept = KeptProducts(states, options.threads)
    sigma = Sigma(
        world,
        kernel,
        chosen.tiling,
        chosen.tasks,
        chosen.bands,
        chosen.deal,
        threads=options.threads,
        overlaps=chosen.overlaps,
        ordered=ordered,
        kept=kept,
    )
    make = partial(_make, world, chosen)
    make_states: MakeVectors = partial(_make, world, chosen, packed=chosen.packed)
    if kept is not None:
        make_states = kept.states.make
    before = None if kept is None else kept.states.find()
    if before is None:
        made = make_states("float32" if options.precision == "mixed" else "float64", chosen.states)
        if start is None:
            with world.together("start of a CI", roots, spin, guess_size, guess_selection):
                found = guess.start(
                    hamiltonian,
                    space.alpha,
                    space.beta,
                    space.irrep,
                    roots=roots,
                    spin=spin,
                    size=guess_size,
                    selection=guess_selection,
                )
                _fill(made, found, space)
        made.sync()
        if start is not None:
            copy(world, start, [Place(made, i) for i in range(roots)], options.threads)
        if kept is not None:
            kept.states.begin(made)
    else:
        made = before.states
        for root in range(0 if before.multiplied or chosen.packed else roots):
            made.clear(roots + root)

    raised = spin_shift * _raised(space, spin)

    def told(iteration: Iteration, current: Vectors) -> None:
        if kept is not None:
            kept.keep(iteration, current)
        if on_iteration is not None:
            on_iteration(iteration.lowered(raised), current)

    result = _search(chosen, sigma, made, make, make_states, told, before)
    sigma.close()
    if kept is not None:
        kept.remove()
    if spin is not None and result.converged and not hamiltonian.unrestricted:
        spins.check(result.states, roots, spin)
    iterations = [each.lowered(raised) for each in result.iterations]
    last = iterations[-1]
    return Solved(
        space,
        chosen.tiling,
        hamiltonian,
        last.energies + hamiltonian.core_energy,
        last.residuals,
        bounds.of(iterations, hamiltonian.core_energy),
        result.converged,
        result.why,
        iterations,
        result.states,
        chosen,
        SigmaTraffic.sum(world.gather(sigma.moved)),
        sigma.products,
        0 if before is None else before.iteration,
        Commits() if kept is None else kept.commits,
    )


def _search(
    chosen: Plan,
    sigma: Sigma,
    states: Vectors,
    make: MakeVectors,
    make_states: MakeVectors,
    told: Callable[[Iteration, Vectors], None],
    before: FoundStates | None,
) -> FoundVectors:
    """Searches from start vectors, or from states that another run has kept."""
    world, options = sigma.world, chosen.options
    as_kept = before is not None and before.multiplied
    if not chosen.packed:
        search = Search(world, chosen.tiling, sigma, options, states, make, make_states, told)
        return search.run(before.ritz if before is not None and as_kept else None)
    packed = PackedSearch(world, chosen.tiling, sigma, options, states, chosen.roots, make, told)
    return packed.run(None if before is None else before.small_space, anew=not as_kept)


def _check_start(start: Sequence[Place], tiling: VectorTiling, roots: int) -> None:
    """Raises OutcoreError (EINVAL) if a search of this space cannot begin with these vectors."""
    detail = "" if len(start) == roots else f"there are {len(start)} for {roots} roots"
    for each in start:
        theirs, mine = each.vectors.tiling, tiling
        names = ("irreps", "groups", "electrons", "irrep", "parity")
        same = all(getattr(theirs.space, name) == getattr(mine.space, name) for name in names)
        if not same or theirs.side != mine.side:
            detail = f"they are of {theirs.space}, not of {mine.space}"
    if detail:
        raise OutcoreError(errno.EINVAL, "begin a CI with given vectors", detail=detail)


def _make(world: World, chosen: Plan, dtype: str, count: int, *, packed: bool = False) -> Vectors:
    return vector.make(
        world,
        chosen.tiling,
        "disk" if packed else chosen.kind,
        count=count,
        dtype=dtype,
        cache_bytes=chosen.cache_bytes,
        codec="fixed-point" if packed else "none",
    )


def _raised(space: Space, spin: int | None) -> float:
    """S(S+1) - M(M+1) for states with this 2S."""
    m = abs(space.electrons[0] - space.electrons[1]) / 2
    s = m if spin is None else spin / 2
    return s * (s + 1) - m * (m + 1)


def _fill(vectors: Vectors, found: Guess, space: Space) -> None:
    """Writes states of the small space to the first vectors: the own tiles of this process."""
    tiling = vectors.tiling
    rows, columns = space.alpha.rank(found.alpha), space.beta.rank(found.beta)
    numbers = tiling.numbers(rows, columns)
    for number in sorted(set(numbers.tolist()) & set(vectors.own_tiles())):
        tile = tiling[number]
        here = numbers == number
        for root in range(found.vectors.shape[1]):
            values = np.zeros(tile.shape, vectors.dtype)
            values[rows[here] - tile.first[0], columns[here] - tile.first[1]] = found.vectors[here, root]
            vectors.put(root, tile, values)
