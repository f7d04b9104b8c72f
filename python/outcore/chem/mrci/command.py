"""The `outcore mrci` command."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged
from outcore.chem import scf_options
from outcore.chem.hf.view import Cycles, refuse_unconverged
from outcore.chem.mrci.estimate import forecast
from outcore.chem.mrci.options import Options
from outcore.cli.run import Run, with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.mrci.mrci import MRCI
    from outcore.chem.mrci.solver import Iteration
    from outcore.job.world import World


@with_options
def mrci(options: Options) -> int:
    """Multireference CI of a molecule after its SCF: all single and double excitations from references."""
    with _Run(options) as run:
        ci = run.of_molecule()
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

    def of_molecule(self) -> MRCI:
        from outcore.chem.ci import orbitals
        from outcore.chem.frozen import count_frozen
        from outcore.chem.mrci.mrci import MRCI

        options = self._options
        plain = options.build(self.say)
        frozen = count_frozen(plain, options.frozen, min(plain.nelec))
        inactive, active = options.orbitals(plain.nelectron, frozen)
        mol: Mole = orbitals.with_symmetry(plain, options.group or "auto") or plain
        kind = "ROHF" if options.rohf or mol.spin else "RHF"
        name = {"ci": "MRCI", "acpf": "MR-ACPF", "aqcc": "MR-AQCC"}[options.functional]
        self.header(options.title(f"{name}({kind})", mol), f"scratch {self.world.scratch}")
        self.say(f"point group {mol.groupname if mol.symmetry else 'C1'}")
        mf = self._forecast(mol, kind) if options.estimate else self._mean_field(mol, kind)
        ci = MRCI.from_mean_field(
            mf,
            inactive=inactive,
            active=active,
            frozen=frozen,
            group=None if mol.symmetry else "C1",
            irrep=options.irrep,
            spin=options.spin,
            roots=options.roots,
            memory=options.memory,
            threads=options.threads,
            comm=self.world,
            integrals=not options.estimate,
            **options.settings(),
        )
        if not options.estimate:
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
        begin = time.monotonic()
        found, keeper = restart.begin(
            mf, kind, mf.world, self.say, checkpoint=options.checkpoint, restart=options.restart
        )
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

    def _forecast(self, mol: Mole, kind: str) -> Any:
        """Orbitals that an SCF begins with: only their irreps count."""
        from outcore.chem import mean_field

        mf = mean_field.make(mol, "ROHF" if kind == "ROHF" else "RHF")
        density = mf.get_init_guess(mol, self._options.guess or scf_options.GUESSES[0])
        mf.mo_energy, mf.mo_coeff = mf.eig(mf.get_fock(dm=density), mf.get_ovlp())
        mf.mo_occ = mf.get_occ(mf.mo_energy, mf.mo_coeff)
        mf.converged = True
        return mf

    def solve(self, ci: MRCI) -> None:
        options, records, functions = self._options, ci.records, ci.functions
        choice, name = ci.orbitals.choice, ci.orbitals.names[ci.irrep]
        self.say(
            f"{ci.electrons[0]}+{ci.electrons[1]} electrons in {ci.orbitals.count} orbitals: {choice.inactive} "
            f"inactive, {choice.active} active, {len(records.orbitals.external)} external; {choice.frozen} frozen"
        )
        self.say(
            f"{ci.roots} {'root' if ci.roots == 1 else 'roots'} of {name}, 2S = {ci.spin}: "
            f"{len(records.references)} references, {records.determinants} determinants, {functions.total} spin "
            f"functions (z {functions.z}, y {functions.y}, x {functions.x}, w {functions.w})"
        )
        self.results |= {
            "irrep": name,
            "references": len(records.references),
            "determinants": records.determinants,
            "functions": asdict(functions),
            "elements": records.elements,
            "records": len(records),
        }
        if options.estimate:
            found = forecast(ci)
            for line in found.lines():
                self.say(line)
            self.results |= {"estimate": asdict(found)}
            return
        ci.on_iteration = self._told
        begin = time.monotonic()
        ci.kernel()
        seconds = time.monotonic() - begin
        if ci.went_on:
            self.say(f"went on from states in {options.checkpoint}")
        self._energies(ci, seconds)

    def _told(self, iteration: Iteration) -> None:
        energies = " ".join(f"{each:.9f}" for each in iteration.energies)
        self.say(
            f"iteration {iteration.number}: correlation energy {energies} Eh, residual "
            f"{iteration.residuals.max():.1e}, {iteration.seconds:.2f} s, waited {iteration.waited_seconds:.2f} s"
        )

    def _energies(self, ci: MRCI, seconds: float) -> None:
        name = {"ci": "MRCI", "acpf": "MR-ACPF", "aqcc": "MR-AQCC"}[self._options.functional]
        energies, before = np.atleast_1d(ci.e_tot), np.atleast_1d(ci.e_reference)
        roots = []
        for root, energy in enumerate(energies):
            weight = ci.reference_weight(root)
            self.say(f"reference energy of root {root + 1}: {before[root]:.10f} Eh")
            self.say(f"{name} energy of root {root + 1}: {energy:.10f} Eh, weight of references {weight:.4f}")
            found: dict[str, Any] = {"reference_weight": weight}
            if self._options.plus_q:
                found["corrections_hartree"] = asdict(ci.corrections(root))
                for kind, value in found["corrections_hartree"].items():
                    self.say(f"  {kind:<12} {value:.8f}, energy {energy + value:.8f} Eh")
            roots.append(found)
        self.say(f"{len(ci.found.iterations)} iterations, {seconds:.1f} s")
        self.results |= {
            "energies_hartree": energies.tolist(),
            "reference_energies_hartree": before.tolist(),
            "converged": ci.converged,
            "iterations": len(ci.found.iterations),
            "mrci_seconds": seconds,
            "roots": roots,
        }
        if ci.report is not None:
            self._packed(ci)

    def _packed(self, ci: MRCI) -> None:
        report = ci.report
        assert report is not None
        self.say(
            f"vectors {report.raw_bytes / 1e6:.1f} MB, packed {report.packed_bytes / 1e6:.1f} MB, "
            f"{report.bits:.1f} bits an element, {100 * report.spilled:.0f} % in the file; "
            f"{report.reads} records read, {report.writes} written, {report.moved_bytes / 1e6:.1f} MB, of the file "
            f"{report.file_moved_bytes / 1e6:.1f} MB; waited {report.blocked_seconds:.1f} s"
        )
        if self._options.error_bound:
            self.say(
                f"packing raises the energy by {ci.packing_error:.1e} Eh, bound {self._options.error_bound:.1e}"
            )
        self.results |= {"vectors": asdict(report) | {"bits": report.bits, "spilled": report.spilled}}
        self.results |= {"packing_error_hartree": ci.packing_error}

    def refuse_unconverged(self, ci: MRCI) -> None:
        if not self._options.estimate and not ci.converged:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"after {len(ci.found.iterations)} iterations the residual is "
                f"{ci.found.iterations[-1].residuals.max():.1e} Eh; raise --iterations",
            )
        ci.close()
