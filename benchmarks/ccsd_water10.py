"""Ten water molecules: a whole CCSD(T) calculation in 2 GB, in one part or, if interrupted, in several.

(H2O)10 in cc-pVDZ, from the geometry to the energy, as one command, `outcore ccsd --triples --checkpoint`. With
`--keep DIR` an interrupted run (Ctrl-C, `timeout`, a kill) goes on when the same command runs again. Minutes are
those of all parts, and include work that an interrupted part had not committed and that the next part repeated.
--quick takes two molecules in a small basis in the same way.
"""

from __future__ import annotations

import shutil

from outcore.cli.bench import BenchOptions, Claim

from . import _cc_command, _least
from ._cc_programs import Job
from ._molecules import waters

HAS_CASES = True


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        job = Job("(H2O)2/6-31G", waters(2), "6-31g", "250MB")
    else:
        job = Job("(H2O)10/cc-pVDZ", waters(10), "cc-pvdz", "2GB")
    claims = options.claims(job.name, lambda: _whole(options, job))
    shutil.rmtree(options.place(job.name))
    return claims


def _whole(options: BenchOptions, job: Job) -> list[Claim]:
    parts, found = _cc_command.run_in_parts(options, job, job.memory, "--triples")
    orbitals = f"{found['occupied'][0]} occupied, {found['virtual'][0]} virtual orbitals"
    how = f"{orbitals}; {sum(part.iterations for part in parts)} iterations, (T); {len(parts)} parts"
    minutes = sum(part.seconds for part in parts) / 60
    peak = max(part.peak_bytes for part in parts)
    options.ran(job.name, found, peak_memory_bytes=peak, run_seconds=60 * minutes)
    claims = [
        Claim(f"{job.name}, {job.memory}: CCSD(T)", minutes, "min", None, "", how),
        Claim(f"{job.name}: CCSD correlation", found["ccsd_correlation_hartree"], "Eh", None, "", ""),
        Claim(f"{job.name}: (T)", found["triples_hartree"], "Eh", None, "", ""),
        _cc_command.peak_claim(job, job.memory, peak),
    ]
    if len(parts) == 1 and "moved_by_triples" in found:
        moved = found["moved_by_triples"]
        claims += _least.claims(f"{job.name}, (T)", found, moved["counted"], moved["least"])
    for number, part in enumerate(parts, 1):
        how = f"begun {part.date}, commit {part.commit}; {part.iterations} iterations ended in it"
        claims.append(Claim(f"{job.name}, part {number}", part.seconds / 60, "min", None, "", how))
    return claims
