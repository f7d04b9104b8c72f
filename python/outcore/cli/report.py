"""`outcore report`: tables and figures of the I/O of a traced run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outcore.base.console import Lines, visible
from outcore.trace import tracefile


def command(
    file: Annotated[Path, typer.Argument(help="Trace file that a run wrote with --trace.")],
    plot: Annotated[
        Path | None, typer.Option(help="Directory for figures: durations and sizes of requests over time.")
    ] = None,
) -> None:
    """Prints the I/O report of a traced run, and draws its figures."""
    main_report(file, plot)


def main_report(file: Path, plot_dir: Path | None = None) -> None:
    """Prints the tables of a trace file, and writes its figures into `plot_dir`. Raises OutcoreError."""
    content = tracefile.read(file)
    console = Lines()
    content.report.render(console)
    if plot_dir is not None:
        from outcore.trace import plot

        for figure in plot.draw(content.events, plot_dir, file):
            console.print(visible(f"wrote {figure}"), soft_wrap=True)
