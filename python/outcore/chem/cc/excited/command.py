"""The `outcore eom` command."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import least
from outcore.chem.cc.command import CoupledClusterRun, carry_out
from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.excited import describe, properties, shown, start_vectors
from outcore.chem.cc.excited.options import Options
from outcore.chem.cc.excited.search import LEAST
from outcore.chem.cc.excited.settings import METHOD
from outcore.chem.cc.excited.states import States, check_counts, check_kind, spin_square
from outcore.chem.cc.excited.vectors_of_plan import fitted, quickest
from outcore.chem.cc.iteration import NOTHING
from outcore.chem.units import HARTREE
from outcore.cli.run import with_options
from outcore.job import preflight

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.davidson import Iteration
    from outcore.chem.frozen import Frozen

_NANOMETRES = 45.56335252912  # wavelength of a photon of one Hartree


@with_options
def eom(options: Options) -> int:
    """Excited states, ionised ones, those with one electron more and those with a spin flipped, by the
    equation-of-motion method after CCSD; vectors in memory or on disk. States that have not converged are named,
    and are an error at the end."""
    return carry_out(StatesRun(options))


class StatesRun(CoupledClusterRun):
    """A run of coupled cluster, then of its states."""

    options: Options

    def __init__(self, options: Options) -> None:
        self._left = ""  # why states have not converged
        super().__init__(options)

    @property
    def usual_bytes(self) -> int:
        return super().usual_bytes + least.STATES_BYTES

    def _needs(self, rank: int, cuts: Sequence[int]) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.cc.least import equations

        of_states = equations(self._sizes(rank, cuts), self.threads, self._least)
        return super()._needs(rank, cuts) | {METHOD: least_memory.left_by_scf(self._mol) + of_states}

    def _check_counts(self, frozen: Frozen) -> None:
        options, kind, mol = self.options, self._state_kind, self._mol
        inside, outside = frozen_orbitals.counts(mol, frozen, self._spins)
        sizes = list(zip(inside, outside, strict=True))
        occupied, _ = frozen.active(0, range(int(mol.nao)), int(mol.nelec[0]))
        check_counts(kind, sizes, occupied.tolist(), options.states, options.state_settings().core)
        if options.follow is not None:
            check = partial(start_vectors.check, options.follow, mol, kind, options.states)
            preflight.at_root(self.comm, check)

    @property
    def _state_kind(self) -> str:
        options = self.options
        return kinds.named(options.kind, options.multiplicity, restricted=not self._open)

    @property
    def _least(self) -> Describe:
        """The search with the fewest vectors; for properties the larger of the left search and of densities."""
        of = {"kind": self._state_kind, "roots": self.options.states}
        if self.options.properties:
            left = partial(describe.left, vectors=LEAST, **of)
            return describe.largest(left, partial(describe.densities, **of))
        return partial(describe.states, vectors=LEAST, **of)

    def _made(self, mf: Any, *, stands_in: bool = False) -> CCSD:
        cc = super()._made(mf, stands_in=stands_in)
        cc.later = self._least
        return cc

    def _nothing(self, cc: CCSD) -> None:
        raise OutcoreError(errno.ENOTSUP, METHOD, detail="there is nothing to correlate")

    def _iterate(self, cc: CCSD) -> None:
        check_kind(cc, self._state_kind, self.options.states, self.options.state_settings().core)
        settings = replace(self.options.state_settings(), guess=self._followed(cc))
        super()._iterate(cc)
        if not cc.converged:
            return
        options, begin = self.options, time.monotonic()
        self.say(f"{kinds.of(self._state_kind).title}: {options.states} states")
        if self._open:
            contaminated = spin_square(cc)
            self.say(f"<S^2> of the reference: {contaminated:.4f}")
            self.results["reference_spin_square"] = contaminated
        found = States(cc, options.kind, settings, _StateIterations(self.say))
        self.say(f"states in {time.monotonic() - begin:.1f} s, {len(found.iterations)} iterations")
        self._left = found.why
        self._took_of_search(found)
        self._show(found)
        self._save_states(cc, found)
        if options.properties and not found.why:
            self._properties(found)
        self.results |= {
            "states_seconds": time.monotonic() - begin,
            "state_iterations": len(found.iterations),
            "states_plan": found.plan.as_json(),
        }

    def _followed(self, cc: CCSD) -> list[Any] | None:
        """States of the file of --follow. Collective."""
        path, found = self.options.follow, None
        if path is None:
            return None
        cc.prepare()  # it may replace orbitals by those of the checkpoint
        with self.world.together("read states to follow"):
            if self.root:
                found = start_vectors.load(path, cc, self._state_kind, self.options.states)
        return self.world.broadcast(found)

    def _save_states(self, cc: CCSD, found: States) -> None:
        """Writes the file of --save-states, if all states have converged. Collective."""
        path = self.options.save_states
        if path is None:
            return
        if found.why:
            self.say("no states to follow are written: not all have converged")
            return
        with self.world.together("write states to follow"):
            if self.root:
                start_vectors.save(path, cc, found)
        self.say(f"states to follow in {path}")

    def _took_of_search(self, found: States) -> None:
        """Shows time and traffic of products with vectors, and of passes. The time is that of whole iterations."""
        products = sum(each.products for each in found.iterations)
        moved = by_passes = NOTHING
        for each in found.iterations:
            moved += each.moved
            by_passes += each.moved_by_passes
        seconds = sum(each.seconds for each in found.iterations) / max(products, 1)
        planned = found.plan.iteration_s / self.options.states
        self.say(f"{products} products with vectors, {seconds:.2g} s each, predicted {planned:.2g} s")
        if moved.planned:
            self.say(
                f"they moved {moved.counted / 1e6:.0f} MB to and from disk, predicted were "
                f"{moved.planned / 1e6:.0f} MB, {moved.over_least:.2f} times the least of each product by itself"
            )
        else:
            self.say("products with vectors: no disk traffic")
        if by_passes.planned:
            self.say(
                f"passes over vectors moved {by_passes.counted / 1e6:.0f} MB, predicted were "
                f"{by_passes.planned / 1e6:.0f} MB"
            )
        self.results |= {
            "state_products": products,
            "seconds_of_a_state_product": seconds,
            "moved_by_state_products": asdict(moved),
            "moved_by_state_passes": asdict(by_passes),
        }

    def _show(self, found: States) -> None:
        rows: list[dict[str, Any]] = []
        self.say(f"{'state':>5} {'E / Eh':>14} {'E / eV':>10} {'singles':>8}")
        for root, energy in enumerate(found.energies):
            if not found.converged[root]:
                self.say(f"{root + 1:5d} has not converged")
                rows.append({"converged": False})
                continue
            share, words = float(found.singles[root]), found.character(root)
            self.say(f"{root + 1:5d} {energy:14.8f} {energy * HARTREE:10.4f} {share:8.3f}  {words}")
            row = {
                "converged": True,
                "energy_hartree": float(energy),
                "energy_ev": float(energy * HARTREE),
                "singles": share,
                "doubles": 1.0 - share,
                "character": words,
            }
            if self.options.kind == "ee":
                row["wavelength_nm"] = float(_NANOMETRES / energy) if energy > 0 else None
            if found.overlaps is not None:
                row["overlap_with_followed"] = float(found.overlaps[root])
            rows.append(row)
        if found.overlaps is not None:
            overlaps = " ".join(f"{each:.3f}" for each in found.overlaps)
            self.say(f"overlap of singles with those of the followed states: {overlaps}")
        self.results |= {"kind": self.options.kind, "states": rows}
        if not self._open:
            self.results["multiplicity"] = self.options.multiplicity or (
                1 if self.options.kind == "ee" else 2
            )

    def _properties(self, found: States) -> None:
        options, begin = self.options, time.monotonic()
        self.say("left vectors")
        try:
            made = found.properties(_StateIterations(self.say))
        except NotConverged as error:
            self._left = error.detail
            self.say(f"no properties: {error.detail}")
            return
        seconds = time.monotonic() - begin
        self.say(f"left vectors and multipliers in {seconds:.1f} s")
        shown.properties(self, options, made)
        self.results |= {
            "properties_seconds": seconds,
            "properties_plan": made.plan.as_json(),
            "densities_plan": made.density_plan.as_json(),
        }

    def _estimate(self, cc: CCSD) -> None:
        check_kind(cc, self._state_kind, self.options.states, self.options.state_settings().core)
        super()._estimate(cc)
        kind, roots = self._state_kind, self.options.states
        way = quickest(cc.estimate, kind, roots)
        plan, vectors = way.plan, way.vectors
        kept = ", rings of singles are kept" if way.keeps_rings else ""
        self.say(f"{METHOD}: {plan}, {vectors} vectors for each state{kept}")
        self.say(f"an iteration of all states: {plan.iteration_s:.3g} s")
        self.results["states_estimate"] = plan.as_json() | {"vectors_of_a_state": vectors}
        if self.options.properties:
            plan, vectors = fitted(cc.estimate, partial(describe.left, kind=kind, roots=roots))
            self.say(f"left vectors: {plan}, {vectors} vectors for each state")
            self.say(f"an iteration of all of them: {plan.iteration_s:.3g} s")
            self.results["properties_estimate"] = plan.as_json() | {"vectors_of_a_state": vectors}
            plan = cc.estimate(partial(describe.densities, kind=kind, roots=roots))
            self.say(f"{properties.PROPERTIES}: {plan}")
            self.say(f"an iteration of multipliers: {plan.iteration_s:.3g} s")
            self.results["densities_estimate"] = plan.as_json()

    def end(self, cc: CCSD) -> None:
        super().end(cc)
        if self._left:
            raise NotConverged(
                None,
                "converge states",
                detail=f"{self._left}; raise --state-iterations, or ask for more states",
            )


class _StateIterations:
    """Shows a line for each iteration."""

    def __init__(self, say: Any) -> None:
        self._say, self._shown = say, False

    def __call__(self, found: Iteration) -> None:
        if not self._shown:
            self._say(f"{'iter':>5} {'lowest / Eh':>14} {'highest / Eh':>14} {'residual':>9} {'s':>8}")
        self._shown = True
        self._say(
            f"{found.number:5d} {np.min(found.energies):14.8f} {np.max(found.energies):14.8f} "
            f"{np.max(found.residuals):9.2e} {found.seconds:8.2f}"
        )
