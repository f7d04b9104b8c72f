"""The `outcore scf` command."""

from __future__ import annotations

import errno
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from outcore.base import start
from outcore.base.errors import OutcoreError
from outcore.chem import occupation, scf_options
from outcore.chem import storage as storage_words
from outcore.chem.gradients import command as density_command
from outcore.chem.gradients.options import ASKED, DensityOptions
from outcore.chem.hf.settings import METHOD, STORAGES
from outcore.chem.options import GROUP, ROHF, SMEARING
from outcore.chem.run import UNDECIDED, MoleculeRun
from outcore.chem.symmetry import known_group
from outcore.cli.run import with_options
from outcore.job import preflight
from outcore.job.resources import parse_bytes
from outcore.job.scratch import find_scratch

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.hf.accuracy import EnergyError
    from outcore.chem.hf.integrals import IntegralWork
    from outcore.trace.report import RawRates, Report

_EVENTS = 1 << 20  # most events of a process that --trace records
_INTEGRAL_BYTES = 16  # most bytes of an integral on disk, with its indices


@dataclass(frozen=True, kw_only=True)
class Options(DensityOptions):
    """Options of Hartree-Fock with stored integrals."""

    rohf: Annotated[bool, ROHF] = False
    smearing: Annotated[float, SMEARING] = 0.0
    group: Annotated[str | None, GROUP] = None
    rhf: Annotated[bool, typer.Option("--rhf", help="Insist on closed shells.")] = False
    storage: Annotated[str, storage_words.option(STORAGES, "integrals")] = "disk"
    disk: Annotated[
        str | None,
        typer.Option(help="Disk for integrals, all processes, if mixed or auto. Default: the free space."),
    ] = None
    error: Annotated[
        float | None,
        typer.Option(help="Error of the energy that storing integrals may cause (Hartree). Default: 1e-9."),
    ] = None
    records: Annotated[
        str | None,
        typer.Option(
            help="'own', the default: a process reads the records it wrote; 'any': any of them, as it has time."
        ),
    ] = None
    record_bytes: Annotated[
        str | None, typer.Option(help="Size of an integral record, e.g. 1MiB. Default: 4MiB.")
    ] = None
    prefetch: Annotated[int | None, typer.Option(help="Records read ahead, at least 2. Default: 4.")] = None
    page_cache: Annotated[
        str | None,
        typer.Option(
            help="Page cache for integrals: 'auto' (the default), 'buffered' (through it) or 'direct' (past it)."
        ),
    ] = None
    keep_integrals: Annotated[
        Path | None,
        typer.Option(
            help="Directory, seen by all processes, in which integrals stay, and are looked for first."
        ),
    ] = None
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace of every I/O request here (Perfetto, Chrome).")
    ] = None

    def check(self) -> None:
        _check_options(vars(self))
        self.check_smearing(self.smearing)
        super().check()

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--trace": self.trace}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.trace, "write trace")
        preflight.check_directory(self.keep_integrals, "keep integrals")


@with_options
def scf(options: Options) -> int:
    """Hartree-Fock with two-electron integrals on disk (or direct), on one or several processes. Exit status 3: the
    energy is there, but the bound of its error is above --error, or its state is a saddle point."""
    run = _Run(options, give_back=False)
    run.open_world()
    with run:
        return _scf(run, options)


class _Run(MoleculeRun):
    energies = MappingProxyType({"energy_hartree": "SCF energy"})


