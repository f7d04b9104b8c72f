"""Coupled cluster that is large for its memory: two iterations of C14H8F6 in 1 GB and in 12 GB.

cc-pVDZ, 53 occupied and 247 virtual orbitals. The times of the iterations are compared; resident memory is that of
the whole command, SCF included. --quick takes benzene in a small basis in the same way, without a bar for times, as
its iterations take tenths of a second.
"""

from __future__ import annotations

from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_most

from . import _cc_command, _least
from ._cc_programs import Job
from ._molecules import acene, c14h8f6

REASONS = {
    ".*: iterations in .* over those in .*": (
        "amplitudes and the ladder's integrals move several times an iteration, and both cores "
        "copy, check and permute them"
    ),
}

HAS_CASES = True
SLOWER = 1.1  # largest time in little memory over that in much memory


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        return _two_iterations(options, Job("benzene/6-31G", acene(1), "6-31g", "250MB"), "1GB")
    return _two_iterations(options, Job("C14H8F6/cc-pVDZ", c14h8f6(), "cc-pvdz", "1GB"), "12GB")


def _two_iterations(options: BenchOptions, job: Job, much: str) -> list[Claim]:
    def case(memory: str) -> Any:
        def measure() -> Any:
            good = (0, _cc_command.FAILURE)
            return _cc_command.run(options, job, memory, "--iterations", "2", good=good)[1]

        return options.case(f"{job.name}, {memory}", measure)

    little, ample = case(job.memory), case(much)
    options.ran(job.name, little)
    seconds = [sum(found["iteration_seconds"]) for found in (little, ample)]
    error = abs(little["ccsd_correlation_hartree"] - ample["ccsd_correlation_hartree"])
    how = f"two iterations: {seconds[0]:.1f} / {seconds[1]:.1f} s"
    bar = None if options.quick else at_most(SLOWER)
    moved = little["moved_by_products_of_an_iteration"]
    name = f"{job.name}: iterations in {job.memory} over those in {much}"
    same = f"{job.name}: energy after two iterations, {job.memory} against {much}"
    return [
        Claim(name, seconds[0] / seconds[1], "", bar, "ours with more memory", how),
        Claim(same, error, "Eh", at_most(1e-8), "ours with more memory", how),
        *_least.claims(f"{job.name}, products of an iteration", little, moved["counted"], moved["least"]),
        _cc_command.peak_claim(job, job.memory, little["peak_memory_bytes"]),
    ]
