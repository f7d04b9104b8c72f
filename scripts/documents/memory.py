"""Memory, disk and time of methods, from calculations that benchmarks have run to their end.

Results have the used memory, disk and time of runs in `runs`. For older results the numbers come from claims,
as far as these have them; a number that was not measured is a dash. Results of a short form (`--quick`) are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from results import load

Claims = list[dict[str, Any]]


class Used(NamedTuple):
    """Memory, disk and time of a run; None: not measured."""

    size: str | None = None
    memory_bytes: float | None = None
    peak_bytes: float | None = None
    disk_bytes: float | None = None
    seconds: float | None = None


class Row(NamedTuple):
    """A method and a system, the benchmark, and the name of its run; `claims` finds the same numbers in claims."""

    method: str
    system: str
    bench: str
    run: str
    claims: Callable[[Claims], Used]


def _bytes(text: str) -> float:
    found = re.fullmatch(r"([\d.]+) ?([kMG])B", text)
    assert found is not None, text
    return float(found[1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[found[2]]


def _find(claims: Claims, pattern: str) -> dict[str, Any] | None:
    return next((each for each in claims if re.fullmatch(pattern, each["name"])), None)


def _in(claims: Claims, name: str, pattern: str) -> str | None:
    """The text that the group of a pattern matches in the `how` of a claim."""
    claim = _find(claims, name)
    found = None if claim is None else re.search(pattern, claim["how"])
    return None if found is None else found[1]


def _iterations(system: str, size: str) -> Callable[[Claims], Used]:
    """For a search for eigenvalues whose claims have each iteration."""

    def used(claims: Claims) -> Used:
        peak = _find(claims, rf"{system}, \S+: peak resident over the memory that it was given")
        if peak is None:
            return Used()
        given = _bytes(peak["name"].partition(":")[0].rpartition(" ")[2])
        of_each = [
            each["value"] for each in claims if re.fullmatch(rf"{system}, .*iteration \d+", each["name"])
        ]
        count = _in(claims, rf"{system}, \S+: energy", rf"(\d+) {size}") or _in(
            claims, rf"{system}, \S+: iteration", rf"(\d+) {size}"
        )
        said = None if count is None else f"{int(count):,} {size}"
        return Used(said, given, peak["value"] * given, None, sum(of_each) or None)

    return used


def _naphthalene(claims: Claims) -> Used:
    name = "naphthalene/cc-pVDZ: CCSD.T., whole run, time over PySCF's"
    given, seconds = _in(claims, name, r" s in (\S+),"), _in(claims, name, r": ([\d.]+) s in")
    peak = _find(claims, "naphthalene/cc-pVDZ: peak memory over --memory")
    if given is None or seconds is None or peak is None:
        return Used()
    return Used(None, _bytes(given), peak["value"] * _bytes(given), None, float(seconds))


def _budget(claims: Claims, name: str) -> tuple[float, float] | None:
    """Memory that was given, and the peak, from a claim whose name ends in the former."""
    peak = _find(claims, rf"{name}: peak memory over --memory \S+")
    if peak is None:
        return None
    given = _bytes(peak["name"].rpartition(" ")[2])
    return given, peak["value"] * given


def _water(claims: Claims) -> Used:
    whole, memory = _find(claims, r"\(H2O\)10.*: CCSD\(T\)"), _budget(claims, r"\(H2O\)10/cc-pVDZ")
    if whole is None or memory is None:
        return Used()
    return Used(whole["how"].partition(";")[0], *memory, None, whole["value"] * 60)


def _two_iterations(claims: Claims) -> Used:
    memory = _budget(claims, "C14H8F6/cc-pVDZ")
    seconds = _in(claims, "C14H8F6/cc-pVDZ: iterations in .*", r"two iterations: ([\d.]+) /")
    return Used() if memory is None or seconds is None else Used(None, *memory, None, float(seconds))


def _anthracene(claims: Claims) -> Used:
    peak, time = (_find(claims, rf"CASSCF\(14,14\).*: {what}") for what in ("peak of memory", "time"))
    return (
        Used() if peak is None or time is None else Used(None, None, peak["value"] * 1e6, None, time["value"])
    )


def _fitted(name: str) -> Callable[[Claims], Used]:
    """For the benchmark `ri`."""

    def used(claims: Claims) -> Used:
        peak, given = _find(claims, f"{name}: memory"), _in(claims, f"{name}: memory", r"of (\d+ MB)")
        if peak is None or given is None:
            return Used()
        seconds = _in(claims, f"{name}: whole run against .*", r"/ ([\d.]+) s")
        time = None if seconds is None else float(seconds)
        return Used(None, _bytes(given), peak["value"] * _bytes(given), None, time)

    return used


def _stored(claims: Claims) -> Used:
    """For the benchmark `scf`, whose runs have no `--memory`."""
    stored = _find(claims, "C14H8F6: integrals stored")
    seconds = _in(claims, "C14H8F6: integrals on disk against recomputing them", r"/ ([\d.]+) s")
    if stored is None or seconds is None:
        return Used()
    return Used(disk_bytes=stored["value"] * 1e9, seconds=float(seconds))


ROWS = (
    Row("Hartree-Fock on disk", "C14H8F6/6-31G*", "scf", "C14H8F6/6-31g*", _stored),
    Row("RI-SCF", "(H2O)10/aug-cc-pVQZ", "ri_large", "RI-SCF/aug-cc-pVQZ", _fitted("RI-SCF/aug-cc-pVQZ")),
    Row("RI-MP2", "C14H8F6/cc-pVDZ", "ri", "RI-MP2/cc-pVDZ", _fitted("RI-MP2/cc-pVDZ")),
    Row("CCSD(T)", "naphthalene/cc-pVDZ", "ccsd_peers", "naphthalene/cc-pVDZ", _naphthalene),
    Row("CCSD(T)", "(H2O)10/cc-pVDZ", "ccsd_water10", "(H2O)10/cc-pVDZ", _water),
    Row("CCSD, two iterations", "C14H8F6/cc-pVDZ", "ccsd_large", "C14H8F6/cc-pVDZ", _two_iterations),
    Row("EOM-CCSD, 4 singlets", "uracil/aug-cc-pVDZ", "eom", "uracil/aug-cc-pVDZ", lambda _: Used()),
    Row("Full CI", "H2O/cc-pVDZ", "fci_large", "H2O/cc-pVDZ", _iterations("H2O/cc-pVDZ", "determinants")),
    Row("Full CI", "Be2 [9s2p1d]", "fci_large", "Be2 [9s2p1d]",
        _iterations(r"Be2 \[9s2p1d\]", "determinants")),
    Row("CASSCF(14,14)", "anthracene/STO-3G", "casscf", "anthracene", _anthracene),
    Row("MRCI(12,9)", "H2CO/cc-pVQZ", "mrci_large", "H2CO/cc-pvqz",
        _iterations(r"H2CO/cc-pvqz, CAS\(12,9\)", "determinants")),
)  # fmt: skip


def memory_table(root: Path, _: str) -> str:
    """The table of a document."""
    lines = [
        "| method | system | size | memory given | peak | disk | time | date |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        found = load(root, row.bench)
        used = Used() if found is None or found["quick"] else _used(found, row)
        if found is not None and used != Used():
            cells = [
                row.method,
                row.system,
                used.size or "-",
                _said(used.memory_bytes),
                _said(used.peak_bytes),
                _said(used.disk_bytes),
                _time(used.seconds),
                found["date"][:10],
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _used(found: dict[str, Any], row: Row) -> Used:
    run = next((each for each in found.get("runs", []) if each["name"].startswith(row.run)), None)
    if run is None:
        return row.claims(found["claims"])
    functions = run["functions"]
    return Used(
        None if functions is None else f"{functions} functions",
        run["memory_budget_bytes"],
        run["peak_memory_bytes"],
        run["peak_disk_bytes"],
        run["run_seconds"],
    )


def _said(size: float | None) -> str:
    if size is None:
        return "-"
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