def _scf(run: MoleculeRun, options: Options) -> int:
    with start.loading():
        from outcore.chem import restart
        from outcore.chem.hf import scf as methods
        from outcore.chem.hf.view import View
        from outcore.chem.search import SCFSearch

    mol = run.build()
    if options.rhf and mol.spin:
        raise OutcoreError(
            errno.EINVAL,
            "restricted Hartree-Fock",
            path=options.geometry,
            detail=f"{mol.nelectron} electrons, {mol.spin} unpaired; use --uhf or --rohf, or another --charge "
            "or --spin",
        )
    method = "ROHF" if options.rohf else "UHF" if options.uhf or mol.spin != 0 else "RHF"
    mf = getattr(methods, method)(
        mol,
        comm=run.world,
        **_settings(vars(options)),
    )
    run.predict_memory(_least(run, mf))
    if options.estimate:
        _forecast(run, mf)
        return 0
    asked = ASKED if options.of_density else None
    mf = options.set_up(mf, mf.settings.allowed_error, asked=asked, smearing=options.smearing)
    raw = _begin_io(mf, options.trace)
    found, keeper = restart.begin(
        mf, method, mf.world, run.say, checkpoint=options.checkpoint, restart=options.restart
    )
    view = View(run, mf, method)
    run.header(options.title(method, mol), *view.details())
    with view.storing():
        _ = mf.two_electron
    view.stored()
    search = SCFSearch(mf, options, mf.world, run.say, keeper)
    search.run(found, anew=True)  # iterates with the integrals of this run
    storage_error = search.storage_error or mf.energy_error()
    run_seconds = run.seconds
    work = mf.two_electron.work()
    view.result(run_seconds, work)
    view.storage_error(storage_error)
    if options.of_density and mf.converged:
        density_command.of_scf(run, options, mf)
    world, whole_bytes = mf.world, mf.two_electron.work().whole_bytes
    report = _end_io(run.comm, run_seconds, raw, options.trace)
    if report is not None and options.storage != "direct":
        report.render(run.console, full=options.full)
        view.traffic(report, whole_bytes)
    run.results |= _results(mf, work, report, storage_error, run_seconds)
    run.results |= {"stability": search.report, "smearing": occupation.smearing_as_json(mf)}
    run.doubt(search)
    run.finish(world)
    mf.close()
    search.refuse()
    return run.status if storage_error.kept else UNDECIDED


