"""The PASSION experiment: the cost of the I/O of disk-based Hartree-Fock, and the changes that reduce it.

Each section is a list of runs, and a part of the report about their results. Runs are on an emulated storage. It is
calibrated so that I/O takes the same share of the run time of LARGE with plain records as in the study.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from outcore.study.cases import INTERFACES, KIB, Case, Device, Stream
from outcore.study.runner import Outcome, Runner

IO_SHARE = 0.541  # share of I/O in the run time of LARGE with plain records, in the study
BUFFERS = (64 * KIB, 128 * KIB, 256 * KIB)
PROCESSES = (1, 2, 4)
DISKS = (1, 2, 4, 8)
STRIPES = (16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB)
_DISKS, _STRIPE = 4, 64 * KIB  # unless they are varied

# Moving a record takes this share of the rest of a request's time. With it the library has about half of the I/O
# time of plain records, which are two requests where it has one, as in the study (51, 43, 44 % less).
_MOVING = 0.3


@dataclass(frozen=True)
class StudySizes:
    """The sizes and settings of a study, the full one or a quick one."""

    sizes: tuple[str, ...]
    varied: str  # the size for which all but the interface is varied
    buffers: tuple[int, ...] = BUFFERS
    processes: tuple[int, ...] = PROCESSES
    disks: tuple[int, ...] = DISKS
    stripes: tuple[int, ...] = STRIPES
    components: tuple[int, ...] = (1, 2, 4)
    records: int = 2048


FULL = StudySizes(("SMALL", "MEDIUM", "LARGE"), "MEDIUM")
QUICK = StudySizes(("TINY",), "TINY", BUFFERS[:2], PROCESSES[:2], DISKS[:2], STRIPES[1:2], (2,), 64)


class Passion:
    """The runs of the study."""

    def __init__(self, runner: Runner, plan: StudySizes) -> None:
        self.runner, self.plan = runner, plan

    # ---- the device

    @property
    def _device_file(self) -> Path:
        return self.runner.directory / "device.json"

    def known_device(self) -> Device | None:
        path = self._device_file
        return Device(**json.loads(path.read_text())["device"]) if path.is_file() else None

    def device(self) -> Device:
        """The emulated storage. The first call calibrates it, by a run on the storage of the machine and a run on
        the first guess. Its file may be written by hand, for another storage."""
        known = self.known_device()
        if known is not None:
            return known
        pilot = self.runner.run(Case(self.plan.sizes[-1]))
        overhead = overhead_s()
        made = calibrated(pilot, overhead)
        trial = self.runner.run(Case(self.plan.sizes[-1], interface="fortran", device=made))
        made = corrected(made, trial, overhead)
        content = {"device": asdict(made), "io_share_aimed_at": IO_SHARE, "calibrated_with": pilot.case.key}
        self._device_file.write_text(json.dumps(content, indent=1) + "\n")
        return made

    # ---- the cases of the sections

    def interfaces(self, device: Device) -> Iterator[Case]:
        for size in self.plan.sizes:
            for interface in INTERFACES:
                yield Case(size, interface=interface, device=device)

    def direct(self, device: Device) -> Iterator[Case]:
        for size in self.plan.sizes:
            yield Case(size, "direct")
            yield Case(size, "auto", device=device)
            yield Case(size)

    def buffers(self, device: Device) -> Iterator[Case]:
        for buffer_bytes in self.plan.buffers:
            for interface in INTERFACES:
                yield Case(self.plan.varied, interface=interface, buffer_bytes=buffer_bytes, device=device)

    def processes(self, device: Device) -> Iterator[Case]:
        for processes in self.plan.processes:
            for interface in INTERFACES:
                yield Case(self.plan.varied, interface=interface, processes=processes, device=device)

    def stripes(self, device: Device) -> Iterator[Case]:
        most = max(self.plan.processes)
        for interface in ("fortran", "asynchronous"):
            case = Case(self.plan.varied, interface=interface, processes=most, device=device)
            for disks in self.plan.disks:
                yield case.on(disks=disks)
            for stripe_bytes in self.plan.stripes:
                if stripe_bytes != device.stripe_bytes:
                    yield case.on(stripe_bytes=stripe_bytes)

    def steps(self, device: Device) -> list[tuple[str, Case]]:
        """The runs that measure the effects: the name of each step, and its run with all steps before it."""
        plan = self.plan
        first = Case(plan.varied, interface="fortran", device=replace(device, disks=1))
        steps = [("plain records, 64 KiB, 1 process, 1 disk", first)]

        def add(name: str, case: Case) -> None:
            steps.append((name, case))

        add("interface: the library", replace(first, interface="blocking"))
        add("prefetch", replace(first, interface="asynchronous"))
        largest = replace(first, interface="asynchronous", buffer_bytes=plan.buffers[-1])
        add(f"buffer of {plan.buffers[-1] // KIB} KiB", largest)
        more = replace(largest, processes=2)
        add("2 processes", more)
        wide = more.on(disks=plan.disks[-1])
        add(f"stripe factor {plan.disks[-1]}", wide)
        add(f"stripe unit {plan.stripes[0] // KIB} KiB", wide.on(stripe_bytes=plan.stripes[0]))
        return steps

    def alone(self, device: Device) -> list[tuple[str, Case]]:
        """The same changes, each alone, from plain records of two processes on one disk."""
        plan = self.plan
        first = Case(plan.varied, interface="fortran", processes=2, device=replace(device, disks=1))
        return [
            ("plain records, 64 KiB, 2 processes, 1 disk", first),
            ("interface: the library", replace(first, interface="blocking")),
            ("interface and prefetch", replace(first, interface="asynchronous")),
            (f"buffer of {plan.buffers[-1] // KIB} KiB", replace(first, buffer_bytes=plan.buffers[-1])),
            ("1 process", replace(first, processes=1)),
            (f"stripe factor {plan.disks[-1]}", first.on(disks=plan.disks[-1])),
            (
                f"stripe factor {plan.disks[-1]}, stripe unit {plan.stripes[0] // KIB} KiB",
                first.on(disks=plan.disks[-1], stripe_bytes=plan.stripes[0]),
            ),
        ]

    def effects(self, device: Device) -> Iterator[Case]:
        for _, case in [*self.steps(device), *self.alone(device)]:
            yield case

    def placement(self) -> Iterator[Stream]:
        """The striped store of the library beside files of each process, with the same requests."""
        first = replace(Stream(0), records=self.plan.records)
        yield first
        for components in self.plan.components:
            for stripe_bytes in self.plan.stripes:
                yield replace(first, components=components, stripe_bytes=stripe_bytes)

    def traced(self, device: Device) -> list[Case]:
        """Runs whose single requests are drawn."""
        return [Case(self.plan.sizes[0], interface=interface, device=device) for interface in INTERFACES]

    # ---- running

    def run(self, only: Sequence[str] = ()) -> None:
        """Does the runs of the sections `only` (all, if none is named) that have not been done. Raises
        OutOfTime."""
        device = self.device()
        traced = {case.key for case in self.traced(device)}
        for name in only or NAMES:
            for case in SECTIONS[name](self, device) if name in SECTIONS else ():
                self.runner.run(case, events=case.key in traced)
            for stream in self.placement() if name == PLACEMENT else ():
                self.runner.run(stream)

    def outcomes(self, cases: Iterator[Case]) -> list[Outcome[Case]]:
        """Outcomes of the cases that have been run."""
        return [outcome for case in cases if (outcome := self.runner.known(case)) is not None]


SECTIONS: dict[str, Callable[[Passion, Device], Iterator[Case]]] = {
    "interfaces": Passion.interfaces,
    "direct": Passion.direct,
    "buffers": Passion.buffers,
    "processes": Passion.processes,
    "stripes": Passion.stripes,
    "effects": Passion.effects,
}
PLACEMENT = "placement"
NAMES = (*SECTIONS, PLACEMENT)
"""The values of `--only`."""


def calibrated(pilot: Outcome[Case], overhead_s: float) -> Device:
    """The storage on which plain records take IO_SHARE of the run, from the time that a run computes, the number of
    its requests, and the overhead of a request. A plain read is two requests, a plain write three
    (outcore/device/blocking.hpp)."""
    io_s = IO_SHARE / (1 - IO_SHARE) * pilot.compute_seconds
    moved = pilot.reads + pilot.writes
    each_s = io_s / (2 * pilot.reads + 3 * pilot.writes + _MOVING * moved)
    bandwidth = _rounded(pilot.case.buffer_bytes / (_MOVING * each_s))
    return Device(bandwidth, _latency(each_s, overhead_s), _DISKS, _STRIPE)


def corrected(device: Device, trial: Outcome[Case], overhead_s: float) -> Device:
    """The storage on which the plain records of a trial on `device` would have taken IO_SHARE of the run, every
    request being slower or faster by the same factor."""
    factor = IO_SHARE / (1 - IO_SHARE) * trial.compute_seconds / trial.io_seconds
    return replace(
        device,
        bandwidth_bytes_per_s=_rounded(device.bandwidth_bytes_per_s / factor),
        latency_s=_latency(factor * (device.latency_s + overhead_s), overhead_s),
    )


def _latency(each_s: float, overhead_s: float) -> float:
    """The latency of a storage whose requests have to take `each_s`. It is a tenth of `each_s` at least, however
    large the overhead."""
    return _rounded(max(each_s - overhead_s, 0.1 * each_s))


_PROBE = """
import statistics, sys, time
from outcore import _core
with _core.ExclusiveFile("probe", scratch=sys.argv[1], page_cache="buffered") as file:
    block = bytearray(32768)
    file.write(block, 0)
    times = []
    for _ in range(2000):
        start = time.perf_counter()
        file.read(block, 0)
        times.append(time.perf_counter() - start)
    file.delete()
print(statistics.median(times))
"""


def overhead_s() -> float:
    """The overhead of a blocking request (s), beyond its time on an emulated storage: system calls, copies, waking
    up."""
    latency_s = 200e-6
    with tempfile.TemporaryDirectory() as place:
        environment = dict(
            os.environ, OUTCORE_THROTTLE="bandwidth=1000GB,latency=200us", OUTCORE_REQUESTS="blocking"
        )
        command = [sys.executable, "-c", _PROBE, place]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return max(0.0, float(answer.stdout) - latency_s)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
