"""The `outcore ri-scf` and `outcore rimp2` commands."""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from outcore import _core, trace
from outcore.base.errors import OutcoreError
from outcore.chem import least, occupation, scf_options
from outcore.chem.gradients import command as density_command
from outcore.chem.gradients.options import ASKED
from outcore.chem.options import FROZEN, FROZEN_VIRTUAL, ROHF, SMEARING
from outcore.chem.ri.options import Options
from outcore.chem.ri.traffic import Traffic, TrafficWatch
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options
from outcore.trace import report

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.frozen import Frozen
    from outcore.chem.gradients.forecast import PredictedPart
    from outcore.chem.mp2.mp2 import MP2
    from outcore.chem.operations import FoundOperations
    from outcore.chem.restart import Checkpoint, FoundOrbitals
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.forecast import Forecast
    from outcore.trace.report import RawRates

_AUXILIARY = (
    "Auxiliary basis{}: a name or a file, or 'auto' for even-tempered functions where none is on record. "
    "Default: that of the basis."
)


_SPINS = {"aa": (0, 0), "bb": (1, 1), "ab": (0, 1)}  # spins of the pairs by name


@with_options
def ri_scf(
    options: Options,
    auxbasis: Annotated[str | None, typer.Option(help=_AUXILIARY.format(""))] = None,
    rohf: Annotated[bool, ROHF] = False,
    smearing: Annotated[float, SMEARING] = 0.0,
) -> int:
    """Hartree-Fock with density fitting; three-index integrals in memory and on disk. Exit status 3: the energy is
    there, but its state is a saddle point that could not be left."""
    scf_options.check_one_method(options.uhf, rohf)
    scf_options.check_smearing(vars(options) | {"smearing": smearing, "rohf": rohf})
    options.check_smearing(smearing)
    with _Run(options, {"jk": auxbasis}, rohf=rohf, smearing=smearing) as run:
        run.scf(auxbasis)
        run.densities_of_scf()
        run.io_report()
        run.finish(run.world)
    return run.status


@with_options
def rimp2(
    options: Options,
    auxbasis: Annotated[str | None, typer.Option(help=_AUXILIARY.format(" of MP2"))] = None,
    jkbasis: Annotated[str | None, typer.Option(help=_AUXILIARY.format(" of the SCF"))] = None,
    frozen: Annotated[str, FROZEN] = "0",
    frozen_virtual: Annotated[str, FROZEN_VIRTUAL] = "0",
    scs: Annotated[
        str, typer.Option(help="Factors of opposite-spin and same-spin parts for the SCS energy.")
    ] = "1.2,0.3333333333333333",
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Print the energy of each pair of orbitals.")
    ] = False,
) -> int:
    """RI-MP2 on a Hartree-Fock reference with density fitting, on one or several processes. Exit status
    3: the energy is there, but the state of the SCF is a saddle point that could not be left."""
    factors = _factors(scs)
    with _Run(options, {"jk": jkbasis, "mp2": auxbasis}, (frozen, frozen_virtual)) as run:
        run.scf(jkbasis)
        run.mp2(auxbasis, (frozen, frozen_virtual), factors, pairs)
        run.io_report()
        run.finish(run.world)
    return run.status


def _factors(text: str) -> tuple[float, float]:
    try:
        opposite, same = (float(word) for word in text.split(","))
        if not (math.isfinite(opposite) and math.isfinite(same)):
            raise ValueError(text)
    except ValueError:
        raise OutcoreError(
            errno.EINVAL, f"--scs {text}", detail="two numbers are needed, such as 1.2,0.333"
        ) from None
    return opposite, same