def _check_options(given: dict[str, Any]) -> None:
    """Raises OutcoreError for options that exclude each other, have no effect, or are out of range. An estimate
    covers all ways to run, and accepts the options of each."""

    storage_words.check(given["storage"], STORAGES, METHOD)
    scf_options.check_one_method(given["uhf"], given["rohf"], given["rhf"])
    scf_options.check_smearing(given)
    keep, scratch = given["keep_integrals"], given["scratch"]
    if keep is not None and scratch is not None and os.path.realpath(keep) != os.path.realpath(scratch):
        preflight.refuse({"--scratch": scratch}, "with --keep-integrals, where the integrals are")
    storage, storing = given["storage"], ("records", "record_bytes", "prefetch", "page_cache")
    if not given["estimate"] and storage in ("disk", "direct"):
        why = f"with --storage {storage}; mixed and auto have a budget"
        preflight.refuse({"--disk": given["disk"]}, why)
    if not given["estimate"] and storage == "direct":
        unused = {f"--{name.replace('_', '-')}": given[name] for name in storing} | {"--keep-integrals": keep}
        preflight.refuse(unused, "with --storage direct, which stores none")
    preflight.check_count("--prefetch", given["prefetch"], 1 << 16)
    preflight.check_number("--error", given["error"])
    preflight.check_number("--screening", given["screening"])
    if given["group"] is not None:
        known_group(given["group"])


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """The given options that belong to Settings; the others keep their defaults there."""
    storage, disk, keep = given["storage"], given["disk"], given["keep_integrals"]
    settings = {
        name: given[name] for name in ("error", "screening", "records", "scratch", "threads", "group")
    }
    settings |= {name: given[name] for name in ("prefetch", "page_cache")}
    settings |= {
        "storage": "auto" if given["estimate"] else storage,
        "keep": None if keep is None else str(keep),
        "disk_bytes": None if disk is None else 0 if disk.strip() == "0" else parse_bytes(disk),
        "memory": given["memory"],
        "record_bytes": None if given["record_bytes"] is None else parse_bytes(given["record_bytes"]),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _least(run: MoleculeRun, mf: Any) -> dict[str, int]:
    """The least memory of each process in each stage, with the requested storage, also for an estimate of all
    ways."""
    from outcore.chem.least_memory import stored_scf

    storage = run.options.storage
    settings = (
        mf.settings
        if mf.settings.storage == storage
        else replace(mf.settings, storage=storage, disk_bytes=None)
    )
    found = {METHOD: stored_scf(mf.mol, settings, run.threads)}
    if isinstance(run.options, DensityOptions) and run.options.gradient:
        from outcore.chem.gradients import least as of_gradients

        # Memory of the SCF stays in use: records that are kept in memory, buffers.
        spins = 1 if mf.istype("RHF") and not mf.mol.spin else 2
        found["gradient"] = found[METHOD] + of_gradients.of_exact(mf.mol, spins, run.threads)
    return found


def _forecast(run: MoleculeRun, mf: Any) -> None:
    from outcore.chem.gradients.exact import parts as exact_parts
    from outcore.chem.hf.estimate import forecast

    assert isinstance(run.options, DensityOptions)

    found = forecast(mf.mol, mf.settings, mf.world)
    run.console.print(found.table())
    run.results |= found.as_json()
    if run.options.gradient:
        spins = 1 if mf.istype("RHF") and not mf.mol.spin else 2
        density_command.tell_parts(
            run, exact_parts(mf.mol, mf.world, spins, run.threads), "gradient_estimate"
        )
    run.finish(mf.world)


def _begin_io(mf: Any, trace_file: Path | None) -> RawRates | None:
    """Measures raw rates of the scratch disk (rank 0), then sets counters to zero, so that the report shows the run
    alone. For a small molecule, whose integrals have fewer bytes than a measurement moves, it uses rates of earlier
    runs."""
    from outcore import trace
    from outcore.job import machine

    raw = None
    with mf.world.together("prepare the I/O report"):
        if trace_file is not None and not trace_file.absolute().parent.is_dir():
            raise OutcoreError(errno.ENOENT, "write trace", path=trace_file, detail="no such directory")
        if mf.settings.storage != "direct" and mf.world.rank == 0:
            scratch = find_scratch(mf.settings.scratch)
            pairs = int(mf.mol.nao) * (int(mf.mol.nao) + 1) // 2
            stored_bytes = _INTEGRAL_BYTES * pairs * (pairs + 1) // 2
            raw = machine.disk(scratch, fresh=True, moved_bytes=stored_bytes, kept_at=mf.settings.keep)
    trace.reset()
    if trace_file is not None:
        trace.start(_EVENTS)
    return raw


def _end_io(
    comm: Intracomm | None, run_seconds: float, raw: RawRates | None, trace_file: Path | None
) -> Report | None:
    """Makes the I/O report of all processes (rank 0), and writes the trace file."""
    from outcore import trace
    from outcore.trace import report

    if trace_file is not None:
        return trace.save(trace_file, comm, run_seconds=run_seconds, raw=raw)
    return report.gather(comm, run_seconds, raw)


def _results(
    mf: Any, work: IntegralWork, report: Report | None, storage: EnergyError, run_seconds: float
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "energy_hartree": float(mf.e_tot),
        "converged": bool(mf.converged),
        "cycles": int(mf.cycles),
        "functions": int(mf.mol.nao),
        "molecular_orbitals": int(np.shape(mf.mo_occ)[-1]),
        "storage": mf.settings.storage,
        "records": mf.settings.records,
        "screening": mf.settings.screening,
        "integral_work": asdict(work),
        "point_group": mf.two_electron.symmetry.as_json(),
    }
    if report is not None:
        from outcore.trace.report import READS

        result["emulated"] = report.emulated
        processes = len(report.processes)
        result["read_bytes"] = report.total("file", READS).bytes
        result["io_wait_share"] = report.io_seconds("file") / (processes * run_seconds)
    result["storage_error"] = {**asdict(storage), "bound": storage.bound}
    if mf.stored_summary is not None:
        result["stored"] = {**asdict(mf.stored_summary), "bytes": mf.stored_summary.bytes}
    return result
