"""The `outcore fci` command."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem import scf_options
from outcore.chem.ci.options import Options
from outcore.chem.ci.view import Iterations, StateView, in_one_line, space_lines
from outcore.chem.hf.view import Cycles, refuse_unconverged
from outcore.cli.run import Run, with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ci.fci import FCI
    from outcore.job.world import World


@with_options
def fci(options: Options) -> int:
    """Full CI of a molecule after its SCF, or of the integrals in an FCIDUMP file; vectors in memory or on disk."""
    with _Run(options) as run:
        ci = run.of_file() if options.fcidump is not None else run.of_molecule()
        run.solve(ci)
        run.finish(run.world)
        run.refuse_unconverged(ci)
    return 0


class _Run(Run):
    """The stages of a run, and what is shown of them."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        from outcore.job.processes import make_world

        self._options = options
        self.kept_at = options.checkpoint
        self.world: World = make_world(self.comm, options.memory_bytes, options.scratch)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if not isinstance(error, KeyboardInterrupt):  # which this process alone may have got
            self.world.close()

    # ---- what is solved ----

    def of_file(self) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self._options
        ci = FCI.from_fcidump(str(options.fcidump), irrep=options.irrep, spin=options.spin, **self._given())
        n, electrons = ci.hamiltonian.orbitals, sum(ci.target.electrons)
        self.header(
            f"FCI  {options.fcidump}: {electrons} electrons, {n} orbitals", f"scratch {self.world.scratch}"
        )
        for note in ci.notes:
            self.say(note)
        return ci

    def of_molecule(self) -> FCI:
        from outcore.chem.ci import orbitals
        from outcore.chem.frozen import count_frozen

        options = self._options
        plain = options.build(self.say)
        count_frozen(plain, options.frozen, min(plain.nelec))
        mol: Mole = orbitals.with_symmetry(plain, options.group or "auto") or plain
        kind = "UHF" if options.uhf else "ROHF" if options.rohf or mol.spin else "RHF"
        self.header(options.title(f"FCI({kind})", mol), f"scratch {self.world.scratch}")
        self.say(f"point group {mol.groupname if mol.symmetry else 'C1'}")
        if options.estimate:
            return self._forecast(mol, kind)
        mf = self._mean_field(mol, kind)
        ci = self._made(mf)
        mf.close()
        return ci

    def _mean_field(self, mol: Mole, kind: str) -> Any:
        """The SCF, run."""
        from outcore.chem import restart
        from outcore.chem.hf import scf as methods

        options = self._options
        settings = {
            "storage": options.storage,
            "screening": options.screening,
            "scratch": options.scratch,
            "threads": options.threads,
            "memory_bytes": options.memory_bytes,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        mf = getattr(methods, kind)(mol, comm=self.comm, **given)
        mf.conv_tol = scf_options.convergence(None) if options.conv_tol is None else options.conv_tol
        mf.max_cycle, mf.chkfile = options.max_cycle, None
        mf.init_guess = options.guess or scf_options.GUESSES[0]
        found, keeper = restart.begin(
            mf, kind, mf.world, self.say, checkpoint=options.checkpoint, restart=options.restart
        )
        begin = time.monotonic()
        if found is not None and found.finished(mf):
            found.restore(mf)
            self.say(f"converged orbitals found in {options.checkpoint}")
        else:
            mf.callback = Cycles(self.say, keeper)
            mf.kernel(None if found is None else found.density(mf))
            with mf.world.together("keep orbitals"):
                if keeper is not None:
                    keeper.finish()
        refuse_unconverged(mf)
        seconds = time.monotonic() - begin
        self.say(f"{kind} energy {mf.e_tot:.10f} Eh, converged in {mf.cycles} cycles, {seconds:.1f} s")
        self.results |= {"scf_energy_hartree": float(mf.e_tot), "scf_seconds": seconds}
        return mf

    def _made(self, mf: Any, **more: Any) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self._options
        return FCI(
            mf,
            frozen=options.frozen,
            active=options.active,
            group=None if mf.mol.symmetry else "C1",
            irrep=options.irrep,
            **self._given(),
            **more,
        )

    def _given(self) -> dict[str, Any]:
        options = self._options
        return {
            "roots": options.roots,
            "folded": False if options.unfolded else None,
            "memory": options.memory,
            "threads": options.threads,
            "comm": self.world,
            **options.settings(),
        }

    def _forecast(self, mol: Mole, kind: str) -> FCI:
        """Of orbitals that an SCF begins with: only their irreps count."""
        from outcore.chem import mean_field

        mf = mean_field.make(mol, "UHF" if kind == "UHF" else "ROHF" if kind == "ROHF" else "RHF")
        density = mf.get_init_guess(mol, self._options.guess or scf_options.GUESSES[0])
        mf.mo_energy, mf.mo_coeff = mf.eig(mf.get_fock(dm=density), mf.get_ovlp())
        mf.mo_occ = mf.get_occ(mf.mo_energy, mf.mo_coeff)
        mf.converged = True
        return self._made(mf, integrals=False)

    # ---- the CI ----

    def solve(self, ci: FCI) -> None:
        options = self._options
        for line in space_lines(ci):
            self.say(line)
        self.results |= {
            "orbitals": ci.hamiltonian.orbitals,
            "electrons": list(ci.target.electrons),
            "group": ci.hamiltonian.group,
            "irrep": ci.hamiltonian.names[ci.target.irrep],
            "determinants": ci.space.determinants,
            "blocks": ci.space.blocks,
        }
        if options.write_fcidump is not None and not options.estimate:
            ci.write_fcidump(options.write_fcidump)
            self.say(f"wrote {options.write_fcidump}")
        forecast = ci.forecast()
        if options.estimate:
            self.console.print(forecast.table())
            self.results |= {"estimate": forecast.as_json()}
            return
        for line in str(forecast).splitlines() if options.full else [in_one_line(forecast)]:
            self.say(line)
        ci.on_iteration = Iterations(self.say, ci.hamiltonian.core_energy)
        begin = time.monotonic()
        ci.kernel()
        seconds = time.monotonic() - begin
        view = StateView(ci, self.say)
        view.energies(seconds)
        for line in forecast.against(ci.solved, seconds).splitlines():
            self.say(line)
        self.results |= view.results() | {"fci_seconds": seconds}
        if options.largest:
            self.results |= view.determinants(options.largest)
        if not options.energy_only:
            self.results |= view.densities()
        if options.molden is not None:
            ci.write_molden(options.molden)
            self.say(f"wrote {options.molden}")

    def refuse_unconverged(self, ci: FCI) -> None:
        if not self._options.estimate and not ci.converged:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"after {len(ci.solved.iterations)} iterations the residual is "
                f"{max(ci.solved.residuals):.1e} Eh; raise --iterations or --vectors",
            )
        ci.close()
