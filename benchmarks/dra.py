"""Disk resident arrays against h5py, TensorStore, zarr, zarrs, Global Arrays, HDF5 subfiling and the raw device.

A section of 5000x5000 doubles of a global array goes to and from a disk array of 10000x10000, aligned with its
chunks and offset by one. It is written to a new array, and twice to an existing one: a library that keeps the
committed state until the next commit needs more space, the first time. The array is closed and opened again in
between. For all sides a write ends when the data are on stable storage; reads are cold. Then slices of 9000x1 and
1x9000.

The peers have settings (shape of chunks, caches, kind of I/O, processes). A pilot finds the settings that are best
over all cases for each peer, and those that are best in a single case. All of these then take turns with
Outcore and with the raw device, in new runs that had no part in the choice. The raw device writes and reads
files of the same size and age: a virtual disk writes new files more slowly than existing ones. --quick takes a
section of 1250x1250, and no pilot: each peer has one setting.
The test is that of ChemIO (Nieplocha, Foster, Kendall 1998), Figs 6 and 7.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import cores

from ._dra_sides import (
    CASES,
    OPERATIONS,
    OURS,
    PLACES,
    RAW,
    Candidate,
    Case,
    Group,
    Peers,
    Problem,
    Raw,
    Side,
    find_peers,
    launch_ours,
)
from ._workers import Failed

REASONS = {
    "write to an old array, .*": (
        "the committed state stays until the commit, so new space of the disk is touched [M18]"
    ),
    ".* against the raw device": "the host of the virtual disk moves data with the same cores",
    "cold read.*": "the raw disk itself is not much faster than the best peer",
    "(slice|row) .*": "the peer stores rows; chunks serve rows and columns alike",
    ".*, 4 processes against 2": "four processes share two cores",
}

EQUAL = 0.95  # ratios above this count as equal
OF_PEER, OF_RAW, OF_RAW_OVER_OLD = 1.2, 0.9, 0.8  # least ratios of rates
PROCESSES = 2  # of Outcore in comparisons with others
TALL, WIDE = "tall", "wide"
Times = dict[str, dict[Case, list[float]]]  # seconds by side and case


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    section: int
    pilot_turns: int
    least: int  # number of turns
    most: int
    seconds: float  # after which no new turn begins
    slices: int
    groups: tuple[int, ...] = (1, 2, 4)  # numbers of processes of Outcore


FULL = Effort(5000, pilot_turns=2, least=5, most=11, seconds=330, slices=9)
QUICK = Effort(1250, pilot_turns=0, least=1, most=2, seconds=6, slices=2, groups=(2, 4))


def run(options: BenchOptions) -> list[Claim]:
    effort = QUICK if options.quick else FULL
    n = effort.section
    problem = Problem(n, 2 * n, options.scratch / "section", options.scratch)
    np.random.default_rng(1).random((n, n)).tofile(problem.source)
    peers = find_peers(options.scratch)
    for kind, remedy in peers.missing.items():
        options.say(f"{kind} is not here: no comparison with it ({remedy})")
    chosen = pilot(options, problem, peers, effort)

    with ExitStack() as stack:
        raw = Raw(problem)
        sides: list[Side] = [raw]
        groups = [Group(each, problem, peers.launch(each)) for each in chosen.all]
        groups += [Group(ours(each), problem, launch_ours(each)) for each in effort.groups]
        for each in groups:
            stack.callback(each.close)
        sides += groups
        stack.callback(raw.close)
        for each in groups:  # MPI takes huge pages when it starts, if any are free
            each.workers.wait_until_ready()
        times = take_turns(options, sides, effort)
        failed = [each.name for each in chosen.all if each.name not in times]
        chosen = chosen.only(times)
        groups = [each for each in groups if each.name in times]
        show(problem, times)
        slices = measure_slices(options, problem, groups, effort)
        sure_cold = all(each.sure_cold for each in groups)
    return claims(Measured(problem, peers, chosen, times, slices, raw.tool, sure_cold, failed))


def ours(processes: int) -> Candidate:
    return Candidate(OURS, processes=processes)


# ---- measuring


@dataclass(frozen=True)
class Chosen:
    """The chosen settings of the peers. `overall`: the best of each peer over all cases. `all`: these, and those
    that are best in single cases."""

    overall: list[Candidate]
    all: list[Candidate]

    def only(self, names: Container[str]) -> Chosen:
        """Leaves out settings that have failed since; other settings of the same peer replace them."""
        left = [each for each in self.all if each.name in names]
        overall = [each for each in self.overall if each.name in names]
        kinds = {each.kind for each in overall}
        stand_ins = {each.kind: each for each in reversed(left) if each.kind not in kinds}
        return Chosen([*overall, *stand_ins.values()], left)


def choose(candidates: Sequence[Candidate], times: Mapping[str, Mapping[Case, Sequence[float]]]) -> Chosen:
    def mean(candidate: Candidate) -> float:
        return math.exp(statistics.fmean(math.log(min(runs)) for runs in times[candidate.name].values()))

    measured = [candidate for candidate in candidates if candidate.name in times]
    kinds = dict.fromkeys(candidate.kind for candidate in measured)
    overall = [min((each for each in measured if each.kind == kind), key=mean) for kind in kinds]
    best = []
    for case in CASES:
        best += sorted(measured, key=lambda each: min(times[each.name][case]))[:2]
    return Chosen(overall, unique([*overall, *best]))


def unique(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list({candidate.name: candidate for candidate in candidates}.values())


def pilot(options: BenchOptions, problem: Problem, peers: Peers, effort: Effort) -> Chosen:
    candidates = peers.candidates()
    if effort.pilot_turns == 0:
        first = list({candidate.kind: candidate for candidate in reversed(candidates)}.values())
        return Chosen(first, first)
    times: Times = {}
    for candidate in candidates:
        group = Group(candidate, problem, peers.launch(candidate))
        try:
            mine: dict[Case, list[float]] = {case: [] for case in CASES}
            for _ in range(effort.pilot_turns):
                for case in CASES:
                    mine[case].append(group.seconds(case))
            times[candidate.name] = mine
            options.say(f"{candidate.name:60} {rates(problem, mine)}")
        except Failed as error:
            options.say(f"left out: {error}")
        finally:
            group.close()
    return choose(candidates, times)


def take_turns(options: BenchOptions, sides: Sequence[Side], effort: Effort) -> Times:
    """Measures the sides in turns. Each turn begins with another side, so that no side always follows the same one.
    A peer that fails is left out from then on, and its measurements are dropped."""
    sides = list(sides)
    times: Times = {side.name: {case: [] for case in CASES} for side in sides}
    start = time.perf_counter()
    for turn in range(effort.most):
        if turn >= effort.least and time.perf_counter() - start > effort.seconds:
            break
        first = turn % len(sides)
        for side in [*sides[first:], *sides[:first]]:
            try:
                for case in CASES:
                    times[side.name][case].append(side.seconds(case))
            except Failed as error:
                if not side.is_peer:
                    raise
                options.say(f"left out: {error}")
                side.close()  # its other processes may still run
                sides.remove(side)
                del times[side.name]
        options.say(f"turn {turn + 1} of at most {effort.most}, {time.perf_counter() - start:.0f} s")
    return times


def measure_slices(
    options: BenchOptions, problem: Problem, groups: Sequence[Group], effort: Effort
) -> dict[str, dict[str, list[float]]]:
    """Seconds to read a column and a row of an open array; each read is at another place."""
    times: dict[str, dict[str, list[float]]] = {group.name: {TALL: [], WIDE: []} for group in groups}
    for group in groups:
        group.fill()
    for turn in range(effort.slices):
        for group in groups:
            for axis in (TALL, WIDE):
                index = (turn * 2 + 1) * problem.array // (2 * effort.slices) + turn
                times[group.name][axis].append(group.slice_seconds(axis, index))
    options.say("slices measured")
    return times


# ---- results


def rates(problem: Problem, times: Mapping[Case, Sequence[float]]) -> str:
    numbers = (problem.bytes / statistics.median(times[case]) / 1e6 for case in CASES)
    return " ".join(f"{number:5.0f}" for number in numbers)


def show(problem: Problem, times: Times) -> None:
    table = Table("MB/s", *(case.name for case in CASES), box=box.SIMPLE)
    for name, cases in times.items():
        numbers = (f"{problem.bytes / statistics.median(cases[case]) / 1e6:.0f}" for case in CASES)
        table.add_row(name, *numbers)
    Console(stderr=True, soft_wrap=True).print(table)


@dataclass(frozen=True)
class Measured:
    """All measurements, and the conditions that claims state in `how`."""

    problem: Problem
    peers: Peers
    chosen: Chosen
    times: Times
    slices: Mapping[str, Mapping[str, Sequence[float]]]
    raw_tool: str
    sure_cold: bool
    failed: Sequence[str] = ()  # peers that failed and were left out

    def median(self, name: str, case: Case) -> float:
        return statistics.median(self.times[name][case])

    def version(self, name: str) -> str:
        """The name of a peer with its version."""
        kind = name.partition(",")[0]
        return self.peers.versions.get(kind, kind) + name.removeprefix(kind)

    @property
    def how(self) -> str:
        n, turns = self.problem.section, len(next(iter(self.times["raw device"].values())))
        cold = "pages of the files dropped" if self.sure_cold else "page cache perhaps NOT dropped"
        missing = f"; not here: {', '.join(self.peers.missing)}" if self.peers.missing else ""
        missing += f"; failed and left out: {' and '.join(self.failed)}" if self.failed else ""
        return f"{n}x{n} doubles in {2 * n}x{2 * n}, open to close; {cold}; medians of {turns} turns{missing}"


def claims(measured: Measured) -> list[Claim]:
    return [
        *(claim for case in CASES for claim in speed_claims(measured, case)),
        *(alignment_claim(measured, operation) for operation in OPERATIONS),
        *slice_claims(measured),
        *process_claims(measured),
    ]


def speed_claims(measured: Measured, case: Case) -> Iterator[Claim]:
    mine = measured.median(ours(PROCESSES).name, case)
    raw = measured.median(RAW, case)
    how = f"{measured.how}; ours {PROCESSES} processes"
    for title, candidates in (
        ("", measured.chosen.overall),
        (", peers tuned to the case", measured.chosen.all),
    ):
        if not candidates:
            yield Claim(case.name + title, None, "x", at_least(OF_PEER), "", f"{how}; no peer is here")
            continue
        best = min((each.name for each in candidates), key=lambda name: measured.median(name, case))
        theirs = measured.median(best, case)
        text = f"{how}; the raw device is {theirs / raw:.2f} times as fast as this peer"
        yield Claim(case.name + title, theirs / mine, "x", at_least(OF_PEER), measured.version(best), text)
    text = f"{how}; direct, 1 MiB, 8 under way, once over a file of this size and age"
    bar = at_least(OF_RAW_OVER_OLD if "rewrite" in case.operation else OF_RAW)
    yield Claim(f"{case.name}, against the raw device", raw / mine, "x", bar, measured.raw_tool, text)


def alignment_claim(measured: Measured, operation: str) -> Claim:
    aligned, offset = (measured.median(ours(PROCESSES).name, Case(operation, place)) for place in PLACES)
    name = f"{operation}, offset by one against aligned"
    return Claim(name, aligned / offset, "x", at_least(0.9), "ours, aligned", measured.how)


def slice_claims(measured: Measured) -> Iterator[Claim]:
    length, slices = measured.problem.slice_length, measured.slices

    def median(name: str, axis: str) -> float:
        return statistics.median(slices[name][axis])

    mine = ours(PROCESSES).name
    tall, wide = median(mine, TALL), median(mine, WIDE)
    how = f"{length} doubles of an open array, cold; medians of {len(slices[mine][TALL])} at different places"
    yield Claim(
        f"slices {length}x1 and 1x{length}, slower against faster",
        max(tall, wide) / min(tall, wide),
        "x",
        at_most(2.0),
        "",
        f"{how}; {length}x1 {1e3 * tall:.2f} ms, 1x{length} {1e3 * wide:.2f} ms",
    )
    for axis, shape in ((TALL, f"{length}x1"), (WIDE, f"1x{length}")):
        names = [each.name for each in measured.chosen.overall]
        best = min(names, key=lambda name: median(name, axis), default=None)
        value = None if best is None else median(best, axis) / median(mine, axis)
        peer = "" if best is None else measured.version(best)
        yield Claim(f"slice {shape}", value, "x", at_least(1.0), peer, how)


def process_claims(measured: Measured) -> Iterator[Claim]:
    counts = [count for count in (1, 2, 4) if ours(count).name in measured.times]
    for operation in OPERATIONS:
        cases = [Case(operation, place) for place in PLACES]
        for count in counts:
            if count == PROCESSES:
                continue
            ratio = math.exp(
                statistics.fmean(
                    math.log(
                        measured.median(ours(PROCESSES).name, case) / measured.median(ours(count).name, case)
                    )
                    for case in cases
                )
            )
            name = f"{operation}, {count} process{'es' * (count > 1)} against {PROCESSES}"
            bar = at_least(EQUAL) if count > PROCESSES else None
            yield Claim(
                name, ratio, "x", bar, f"ours, {PROCESSES} processes", f"{measured.how}; on {cores()} cores"
            )
