"""Contractions of matrices on disk by `outcore.einsum`, in a tenth of their size and less.

Products of matrices in disk arrays, also of an array with itself, in a given amount of memory, on 1, 2 and 4
processes. The claims are: bytes moved over the lower bound of docs/why/bounds.md, the speed over that of in-core
matrix products, and the deviation of bytes and time from their predictions, in both directions. Before the
measurement, runs of the same kind correct the rates of the planner, as runs of every program do; the first run on
a machine whose rates are not known is measured, too. A Program of three statements is measured in the same way, and
so is the traffic that is saved when the processes of a node share panels. NumPy multiplies in core, from files that
it loads whole; Dask's tensordot works on zarr with chunks that fit into the same memory. --quick takes two smaller
products, on one process.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, claim_memory
from outcore.tensor.layout.blocks import Partition, rectangles, useful_rectangles
from outcore.tensor.layout.triangles import MOST_ROWS, useful_triangles

from ._workers import Failed, python_worker

REASONS = {
    "(square|small memory|symmetric): bytes over the bound": "panels are whole, and two of each operand are "
    "there: docs/why/bounds.md",
    "symmetric, small memory: bytes over the bound": "processors take longest here, so the planner takes deeper "
    "panels, which are multiplied faster, and reads more",
    ".*, 4 processes: time and prediction": "four processes share two cores",
    "(square|thin): time and prediction": "half of what was predicted: rates of earlier runs were too low",
    "program: time and prediction": "missed by less than runs differ",
}

LIMIT_S = 900
DEPTH = 64  # inner indices of an operand's panel: products of thinner panels are much slower


@dataclass(frozen=True)
class Case:
    """out[m, n] = left[m, k] right[k, n] in `memory_bytes`. `symmetric`: one array with itself, left[m, k]
    left[n, k], m = n."""

    name: str
    m: int
    n: int
    k: int
    memory_bytes: int
    symmetric: bool = False

    @property
    def arrays(self) -> int:
        """Number of elements of all arrays."""
        return self.m * self.k + (0 if self.symmetric else self.k * self.n) + self.m * self.n

    @property
    def attainable(self) -> tuple[float, str]:
        """The least traffic in bytes among the planner's blocks of panels, with panels of operands DEPTH deep or
        deeper; and a description of those blocks."""
        m, n, k, words = self.m, self.n, self.k, self.memory_bytes / 8
        deep = min(DEPTH, k)
        found = []
        for rows, columns, blocks in self.partitions:
            a, w = math.ceil(m / rows), math.ceil(n / columns)
            depth = (words - blocks.most * a * w) / (blocks.held[0] * a + blocks.held[1] * w)
            if depth >= deep:
                moved = m * k * blocks.read[0] / rows + k * n * blocks.read[1] / columns + m * n
                found.append((moved, f"{blocks.count} blocks of {rows} x {columns} panels"))
        for pieces in range(1, 65):  # an operand in pieces; memory keeps one piece at a time
            for side, other in ((m, n), (n, m)):
                if math.ceil(side / pieces) * (k + deep) + 2 * deep * deep <= words:
                    times = (pieces + 1) / 2 if self.symmetric else pieces
                    found.append(
                        ((0 if self.symmetric else side * k) + times * other * k + m * n, "one operand kept")
                    )
        moved, how = min(found)
        return 8 * moved, how

    @property
    def partitions(self) -> Iterator[tuple[int, int, Partition]]:
        if self.symmetric:
            for rows in range(1, MOST_ROWS + 1):
                for _, blocks in useful_triangles(rows):
                    yield rows, rows, blocks
            return
        for rows in range(1, 65):
            for columns in range(1, 65):
                yield rows, columns, rectangles(rows, columns, 1, self.m / self.n)
                if max(rows, columns) <= 12:
                    for _, blocks in useful_rectangles(rows, columns, self.m / self.n):
                        yield rows, columns, blocks


QUICK = (
    Case("square", 1600, 1600, 1600, 5 << 20),
    Case("narrow", 256, 2048, 2048, 4 << 20),
)
FULL = (
    Case("square", 4000, 4000, 4000, 32 << 20),
    Case("small memory", 4000, 4000, 4000, 4 << 20),
    Case("narrow", 400, 10000, 10000, 16 << 20),
    Case("thin", 8000, 8000, 64, 16 << 20),
    Case("long", 600, 600, 60000, 8 << 20),
    Case("symmetric", 6000, 6000, 6000, 52 << 20, symmetric=True),
    Case("symmetric, small memory", 6000, 6000, 6000, 5 << 20, symmetric=True),
)


def run(options: BenchOptions) -> list[Claim]:
    cases = QUICK if options.quick else FULL
    times = 2 if options.quick else 3
    claims: list[Claim] = []
    for case in cases:
        ours = measure(options, case, "symmetric" if case.symmetric else "outcore", times)
        options.say(ours["table"])
        claims += claims_of(case, ours, times)
        if case.name == "square":
            claims += peers(options, case, ours, times)
            claims += of_program(options, case, times)
            claims.append(first_run(options, case))
        if not options.quick and not case.symmetric:
            for processes in (2, 4):
                several = measure(options, case, "outcore", times, processes=processes)
                claims.append(
                    Claim(
                        f"{case.name}: {processes} processes against one",
                        median(ours) / median(several),
                        "x",
                        None,
                        "",
                        f"two threads of one process, and {processes} processes of one thread, each with the same "
                        f"memory; {ours['moved'] / 1e6:.0f} and {several['moved'] / 1e6:.0f} MB moved",
                    )
                )
                claims += predictions(
                    f"{case.name}, {processes} processes", several, f"{processes} processes"
                )
                if case.name == "square":
                    claims.append(shared(options, case, several, processes))
    return claims


def shared(options: BenchOptions, case: Case, together: dict[str, Any], processes: int) -> Claim:
    """Traffic with panels that the processes of a node share, over traffic without sharing."""
    alone = measure(options, case, "apart", 1, processes=processes)
    return Claim(
        f"{case.name}: bytes of {processes} processes that share panels",
        together["moved"] / alone["moved"],
        "x",
        at_most(0.9),
        "the same processes, each of which reads for itself",
        f"{together['moved'] / 1e6:.0f} and {alone['moved'] / 1e6:.0f} MB; {median(together):.3f} and "
        f"{median(alone):.3f} s",
    )


def of_program(options: BenchOptions, case: Case, times: int) -> list[Claim]:
    """Measures a Program of three statements, which is planned as a whole."""
    found = measure(options, case, "program", times)
    options.say(found["report"])
    return predictions("program", found, "two products of arrays on disk, and a function of tiles")


def first_run(options: BenchOptions, case: Case) -> Claim:
    """Deviation of the time of a process that finds no rates of earlier ones."""
    cache = options.scratch / "rates"
    found = measure(options, case, "first", 1, OUTCORE_CACHE=str(cache))
    shutil.rmtree(cache, ignore_errors=True)
    seconds, predicted = median(found), found["predicted_seconds"]
    return Claim(
        f"{case.name}, first run on a machine: time and prediction",
        apart(seconds, predicted),
        "x",
        at_most(1.25),
        "",
        f"no rates of earlier runs; {seconds:.3f} s with what is loaded, {predicted:.3f} s predicted",
    )


def predictions(name: str, found: dict[str, Any], how: str) -> list[Claim]:
    """Deviations of bytes and time from their predictions."""
    seconds = median(found)
    return [
        Claim(
            f"{name}: bytes and prediction",
            apart(found["moved"], found["predicted_bytes"]),
            "x",
            at_most(1.02),
            "",
            f"{how}; {found['moved'] / 1e6:.1f} MB, {found['predicted_bytes'] / 1e6:.1f} MB predicted",
        ),
        Claim(
            f"{name}: time and prediction",
            apart(seconds, found["predicted_seconds"]),
            "x",
            at_most(1.2),
            "",
            f"{how}; {seconds:.3f} s, {found['predicted_seconds']:.3f} s predicted",
        ),
    ]


def measure(
    options: BenchOptions, case: Case, way: str, times: int, processes: int = 1, **environment: str
) -> dict[str, Any]:
    arguments = [way, *(str(each) for each in (case.m, case.n, case.k, case.memory_bytes, times))]
    claim_memory(256 << 20)
    done = subprocess.run(
        python_worker("_einsum_worker", *arguments, mpi_processes=processes),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, "OUTCORE_SCRATCH": str(options.scratch), **environment},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Failed(f"{way}, {case.name}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not answer["good"]:
        raise Failed(f"{way}, {case.name}: the result is wrong")
    options.say(f"{way:8s} {case.name:8s} {processes} processes {median(answer):8.3f} s")
    return answer


def median(answer: dict[str, Any]) -> float:
    return float(statistics.median(answer["seconds"]))


def claims_of(case: Case, ours: dict[str, Any], times: int) -> list[Claim]:
    flops = ours["flops"]
    seconds = median(ours)
    size = f"{case.m} x {case.n} x {case.k} in {case.memory_bytes / 1e6:.0f} MB, median of {times} runs"
    share = case.memory_bytes / 8 / case.arrays
    attainable, blocks = case.attainable
    disk = ours["disk_seconds"]
    bound_by_disk = disk > 1.5 * flops / ours["gemm"]
    claims = [
        Claim(
            f"{case.name}: bytes over the bound",
            ours["moved"] / ours["bound"],
            "x",
            at_most(1.25) if share <= 0.1 else None,
            "",
            f"{size}; memory is {share:.3f} of the arrays; {ours['moved'] / 1e6:.0f} MB moved, the bound is "
            f"{ours['bound'] / 1e6:.0f} MB; {blocks} of panels {DEPTH} deep move about {attainable / 1e6:.0f} MB, "
            f"{attainable / ours['bound']:.2f} times the bound",
        ),
        *predictions(case.name, ours, size),
        Claim(
            f"{case.name}: part of the speed of products alone",
            flops / seconds / ours["gemm"],
            "",
            at_least(0.85) if case.name == "square" else None,
            "the same BLAS, 1024 x 1024 x 1024, threads of one thread each",
            f"{size}; {flops / seconds / 1e9:.1f} of {ours['gemm'] / 1e9:.1f} Gflop/s",
        ),
    ]
    return [
        *claims,
        Claim(
            f"{case.name}: part of the speed of the disk",
            disk / seconds,
            "",
            at_least(0.9) if bound_by_disk else None,
            "requests of 2 MiB, direct I/O, eight under way",
            f"{size}; {'disk' if bound_by_disk else 'products'} take longest; {disk:.3f} s for the bytes alone",
        ),
    ]


def apart(a: float, b: float) -> float:
    """The ratio of the larger to the smaller value."""
    return max(a / b, b / a)


def peers(options: BenchOptions, case: Case, ours: dict[str, Any], times: int) -> list[Claim]:
    result = []
    for way, bar, peer in (
        ("numpy", None, "NumPy in core, files loaded whole"),
        ("dask", at_least(2.0), "Dask tensordot on zarr"),
    ):
        name = f"{case.name}: against {way}"
        if way == "dask" and any(importlib.util.find_spec(each) is None for each in ("dask", "zarr")):
            result.append(Claim(name, None, "x", bar, peer, "dask or zarr is not installed"))
            continue
        theirs = measure(options, case, way, times)
        how = f"median of {times} runs; ours {median(ours):.3f} s, theirs {median(theirs):.3f} s"
        if "peak" in theirs:
            how += f", {theirs['peak'] / 1e6:.0f} MB resident at most"
        result.append(Claim(name, median(theirs) / median(ours), "x", bar, peer, how))
    return result
