"""States of the equation-of-motion method, of a CCSD object whose amplitudes have converged.

cc.kernel()
energies, states = cc.eomee_ccsd_singlet(nroots=3)
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.chem import davidson
from outcore.chem.cc.equations.excited import guess, kinds
from outcore.chem.cc.excited import characters, passes, start_vectors
from outcore.chem.cc.excited.properties import StateProperties
from outcore.chem.cc.excited.search import LEAST, Iteration, Search
from outcore.chem.cc.excited.settings import METHOD, StateSettings
from outcore.chem.cc.excited.vectors_of_plan import quickest
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.plan import assembly
from outcore.chem.logs import INFO, NOTE

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.keep.kept_states import KeptStates
    from outcore.chem.cc.plan.plan import Plan

Values = np.ndarray[Any, np.dtype[Any]]

_UNCORRELATED = "there is nothing to correlate"


class States:
    """The lowest states of one kind. Constructor and methods are collective. The constructor gives back arrays of
    the iterations of `of`, except amplitudes and integrals; vectors exist until another calculation of `of` begins.

    Attributes:
        kind, kind_name: the kind of the states, and its key in `kinds.KINDS`.
        energies: of excitation, ionisation or attachment (Hartree); not a number for roots that have not converged.
        converged: whether each root has converged.
        why: the reason why roots have not converged; empty if all have.
        iterations: iterations of the search.
        found: number of vectors of the checkpoint, with which the search began.
        singles: share of single excitations (of one orbital, for ions) in the square of the norm of each root.
        overlaps: absolute overlap of each root with the state that it follows, of singles of unit norm; None if
        roots follow no states.

    Raises OutcoreError, the same on all processes: ENOTSUP (methods and references without these equations), EINVAL
    (amplitudes that have not converged, more roots than there are), ENOMEM, ENOSPC.
    """

    def __init__(
        self,
        of: CCSD,
        kind: str,
        settings: StateSettings,
        on_iteration: Callable[[Iteration], None] | None = None,
    ) -> None:
        check(of)
        kind = kinds.named(kind, settings.multiplicity, restricted=of.restricted)
        self.kind_name, self.kind = kind, kinds.of(kind)
        self._of, self.settings = of, settings
        self._properties: StateProperties | None = None
        count = settings.nroots
        with of.world.together(METHOD, kind, repr(settings)):
            check_kind(of, kind, count, settings.core)
        inherited = Inherited(of)
        of.forget_multipliers()

        def check_disks(plan: Plan) -> None:
            inherited.check_disks(plan, lambda kept: kept.room_for_states(self._kept_bytes(plan)))

        way = quickest(inherited.plan, kind, count, check_disks)
        self.plan = way.plan
        check_disks(self.plan)
        room = inherited.room(self.plan)
        self._names = of.orbital_names()
        equations = assembly.states(
            kind,
            room,
            [spin.fock for spin in of.spins],
            of.singles,
            is_stored=inherited.is_stored,
            builds=inherited.builds,
            together=count,
            keeps_rings=way.keeps_rings,
        )
        of.replace_room(room, equations.of.of)
        equations.core = self._core_mask(kind)
        self.equations = equations
        limits = davidson.Limits(
            tolerance=settings.residual, max_iterations=settings.max_cycle, vectors=way.vectors
        )
        with of.world.together(METHOD):
            given = settings.guess
            follows = None if given is None else start_vectors.normed(of.spins, equations, given)
        self.follows = follows
        search = Search(
            equations,
            limits,
            count,
            partial(self._tell, on_iteration),
            self._kept(follows),
            follows,
            alone=follows is None,
        )
        self.vectors = search.run(
            lambda: (
                equations.guess(count + guess.MORE)
                if follows is None
                else [guess.FirstState(each) for each in follows]
            )
        )
        self.iterations, self.found = search.iterations, search.found
        unconverged, self.why = search.unconverged(), search.why()
        self.converged = np.array([root not in unconverged for root in range(count)])
        self.energies: Values = np.where(self.converged, search.energies, np.nan)
        self.singles = np.array([self._share(each) for each in self.vectors])
        self.overlaps = None if follows is None else self._overlaps(follows)
        self._log()

    def _overlaps(self, follows: list[Values]) -> Values:
        found = [each.singles / np.linalg.norm(each.singles) for each in self.vectors]
        return np.array([abs(np.vdot(before, now)) for before, now in zip(follows, found, strict=True)])

    def start_vectors(self) -> list[Any]:
        """Singles of the roots in the form of `StateSettings.guess`: another search can follow them."""
        return [
            start_vectors.of_singles(self._of.spins, self.equations, each.singles) for each in self.vectors
        ]

    def _core_mask(self, kind: str) -> Values | None:
        if self.settings.cvs is None:
            return None
        core = {each + 1 for each in self.settings.core}
        return np.array([each in core for each in self._names.occupied[0]])

    def _kept_bytes(self, plan: Plan) -> int:
        """Bytes of the vectors that a checkpoint gets."""
        of_vector = sum(plan.entry(f"{name}0").bytes for name in self.kind.names)
        return 2 * LEAST * self.settings.nroots * of_vector

    def _kept(self, follows: list[Values] | None) -> KeptStates | None:
        """The checkpoint of vectors of a search that follows these; None without a checkpoint."""
        of, count = self._of, self.settings.nroots
        if of.kept is None:
            return None
        mark: dict[str, Any] = {
            "amplitudes": of.state.stamp,
            "kind": self.kind.title,
            "roots": count,
            "core": self.settings.core,
        }
        if follows is not None:
            mark["guess"] = start_vectors.mark(follows)
        return of.kept.states(mark, self.equations.diagonal().shape)

    def _share(self, vector: StateVector) -> float:
        one, two = passes.squares(self.equations.room, self.equations, vector)
        return one / (one + two)

    def properties(self, on_iteration: Callable[[Iteration], None] | None = None) -> StateProperties:
        """Moments, strengths and densities of the states. They are made once, by a search for left vectors and the
        Lambda equations; `on_iteration` is called with each iteration of the search. Collective; see
        StateProperties."""
        if self._properties is None:
            self._properties = StateProperties(self._of, self, on_iteration)
        return self._properties

    def character(self, root: int) -> str:
        """For people: whether a root consists of single or of double excitations, and its main orbitals."""
        blocks = self.equations.excitations(self.vectors[root].singles)
        return characters.of_root(self.kind.words, self._names, blocks, float(self.singles[root]))

    def _tell(self, on_iteration: Callable[[Iteration], None] | None, found: Iteration) -> None:
        self._of.log(
            INFO, "EOM cycle = %d  largest residual = %.6g", found.number, float(found.residuals.max())
        )
        if on_iteration is not None:
            on_iteration(found)

    def _log(self) -> None:
        for root, (energy, share) in enumerate(zip(self.energies, self.singles, strict=True), 1):
            if np.isfinite(energy):
                self._of.log(NOTE, "EOM-CCSD root %d E = %.15g  singles = %.3g", root, energy, share)
            else:
                self._of.log(NOTE, "EOM-CCSD root %d not converged", root)


def check(of: CCSD) -> None:
    """Raises OutcoreError if this object has no states."""
    if of.settings.method != "ccsd":
        raise _refused(f"states are of CCSD, not of {of.method_facts.title}")
    if of.settings.fno:
        raise _refused("frozen natural orbitals (fno) are chosen for the ground state alone")
    if of.uncorrelated:
        raise _refused(_UNCORRELATED)
    if not of.converged:
        raise OutcoreError(
            errno.EINVAL, METHOD, detail="the amplitudes have not converged; run kernel() first"
        )


def check_kind(of: CCSD, kind: str, roots: int, core: Sequence[int] = ()) -> None:
    """Raises OutcoreError if this object has no such states, or fewer."""
    sizes = [each.sizes if each.coefficients.any() else (0, 0) for each in of.spins]
    check_counts(kind, sizes, [each - 1 for each in of.orbital_names().occupied[0]], roots, core)


def check_counts(
    kind: str, sizes: Sequence[tuple[int, int]], occupied: Sequence[int], roots: int, core: Sequence[int] = ()
) -> None:
    """Raises OutcoreError if there are no such states, or fewer.

    sizes: numbers of correlated orbitals, occupied and virtual, of each spin, or once for closed shells. occupied:
    numbers of the occupied ones of the first spin, from 0. core: see StateSettings."""
    found = kinds.of(kind)
    if not all(inside and outside for inside, outside in sizes):
        raise _refused(
            f"{found.title}: of one spin nothing is correlated" if len(sizes) > 1 else _UNCORRELATED
        )
    alpha, beta = sizes[0], sizes[-1]
    if core:
        if not found.by_core:
            raise _refused(f"{found.title} by core-valence separation is not there")
        lacking = set(core) - set(occupied)
        if lacking:
            raise OutcoreError(
                errno.EINVAL,
                METHOD,
                detail=f"orbital {min(lacking) + 1} of the core is not occupied and correlated; do not freeze it",
            )
        alpha = len(core), alpha[1]
    most = found.most(alpha, beta)
    if roots > most:
        raise OutcoreError(
            errno.EINVAL, METHOD, detail=f"{roots} roots; there are {most} of single excitations"
        )


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, METHOD, detail=detail)


_OF_PYSCF = {
    "left": "left vectors are found by states.properties()",
    "koopmans": "roots are the lowest; guess= has start vectors whose states are followed",
    "partition": "the Hamiltonian is not partitioned",
    "eris": "integrals are those of this object",
    "imds": "intermediates are those of this object",
}
"""Keywords of PySCF's methods of the same names that are refused, and why."""


