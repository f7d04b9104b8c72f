"""RI-SCF and RI-MP2 of C14H8F6 in little memory, against PySCF and Psi4.

Whole runs are timed from outside, start-up included, in turn, on two cores each: wall time, processor time, and the
largest resident memory, interpreter and libraries included. The time of MP2 alone is the one that each program
reports. Outcore gets 250 MB for the SCF and 400 MB for MP2, PySCF 8 GB, and Psi4 500 MB, of which it takes
more. All converge the energy to 1e-9 Eh with the same auxiliary bases, for MP2 also the orbital gradient to 1e-7.
Energies are compared with PySCF's; of Cartesian functions with Psi4's, which leaves out auxiliary functions that
depend on others, as Outcore does. The claims compare estimates with the actual runs, and show the share of reading
that was hidden behind computing. To measure the limit of the disk, J alone is built from all integrals on disk
(pure functionals need no more), against the raw rate of the disk at the same time. --quick takes MP2 in STO-3G and
one run of each program, so start-up weighs much. `ri_large` has a system whose integrals are larger than memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcore import trace
from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import total_memory_bytes

from . import _least
from ._molecules import c14h8f6
from ._peers import missing
from ._workers import raw_rate

REASONS = {
    "J from disk: rate": "the disk of a virtual machine ends all requests at once [M11]",
}

CORES = 2
SCF_MEMORY, MP2_MEMORY = 250_000_000, 400_000_000
PYSCF_MEMORY, PSI4_MEMORY = 8_000_000_000, 500_000_000
PATIENCE = 3.0  # in large cases a peer is stopped after this multiple of our time


@dataclass(frozen=True)
class Run:
    """A whole run: wall and processor seconds, largest memory, energies (Hartree), seconds of MP2 alone."""

    seconds: float
    cpu_seconds: float
    memory_bytes: int
    energy: float
    correlation: float | None = None
    mp2_seconds: float | None = None
    results: dict[str, Any] = field(default_factory=dict)  # of Outcore: the results of the run (--json)


@dataclass(frozen=True)
class Case:
    name: str
    basis: str
    cartesian: bool
    correlated: bool
    memory_bytes: int
    title: str = "C14H8F6"
    atoms: list[str] = field(default_factory=c14h8f6)
    large: bool = False

    def geometry(self, scratch: Path) -> Path:
        path = scratch / "molecule.xyz"
        path.write_text("\n".join([str(len(self.atoms)), self.title, *self.atoms, ""]))
        return path


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        cases = [Case("RI-MP2/STO-3G", "sto-3g", False, True, MP2_MEMORY)]
    else:
        cases = [
            Case("RI-SCF/6-31G*", "6-31g*", True, False, SCF_MEMORY),
            Case("RI-SCF/cc-pVDZ", "cc-pvdz", False, False, SCF_MEMORY),
            Case("RI-MP2/cc-pVDZ", "cc-pvdz", False, True, MP2_MEMORY),
        ]
    claims = [claim for case in cases for claim in measure(case, options)]
    return claims + _disk_claims(cases[min(1, len(cases) - 1)], options)


def measure(case: Case, options: BenchOptions) -> list[Claim]:
    runs = _measured(case, options)
    options.ran(case.name, runs["ours"][0].results)
    return _claims(case, runs)


def _measured(case: Case, options: BenchOptions) -> dict[str, list[Run]]:
    geometry = case.geometry(options.scratch)
    runs: dict[str, list[Run]] = {"ours": [], "PySCF": []}
    if why := missing("Psi4"):
        options.say(why)
    else:
        runs["Psi4"] = []
    programs: dict[str, Callable[[float | None], Run]] = {
        "ours": lambda _: _ours(case, geometry, options.scratch),
        "PySCF": lambda most: _pyscf(case, geometry, options.scratch, most),
        "Psi4": lambda most: _psi4(case, geometry, options.scratch, most),
    }
    for _ in range(1 if options.quick or case.large else 3):
        for name in list(runs):
            most = PATIENCE * runs["ours"][0].seconds if case.large and name != "ours" else None
            try:
                result = programs[name](most)
            except subprocess.TimeoutExpired:
                options.say(f"{case.name:18} {name:6} not done after {most:.0f} s")
                del runs[name]
                continue
            runs[name].append(result)
            options.say(
                f"{case.name:18} {name:6} {result.seconds:7.1f} s, processor {result.cpu_seconds:7.1f} s, "
                f"{result.memory_bytes / 1e6:6.0f} MB, {result.energy:.10f} Eh"
                + (f", MP2 {result.mp2_seconds or 0:.1f} s" if case.correlated else "")
            )
    return runs


def _claims(case: Case, runs: dict[str, list[Run]]) -> list[Claim]:
    ours = runs["ours"]

    def median(name: str, what: str) -> float:
        return float(statistics.median(getattr(each, what) or 0.0 for each in runs[name]))

    how = f"{case.title}, {CORES} cores, " + (f"medians of {len(ours)}" if len(ours) > 1 else "one run")
    peers = [name for name in runs if name != "ours"]
    claims = [
        Claim(
            f"{case.name}: memory",
            max(each.memory_bytes for each in ours) / case.memory_bytes,
            "of the budget",
            at_most(1.0),
            "",
            f"most resident, all processes, of {case.memory_bytes / 1e6:.0f} MB",
        ),
    ]
    if case.large:
        integrals, memory = ours[0].results["integral_bytes"], total_memory_bytes()
        claims.append(
            Claim(
                f"{case.name}: integrals against the memory of this machine",
                integrals / memory,
                "times",
                at_least(1.0),
                "",
                f"{integrals / 1e9:.1f} of {memory / 1e9:.1f} GB",
            )
        )
    references = ("Psi4",) if case.cartesian else ("PySCF", "Psi4")
    reference = next((name for name in references if name in runs), None)
    if reference is not None:
        claims.append(
            Claim(
                f"{case.name}: energy against {reference}'s",
                abs(ours[0].energy - runs[reference][0].energy),
                "Eh",
                at_most(1e-8) if reference == references[0] else None,
                reference,
                "converged to 1e-9 Eh",
            )
        )
    if case.correlated and (theirs := runs["PySCF"][0].correlation) is not None:
        difference = abs((ours[0].correlation or 0.0) - theirs)
        claims.append(
            Claim(
                f"{case.name}: correlation energy against PySCF's",
                difference,
                "Eh",
                at_most(1e-8),
                "PySCF",
                how,
            )
        )
    claims += _estimate_claims(case, ours)
    if not peers:
        how = f"none of them was done after {PATIENCE:.0f} times our time"
        name = f"{case.name}: whole run against the faster peer"
        claims.append(Claim(name, PATIENCE, "times faster, at least", at_least(1.0), "PySCF, Psi4", how))
        return claims
    measures = [("seconds", "whole run"), ("cpu_seconds", "processor time of the whole run")]
    if case.correlated:
        measures.append(("mp2_seconds", "MP2 alone"))
    for what, title in measures:
        fastest = min(peers, key=lambda name: median(name, what))
        # The bars are for the SCF as a whole run, and for MP2 by itself.
        counts = what == ("mp2_seconds" if case.correlated else "seconds")
        for name in peers:
            claims.append(
                Claim(
                    f"{case.name}: {title} against {name}",
                    median(name, what) / median("ours", what),
                    "times faster",
                    at_least(1.0) if counts and name == fastest else None,
                    name,
                    f"{how}: {median(name, what):.1f} / {median('ours', what):.1f} s; "
                    f"{name} took {median(name, 'memory_bytes') / 1e6:.0f} MB",
                )
            )
    return claims


def _estimate_claims(case: Case, ours: list[Run]) -> list[Claim]:
    """The worst deviation of bytes over all runs, stages and kinds, the worst deviation of times, and the median
    overlap."""
    stages = ["scf", *(["mp2"] if case.correlated else [])]
    moved, times, overlapped = [0.0], [], []
    for stage in stages:
        for run in ours:
            forecast = run.results[f"{stage}_forecast"]
            for what in ("written_bytes", "read_bytes"):
                predicted, actual = forecast[what]
                moved.append(abs(predicted - actual) / max(actual, 1) if predicted or actual else 0.0)
            predicted, actual = forecast["seconds"]
            times.append(max(predicted / actual, actual / predicted))
            if (share := run.results[f"{stage}_traffic"]["overlapped"]) is not None:
                overlapped.append(share)
    least = []
    for stage in stages:
        traffic = ours[0].results[f"{stage}_traffic"]
        moved_bytes = traffic["written_bytes"] + traffic["read_bytes"]
        title = f"{case.name}, {'J and K' if stage == 'scf' else 'pairs of MP2'}"
        least += _least.claims(title, ours[0].results, moved_bytes, traffic["least_bytes"])
    claims = [
        *least,
        Claim(
            f"{case.name}: bytes, as estimated", max(moved), "off", at_most(0.25), "", "worst of all stages"
        ),
        Claim(
            f"{case.name}: time, as estimated",
            max(times),
            "times off",
            at_most(2.0),
            "",
            "worst of all stages",
        ),
    ]
    if overlapped:
        share = statistics.median(overlapped)
        how = "of the time in which reads were under way, threads computed"
        claims.append(Claim(f"{case.name}: reading overlapped", share, "of its time", None, "", how))
    return claims


def _disk_claims(case: Case, options: BenchOptions) -> list[Claim]:
    """Builds J from all integrals on disk repeatedly, in turn with the raw rate of the disk: of the same file,
    and of a file that was written in order, which a virtual disk may read faster."""
    from pyscf import gto

    from outcore.chem import ri

    mol = gto.M(atom="\n".join(case.atoms), basis=case.basis, cart=case.cartesian, verbose=0)
    rates, of_same, of_ordered, tool = list[float](), list[float](), list[float](), ""
    given = {"memory": 2 * MP2_MEMORY, "storage": "disk", "scratch": str(options.scratch), "comm": None}
    with ri.RHF(mol, group="C1", **given) as mf:  # with symmetry J needs some of the rows
        fitting = mf.with_df.build()
        density = mf.get_init_guess()
        file = options.scratch / "same"
        file.symlink_to(_largest_open(options.scratch))

        def ours() -> float:
            before, start = _read_bytes(), time.perf_counter()
            fitting.get_jk(density, with_k=False)
            seconds = time.perf_counter() - start
            return (_read_bytes() - before) / seconds

        def raw(path: Path, size_bytes: int) -> float:
            nonlocal tool
            result = raw_rate(path, "read", size_bytes)
            tool = result.tool
            return result.bytes_per_s

        measures: dict[str, Callable[[], float]] = {
            "ours": ours,
            "same": lambda: raw(file, file.stat().st_size >> 20 << 20),
            "ordered": lambda: raw(options.scratch / "raw", 512 << 20),
        }
        # Each turn begins with another side: the data that were read last may be in the memory of the host.
        for turn in range(3 if options.quick else 9):
            order = list(measures)[turn % 3 :] + list(measures)[: turn % 3]
            rate = {name: measures[name]() for name in order}
            rates.append(rate["ours"])
            of_same.append(rate["ours"] / rate["same"])
            of_ordered.append(rate["ours"] / rate["ordered"])
    file.unlink()
    (options.scratch / "raw").unlink()
    how = (
        f"{case.name}, median of {len(rates)}: {statistics.median(rates) / 1e9:.2f} GB/s of a whole pass; raw "
        f"reads the same file; {statistics.median(of_ordered):.2f} of raw reading of a file written in order"
    )
    return [Claim("J from disk: rate", statistics.median(of_same), "of raw", at_least(0.85), tool, how)]


def _read_bytes() -> int:
    """Bytes that nonblocking requests have read from the disk so far."""
    return int(trace.snapshot()["layers"]["device"]["read_async"]["bytes"])


def _largest_open(directory: Path) -> Path:
    """The largest open file of this process whose name below a directory was removed."""
    descriptors = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    ours = [each for each in descriptors if str(each.readlink()).startswith(f"{directory.resolve()}/")]
    largest = max(ours, key=lambda each: each.stat().st_size)
    return Path(f"/proc/{os.getpid()}/fd", largest.name)


# ---- programs ----


def _timed(
    command: list[str], directory: Path | None = None, most: float | None = None
) -> tuple[float, float, int, str]:
    """Wall and processor time of a command, the largest memory of one of its processes, and its output. Raises
    subprocess.TimeoutExpired if it is killed after `most` seconds."""
    threads = {name: str(CORES) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
        env=os.environ | threads,
        start_new_session=True,
    )
    late = threading.Event()

    def give_up() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = None if most is None else threading.Timer(most, give_up)
    if timer is not None:
        timer.start()
    assert process.stdout is not None
    output = process.stdout.read()
    if timer is not None:
        timer.cancel()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if most is not None and late.is_set():
        raise subprocess.TimeoutExpired(command, most)
    if process.returncode != 0:
        raise OutcoreError(
            5, f"run {command[0]}", detail=f"exit status {process.returncode}: {output[-2000:]}"
        )
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output


def _ours(case: Case, geometry: Path, scratch: Path) -> Run:
    results = scratch / "ours.json"
    command = [
        sys.executable, "-m", "outcore", "rimp2" if case.correlated else "ri-scf", str(geometry),
        "--basis", case.basis, "--memory", str(case.memory_bytes), "--threads", str(CORES),
        "--scratch", str(scratch), "--json", str(results),
        *(["--cart"] if case.cartesian else []), *(["--frozen", "auto"] if case.correlated else []),
    ]  # fmt: skip
    seconds, cpu, _, _ = _timed(command)
    data = json.loads(results.read_text())
    return Run(
        seconds,
        cpu,
        data["peak_memory_bytes"],
        data["energy_hartree"],
        data.get("correlation_hartree"),
        data.get("mp2_seconds"),
        data,
    )


_PYSCF = """
import sys, time
from pyscf import gto, scf
from pyscf.mp import dfmp2_native
geometry, basis, cartesian, correlated, memory = sys.argv[1:]
mol = gto.M(atom=geometry, basis=basis, cart=cartesian == "True", verbose=0, max_memory=int(memory) // 10**6)
mf = scf.RHF(mol).density_fit().set(conv_tol=1e-9, chkfile=None)
if correlated == "True":
    mf.conv_tol_grad = 1e-7
energy = mf.kernel()
correlation = seconds = None
if correlated == "True":
    from pyscf.data.elements import chemcore
    start = time.perf_counter()
    correlation = float(dfmp2_native.DFRMP2(mf, frozen=chemcore(mol)).kernel())
    seconds = time.perf_counter() - start
print("result", repr(float(energy)), correlation, seconds)
"""


def _pyscf(case: Case, geometry: Path, scratch: Path, most: float | None) -> Run:
    directory = scratch / "pyscf"
    directory.mkdir(exist_ok=True)
    command = [
        "env",
        f"PYSCF_TMPDIR={directory}",
        sys.executable,
        "-c",
        _PYSCF,
        str(geometry),
        case.basis,
        str(case.cartesian),
        str(case.correlated),
        str(case.memory_bytes if case.large else PYSCF_MEMORY),
    ]
    try:
        seconds, cpu, memory, output = _timed(command, most=most)
    finally:
        shutil.rmtree(directory)
    energy, correlation, mp2 = output.split()[-3:]
    if not case.correlated:
        return Run(seconds, cpu, memory, float(energy))
    return Run(seconds, cpu, memory, float(energy), float(correlation), float(mp2))


def _psi4(case: Case, geometry: Path, scratch: Path, most: float | None) -> Run:
    directory = scratch / "psi4"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    atoms = "\n".join(geometry.read_text().splitlines()[2:])
    (directory / "input.dat").write_text(
        f"""memory {(case.memory_bytes if case.large else PSI4_MEMORY) // 10**6} mb
molecule {{
{atoms}
no_com
no_reorient
symmetry c1
}}
set {{
  basis {case.basis}
  puream {"false" if case.cartesian else "true"}
  {"df_basis_scf def2-svp-jkfit" if case.basis == "sto-3g" else ""}
  {"df_basis_mp2 def2-svp-ri" if case.basis == "sto-3g" else ""}
  scf_type df
  mp2_type df
  freeze_core true
  e_convergence 1e-9
  d_convergence {"1e-7" if case.correlated else "1e-6"}
}}
energy('{"mp2" if case.correlated else "scf"}')
"""
    )
    command = ["psi4", "-n", str(CORES), "-s", str(directory), "input.dat", "output.dat"]
    try:
        seconds, cpu, memory, _ = _timed(command, directory, most)
    except subprocess.TimeoutExpired:
        shutil.rmtree(directory)
        raise
    output = (directory / "output.dat").read_text()
    timer = (directory / "timer.dat").read_text()
    energy = re.search(r"@DF-RHF Final Energy:\s*(-?[\d.]+)", output)
    correlation = re.search(r"^\s*Correlation Energy\s*=?\s*(-?[\d.]+)", output, re.MULTILINE)
    parts = {
        name: float(wall)
        for name, wall in re.findall(r"^DFMP2 (Singles|Aia|Qia|Energy) .*?([\d.]+)w", timer, re.MULTILINE)
    }
    shutil.rmtree(directory)
    if energy is None:
        raise OutcoreError(5, "run psi4", detail=f"no energy in its output: {output[-2000:]}")
    return Run(
        seconds,
        cpu,
        memory,
        float(energy[1]),
        float(correlation[1]) if correlation else None,
        sum(parts.values()) if parts else None,
    )
