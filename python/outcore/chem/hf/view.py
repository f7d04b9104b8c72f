"""The output of a Hartree-Fock run: progress, stored integrals, cycles, result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem import occupation
from outcore.job.scratch import find_scratch

if TYPE_CHECKING:
    from outcore.chem.hf.accuracy import EnergyError
    from outcore.chem.hf.integrals import Estimate, IntegralWork
    from outcore.chem.restart import Checkpoint
    from outcore.cli.run import Run
    from outcore.trace.report import Report


class View:
    """The lines of a run. The process that drives the SCF has the numbers."""

    def __init__(self, run: Run, mf: Any, method: str) -> None:
        self._run, self._mf, self._method = run, mf, method
        self.say = run.say

    def details(self) -> Iterator[str]:
        """Lines of the header: the place of integrals, and their accuracy."""
        settings = self._mf.settings
        if settings.storage != "direct":
            yield f"scratch {settings.keep or find_scratch(settings.scratch)}"
        yield f"integrals {settings.storage}{', read by any process' if settings.records == 'any' else ''}"
        if settings.screening is None:
            yield f"error of the energy {settings.allowed_error:.0e} Eh"
        else:
            yield f"screening {settings.screening:.0e}"

    @contextmanager
    def storing(self) -> Iterator[None]:
        """A progress bar while integrals are written."""
        if self._mf.settings.storage == "direct":
            yield
            return
        self._mf.on_estimate = self._estimate
        with self._run.progress("writing integrals") as self._mf.on_progress:
            yield
        self._mf.on_estimate = self._mf.on_progress = None

    def _estimate(self, estimate: Estimate) -> None:
        memory = f"memory {estimate.memory_bytes / 1e6:.0f} MB in each process"
        if self._mf.settings.storage == "disk":
            where = (
                f"at most {estimate.disk_bytes / 1e6:.0f} MB in {estimate.scratch} "
                f"({estimate.free_bytes / 1e9:.1f} GB free)"
            )
        else:
            where = (
                f"up to {estimate.record_memory_bytes / 1e6:.0f} MB in memory, "
                f"{estimate.disk_bytes / 1e6:.0f} MB in {estimate.scratch} "
                f"({estimate.free_bytes / 1e9:.1f} GB free)"
            )
        self.say(f"{estimate.integrals:.3e} integrals pass the screening: {where}; {memory}")

    def stored(self) -> None:
        """Tells how many integrals were kept and where, how many are recomputed and why, and the predicted time."""
        mf, summary = self._mf, self._mf.stored_summary
        integrals = mf.two_electron
        for line in integrals.symmetry.lines():
            self.say(line)
        if summary is not None:
            places = [
                f"{size / 1e6:.0f} MB {place}"
                for size, place in ((summary.memory_bytes, "in memory"), (summary.disk_bytes, "on disk"))
                if size
            ]
            how = (
                f"reused {summary.stored:.3e} integrals that were kept in {integrals.scratch}"
                if integrals.reused
                else f"stored {summary.stored:.3e} of {summary.computed:.3e} computed integrals"
            )
            self.say(
                f"{how}, "
                f"{' and '.join(places) or 'nothing'} ({summary.bytes / max(1, summary.stored):.2f} bytes each), "
                f"{summary.records} records, {summary.seconds:.1f} s"
            )
        expected = integrals.expected()
        if expected is not None:
            left = max(0.0, 1 - expected.kept / max(1, integrals.estimate().integrals))
            why = (
                "everything is kept"
                if left == 0
                else f"{100 * left:.0f} % of the integrals, worth least for their bytes, are recomputed as needed"
            )
            self.say(
                f"{why}; expected: storing {expected.store_seconds:.1f} s, "
                f"each J and K {expected.cycle_seconds:.2f} s on average"
            )

    def storage_error(self, error: EnergyError) -> None:
        which = "free energy" if self._mf.istype("_SmearingSCF") else "energy"
        line = f"error of the {which} by storing integrals: within {error.bound:.1e} Eh"
        if error.allowed is not None:
            line += f"; allowed {error.allowed:.0e} Eh" + ("" if error.kept else ": NOT KEPT")
        self.say(line)
        if self._run.options.full:
            self.say(
                f"  one standard deviation {error.sigma:.1e} Eh; {error.worst:.0e} Eh if all that was rounded or "
                "left out had the worst sign"
            )

    def traffic(self, report: Report, whole_bytes: int) -> None:
        """whole_bytes: see `IntegralWork`."""
        from outcore.trace.report import READS

        if whole_bytes:
            read = report.total("file", READS).bytes
            self.say(
                f"disk: {read / whole_bytes:.2f} times all integrals there, once for each J and K and energy error"
            )
        else:
            self.say("disk: no traffic")

    def result(self, run_seconds: float, work: IntegralWork) -> None:
        mf = self._mf
        state = "converged" if mf.converged else "NOT converged"
        self.say(
            f"{self._method} energy {mf.e_tot:.10f} Eh, {state} in {mf.cycles} cycles, {run_seconds:.1f} s"
        )
        for line in occupation.smeared(mf):
            self.say(line)
        expected = "" if work.expected_seconds is None else f"; {work.expected_seconds:.1f} s were expected"
        self.say(
            f"integrals: {work.store_seconds:.1f} s to store, {work.contract_seconds:.1f} s for "
            f"{work.contractions} times J and K{expected}"
        )
        if work.damaged:
            self.say(f"{work.damaged} integral records came back damaged; they were recomputed each time")
        if work.lost_tasks:
            self.say(f"of {work.lost_tasks} tasks something found no place: recomputed each time")
        if self._method == "UHF" and not mf.istype("_SmearingSCF"):
            spin_square, multiplicity = mf.spin_square()
            self.say(f"<S^2> = {spin_square:.6f}, 2S+1 = {multiplicity:.4f}")


class Cycles:
    """For mf.callback: keeps the orbitals of each cycle, then shows a line. before: number of cycles before those
    of `mf.kernel`."""

    def __init__(self, say: Callable[[str], None], keeper: Checkpoint | None = None) -> None:
        self._say, self._keeper, self._begin = say, keeper, time.monotonic()
        self.before = 0

    def begin(self) -> None:
        """The first cycle begins now, not when this object was made."""
        self._begin = time.monotonic()

    def __call__(self, state: dict[str, Any]) -> None:
        self._cycle(state, self.before + int(state["cycle"]) + 1)

    def after(self, before: int) -> Callable[[dict[str, Any]], None]:
        """The callback for PySCF's second-order solver, whose cycles follow `before` others."""
        last = before

        def cycle(state: dict[str, Any]) -> None:
            nonlocal last
            number = before + int(state["imacro"]) + 1
            if number == last:  # PySCF calls once more at the end
                return
            last = state["mf"].cycles = number
            self._cycle(state | {"norm_ddm": np.linalg.norm(state["dm"] - state["dm_last"])}, number)

        return cycle

    def _cycle(self, state: dict[str, Any], number: int) -> None:
        if self._keeper is not None:
            self._keeper.cycle(state, number)
        now = time.monotonic()
        if number == 1:
            self._say(f"{'cycle':>5} {'energy / Eh':>20} {'change':>10} {'|g|':>9} {'|dD|':>9} {'s':>7}")
        self._say(
            f"{number:5d} {state['e_tot']:20.10f} {state['e_tot'] - state['last_hf_e']:10.2e} "
            f"{state['norm_gorb']:9.2e} {state['norm_ddm']:9.2e} {now - self._begin:7.2f}"
        )
        self._begin = now