class _Run(MoleculeRun):
    """The stages of a run, and their output."""

    options: Options
    energies = MappingProxyType(
        {
            "energy_hartree": "SCF energy",
            "total_hartree": "RI-MP2 energy",
        }
    )

    @property
    def usual_bytes(self) -> int:
        return least.FITTED_BYTES

    def __init__(
        self,
        options: Options,
        auxiliary: dict[Purpose, str | None],
        frozen: tuple[str, str] | None = None,
        *,
        rohf: bool = False,
        smearing: float = 0.0,
    ) -> None:
        """auxiliary: the sets for the stages of the run. frozen: occupied and virtual ones. Both are checked
        now."""
        from outcore.chem.frozen import before_scf

        super().__init__(options)
        self._mol = self.build()
        self._smearing, self._alone = smearing, "mp2" not in auxiliary
        self._unrestricted = not rohf and (options.uhf or self._mol.spin != 0)
        self._kind = "ROHF" if rohf else "UHF" if self._unrestricted else "RHF"
        sets = self._sets = self.check_auxiliary(self._mol, auxiliary)
        spins = 2 if self._unrestricted else 1
        correlated = None if frozen is None else before_scf(self._mol, *frozen, spins=spins)
        self.open_world()
        if options.full and not options.estimate:
            self._disk_rates()  # measured before counters start
            trace.reset()
        self._mf: Any = None
        self.header(options.title(self._method, self._mol), f"scratch {self.world.scratch}")
        self.predict_memory(self._needs(sets, correlated))
        if frozen is not None:
            self.predict_file(
                "RI-MP2",
                lambda: self._made(
                    self.stand_in(self._mol, "UHF" if self._unrestricted else "RHF"), auxiliary["mp2"], frozen
                ).largest_file(),
            )

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        self._mf = (
            None  # its callbacks point back at this run, and the collector looks at neither: start.loading
        )

    def _needs(self, sets: dict[Purpose, Mole], frozen: Frozen | None) -> dict[str, int]:
        """The least memory of each process in each stage."""
        options, mol = self.options, self._mol
        spins = 1 if self._kind == "RHF" and not mol.spin else 2
        return density_command.fitted_needs(
            self,
            mol,
            sets,
            frozen,
            spins,
            gradient=options.gradient,
            relaxed=options.of_density and frozen is not None,
            group=options.group,
        )

    @property
    def _method(self) -> str:
        return f"RI-{self._kind}"

    # ---- stages ----

    def scf(self, auxbasis: str | None) -> None:
        from outcore.chem import ri
        from outcore.chem.mean_field import expected_cycles
        from outcore.chem.search import SCFSearch

        method = getattr(ri, self._kind)
        mf = self._mf = method(self._mol, auxbasis, group=self.options.group, **self.common_settings())
        options = self.options
        mf = self._mf = options.set_up(mf, asked=self._asked_of_scf(), smearing=self._smearing)
        if self.options.estimate:
            integrals = mf.with_df.prepare()
            self._tell_symmetry(integrals.symmetry.found)
            self._forecast("SCF", partial(integrals.forecast, expected_cycles(mf)))
            mf.with_df.close_integrals()
            return
        begin = time.monotonic()
        found, keeper = self._kept_orbitals(mf)
        search = SCFSearch(mf, options, self.world, self.say, keeper)
        if found is not None and found.finished(mf):
            search.run(found)
        else:
            integrals = mf.with_df.prepare()
            self._tell_symmetry(integrals.symmetry.found)
            forecast = self._forecast("SCF", partial(integrals.forecast, expected_cycles(mf)))
            watch, begin = TrafficWatch(), time.monotonic()
            with self.progress("three-index integrals") as progress:
                integrals.build(progress)
            self.say(integrals.summary(mf.with_df.auxmol))
            self.results |= {
                "auxiliary_functions": integrals.rows,
                "integral_bytes": integrals.bytes,
                "integral_seconds": integrals.seconds,
                "integrals_found": integrals.resumed,
            }
            search.run(found)
            traffic = watch.traffic(self.world, integrals.least_bytes, integrals.waited_seconds)
            self._compare("scf", forecast, traffic, begin)
        mf.with_df.close_integrals()
        search.refuse()
        self.doubt(search)
        seconds = time.monotonic() - begin
        self.say(
            f"{self._method} energy {mf.e_tot:.10f} Eh, converged in {mf.cycles} cycles, {seconds:.1f} s"
        )
        for line in occupation.smeared(mf):
            self.say(line)
        if self._unrestricted and not self._smearing:
            spin_square, multiplicity = mf.spin_square()
            self.say(f"<S^2> = {spin_square:.6f}, 2S+1 = {multiplicity:.4f}")
        self.results |= {
            "energy_hartree": float(mf.e_tot),
            "converged": True,
            "cycles": int(mf.cycles),
            "functions": int(self._mol.nao),
            "molecular_orbitals": int(np.shape(mf.mo_occ)[-1]),
            "scf_seconds": seconds,
            "stability": search.report,
            "smearing": occupation.smearing_as_json(mf),
        }

    def _tell_symmetry(self, found: FoundOperations) -> None:
        for line in found.lines():
            self.say(line)
        self.results["point_group"] = found.as_json()

    def _asked_of_scf(self) -> float | None:
        if self.options.of_density:
            return ASKED
        return None if self._alone else self.asked

    def densities_of_scf(self) -> None:
        """Computes the requested properties of the density, in a run that ends with the SCF."""
        if self.options.estimate:
            if self.options.gradient:
                self._estimate_gradient(None)
        elif self.options.of_density:
            density_command.of_scf(self, self.options, self._mf)

    def _estimate_gradient(self, mp2: MP2 | None) -> None:
        """Shows the time and disk space of densities and gradients, of the SCF or of MP2. Collective."""
        from outcore.chem.gradients import forecast

        parts: dict[str, PredictedPart] = {}
        free, storage = self.free_bytes() * self.world.size, density_command.place_of(self.options)
        with self.world.together("estimate"):
            if self.root:
                after = forecast.AfterEnergy.of(
                    self._mol,
                    self._sets,
                    self._mf.with_df.screening,
                    spins=1 if self._kind == "RHF" else 2,
                    threads=self.threads,
                    processes=self.world.size,
                    storage=storage,
                    free_bytes=free,
                )
                if mp2 is None:
                    parts = after.scf()
                elif shapes := [each.shape for each in mp2.orbitals if all(each.shape)]:
                    parts = after.mp2(shapes, gradient=self.options.gradient)
        density_command.tell_parts(self, self.world.broadcast(parts), "gradient_estimate")

    def _renew(self) -> None:
        """Makes a new world, also for J and K that later stages need."""
        self.renew_world()
        fitting = self._mf.with_df
        self._mf.with_df = fitting.another(fitting.given_auxbasis, self.world)

    def _densities_of_mp2(self, auxbasis: str | None, frozen: tuple[str, str]) -> None:
        from outcore.chem.mp2.gradient import response

        self._renew()  # frees the memory of the arrays of the energy
        mp2 = self._made(self._mf, auxbasis, frozen)
        with self.stages() as mp2.on_progress, response(mp2) as found:
            density_command.show(self, self.options, self._mol, found.densities, found.gradient)
            density_command.tell_traffic(self, found.traffic())

    # ---- forecasts ----

    def _forecast(self, stage: str, measure: Callable[[], Forecast]) -> Forecast:
        """What a stage will take, from rank 0, whose clock counts."""
        nothing: Any = None
        with self.world.together("estimate"):
            if self.world.rank == 0:
                nothing = measure()
        forecast: Forecast = self.world.broadcast(nothing)
        free = _core.file_system(self.world.scratch).free_bytes
        self.say(f"{stage} estimate: {forecast}; {free / 1e9:.1f} GB free in {self.world.scratch}")
        if self.options.estimate:
            self.results[f"{stage.lower()}_estimate"] = asdict(forecast)
        return forecast

    def _compare(self, stage: str, forecast: Any, traffic: Traffic, begin: float) -> None:
        seconds = time.monotonic() - begin
        self.say(forecast.against(traffic.written_bytes, traffic.read_bytes, seconds))
        for line in traffic.lines(self._disk_rates() if traffic.used else None):
            self.say(line)
        self.results[f"{stage}_forecast"] = {
            "written_bytes": [forecast.written_bytes, traffic.written_bytes],
            "read_bytes": [forecast.read_bytes, traffic.read_bytes],
            "seconds": [forecast.seconds, seconds],
        }
        self.results[f"{stage}_traffic"] = traffic.as_json()

    def _disk_rates(self) -> RawRates | None:
        """Raw rates of the scratch directory, at the process that prints. Collective."""
        from outcore.job import machine

        raw = None
        with self.world.together("measure the disk"):
            if self.world.rank == 0:
                raw = machine.disk(self.world.scratch, kept_at=self.options.checkpoint)
        return raw

    def io_report(self) -> None:
        """Prints the I/O report of the whole run, if --report asks for it. Collective."""
        if not self.options.full or self.options.estimate:
            return
        raw = self._disk_rates()
        gathered = report.gather(self.comm, self.seconds, raw)
        if gathered is not None:
            gathered.render(self.console)

    def _kept_orbitals(self, mf: Any) -> tuple[FoundOrbitals | None, Checkpoint | None]:
        """Orbitals of another run, at all processes, and the checkpoint for new ones, at the first."""
        from outcore.chem import restart
        from outcore.chem.ri.problem import settings

        fitting, options = mf.with_df, self.options
        return restart.begin(
            mf,
            self._kind,
            self.world,
            self.say,
            checkpoint=options.checkpoint,
            restart=options.restart,
            more=lambda: settings(self._mol, fitting.auxiliary_molecule(), fitting.screening),
        )

    def _made(self, mf: Any, auxbasis: str | None, frozen: tuple[str, str], **more: Any) -> MP2:
        from outcore.chem.mp2 import MP2

        occupied, virtual = frozen
        return MP2(mf, occupied, auxbasis, frozen_virtual=virtual, **more, **self.common_settings())

    def mp2(
        self, auxbasis: str | None, frozen: tuple[str, str], scs: tuple[float, float], pairs: bool
    ) -> None:
        from outcore.chem.mean_field import give_orbitals

        begin = time.monotonic()
        if self.options.estimate:
            give_orbitals(self._mf)
        self._renew()
        mp2 = self._made(self._mf, auxbasis, frozen, scs=scs)
        mp2.prepare()
        forecast = self._forecast("MP2", mp2.forecast)
        if self.options.estimate:
            if self.options.of_density:
                self._estimate_gradient(mp2)
            return
        mp2.on_warning = self.warn
        watch, start = TrafficWatch(), time.monotonic()
        with self.stages() as mp2.on_progress:
            mp2.kernel()
        traffic = watch.traffic(self.world, mp2.least_bytes(), mp2.waited_seconds)
        self._compare("mp2", forecast, traffic, start)
        seconds = time.monotonic() - begin
        for line in mp2.summary().split("; "):
            self.say(line)
        if mp2.found != {""}:
            self.say(f"integrals found in {self.options.checkpoint}: {', '.join(sorted(mp2.found))}")
        if pairs:
            self._pairs(mp2)
        self.say(f"correlation energy        {mp2.e_corr:.10f} Eh, {seconds:.1f} s")
        self.say(f"  opposite spin           {mp2.e_os:.10f}")
        self.say(f"  same spin               {mp2.e_ss:.10f}")
        self.say(f"RI-MP2 energy             {mp2.e_tot:.10f} Eh")
        self.say(
            f"SCS-RI-MP2 energy         {self._mf.e_tot + mp2.e_scs:.10f} Eh "
            f"(opposite spin times {scs[0]:.4g}, same spin times {scs[1]:.4g})"
        )
        self.results |= {
            "correlation_hartree": mp2.e_corr,
            "opposite_spin_hartree": mp2.e_os,
            "same_spin_hartree": mp2.e_ss,
            "scs_correlation_hartree": mp2.e_scs,
            "total_hartree": mp2.e_tot,
            "frozen": mp2.frozen,
            "mp2_seconds": seconds,
        }
        if self.options.of_density:
            self._densities_of_mp2(auxbasis, frozen)

    def _pairs(self, mp2: MP2) -> None:
        names = list(mp2.pair_energies)
        for name in names:
            energies = mp2.pair_energies[name]
            first, second = (mp2.orbitals[spin].numbers + 1 for spin in _SPINS.get(name, (0, 0)))
            self.say(f"pair energies, {name} (Eh), orbitals counted from 1:")
            for i, row in enumerate(energies):
                for j, energy in enumerate(row):
                    if name == "ab" or j <= i:
                        whole = energy if name == "ab" or i == j else 2 * energy
                        self.say(f"{first[i]:6d} {second[j]:6d} {whole:16.10f}")
