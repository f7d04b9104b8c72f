"""Figures of studies. They need matplotlib."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from outcore.study.cases import INTERFACES, Case
from outcore.study.runner import Outcome
from outcore.trace import plot, tracefile

_COLOURS = {"fortran": "#d1495b", "blocking": "#edae49", "asynchronous": "#1f6fb4"}


def over_time(directory: Path, trace: Path, name: str) -> list[Path]:
    """Durations and sizes of the program's requests, into NAME-durations.png and NAME-sizes.png. Nothing is drawn
    without a trace."""
    if not trace.is_file():
        return []
    made = []
    with tempfile.TemporaryDirectory() as place:
        for figure in plot.draw(tracefile.read(trace).events, Path(place), trace):
            layer, _, quantity = figure.name.partition("-")
            if layer == "file":
                made.append(directory / f"{name}-{quantity}")
                made[-1].write_bytes(figure.read_bytes())
    return made


def bars(path: Path, outcomes: Sequence[Outcome[Case]], title: str) -> None:
    """Run time of each outcome as a bar, its upper part I/O; a group for each molecule."""
    figure = plot.figure(figsize=(7, 4), dpi=110, layout="constrained")
    axes = figure.subplots()
    sizes = list(dict.fromkeys(o.case.molecule for o in outcomes))
    for o in outcomes:
        at = sizes.index(o.case.molecule) + 0.27 * (list(INTERFACES).index(o.case.interface) - 1)
        processes = o.case.processes
        first = next(x for x in outcomes if x.case.molecule == o.case.molecule)
        compute, io = o.compute_seconds / processes / first.seconds, o.io_seconds / processes / first.seconds
        axes.bar(at, compute, 0.25, color=_COLOURS[o.case.interface], label=INTERFACES[o.case.interface])
        axes.bar(at, io, 0.25, bottom=compute, color=_COLOURS[o.case.interface], alpha=0.45, hatch="///")
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), fontsize=8)
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_ylabel("run time / that of plain records (hatched: I/O)")
    axes.set_title(title, loc="left", fontsize=10)
    figure.savefig(path)


def lines(path: Path, outcomes: Sequence[Outcome[Case]], name: Callable[[Case], str], title: str) -> None:
    """Run time and I/O time, a line for each interface."""
    figure = plot.figure(figsize=(9, 3.6), dpi=110, layout="constrained")
    panels = figure.subplots(1, 2)
    names = list(dict.fromkeys(name(o.case) for o in outcomes))
    for interface, label in INTERFACES.items():
        chosen = [o for o in outcomes if o.case.interface == interface]
        if not chosen:
            continue
        for panel, quantity in zip(panels, ("seconds", "io_seconds"), strict=True):
            values = [getattr(o, quantity) for o in chosen]
            places = [names.index(name(o.case)) for o in chosen]
            panel.plot(places, values, "o-", color=_COLOURS[interface], label=label)
    for panel, label in zip(panels, ("run time (s)", "I/O time of all processes (s)"), strict=True):
        panel.set_xticks(range(len(names)), names, fontsize=8, rotation=20 if len(names) > 4 else 0)
        panel.set_ylim(bottom=0)
        panel.set_ylabel(label)
        panel.grid(True, linewidth=0.4, alpha=0.6)
    panels[0].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path)


def effects(path: Path, gains: Sequence[tuple[str, float, float]]) -> None:
    """Draws the share of the run time and of the I/O time of the first run that each step saves."""
    figure = plot.figure(figsize=(7, 3.2), dpi=110, layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(gains))[::-1]
    axes.barh(places + 0.2, [100 * run for _, run, _ in gains], 0.38, color="#1f6fb4", label="run time")
    axes.barh(places - 0.2, [100 * io for _, _, io in gains], 0.38, color="#edae49", label="I/O time")
    axes.set_yticks(places, [gain[0] for gain in gains], fontsize=8)
    axes.set_xlabel("% of that of the first run, saved (emulated storage)")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.legend(fontsize=8)
    figure.savefig(path)


def budgets(path: Path, points: Sequence[tuple[float, float]], title: str) -> None:
    """Run time (s) against the size of stored integrals (MB)."""
    figure = plot.figure(figsize=(6, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*sorted(points), strict=True), "o-", color="#1f6fb4")
    axes.set_xlabel("integrals stored (MB)")
    axes.set_ylabel("run time (s)")
    axes.set_ylim(bottom=0)
    axes.grid(True, linewidth=0.4, alpha=0.6)
    axes.set_title(title, loc="left", fontsize=10)
    figure.savefig(path)
