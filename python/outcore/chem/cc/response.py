"""The Lambda equations and densities of a coupled-cluster calculation whose amplitudes have converged, by PySCF's
names; after `ccsd_t` those of CCSD(T).

ccsd.kernel()
l1, l2 = ccsd.solve_lambda()
density = ccsd.make_rdm1()
"""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.cc import disks, triple_response
from outcore.chem.cc.equations import orbitals
from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives
from outcore.chem.cc.equations.triple_arrays import Derivatives
from outcore.chem.cc.given import GivenDoubles, of_four
from outcore.chem.cc.inherited import Inherited, amplitudes
from outcore.chem.cc.iteration import Iteration, Meter
from outcore.chem.cc.keep.kept import State
from outcore.chem.cc.keep.kept_response import mark_of
from outcore.chem.cc.least import AfterIterations
from outcore.chem.cc.plan import assembly, describe
from outcore.chem.cc.updates import Updates
from outcore.chem.logs import INFO

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.densities import ClosedDensities
    from outcore.chem.cc.equations.multipliers import MultiplierEquations
    from outcore.chem.cc.equations.open_densities import OpenDensities
    from outcore.chem.cc.equations.open_multipliers import OpenMultiplierEquations
    from outcore.chem.cc.gradient import RelaxedResponse
    from outcore.chem.cc.keep.checkpoint import Checkpoint, KeptMultipliers
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]

_ATTEMPTED = "Lambda equations"


