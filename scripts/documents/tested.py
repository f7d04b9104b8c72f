"""The table of docs/develop/tested.md, from what scripts/tested.py kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path("docs") / "develop" / "tested.json"
SUITES = {"wheels": "make test-wheels", "recipes": "make test-recipes", "slurm": "make test-slurm"}


def table(root: Path, _: str) -> str:
    """A row for each suite: the last run that was kept, or that there is none."""
    kept = json.loads((root / FILE).read_text()) if (root / FILE).exists() else {}
    lines = [
        "| suite | date | commit | system, with | passed | failed | skipped |",
        "|---|---|---|---|---:|---:|---|",
    ]
    lines += [_row(command, kept.get(name)) for name, command in SUITES.items()]
    return "\n".join(lines)


def _row(command: str, run: dict[str, Any] | None) -> str:
    if run is None:
        return f"| `{command}` | not kept yet | | | | | |"
    where = "<br>".join([run["system"], *run["with"]])
    skipped = "<br>".join(f"{count}: {reason}" for reason, count in run["skipped"].items())
    cells = [
        f"`{command}`",
        run["date"],
        run["commit"],
        where,
        str(run["passed"]),
        str(run["failed"]),
        skipped,
    ]
    return f"| {' | '.join(cells)} |"
