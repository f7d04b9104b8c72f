"""Plots as SVG: how far each claim of a benchmark is from its bar, and numbers over processes. They are readable on
light and on dark background."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

WIDTH, NAMES, ROW, TOP = 860, 430, 22, 34
LIMIT = 4.0  # end of the axis: four times better, or worse, than the bar

STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#888}.good{fill:#2a9d8f}.missed{fill:#e76f51}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)
COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#b8338f", "#8c7000", "#7570b3")  # readable on light and dark
LINES = (
    STYLE
    + ".line{fill:none;stroke-width:2}.grid{stroke:#888;stroke-opacity:.25}"
    + "".join(f".c{n}{{stroke:{colour}}}" for n, colour in enumerate(COLOURS))
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
    "scale_time": ("scale", r"([^:]+): time on (\d+) nodes?", "seconds", "nodes"),
    "scale_efficiency": (
        "scale", r"([^:]+): efficiency on (\d+) nodes?", "part of the time in which cores do operations", "nodes",
    ),
    "scale_network": ("scale", r"([^:]+): network on ((?!1 )\d+) nodes", "TB moved between nodes", "nodes"),
    "ccsd_ladder_one_thread": (
        "ccsd_ladder", _LADDER.format("1 thread"), "Ladder of an iteration, seconds, one thread",
        "speed of the disk, MB/s",
    ),
    "ccsd_ladder_two_threads": (
        "ccsd_ladder", _LADDER.format("2 threads"), "Ladder of an iteration, seconds, two threads",
        "speed of the disk, MB/s",
    ),
    "ccsd_ladder_crossing": (
        "ccsd_ladder", r"(\w+), crossing on (\d+) cores",
        "Disk speed at which storing and recomputing take equal time, MB/s", "cores",
    ),
}  # fmt: skip
"""Plots: the benchmark; a pattern for names of claims, with groups for the curve and for x; a title; a title of
x."""


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
    """The curves of a benchmark, as Markdown; empty if there are none. `argument`: its name, and the relative path
    to docs/measure."""
    name, _, measure = argument.partition(" ")
    return "\n".join(
        f"![{CURVES[plot][2]}]({measure}plots/{plot}.svg)"
        for plot, (bench, _) in drawn(root).items()
        if bench == name
    )


_SHARES = ("efficiency", "idle share of all processes")  # their axes end at 1


def curves(claims: list[dict[str, Any]], pattern: str, title: str, across: str) -> str:
    """A line for each kind, over a number on a logarithmic axis; values that span more than a factor of 4 have a
    logarithmic axis, too."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for claim in claims:
        match = re.match(pattern, claim["name"])
        if match and claim["value"] is not None:
            kind = match[1].replace("made again", "recomputed")  # older results have the former words
            lines.setdefault(kind, []).append((int(match[2]), float(claim["value"])))
    values = [y for points in lines.values() for _, y in points]
    numbers = sorted({n for points in lines.values() for n, _ in points})
    logarithmic = title not in _SHARES and min(values) > 0 and max(values) > 4 * min(values)
    ticks = _decades(values) if logarithmic else _steps(1.0 if title in _SHARES else max(values))
    wide, high, left, bottom, top = 720, 340, 64, 288, 36
    right = wide - 40 - 7 * max(len(kind) for kind in lines)

    def scale(value: float, ends: tuple[float, float], logs: bool) -> float:
        least, most, value = (math.log(each) if logs else each for each in (*ends, value))
        return (value - least) / ((most - least) or 1.0)

    def place(n: int, y: float) -> tuple[float, float]:
        x = scale(n, (numbers[0], numbers[-1]), True)
        return left + (right - left) * x, bottom - (bottom - top) * scale(
            y, (ticks[0], ticks[-1]), logarithmic
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" role="img">',
        f"<title>{escape(title)} over {escape(across)}</title>",
        f"<style>{LINES}</style>",
        f'<text x="10" y="18">{escape(title)}</text>',
        f'<text x="{(left + right) / 2:.0f}" y="{high - 8}" text-anchor="middle">{escape(across)}</text>',
    ]
    for tick in ticks:
        y = place(numbers[0], tick)[1]
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for n in _sparse(numbers, lambda n: place(n, ticks[0])[0]):
        parts.append(
            f'<text x="{place(n, ticks[0])[0]:.1f}" y="{bottom + 18}" text-anchor="middle">{n}</text>'
        )
    parts.append(f'<line class="axis" x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    ends = {kind: place(*points[-1])[1] for kind, points in lines.items()}
    labels = _apart(ends, 15, bottom)
    for number, kind in enumerate(sorted(lines)):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in lines[kind]))
        style = f"c{number % len(COLOURS)}"
        dashes = ("", "7 3", "2 3")[number // len(COLOURS) % 3] or ("7 3" if number % 2 else "")
        parts.append(f'<polyline class="line {style}" stroke-dasharray="{dashes}" points="{points}"/>')
        y = labels[kind]
        parts.append(
            f'<line class="{style}" x1="{right + 4}" y1="{ends[kind]:.1f}" x2="{right + 14}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text x="{right + 18}" y="{y + 4:.1f}">{escape(kind)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


_MOST_TICKS = 8


def _decades(values: list[float]) -> list[float]:
    """1, 2 or 5 times powers of ten around the values: at most eight."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps: tuple[int, ...] = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    low = max(each for each in ticks if each <= min(values) * 1.001)
    high = min(each for each in ticks if each >= max(values) * 0.999)
    found = [each for each in ticks if low <= each <= high]
    if len(found) <= _MOST_TICKS:
        return found
    powers = math.ceil(math.log10(high / low) / _MOST_TICKS + 0.5)  # between neighbours
    return [low * 10.0 ** (powers * n) for n in range(math.ceil(math.log10(high / low) / powers - 1e-9) + 1)]


def _steps(most: float) -> list[float]:
    """Ticks from zero to at least `most` in four or five round steps."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if 5 * each * power >= most)
    return [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]


def _sparse(numbers: list[int], x: Callable[[int], float]) -> list[int]:
    """Numbers whose labels are far enough apart to be read."""
    kept = [numbers[0]]
    for n in numbers[1:]:
        if x(n) - x(kept[-1]) >= 34:
            kept.append(n)
    return kept


def _apart(ends: dict[str, float], gap: float, bottom: float) -> dict[str, float]:
    """Heights of labels, as near to the ends of their lines as possible without overlapping."""
    ordered = sorted(ends, key=lambda kind: ends[kind])
    placed: dict[str, float] = {}
    for rank, kind in enumerate(ordered):
        above = placed[ordered[rank - 1]] + gap if rank else -math.inf
        placed[kind] = max(ends[kind], above)
    over = max(0.0, max(placed.values(), default=0.0) - bottom)
    for rank, kind in enumerate(reversed(ordered)):
        limit = bottom - gap * rank
        placed[kind] = min(placed[kind], limit) if over else placed[kind]
    return placed


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
        "<title>How far each claim is from its bar</title>",
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
