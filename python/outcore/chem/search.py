"""The search of a command for the state of an SCF: DIIS, second order where DIIS stalls, a check whether the state
is a minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem import cube_orbitals, occupation, stability
from outcore.chem.formats import orbitals
from outcore.chem.hf.view import Cycles
from outcore.chem.mean_field import gradient
from outcore.chem.reference import mark_canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    from outcore.chem.hf.accuracy import EnergyError
    from outcore.chem.options import MoleculeOptions
    from outcore.chem.restart import Checkpoint, FoundOrbitals
    from outcore.job.world import World

_PATIENCE = 15  # cycles in which DIIS has to halve the gradient, or second order takes over
_FIRST = 25  # cycles that DIIS has in any case
_SECOND = 1e-5  # orbital gradient to which second order goes: rounding in its rotations stays far below
_FOLLOWED = 5  # most instabilities that are followed one after another
_FINER = 3  # how often integrals are stored again, at most
_LOWER = 1e-7  # Hartree: least drop of the energy when an instability is followed


class SCFSearch:
    """The search of one SCF for its state. `mf`: an object of Outcore with its options set; at the end it has the
    state. Methods are collective.

    Attributes: `report`, for --json: whether the state is stable; None if that was not checked. `storage_error`:
    the error of the energy by stored integrals, if they are stored for an allowed error and the SCF has converged.
    `no_room`: why they could not be stored finer."""

    def __init__(
        self,
        mf: Any,
        options: MoleculeOptions,
        world: World,
        say: Callable[[str], None],
        keeper: Checkpoint | None,
    ) -> None:
        self.mf, self.options, self._world, self._say, self._keeper = mf, options, world, say, keeper
        self._cycles = Cycles(say, keeper)
        self._second_order = False
        self._near = False  # whether orbitals were nearly degenerate, at rank 0
        self.report: dict[str, Any] | None = None
        self.storage_error: EnergyError | None = None
        self.no_room = ""

    @property
    def undecided(self) -> bool:
        """Whether the state is a saddle point that could not be left: with exact integrals it may be another."""
        return self.report is not None and self.report["followed"] > 0 and not self.report["stable"]

    def run(self, found: FoundOrbitals | None, *, anew: bool = False, as_it_is: bool = False) -> None:
        """Runs the search. `found`: orbitals to begin with. `anew`: iterates even if they have converged.
        `as_it_is`: accepts unconverged orbitals if all cycles were used. Raises OutcoreError, the same at all
        processes."""
        mf = self.mf
        if found is not None:
            self._remember(near=found.nearly_degenerate)
        complete = found is not None and (found.finished(mf) or (as_it_is and found.exhausted(mf)))
        if found is not None and complete and not anew:
            found.restore(mf)
            told = "converged orbitals" if mf.converged else "orbitals that have not converged"
            self._say(f"{told} found in {self.options.checkpoint}")
            if not self.options.stability:
                self.report = found.stability
        else:
            self._iterate(found)
        if mf.converged and self.report is None:
            self._look()
        if mf.converged and (anew or not complete):
            self._keep_error()
        with self._world.together("keep orbitals"):
            if self._keeper is not None:
                self._keeper.finish(self.report)
            self._save()

    def _save(self) -> None:
        """Writes converged orbitals for other programs."""
        path = self.options.save_orbitals
        if path is not None and self.mf.converged and self._world.rank == 0:
            orbitals.write(path, self.mf, cube_orbitals.of(self.options.cube_orbitals, self.mf))
            self._say(f"orbitals of the SCF in {path}")

    def _remember(self, *, near: bool) -> None:
        """Remembers that orbitals were nearly degenerate, also for a run that continues from the checkpoint."""
        self._near |= near
        if self._keeper is not None:
            self._keeper.nearly_degenerate = self._near

    # ---- iterations ----

    def _iterate(self, found: FoundOrbitals | None) -> None:
        mf, options = self.mf, self.options
        if options.swap is not None:
            assert found is not None  # as the options demand
            occupied = found.orbitals["mo_occ"]
            if not found.same:
                occupied = occupation.swapped(occupied, occupation.swaps(options.swap))
            found.orbitals["mo_occ"] = occupied
            occupation.hold(mf, found.orbitals["mo_coeff"], occupied)
        density = None if found is None else found.density(mf)
        if options.second_order:
            self._newton(dm0=density)
            return
        may_change = options.second_order is None and self._free
        mf.callback = self._cycles
        self._cycles.begin()
        mf.check_convergence = _Patience(mf) if may_change else None
        try:
            mf.kernel(density)
        finally:
            mf.check_convergence = None
        self._remember(near=mf.nearly_degenerate)  # in these cycles; more cycles may follow
        if may_change and not mf.converged and mf.cycles < options.max_cycle:
            self._say(f"DIIS does not converge; second order from cycle {mf.cycles + 1} on")
            self._newton(mf.mo_coeff, mf.mo_occ)

    @property
    def _free(self) -> bool:
        """Whether the energy alone chooses the occupied orbitals."""
        return self.options.swap is None and not self.mf.istype("_SmearingSCF")

    def _newton(self, *orbitals: Any, dm0: Any = None) -> None:
        """Runs second order, from orbitals and occupations or a density. It gets the cycles that DIIS has left, or
        all allowed cycles when it leaves a converged state for a lower one."""
        mf = self.mf
        second, asked = mf.newton(), gradient(mf)
        second.conv_tol_grad = max(asked, _SECOND)
        before = mf.cycles if orbitals else 0
        second.max_cycle = self.options.max_cycle - (0 if mf.converged else before)
        second.callback = self._cycles.after(before)
        second.kernel(*orbitals, dm0=dm0)
        for name in ("converged", "e_tot", "mo_energy", "mo_coeff", "mo_occ", "cycles", "scf_summary"):
            setattr(mf, name, getattr(second, name))
        self._second_order = True
        if mf.converged and asked < _SECOND:
            self._finish()
        elif mf.converged:
            mark_canonical(mf)

    def _finish(self) -> None:
        """Runs DIIS from the state of second order to the requested gradient. Its orbitals stay occupied."""
        mf, self._cycles.before = self.mf, self.mf.cycles
        mf.callback = self._cycles
        occupation.hold(mf, mf.mo_coeff, mf.mo_occ)
        try:
            mf.kernel(mf.make_rdm1(mf.mo_coeff, mf.mo_occ))
        finally:
            del mf.get_occ
        mf.cycles += self._cycles.before

    # ---- the error of stored integrals ----

    def _keep_error(self) -> None:
        """Stores integrals finer until they keep the allowed error, and continues from the state that was found."""
        from outcore.chem.hf.scf import OutOfCore

        mf: Any = self.mf
        if not isinstance(self.mf, OutOfCore) or mf.settings.allowed_error is None:
            return
        if mf.settings.storage == "direct" or mf._eri is not None:
            return
        error = mf.energy_error()
        for _ in range(_FINER):
            if error.kept:
                break
            self._say(
                f"the energy may err by {error.bound:.1e} Eh by storing integrals, more than {error.allowed:.0e} "
                "Eh: they are stored again, finer"
            )
            self.no_room = mf.store_finer(error)
            if self.no_room:
                break
            self._go_on()
            if not mf.converged:
                return
            error = mf.energy_error()
        self.storage_error = error

    def _go_on(self) -> None:
        """Continues from the state that was found, with other integrals."""
        mf = self.mf
        if self._free:
            self._finish()
            return
        self._cycles.before = mf.cycles
        mf.kernel(mf.make_rdm1(mf.mo_coeff, mf.mo_occ))
        mf.cycles += self._cycles.before

    # ---- stability ----

    def _look(self) -> None:
        """Checks the stability of the state if the user asks for it, if second order was needed, or if occupied and
        empty orbitals were nearly degenerate in a cycle: then the least noise decides which state is found."""
        near = self._world.broadcast(self._near or self.mf.nearly_degenerate)
        asked = self.options.stability
        if not self._free or not (asked or near or self._second_order):
            return
        mf, followed = self.mf, 0
        found = self._internal()
        while not found.stable and (asked or near) and followed < _FOLLOWED:
            energy = mf.e_tot
            why = "" if asked else "orbitals on the way were nearly degenerate; "
            self._say(
                f"{why}the state at {energy:.10f} Eh is a saddle point (lowest eigenvalue of the orbital Hessian "
                f"{found.eigenvalue:.1e} Eh): on to a lower one"
            )
            self._newton(found.orbitals, mf.mo_occ)
            followed += 1
            if not mf.converged:
                return
            found = self._internal()
            if mf.e_tot > energy - _LOWER:
                break
        self.report = {
            "stable": found.stable,
            "lowest_eigenvalue_hartree": found.eigenvalue,
            "followed": followed,
        }
        state = "stable" if found.stable else "not stable"
        line = f"the state is {state}: lowest eigenvalue of the orbital Hessian {found.eigenvalue:.2e} Eh"
        if not found.stable and not (asked or near):
            line += "; --stability leads to a lower one"
        self._say(line)
        if asked and not mf.istype("UHF") and not mf.istype("ROHF"):
            outside = mf.at_root(lambda: stability.towards_uhf(mf))
            self.report |= {
                "stable_towards_uhf": outside.stable,
                "lowest_eigenvalue_towards_uhf_hartree": outside.eigenvalue,
            }
            better = "stable" if outside.stable else "not stable: --uhf has a lower one"
            self._say(f"towards UHF it is {better} (lowest eigenvalue {outside.eigenvalue:.2e} Eh)")

    def _internal(self) -> stability.Stability:
        mf = self.mf
        found: stability.Stability = mf.at_root(lambda: stability.internal(mf))
        return found

    # ---- the end ----

    def refuse(self) -> None:
        """Raises NotConverged if the SCF has not, or --stability has found no minimum."""
        mf = self.mf
        if not mf.converged:
            raise NotConverged(
                None,
                "converge the SCF",
                detail=f"after {mf.cycles} cycles E = {mf.e_tot:.10f}; raise --max-cycle, or try another --guess, "
                "--second-order or --level-shift",
            )
        if self.options.stability and self.report is not None and not self.report["stable"]:
            raise NotConverged(
                None,
                "find a stable state",
                detail=f"E = {mf.e_tot:.10f} is a saddle point after {self.report['followed']} instabilities were "
                "followed; try another --guess",
            )


class _Patience:
    """For mf.check_convergence: PySCF's criteria. It also ends the SCF if DIIS has not halved the gradient in the
    last cycles."""

    def __init__(self, mf: Any) -> None:
        self._energy, self._gradient = float(mf.conv_tol), gradient(mf)
        self._norms: list[float] = []
        self._ending, self._given_up = False, False

    def __call__(self, state: dict[str, Any]) -> bool:
        """PySCF calls this in each cycle, and once more after the cycle for which it returns True."""
        change, norm = abs(state["e_tot"] - state["last_hf_e"]), float(state["norm_gorb"])
        if self._ending:
            return not self._given_up and (change < 10 * self._energy or norm < 3 * self._gradient)
        self._norms.append(norm)
        if change < self._energy and norm < self._gradient:
            self._ending = True
        elif len(self._norms) >= _FIRST and min(self._norms[-_PATIENCE:]) > min(self._norms[:-_PATIENCE]) / 2:
            self._ending = self._given_up = True
        return self._ending
