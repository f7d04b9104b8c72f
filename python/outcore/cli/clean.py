"""`outcore clean`: removes scratch that processes left behind when they were killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outcore import _core
from outcore.job.scratch import find_scratch


def command(
    scratch: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Scratch directory to clean (default: the one chosen).")
    ] = None,
) -> None:
    """Remove the scratch of your dead processes. Scratch of living processes, and of other users, stays."""
    directory = Path(find_scratch(scratch))
    removed = _core.clean(str(directory))
    for path in removed:
        print(f"removed {path}")
    if not removed:
        print(f"nothing to remove in {directory}")
