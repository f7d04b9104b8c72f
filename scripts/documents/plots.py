"""Plots as SVG: how far each claim of a benchmark is from its bar, and numbers over processes. Readable on light
and on dark ground."""

from __future__ import annotations

import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

WIDTH, NAMES, ROW, TOP = 860, 430, 22, 34
LIMIT = 4.0  # of the axis: four times better, or worse, than the bar

STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.good{fill:#2a9d8f}.missed{fill:#e76f51}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)
LINES = STYLE + ".line{fill:none;stroke:#2a9d8f;stroke-width:2}.second{stroke:#e76f51;stroke-dasharray:6 3}"


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
    found |= {directory(root) / f"{name}.svg": text for name, (_, text) in drawn(root).items()}
    return found


_LADDER = r"{}, ([\w ]+), (\d+) MB/s: an iteration"

CURVES = {
    "einsum_scaling_efficiency": (
        "einsum_scaling", r"simulated, (\w+) scaling: efficiency on (\d+)", "efficiency", "processes",
    ),
    "einsum_scaling_idle": (
        "einsum_scaling", r"simulated, (\w+): idle share on (\d+)", "idle share of all processes", "processes",
    ),
    "einsum_scaling_read": (
        "einsum_scaling", r"simulated, (\w+): read by a process of (\d+)", "GB read by a process", "processes",
    ),
    "ccsd_ladder_one_thread": (
        "ccsd_ladder", _LADDER.format("1 thread"), "s, ladder of an iteration, one thread", "MB/s of the disk",
    ),
    "ccsd_ladder_two_threads": (
        "ccsd_ladder", _LADDER.format("2 threads"), "s, ladder of an iteration, two threads", "MB/s of the disk",
    ),
    "ccsd_ladder_crossing": (
        "ccsd_ladder", r"(\w+), crossing on (\d+) cores", "MB/s at which storing and making again cross", "cores",
    ),
}  # fmt: skip
"""Plots: the benchmark; of its claims the names, with the curve and the number across; a title; what is across."""


def drawn(root: Path) -> dict[str, tuple[str, str]]:
    """The plots of curves for which there are claims: name, benchmark and SVG."""
    found = {}
    for name, (bench, pattern, title, across) in CURVES.items():
        path = root / "benchmarks" / "results" / f"{bench}.json"
        claims = json.loads(path.read_text())["claims"] if path.is_file() else []
        if any(re.match(pattern, claim["name"]) for claim in claims):
            found[name] = bench, curves(claims, pattern, title, across)
    return found


def images(root: Path, argument: str) -> str:
    """The curves of a benchmark, as they stand in a document; empty if there are none. `argument`: its name, and
    the way to docs/measure."""
    name, _, measure = argument.partition(" ")
    return "\n".join(
        f"![{CURVES[plot][2]}]({measure}plots/{plot}.svg)"
        for plot, (bench, _) in drawn(root).items()
        if bench == name
    )


_SHARES = ("efficiency", "idle share of all processes")  # which end at 1


def curves(claims: list[dict[str, Any]], pattern: str, title: str, across: str) -> str:
    """A line for each kind, over a number in logarithms."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for claim in claims:
        match = re.match(pattern, claim["name"])
        if match:
            lines.setdefault(match[1], []).append((int(match[2]), float(claim["value"])))
    least, most = (f(n for points in lines.values() for n, _ in points) for f in (min, max))
    values = [y for points in lines.values() for _, y in points]
    top = max(1.0, *values) if title in _SHARES else max(values)
    margin = max(150, 80 + 7 * max(len(kind) for kind in lines))
    wide, high = 330 + margin, 240

    def place(n: int, y: float) -> tuple[float, float]:
        share = math.log(n / least) / math.log(most / least)
        return 60 + (wide - margin) * share, 30 + (high - 70) * (1 - y / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" role="img">',
        f"<style>{LINES}</style>",
        f'<text x="10" y="16">{escape(title)}</text>',
        f'<text x="{60 + (wide - margin) / 2:.0f}" y="{high - 6}" text-anchor="middle">{across}</text>',
        f'<line class="axis" x1="60" y1="{high - 40}" x2="{wide - margin + 60}" y2="{high - 40}"/>',
        f'<line class="axis" x1="60" y1="30" x2="60" y2="{high - 40}"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        y = place(least, top * share)[1]
        parts.append(f'<text x="52" y="{y + 4:.1f}" text-anchor="end">{top * share:.2g}</text>')
    for n in sorted({n for points in lines.values() for n, _ in points}):
        parts.append(f'<text x="{place(n, 0)[0]:.1f}" y="{high - 24}" text-anchor="middle">{n}</text>')
    for number, (kind, points) in enumerate(sorted(lines.items())):
        style = "line" if number == 0 else "line second"
        where = [place(*point) for point in points]
        parts.append(f'<polyline class="{style}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in where)}"/>')
        parts.append(
            f'<text x="{where[-1][0] + 6:.1f}" y="{where[-1][1] + 4 + 12 * number:.1f}">{kind}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


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
