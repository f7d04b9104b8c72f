"""Moments of states of EOM-CCSD, of transitions to them from the ground state, and Dyson orbitals."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import davidson
from outcore.chem.cc import response
from outcore.chem.cc.equations.excited import between_states
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.excited import describe, passes, start_vectors
from outcore.chem.cc.excited.search import LEAST, Iteration, Search
from outcore.chem.cc.excited.vectors_of_plan import fitted
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.plan import assembly
from outcore.chem.logs import INFO

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.excited.states import States
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array

    Densities = list[np.ndarray[Any, np.dtype[Any]]]

Values = np.ndarray[Any, np.dtype[Any]]

PROPERTIES = "properties of EOM-CCSD"

_PARALLEL = 1e-3
"""The least singular value of overlaps of left and right vectors, relative to the largest: below it left and right
vectors are of different states."""
_APART = 100.0
"""How many tolerances energies of a left and of a right vector may differ by: where the two are nearly orthogonal,
the error of an energy is larger than the residual."""


class StateProperties:
    """Properties of converged states. The constructor is collective. It gives back the arrays of the search, except
    right vectors, and the multipliers: `solve_lambda` solves for them again.

    Left vectors <k| = <0|L_k exp(-T) are found by a search of their own; <k|l> is one for k = l, else zero. R_k|0>
    has the norm one. Amplitudes and orbitals do not respond to the operator, which is exact for two electrons; for
    more the moments are no derivatives of energies. Ions of closed shells lack an electron of alpha, or have one
    more.

    With core-valence separation left vectors have the same excitations as right ones. The ground state is not
    separated: it has all multipliers. Each right vector gets the share of the ground state that makes the two
    orthogonal, so transition moments of neutral molecules do not depend on the origin.

    Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Oana, Krylov, J. Chem. Phys. 127, 234106 (2007); of cores
    Coriani, Koch, J. Chem. Phys. 143, 181103 (2015); Vidal, Feng, Epifanovsky, Krylov, Coriani, J. Chem. Theory
    Comput. 15, 3117 (2019), who have frozen cores in the ground state.

    Attributes: in atomic units, about the origin of the coordinates. Those of transitions from the ground state
    raise OutcoreError (ENOTSUP) where there are none, as to triplets; pole strengths raise it unless states are
        ions. right_moments, left_moments: <0|mu|k> and <k|mu|0>, [state][x], the left state <0| with multipliers.
            Only their product does not depend on norms.
        oscillator_strengths: 2/3 w <0|mu|k> <k|mu|0>, length gauge, [state].
        strengths_from_lowest: of transitions from the lowest of the states to each, [state].
        pole_strengths: sums of <k|p|0> <0|p'|k> over orbitals, of attachment <0|p|k> <k|p'|0>, [state].
        dipoles: <k|mu|k> with the charges of the nuclei, [state][x].
        ground_dipole: of the ground state, with orbitals that do not respond, [x].
        iterations: of the search for left vectors.
        plan, density_plan: of that search, and of the densities after it.

    Raises OutcoreError, the same on all processes: ENOTSUP (other states), EINVAL (roots that have not converged,
    or whose arrays were given back, or one of a degenerate pair), ENOMEM, ENOSPC; NotConverged.
    """

    def __init__(
        self,
        of: CCSD,
        states: States,
        on_iteration: Callable[[Iteration], None] | None = None,
    ) -> None:
        with of.world.together(PROPERTIES):
            check(of)
            _check_found(of, states)
        self._of, self.states = of, states
        _normalise(states)
        left = self._find_left(on_iteration)
        self._take_densities(left)

    def _find_left(self, on_iteration: Callable[[Iteration], None] | None) -> list[StateVector]:
        of, states = self._of, self.states
        count, kind = states.settings.nroots, states.kind_name
        inherited = Inherited(of, beside=self._named(describe.RIGHT, states.vectors))
        of.forget_multipliers()
        self.plan, vectors = fitted(inherited.plan, partial(describe.left, kind=kind, roots=count))
        room = inherited.room(self.plan)
        right = self._taken(room, describe.RIGHT, states.vectors)
        equations = assembly.left_states(
            kind,
            room,
            [spin.fock for spin in of.spins],
            of.singles,
            right,
            is_stored=inherited.is_stored,
            builds=inherited.builds,
        )
        of.replace_room(room, equations.of.of)
        equations.core = states.equations.core
        states.vectors = right
        limits = davidson.Limits(
            tolerance=states.settings.residual, max_iterations=states.settings.max_cycle, vectors=vectors
        )
        follows = None if states.settings.guess is None else _unit(right)
        search = Search(
            equations, limits, count, partial(self._tell, on_iteration), self._kept(inherited), follows
        )
        left = search.run(lambda: equations.guess(count))
        self.iterations = search.iterations
        if search.unconverged():
            raise NotConverged(
                None, "converge left vectors", detail=f"{search.why()}; raise the number of iterations"
            )
        self._pair(left, search.energies, [equations.share(part) for part in range(len(equations.names))])
        return left

    def _named(self, side: str, vectors: Sequence[StateVector]) -> dict[str, Array]:
        """Arrays of doubles of vectors, by their names in the next plan."""
        kind = self.states.kind_name
        return {
            name: array
            for number, each in enumerate(vectors)
            for name, array in zip(describe.beside(kind, side, number), each.doubles, strict=True)
        }

    def _taken(self, room: Room, side: str, vectors: Sequence[StateVector]) -> list[StateVector]:
        """The same vectors in the next room."""
        kind = self.states.kind_name
        return [
            StateVector(each.singles, tuple(room.array(name) for name in describe.beside(kind, side, number)))
            for number, each in enumerate(vectors)
        ]

    def _kept(self, inherited: Inherited) -> Any:
        of, states = self._of, self.states
        names = describe.beside(states.kind_name, describe.RIGHT, 0)
        of_vector = sum(self.plan.entry(each).bytes for each in names)
        kept_bytes = 2 * LEAST * len(states.vectors) * of_vector
        inherited.check_disks(self.plan, lambda kept: kept.room_for_states(kept_bytes, "l"))
        if of.kept is None:
            return None
        mark: dict[str, Any] = {
            "amplitudes": of.state.stamp,
            "kind": states.kind.title,
            "roots": len(states.vectors),
            "core": states.settings.core,
        }
        if states.follows is not None:
            mark["guess"] = start_vectors.mark(states.follows)
        return of.kept.states(mark, states.vectors[0].singles.shape, side="l")

    def _tell(self, on_iteration: Callable[[Iteration], None] | None, found: Iteration) -> None:
        self._of.log(
            INFO, "left EOM cycle = %d  largest residual = %.6g", found.number, float(found.residuals.max())
        )
        if on_iteration is not None:
            on_iteration(found)

    def _pair(self, left: Sequence[StateVector], energies: Values, shares: Sequence[float]) -> None:
        """Combines left vectors so that <k|l> is one or zero. shares: factors of parts of doubles."""
        states, room = self.states, self._room
        limit = room.plan.work_bytes // 2
        overlaps = passes.overlaps(room, left, states.vectors, limit, shares)
        sizes = np.linalg.svd(overlaps, compute_uv=False)
        apart = float(np.abs(np.asarray(energies) - states.energies).max())
        with room.world.together(PROPERTIES):
            if sizes[-1] < _PARALLEL * sizes[0] or apart > _APART * states.settings.residual:
                raise OutcoreError(
                    errno.EINVAL,
                    PROPERTIES,
                    detail="left and right vectors are of other states, as where the last root is one of a "
                    "degenerate pair; ask for one state more or less",
                )
        passes.combine(room, left, np.linalg.inv(overlaps), limit)

    @property
    def _room(self) -> Any:
        return self._of.room

    def _take_densities(self, left: Sequence[StateVector]) -> None:
        of, states = self._of, self.states
        count, kind = states.settings.nroots, states.kind_name
        beside = self._named(describe.RIGHT, states.vectors) | self._named(describe.LEFT, left)
        inherited = Inherited(of, beside=beside)
        self.density_plan = inherited.plan(partial(describe.densities, kind=kind, roots=count))
        inherited.check_disks(self.density_plan)
        room = inherited.room(self.density_plan)
        right = states.vectors = self._taken(room, describe.RIGHT, states.vectors)
        left = self._taken(room, describe.LEFT, left)
        products = assembly.multipliers(
            room,
            [spin.fock for spin in of.spins],
            of.singles,
            is_stored=inherited.is_stored,
            builds=inherited.builds,
        )
        of.replace_room(room, products.of)
        found = between_states.of_states(kind, products, response.solved(of, products).singles)
        r0 = np.zeros(count)
        if found.ground is not None:
            r0 = -passes.overlaps(room, [found.ground], right, room.plan.work_bytes // 2, found.shares)[0]
        self._ground = found.ground_density()
        self._roots = [
            found.of_root(one, other, float(share)) for one, other, share in zip(left, right, r0, strict=True)
        ]
        lowest = int(np.argmin(states.energies))
        up: list[Densities] = []
        down: list[Densities] = []
        for one, other, share in zip(left, right, r0, strict=True):
            up.append(found.between(one, right[lowest], float(r0[lowest])))
            down.append(found.between(left[lowest], other, float(share)))
        self._up, self._down, self._lowest = up, down, lowest
        room.release(*(array for each in left for array in each.doubles))
        of.forget_multipliers()  # this room has no arrays for densities of two particles

    # ---- results ----

    @cached_property
    def _operators(self) -> list[Values]:
        """-r between the correlated orbitals of each spin, [x][p][q]."""
        mol = self._of.mol
        with mol.with_common_origin((0.0, 0.0, 0.0)):
            r = mol.intor("int1e_r")
        return [-np.einsum("xmn,mp,nq->xpq", r, c, c, optimize=True) for c in self.orbitals_of_spins]

    def _moments(self, densities: Sequence[Densities]) -> Values:
        return np.array(
            [
                sum(np.einsum("xpq,pq->x", r, one) for r, one in zip(self._operators, each, strict=True))
                for each in densities
            ]
        )

    @property
    def _has_transitions(self) -> bool:
        return self.states.kind.from_ground

    def _check_transitions(self) -> None:
        if not self._has_transitions:
            raise _refused(f"{self.states.kind.title} has no transitions from the ground state by light")

    @cached_property
    def right_moments(self) -> Values:
        self._check_transitions()
        return self._moments([each.from_right for each in self._roots])

    @cached_property
    def left_moments(self) -> Values:
        self._check_transitions()
        return self._moments([each.from_left for each in self._roots])

    @property
    def oscillator_strengths(self) -> Values:
        products = np.einsum("kx,kx->k", self.right_moments, self.left_moments)
        found: Values = 2.0 / 3.0 * self.states.energies * products
        return found

    @property
    def strengths_from_lowest(self) -> Values:
        """Zero for the lowest state itself."""
        products = np.einsum("kx,kx->k", self._moments(self._down), self._moments(self._up))
        energies = self.states.energies - self.states.energies[self._lowest]
        found: Values = 2.0 / 3.0 * energies * products
        return found

    @property
    def pole_strengths(self) -> Values:
        return np.array(
            [
                sum(float(one @ other) for one, other in zip(*self.dyson_orbitals(root), strict=True))
                for root in range(len(self._roots))
            ]
        )

    def dyson_orbitals(self, root: int) -> tuple[list[Values], list[Values]]:
        """Dyson orbitals of an ion, from the left and from the right, over the correlated orbitals of each spin,
        [p]; for closed shells of alpha alone. Their scalar product is the pole strength; each has the norm of its
        vector."""
        if not self.states.kind.is_ion:
            raise _refused(f"{self.states.kind.title} has no Dyson orbitals; 'ip' and 'ea' have")
        found = self._roots[root]
        return found.from_left, found.from_right

    @cached_property
    def _of_reference(self) -> Values:
        """The dipole moment of the determinant of the reference, with the nuclei."""
        mol, given = self._of.mol, self._of.reference.spins
        with mol.with_common_origin((0.0, 0.0, 0.0)):
            r = mol.intor("int1e_r")
        found: Values = mol.atom_charges() @ mol.atom_coords()
        for each in given:
            occupied = each.coefficients[:, : each.occupied]
            found = found - self._weight * np.einsum("xmn,mi,ni->x", r, occupied, occupied, optimize=True)
        return found

    @property
    def _weight(self) -> float:
        """Electrons in an occupied orbital of a spin of the reference."""
        return 3.0 - len(self._of.spins)

    @cached_property
    def dipoles(self) -> Values:
        return self._of_reference + self._moments([each.state for each in self._roots])

    @cached_property
    def ground_dipole(self) -> Values:
        found: Values = self._of_reference + self._moments([self._ground])[0]
        return found

    @property
    def mol(self) -> Any:
        return self._of.mol

    @property
    def orbitals(self) -> Any:
        """Coefficients of the correlated orbitals, [function][p]; of open shells a pair, for alpha and beta."""
        found = self.orbitals_of_spins
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def orbitals_of_spins(self) -> list[Values]:
        """The same orbitals as `orbitals`, but always as a list."""
        return [each.coefficients for each in self._of.spins]

    def transition_density(self, root: int) -> Any:
        """The mean of <k|E_pq|0> and of the transpose of <0|E_pq|k>, [p][q] over the correlated orbitals, occupied
        ones first (`orbitals`). The first index belongs to the excited state. Open shells have a pair, for alpha
        and beta."""
        found = self.transition_densities(root)
        return found[0] if len(found) == 1 else tuple(found)

    def transition_densities(self, root: int) -> list[Values]:
        """The same densities as `transition_density`, but always as a list."""
        self._check_transitions()
        each = self._roots[root]
        pairs = zip(each.from_left, each.from_right, strict=True)
        return [0.5 * (one + other.T) for one, other in pairs]

    def state_density(self, root: int) -> Any:
        """<k|E_pq|k> over basis functions, [m][n], symmetric, with frozen orbitals: the sum of both spins, for open
        shells a pair, for alpha and beta."""
        found = []
        every = zip(self._of.reference.spins, self.orbitals_of_spins, self._roots[root].state, strict=True)
        for given, c, gamma in every:
            occupied = given.coefficients[:, : given.occupied]
            found.append(self._weight * occupied @ occupied.T + c @ (0.5 * (gamma + gamma.T)) @ c.T)
        return found[0] if len(found) == 1 else tuple(found)

    def state_densities(self, root: int) -> tuple[Values, ...]:
        """`state_density` of alpha and of beta; of ions and triplets of closed shells, whose spin density is not
        made, of both together."""
        found = self.state_density(root)
        if isinstance(found, tuple):
            return found
        return (0.5 * found, 0.5 * found) if self.states.kind_name == "ee" else (found,)


def check(of: CCSD) -> None:
    """Raises OutcoreError (ENOTSUP) if this object has no properties of states."""
    if of.has_triples:
        raise _refused("they are of CCSD, but densities are of CCSD(T) after ccsd_t(); make a new object")
    if of.settings.fno:
        raise _refused("orbitals of fno have no densities")


def _check_found(of: CCSD, states: States) -> None:
    if not states.converged.all():
        root = int(np.flatnonzero(~states.converged)[0]) + 1
        raise OutcoreError(errno.EINVAL, PROPERTIES, detail=f"root {root} has not converged")
    if of.room is None or not all(of.room.has(each.doubles[0]) for each in states.vectors):
        raise OutcoreError(
            errno.EINVAL,
            PROPERTIES,
            detail="vectors were given back for another calculation; search for states again",
        )


def _unit(vectors: Sequence[StateVector]) -> list[Values]:
    """Singles of vectors, scaled to unit norm."""
    return [each.singles / np.linalg.norm(each.singles) for each in vectors]


def _normalise(states: States) -> None:
    """Scales right vectors, so that states have the norm one."""
    room, equations = states.equations.room, states.equations
    norms = [sum(passes.squares(room, equations, each)) ** 0.5 for each in states.vectors]
    passes.combine(room, states.vectors, np.diag(1.0 / np.array(norms)), room.plan.work_bytes // 2)


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, PROPERTIES, detail=detail)
