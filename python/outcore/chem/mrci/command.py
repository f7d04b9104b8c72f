"""The `outcore mrci` command."""

from __future__ import annotations

import time
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged
from outcore.chem import least as bounds
from outcore.chem.gradients.command import moments
from outcore.chem.hf.settings import METHOD
from outcore.chem.hf.settings import Settings as ScfSettings
from outcore.chem.mrci import density
from outcore.chem.mrci.estimate import forecast
from outcore.chem.mrci.options import Options
from outcore.chem.mrci.settings import Settings
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.mean_field import Kind
    from outcore.chem.mrci.mrci import MRCI
    from outcore.chem.mrci.packed import RecordSizes
    from outcore.chem.mrci.solver import Iteration
    from outcore.chem.mrci.spaces import OrbitalChoice
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.source import Source

_SHOWN = 0.01  # natural occupations below it are not printed
NAMES = {"ci": "MRCI", "acpf": "MR-ACPF", "aqcc": "MR-AQCC"}  # names of functionals


@with_options
def mrci(options: Options) -> int:
    """Multireference CI of a molecule after its SCF, or with the integrals of an FCIDUMP file: all single and
    double excitations from references. Exit status 3: the energy is there, but the state of the SCF is a saddle
    point that could not be left, or there is no room for integrals as fine as its energy needs."""
    with _Run(options) as run:
        ci = run.of_file() if options.fcidump is not None else run.of_molecule()
        run.solve(ci)
        run.finish(run.world)
        run.refuse_unconverged(ci)
    return run.status


def in_words(traffic: RecordSizes) -> str:
    if not traffic.count:
        return "none"
    return (
        f"{traffic.count} requests, {traffic.bytes / 1e6:.1f} MB, of {traffic.least} to {traffic.most} bytes, "
        f"{traffic.mean:.0f} in the mean"
    )


