"""Procedure calls: round trips to a process that is idle, polls, computes or sleeps, and what a service costs.

One process calls a procedure of another process, which answers with 8 bytes to 1 MiB of its one-sided memory. In
turns an MPI ping-pong and a one-sided get (MPI_Win_allocate, lock_all, get, flush) move the same data. For
comparison, a polling process also answers from private memory, which MPI cannot access. There are two settings: on
one host, where an MPI get copies from shared memory; and as between hosts, over TCP and without the wake-ups that
processes of one host send each other. Each process is bound to a core. The worker is a C++ program, compiled on
this machine, so that no interpreter is measured.
"""

from __future__ import annotations

import errno
import os
import statistics
import subprocess
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_most, median_claim
from outcore.job import launch

from ._workers import compile_worker

REASONS = {
    "call of .* after a pause": "the target sleeps and is woken; MPI wakes nobody [M31]",
}

Values = dict[tuple[str, int], list[float]]  # by (kind, size of the reply in bytes): one value per round

SIZES = {8: "8 B", 1024: "1 KiB", 16384: "16 KiB", 131072: "128 KiB", 1 << 20: "1 MiB"}
ONE_HOST, HOSTS = "on one host", "as between hosts"
# Settings of MPICH, then of Open MPI, that make all messages use TCP.
TCP = {
    "OUTCORE_NODES": "processes",
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_osc": "^ucx,sm",
}
SETTINGS: dict[str, dict[str, str]] = {ONE_HOST: {}, HOSTS: TCP}
LIMIT_S = 300


def measure(worker: Path, setting: str, options: BenchOptions) -> Values:
    place = options.scratch / "values"
    rounds, pairs = ("5", "15") if options.quick else ("25", "75")
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", worker, place, rounds, pairs],
        env={**os.environ, **SETTINGS[setting]},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if answer.returncode != 0:
        raise OutcoreError(errno.EIO, "run two processes", detail=(answer.stdout + answer.stderr)[-2000:])
    values: Values = {}
    for line in place.read_text().splitlines():
        name, size, *numbers = line.split("\t")
        values[name, int(size)] = [float(number) for number in numbers]
    return values


def us(values: Values, name: str, size: int) -> float:
    return statistics.median(values[name, size]) * 1e6


def ratios(values: Values, name: str, peer: str, size: int) -> list[float]:
    """Outcore's time over the peer's, round by round."""
    pairs = zip(values[name, size], values[peer, size], strict=True)
    return [ours / theirs for ours, theirs in pairs]


def _transfers(values: Values, setting: str, options: BenchOptions) -> list[Claim]:
    claims = []
    for size, text in SIZES.items():
        times = {
            name: f"{us(values, name, size):.3g}"
            for name in ("polling", "own memory", "idle", "computing", "asleep", "get", "ping-pong")
        }
        options.say(f"{setting}, {text}, us: " + ", ".join(f"{name} {time}" for name, time in times.items()))
        peers = f"get {times['get']} us, ping-pong {times['ping-pong']} us"
        turns = f"median of {len(values['get', size])} ratios taken in turns"
        for name, memory, peer, its_bar in (
            ("polling", "", "get", at_most(2)),
            ("polling", "", "ping-pong", None),
            ("own memory", ", out of its own memory", "get", None),
        ):
            claims.append(
                median_claim(
                    f"call of {text} to a process that polls{memory}, {setting}, against {peer}",
                    ratios(values, name, peer, size),
                    "x",
                    its_bar,
                    "MPI",
                    f"{setting}; reply of {text}; call {times[name]} us, {peers}; {turns}",
                )
            )
    for state in ("idle", "computing", "asleep"):
        taken = sorted(values[state, 8])
        how = f"{setting}; medians of 101 calls between {taken[0] * 1e6:.0f} and {taken[-1] * 1e6:.0f} us"
        how += f"; with a reply of 1 MiB {us(values, state, 1 << 20):.0f} us"
        bar = at_most(150) if state == "computing" else None
        name = f"call of 8 B to a process that is {state}, {setting}"
        claims.append(Claim(name, us(values, state, 8), "us", bar, "", how))
        paused = f"{state} after a pause"
        how = f"{setting}; medians of 9 calls, each after 5 ms without any, {len(values[paused, 8])} times"
        claims.append(Claim(f"{name}, after a pause", us(values, paused, 8), "us", bar, "", how))
    return claims


def _services(values: Values, setting: str) -> list[Claim]:
    slower = values["slower", 0]
    how = f"{setting}; both processes compute, with and without a service; median of {len(slower)} pairs"
    name = f"computation beside an idle service, {setting}, slower by"
    percent = [each * 100 for each in slower]
    claims = [median_claim(name, percent, "%", at_most(1), "itself alone", how)]
    for kind, what in (("share", ""), ("share with one-sided memory", " of calls and one-sided memory")):
        share = values[kind, 0]
        how = (
            f"{setting}; processor time of all threads of the library, the worst of {len(share)} times 0.5 s"
        )
        claims.append(
            Claim(f"idle service{what}, {setting}", max(share) * 100, "% of a core", at_most(2), "", how)
        )
    return claims


def run(options: BenchOptions) -> list[Claim]:
    worker = compile_worker("_gpc_worker.cpp", options.scratch)
    claims: list[Claim] = []
    for setting in SETTINGS:
        values = measure(worker, setting, options)
        claims += _transfers(values, setting, options)
        claims += _services(values, setting)
    worker.unlink()
    (options.scratch / "values").unlink()
    return claims
