"""The `outcore ri-scf` and `outcore rimp2` commands."""

from __future__ import annotations

import errno
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore import _core, launch, resources
from outcore.chem.view import Cycles
from outcore.errors import OutcoreError
from outcore.resources import parse_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from outcore.chem.ri.mp2 import MP2
    from outcore.world import World

Geometry = Annotated[Path, typer.Argument(help="XYZ file, in Angstrom.")]
Basis = Annotated[str, typer.Option(help="Basis set, as PySCF names it.")]
Cart = Annotated[bool, typer.Option("--cart", help="Cartesian d, f, g functions.")]
Charge = Annotated[int, typer.Option(help="Total charge.")]
Spin = Annotated[int | None, typer.Option(help="Unpaired electrons (2S). Default: 0, or 1 if odd.")]
Uhf = Annotated[bool, typer.Option("--uhf", help="Unrestricted; the default if electrons are unpaired.")]
Ranks = Annotated[int | None, typer.Option(help="Processes to start; leave out under mpiexec or srun.")]
Threads = Annotated[
    int | None, typer.Option(help="Threads of each process. Default: its share of the cores.")
]
Memory = Annotated[
    str | None, typer.Option(help="Budget of all processes, e.g. 2GB. Default: half of what is free.")
]
Scratch = Annotated[str | None, typer.Option(help="Scratch directory. Default: the fastest node-local one.")]
Storage = Annotated[
    str, typer.Option(help="'auto': integrals that fit into --memory stay there; 'disk': all on disk.")
]
Threshold = Annotated[float, typer.Option(help="Schwarz bound of pairs of functions that are left out.")]
Guess = Annotated[str, typer.Option(help="Start guess, as PySCF names it.")]
ConvTol = Annotated[float, typer.Option(help="Convergence of the energy (Hartree).")]
MaxCycle = Annotated[int, typer.Option(help="Most SCF cycles.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep integrals, orbitals and finished pairs here; a run of the same problem goes on from them.",
    ),
]
Estimate = Annotated[
    bool, typer.Option("--estimate", help="Print memory, disk, bytes moved and time, and compute nothing.")
]
Json = Annotated[Path | None, typer.Option("--json", help="Write results here.")]


@dataclass(frozen=True)
class _Job:
    """What both commands are asked for."""

    geometry: Path
    basis: str
    auxbasis: str | None
    memory: str | None
    scratch: str | None
    threads: int | None
    threshold: float
    storage: str
    guess: str
    conv_tol: float
    max_cycle: int
    checkpoint: Path | None
    json_file: Path | None

    def settings(self, world: Any) -> dict[str, Any]:
        """For DensityFitting and MP2."""
        return {
            "memory": self.memory,
            "threads": self.threads,
            "threshold": self.threshold,
            "storage": self.storage,
            "checkpoint": self.checkpoint,
            "comm": world,
        }


def ri_scf(
    geometry: Geometry,
    basis: Basis,
    auxbasis: Annotated[str | None, typer.Option(help="Auxiliary basis. Default: that of the basis.")] = None,
    cart: Cart = False,
    charge: Charge = 0,
    spin: Spin = None,
    uhf: Uhf = False,
    ranks: Ranks = None,
    threads: Threads = None,
    memory: Memory = None,
    scratch: Scratch = None,
    storage: Storage = "auto",
    threshold: Threshold = 1e-11,
    guess: Guess = "minao",
    conv_tol: ConvTol = 1e-9,
    max_cycle: MaxCycle = 50,
    checkpoint: Checkpoint = None,
    estimate: Estimate = False,
    json_file: Json = None,
) -> int:
    """Hartree-Fock with density fitting; three-index integrals in memory and on disk."""
    if ranks is not None:
        launch.relaunch(ranks)
    job = _Job(
        geometry,
        basis,
        auxbasis,
        memory,
        scratch,
        threads,
        threshold,
        storage,
        guess,
        conv_tol,
        max_cycle,
        checkpoint,
        json_file,
    )
    with _Run(job, cart=cart, charge=charge, spin=spin, uhf=uhf) as run:
        run.estimate = estimate
        run.scf(auxbasis)
        run.finish()
    return 0


