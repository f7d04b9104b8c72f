"""The `outcore optimize` command."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import least
from outcore.chem.gradients.options import ASKED
from outcore.chem.options import FROZEN, FROZEN_VIRTUAL, MoleculeOptions
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole

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
        if self.method not in CORRELATED:
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
    """A geometry of least energy, with geomeTRIC. With --checkpoint DIR finished steps are kept, and a run of the
    same command goes on from them."""
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
        open_shells = options.uhf or bool(self._mol.spin)
        self._kind = "UHF" if open_shells else "RHF"
        names: dict[Purpose, str | None] = {}
        if options.method != "scf":
            names["jk"] = options.jkbasis
        if options.method in CORRELATED:
            names["mp2"] = options.auxbasis
        sets = self.check_auxiliary(self._mol, names)
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
        return held + least.OPTIMISER_BYTES

    def _needs(self, sets: dict[Purpose, Mole]) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.frozen import before_scf
        from outcore.chem.gradients import least as of_gradients
        from outcore.chem.gradients.command import fitted_needs, fitting_of
        from outcore.chem.hf.settings import Settings

        options, mol = self.options, self._mol
        spins = 1 if self._kind == "RHF" else 2
        if options.method == "scf":
            given: dict[str, Any] = {
                "storage": options.storage,
                "threads": options.threads,
                "screening": options.screening,
            }
            settings = replace(Settings(), **{name: each for name, each in given.items() if each is not None})
            scf = least_memory.stored_scf(mol, settings, self.threads)
            return {"SCF": scf, "gradient": scf + of_gradients.of_exact(mol, spins, self.threads)}
        frozen = None
        if options.method in CORRELATED:
            frozen = before_scf(mol, options.frozen, options.frozen_virtual, spins=spins)
        if frozen is None or options.method == "rimp2":
            return fitted_needs(self, mol, sets, frozen, spins, gradient=True, relaxed=True)
        from outcore.chem.cc.least import AfterIterations, sizes_of, stages
        from outcore.chem.cc.settings import Settings as CCSettings

        found = fitted_needs(self, mol, sets, None, spins, gradient=False, relaxed=False)
        vectors, rank = CCSettings.diis_space, int(sets["mp2"].nao)
        sizes = sizes_of(mol, frozen, spins=spins, rank=rank, vectors=vectors, auxmol=sets["mp2"])
        triples = options.method == "ccsd(t)"
        asked = AfterIterations(triples=triples, multipliers=True, relaxed=True, gradient=True)
        fitting = fitting_of(options, sets, max(found.values()))
        left = least_memory.left_by_scf(mol)
        return found | stages(self.world, mol, sizes, self.threads, asked, fitting, left=left)

    def work(self) -> None:
        from outcore.chem.optimize.search import GeometrySearch
        from outcore.chem.optimize.steps import BOHR

        options, mol = self.options, self._mol
        if options.estimate:
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
            mf = getattr(ri, self._kind)(self._mol, options.jkbasis, **self._settings())
        options.set_up(mf, asked=ASKED)
        if options.method not in CORRELATED:
            return mf.nuc_grad_method().as_scanner()
        from outcore.chem.mp2 import MP2

        mf.kernel()
        mf.with_df.close_integrals()
        more = {"auxbasis": options.auxbasis, "frozen_virtual": options.frozen_virtual}
        correlated: dict[str, Any] = self._settings() | more
        if options.method == "rimp2":
            return MP2(mf, options.frozen, **correlated).nuc_grad_method().as_scanner()
        from outcore.chem.cc import CCSD
        from outcore.chem.cc.options import NORM

        ccsd = CCSD(mf, options.frozen, **correlated, conv_tol=ASKED, conv_tol_normt=NORM)
        ccsd.has_triples = options.method == "ccsd(t)"
        return ccsd.nuc_grad_method().as_scanner()

    def _settings(self) -> dict[str, Any]:
        """Settings of a method without a checkpoint: steps are kept, not the stages of each."""
        return self.common_settings() | {"checkpoint": None}

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
        }
        if options.checkpoint is not None:
            options.checkpoint.mkdir(exist_ok=True)
        return GeometrySteps(self._mol, settings, options.checkpoint, options.trajectory)
