"""The `outcore optimize` command."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import least, scf_options
from outcore.chem.gradients.options import ASKED
from outcore.chem.options import FROZEN, FROZEN_VIRTUAL, ROHF, MoleculeOptions
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc import CCSD
    from outcore.chem.cc.least import AfterIterations
    from outcore.chem.gradients.forecast import PredictedPart
    from outcore.chem.mean_field import Kind
    from outcore.chem.mp2 import MP2
    from outcore.chem.optimize.steps import Matrix
    from outcore.chem.ri.auxiliary import Purpose

METHODS = ("scf", "ri-scf", "rimp2", "ccsd", "ccsd(t)")
CORRELATED = METHODS[2:]


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """Options of an optimisation."""

    method: Annotated[str, typer.Option(help=f"Method of energies and gradients: {', '.join(METHODS)}.")] = (
        "ri-scf"
    )
    jkbasis: Annotated[
        str | None,
        typer.Option(help="Auxiliary basis of the SCF, except for scf. Default: that of the basis."),
    ] = None
    auxbasis: Annotated[
        str | None,
        typer.Option(help="Auxiliary basis of rimp2, ccsd and ccsd(t). Default: that of the basis."),
    ] = None
    rohf: Annotated[bool, ROHF] = False
    frozen: Annotated[str, FROZEN] = "0"
    frozen_virtual: Annotated[str, FROZEN_VIRTUAL] = "0"
    convergence: Annotated[
        str,
        typer.Option(
            help="Thresholds of convergence, by geomeTRIC's names: GAU (4.5e-4 Eh/bohr), GAU_TIGHT (1.5e-5), "
            "GAU_VERYTIGHT (2e-6), GAU_LOOSE, TURBOMOLE, NWCHEM_LOOSE."
        ),
    ] = "GAU"
    coordinates: Annotated[
        str, typer.Option(help="Coordinates of the steps: tric, dlc, hdlc, prim (internal ones), or cart.")
    ] = "tric"
    max_steps: Annotated[int, typer.Option(help="Maximum number of steps.")] = 100
    trajectory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all steps here: extended XYZ, in Angstrom and eV."),
    ] = None

    def check(self) -> None:
        from outcore.chem.optimize.search import COORDINATES, SETS

        for option, value, known in (
            ("--method", self.method, METHODS),
            ("--convergence", self.convergence.upper(), SETS),
            ("--coordinates", self.coordinates, COORDINATES),
        ):
            if value not in known:
                raise OutcoreError(errno.EINVAL, f"{option} {value}", detail=f"it may be {', '.join(known)}")
        scf_options.check_one_method(self.uhf, self.rohf)
        if self.method in CORRELATED:
            preflight.refuse(
                {"--rohf": self.rohf}, f"with --method {self.method}, whose gradients are of RHF and UHF"
            )
        else:
            unused = {
                "--auxbasis": self.auxbasis,
                "--frozen": None if self.frozen == "0" else self.frozen,
                "--frozen-virtual": None if self.frozen_virtual == "0" else self.frozen_virtual,
            }
            preflight.refuse(unused, f"with --method {self.method}, which correlates nothing")
        if self.method == "scf":
            preflight.refuse({"--jkbasis": self.jkbasis}, "with --method scf, whose integrals are exact")
        preflight.refuse(
            {
                "--stability": self.stability,
                "--second-order": self.second_order is not None,
                "--swap": self.swap,
                "--restart": self.restart,
                "--save-orbitals": self.save_orbitals,
                "--irrep-nelec": self.irrep_nelec,
            },
            "with optimize, whose steps begin with the density of the step before",
        )
        preflight.check_count("--max-steps", self.max_steps, 1 << 16)
        super().check()

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--trajectory": self.trajectory}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.trajectory, "write the trajectory")


@with_options
def optimize(options: Options) -> int:
    """A geometry of least energy, with geomeTRIC. With --checkpoint DIR finished steps and the checkpoint of the
    step under way are kept, and a run of the same command goes on from them."""
    with _Run(options) as run:
        run.work()
        run.finish(run.world)
    return run.status


class _Run(MoleculeRun):
    options: Options
    energies = MappingProxyType({"energy_hartree": "energy"})

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._mol = self.build()
        _check_atoms(self._mol)
        self._kind: Kind = "ROHF" if options.rohf else "UHF" if options.uhf or self._mol.spin else "RHF"
        names: dict[Purpose, str | None] = {}
        if options.method != "scf":
            names["jk"] = options.jkbasis
        if options.method in CORRELATED:
            names["mp2"] = options.auxbasis
        sets = self._sets = self.check_auxiliary(self._mol, names)
        self.open_world()
        title = {"scf": self._kind, "ri-scf": f"RI-{self._kind}", "rimp2": "RI-MP2"}.get(
            options.method, f"RI-{options.method.upper()}"
        )
        self.header(options.title(title, self._mol), "optimisation", f"scratch {self.world.scratch}")
        self.predict_memory(self._needs(sets))

    @property
    def usual_bytes(self) -> int:
        exact = self.options.method == "scf"
        held = least.STORED_BYTES if exact else least.FITTED_BYTES
        if self.options.checkpoint and self.options.method.startswith("ccsd"):
            held += least.CHECKPOINT_BYTES
        return held + least.OPTIMISER_BYTES

    def _needs(self, sets: dict[Purpose, Mole]) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.frozen import before_scf
        from outcore.chem.gradients import least as of_gradients
        from outcore.chem.gradients.command import fitted_needs, fitting_of

        options, mol = self.options, self._mol
        spins = self._spins
        if options.method == "scf":
            scf = least_memory.stored_scf(mol, self._stored_settings(), self.threads)
            return {"SCF": scf, "gradient": scf + of_gradients.of_exact(mol, spins, self.threads)}
        frozen = None
        if options.method in CORRELATED:
            frozen = before_scf(mol, options.frozen, options.frozen_virtual, spins=spins)
        if frozen is None or options.method == "rimp2":
            return fitted_needs(self, mol, sets, frozen, spins, gradient=True, relaxed=True)
        from outcore.chem.cc.least import sizes_of, stages
        from outcore.chem.cc.settings import Settings as CCSettings

        found = fitted_needs(self, mol, sets, None, spins, gradient=False, relaxed=False)
        vectors, rank = CCSettings.diis_space, int(sets["mp2"].nao)
        sizes = sizes_of(mol, frozen, spins=spins, rank=rank, vectors=vectors, auxmol=sets["mp2"])
        asked = self._after_iterations()
        fitting = fitting_of(options, sets, max(found.values()))
        left = least_memory.left_by_scf(mol)
        return found | stages(self.world, mol, sizes, self.threads, asked, fitting, left=left)

    @property
    def _spins(self) -> int:
        """Spins with orbitals of their own."""
        return 1 if self._kind == "RHF" else 2

    def _stored_settings(self) -> Any:
        from outcore.chem.hf.settings import Settings

        options = self.options
        given: dict[str, Any] = {
            "storage": options.storage,
            "threads": options.threads,
            "screening": options.screening,
        }
        return replace(Settings(), **{name: each for name, each in given.items() if each is not None})

    def _after_iterations(self) -> AfterIterations:
        from outcore.chem.cc.least import AfterIterations

        triples = self.options.method == "ccsd(t)"
        return AfterIterations(triples=triples, multipliers=True, relaxed=True, gradient=True)

    # ---- the estimate of a step ----

    def _estimate(self) -> None:
        """Shows the time of one step, and the most that is on disk."""
        from outcore.chem.gradients.command import tell_parts

        parts = self._stored_parts() if self.options.method == "scf" else self._fitted_parts()
        tell_parts(self, parts, "step_estimate")
        seconds = sum(each.seconds for each in parts.values())
        most = max(each.disk_bytes for each in parts.values())
        self.say(f"one step: {seconds:.3g} s, on disk at most {most / 1e6:.0f} MB")
        self.results |= {"step_seconds": seconds, "disk_bytes": most}

    def _stored_parts(self) -> dict[str, PredictedPart]:
        from outcore.chem.gradients import exact
        from outcore.chem.gradients.forecast import PredictedPart
        from outcore.chem.hf.estimate import forecast

        settings = replace(self._stored_settings(), scratch=self.world.scratch)
        found = forecast(self._mol, settings, self.world)
        name, work = next(
            (name, work) for name, work in found.ways.items() if name.startswith(settings.storage)
        )
        in_memory = found.memory_budget_bytes if name == "auto" else 0
        scf = PredictedPart(work.seconds, max(0, work.bytes - in_memory))
        return {"SCF": scf} | {
            title: PredictedPart(part.seconds, scf.disk_bytes)
            for title, part in exact.parts(self._mol, self.world, self._spins, self.threads).items()
        }

    def _fitted_parts(self) -> dict[str, PredictedPart]:
        from outcore.chem import ri
        from outcore.chem.gradients import forecast
        from outcore.chem.gradients.command import place_of
        from outcore.chem.mean_field import expected_cycles

        options, mol = self.options, self._mol
        given = self.common_settings() | {"checkpoint": None}
        mf = getattr(ri, self._kind)(mol, options.jkbasis, **given)
        options.set_up(mf, asked=ASKED)
        integrals, cycles = mf.with_df.prepare(), expected_cycles(mf)
        free, screening = self.free_bytes() * self.world.size, mf.with_df.screening

        def after() -> forecast.AfterEnergy:
            return forecast.AfterEnergy.of(
                mol,
                self._sets,
                screening,
                spins=self._spins,
                threads=self.threads,
                processes=self.world.size,
                storage=options.storage if options.method == "ri-scf" else place_of(options),
                free_bytes=free,
            )

        parts: dict[str, PredictedPart] = {}
        with self.world.together("estimate"):
            if self.root:
                scf = integrals.forecast(cycles)
                parts["SCF"] = forecast.PredictedPart(scf.seconds, scf.disk_bytes)
                if options.method == "ri-scf":
                    parts |= after().scf()
        mf.with_df.close_integrals()
        parts = self.world.broadcast(parts)
        if options.method == "ri-scf":
            return parts
        if options.method != "rimp2":
            return parts | self._parts_of_ccsd(free)
        mp2 = self._mp2(self.stand_in(mol, self._kind))
        mp2.prepare()
        more: dict[str, PredictedPart] = {}
        with self.world.together("estimate"):
            if self.root:
                energy = mp2.forecast()
                more["RI-MP2"] = forecast.PredictedPart(energy.seconds, energy.disk_bytes)
                more |= after().mp2([each.shape for each in mp2.orbitals], gradient=True)
        return parts | self.world.broadcast(more)

    def _parts_of_ccsd(self, free: int) -> dict[str, PredictedPart]:
        from outcore.chem.cc import forecast
        from outcore.chem.cc.plan.describe import ITERATIONS
        from outcore.chem.gradients.command import place_of
        from outcore.chem.gradients.forecast import PredictedPart

        cc = self._ccsd(self.stand_in(self._mol, self._kind))
        plan = cc.estimate()
        kept = 2 * plan.kept_bytes if self.options.checkpoint else 0
        energy = PredictedPart(plan.seconds_once + ITERATIONS * plan.iteration_s, plan.disk_bytes + kept)
        after = forecast.after_iterations(
            cc, self._sets, self._after_iterations(), place_of(self.options), free
        )
        each = after[forecast.LAMBDA]
        after[forecast.LAMBDA] = replace(each, seconds=ITERATIONS * each.seconds)
        return {"CCSD": energy} | after

    # ---- the optimisation ----

    def work(self) -> None:
        from outcore.chem.optimize.search import GeometrySearch
        from outcore.chem.optimize.steps import BOHR

        options, mol = self.options, self._mol
        if options.estimate:
            self._estimate()
            return
        scanner = self._scanner()
        steps = None
        with self.world.together("kept steps"):
            if self.root:
                steps = self._steps()
        if steps is not None and steps.kept:
            self.say(f"{steps.kept} steps found in {options.checkpoint}")
        self.say(" step          energy (Eh)     change    largest gradient (Eh/bohr)")
        search = GeometrySearch(self.world, mol, scanner, steps, self._tell)
        search.run(options.convergence.upper(), options.coordinates, options.max_steps)
        if options.checkpoint is not None:
            scanner.remove_checkpoint()
        self.say(f"converged in {search.count} steps, E = {search.energy:.10f} Eh; geometry (Angstrom)")
        geometry = [
            [mol.atom_symbol(atom), *map(float, place)] for atom, place in enumerate(search.places * BOHR)
        ]
        for symbol, *place in geometry:
            self.say(f"{symbol:<6}" + "".join(f"{each:17.10f}" for each in place))
        self.results |= {
            "energy_hartree": search.energy,
            "converged": True,
            "steps": search.count,
            "geometry_angstrom": geometry,
            "gradient_hartree_per_bohr": search.gradient.tolist(),
        }

    def _tell(self, number: int, energy: float, change: float, gradient: Matrix, found: bool) -> None:
        kept = "   found" if found else ""
        moved = f"{change:11.2e}" if number > 1 else " " * 11
        self.say(f"{number:5d}{energy:21.10f}{moved}{abs(gradient).max():14.2e}{kept}")

    def _scanner(self) -> Any:
        from outcore.chem import ri
        from outcore.chem.gradients.geometries import GeometryCheckpoint, KeptGradients
        from outcore.chem.hf import scf as stored

        options = self.options
        if options.method == "scf":
            given = {
                "storage": options.storage,
                "screening": options.screening,
                "scratch": options.scratch,
                "threads": options.threads,
                "memory": options.memory,
            }
            mf = getattr(stored, self._kind)(
                self._mol, comm=self.world, **{name: each for name, each in given.items() if each is not None}
            )
        else:
            given = self.common_settings() | {"checkpoint": None}  # it would keep integrals of one geometry
            mf = getattr(ri, self._kind)(self._mol, options.jkbasis, **given)
        options.set_up(mf, asked=ASKED)
        if options.method not in CORRELATED:
            scanner = mf.nuc_grad_method().as_scanner()
            if options.checkpoint is None:
                return scanner
            return KeptGradients(scanner, GeometryCheckpoint(self.world, options.checkpoint))
        mf.kernel()
        mf.with_df.close_integrals()
        if options.method == "rimp2":
            return self._mp2(mf).nuc_grad_method().as_scanner()
        ccsd = self._ccsd(mf)
        ccsd.has_triples = options.method == "ccsd(t)"
        return ccsd.nuc_grad_method().as_scanner()

    def _mp2(self, mf: Any) -> MP2:
        from outcore.chem.mp2 import MP2

        return MP2(mf, self.options.frozen, **self._correlated())

    def _ccsd(self, mf: Any) -> CCSD:
        from outcore.chem.cc import CCSD
        from outcore.chem.cc.options import NORM

        return CCSD(mf, self.options.frozen, **self._correlated(), conv_tol=ASKED, conv_tol_normt=NORM)

    def _correlated(self) -> dict[str, Any]:
        more = {"auxbasis": self.options.auxbasis, "frozen_virtual": self.options.frozen_virtual}
        return self.common_settings() | more

    def _steps(self) -> Any:
        from outcore.chem import problem
        from outcore.chem.optimize.steps import GeometrySteps

        options = self.options
        settings = problem.molecule(self._mol) | {
            "method": options.method,
            "kind": self._kind,
            "auxiliary sets": str(self.results["auxiliary_sets"]),
            "frozen": f"{options.frozen} {options.frozen_virtual}",
            "screening": str(options.screening),
            "conv_tol": str(options.conv_tol),
            # Other starts may lead to other states.
            "start of the SCF": f"{options.guess} {options.scf_level_shift} {options.scf_damping}",
        }
        settings |= {
            f"auxiliary functions ({each})": problem.auxiliary(auxmol)["auxiliary basis"]
            for each, auxmol in self._sets.items()
        }
        if options.checkpoint is not None:
            options.checkpoint.mkdir(exist_ok=True)
        return GeometrySteps(self._mol, settings, options.checkpoint, options.trajectory)


def _check_atoms(mol: Mole) -> None:
    """Raises OutcoreError for a molecule without a geometry that internal coordinates could describe."""
    from pyscf.data.elements import is_ghost_atom

    ghosts = [str(atom + 1) for atom in range(mol.natm) if is_ghost_atom(mol.atom_symbol(atom))]
    detail = ""
    if ghosts:
        detail = f"functions without a nucleus have no bonds: leave the ghosts out (atom {', '.join(ghosts)})"
    elif mol.natm < 2:
        detail = "one atom alone has no geometry"
    if detail:
        raise OutcoreError(errno.ENOTSUP, "optimise", detail=detail)
