"""CASSCF(18,18) of tetracene: all of its pi orbitals, one state, as commands that are killed and restarted.

First a CASCI with the orbitals of the SCF. It gets SIGKILL in two of its iterations, and each time the next run
goes on from the checkpoint. Then the CASSCF, without a kill. Integrals are exact, in 6-31G; vectors have the
irrep of the ground state in D2h and are folded. The CASSCF starts from the energy of the CASCI, so its energy
is not above that.

--quick: biphenylene, CASSCF(12,12) in STO-3G, in the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import parse_bytes

from . import _killed_runs
from ._fci_runs import Iteration
from .casscf import BIPHENYLENE, TETRACENE, Case

HAS_CASES = True
_KILLED_IN = (3, 4)  # iterations; each run counts from 1, the second goes on from two of the first


@dataclass(frozen=True)
class Run:
    case: Case
    irreps: str  # pi orbitals of each irrep, whose axis x is normal to the molecule
    memory: str


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        return _claims(options, Run(BIPHENYLENE, "B3u=3,B2g=3,B1g=3,Au=3", "500MB"))
    return _claims(options, Run(TETRACENE, "B3u=5,B2g=5,B1g=4,Au=4", "8GB"))


def _claims(options: BenchOptions, run: Run) -> list[Claim]:
    size = run.case.orbitals
    name = f"({size},{size}) of {run.case.name}, {run.memory}"
    casci = options.case(f"CASCI{name}", lambda: _killed(options, run))
    casscf = options.case(f"CASSCF{name}", lambda: _whole(options, run))
    budget, found = parse_bytes(run.memory), casci["results"]
    options.ran(f"CASSCF{name}", casscf["results"], peak_memory_bytes=casscf["peak_bytes"])
    cores = len(os.sched_getaffinity(0))
    how = f"{found['determinants']} determinants, {cores} cores, killed {casci['kills']} times"
    energies = [each["results"]["energies_hartree"][0] for each in (casci, casscf)]
    gain = f"{energies[1]:.10f} after {energies[0]:.10f} Eh"
    return [
        Claim(f"CASCI{name}: iteration", statistics.median(casci["iterations"]), "s", None, "", how),
        Claim(f"CASCI{name}: iterations of all runs", len(casci["iterations"]), "", None, "", how),
        Claim(f"CASCI{name}: peak resident over the memory that it was given", casci["peak_bytes"] / budget, "",
              at_most(1.0), "", how),
        Claim(f"CASSCF{name}: energy", energies[1], "Eh", None, "", gain),
        Claim(f"CASSCF{name}: energy below that of the CASCI", energies[0] - energies[1], "Eh", at_least(0.0),
              "ours", gain),
        Claim(f"CASSCF{name}: time", casscf["results"]["casscf_seconds"], "s", None, "", "once"),
        Claim(f"CASSCF{name}: peak resident over the memory that it was given", casscf["peak_bytes"] / budget, "",
              at_most(1.0), "", "once"),
    ]  # fmt: skip


def _command(options: BenchOptions, run: Run, *more: str) -> list[str]:
    geometry = options.scratch / "molecule.xyz"
    atoms = run.case.atom.split("; ")
    geometry.write_text("\n".join([str(len(atoms)), run.case.name, *atoms, ""]))
    size = run.case.orbitals
    return [
        sys.executable, "-m", "outcore", "casscf", str(geometry), "--basis", run.case.basis,
        "--cas", f"{size},{size}", "--active", run.irreps, "--irrep", "Ag", "--memory", run.memory,
        "--scratch", str(options.scratch),
        "--checkpoint", str(options.scratch / "kept"), "--json", str(options.scratch / "results.json"), *more,
    ]  # fmt: skip


def _killed(options: BenchOptions, run: Run) -> dict[str, Any]:
    """Runs a CASCI that is killed twice and then runs to its end."""
    kept = options.scratch / "kept"
    kept.mkdir()
    iterations: list[float] = []
    peak = 0
    for killed_in in (*_KILLED_IN, None):
        found, most = _killed_runs.run(
            options, run.case.name, _command(options, run, "--casci"), Iteration.of_line, killed_in
        )
        iterations += [each.seconds for each in found]
        peak = max(peak, most)
    shutil.rmtree(kept)
    return {
        "results": _results(options),
        "iterations": iterations,
        "peak_bytes": peak,
        "kills": len(_KILLED_IN),
    }


def _whole(options: BenchOptions, run: Run) -> dict[str, Any]:
    kept = options.scratch / "kept"
    kept.mkdir()
    _, peak = _killed_runs.run(options, run.case.name, _command(options, run), Iteration.of_line)
    shutil.rmtree(kept)
    return {"results": _results(options), "peak_bytes": peak}


def _results(options: BenchOptions) -> Any:
    path = options.scratch / "results.json"
    found = json.loads(path.read_text())
    path.unlink()
    return found
