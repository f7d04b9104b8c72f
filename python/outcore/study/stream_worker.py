"""The request stream of disk-based Hartree-Fock, without the chemistry, in each process of a job:
`python -m outcore.study.stream_worker SETTINGS`.

Every process writes its records one after another, and reads all of them several times, some ahead: in an
exclusive file of its own (the local placement model), or in its part of one shared file that is striped over the
disks (the global one). SETTINGS is JSON: components (0: exclusive files), stripe_bytes, buffer_bytes, records,
passes, scratch, result (file).
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from outcore import ExclusiveFile, SharedFile, World, trace
from outcore.job import launch
from outcore.trace import report

_AHEAD = 16


def main(settings: dict[str, Any]) -> None:
    comm = launch.world()
    size, records = settings["buffer_bytes"], settings["records"]
    with World(scratch=settings["scratch"]) as world:
        lanes = [np.full(size, world.rank, np.uint8) for _ in range(_AHEAD)]
        file: Any
        if settings["components"]:
            file = SharedFile(
                world,
                "records",
                typical_request=settings["stripe_bytes"],
                components_per_node=settings["components"],
                page_cache="direct",
            )
        else:
            file = ExclusiveFile("records", scratch=settings["scratch"], page_cache="direct")
        begin = world.rank * records * size if settings["components"] else 0

        def move(start: Callable[[Any, int], Any]) -> float:
            """Moves all records once, some at a time; returns the seconds until all processes have finished."""
            world.barrier()
            begun = time.monotonic()
            under_way: deque[Any] = deque()
            for record in range(records):
                if len(under_way) == _AHEAD:
                    under_way.popleft().wait()
                under_way.append(start(lanes[record % _AHEAD], begin + record * size))
            while under_way:
                under_way.popleft().wait()
            world.barrier()
            return time.monotonic() - begun

        trace.reset()
        start = time.monotonic()
        write_seconds = move(file.write_async)
        read_seconds = sum(move(file.read_async) for _ in range(settings["passes"]))
        seconds = time.monotonic() - start
        if any((lane != world.rank).any() for lane in lanes):
            raise AssertionError("records that were read differ from those that were written")
        gathered = report.gather(comm, seconds)
        if gathered is not None:
            volume = records * size * world.size
            facts = {
                "write_bytes_per_s": volume / write_seconds,
                "read_bytes_per_s": volume * settings["passes"] / read_seconds,
                "report": gathered.to_dict(),
            }
            Path(settings["result"]).write_text(json.dumps(facts))
        file.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
