"""The table of docs/develop/coverage.md, from the counts of scripts/covered.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path("docs") / "develop" / "coverage.json"
BAR = 0.9  # share of statements


def table(root: Path, language: str) -> str:
    """The table of a language, "python" or "cpp": a row for each room, and one for all."""
    found = json.loads((root / FILE).read_text()).get(language) if (root / FILE).exists() else None
    if found is None:
        return f"Not measured yet: run `scripts/covered.py {language}`, then `scripts/covered.py write`."
    branches = any("branches" in each for each in found["rooms"].values())
    head = ["room", "statements", "run", "share", *(["branches", "share of branches"] if branches else [])]
    lines = [f"Measured {found['date']}, commit {found['commit']}.", "", f"| {' | '.join(head)} |"]
    lines.append("|---|" + "---:|" * (len(head) - 1))
    total: dict[str, int] = {}
    for room, counts in found["rooms"].items():
        lines.append(_row(f"`{room}`", counts, branches))
        total = {name: total.get(name, 0) + count for name, count in counts.items()}
    reached = total["run"] >= BAR * total["statements"]
    lines += [
        _row("**all**", total, branches),
        "",
        f"The bar is {100 * BAR:.0f} % of the statements: {'reached' if reached else 'missed'}.",
        "",
        "<details markdown><summary>Tests that were run</summary>",
        "",
    ]
    lines += [f"- `{each['place']}`: {each['tests']}" for each in found["measured"]]
    return "\n".join([*lines, "", "</details>"])


def _row(name: str, counts: dict[str, Any], branches: bool) -> str:
    cells = [name, str(counts["statements"]), str(counts["run"]), _share(counts["run"], counts["statements"])]
    if branches:
        cells += [str(counts["branches"]), _share(counts["branches_run"], counts["branches"])]
    return f"| {' | '.join(cells)} |"


def _share(some: int, every: int) -> str:
    return f"{100 * some / every:.1f} %" if every else ""
