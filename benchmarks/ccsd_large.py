"""Coupled cluster that is large for its memory: C14H8F6 in 1 GB, and ten water molecules with (T) in 2 GB.

C14H8F6 in cc-pVDZ, 53 occupied and 247 virtual orbitals: two iterations of CCSD with 1 GB, and with 12 GB, of which
the times are compared; resident memory is that of the whole command, SCF included. Ten water molecules in cc-pVDZ:
CCSD(T) from the geometry to the energy, in one command with 2 GB. --quick takes benzene and two water molecules in
the same way; times of its iterations, of a second, are told without a bar.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.resources import parse_bytes

from ._cc_programs import CORES, Job
from ._molecules import c14h8f6, flake, waters

SLOWER = 1.1  # in little memory, at most
FAILURE = 1  # exit status of a run that has not converged, too


@dataclass(frozen=True)
class Pair:
    """Two iterations in little memory and in much."""

    job: Job
    much: str


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        pair = Pair(Job("benzene/cc-pVDZ", flake(1), "cc-pvdz", "300MB"), "2GB")
        whole = Job("(H2O)2/cc-pVDZ", waters(2), "cc-pvdz", "300MB")
    else:
        pair = Pair(Job("C14H8F6/cc-pVDZ", c14h8f6(), "cc-pvdz", "1GB"), "12GB")
        whole = Job("(H2O)10/cc-pVDZ", waters(10), "cc-pvdz", "2GB")
    return [*_whole(options, whole), *_two_iterations(options, pair)]


def _whole(options: BenchOptions, job: Job) -> list[Claim]:
    found = _command(options, job, job.memory, "--triples")
    minutes, of_triples = found["run_seconds"] / 60, found["triples_seconds"] / 60
    orbitals = f"{found['occupied'][0]} occupied, {found['virtual'][0]} virtual orbitals"
    how = f"{orbitals}; {found['iterations']} iterations; (T) in {of_triples:.1f} min"
    return [
        Claim(f"{job.name}, {job.memory}: CCSD(T)", minutes, "min", None, "", how),
        Claim(f"{job.name}: CCSD correlation", found["ccsd_correlation_hartree"], "Eh", None, "", ""),
        Claim(f"{job.name}: (T)", found["triples_hartree"], "Eh", None, "", ""),
        _peak(job, found),
    ]


def _two_iterations(options: BenchOptions, pair: Pair) -> list[Claim]:
    few = ("--iterations", "2")
    job = pair.job
    little, much = (_command(options, job, memory, *few) for memory in (job.memory, pair.much))
    seconds = [sum(found["iteration_seconds"]) for found in (little, much)]
    error = abs(little["ccsd_correlation_hartree"] - much["ccsd_correlation_hartree"])
    how = f"two iterations: {seconds[0]:.1f} / {seconds[1]:.1f} s"
    bar = None if options.quick else at_most(SLOWER)
    name = f"{job.name}: iterations in {job.memory} over those in {pair.much}"
    same = f"{job.name}: energy after two iterations, {job.memory} against {pair.much}"
    return [
        Claim(name, seconds[0] / seconds[1], "", bar, "ours with more memory", how),
        Claim(same, error, "Eh", at_most(1e-8), "ours with more memory", how),
        _peak(job, little),
    ]


def _peak(job: Job, found: dict[str, Any]) -> Claim:
    value = found["peak_memory_bytes"] / parse_bytes(job.memory)
    how = f"{found['peak_memory_bytes'] / 1e6:.0f} MB resident at most, SCF included"
    return Claim(f"{job.name}: peak memory over --memory {job.memory}", value, "", at_most(1.0), "", how)


def _command(options: BenchOptions, job: Job, memory: str, *more: str) -> dict[str, Any]:
    """Runs `outcore ccsd`, which tells its iterations; what it says in the end."""
    results = options.scratch / "results.json"
    command = [
        sys.executable, "-m", "outcore", "ccsd", str(job.write(options.scratch)), "--basis", job.basis,
        "--frozen", "auto", "--memory", memory, "--threads", str(CORES), "--scratch", str(options.scratch),
        "--json", str(results), *more,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        options.say(f"{job.name}, {memory}: {line.rstrip()}")
    few = "--iterations" in more
    if process.wait() not in ((0, FAILURE) if few else (0,)) or not results.exists():
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(said[-20:])}")
    found: dict[str, Any] = json.loads(results.read_text())
    results.unlink()
    (options.scratch / "molecule.xyz").unlink()
    return found
