"""Global arrays: patches and single words of another process, and new arrays, against memcpy and raw MPI.

Two processes, in two worlds: one where they share memory, as on a node, and one where each counts as a node, so
that all transfers use MPI. Process 0 moves data of process 1, which meanwhile sleeps or computes.
"""

from __future__ import annotations

import errno
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, Threshold, at_least, at_most, median_claim
from outcore.job import launch

WORLDS = {"hosts": "memory shared", "processes": "as between nodes"}
LIMIT_S = 300
LARGE_BYTES = 32 << 20


def measure(nodes: str, options: BenchOptions) -> dict[str, Any]:
    """Seconds of each kind of transfer, as the worker measured them."""
    place = options.scratch / f"{nodes}.json"
    worker = Path(__file__).with_name("_ga_worker.py")
    command = [
        str(launch.find_launcher()), "-n", "2", sys.executable, str(worker), str(place),
        "quick" if options.quick else "full",
    ]  # fmt: skip
    answer = subprocess.run(
        command,
        env={**os.environ, "OUTCORE_NODES": nodes, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if answer.returncode != 0:
        raise OutcoreError(errno.EIO, "run two processes", detail=(answer.stdout + answer.stderr)[-2000:])
    result: dict[str, Any] = json.loads(place.read_text())
    return result


def ratios(times: dict[str, Any], kind: str, peer: str) -> list[float]:
    """The peer's times over Outcore's, turn by turn."""
    theirs: list[float] = times[f"{kind} {peer}"]
    ours: list[float] = times[f"{kind} ours"]
    return [a / b for a, b in zip(theirs, ours, strict=True)]


def rate(seconds: list[float], size_bytes: int = 1 << 20) -> str:
    return f"{size_bytes / statistics.median(seconds) / 1e9:.1f} GB/s"


def _transfers(times: dict[str, Any], where: str, options: BenchOptions) -> list[Claim]:
    claims = []
    for kind in ("get", "put", "get square", "put square"):
        options.say(
            f"{where}: {kind} {rate(times[f'{kind} ours'])}, "
            f"MPI {rate(times[f'{kind} mpi'])}, memcpy {rate(times[f'{kind} copy'])}"
        )
        patch = "362 x 362 elements of a matrix" if "square" in kind else "a contiguous patch"
        how = f"{where}; {patch}, 1 MiB; 64 in turn; median of {len(times[f'{kind} ours'])} ratios taken in turns"
        claims.append(
            median_claim(
                f"{kind}, {where}, against MPI",
                ratios(times, kind, "mpi"),
                "x",
                at_least(0.9),
                times["peer"],
                how,
            )
        )
        bar: Threshold | None = at_least(0.8) if where == WORLDS["hosts"] else None
        claims.append(
            median_claim(
                f"{kind}, {where}, against memcpy",
                ratios(times, kind, "copy"),
                "x",
                bar,
                "NumPy, of the own patch",
                how,
            )
        )
        claims.append(
            median_claim(
                f"{kind}, {where}, against memcpy of private memory",
                ratios(times, kind, "private"),
                "x",
                None,
                "NumPy, maybe in huge pages",
                how,
            )
        )
    return claims


def _accumulate(times: dict[str, Any], where: str) -> Claim:
    how = f"{where}; contiguous float64, 1 MiB; ours {rate(times['accumulate ours'])}"
    values = ratios(times, "accumulate", "mpi")
    return median_claim(f"accumulate, {where}, against MPI", values, "x", None, times["peer"], how)


def _large(times: dict[str, Any], where: str) -> list[Claim]:
    """Patches larger than the caches, and new arrays whose memory is used for the first time. For comparison,
    without bars."""
    claims = []
    for kind in ("get large", "put large"):
        for peer, name in (("mpi", times["peer"]), ("copy", "NumPy, of the own patch")):
            ours, theirs = (rate(times[f"{kind} {who}"], LARGE_BYTES) for who in ("ours", peer))
            how = f"{where}; 32 MiB; ours {ours}, {theirs}"
            who = "MPI" if peer == "mpi" else "memcpy"
            claims.append(
                median_claim(
                    f"{kind}, {where}, against {who}", ratios(times, kind, peer), "x", None, name, how
                )
            )
    ours, theirs = (statistics.median(times[f"fill {who}"]) * 1e3 for who in ("ours", "mpi"))
    how = f"{where}; by 2 processes, until it is given back; ours {ours:.0f} ms, {theirs:.0f} ms"
    name = f"making and filling an array of 512 MiB, {where}, against a window of MPI"
    claims.append(median_claim(name, ratios(times, "fill", "mpi"), "x", None, times["peer"], how))
    return claims


def _words(times: dict[str, Any], where: str) -> list[Claim]:
    claims = []
    for name, who in (("word ours", "8-byte get"), ("word mpi", "the same by MPI")):
        taken = sorted(times[name])
        last = taken[min(len(taken) - 1, len(taken) * 99 // 100)]
        how = (
            f"{where}; process 1 computes and never calls the library; "
            f"median of {len(taken)}, 99 % within {last * 1e6:.0f} us"
        )
        bar = at_most(1000) if name == "word ours" else None
        peer = "" if name == "word ours" else times["peer"]
        claims.append(Claim(f"{who}, {where}", statistics.median(taken) * 1e6, "us", bar, peer, how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    claims: list[Claim] = []
    for nodes, where in WORLDS.items():
        times = measure(nodes, options)
        claims += _transfers(times, where, options)
        claims.append(_accumulate(times, where))
        claims += _large(times, where)
        claims += _words(times, where)
    return claims
