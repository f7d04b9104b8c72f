"""The `outcore ccsd` command."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import least
from outcore.chem import reference as references
from outcore.chem.cc import disks, forecast
from outcore.chem.cc.equations import methods
from outcore.chem.cc.forecast import DENSITIES, LAMBDA, TRIPLES
from outcore.chem.cc.options import Options
from outcore.chem.cc.plan import describe
from outcore.chem.cc.plan.places import METHOD
from outcore.chem.cc.settings import Settings
from outcore.chem.gradients import command as density_command
from outcore.chem.gradients.forecast import DERIVATIVES, RESPONSE
from outcore.chem.gradients.options import ASKED
from outcore.chem.hf.settings import Settings as HFSettings
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options
from outcore.job import preflight
from outcore.job.scratch import check_room

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.gradient import RelaxedResponse
    from outcore.chem.cc.iteration import Iteration, Moved
    from outcore.chem.cc.least import AfterIterations
    from outcore.chem.cc.plan.plan import Plan
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.chem.frozen import Frozen
    from outcore.chem.gradients.forecast import PredictedPart
    from outcore.chem.mean_field import Kind
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.source import Source

_SHORT_S = 0.1  # overheads, which a plan leaves out, may be most of a time below it


@with_options
def ccsd(options: Options) -> int:
    """CCSD after a Hartree-Fock calculation, of closed and open shells, and DCSD, CC2, CCD and LCCD of closed
    shells; amplitudes and integrals in memory or on disk. Exit status 3: the energy is there, but the state of the
    SCF is a saddle point that could not be left."""
    return carry_out(CoupledClusterRun(options))


class CoupledClusterRun(MoleculeRun):
    """The stages of a run, and the lines that it shows of them."""

    options: Options
    energies = MappingProxyType(
        {
            "scf_energy_hartree": "SCF energy",
            **{f"{name}_energy_hartree": f"{each.title} energy" for name, each in methods.METHODS.items()},
            "ccsd_t_energy_hartree": "CCSD(T) energy",
        }
    )

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.forced, self.asked = options.force, min(self.asked, options.cc_tol)
        if options.has_density:
            self.asked = min(self.asked, ASKED)
        self._tightened = options.settings()["conv_tol_normt"] < options.amplitude_tol
        self._mol = self.build()
        self._kind: Kind = "ROHF" if options.rohf else "UHF" if options.uhf or self._mol.spin else "RHF"
        self._open = self._kind == "UHF" or self._mol.spin != 0
        self._method = methods.of(options.method)
        if self._open and not self._method.is_for_open_shells:
            raise OutcoreError(
                errno.ENOTSUP,
                f"--method {options.method}",
                detail="it is of closed shells; open shells have CCSD",
            )
        if self._open:
            preflight.refuse(
                {"--fno": options.fno or None}, "with open shells, for which it is not there yet"
            )
        else:
            preflight.refuse({"--orbitals": options.orbitals}, "with closed shells")
        spins = 2 if self._open else 1
        frozen = frozen_orbitals.before_scf(self._mol, options.frozen, options.frozen_virtual, spins=spins)
        self._check_counts(frozen)
        sets: dict[Purpose, str | None] = {"jk": options.jkbasis, "mp2": options.auxbasis}
        self._sets = self.check_auxiliary(self._mol, sets) if options.integrals == "ri" else {}
        self._frozen = frozen
        self.open_world()
        method = self._method.title + ("(T)" if options.triples else "")
        method += "" if self._kind == "RHF" else f"({self._kind})"
        what = method if options.integrals == "conventional" else f"{options.integrals}-{method}"
        self.header(
            options.title(what.replace("ri-", "RI-").replace("cholesky-", "Cholesky-"), self._mol),
            f"scratch {self.world.scratch}",
        )
        self._source: Source | None = None
        self._predicted: dict[str, PredictedPart] = {}
        self._predict_memory()
        self.predict_file(METHOD, self._largest_file)

    def _check_counts(self, frozen: Frozen) -> None:
        """Raises OutcoreError for options that have no effect with so many correlated orbitals. Collective."""
        occupied, _ = frozen_orbitals.counts(self._mol, frozen, self._spins)
        if not any(occupied):
            self._refuse_amplitudes()

    # ---- memory ----

    @property
    def usual_bytes(self) -> int:
        held = least.FITTED_BYTES if self.options.integrals == "ri" else least.DECOMPOSED_BYTES
        return held + (least.CHECKPOINT_BYTES if self.options.checkpoint else 0)

    def _predict_memory(self) -> None:
        """Predicts the least memory of all stages; for decomposed integrals as soon as their rank is known."""
        from outcore.chem.ri import source
        from outcore.chem.ri.cholesky import Cholesky

        options = self.options
        if options.integrals == "ri":
            auxmol = self._sets["mp2"]
            self.predict_memory(self._needs(int(auxmol.nao), source.cuts_of(auxmol)))
            return
        room = self.refuse_soon(self._mol, self._needs(1, (0, 1)))
        tolerance = Settings(**options.settings()).decomposed_to
        self._source = Cholesky(
            self.world,
            self._mol,
            tolerance,
            room,
            check=lambda found: self.predict_memory(self._needs(found.rank, found.cuts)),
        )

    def _needs(self, rank: int, cuts: Sequence[int]) -> dict[str, int]:
        """The least bytes of each stage in each process, for `rank` three-index functions."""
        from outcore.chem import least_memory

        options, mol, threads = self.options, self._mol, self.threads
        jk_bytes = self._least_of_scf if options.integrals == "ri" else 0
        found = self._least_of_stages(rank, cuts, jk_bytes)
        if options.integrals == "ri":
            return found | {"density-fitted SCF": jk_bytes}
        settings = HFSettings(storage=options.storage)
        scf = least_memory.stored_scf(mol, settings, threads) + least_memory.factor_bytes(rank)
        return found | {"Cholesky decomposition": least_memory.decomposition(mol, rank), "Hartree-Fock": scf}

    @property
    def _spins(self) -> int:
        return 2 if self._open else 1

    @property
    def _least_of_scf(self) -> int:
        return self.least_of_fitted_scf(self._mol, self._sets["jk"], self._spins)

    def _sizes(self, rank: int, cuts: Sequence[int]) -> Sizes | None:
        from outcore.chem.cc import least as of_stages

        options = self.options
        return of_stages.sizes_of(
            self._mol,
            self._frozen,
            spins=self._spins,
            rank=rank,
            cuts=tuple(cuts),
            vectors=options.diis,
            method=options.method,
            ladder_type=Settings(**options.settings()).ladder_type,
        )

    @property
    def _follows(self) -> AfterIterations:
        """The stages after iterations that the options ask for."""
        from outcore.chem.cc.least import AfterIterations

        options, relaxed = self.options, self.options.of_density
        return AfterIterations(
            triples=options.triples, multipliers=relaxed, relaxed=relaxed, gradient=options.gradient
        )

    def _least_of_stages(self, rank: int, cuts: Sequence[int], jk_bytes: int) -> dict[str, int]:
        """The least bytes of each stage after the SCF, whose J and K take `jk_bytes`."""
        from outcore.chem import least_memory
        from outcore.chem.cc.least import stages
        from outcore.chem.gradients.command import fitting_of

        options, mol = self.options, self._mol
        asked, fitting = self._follows, None
        if asked.relaxed:
            fitting = fitting_of(options, self._sets, jk_bytes)
        sizes, left = self._sizes(rank, cuts), least_memory.left_by_scf(mol)
        return stages(self.world, mol, sizes, self.threads, asked, fitting, left=left)

    # ---- the SCF ----

    def mean_field(self) -> Any:
        """The SCF, which has run; for an estimate, a stand-in with the right number of orbitals."""
        if self.options.estimate:
            return self.stand_in(self._mol, "UHF" if self._open else "RHF")
        if self.options.integrals == "ri":
            mf = self.fitted_scf(self._mol, self._kind, self.options.jkbasis)
            self.renew_world()
            if self.options.of_density:  # the response of orbitals needs J and K
                mf.with_df = mf.with_df.another(mf.with_df.given_auxbasis, self.world)
        else:
            mf = self.stored_scf(self._mol, self._kind)
            references.keep_focks(mf)
            mf.close()
            self.renew_world(mf)
        return mf

    # ---- coupled cluster ----

    def _made(self, mf: Any, *, stands_in: bool = False) -> CCSD:
        """stands_in: `mf` was made by `stand_in`, and the object makes a plan alone."""
        from outcore.chem.cc.ccsd import CCSD

        options, common = self.options, self.common_settings()
        settings = options.settings()
        if stands_in:
            settings.pop("orbitals", None)  # a stand-in has no orbitals that could be made semicanonical
        if options.integrals != "ri":
            common.pop("screening", None)  # only the SCF has a threshold then
        made = CCSD(
            mf,
            options.frozen,
            frozen_virtual=options.frozen_virtual,
            auxbasis=options.auxbasis,
            force=options.force,
            from_amplitudes=options.from_amplitudes,
            source=self._source,
            **common,
            **settings,
        )
        if options.of_density:
            made.later = describe.response_of_triples if options.triples else describe.response
            made.follows = self._follows
        return made

    def _largest_file(self) -> int:
        cc = self._made(self.stand_in(self._mol, "UHF" if self._open else "RHF"), stands_in=True)
        return 0 if cc.uncorrelated else cc.largest_file(cc.estimate())

    def solve(self, mf: Any) -> CCSD:
        options = self.options
        cc = self._made(mf, stands_in=options.estimate)
        self.results |= {
            "frozen": cc.frozen,
            "occupied": [each.sizes[0] for each in cc.spins],
            "virtual": [each.sizes[1] for each in cc.spins],
            "electrons": [int(each.occupied) for each in cc.reference.spins],
        }
        if cc.uncorrelated:
            self._nothing(cc)
        elif options.estimate:
            self._estimate(cc)
        else:
            self._iterate(cc)
        return cc

    def _nothing(self, cc: CCSD) -> None:
        """Reports a run without correlated orbitals."""
        options = self.options
        self._refuse_amplitudes()
        self.say("nothing to correlate, the energy is 0")
        if options.estimate:
            return
        cc.kernel()
        self._energies(cc)
        if options.triples:
            self._triples(cc)
        if options.of_density:
            density_command.of_scf(self, options, cc.scf_object)

    def _refuse_amplitudes(self) -> None:
        options = self.options
        preflight.refuse(
            {"--amplitudes": options.amplitudes, "--from-amplitudes": options.from_amplitudes},
            "where no orbitals are correlated: there are no amplitudes",
        )

    def _iterate(self, cc: CCSD) -> None:
        options = self.options
        for line in cc.summary().split("; "):
            self.say(line)
        if self._tightened:
            self.say(
                f"amplitudes converge to {cc.settings.conv_tol_normt:.0e}, as {options.tightened_by} needs; "
                f"--amplitude-tol is {options.amplitude_tol:.0e}"
            )
        if options.full and cc.plan is not None:
            self.console.print(cc.plan.table())
        if options.amplitudes is not None:
            place = options.amplitudes.absolute().parent
            check_room(cc.world, "write amplitudes", [(place, cc.file_bytes)] if cc.world.rank == 0 else [])
        if options.of_density:
            self._predicted = self._forecast(cc)
        begin = time.monotonic()
        self._set_up(cc)
        cc.on_iteration = _Iterations(self.say)
        cc.on_warning = self.warn
        with self.stages(stay=False) as cc.on_progress:
            cc.kernel()
        self.results |= {
            "cc_seconds": time.monotonic() - begin,
            "iterations": len(cc.iterations),
            "iteration_seconds": [each.seconds for each in cc.iterations],
            "plan": None if cc.plan is None else cc.plan.as_json(),
        }
        self._took(cc)
        self._energies(cc)
        if cc.restricted and self._method.has_singles:
            t1, d1 = cc.get_t1_diagnostic(), cc.get_d1_diagnostic()
            self.say(f"T1 diagnostic {t1:.4f}, D1 diagnostic {d1:.4f}")
            self.results |= {"t1_diagnostic": t1, "d1_diagnostic": d1}
        if cc.natural is not None:
            self._natural(cc)
        if options.amplitudes is not None:
            cc.save_amplitudes(options.amplitudes)
            self.say(f"amplitudes in {options.amplitudes}")
        if options.triples and cc.converged:
            self._triples(cc)
        if options.of_density and cc.converged:
            self._densities(cc)

    def _densities(self, cc: CCSD) -> None:
        begin = time.monotonic()
        with self.stages() as cc.on_progress:
            cc.solve_lambda()
            room = cc.multipliers.room
            before = room.moved
            found = cc.relaxed_densities()
            seconds = time.monotonic() - begin
            iterations = cc.multipliers.iterations
            self.say(f"multipliers in {len(iterations)} iterations, relaxed densities in {seconds:.1f} s")
            self.results |= {"lambda_iterations": len(iterations), "densities_seconds": seconds}
            in_iterations = sum(each.seconds for each in iterations)
            if iterations:
                self._compare({LAMBDA: in_iterations / len(iterations)})
                self._moved(
                    "products of an iteration of multipliers",
                    iterations[-1].moved,
                    "moved_by_products_of_a_lambda_iteration",
                )
            if not cc.has_triples:  # else `_triples` has counted the iterations
                seconds -= in_iterations
            self._compare({f"{DENSITIES} and {RESPONSE}": seconds})
            self._moved("products of densities", room.moved - before, "moved_by_products_of_densities")
            density_command.show(
                self, self.options, self._mol, found.densities, lambda: self._gradient(found)
            )
            density_command.tell_traffic(self, found.traffic())

    def _gradient(self, found: RelaxedResponse) -> Any:
        begin = time.monotonic()
        gradient = found.gradient()
        self._compare({DERIVATIVES: time.monotonic() - begin})
        return gradient

    def _set_up(self, cc: CCSD) -> None:
        begin = time.monotonic()
        with self.stages() as cc.on_progress:
            cc.set_up()
        self.say(f"integrals and first amplitudes in {time.monotonic() - begin:.1f} s")
        if cc.found:
            state = "converged amplitudes" if cc.converged else "amplitudes"
            self.say(f"{state} of iteration {cc.found} found in {self.options.checkpoint}")

    def _estimate(self, cc: CCSD) -> None:
        plan = cc.estimate()
        for line in cc.summary(plan).split("; "):
            self.say(line)
        if self.options.fno:
            self.say("estimated with all virtual orbitals; a run finds how many natural ones remain")
        self.console.print(plan.table())
        if plan.ways:
            self.console.print(plan.ladder_table())
        self.console.print(plan.time(triples=self.options.triples))
        self.results["estimate"] = plan.as_json()
        if self.options.of_density:
            self.results["estimate"]["densities"] = self._estimate_densities(cc, plan)

    # ---- densities and gradients, as predicted ----

    def _forecast(self, cc: CCSD) -> dict[str, PredictedPart]:
        """Each part after the iterations; a run shows predicted beside actual seconds. Collective."""
        free, storage = self.free_bytes() * self.world.size, density_command.place_of(self.options)
        return forecast.after_iterations(cc, self._sets, self._follows, storage, free)

    def _estimate_densities(self, cc: CCSD, plan: Plan) -> dict[str, Any]:
        """Shows and returns the estimates of all parts after the iterations. plan: of the iterations."""
        found = self._forecast(cc)
        for name, part in found.items():
            self.say(f"{name}: {part.told(' an iteration' if name == LAMBDA else '')}")
        gamma = disks.of_densities(plan.sizes)
        self.say(f"three-index densities: on disk {gamma / 1e6:.0f} MB")
        return {name: asdict(part) for name, part in found.items()} | {
            "three-index densities": {"disk_bytes": gamma}
        }

    def _compare(self, seconds: dict[str, float]) -> None:
        """Shows actual beside predicted seconds. seconds: by the name of a part, or of parts joined by 'and'."""
        for name, took in seconds.items():
            parts = [self._predicted[each].seconds for each in name.split(" and ") if each in self._predicted]
            self.say(f"{name}: {took:.2g} s{_predicted(sum(parts), took)}")
            self.results.setdefault("densities_forecast", {})[name] = [sum(parts), took]

    def _took(self, cc: CCSD) -> None:
        """Predicted and actual time and traffic."""
        if cc.plan is None or not cc.iterations:
            return
        mean = sum(each.seconds for each in cc.iterations) / len(cc.iterations)
        self.say(f"iteration: {mean:.2g} s{_predicted(cc.plan.iteration_s, mean)}")
        self._moved("its products", cc.iterations[-1].moved, "moved_by_products_of_an_iteration")

    def _moved(self, what: str, moved: Moved, name: str) -> None:
        """Shows the disk traffic of products. name: in the results."""
        if moved.planned:
            self.say(
                f"{what} moved {moved.counted / 1e6:.0f} MB to and from disk, predicted were "
                f"{moved.planned / 1e6:.0f} MB; the least of each product by itself is {moved.least / 1e6:.0f} MB "
                f"in all, the prediction is {moved.over_least:.2f} times that"
            )
        else:
            self.say(f"{what}: no disk traffic")
        self.results[name] = asdict(moved)

    def _natural(self, cc: CCSD) -> None:
        assert cc.natural is not None
        kept, every = cc.spins[0].virtual, len(cc.natural.occupations)
        self.say(f"natural orbitals          {kept} of {every} virtual ones are correlated")
        self.say(f"lost in second order      {cc.delta_mp2:.10f} Eh; CCSD loses about as much")
        error = cc.fno_error()
        self.say(f"CCSD energy with it       {cc.e_tot + cc.delta_mp2:.10f} Eh, error about {error:.1e} Eh")
        self.results |= {
            "virtual": [kept],
            "virtual_of_all": every,
            "delta_mp2_hartree": cc.delta_mp2,
            "fno_error_hartree": error,
        }

    def _triples(self, cc: CCSD) -> None:
        begin = time.monotonic()
        with self.stages() as cc.on_progress:
            energy = cc.ccsd_t(derivatives=self.options.of_density)
        seconds = time.monotonic() - begin
        plan = None if cc.plan is None else cc.plan.triples
        predicted = "" if plan is None else _predicted(plan.seconds, seconds)
        if self.options.of_density and not cc.uncorrelated:
            predicted = " with derivatives and multipliers"
            in_iterations = sum(each.seconds for each in cc.multipliers.iterations)
            self._compare({TRIPLES: seconds - in_iterations})
        self.say(f"(T) energy                {energy:.10f} Eh, {seconds:.1f} s{predicted}")
        self.say(f"CCSD(T) energy            {cc.e_tot + energy:.10f} Eh")
        self._moved_by_triples(cc, None if plan is None else plan.bytes)
        if cc.natural is not None:
            error = cc.fno_error(triples=True)
            total = cc.e_tot + energy + cc.delta_mp2
            self.say(f"CCSD(T) energy with MP2   {total:.10f} Eh, error about {error:.1e} Eh")
            self.results["fno_triples_error_hartree"] = error
        self.results |= {
            "triples_hartree": energy,
            "ccsd_t_energy_hartree": cc.e_tot + energy,
            "triples_seconds": seconds,
        }

    def _moved_by_triples(self, cc: CCSD, predicted: float | None) -> None:
        """Shows the disk traffic of (T), with derivatives if it has them. predicted: bytes without derivatives."""
        moved = cc.moved_by_triples
        if moved is None:
            return
        self.results["moved_by_triples"] = asdict(moved)
        if not moved.planned:
            self.say("(T): no disk traffic")
        elif self.options.of_density:
            self.say(
                f"(T) with derivatives moved {moved.counted / 1e6:.0f} MB to and from disk, a whole one moves "
                f"{moved.planned / 1e6:.0f} MB, {moved.over_least:.2f} times the least"
            )
        else:
            told = "" if predicted is None else f"predicted were {predicted / 1e6:.0f} MB; "
            self.say(
                f"(T) read {moved.counted / 1e6:.0f} MB from disk, {told}a whole (T) reads "
                f"{moved.planned / 1e6:.0f} MB, {moved.over_least:.2f} times the least"
            )

    def _energies(self, cc: CCSD) -> None:
        name, title = self.options.method, self._method.title
        self.say(f"{title + ' correlation energy':25s} {cc.e_corr:.10f} Eh")
        self.say(f"{title + ' energy':25s} {cc.e_tot:.10f} Eh")
        self.results |= {
            f"{name}_correlation_hartree": cc.e_corr,
            f"{name}_energy_hartree": cc.e_tot,
            "converged": cc.converged,
        }

    def end(self, cc: CCSD) -> None:
        """Raises NotConverged."""
        cc.close()
        if not self.options.estimate and not cc.converged:
            raise NotConverged(
                None,
                "converge coupled cluster",
                detail=f"after {len(cc.iterations)} iterations the amplitudes change by "
                f"{cc.iterations[-1].norm:.1e}; raise --iterations, or try --level-shift 0.3 or --damping 0.5",
            )


def carry_out(run: CoupledClusterRun) -> int:
    """All stages of a run; its exit status."""
    with run:
        mf = run.mean_field()
        cc = run.solve(mf)
        run.finish(run.world)
        run.end(cc)
    return run.status


def _predicted(predicted: float, actual: float) -> str:
    """The predicted seconds, to be shown after the actual ones. A plan leaves out overheads, such as starting
    products, which are most of the time of a small system."""
    why = ": overheads dominate in small systems" if predicted < _SHORT_S and actual > 2 * predicted else ""
    return f" (predicted {predicted:.2g} s{why})"


class _Iterations:
    """Shows a line for each iteration."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._shown = say, False

    def __call__(self, found: Iteration) -> None:
        if not self._shown:
            self._say(f"{'iter':>5} {'correlation / Eh':>20} {'change':>10} {'|dt|':>9} {'s':>8}")
        self._shown = True
        self._say(
            f"{found.number:5d} {found.energy:20.10f} {found.change:10.2e} {found.norm:9.2e} {found.seconds:8.2f}"
        )
