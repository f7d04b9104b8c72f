"""Plots as SVG: how far each claim of a benchmark is from its bar. Readable on light and on dark ground."""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path
from typing import Any

WIDTH, NAMES, ROW, TOP = 860, 430, 22, 34
LIMIT = 4.0  # of the axis: four times better, or worse, than the bar

STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.good{fill:#2a9d8f}.missed{fill:#e76f51}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


def directory(root: Path) -> Path:
    return root / "docs" / "measure" / "plots"


def all_plots(root: Path) -> dict[Path, str]:
    found = {}
    for path in sorted((root / "benchmarks" / "results").glob("*.json")):
        claims = [
            claim for claim in json.loads(path.read_text())["claims"] if claim["bar"] and claim["value"]
        ]
        if claims:
            found[directory(root) / f"{path.stem}.svg"] = plot(claims)
    return found


def margin(claim: dict[str, Any]) -> float:
    """How many times better than the bar: above 1 if the claim holds."""
    better = claim["value"] / claim["bar"]
    return float(better if claim["direction"] == ">=" else 1 / better)


def plot(claims: list[dict[str, Any]]) -> str:
    height = TOP + ROW * len(claims) + 12
    middle = NAMES + (WIDTH - NAMES) / 2
    half = (WIDTH - NAMES) / 2 - 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
        f"<style>{STYLE}</style>",
        f'<text x="{middle:.0f}" y="14" text-anchor="middle">bar</text>',
        f'<text x="{middle + half:.0f}" y="14" text-anchor="end">{LIMIT:g} times better</text>',
        f'<text x="{middle - half:.0f}" y="14">{LIMIT:g} times worse</text>',
    ]
    for row, claim in enumerate(claims):
        y = TOP + ROW * row
        times = min(max(margin(claim), 1 / LIMIT), LIMIT)
        length = half * math.log(times) / math.log(LIMIT)
        x, size = (middle, length) if length >= 0 else (middle + length, -length)
        name = claim["name"] if len(claim["name"]) < 66 else claim["name"][:64] + ".."
        kind = "missed" if claim["holds"] is False else "good"
        lines.append(f'<text x="{NAMES - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        lines.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{max(size, 1):.1f}" height="{ROW - 7}"/>'
        )
    lines.append(f'<line class="axis" x1="{middle:.0f}" y1="20" x2="{middle:.0f}" y2="{height - 8}"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"