class _Run(MoleculeRun):
    """The stages of a run, and their output."""

    options: Options
    _source: Source | None = None

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.asked = min(self.asked, options.residual / 100)  # residuals enter energies squared
        name = NAMES[options.functional]
        self.energies = MappingProxyType(
            {
                "scf_energy_hartree": "SCF energy",
                "reference_energies_hartree": "reference energy",
                "energies_hartree": f"{name} energy",
            }
        )
        self.open_world()

    @property
    def usual_bytes(self) -> int:
        return {
            "conventional": bounds.STORED_BYTES,
            "ri": bounds.FITTED_BYTES,
            "cholesky": bounds.DECOMPOSED_BYTES,
        }[self.options.integrals]

    def of_molecule(self) -> MRCI:
        from outcore.chem.mrci import spaces
        from outcore.chem.mrci.mrci import MRCI
        from outcore.chem.mrci.orbitals import Group
        from outcore.chem.symmetry import group_line, with_symmetry

        options = self.options
        plain = self.build()
        asked = options.asked(plain, int(plain.nao), plain.nelec)
        mol = with_symmetry(plain, options.group or "auto") or plain
        kind: Kind = "ROHF" if options.rohf or mol.spin else "RHF"
        self.header(
            options.title(f"{NAMES[options.functional]}({kind})", mol), f"scratch {self.world.scratch}"
        )
        self.say(group_line(mol))
        sets = self._check(mol, spaces.before_scf(mol, asked, Group.of(mol).number_of))
        given: dict[str, Any] = {
            **asdict(asked),
            "group": None if mol.symmetry else "C1",
            **self._given(),
        }
        self.refuse_soon(mol, self._of_scf(mol, kind, sets))
        ci = self.with_first_orbitals(
            lambda: MRCI.from_mean_field(self.first_orbitals(mol, kind), with_integrals=False, **given)
        )
        self._predict_memory(mol, kind, ci, sets)
        if ci is None or not options.estimate:
            ci = MRCI.from_mean_field(self._mean_field(mol, kind), **given | self._given())
        for note in ci.orbitals.notes:
            self.say(note)
        return ci

    def _check(self, mol: Mole, choice: OrbitalChoice | None) -> dict[Purpose, Mole]:
        """Checks the calculation before an SCF. Returns the molecules with auxiliary sets."""
        from outcore.chem.ci.target import AskedStates
        from outcore.chem.mrci import before
        from outcore.job.processes import free_memory_of_each

        options, sets = self.options, dict[Any, Any]()
        if options.integrals == "ri":
            with self.world.together("auxiliary basis", str(options.auxbasis), str(options.jkbasis)):
                sets = self.check_auxiliary(mol, {"jk": options.jkbasis, "mp2": options.auxbasis})
        if not options.estimate:
            free = free_memory_of_each(self.world, options.memory_bytes, self.threads)
            states = AskedStates(options.irrep, int(mol.spin), options.roots)
            before.check(self.world, mol, choice, states, Settings(**options.settings()), free)
        return sets

    def _predict_memory(self, mol: Mole, kind: Kind, first: MRCI | None, sets: dict[Purpose, Mole]) -> None:
        """Determines the least memory of all stages. first: a CI with the start orbitals of the SCF, whose irreps
        matter; None: the least memory is that of the SCF. With decomposed integrals it depends on the pivots, which
        are searched only if the decision depends on them."""
        from outcore.chem import least_memory
        from outcore.chem.mrci import plan
        from outcore.chem.ri.cholesky import Cholesky

        options, n = self.options, int(mol.nao)
        if first is None:
            self.predict_memory(self._of_scf(mol, kind, sets))
            return

        def stages(rank: int | None) -> dict[str, int]:
            left = least_memory.left_by_scf(mol)
            own = plan.least_bytes(first, n, rank).items()
            return {name: left + needed for name, needed in own} | self._of_scf(mol, kind, sets)

        def least(rank: int) -> dict[str, int]:
            decomposed = stages(rank)
            decomposed["Cholesky decomposition"] = least_memory.decomposition(mol, rank)
            decomposed[METHOD] += least_memory.factor_bytes(rank)
            libraries = bounds.DECOMPOSED_BYTES - self.usual_bytes
            decomposed = {name: libraries + needed for name, needed in decomposed.items()}
            return min(decomposed, whole, key=lambda each: max(each.values())) if whole else decomposed

        whole = stages(None) if options.integrals == "conventional" else {}
        if options.integrals == "ri":
            self.predict_memory(stages(int(sets["mp2"].nao)))
            return
        free = self.free_bytes()
        decides = not whole or max(whole.values()) > least_memory.decomposition(mol, 1)
        if whole and (not decides or (max(whole.values()) <= free and not options.estimate)):
            self.predict_memory(whole)
            return
        room = self.refuse_soon(mol, least(1))
        self._source = Cholesky(
            self.world,
            mol,
            first.settings.decomposed_to,
            room,
            check=lambda source: self.predict_memory(least(source.rank)),
        )

    def _of_scf(self, mol: Mole, kind: Kind, sets: dict[Purpose, Mole]) -> dict[str, int]:
        from outcore.chem import least_memory

        options = self.options
        if options.integrals != "ri":
            settings = ScfSettings(storage=options.storage)
            return {METHOD: least_memory.stored_scf(mol, settings, self.threads)}
        return {"density-fitted SCF": self.least_of_fitted_scf(mol, sets["jk"], 1 if kind == "RHF" else 2)}

    def _mean_field(self, mol: Mole, kind: Kind) -> Any:
        if self.options.integrals == "ri":
            mf = self.fitted_scf(mol, kind, self.options.jkbasis)
            self.renew_world()
        else:
            mf = self.stored_scf(mol, kind)
            mf.close()
            self.renew_world(mf)
        return mf

    def of_file(self) -> MRCI:
        from outcore.chem.ci import fcidump
        from outcore.chem.mrci.mrci import MRCI

        options, path = self.options, self.options.fcidump
        assert path is not None
        asked: Any = None
        with self.world.together("read FCIDUMP", str(path)):
            if self.world.rank == 0:
                dump = fcidump.read(path) if options.cas is not None else None
                counts = (0, (0, 0)) if dump is None else (dump.hamiltonian.orbitals, dump.electrons)
                asked = options.asked(None, *counts)
        ci = MRCI.from_fcidump(path, **asdict(self.world.broadcast(asked)), **self._given())
        name = NAMES[options.functional]
        self.header(
            f"{name}  {path}: {sum(ci.electrons)} electrons, {ci.orbitals.count} orbitals",
            f"scratch {self.world.scratch}",
        )
        return ci

    def _given(self) -> dict[str, Any]:
        options = self.options
        return {
            "irrep": options.irrep,
            "spin": options.spin,
            "roots": options.roots,
            **self.means,
            "source": self._source,
            "checkpoint": options.checkpoint,
            **options.settings(),
        }

    def solve(self, ci: MRCI) -> None:
        options, records, functions = self.options, ci.records, ci.functions
        choice, name = ci.orbitals.choice, ci.orbitals.group.irreps[ci.irrep]
        for note in ci.orbitals.notes:
            self.say(note)
        self.say(
            f"{ci.electrons[0]}+{ci.electrons[1]} electrons in {ci.orbitals.count} orbitals: {choice.inactive} "
            f"inactive, {choice.active} active, {len(records.orbitals.external)} external; {choice.frozen} frozen"
            + (f", {choice.left_out} virtual ones too" if choice.left_out else "")
        )
        by_weight = options.estimate and isinstance(ci.settings.references, float)
        references = f"{'at most ' if by_weight else ''}{len(records.references)} references"
        self.say(
            f"{ci.roots} {'root' if ci.roots == 1 else 'roots'} of {name}, 2S = {ci.spin}: "
            f"{references}, {records.determinants} determinants, {functions.total} spin "
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
        if by_weight:
            self.say("references are chosen by their weight, after the SCF")
        if options.estimate:
            found = forecast(ci)
            for line in found.lines():
                self.say(line)
            self.results |= {"estimate": asdict(found)}
            return
        if options.natural or options.dipole or options.density is not None:
            density.check_pairs(ci.electrons)
        if ci.orbitals.two.title:
            self.say(f"integrals: {ci.orbitals.two.title}")
        ci.verbose = 0  # the command says it
        ci.on_iteration = self._told
        begin = time.monotonic()
        ci.kernel()
        seconds = time.monotonic() - begin
        if ci.went_on:
            self.say(f"continued from states in {options.checkpoint}")
        self._energies(ci, seconds)
        if options.dipole:
            open_shells = ci.electrons[0] != ci.electrons[1]
            moments(self, ci.orbitals.mol, ci.make_rdm1s(ao_repr=True), open_shells=open_shells)
        if options.density is not None:
            ci.write_density(options.density, int(options.density_of) - 1)
            self.say(f"wrote {options.density}")
            self.results["density_file"] = str(options.density)

    def _told(self, iteration: Iteration) -> None:
        energies = " ".join(f"{each:.9f}" for each in iteration.energies)
        self.say(
            f"iteration {iteration.number}: correlation energy {energies} Eh, residual "
            f"{iteration.residuals.max():.1e}, {iteration.seconds:.2f} s, waited {iteration.waited_seconds:.2f} s"
        )

    def _energies(self, ci: MRCI, seconds: float) -> None:
        name = NAMES[self.options.functional]
        energies, before = np.atleast_1d(ci.e_tot), np.atleast_1d(ci.e_reference)
        roots = []
        for root, energy in enumerate(energies):
            weight, own, passed = ci.reference_weight(root), ci.own_weight(root), ci.passed_over(root)
            self.say(f"reference energy of root {root + 1}: {before[root]:.10f} Eh")
            self.say(
                f"{name} energy of root {root + 1}: {energy:.10f} Eh, weight of references {weight:.4f}, "
                f"of its own state {own:.4f}"
            )
            if passed:
                states = "state lies" if passed == 1 else "states lie"
                self.say(f"  at least {passed} {states} lower, less like this state of the references")
            found: dict[str, Any] = {"reference_weight": weight, "own_weight": own, "passed_over": passed}
            if self.options.plus_q:
                found["corrections_hartree"] = asdict(ci.corrections(root))
                for kind, value in found["corrections_hartree"].items():
                    self.say(f"  {kind:<12} {value:.8f}, energy {energy + value:.8f} Eh")
            if self.options.natural:
                found |= self._natural(ci, root)
            roots.append(found)
        order = (np.argsort(energies, kind="stable") + 1).tolist()
        if order != sorted(order):
            self.say(
                "roots are in the order of the states of the references that they follow; from the lowest energy "
                f"up they are {', '.join(map(str, order))}"
            )
        self.say(f"{len(ci.found.iterations)} iterations, {seconds:.1f} s")
        if ci.streamed_bytes:
            self.say(
                f"each product read integrals between external pairs from disk, {ci.streamed_bytes / 1e6:.1f} MB"
            )
        self.results |= {
            "energies_hartree": energies.tolist(),
            "reference_energies_hartree": before.tolist(),
            "converged": ci.converged,
            "iterations": len(ci.found.iterations),
            "mrci_seconds": seconds,
            "roots": roots,
            "order_of_energies": order,
            "integrals_on_disk_bytes": ci.streamed_bytes,
        }
        if ci.report is not None:
            self._packed(ci)

    def _natural(self, ci: MRCI, root: int) -> dict[str, Any]:
        natural = ci.natural_orbitals(root)
        shown = [
            f"{occupation:.4f} {irrep}"
            for occupation, irrep in zip(natural.occupations, natural.irreps, strict=True)
            if occupation >= _SHOWN
        ]
        self.say(f"  natural occupations of {_SHOWN} or more: {', '.join(shown)}")
        return {"natural_occupations": natural.occupations.tolist(), "natural_irreps": natural.irreps}

    def _packed(self, ci: MRCI) -> None:
        report = ci.report
        assert report is not None
        self.say(
            f"vectors {report.raw_bytes / 1e6:.1f} MB, packed {report.packed_bytes / 1e6:.1f} MB, "
            f"{report.bits:.1f} bits an element; {report.memory_bytes / 1e6:.1f} MB in memory, "
            f"{report.file_bytes / 1e6:.1f} MB ({100 * report.spilled:.0f} %) in the file"
        )
        for name, all_of_them, of_file in (
            ("read", report.reads, report.file_reads),
            ("written", report.writes, report.file_writes),
        ):
            self.say(f"records {name}: {in_words(all_of_them)}; of the file {in_words(of_file)}")
        if report.over_least is not None:
            self.say(f"file: {report.over_least:.2f} times the least that iterations move by their formulas")
        elif not report.file_bytes:
            self.say("file: no traffic, all vectors in memory")
        self.say(f"waited {report.blocked_seconds:.1f} s for records")
        if self.options.error_bound:
            self.say(
                f"packing raises the energy by {ci.packing_error:.1e} Eh, bound {self.options.error_bound:.1e}"
            )
        derived = {name: getattr(report, name) for name in ("bits", "spilled", "over_least")}
        self.results |= {"vectors": asdict(report) | derived}
        self.results |= {"packing_error_hartree": ci.packing_error}

    def refuse_unconverged(self, ci: MRCI) -> None:
        if not self.options.estimate and not ci.converged:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"{ci.found.why}; raise --iterations",
            )
        ci.close()
