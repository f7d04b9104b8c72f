"""Claims on bytes that a method moves to and from disk, over the least: see docs/why/bounds.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outcore.cli.bench import Claim, at_most

OVER = 1.25  # most bytes over the least
SHARE = 0.1  # of what lies on disk: with more memory there is no bar


def claims(name: str, results: Mapping[str, Any], moved: float, least: float) -> list[Claim]:
    """The claim, if anything lies on disk and has to move. results: the results file of the command (`--json`)."""
    memory, disk = results["memory_budget_bytes"], results["peak_disk_bytes"]
    if not least or not disk:
        return []
    how = (
        f"{moved / 1e6:.0f} MB moved, {least / 1e6:.0f} MB at least; {memory / 1e6:.0f} MB of memory, "
        f"{disk / 1e6:.0f} MB on disk at most"
    )
    bar = at_most(OVER) if memory <= SHARE * disk else None
    return [Claim(f"{name}: bytes over the least", moved / least, "", bar, "", how)]
