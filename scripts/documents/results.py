"""Tables of measured numbers.

From benchmarks/results/NAME.json, as `outcore bench NAME --json` writes it, and from the results of studies.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def load(root: Path, name: str) -> dict[str, Any] | None:
    path = root / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def number(value: float, unit: str) -> str:
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{text} {unit}".strip()


def value_of(claim: dict[str, Any]) -> str:
    if claim["value"] is None:
        return "not measured"
    text = number(claim["value"], claim["unit"])
    if claim["interval"]:
        text += " ({:.3g} to {:.3g})".format(*claim["interval"])
    return text


def origin(found: dict[str, Any]) -> str:
    machine = found["machine"]
    kernel = machine["kernel"].split("-")[0]
    commit = f", commit {found['commit']}" if found.get("commit") else ""
    quick = ", short form (`--quick`)" if found["quick"] else ""
    return (
        f"`outcore bench {found['bench']}`, {found['date'][:10]}{commit}{quick}; {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, Linux {kernel}, scratch on "
        f"{machine['scratch']['file_system']}.{_cases(found)}"
    )


def _cases(found: dict[str, Any]) -> str:
    """Day and commit of cases that were kept from earlier runs."""
    others: dict[str, list[str]] = {}
    for case in found.get("cases", []):
        if (case["date"][:10], case["commit"]) != (found["date"][:10], found.get("commit")):
            others.setdefault(f"{case['date'][:10]}, commit {case['commit']}", []).append(case["name"])
    return "".join(f" Measured {when}: {', '.join(names)}." for when, names in others.items())


def missing(name: str) -> str:
    return (
        f"Not measured yet: run `outcore bench {name} --json benchmarks/results/{name}.json`, "
        "then `python scripts/documents`."
    )


def cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def result(root: Path, argument: str) -> str:
    """Claims of a benchmark that have a bar, with a plot; folded away are other numbers, and how each was measured.
    `argument`: its name, and, in a document elsewhere, the relative path to docs/measure."""
    name, _, measure = argument.partition(" ")
    found = load(root, name)
    if found is None:
        return missing(name)
    barred = [claim for claim in found["claims"] if claim["bar"] is not None]
    others = [claim for claim in found["claims"] if claim["bar"] is None]
    lines = [origin(found)]
    if barred:
        lines += ["", "| claim | measured | bar | holds | compared with |", "|---|---|---|---|---|"]
    for claim in barred:
        bar = f"{claim['direction']} {claim['bar']:g}"
        holds = {True: "yes", False: "**no**", None: ""}[claim["holds"]]
        cells = [claim["name"], value_of(claim), bar, holds, claim["peer"]]
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    lines += _reasons(barred)
    if any(claim["bar"] and claim["value"] for claim in barred):
        lines += ["", f"![{name}: how far each claim is from its bar]({measure}plots/{name}.svg)"]
    if others:
        lines += [
            "",
            '??? note "Other numbers"',
            "",
            "    | measured | value | compared with |",
            "    |---|---|---|",
        ]
    for claim in others:
        lines.append("    | " + " | ".join(map(cell, [claim["name"], value_of(claim), claim["peer"]])) + " |")
    hows = dict.fromkeys(claim["how"] for claim in found["claims"] if claim["how"])
    if hows:
        lines += ["", '??? note "How each was measured"', ""]
        for how in hows:
            names = [claim["name"] for claim in found["claims"] if claim["how"] == how]
            title = names[0] if len(names) == 1 else f"{names[0]}, and {len(names) - 1} more"
            lines.append(f"    - {cell(title)}: {cell(how)}")
    return "\n".join(lines)


def _reasons(claims: list[dict[str, Any]]) -> list[str]:
    """Why bars are missed, one line for each reason."""
    missed: dict[str, list[str]] = {}
    for claim in claims:
        if claim["holds"] is False:
            missed.setdefault(claim.get("reason") or "no reason is recorded", []).append(claim["name"])
    lines = []
    for reason, names in missed.items():
        title = names[0] if len(names) == 1 else f"{names[0]}, and {len(names) - 1} more"
        lines.append(f"- {cell(title)}: missed, {cell(reason)}.")
    return ["", *lines] if lines else []


def scale(root: Path, _: str) -> str:
    """Methods on nodes of a cluster: a row for each method and number of nodes; then claims of single nodes."""
    found = load(root, "scale")
    if found is None:
        return missing("scale")
    rows: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    others = []
    for claim in found["claims"]:
        match = re.fullmatch(r"(.+): (time|efficiency|disk|network) on (\d+) nodes?", claim["name"])
        if match is None:
            others.append(claim)
            continue
        rows.setdefault((match[1], int(match[3])), {})[match[2]] = claim
    lines = [origin(found), "", found["claims"][0]["how"] + ".", ""]
    lines += [
        "| method | nodes | time | efficiency | disk | network | limit |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for (method, nodes), claims in rows.items():
        time = claims["time"]
        values = [
            value_of(claims[name]) if name in claims else "" for name in ("efficiency", "disk", "network")
        ]
        limit = time["how"] if time["value"] is None else time["peer"].removeprefix("limit: ")
        cells = [method, str(nodes), value_of(time), *(each.removesuffix(" moved") for each in values), limit]
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    lines += ["", "| one node, and requests | value | limit |", "|---|---:|---|"]
    for claim in others[1:]:
        cells = [claim["name"], value_of(claim), claim["peer"].removeprefix("limit: ")]
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    lines += ["", '??? note "Systems, parts of each time, plans"', ""]
    for claim in found["claims"][1:]:
        if claim["how"]:
            lines.append(f"    - {cell(claim['name'])}: {cell(claim['how'])}")
    return "\n".join(lines)


def iterations(root: Path, name: str) -> str:
    """Claims of a benchmark whose names end in `run R, iteration N`, one table for each name before that."""
    found = load(root, name)
    if found is None:
        return missing(name)
    tables: dict[str, list[str]] = {}
    for claim in found["claims"]:
        match = re.fullmatch(r"(.*), run (\d+), iteration (\d+)", claim["name"])
        if match is None:
            continue
        rows = tables.setdefault(match[1], [])
        told = re.fullmatch(r"energy (\S+) Eh, residual (\S+) Eh, (\d+) % of it waiting", claim["how"])
        assert told is not None, claim["how"]
        cells = [match[2], match[3], told[1], told[2], f"{claim['value']:.0f}", f"{told[3]} %"]
        rows.append("| " + " | ".join(cells) + " |")
    lines = [origin(found)]
    head = [
        "| run | iteration | energy, Eh | residual, Eh | s | waiting for the disk |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for title, rows in tables.items():
        lines += ["", f"**{title}**", "", *head, *rows]
    lines.append("")
    for claim in found["claims"]:
        if ", iteration " not in claim["name"] and not claim["name"].endswith("energy"):
            peer = f" ({claim['peer']})" if claim["peer"] else ""
            lines.append(f"- {claim['name']}: {value_of(claim)}{peer}")
    return "\n".join(lines)


def random_programs(root: Path, _: str) -> str:
    """How many random programs ran, on how many processes, with how many kills; and the largest share of the budget
    that became resident."""
    runs = json.loads((root / "tests" / "conformance" / "random_programs.json").read_text())
    totals: dict[tuple[str, str], list[int]] = {}
    resident: dict[tuple[str, str], float] = {}
    for run in runs:
        processes = f"1 to {run['processes']}" if run["kills"] else str(run["processes"])
        key = (run["kind"], processes)
        total = totals.setdefault(key, [0, 0, 0])
        for place, value in enumerate((run["last"] - run["first"], run["kills"], run["failed"])):
            total[place] += value
        resident[key] = max(resident.get(key, 0), run.get("resident", 0))
    names = {
        "programs": "recorded programs",
        "large": "recorded programs of large arrays",
        "statements": "statements that run at once",
    }
    lines = [
        "| random | processes | seeds | kills | failed | resident, of the budget |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for key, (seeds, kills, failed) in sorted(totals.items()):
        share = f"{100 * resident[key]:.0f} %" if resident[key] else ""
        lines.append(f"| {names[key[0]]} | {key[1]} | {seeds} | {kills} | {failed} | {share} |")
    return "\n".join(lines)


def study(root: Path, name: str) -> dict[str, Any]:
    path = root / "docs" / "measure" / "studies" / name / "results.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def chemio(root: Path, _: str) -> str:
    """Run time against stored bytes."""
    runs = study(root, "chemio-hf")["runs"]
    lines = ["| integrals | stored, MB | run, s | blocked by I/O |", "|---|---:|---:|---:|"]
    for name, facts in runs.items():
        stored = facts["stored"]["bytes"] / 1e6 if facts.get("stored") else 0
        blocked = 100 * facts["io_wait_share"]
        lines.append(f"| {name} | {stored:.0f} | {facts['run_seconds']:.1f} | {blocked:.1f} % |")
    return "\n".join(lines)


def passion(root: Path, _: str) -> str:
    """The three interfaces of the study, on the emulated storage."""
    runs = study(root, "passion")["runs"]
    lines = ["| molecule | interface | run, s | blocked by I/O, s |", "|---|---|---:|---:|"]
    titles = {"fortran": "plain records", "blocking": "library", "asynchronous": "library, read ahead"}
    for size in ("small", "medium", "large"):
        for interface, title in titles.items():
            facts = _run(runs, size, interface)
            lines.append(f"| {size} | {title} | {facts['run_seconds']:.1f} | {facts['io_seconds']:.2f} |")
    return "\n".join(lines)


def _run(runs: dict[str, Any], size: str, interface: str) -> dict[str, Any]:
    pattern = re.compile(rf"{size}-disk-{interface}-64k-p1-(?!machine).*")
    names = [name for name in runs if pattern.fullmatch(name)]
    found: dict[str, Any] = runs[names[0]]
    return found
