"""The `outcore scf` command."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore import launch, preflight
from outcore.chem import scf_options
from outcore.chem.integrals import STORAGES
from outcore.chem.limits import find_scratch
from outcore.chem.results import peak_memory_bytes, write_json
from outcore.console import make_console, visible
from outcore.errors import NotConverged, OutcoreError
from outcore.resources import parse_bytes

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from rich.console import Console

    from outcore.chem.accuracy import EnergyError
    from outcore.chem.integrals import IntegralWork
    from outcore.chem.restart import Checkpoint
    from outcore.report import RawRates, Report
    from outcore.world import World

NOT_KEPT = 3  # exit status of a run whose bound of the error is above the one asked for
_EVENTS = 1 << 20  # of a process, recorded for --trace


def scf(
    geometry: Annotated[Path, typer.Argument(help="XYZ file, in Angstrom.")],
    basis: Annotated[str, typer.Option(help="Basis set, as PySCF names it, or a file in NWChem's format.")],
    ecp: Annotated[
        str | None,
        typer.Option(
            help="Effective core potentials, by name or file. Default: those that go with the basis."
        ),
    ] = None,
    cart: Annotated[bool, typer.Option("--cart", help="Cartesian d, f, g functions.")] = False,
    charge: Annotated[
        int | None, typer.Option(help="Total charge. Default: what the comment of the XYZ file says, or 0.")
    ] = None,
    spin: Annotated[
        int | None,
        typer.Option(help="Unpaired electrons (2S). Default: what the comment says, or 0, or 1 if odd."),
    ] = None,
    frame: Annotated[
        int | None, typer.Option(help="Of a file of several geometries: 1, 2, .., or -1 for the last.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Of the coordinates: angstrom or bohr. Default: what the file says.")
    ] = None,
    uhf: Annotated[
        bool, typer.Option("--uhf", help="Unrestricted; the default if electrons are unpaired.")
    ] = False,
    rohf: Annotated[bool, typer.Option("--rohf", help="Restricted open-shell.")] = False,
    rhf: Annotated[bool, typer.Option("--rhf", help="Insist on closed shells.")] = False,
    integrals: Annotated[
        str,
        typer.Option(
            help="'disk': stored once, read in each cycle; 'direct': recomputed; 'semidirect': what is worth "
            "most is stored within --disk, the rest recomputed; 'auto': in memory, then on disk, if that is faster."
        ),
    ] = "disk",
    disk: Annotated[
        str | None,
        typer.Option(help="Disk for integrals, all processes, if semidirect or auto. Default: what is free."),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="Error of the energy that storing integrals may cause (Hartree). Default: 1e-9."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Instead of --error: integrals below it are left out, the others kept within half of it."
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="Processes to start; leave out under mpiexec or srun.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of each process. Default: its share of the cores.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Budget of all processes, e.g. 2GB. Default: half of what is free.")
    ] = None,
    scratch: Annotated[
        str | None, typer.Option(help="Scratch directory. Default: the fastest node-local one.")
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(
            help="'local', the default: a process reads the records it wrote; 'global': any, as it has time."
        ),
    ] = None,
    record: Annotated[str | None, typer.Option(help="Size of an integral record. Default: 4MiB.")] = None,
    prefetch: Annotated[int | None, typer.Option(help="Records read ahead, at least 2. Default: 4.")] = None,
    cache: Annotated[
        str | None,
        typer.Option(help="Page cache for integrals: automatic (the default), direct or buffered."),
    ] = None,
    keep_integrals: Annotated[
        Path | None,
        typer.Option(
            help="Directory, seen by all processes, in which integrals stay, and are looked for first."
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what each way to run will take, and end.")
    ] = False,
    guess: Annotated[str | None, typer.Option(help="Start guess, as PySCF names it. Default: minao.")] = None,
    conv_tol: Annotated[
        float | None,
        typer.Option(help="Convergence of the energy (Hartree). Default: 1e-9, or --error if that is less."),
    ] = None,
    max_cycle: Annotated[int, typer.Option(help="Most SCF cycles.")] = 50,
    checkpoint: Annotated[Path | None, typer.Option(help="Keep the orbitals here, to restart from.")] = None,
    restart: Annotated[
        Path | None, typer.Option(help="Start from the orbitals of a checkpoint, of any number of processes.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace of every I/O request here (Perfetto, Chrome).")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write results here.")] = None,
) -> int:
    """Hartree-Fock with two-electron integrals on disk (or direct), on one or several processes. Exit status 3: the
    energy is there, but the bound of its error is above --error."""
    given = dict(locals())
    if ranks is not None:
        launch.relaunch(ranks)
    start = time.monotonic()
    launch.limit_threads()

    from outcore.chem import molecule
    from outcore.chem import scf as methods
    from outcore.chem.view import Cycles, View

    _check_options(given)
    comm = launch.world()
    root = comm is None or comm.rank == 0
    preflight.at_root(comm, lambda: _check_targets(given))
    console = make_console(quiet=not root)
    mol = molecule.build(
        geometry,
        basis,
        charge=charge,
        spin=spin,
        cartesian=cart,
        ecp=ecp,
        frame=frame,
        unit=unit,
        say=lambda line: console.print(visible(line), soft_wrap=True),
    )
    if rhf and mol.spin:
        raise OutcoreError(
            errno.EINVAL,
            "restricted Hartree-Fock",
            path=geometry,
            detail=f"{mol.nelectron} electrons, {mol.spin} unpaired; use --uhf or --rohf, or another --charge "
            "or --spin",
        )
    method = "ROHF" if rohf else "UHF" if uhf or mol.spin != 0 else "RHF"
    mf = getattr(methods, method)(
        mol,
        comm=_processes(comm, placement or "local", scratch),
        **_settings(given),
    )
    if estimate:
        _print_forecast(mf, console, json_file)
        return 0
    mf.conv_tol = scf_options.convergence(mf.settings.allowed_error) if conv_tol is None else conv_tol
    mf.max_cycle, mf.init_guess, mf.chkfile = max_cycle, guess or "minao", None
    raw = _begin_io(mf, trace)
    start_density, keeper = _restart_files(mf, method, restart, checkpoint, console)
    view = View(console, mf, method, basis)
    view.header(geometry, comm.size if comm is not None else 1)
    with view.storing():
        _ = mf.two_electron
    view.stored()
    cycles = Cycles(view.say)
    mf.callback = cycles if keeper is None else _both(keeper.cycle, cycles)  # a cycle shown is saved
    energy = mf.kernel(start_density)
    _keep(mf, keeper)
    storage_error = mf.energy_error()
    run_seconds = time.monotonic() - start
    peak_bytes = peak_memory_bytes(mf.world)
    work = mf.two_electron.work()
    view.result(run_seconds, peak_bytes, work)
    view.storage_error(storage_error)
    _close(mf)
    report = _end_io(comm, run_seconds, raw, trace)
    if report is not None and integrals != "direct":
        report.render(console)
    if json_file is not None and root:
        _write_json(json_file, mf, run_seconds, peak_bytes, work, report, storage_error)
    if not mf.converged:
        raise NotConverged(
            None,
            "converge the SCF",
            detail=f"after {mf.cycles} cycles E = {energy:.10f}; raise --max-cycle, or try another --guess",
        )
    return 0 if storage_error.kept else NOT_KEPT


def _check_options(given: dict[str, Any]) -> None:
    """Raises OutcoreError for options that exclude each other, have no effect, or are out of range. An estimate is
    of all ways to run: it takes the options of any."""

    scf_options.check_one_method(given["uhf"], given["rohf"], given["rhf"])
    if given["restart"] is not None:
        preflight.refuse({"--guess": given["guess"]}, "with --restart, which starts from orbitals")
    keep, scratch = given["keep_integrals"], given["scratch"]
    if keep is not None and scratch is not None and os.path.realpath(keep) != os.path.realpath(scratch):
        preflight.refuse({"--scratch": scratch}, "with --keep-integrals, where the integrals are")
    integrals, storing = given["integrals"], ("placement", "record", "prefetch", "cache")
    if not given["estimate"] and integrals in ("disk", "direct"):
        why = f"with --integrals {integrals}; semidirect and auto have a budget"
        preflight.refuse({"--disk": given["disk"]}, why)
    if not given["estimate"] and integrals == "direct":
        unused = {f"--{name}": given[name] for name in storing} | {"--keep-integrals": keep}
        preflight.refuse(unused, "with --integrals direct, which stores none")
    scf_options.check_guess(given["guess"] or "minao")
    scf_options.check_iterations(given["conv_tol"], given["max_cycle"])
    scf_options.check_threads(given["threads"])
    preflight.check_count("--prefetch", given["prefetch"], 1 << 16)
    preflight.check_number("--error", given["error"])
    preflight.check_number("--threshold", given["threshold"])


def _check_targets(given: dict[str, Any]) -> None:
    """Raises OutcoreError if what is to be written in the end cannot be."""

    read = {"the geometry": given["geometry"], "the basis": given["basis"], "the potentials": given["ecp"]}
    written = {"--json": given["json_file"], "--trace": given["trace"], "--checkpoint": given["checkpoint"]}
    preflight.check_distinct(read, written)
    preflight.check_file(given["json_file"], "write results")
    preflight.check_file(given["trace"], "write trace")
    preflight.check_directory(given["checkpoint"], "write checkpoint", array=True)
    preflight.check_directory(given["keep_integrals"], "keep integrals")


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """For the methods: what was given of the options that Settings has, with defaults of its own for the others."""
    integrals, disk, keep = given["integrals"], given["disk"], given["keep_integrals"]
    settings = {name: given[name] for name in ("error", "threshold", "placement", "scratch", "threads")}
    settings |= {name: given[name] for name in ("prefetch", "cache")}
    settings |= {
        "integrals": "auto" if given["estimate"] and integrals in STORAGES else integrals,
        "keep": None if keep is None else str(keep),
        "disk_bytes": None if disk is None else 0 if disk.strip() == "0" else parse_bytes(disk),
        "memory_bytes": None if given["memory"] is None else parse_bytes(given["memory"]),
        "record_bytes": None if given["record"] is None else parse_bytes(given["record"]),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _processes(comm: Intracomm | None, placement: str, scratch: str | None) -> Intracomm | World | None:
    """Those of the job; as a world of their own where its scratch directory matters. Collective."""
    from outcore.world import World

    if placement == "local" or scratch is None:
        return comm
    return World("self" if comm is None else comm, scratch=find_scratch(scratch))


def _close(mf: Any) -> None:
    from outcore.world import World

    mf.close()
    if isinstance(mf.comm, World):
        mf.comm.close()


def _print_forecast(mf: Any, console: Console, json_file: Path | None) -> None:
    from outcore.chem.estimate import forecast

    found = forecast(mf.mol, mf.settings, mf.world)
    console.print(found.table())
    if json_file is not None and mf.world.rank == 0:
        write_json(json_file, found.as_json())


def _restart_files(
    mf: Any, method: str, restart: Path | None, name: Path | None, console: Console
) -> tuple[Any, Checkpoint | None]:
    """The density to start from and what keeps the orbitals: both at the process that drives the SCF."""
    density, keeper = None, None
    with mf.world.together("checkpoint and restart"):
        if mf.world.rank == 0:
            from outcore.chem import restart as files

            if restart is not None:
                density, meta = files.density(mf, method, restart)
                console.print(
                    visible(
                        f"restart from cycle {meta['cycle']} of {restart}, E = {meta['energy_hartree']:.10f}"
                    ),
                    soft_wrap=True,
                )
            if name is not None:
                keeper = files.Checkpoint(mf, method, name)
    return density, keeper


def _both(first: Callable[[Any], None], second: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(state: Any) -> None:
        first(state)
        second(state)

    return call


def _keep(mf: Any, keeper: Checkpoint | None) -> None:
    """The orbitals at the end."""
    with mf.world.together("write checkpoint"):
        if keeper is not None:
            orbitals = {key: getattr(mf, key) for key in ("mo_coeff", "mo_energy", "mo_occ")}
            keeper.save(orbitals, int(mf.cycles), float(mf.e_tot), converged=bool(mf.converged))


def _begin_io(mf: Any, trace_file: Path | None) -> RawRates | None:
    """Raw rates of the scratch disk (rank 0), then counters from zero, so that the report shows the run alone."""
    from outcore import trace
    from outcore.job import machine

    raw = None
    with mf.world.together("prepare the I/O report"):
        if trace_file is not None and not trace_file.absolute().parent.is_dir():
            raise OutcoreError(errno.ENOENT, "write trace", path=trace_file, detail="no such directory")
        if mf.settings.storage != "direct" and mf.world.rank == 0:
            raw = machine.disk(find_scratch(mf.settings.scratch), fresh=True)
    trace.reset()
    if trace_file is not None:
        trace.start(_EVENTS)
    return raw


def _end_io(
    comm: Intracomm | None, run_seconds: float, raw: RawRates | None, trace_file: Path | None
) -> Report | None:
    """The I/O report of all processes (rank 0), and the trace file."""
    from outcore import report, trace

    if trace_file is not None:
        return trace.save(trace_file, comm, run_seconds=run_seconds, raw=raw)
    return report.gather(comm, run_seconds, raw)


def _write_json(
    path: Path,
    mf: Any,
    run_seconds: float,
    peak_bytes: int,
    work: IntegralWork,
    report: Report | None,
    storage: EnergyError,
) -> None:
    result: dict[str, Any] = {
        "energy_hartree": float(mf.e_tot),
        "converged": bool(mf.converged),
        "cycles": int(mf.cycles),
        "functions": int(mf.mol.nao),
        "integrals": mf.settings.storage,
        "placement": mf.settings.placement,
        "threshold": mf.settings.threshold,
        "run_seconds": run_seconds,
        "peak_memory_bytes": peak_bytes,
        "integral_work": asdict(work),
    }
    if report is not None:
        result["emulated"] = report.emulated
        processes = len(report.processes)
        result["io_wait_share"] = report.io_seconds("file") / (processes * run_seconds)
    result["storage_error"] = {**asdict(storage), "bound": storage.bound}
    if mf.stored_summary is not None:
        result["stored"] = {**asdict(mf.stored_summary), "bytes": mf.stored_summary.bytes}
    write_json(path, result)
