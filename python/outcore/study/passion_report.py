"""The report of the PASSION experiment: Markdown, figures, JSON."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outcore.cli import bench
from outcore.study import figures
from outcore.study.cases import INTERFACES, KIB, MOLECULES, Case, Device
from outcore.study.markdown import cut, io_summary, percent, size_classes, table
from outcore.study.passion import IO_SHARE, SECTIONS, Passion
from outcore.study.runner import Outcome

MARK = "*Emulated storage.*"
_STUDY_SHARES = "41.9, 62.3, 54.1 %"


class Document:
    """The report of a study, written into its directory. It names missing runs."""

    def __init__(self, study: Passion, device: Device, scratch: Path) -> None:
        self._study, self._device, self._scratch = study, device, scratch
        self._directory = study.runner.directory
        self._lines: list[str] = []

    def write(self) -> list[Path]:
        """Writes report.md, results.json and the figures; returns their paths."""
        self._head()
        parts: list[Callable[[], list[Path]]] = [
            self._direct, self._interfaces, self._summary, self._over_time,
            self._buffers, self._processes, self._stripes, self._placement, self._effects,
        ]  # fmt: skip
        drawn = [path for part in parts for path in part()]
        text, results = self._directory / "report.md", self._directory / "results.json"
        text.write_text("\n".join(self._lines).rstrip() + "\n")
        results.write_text(json.dumps(self._results(), indent=1) + "\n")
        return [text, results, *drawn]

    # ---- helpers

    def _say(self, *lines: str) -> None:
        self._lines += [*lines, ""]

    def _known(self, section: str) -> list[Outcome[Case]]:
        """Outcomes of a section; the report says which runs are missing."""
        cases = list(SECTIONS[section](self._study, self._device))
        missing = [case.key for case in cases if self._study.runner.known(case) is None]
        if missing:
            self._say(f"Not run yet: {', '.join(dict.fromkeys(missing))}.")
        return self._study.outcomes(iter(cases))

    def _figure(self, path: Path, text: str) -> list[Path]:
        self._say(f"![{text}]({path.name})")
        return [path]

    def _of(self, case: Case) -> Outcome[Case] | None:
        return self._study.runner.known(case)

    # ---- parts

    def _head(self) -> None:
        facts = bench.machine(self._scratch)
        now = datetime.datetime.now(datetime.UTC).date().isoformat()
        d = self._device
        self._say(
            "# Disk-based Hartree-Fock and its I/O: the PASSION experiment",
            "",
            f"Made by `outcore study passion` on {now}; {facts['processor']}, {facts['cores']} cores, "
            f"{facts['memory_bytes'] / 2**30:.0f} GiB, Linux {facts['kernel']}, scratch on "
            f"{facts['scratch']['file_system']}. Every number is measured; runs have one thread a process.",
        )
        rows = []
        for size in self._study.plan.sizes:
            m = MOLECULES[size]
            kind = "cartesian" if m.cartesian else "spherical"
            rows.append([size, m.title, f"{m.basis}, {kind}", str(m.functions), f"`{m.file}`"])
        self._say("## What was run", "", table(["size", "molecule", "basis", "functions", "geometry"], rows))
        self._say(
            f"**Emulated storage**: {d.text()}, by the throttled engine. Requests queue for a disk in the order "
            "in which they arrive; the latency of each comes after its bytes have been moved, and overlaps with "
            "other requests. There is no page cache, and all processes share the disks. It was calibrated "
            f"beforehand so that plain records would take {percent(IO_SHARE)} of the run time of "
            f"{self._study.plan.sizes[-1]}, as they did in the study ({_STUDY_SHARES} for its three sizes); "
            "their actual share is below. Sections and columns that rest on it are marked "
            f"{MARK} The others are of the storage of this machine, past the page cache.",
        )
        self._say(
            "The three interfaces move the same integral records, and differ in their requests only:",
            "",
            "- **plain records**: each record is moved by the calling thread while it waits, in the pieces in "
            "which the run-time library of GNU Fortran moves an unformatted sequential record through its buffer "
            "of 8 KiB (default up to version 9): a read as two, a write as three (`OUTCORE_REQUESTS=fortran`).",
            "- **the library**: each record is one request of the library, for which the calling thread waits "
            "(`OUTCORE_REQUESTS=blocking`).",
            "- **the library, prefetch**: records are written behind, two at a time, and read ahead, 1 MiB of them "
            "(but at least four); asynchronous, as everywhere else.",
            "",
            "I/O time is the time in which the program was blocked, summed over processes; run time is that of the "
            "SCF, from the start guess to convergence.",
        )

    def _direct(self) -> list[Path]:
        self._say("## Direct against disk")
        self._known("direct")
        rows, worst = [], []
        for size in self._study.plan.sizes:
            direct = self._of(Case(size, "direct"))
            if direct is None:
                continue
            row = [size, f"{direct.seconds:.2f}"]
            emulated = [self._of(Case(size, interface=i, device=self._device)) for i in INTERFACES]
            auto = self._of(Case(size, "auto", device=self._device))
            real = self._of(Case(size))
            row += ["-" if each is None else f"{each.seconds:.2f}" for each in (real, *emulated, auto)]
            rows.append(row)
            if auto is not None:
                worst.append(f"{size} {auto.seconds / direct.seconds:.2f}")
        emulated_names = (f"{name}, emulated" for name in ("plain", "library", "prefetch", "auto"))
        self._say(table(["seconds", "direct", "prefetch, this machine", *emulated_names], rows))
        if worst:
            self._say(f"{MARK} Run time of `--storage auto` / direct: {', '.join(worst)}.")
        errors = [
            abs(o.energy - direct.energy)
            for o in self._study.outcomes(SECTIONS["direct"](self._study, self._device))
            if (direct := self._of(Case(o.case.molecule, "direct"))) is not None
        ]
        if errors:
            self._say(
                f"Largest difference of an energy from that of the direct run: {max(errors):.1e} Hartree."
            )
        return []

    def _interfaces(self) -> list[Path]:
        self._say("## Interfaces", "", MARK)
        outcomes = self._known("interfaces")
        rows = []
        for o in outcomes:
            plain = self._of(Case(o.case.molecule, interface="fortran", device=self._device))
            if plain is not None:
                rows.append([f"{o.case.molecule}, {INTERFACES[o.case.interface]}", *_times(o, plain)])
        self._say(table(_HEAD, rows))
        self._say(
            "In the study: I/O time cut by 51, 43, 44 % by the interface and by 94 to 95 % with prefetch, run time "
            "by 23 to 28 % and by 32 to 43 %.",
        )
        if not outcomes:
            return []
        path = self._directory / "interfaces.png"
        figures.bars(path, outcomes, "Run time of each interface (emulated storage)")
        return self._figure(path, "run time and I/O time of the interfaces")

    def _summary(self) -> list[Path]:
        self._say("## I/O summaries and request sizes", "", MARK)
        for size in self._study.plan.sizes:
            for interface in ("fortran", "asynchronous"):
                if (o := self._of(Case(size, interface=interface, device=self._device))) is not None:
                    self._say(
                        f"### {size}, {INTERFACES[interface]}",
                        "",
                        f"{o.seconds:.2f} s, {o.facts['cycles']} cycles, "
                        f"{o.facts['stored_integrals']:.3e} integrals in {o.facts['stored_bytes'] / 1e6:.1f} MB.",
                        "",
                        io_summary(o),
                        size_classes(o),
                    )
        return []

    def _over_time(self) -> list[Path]:
        size = self._study.plan.sizes[0]
        self._say("## Durations and sizes of requests over time", "", f"{MARK} {size}.")
        drawn = []
        for case in self._study.traced(self._device):
            trace = self._study.runner.trace_of(case)
            made = figures.over_time(self._directory, trace, f"{case.molecule.lower()}-{case.interface}")
            if not made:
                self._say(f"Not run yet: {case.key}.")
            for path in made:
                drawn += self._figure(path, f"{INTERFACES[case.interface]}: {path.stem}")
        return drawn

    def _varied(self, section: str, title: str, name: Callable[[Case], str], note: str = "") -> list[Path]:
        """A table with a row for each outcome, compared with plain records of the first setting."""
        self._say(f"## {title}", "", f"{MARK} {note}".rstrip())
        outcomes = self._known(section)
        if not outcomes:
            return []
        first = next((o for o in outcomes if o.case.interface == "fortran"), outcomes[0])
        rows = [[f"{name(o.case)}, {INTERFACES[o.case.interface]}", *_times(o, first)] for o in outcomes]
        self._say(table(_HEAD, rows))
        path = self._directory / f"{section}.png"
        figures.lines(path, outcomes, name, f"{title} (emulated storage)")
        return self._figure(path, title)

    def _buffers(self) -> list[Path]:
        size = self._study.plan.varied
        note = f"{size}. The buffer is the integral record: one request holds so much."
        return self._varied("buffers", "Buffer size", lambda case: f"{case.buffer_bytes // KIB} KiB", note)

    def _processes(self) -> list[Path]:
        note = (
            f"{self._study.plan.varied}. The machine has {bench.machine(self._scratch)['cores']} cores: more "
            "processes than that share them."
        )
        return self._varied("processes", "Number of processes", _processes_of, note)

    def _stripes(self) -> list[Path]:
        size, most = self._study.plan.varied, max(self._study.plan.processes)
        note = (
            f"{size}, {most} processes. Every file of integrals is striped over the disks of the emulated storage, "
            "which stands for the parallel file system of the study."
        )

        def name(case: Case) -> str:
            assert case.device is not None
            return f"{case.device.disks} x {case.device.stripe_bytes // KIB} KiB"

        return self._varied("stripes", "Stripe factor and stripe unit", name, note)

    def _placement(self) -> list[Path]:
        self._say(
            "## Placement: the striped store of the library",
            "",
            "The same requests without the chemistry, on the storage of this machine: 2 processes write records of "
            "64 KiB and read them several times, 1 MiB of them ahead; each in an exclusive file of its own (the "
            "local placement model), or in one shared file striped over several files (the global one). Integrals "
            "themselves are kept in exclusive files. All files are on one disk here, so that stripes cost and "
            "cannot gain.",
        )
        rows = []
        for stream in self._study.placement():
            known = self._study.runner.known(stream)
            if known is None:
                self._say(f"Not run yet: {stream.key}.")
                continue
            place = (
                f"{stream.components} x {stream.stripe_bytes // KIB} KiB"
                if stream.components
                else "exclusive"
            )
            rates = [f"{known.facts[f'{kind}_bytes_per_s'] / 1e6:.0f}" for kind in ("write", "read")]
            rows.append([place, *rates])
        self._say(table(["files x stripe unit", "write / MB/s", "read / MB/s"], rows))
        return []

    def _effects(self) -> list[Path]:
        self._say("## Effects", "", f"{MARK} {self._study.plan.varied}.")
        self._known("effects")
        steps = self._chain(
            "One after another, each on top of those before:", self._study.steps(self._device)
        )
        self._chain("Each alone:", self._study.alone(self._device), chained=False)
        if len(steps) < 2:
            return []
        first = steps[0][1]
        gains = [
            (
                name,
                (before.seconds - now.seconds) / first.seconds,
                (before.io_seconds - now.io_seconds) / first.io_seconds,
            )
            for (_, before), (name, now) in itertools.pairwise(steps)
        ]
        gains.sort(key=lambda gain: -gain[1])
        self._say(
            "Ranked by the share of the run time of the first that they save (in brackets: of its I/O time): "
            + ", ".join(f"{name} {percent(run, 0)} ({percent(io, 0)})" for name, run, io in gains)
            + ". By I/O time: "
            + ", ".join(name for name, _, _ in sorted(gains, key=lambda gain: -gain[2]))
            + ". In the study: interface, prefetch, buffer size, processes, stripe factor, stripe unit.",
        )
        path = self._directory / "effects.png"
        figures.effects(path, gains)
        return self._figure(path, "effects, ranked")

    def _chain(
        self, title: str, steps: Sequence[tuple[str, Case]], chained: bool = True
    ) -> list[tuple[str, Outcome[Case]]]:
        known = [(name, o) for name, case in steps if (o := self._of(case)) is not None]
        rows = []
        for at, (name, o) in enumerate(known):
            before = known[max(at - 1, 0) if chained else 0][1]
            change = [] if not chained else [cut(o.seconds, before.seconds)]
            rows.append([name, *_times(o, known[0][1]), *change])
        self._say(title, "", table([*_HEAD, *(["run time, of the step"] if chained else [])], rows))
        return known

    def _results(self) -> dict[str, Any]:
        runs = {}
        for section in SECTIONS.values():
            for o in self._study.outcomes(section(self._study, self._device)):
                runs[o.case.key] = {
                    "case": asdict(o.case),
                    "emulated": o.report.emulated,
                    "run_seconds": o.seconds,
                    "io_seconds": o.io_seconds,
                    "io_share": o.io_share,
                    "reads": o.reads,
                    "writes": o.writes,
                    **{name: value for name, value in o.facts.items() if name != "report"},
                }
        streams = {
            stream.key: {"case": asdict(stream)} | {k: v for k, v in known.facts.items() if k != "report"}
            for stream in self._study.placement()
            if (known := self._study.runner.known(stream)) is not None
        }
        return {
            "streams": streams,
            "machine": bench.machine(self._scratch),
            "device": asdict(self._device),
            "runs": runs,
        }


def _processes_of(case: Case) -> str:
    return "1 process" if case.processes == 1 else f"{case.processes} processes"


_HEAD = ["", "run / s", "I/O / s", "% of run time", "I/O time", "run time"]


def _times(outcome: Outcome[Case], first: Outcome[Case]) -> list[str]:
    return [
        f"{outcome.seconds:.2f}",
        f"{outcome.io_seconds:.3f}",
        percent(outcome.io_share),
        cut(outcome.io_seconds, first.io_seconds),
        cut(outcome.seconds, first.seconds),
    ]
