"""The `outcore ccsd` command."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from outcore.base.errors import NotConverged
from outcore.chem import scf_options
from outcore.chem.cc.options import Options
from outcore.chem.hf.view import Cycles, refuse_unconverged
from outcore.cli.run import Run, with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.iteration import Iteration
    from outcore.job.world import World


@with_options
def ccsd(options: Options) -> int:
    """CCSD after a Hartree-Fock calculation, of closed and open shells; amplitudes and integrals in memory or on
    disk."""
    with _Run(options) as run:
        mf = run.mean_field()
        cc = run.solve(mf)
        run.finish(run.world)
        run.refuse_unconverged(cc)
    return 0


class _Run(Run):
    """The stages of a run, and what is shown of them."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        from outcore.chem.frozen import count_frozen

        self._options = options
        self.kept_at = options.checkpoint
        self._mol: Mole = options.build(self.say)
        self._kind: Literal["RHF", "UHF", "ROHF"] = (
            "ROHF" if options.rohf else "UHF" if options.uhf or self._mol.spin else "RHF"
        )
        count_frozen(self._mol, options.frozen, max(self._mol.nelec))
        self._check_auxiliary()
        self.world = self._new_world()
        method = ("CCSD(T)" if options.triples else "CCSD") + (
            "" if self._kind == "RHF" else f"({self._kind})"
        )
        what = method if options.integrals == "conventional" else f"{options.integrals}-{method}"
        self.header(
            options.title(what.replace("ri-", "RI-").replace("cholesky-", "Cholesky-"), self._mol),
            f"scratch {self.world.scratch}",
        )

    def _check_auxiliary(self) -> None:
        from outcore.chem.ri import auxiliary

        if self._options.integrals == "ri":
            auxiliary.build(self._mol, self._options.jkbasis, "jk")
            auxiliary.build(self._mol, self._options.auxbasis, "mp2")

    def _new_world(self) -> World:
        from outcore.job.processes import make_world

        return make_world(self.comm, self._options.memory_bytes, self._options.scratch)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if not isinstance(error, KeyboardInterrupt):  # which this process alone may have got
            self.world.close()

    # ---- the SCF ----

    def mean_field(self) -> Any:
        """The SCF, run; of an estimate, orbitals of the right number."""
        options = self._options
        if options.estimate:
            return self._stand_in()
        begin = time.monotonic()
        mf = self._fitted() if options.integrals == "ri" else self._stored()
        refuse_unconverged(mf)
        seconds = time.monotonic() - begin
        self.say(f"{self._kind} energy {mf.e_tot:.10f} Eh, converged in {mf.cycles} cycles, {seconds:.1f} s")
        self.results |= {"scf_energy_hartree": float(mf.e_tot), "scf_seconds": seconds}
        self.world.close()  # what its arrays have taken is free for those of coupled cluster
        self.world = self._new_world()
        return mf

    def _fitted(self) -> Any:
        from outcore.chem import ri
        from outcore.chem.ri.problem import settings as problem

        options = self._options
        given: dict[str, Any] = {
            "threads": options.threads,
            "memory": options.memory,
            "storage": options.storage,
        }
        given |= {"checkpoint": options.checkpoint, "comm": self.world}
        if options.screening is not None:
            given["screening"] = options.screening
        mf = getattr(ri, self._kind)(self._mol, options.jkbasis, **given)
        fitting = mf.with_df
        self._converge(
            mf, lambda: problem(self._mol, fitting.auxiliary_molecule(), fitting.screening), self.world
        )
        fitting.close_integrals()
        return mf

    def _stored(self) -> Any:
        from outcore.chem.hf import scf as methods

        options = self._options
        given = {
            "storage": "disk" if options.storage == "disk" else "auto",
            "screening": options.screening,
            "scratch": options.scratch,
            "threads": options.threads,
            "memory_bytes": options.memory_bytes,
        }
        mf = getattr(methods, self._kind)(
            self._mol, comm=self.comm, **{name: each for name, each in given.items() if each is not None}
        )
        self._converge(mf, dict, mf.world)
        mf.close()
        return mf

    def _converge(self, mf: Any, more: Any, world: World) -> None:
        from outcore.chem import restart

        options = self._options
        mf.conv_tol = scf_options.convergence(None) if options.conv_tol is None else options.conv_tol
        mf.max_cycle, mf.chkfile = options.max_cycle, None
        mf.init_guess = options.guess or scf_options.GUESSES[0]
        found, keeper = restart.begin(
            mf, self._kind, world, self.say, checkpoint=options.checkpoint, restart=options.restart, more=more
        )
        if found is not None and found.finished(mf):
            found.restore(mf)
            self.say(f"converged orbitals found in {options.checkpoint}")
            return
        mf.callback = Cycles(self.say, keeper)
        mf.kernel(None if found is None else found.density(mf))
        with world.together("keep orbitals"):
            if keeper is not None:
                keeper.finish()

    def _stand_in(self) -> Any:
        from outcore.chem import mean_field

        mf = mean_field.make(self._mol, self._kind)
        density = mf.get_init_guess(self._mol, self._options.guess or scf_options.GUESSES[0])
        mf.mo_energy, mf.mo_coeff = mf.eig(mf.get_fock(dm=density), mf.get_ovlp())
        mf.mo_occ = mf.get_occ(mf.mo_energy, mf.mo_coeff)
        return mf

    # ---- coupled cluster ----

    def solve(self, mf: Any) -> CCSD:
        from outcore.chem.cc.ccsd import CCSD

        options = self._options
        given: dict[str, Any] = {} if options.screening is None else {"screening": options.screening}
        cc = CCSD(
            mf,
            options.frozen,
            options.auxbasis,
            force=options.estimate,
            memory=options.memory,
            threads=options.threads,
            storage=options.storage,
            checkpoint=options.checkpoint,
            comm=self.world,
            **given,
            **options.settings(),
        )
        self.results |= {
            "frozen": cc.frozen,
            "occupied": [each.occupied for each in cc.spins],
            "virtual": [each.virtual for each in cc.spins],
        }
        if cc.uncorrelated:
            self.say("nothing to correlate, the energy is 0")
            cc.kernel()
            self._energies(cc)
            return cc
        for line in cc.summary().split("; "):
            self.say(line)
        if options.estimate:
            assert cc.plan is not None
            self.console.print(cc.plan.table())
            self.results["estimate"] = cc.plan.as_json()
            return cc
        if options.full and cc.plan is not None:
            self.console.print(cc.plan.table())
        begin = time.monotonic()
        with self.stages() as cc.on_progress:
            cc.set_up()
        seconds = time.monotonic() - begin
        self.say(f"integrals and first amplitudes in {seconds:.1f} s")
        if cc.found:
            state = "converged amplitudes" if cc.converged else "amplitudes"
            self.say(f"{state} of iteration {cc.found} found in {options.checkpoint}")
        cc.on_iteration = _Iterations(self)
        cc.kernel()
        self.results |= {"cc_seconds": time.monotonic() - begin, "iterations": len(cc.iterations)}
        self._energies(cc)
        if cc.restricted:
            t1, d1 = cc.t1_diagnostic(), cc.d1_diagnostic()
            self.say(f"T1 diagnostic {t1:.4f}, D1 diagnostic {d1:.4f}")
            self.results |= {"t1_diagnostic": t1, "d1_diagnostic": d1}
        if cc.natural is not None:
            self._natural(cc)
        if options.triples and cc.converged:
            self._triples(cc)
        return cc

    def _natural(self, cc: CCSD) -> None:
        assert cc.natural is not None
        kept, every = cc.spins[0].virtual, len(cc.natural.occupations)
        self.say(f"natural orbitals          {kept} of {every} virtual ones are correlated")
        self.say(f"lost in second order      {cc.delta_mp2:.10f} Eh, which CCSD loses about")
        self.say(f"CCSD energy with it       {cc.e_tot + cc.delta_mp2:.10f} Eh")
        self.results |= {"virtual": [kept], "virtual_of_all": every, "delta_mp2_hartree": cc.delta_mp2}

    def _triples(self, cc: CCSD) -> None:
        begin = time.monotonic()
        with self.stages() as cc.on_progress:
            energy = cc.ccsd_t()
        seconds = time.monotonic() - begin
        self.say(f"(T) energy                {energy:.10f} Eh, {seconds:.1f} s")
        self.say(f"CCSD(T) energy            {cc.e_tot + energy:.10f} Eh")
        self.results |= {
            "triples_hartree": energy,
            "ccsd_t_energy_hartree": cc.e_tot + energy,
            "triples_seconds": seconds,
        }

    def _energies(self, cc: CCSD) -> None:
        self.say(f"CCSD correlation energy   {cc.e_corr:.10f} Eh")
        self.say(f"CCSD energy               {cc.e_tot:.10f} Eh")
        self.results |= {
            "ccsd_correlation_hartree": cc.e_corr,
            "ccsd_energy_hartree": cc.e_tot,
            "converged": cc.converged,
        }

    def refuse_unconverged(self, cc: CCSD) -> None:
        if not self._options.estimate and not cc.converged:
            raise NotConverged(
                None,
                "converge coupled cluster",
                detail=f"after {len(cc.iterations)} iterations the amplitudes change by "
                f"{cc.iterations[-1].norm:.1e}; raise --iterations, or try --level-shift 0.3 or --damping 0.5",
            )
        cc.close()


class _Iterations:
    """A line for each iteration."""

    def __init__(self, run: Run) -> None:
        self._run, self._shown = run, False

    def __call__(self, found: Iteration) -> None:
        if not self._shown:
            self._run.say(f"{'iter':>5} {'correlation / Eh':>20} {'change':>10} {'|dt|':>9} {'s':>8}")
        self._shown = True
        self._run.say(
            f"{found.number:5d} {found.energy:20.10f} {found.change:10.2e} {found.norm:9.2e} {found.seconds:8.2f}"
        )