_FORMER = "tolerance"  # the name of `residual` before, which is one of the Cholesky decomposition elsewhere


class StateResults:
    """The part of a CCSD object with states, by PySCF's names. Unlike PySCF's, these methods return a `States`
    object beside the energies. They refuse PySCF's keywords `left`, `koopmans`, `partition`, `eris` and `imds`."""

    def states(self: CCSD, kind: str, **settings: Any) -> States:  # type: ignore[misc]
        """States of a kind ("ee", "ip", "ea" or "sf"; `multiplicity=3`: triplets of closed shells): see
        `StateSettings` and `States`. Collective. Raises TypeError for a keyword that is no setting."""
        return States(self, kind, _settings_of(settings))

    def eomee_ccsd_singlet(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Excitation energies (Hartree) of the lowest singlets, a number if there is one, and the states.
        Collective."""
        return _given(self.states("ee", nroots=nroots, multiplicity=1, **settings))

    def eomee_ccsd(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Excitation energies (Hartree) of the lowest states of a reference of two spins that keep its spin
        projection, a number if there is one, and the states. Collective."""
        _check_open(self)
        return _given(self.states("ee", nroots=nroots, **settings))

    def eomsf_ccsd(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Energies (Hartree) of the lowest states with a spin of alpha flipped, relative to the high-spin
        reference, a number if there is one, and the states. Collective."""
        return _given(self.states("sf", nroots=nroots, **settings))

    def eomee_ccsd_triplet(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Excitation energies (Hartree) of the lowest triplets, a number if there is one, and the states.
        Collective."""
        return _given(self.states("ee", nroots=nroots, multiplicity=3, **settings))

    def ipccsd(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Energies of the lowest ionisations (Hartree), a number if there is one, and the states. Collective."""
        return _given(self.states("ip", nroots=nroots, **settings))

    def eaccsd(self: CCSD, nroots: int = 1, **settings: Any) -> tuple[Any, States]:  # type: ignore[misc]
        """Energies of the lowest attachments (Hartree, negative where the anion is bound), a number if there is
        one, and the states. Collective."""
        return _given(self.states("ea", nroots=nroots, **settings))


def spin_square(of: CCSD) -> float:
    """<S^2> of a reference of two spins."""
    alpha, beta = (each.coefficients[:, : each.occupied] for each in of.reference.spins)
    overlaps = alpha.T @ of.reference.overlap @ beta
    projection = 0.5 * (alpha.shape[1] - beta.shape[1])
    return float(projection * (projection + 1) + beta.shape[1] - np.vdot(overlaps, overlaps))


def _settings_of(given: dict[str, Any]) -> StateSettings:
    known = [each.name for each in fields(StateSettings)]
    if _FORMER in given:
        warnings.warn(f"{_FORMER}= of states is residual=, as in CI", DeprecationWarning, stacklevel=3)
        if "residual" in given:
            raise TypeError(f"{METHOD} has both residual= and {_FORMER}=, its former name")
        given["residual"] = given.pop(_FORMER)
    for name in given:
        if name in _OF_PYSCF:
            raise TypeError(f"{METHOD} has no argument '{name}', unlike PySCF: {_OF_PYSCF[name]}")
        if name not in known:
            raise TypeError(f"{METHOD} has no argument '{name}': {keywords.hint(name, known)}")
    return StateSettings(**given)


def _check_open(of: CCSD) -> None:
    if of.restricted:
        raise OutcoreError(
            errno.EINVAL, METHOD, detail="closed shells have eomee_ccsd_singlet and eomee_ccsd_triplet"
        )


def _given(states: States) -> tuple[Any, States]:
    energies = states.energies
    return (float(energies[0]) if len(energies) == 1 else energies), states
