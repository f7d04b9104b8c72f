"""Figures of a trace: duration and size of requests over time, as in studies of disk-based Hartree-Fock.

Needs matplotlib.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base import extras
from outcore.base.errors import OutcoreError
from outcore.trace.report import LAYERS, OPERATIONS, READS, WRITES
from outcore.trace.tables import volume

_SUBJECT = {"file": "requests of the program", "device": "requests at the device"}
_COLOURS = {"read": "#1f6fb4", "write": "#d1495b"}
_MAX_POINTS = 200_000  # a panel with more points draws a regular selection of them


def draw(events: NDArray[np.void], directory: Path, trace: Path) -> list[Path]:
    """Writes LAYER-durations.png and LAYER-sizes.png for each layer that moved data; returns their paths.

    `events` are of type tracefile.REQUEST; `trace` is named in messages. Raises OutcoreError if matplotlib is
    missing, the trace has no reads or writes, or the directory cannot be written.
    """
    _matplotlib()
    transfers = events[np.isin(events["op"], [OPERATIONS.index(op) for op in READS + WRITES])]
    if not len(transfers):
        detail = "it holds no reads or writes; record events with --trace"
        raise OutcoreError(errno.ENODATA, "plot", path=trace, detail=detail)
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number, layer in enumerate(LAYERS):
            chosen = transfers[transfers["layer"] == number]
            for quantity in ("durations", "sizes") if len(chosen) else ():
                made = figure(figsize=(10, 6.5), dpi=120, layout="constrained")
                _fill(made, chosen, layer, quantity)
                written.append(directory / f"{layer}-{quantity}.png")
                made.savefig(written[-1])
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "write figures", path=directory) from error
    return written


def figure(**options: Any) -> Any:
    """An empty figure that can be saved. Raises OutcoreError if matplotlib is missing."""
    canvas, figure_class = _matplotlib()
    made = figure_class(**options)
    canvas(made)
    return made


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise extras.needed("matplotlib", "plot") from error
    return FigureCanvasAgg, Figure


def _fill(figure: Any, events: NDArray[np.void], layer: str, quantity: str) -> None:
    """Two panels, reads above writes, with common axes."""
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    figure.suptitle(f"{quantity.capitalize()[:-1]} of {_SUBJECT[layer]} over time")
    for panel, kind, operations in ((panels[0], "read", READS), (panels[1], "write", WRITES)):
        chosen = events[np.isin(events["op"], [OPERATIONS.index(op) for op in operations])]
        _scatter(panel, chosen, kind, quantity)
    panels[1].set_xlabel("time since the first event of the trace (s)")


def _scatter(panel: Any, events: NDArray[np.void], kind: str, quantity: str) -> None:
    start_s = events["start_ns"] * 1e-9
    durations = quantity == "durations"
    values = (events["end_ns"] - events["start_ns"]) * 1e-9 if durations else events["bytes"]
    name_of = _duration if durations else lambda size_bytes: volume(size_bytes, 0)
    shown = np.flatnonzero(values > 0)
    shown = shown[:: max(1, -(-len(shown) // _MAX_POINTS))]
    panel.scatter(start_s[shown], values[shown], s=9, alpha=0.5, linewidths=0, color=_COLOURS[kind])
    panel.set_yscale("log", base=10 if durations else 4)
    panel.yaxis.set_major_formatter(lambda value, _: name_of(value))
    panel.yaxis.set_minor_formatter(lambda value, _: "")
    panel.set_ylabel(f"{'duration' if durations else 'size'} of a {kind}")
    panel.grid(True, which="major", linewidth=0.4, alpha=0.6)
    text = f"{len(events)} {kind}s, {volume(int(events['bytes'].sum()))}" if len(events) else f"no {kind}s"
    panel.set_title(text, loc="left", fontsize=10)


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.999 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