class Multipliers:
    """Multipliers of a CCSD object, in the memory that its amplitudes leave. The constructor is collective, and
    gives back the arrays of iterations, except amplitudes and integrals.

    Attributes:
        singles: [i,a] of each spin, as in `multipliers` and `open_multipliers`.
        converged, iterations: of the Lambda equations.

    Raises OutcoreError, the same on all processes: ENOTSUP (methods and references without these equations), EINVAL
    (amplitudes that have not converged), ENOMEM, ENOSPC.
    """

    def __init__(self, of: CCSD, within: MultiplierEquations | OpenMultiplierEquations | None = None) -> None:
        """within: multiplier equations of these amplitudes, if the room of `of` has them already."""
        check(of)
        if not of.converged:
            raise OutcoreError(
                errno.EINVAL, _ATTEMPTED, detail="the amplitudes have not converged; run kernel() first"
            )
        self._of, self.world = of, of.world
        self.converged = False
        self.iterations: list[Iteration] = []
        self.equations = self._made() if within is None else within
        room = self.room = self.equations.room
        self.singles = self.equations.put_first()
        self._kept: KeptMultipliers | None = None
        self._last = 0
        if of.kept is not None:
            self._take_kept(of.kept)
        self._updates = Updates(room, of.spins, self.equations, of.settings.diis_space)
        self.densities: ClosedDensities | OpenDensities | None = None

    def _made(self) -> MultiplierEquations | OpenMultiplierEquations:
        of = self._of
        if of.has_triples:
            inherited, triples = triple_response.derive(of)
            room = self._room_of(inherited, describe.response_of_triples)
            of_triples: Derivatives | OpenDerivatives | None
            if isinstance(triples, Derivatives):
                of_triples = Derivatives(room, triples.t1, triples.one)
            else:
                of_triples = OpenDerivatives(room, triples.t1, triples.one)
        else:
            inherited, of_triples = Inherited(of), None
            room = self._room_of(inherited, describe.response)
        made = assembly.multipliers(
            room,
            [each.fock for each in of.spins],
            of.singles,
            of_triples,
            is_stored=inherited.is_stored,
            builds=inherited.builds,
        )
        of.replace_room(room, made.of)
        return made

    def _room_of(self, inherited: Inherited, what: Describe) -> Room:
        plan = inherited.plan(what)
        kept_bytes = disks.kept_of_multipliers(plan)
        inherited.check_disks(plan, lambda kept: kept.room_for_multipliers(kept_bytes), _ATTEMPTED)
        return inherited.room(plan)

    # ---- iterations ----

    @property
    def _mark_of_amplitudes(self) -> str:
        return f"{self._of.state.stamp}{' with (T)' if self._of.has_triples else ''}"

    @property
    def mark(self) -> str:
        """Identifies these multipliers in the checkpoint."""
        return mark_of(self._mark_of_amplitudes, *self.singles)

    def _take_kept(self, checkpoint: Checkpoint) -> None:
        of, mark = self._of, self._mark_of_amplitudes
        self._kept = checkpoint.multipliers(self.room, self.equations, of.spins, self.singles, mark)
        found, settings = self._kept.found, of.settings
        if found is not None:
            self.singles, self._last = found.singles, found.iteration
            tight = found.conv_tol <= settings.conv_tol and found.conv_tol_normt <= settings.conv_tol_normt
            self.converged = found.converged and tight

    def _state(self, iteration: int, energy: float) -> State:
        settings = self._of.settings
        limits = settings.conv_tol, settings.conv_tol_normt
        return State(self.singles, iteration, energy, self.converged, *limits)

    def solve(self) -> None:
        """Iterations until the multipliers have converged as the amplitudes had to, `max_cycle` at most. Raises
        NotConverged."""
        of, settings = self._of, self._of.settings
        expected, energy = self.room.plan.operations, self.equations.energy(self.singles)
        last = self._last + settings.max_cycle
        for number in () if self.converged else range(self._last + 1, last + 1):
            if self._kept is not None:
                self._kept.steps.begin(self._state(number - 1, energy))
            begin, moved = time.monotonic(), self.room.moved
            meter = self.room.meter = Meter(expected, of.progress(f"Lambda iteration {number}"))
            self.singles, norm, _ = self._updates.advance(self.singles, settings)
            before, energy = energy, self.equations.energy(self.singles)
            expected = meter.done
            seconds = time.monotonic() - begin
            found = Iteration(number, energy, energy - before, norm, seconds, self.room.moved - moved)
            self.iterations.append(found)
            of.log(INFO, "Lambda cycle = %d  norm of the change = %.6g", number, norm)
            self.converged = abs(found.change) < settings.conv_tol and norm < settings.conv_tol_normt
            if self._kept is not None:
                is_last = self.converged or number == last
                self._kept.save(self.room, self._state(number, energy), is_last=is_last)
            if self.converged:
                break
        if not self.converged:
            raise NotConverged(
                None,
                _ATTEMPTED,
                detail=f"they change by {self.iterations[-1].norm:.1e} after {settings.max_cycle} iterations, "
                f"{settings.conv_tol_normt:.1e} is wanted",
            )
        self._updates.close()
        self.close()
        self.equations.of_multipliers(self.singles)

    def close(self) -> None:
        """Closes the part of the checkpoint that keeps multipliers."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    # ---- results ----

    @property
    def one_particle(self) -> list[Values]:
        """gamma of the correlated orbitals, of each spin or of both of closed shells; see `densities`."""
        if self.densities is not None:
            return self.densities.one
        return self.equations.one_particle

    def make_densities(self) -> ClosedDensities | OpenDensities:
        """Densities of one and of two particles, made once. Multipliers stay, their equations are used up."""
        if self.densities is None:
            self.densities = assembly.densities(self.equations, self.singles)
        return self.densities

    def release_densities(self, *kept: Array) -> None:
        """Gives back all arrays but amplitudes, multipliers and those that are `kept`."""
        multipliers = (each.amplitudes for each in self.equations.doubles)
        self.room.keep(*amplitudes(self.equations.of).values(), *multipliers, *kept)


def solved(of: CCSD, within: MultiplierEquations | OpenMultiplierEquations | None = None) -> Multipliers:
    """The multipliers of a CCSD object; solves for them if that has not been done. within: see Multipliers.
    Collective."""
    if of._multipliers is None:
        check(of)
        if within is None:
            of.begin(AfterIterations(triples=of.has_triples, multipliers=True))
        made = Multipliers(of, within)
        try:
            made.solve()
        finally:
            made.close()
        of._multipliers = made
    return of._multipliers


class GivenMultipliers(GivenDoubles):
    """Multipliers as PySCF has them, [i,j,a,b]: (2 L + L') / 3."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        found = super().__array__(dtype, copy)
        given: Values = (2.0 * found + found.transpose(1, 0, 2, 3)) / 3.0
        return given

    def __getitem__(self, key: Any) -> Any:
        box = of_four(key)
        if box is None:  # lists and masks
            return np.asarray(self)[key]
        i, j, a, b = box
        exchanged_box = super().__getitem__((j, i, a, b))
        if isinstance(i, slice) and isinstance(j, slice):
            exchanged_box = exchanged_box.swapaxes(0, 1)
        return (2.0 * super().__getitem__((i, j, a, b)) + exchanged_box) / 3.0


class LambdaResults:
    """The part of a CCSD object with multipliers, densities and gradients."""

    has_triples = False
    """Derivatives and energies of scanners are those of CCSD(T); `ccsd_t` sets it."""
    _multipliers: Multipliers | None = None
    _relaxed: RelaxedResponse | None = None

    @property
    def multipliers(self: CCSD) -> Multipliers:  # type: ignore[misc]
        """The multipliers; solves for them if that has not been done. Collective."""
        return solved(self)

    def forget_multipliers(self: CCSD) -> None:  # type: ignore[misc]
        """Forgets the multipliers, whose arrays another stage takes, and closes relaxed densities. Collective."""
        self._multipliers = None
        if self._relaxed is not None:
            self._relaxed.close()
            self._relaxed = None

    def relaxed_densities(self: CCSD, *, gradient: bool = False) -> RelaxedResponse:  # type: ignore[misc]
        """Relaxed densities, made once. gradient: the caller will ask for the gradient, so there must be memory for
        it, too. Collective; see `gradient.RelaxedResponse`."""
        from outcore.chem.cc.gradient import RelaxedResponse, check_fitted

        if self._relaxed is None:
            check_fitted(self)
            check(self)
            triples = self.has_triples
            self.begin(AfterIterations(triples=triples, multipliers=True, relaxed=True, gradient=gradient))
            self._relaxed = RelaxedResponse(self)
        return self._relaxed

    def nuc_grad_method(self) -> Any:
        """Nuclear gradients, as PySCF's: `.kernel()`, `.as_scanner()`, `.optimizer()`."""
        from outcore.chem.cc.gradient import Gradients

        return Gradients(self)

    def solve_lambda(self: CCSD) -> tuple[Any, Any]:  # type: ignore[misc]
        """Solves the Lambda equations of converged amplitudes, to the thresholds of these; returns `l1` and `l2`.
        Called again it returns the same multipliers. They belong to CCSD, or to CCSD(T) if (T) has been computed.
        Collective. Raises OutcoreError: see `Multipliers`; NotConverged."""
        solved(self)
        return self.l1, self.l2

    @property
    def l1(self: CCSD) -> Any:  # type: ignore[misc]
        """Multipliers of singles [i,a] of `active_orbitals`, as PySCF has them: of closed shells half of those of
        `multipliers`, of open ones those of both spins. None before `solve_lambda`."""
        if self._multipliers is None:
            return None
        share = 0.5 if self.restricted else 1.0
        pairs = zip(self._multipliers.singles, self.spins, strict=True)
        found = [share * orbitals.given_singles(each, spin) for each, spin in pairs]
        return found[0] if self.restricted else tuple(found)

    @property
    def l2(self: CCSD) -> Any:  # type: ignore[misc]
        """Multipliers of doubles [i,j,a,b], as PySCF has them; of closed shells see GivenMultipliers, of open ones
        those of spins aa, ab, bb. None before `solve_lambda`."""
        if self._multipliers is None:
            return None
        kind = GivenMultipliers if self.restricted else GivenDoubles
        found = [
            kind(each.amplitudes, *(self.spins[s] for s in each.spins))
            for each in self._multipliers.equations.doubles
        ]
        return found[0] if self.restricted else tuple(found)

    def make_rdm1(self: CCSD, *, ao_repr: bool = False, relaxed: bool = False) -> Any:  # type: ignore[misc]
        """The one-particle density of both spins, for open shells a pair of alpha and beta. It is over all orbitals
        [p,q] of the reference, frozen ones included, or with `ao_repr` over basis functions. relaxed: properties
        that it gives are derivatives of the energy; else it is the density of fixed orbitals, as PySCF's
        `make_rdm1`. Solves the equations that have not been solved. Collective."""
        weight = 3 - len(self.spins)
        if relaxed:
            found = [weight * each.total for each in self.relaxed_densities().densities.spins]
        else:
            found = [
                weight * each.coefficients[:, : each.occupied] @ each.coefficients[:, : each.occupied].T
                + spin.coefficients @ gamma @ spin.coefficients.T
                for each, spin, gamma in zip(
                    self.reference.spins, self.spins, self.multipliers.one_particle, strict=True
                )
            ]
        if not ao_repr:
            for number, each in enumerate(self.reference.spins):
                order = np.argsort(each.numbers)
                inverse = (each.coefficients.T @ self.reference.overlap)[order]
                found[number] = inverse @ found[number] @ inverse.T
        return found[0] if self.restricted else tuple(found)


def check(of: CCSD) -> None:
    """Raises OutcoreError (ENOTSUP) for calculations that have no Lambda equations here."""
    if of.has_triples:
        triple_response.check(of)
    if not of.method_facts.has_densities:
        raise _refused(f"they are of CCSD, not of {of.method_facts.title}")
    if of.settings.fno:
        raise _refused(
            "amplitudes of frozen natural orbitals (fno) have none: orbitals are not those of the SCF"
        )
    if of.uncorrelated:
        raise _refused("there is nothing to correlate")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, _ATTEMPTED, detail=detail)
