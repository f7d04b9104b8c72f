"""Requests of 1024 processes on a simulated clock, with slow nodes and with nodes that fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcore.cli.bench import Claim
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import plain
from outcore.tensor.plan.product_plan import Planned, make_plan
from outcore.tensor.plan.simulate import Slower, simulate

from ._cluster import Cluster

_NODES, _PROCESSES = 64, 16
_MEMORY = 16 << 30  # bytes of a process
_RUNS = 2000


def run(*, quick: bool) -> list[Claim]:
    """A coupled-cluster ladder with integrals on disk; processes take its work from a shared counter."""
    occupied, virtual = (40, 400) if quick else (100, 1000)
    cluster = Cluster(nodes=_NODES, processes=_PROCESSES)
    rates = cluster.rates()
    pairs, both = occupied * (occupied + 1) // 2, virtual * (virtual + 1) // 2
    extents = {"p": pairs, "c": both, "v": both}
    shapes = (pairs, both), (both, both), (pairs, both)
    left, right, out = (plain(shape, np.dtype(float), "disk") for shape in shapes)
    problem = ProductProblem(binary("pc", "cv", "pv", extents), extents, left, right, out)
    planned = Planned(problem, make_plan(problem, _MEMORY, rates))
    alike = simulate(planned, rates, seed=1)
    found = []
    for name, slower in _slow().items():
        result = simulate(planned, rates, seed=1, slower=slower)
        work = sum(1 / slower.get(node, 1.0) for node in range(_NODES)) / _NODES
        found += [
            Claim(
                f"requests of 1024 processes, {name}: time over that of alike nodes",
                result.seconds / alike.seconds,
                "",
                None,
                "",
                f"simulated, {result.seconds:.1f} s against {alike.seconds:.1f}; {len(planned.units)} pieces of "
                f"work; all nodes together could take {1 / work:.3g} times the time",
            ),
            Claim(f"requests of 1024 processes, {name}: idle share", result.idle, "", None, "", ""),
        ]
    return found


def failures(name: str, pieces: Sequence[float], nodes: int, *, years: float, again_s: float) -> Claim:
    """A run whose nodes fail. A failure ends the job; the next job goes on from the last checkpoint.

    pieces: seconds of computing between checkpoints. years: mean time to the failure of one node; failures are
    equally likely at all times. again_s: seconds until the next job computes."""
    random = np.random.default_rng(1)
    mean = years * 365.25 * 86400 / nodes
    every = [_with_failures(pieces, mean, again_s, random) for _ in range(_RUNS)]
    return Claim(
        f"{name}: time with failures over that without",
        float(np.mean(every)) / sum(pieces),
        "",
        None,
        "",
        f"{_RUNS} simulated runs of {sum(pieces):.3g} s; a node fails once in {years:g} years, one of them every "
        f"{mean / 86400:.3g} days; the job begins again after {again_s:g} s with what is kept, {len(pieces)} times "
        f"a run; the longest {max(every):.3g} s",
    )


def _with_failures(
    pieces: Sequence[float], mean: float, again_s: float, random: np.random.Generator
) -> float:
    now, fails = 0.0, float(random.exponential(mean))
    for piece in pieces:
        while now + piece > fails:
            now = fails + again_s
            fails = now + float(random.exponential(mean))
        now += piece
    return now


def _slow() -> dict[str, Slower]:
    return {
        "one node in 64 twice as slow": {5: 2.0},
        "one node in 64 ten times as slow": {5: 10.0},
        "one node in 16 twice as slow": {node: 2.0 for node in range(5, _NODES, 16)},
    }
