"""Multireference CI: products with packed vectors, in memory and in files, against OpenMolcas.

N2 on RHF orbitals, cores frozen, no inactive orbitals, 10 electrons in 8 active ones: 2.56 million spin
functions in cc-pVQZ. The time of a product is that of a whole iteration, with all work on vectors; times are
medians over iterations without the first. Unpacked vectors in the memory of one process are compared with
OpenMolcas, which has one thread, in processor seconds. Then vectors are packed for an error of 1e-8 Hartree, in
memory and with half of them in files.

Additions read, unpack, add, pack and write records of 1250 elements, on 1 to 4 processes; the literature reports
3 MB/s per process in memory and 2 MB/s in files. The files of additions are small, so the page cache may serve
them. Where each process has a core, the rate per process on several processes over that on one must nearly reach
the same ratio for packing alone, which is the limit of the cores. On fewer cores both are shown without a bar.
--quick takes 6-31G.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from outcore.chem.mrci import MRCI
from outcore.chem.mrci.solver import Iteration
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import cores

from ._workers import Failed, python_worker

BOUND = 1e-8
ITERATIONS = 8
LIMIT_S = 900
PAPER = {"memory": 3.0, "file": 2.0}  # MB/s per process
FLAT = 0.9  # bar: the rate per process on several processes over that on one, relative to packing alone

INPUT = """&SEWARD
Symmetry
X Y Z
Basis set
N.{basis}....
N 0.0 0.0 0.54885 Angstrom
End of basis
End of input
&SCF
&MOTRA
Frozen
1 0 0 0 1 0 0 0
Lumorb
&GUGA
Title
n2
Electrons
10
Spin
1
Inactive
0 0 0 0 0 0 0 0
Active
2 1 1 0 2 1 1 0
NonInteracting
CIAll
1
&MRCI
SDCI
"""


def run(options: BenchOptions) -> list[Claim]:
    basis = "6-31g" if options.quick else "cc-pvqz"
    name = f"N2/{basis}, CAS(10,8)"
    mf = _mean_field(basis)
    theirs = _of_openmolcas(options, basis)
    one = _timed(options, mf, name, threads=1)
    threads = min(2, cores())
    many = _timed(options, mf, name, threads=threads)
    packed = _timed(options, mf, name, threads=threads, error_bound=BOUND)
    half = int(packed["packed_bytes"] / 2)
    spilled = _timed(options, mf, name, threads=threads, error_bound=BOUND, vector_memory=half)
    bars = not options.quick
    return [
        *_beside(name, theirs, one, many, threads, bars=bars),
        Claim(
            f"{name}: packed", packed["bits"], "bits an element, all vectors of the search",
            at_most(14) if bars else None, "", packed["how"],
        ),
        Claim(
            f"{name}: half of the vectors in a file", spilled["wall"] / packed["wall"],
            "times the time of an iteration in memory", at_most(1.5) if bars else None, "",
            f"memory for half of the bytes; requests of the file: {spilled['requests']}; {spilled['how']}",
        ),
        Claim(
            f"{name}: share of the vectors in that file", spilled["spilled"], "of the packed bytes",
            at_least(0.5) if bars else None, "",
            "memory holds half of the bytes; more lies in the file, as memory is left free for vectors that are "
            "multiplied next",
        ),
        *_additions(options),
    ]  # fmt: skip


def _beside(
    name: str, theirs: dict[str, Any], one: dict[str, Any], many: dict[str, Any], threads: int, *, bars: bool
) -> list[Claim]:
    peer, seconds = theirs["peer"], theirs["seconds"]
    found = [
        Claim(f"{name}: iteration on one thread", one["cpu"], "s of the processor", None, "", one["how"]),
        Claim(f"{name}: iteration on {threads} threads", many["wall"], "s", None, "", many["how"]),
    ]
    if seconds is None:
        return [*found, Claim(f"{name}: iteration of OpenMolcas", None, "s", None, peer, theirs["how"])]
    return [
        *found,
        Claim(f"{name}: iteration of OpenMolcas", seconds, "s of the processor", None, peer, theirs["how"]),
        Claim(
            f"{name}: one thread", one["cpu"] / seconds, "times OpenMolcas' processor time",
            at_most(1.0) if bars else None, peer, one["how"],
        ),
        Claim(
            f"{name}: {threads} threads", many["wall"] / seconds, "times OpenMolcas' processor time",
            at_most(0.5) if bars and threads == 2 else None, peer, many["how"],
        ),
        Claim(
            f"{name}: energies", abs(theirs["energy"] - one["energy"]), "Eh apart",
            at_most(1e-6), peer, "OpenMolcas has another bohr",
        ),
    ]  # fmt: skip


def _mean_field(basis: str) -> Any:
    from pyscf import gto, scf

    mol = gto.M(atom="N 0 0 0; N 0 0 1.0977", basis=basis, symmetry="D2h", verbose=0)
    return scf.RHF(mol).run(conv_tol=1e-11)


def _timed(options: BenchOptions, mf: Any, name: str, **settings: Any) -> dict[str, Any]:
    """Runs a search for a few iterations. Returns median seconds of an iteration, wall and processor, the energy,
    and counters of packing and files."""
    walls: list[float] = []
    clock = [time.process_time()]

    def told(iteration: Iteration) -> None:
        walls.append(iteration.seconds)
        clock.append(time.process_time())

    given: dict[str, Any] = {"frozen": 2, "inactive": 0, "active": 8, "comm": None}
    limit: dict[str, Any] = {} if settings.get("threads") == 1 else {"max_cycle": ITERATIONS}
    with MRCI.from_mean_field(mf, **given, **limit, **settings) as ci:
        ci.on_iteration = told
        energy = float(ci.kernel())
        spent = [after - before for before, after in itertools.pairwise(clock[1:])]
        found: dict[str, Any] = {
            "wall": statistics.median(walls[1:]),
            "cpu": statistics.median(spent),
            "energy": energy,
        }
        if ci.report is not None:
            report = ci.report
            found |= {"bits": report.bits, "packed_bytes": report.packed_bytes, "spilled": report.spilled}
            found["requests"] = ", ".join(
                f"{each.count} {what} of {each.least} to {each.most} bytes, {each.mean:.0f} in the mean"
                for what, each in (("read", report.file_reads), ("written", report.file_writes))
            )
        options.say(
            f"{name}, {settings}: {energy:.8f} Eh after {len(walls)} iterations, {found['wall']:.3g} s each, "
            f"{found['cpu']:.3g} s of the processor"
            + (
                ""
                if ci.report is None
                else f"; {ci.report.bits:.1f} bits, {ci.report.spilled:.2f} in the file"
            )
        )
    found["how"] = f"median of {len(spent)} iterations, passes over vectors included"
    return found


def _of_openmolcas(options: BenchOptions, basis: str) -> dict[str, Any]:
    """Processor seconds of an iteration of OpenMolcas, without the first one, and its energy."""
    if shutil.which("pymolcas") is None:
        return {"peer": "", "seconds": None, "how": "OpenMolcas is not installed"}
    work = options.scratch / "molcas"
    (work / "run").mkdir(parents=True)
    (work / "n2.inp").write_text(INPUT.format(basis=basis))
    done = subprocess.run(
        ["pymolcas", "n2.inp"],
        cwd=work,
        env={**os.environ, "MOLCAS_MEM": "4000", "MOLCAS_WORKDIR": str(work / "run"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
    )
    rows = re.findall(r"^ +\d+ +\d+ +-\d+\.\d{8}.* (\d+\.\d) +(\d+\.\d)$", done.stdout, re.MULTILINE)
    energy = re.search(r"TOTAL ENERGY: +(-\d+\.\d+)", done.stdout)
    shutil.rmtree(work)
    if len(rows) < 3 or energy is None:
        raise Failed(f"OpenMolcas: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    seconds = statistics.median(float(spent) for spent, _total in rows[1:])
    version = re.search(r"version: *(v?[\d.]+)", done.stdout)
    options.say(f"OpenMolcas: {energy[1]} Eh after {len(rows)} iterations, {seconds:.3g} s each")
    return {
        "peer": f"OpenMolcas {version[1] if version else ''}".strip(),
        "seconds": max(seconds, 0.05),  # it prints tenths
        "energy": float(energy[1]),
        "how": f"median of {len(rows) - 1} iterations, as it prints them, to tenths of a second",
    }


def _additions(options: BenchOptions) -> list[Claim]:
    records, additions = (500, 2000) if options.quick else (4000, 20000)
    claims = []
    for place, share in (("memory", 1.0), ("file", 0.0)):
        one: dict[str, float] = {}
        for processes in (1, 2) if options.quick else (1, 2, 4):
            done = subprocess.run(
                python_worker(
                    "_mrci_worker", str(share), str(records), str(additions), mpi_processes=processes
                ),
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
                env={**os.environ, "OUTCORE_SCRATCH": str(options.scratch), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                cwd=Path.cwd(),
            )
            if done.returncode != 0:
                raise Failed(f"additions, {processes} processes: {done.stderr[-2000:]}")
            found = json.loads(done.stdout.splitlines()[-1])
            options.say(f"additions, {place}, {processes} processes: {found['rate']:.4g} MB/s each")
            one = one or found
            where = "memory" if place == "memory" else "a file"
            served = "" if place == "memory" else "the file is small: the page cache may serve it; "
            claims.append(
                Claim(
                    f"additions in {where}, {processes} processes",
                    found["rate"],
                    "MB/s a process",
                    at_least(PAPER[place]),
                    f"literature: {PAPER[place]:g} MB/s a process",
                    f"{found['in_memory']:.2f} of the records in memory, {found['bytes']:.0f} bytes each; "
                    f"{served}{cores()} cores",
                )
            )
            if processes > 1:
                alone = found["packing"] / one["packing"]
                flat = not options.quick and processes <= cores()
                claims.append(
                    Claim(
                        f"additions in {where}, {processes} processes over one",
                        found["rate"] / one["rate"],
                        "times the rate of a process",
                        at_least(FLAT * alone) if flat else None,
                        "",
                        f"packing alone: {alone:.2f} times; the bar is {FLAT} of it where each process has a core; "
                        f"{cores()} cores",
                    )
                )
    return claims
