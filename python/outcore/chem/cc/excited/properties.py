"""Moments of excited singlets of closed-shell EOM-CCSD and of transitions to them from the ground state."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import davidson
from outcore.chem.cc import response
from outcore.chem.cc.equations.excited.left_singlets import RIGHT, LeftSinglets
from outcore.chem.cc.equations.excited.one_particle import StateDensities
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.multipliers import MultiplierEquations
from outcore.chem.cc.excited import describe, passes
from outcore.chem.cc.excited.search import LEAST, Search
from outcore.chem.cc.excited.vectors_of_plan import fitted
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.plan import assembly
from outcore.chem.logs import INFO

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.excited.states import States

Values = np.ndarray[Any, np.dtype[Any]]

PROPERTIES = "properties of EOM-CCSD"

_PARALLEL = 1e-3
"""Singular values of overlaps of left and right vectors, of the largest one: below it they are of other states."""
_APART = 100.0
"""Tolerances by which energies of a left and of a right vector may differ: each is wrong by more than its residual
where vectors from both sides are nearly orthogonal."""


class StateProperties:
    """Of converged singlets of a closed-shell reference. Collective to make: arrays of the search for right vectors
    are given back, but for these. Multipliers are given back as well: `solve_lambda` solves for them again.

    Left vectors <k| = <0|L_k exp(-T) are found by a search of their own; <k|l> is one for k = l, else zero. R_k|0>
    has the norm one. Amplitudes and orbitals do not respond to the operator, which is exact for two electrons; for
    more the moments are no derivatives of energies.

    Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993).

    Attributes: of [state], in atomic units, about the origin of the coordinates.
        right_moments, left_moments: <0|mu|k> and <k|mu|0>, [state][x], the left state <0| with multipliers. Only
            their product depends on no norm.
        oscillator_strengths: 2/3 w <0|mu|k> <k|mu|0>, length gauge, [state].
        dipoles: <k|mu|k> with the charges of the nuclei, [state][x].
        ground_dipole: of the ground state, of orbitals that do not respond, [x].
        iterations: of the search for left vectors.

    Raises OutcoreError, the same on all processes: ENOTSUP (other states), EINVAL (roots that have not converged,
    or whose arrays were given back, or one of a degenerate pair), ENOMEM, ENOSPC; NotConverged.
    """

    def __init__(
        self,
        of: CCSD,
        states: States,
        on_iteration: Callable[[davidson.Iteration], None] | None = None,
    ) -> None:
        with of.world.together(PROPERTIES):
            check(of, states.kind_name, states.settings.core)
            _check_found(of, states)
        self._of, self.states = of, states
        count, tolerance = states.settings.nroots, states.settings.tolerance
        _normalise(states)
        inherited = Inherited(of, beside={f"{RIGHT}{n}": v.doubles[0] for n, v in enumerate(states.vectors)})
        of.forget_multipliers()
        self.plan, vectors = fitted(inherited.plan, partial(describe.properties, roots=count))
        room = inherited.room(self.plan)
        right = [
            StateVector(each.singles, (room.array(f"{RIGHT}{n}"),)) for n, each in enumerate(states.vectors)
        ]
        products = assembly.multipliers(
            room,
            [spin.fock for spin in of.spins],
            of.singles,
            is_stored=inherited.is_stored,
            builds=inherited.builds,
        )
        assert isinstance(products, MultiplierEquations)
        of.replace_room(room, products.of)
        states.vectors = right
        limits = davidson.Limits(
            tolerance=tolerance, max_iterations=states.settings.max_cycle, vectors=vectors
        )
        equations = LeftSinglets(products, right)
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
        self._pair(left, search.energies)
        ground = response.solved(of, products).singles[0]
        self._take_densities(
            StateDensities(products), StateVector(ground, (products.multipliers,)), left, right
        )
        room.release(*(array for each in left for array in each.doubles))
        of.forget_multipliers()  # this room has no arrays for densities of two particles

    def _kept(self, inherited: Inherited) -> Any:
        of, states = self._of, self.states
        of_vector = self.plan.entry(f"{RIGHT}0").bytes
        inherited.check_disks(self.plan, 2 * LEAST * len(states.vectors) * of_vector, side="l")
        if of.checkpoint is None:
            return None
        mark: dict[str, Any] = {
            "amplitudes": of.state.stamp,
            "kind": states.kind.title,
            "roots": len(states.vectors),
        }
        if states.settings.guess is not None:
            mark["guess"] = [np.array(each, float).tolist() for each in states.settings.guess]
        return of.checkpoint.states(mark, states.vectors[0].singles.shape, side="l")

    def _tell(
        self, on_iteration: Callable[[davidson.Iteration], None] | None, found: davidson.Iteration
    ) -> None:
        self._of.log(
            INFO, "left EOM cycle = %d  largest residual = %.6g", found.number, float(found.residuals.max())
        )
        if on_iteration is not None:
            on_iteration(found)

    def _pair(self, left: Sequence[StateVector], energies: Values) -> None:
        """Left vectors become those of which <k|l> is one or zero."""
        states, room = self.states, self._room
        limit = room.plan.work_bytes // 2
        overlaps = passes.overlaps(room, left, states.vectors, limit)
        sizes = np.linalg.svd(overlaps, compute_uv=False)
        apart = float(np.abs(np.asarray(energies) - states.energies).max())
        with room.world.together(PROPERTIES):
            if sizes[-1] < _PARALLEL * sizes[0] or apart > _APART * states.settings.tolerance:
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

    def _take_densities(
        self,
        densities: StateDensities,
        ground: StateVector,
        left: Sequence[StateVector],
        right: Sequence[StateVector],
    ) -> None:
        of_ground = densities.of_left(ground)
        amplitudes = densities.of_amplitudes
        r0 = -passes.overlaps(self._room, [ground], right)[0]
        self._ground = amplitudes + of_ground
        self._from_right, self._from_left, self._states = list[Values](), list[Values](), list[Values]()
        for one, other, share in zip(left, right, r0, strict=True):
            of_left = densities.of_left(one)
            self._from_left.append(of_left)
            self._from_right.append(
                densities.between(ground, other, float(share), of_ground, with_ground=True)
            )
            made = densities.between(one, other, float(share), of_left, with_ground=False)
            self._states.append(amplitudes + made)

    # ---- results ----

    @cached_property
    def _operators(self) -> Values:
        """-r between the correlated orbitals, [x][p][q]."""
        c = self.orbitals
        mol = self._of.mol
        with mol.with_common_origin((0.0, 0.0, 0.0)):
            found: Values = -np.einsum("xmn,mp,nq->xpq", mol.intor("int1e_r"), c, c, optimize=True)
        return found

    def _moments(self, densities: Sequence[Values]) -> Values:
        return np.array([np.einsum("xpq,pq->x", self._operators, each) for each in densities])

    @cached_property
    def right_moments(self) -> Values:
        return self._moments(self._from_right)

    @cached_property
    def left_moments(self) -> Values:
        return self._moments(self._from_left)

    @property
    def oscillator_strengths(self) -> Values:
        products = np.einsum("kx,kx->k", self.right_moments, self.left_moments)
        found: Values = 2.0 / 3.0 * self.states.energies * products
        return found

    @cached_property
    def _of_reference(self) -> Values:
        """The dipole moment of the determinant of the reference, with the nuclei."""
        mol, given = self._of.mol, self._of.reference.spins[0]
        occupied = given.coefficients[:, : given.occupied]
        with mol.with_common_origin((0.0, 0.0, 0.0)):
            electrons = 2.0 * np.einsum(
                "xmn,mi,ni->x", mol.intor("int1e_r"), occupied, occupied, optimize=True
            )
        found: Values = mol.atom_charges() @ mol.atom_coords() - electrons
        return found

    @cached_property
    def dipoles(self) -> Values:
        return self._of_reference + self._moments(self._states)

    @cached_property
    def ground_dipole(self) -> Values:
        found: Values = self._of_reference + self._moments([self._ground])[0]
        return found

    @property
    def mol(self) -> Any:
        return self._of.mol

    @property
    def orbitals(self) -> Values:
        """Coefficients of the correlated orbitals, [function][p]."""
        found: Values = self._of.spins[0].coefficients
        return found

    def transition_density(self, root: int) -> Values:
        """<k|E_pq|0> and the transpose of <0|E_pq|k>, of both a half, [p][q] over the correlated orbitals, occupied
        ones first (`orbitals`): the first index is of the excited state."""
        found: Values = 0.5 * (self._from_left[root] + self._from_right[root].T)
        return found

    def state_density(self, root: int) -> Values:
        """<k|E_pq|k> of both spins over basis functions, [m][n], symmetric, of frozen orbitals as well."""
        given, c = self._of.reference.spins[0], self.orbitals
        occupied = given.coefficients[:, : given.occupied]
        gamma = self._states[root]
        found: Values = 2.0 * occupied @ occupied.T + c @ (0.5 * (gamma + gamma.T)) @ c.T
        return found


def check(of: CCSD, kind: str, core: Sequence[int]) -> None:
    """Raises OutcoreError (ENOTSUP): properties of these states are not to be had."""
    check_kind(kind, core)
    if of.has_triples:
        raise _refused("they are of CCSD, but densities are of CCSD(T) after ccsd_t(); make a new object")
    if of.settings.fno:
        raise _refused("orbitals of fno have no densities")


def check_kind(kind: str, core: Sequence[int]) -> None:
    """As `check`, by the name of a kind."""
    if kind == "ee3":
        raise _refused("of triplets, to which transitions are zero by spin, they are not there")
    if kind != "ee":
        raise _refused("they are of excited singlets of closed shells alone")
    if core:
        raise _refused("of core-valence separation they are not there")


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
    """Singles of unit norm."""
    return [each.singles / np.linalg.norm(each.singles) for each in vectors]


def _normalise(states: States) -> None:
    """Right vectors get the norm of a state."""
    room, equations = states.equations.room, states.equations
    norms = [sum(passes.squares(room, equations, each)) ** 0.5 for each in states.vectors]
    passes.combine(room, states.vectors, np.diag(1.0 / np.array(norms)), room.plan.work_bytes // 2)


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, PROPERTIES, detail=detail)