def rimp2(
    geometry: Geometry,
    basis: Basis,
    auxbasis: Annotated[
        str | None, typer.Option(help="Auxiliary basis of MP2. Default: that of the basis.")
    ] = None,
    jkbasis: Annotated[
        str | None, typer.Option(help="Auxiliary basis of the SCF. Default: that of the basis.")
    ] = None,
    frozen: Annotated[
        str, typer.Option(help="Lowest orbitals that are not correlated: a number, or 'auto' for the cores.")
    ] = "0",
    scs: Annotated[
        str, typer.Option(help="Factors of opposite-spin and same-spin parts for the SCS energy.")
    ] = "1.2,0.3333333333333333",
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Print the energy of each pair of orbitals.")
    ] = False,
    cart: Cart = False,
    charge: Charge = 0,
    spin: Spin = None,
    uhf: Uhf = False,
    ranks: Ranks = None,
    threads: Threads = None,
    memory: Memory = None,
    scratch: Scratch = None,
    storage: Storage = "auto",
    threshold: Threshold = 1e-11,
    guess: Guess = "minao",
    conv_tol: ConvTol = 1e-9,
    max_cycle: MaxCycle = 50,
    checkpoint: Checkpoint = None,
    estimate: Estimate = False,
    json_file: Json = None,
) -> int:
    """RI-MP2 on a Hartree-Fock reference with density fitting, on one or several processes."""
    if ranks is not None:
        launch.relaunch(ranks)
    job = _Job(
        geometry,
        basis,
        auxbasis,
        memory,
        scratch,
        threads,
        threshold,
        storage,
        guess,
        conv_tol,
        max_cycle,
        checkpoint,
        json_file,
    )
    factors = _factors(scs)
    with _Run(job, cart=cart, charge=charge, spin=spin, uhf=uhf) as run:
        run.estimate = estimate
        run.scf(jkbasis)
        run.mp2(frozen, factors, pairs)
        run.finish()
    return 0


def _factors(text: str) -> tuple[float, float]:
    try:
        opposite, same = (float(word) for word in text.split(","))
    except ValueError:
        raise OutcoreError(
            errno.EINVAL, f"--scs {text}", detail="two numbers are needed, such as 1.2,0.333"
        ) from None
    return opposite, same


