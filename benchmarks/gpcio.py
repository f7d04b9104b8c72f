"""A block-sparse tensor contraction from disk: noncollective disk arrays, replicated inputs, one striped file.

The contraction of the GPC-IO study, i0[p1,p2] += t[p1,p3,p4,h1] i1[p3,p4,h1,p2], in tiles, half of which are zero,
by `outcore.einsum` in 32 MB of memory per process; each process counts as a node with a disk of its own. Inputs are
on disk and reads bypass the page cache, as if memory were small beside them. The claims compare the time from
distributed inputs to the result, on 1, 2 and 4 processes, and the bytes read from the disk. For replication all
inputs are first copied to every process; that time is shown separately. The study did not fetch ahead; here
runs with and without fetching ahead are measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, claim_memory

from ._workers import Failed, python_worker

REASONS = {
    "contraction against one striped file, 2 processes": "missed by less than runs differ",
    "contraction against one striped file, 4 processes": "four processes share two cores",
}

PROCESSES = (1, 2, 4)


@dataclass(frozen=True)
class Variant:
    title: str
    way: str
    ahead: bool = True


OURS = Variant("disk arrays, ahead", "arrays")
BARE = Variant("disk arrays", "arrays", ahead=False)
REPLICATED = Variant("replicated inputs, ahead", "replicated")
STRIPED = Variant("one striped file, ahead", "striped")
VARIANTS = (OURS, BARE, REPLICATED, STRIPED)

Runs = dict[tuple[str, int], list[dict[str, Any]]]


def run(options: BenchOptions) -> list[Claim]:
    o_tiles, v_tiles, edge = (2, 6, 16) if options.quick else (2, 8, 20)
    counts = (1, 2) if options.quick else PROCESSES
    runs: Runs = {}
    for turn in range(2 if options.quick else 3):
        for processes in counts:
            for variant in VARIANTS[turn:] + VARIANTS[:turn]:
                one = measure(options, variant, processes, (o_tiles, v_tiles, edge))
                runs.setdefault((variant.title, processes), []).append(one)
                options.say(line(variant, processes, one))
    return claims(runs, counts)


def measure(
    options: BenchOptions, variant: Variant, processes: int, size: tuple[int, int, int]
) -> dict[str, Any]:
    arguments = [variant.way, *map(str, size), str(int(variant.ahead))]
    claim_memory(512 << 20)
    done = subprocess.run(
        python_worker("_gpcio_worker", *arguments, mpi_processes=processes),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={
            **os.environ,
            "OUTCORE_SCRATCH": str(options.scratch),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    if done.returncode != 0:
        raise Failed(f"{variant.title} on {processes} processes: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not answer["good"]:
        raise Failed(f"{variant.title} on {processes} processes: the result is wrong")
    return answer


def line(variant: Variant, processes: int, one: dict[str, Any]) -> str:
    copied = f" after {one['replication_seconds']:.2f} s of copying" if variant is REPLICATED else ""
    times = one["read_bytes"] / one["stored_bytes"]
    return (
        f"{variant.title:34s} {processes} {'process' if processes == 1 else 'processes':9s} "
        f"{one['seconds']:7.2f} s, read {one['read_bytes'] / 1e6:7.0f} MB, "
        f"{times:.1f} times the {one['stored_bytes'] / 1e6:.0f} MB there "
        f"are{copied}"
    )


def claims(runs: Runs, counts: tuple[int, ...]) -> list[Claim]:
    def median(variant: Variant, processes: int, what: str = "seconds") -> float:
        return float(statistics.median(one[what] for one in runs[variant.title, processes]))

    result = []
    turns = len(runs[OURS.title, counts[0]])
    for n in counts:
        mine = median(OURS, n)
        how = f"{n} processes, medians of {turns} runs; ours {mine:.2f} s, fetching ahead"
        copied = median(REPLICATED, n, "replication_seconds")
        alone = median(REPLICATED, n)
        result += [
            Claim(
                f"contraction against replicated inputs, {n} processes",
                (alone + copied) / mine,
                "x",
                at_least(1.0),
                "replicated inputs in exclusive files",
                f"{how}; theirs {alone:.2f} s after {copied:.2f} s of copying",
            ),
            Claim(
                f"contraction against one striped file, {n} processes",
                median(STRIPED, n) / mine,
                "x",
                at_least(1.0),
                "shared file",
                how,
            ),
            Claim(
                f"bytes read against replicated inputs, {n} processes",
                median(REPLICATED, n, "read_bytes") / max(1.0, median(OURS, n, "read_bytes")),
                "x",
                at_least(0.99),
                "replicated inputs, without the copying",
                how,
            ),
            Claim(
                f"fetching ahead, {n} processes",
                median(BARE, n) / mine,
                "x",
                None,
                "disk arrays without it",
                "",
            ),
        ]
    return result
