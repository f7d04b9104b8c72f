"""One Hartree-Fock run of a study, in each process of a job: `python -m outcore.study.worker SETTINGS`.

SETTINGS is JSON: molecule, integrals, buffer_bytes, disk_bytes, page_cache, scratch, result (file), events (whether
single requests are recorded, into the trace file beside the result).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from outcore import trace
from outcore.base.errors import OutcoreError
from outcore.job import launch
from outcore.study.cases import MOLECULES
from outcore.trace import report

_EVENTS = 1 << 20  # most events of a process
_AHEAD_BYTES = 1 << 20


def main(settings: dict[str, Any]) -> None:
    launch.limit_threads()
    comm = launch.world()
    from outcore.chem.hf.scf import RHF

    mol = MOLECULES[settings["molecule"]].build()
    budget = {} if settings["disk_bytes"] is None else {"disk_bytes": settings["disk_bytes"]}
    mf = RHF(
        mol,
        comm=comm,
        storage=settings["integrals"],
        record_bytes=settings["buffer_bytes"],
        prefetch=max(4, _AHEAD_BYTES // settings["buffer_bytes"]),
        threads=1,
        page_cache=settings["page_cache"],
        scratch=settings["scratch"],
        **budget,
    )
    mf.chkfile = None
    mf.world.barrier()
    trace.reset()
    if settings["events"]:
        trace.start(_EVENTS)
    start = time.monotonic()
    energy = mf.kernel()
    seconds = time.monotonic() - start
    result = Path(settings["result"])
    if settings["events"]:
        gathered = trace.save(result.with_suffix(".trace"), comm, run_seconds=seconds)
    else:
        gathered = report.gather(comm, seconds)
    if gathered is not None:
        stored = mf.stored_summary
        facts = {
            "functions": int(mol.nao),
            "energy_hartree": float(energy),
            "converged": bool(mf.converged),
            "cycles": int(mf.cycles),
            "store_seconds": stored.seconds if stored else None,
            "stored_integrals": stored.stored if stored else 0,
            "stored_bytes": stored.bytes if stored else 0,
            "report": gathered.to_dict(),
        }
        result.write_text(json.dumps(facts))
    mf.close()


if __name__ == "__main__":
    from outcore.cli import main as cli

    try:
        main(json.loads(sys.argv[1]))
    except OutcoreError as error:
        sys.exit(cli.report(error))