class _Run:
    """The stages of a run, and what is shown of them."""

    def __init__(self, job: _Job, *, cart: bool, charge: int, spin: int | None, uhf: bool) -> None:
        self._start = time.monotonic()
        launch.limit_threads()

        from rich.console import Console

        from outcore.chem import molecule

        comm = launch.world()
        self._console: Console = Console(quiet=comm is not None and comm.rank > 0, highlight=False)
        self._job = job
        self._mol = molecule.build(job.geometry, job.basis, charge=charge, spin=spin, cartesian=cart)
        self._unrestricted = uhf or self._mol.spin != 0
        size = 1 if comm is None else comm.size
        self._comm = comm
        self._world = self._new_world()
        self._mf: Any = None
        self.estimate = False  # nothing is computed
        self._results: dict[str, Any] = {}
        self._header(size)

    def _new_world(self) -> World:
        from outcore.chem.ri.processes import make_world

        job = self._job
        return make_world(self._comm, None if job.memory is None else parse_bytes(job.memory), job.scratch)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self._world.close()

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    def _header(self, processes: int) -> None:
        mol, job = self._mol, self._job
        kind = "cartesian" if mol.cart else "spherical"
        threads = job.threads or launch.threads_per_rank()
        self._say(
            f"{self._method}/{job.basis}  {job.geometry.name}: {mol.natm} atoms, {mol.nelectron} electrons, "
            f"{mol.nao} {kind} functions in {mol.nbas} shells"
        )
        self._say(
            f"{processes} {'process' if processes == 1 else 'processes'} x {threads} "
            f"{'thread' if threads == 1 else 'threads'}, memory {job.memory or 'half of what is free'}, "
            f"scratch {self._world.scratch}"
        )

    @property
    def _method(self) -> str:
        return "RI-UHF" if self._unrestricted else "RI-RHF"

    # ---- stages ----

    def scf(self, auxbasis: str | None) -> None:
        from outcore.chem import ri
        from outcore.chem.ri import orbitals

        method = ri.UHF if self._unrestricted else ri.RHF
        mf = self._mf = method(self._mol, auxbasis, **self._job.settings(self._world))
        mf.conv_tol, mf.max_cycle, mf.init_guess = self._job.conv_tol, self._job.max_cycle, self._job.guess
        mf.chkfile = None
        if self.estimate:
            self._forecast("SCF", mf.with_df.prepare())
            mf.with_df.close_integrals()
            return
        begin = time.monotonic()
        found, keeper = self._kept_orbitals(mf)
        if found is not None and found["meta"]["converged"]:
            orbitals.restore(mf, found)
            self._say(f"converged orbitals found in {self._job.checkpoint}")
        else:
            integrals = mf.with_df.prepare()
            forecast = self._forecast("SCF", integrals)
            before, begin = self._moved(), time.monotonic()
            integrals.build()
            self._say(integrals.summary(mf.with_df.auxmol))
            self._results |= {
                "auxiliary_functions": integrals.rows,
                "integral_seconds": integrals.seconds,
                "integrals_found": integrals.resumed,
            }
            cycles = Cycles(self._say)

            def each_cycle(state: dict[str, Any]) -> None:
                cycles(state)
                if keeper is not None:
                    keeper.cycle(state)

            mf.callback = each_cycle
            mf.kernel(None if found is None else mf.make_rdm1(found["mo_coeff"], found["mo_occ"]))
            mf.with_df.close_integrals()
            with self._world.together("keep orbitals"):
                if keeper is not None:
                    keeper.save(
                        {name: getattr(mf, name) for name in ("mo_coeff", "mo_energy", "mo_occ")},
                        int(mf.cycles),
                        float(mf.e_tot),
                        converged=bool(mf.converged),
                    )
            self._compare("scf", forecast, before, begin)
        if not mf.converged:
            raise OutcoreError(
                errno.EDOM,
                "converge the SCF",
                detail=f"after {mf.cycles} cycles E = {mf.e_tot:.10f}; raise --max-cycle, or try another --guess",
            )
        seconds = time.monotonic() - begin
        self._say(
            f"{self._method} energy {mf.e_tot:.10f} Eh, converged in {mf.cycles} cycles, {seconds:.1f} s"
        )
        if self._unrestricted:
            spin_square, multiplicity = mf.spin_square()
            self._say(f"<S^2> = {spin_square:.6f}, 2S+1 = {multiplicity:.4f}")
        self._results |= {
            "energy_hartree": float(mf.e_tot),
            "converged": True,
            "cycles": int(mf.cycles),
            "functions": int(self._mol.nao),
            "scf_seconds": seconds,
        }

    # ---- forecasts ----

    def _forecast(self, stage: str, planned: Any) -> Any:
        """What a stage will take, from rank 0, whose clock counts."""
        nothing: Any = None
        with self._world.together("estimate"):
            if self._world.rank == 0:
                nothing = planned.forecast()
        forecast = self._world.broadcast(nothing)
        free = _core.file_system(self._world.scratch).free_bytes
        self._say(f"{stage} estimate: {forecast}; {free / 1e9:.1f} GB free in {self._world.scratch}")
        return forecast

    def _moved(self) -> tuple[int, int]:
        """Bytes written and read so far by all processes, as their devices were asked."""
        from outcore import report, trace

        counters = trace.snapshot()["layers"]["device"]
        return tuple(  # type: ignore[return-value]
            int(self._world.all_reduce(sum(counters[name]["bytes"] for name in names)))
            for names in (report.WRITES, report.READS)
        )

    def _compare(self, stage: str, forecast: Any, before: tuple[int, int], begin: float) -> None:
        seconds = time.monotonic() - begin
        written, read = (after - first for after, first in zip(self._moved(), before, strict=True))
        self._say(forecast.against(written, read, seconds))
        self._results[f"{stage}_forecast"] = {
            "written_bytes": [forecast.written_bytes, written],
            "read_bytes": [forecast.read_bytes, read],
            "seconds": [forecast.seconds, seconds],
        }

    def _stand_in(self) -> None:
        """Orbitals of the right number, for a plan that looks at nothing else."""
        import numpy as np

        n = self._mol.nao
        occupied = [np.arange(n) < count for count in self._mol.nelec]
        if self._unrestricted:
            coefficients, occupations = np.stack([np.eye(n)] * 2), np.stack(occupied).astype(float)
        else:
            coefficients, occupations = np.eye(n), 2.0 * occupied[0]
        self._mf.mo_coeff, self._mf.mo_occ = coefficients, occupations
        self._mf.mo_energy = np.zeros(occupations.shape)

    def _kept_orbitals(self, mf: Any) -> tuple[Any, Any]:
        """Orbitals of another run, at all processes, and what keeps new ones, at the first."""
        from outcore.chem import restart
        from outcore.chem.ri import orbitals
        from outcore.chem.ri.keep import Keeper

        found, keeper = None, None
        if self._job.checkpoint is not None:
            name = Keeper(self._world, self._job.checkpoint).directory / "orbitals"
            with self._world.together("kept orbitals"):
                if self._world.rank == 0:
                    found = orbitals.load(mf, self._method, name)
                    keeper = restart.Checkpoint(self._mol, self._method, name)
            found = self._world.broadcast(found)
        return found, keeper

    def mp2(self, frozen: str, scs: tuple[float, float], pairs: bool) -> None:
        from outcore.chem import ri

        begin = time.monotonic()
        if self.estimate:
            self._stand_in()
        self._world.close()  # what its arrays have taken is free for those of MP2
        self._world = self._new_world()
        mp2 = ri.MP2(self._mf, frozen, self._job.auxbasis, scs=scs, **self._job.settings(self._world))
        mp2.prepare()
        forecast = self._forecast("MP2", mp2)
        if self.estimate:
            return
        before, start = self._moved(), time.monotonic()
        mp2.kernel()
        self._compare("mp2", forecast, before, start)
        seconds = time.monotonic() - begin
        self._say(mp2.summary())
        if mp2.found != {""}:
            self._say(f"integrals found in {self._job.checkpoint}: {', '.join(sorted(mp2.found))}")
        if pairs:
            self._pairs(mp2)
        self._say(f"correlation energy        {mp2.e_corr:.10f} Eh, {seconds:.1f} s")
        self._say(f"  opposite spin           {mp2.e_os:.10f}")
        self._say(f"  same spin               {mp2.e_ss:.10f}")
        self._say(f"RI-MP2 energy             {mp2.e_tot:.10f} Eh")
        self._say(
            f"SCS-RI-MP2 energy         {self._mf.e_tot + mp2.e_scs:.10f} Eh "
            f"(opposite spin times {scs[0]:.4g}, same spin times {scs[1]:.4g})"
        )
        self._results |= {
            "correlation_hartree": mp2.e_corr,
            "opposite_spin_hartree": mp2.e_os,
            "same_spin_hartree": mp2.e_ss,
            "scs_correlation_hartree": mp2.e_scs,
            "total_hartree": mp2.e_tot,
            "frozen": mp2.frozen,
            "mp2_seconds": seconds,
        }

    def _pairs(self, mp2: MP2) -> None:
        names = list(mp2.pair_energies)
        for name in names:
            energies = mp2.pair_energies[name]
            self._say(f"pair energies, {name} (Eh), orbitals counted from 1:")
            for i, row in enumerate(energies):
                for j, energy in enumerate(row):
                    if name == "ab" or j <= i:
                        whole = energy if name == "ab" or i == j else 2 * energy
                        self._say(f"{i + 1 + mp2.frozen:6d} {j + 1 + mp2.frozen:6d} {whole:16.10f}")

    def finish(self) -> None:
        """Time and memory of the run, and the file of results."""
        if self.estimate:
            return
        peak = int(self._world.all_reduce(resources.peak_resident_bytes()))
        seconds = time.monotonic() - self._start
        self._say(f"run time {seconds:.1f} s, memory {peak / 1e6:.0f} MB")
        self._results |= {"run_seconds": seconds, "peak_memory_bytes": peak}
        with self._world.together("write results"):
            if self._job.json_file is not None and self._world.rank == 0:
                try:
                    self._job.json_file.write_text(json.dumps(self._results, indent=2) + "\n")
                except OSError as error:
                    raise OutcoreError(
                        error.errno or errno.EIO, "write results", path=self._job.json_file
                    ) from error
