"""Numbers that help a reader to decide: the five numbers of README, and the first screen of the results.

Each row asks one question and takes its answer from claims in benchmarks/results. A row of a short form (`--quick`)
is refused: Refused names the run that is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from results import load, number

Claims = list[dict[str, Any]]


class Refused(Exception):
    """A document would quote a result that must not be quoted."""


# ---- claims in words ----


def ratio(times: float) -> str:
    """How much faster Outcore is: `times` is the time of the peer over ours; below 1 Outcore is slower."""
    if times >= 1:
        return f"{times:.2g} times faster" if times < 10 else f"{times:.0f} times faster"
    return f"{1 / times:.2g} times slower"


def faster(claims: Claims) -> str:
    """For claims that are the time of the peer over ours."""
    return _each(claims, ratio)


def time_over(claims: Claims) -> str:
    """For claims that are our time over that of the peer."""
    return _each(claims, lambda value: ratio(1 / value))


def _each(claims: Claims, say: Callable[[float], str]) -> str:
    said = [say(claim["value"]) for claim in claims]
    ends = {each.partition(" ")[2] for each in said}
    if len(ends) == 1:  # "2.5, 2.2, 4.4 times faster"
        return ", ".join(each.partition(" ")[0] for each in said) + " " + ends.pop()
    return ", ".join(said)


def plain(claims: Claims) -> str:
    return ", ".join(number(claim["value"], claim["unit"]) for claim in claims)


def against(claims: Claims) -> str:
    """For two claims, our time and the peer's: the second over the first."""
    ours, theirs = (claim["value"] for claim in claims)
    return ratio(theirs / ours)


def difference(claims: Claims) -> str:
    return f"{claims[0]['value']:.0e} Eh apart"


def planned(claims: Claims) -> str:
    """For a claim whose `how` ends in bytes moved and bytes predicted."""
    found = re.search(r"([\d.]+ MB), ([\d.]+ MB) predicted", claims[0]["how"])
    if found is None:
        raise Refused(f"{claims[0]['name']} does not say what was predicted")
    return f"{found[1]} moved, {found[2]} planned"


# ---- the rows ----


class Row(NamedTuple):
    """A question (`what`), the benchmark and its claims (patterns of whole names) that answer it, and the function
    that puts them in words (`say`). `given`: a pattern whose groups, in the first claim's name and `how`, are the
    memory that was given; a group `count` goes into `what`."""

    what: str
    bench: str
    claims: tuple[str, ...]
    say: Callable[[Claims], str]
    peer: str
    given: str = ""
    readme: bool = False


ROWS = (
    Row("CCSD(T) of naphthalene/cc-pVDZ, whole run", "ccsd_peers",
        tuple(f"naphthalene.*time over {peer}'s" for peer in ("PySCF", "Psi4", "NWChem")), time_over,
        "PySCF, Psi4, NWChem", r"s in (\S+), .* s in (8 GB)", readme=True),
    Row("CCSD(T) gradient of benzene/cc-pVDZ, whole run", "ccgrad",
        (r"benzene/cc-pVDZ: CCSD\(T\) gradient, time over Psi4's",), time_over, "Psi4",
        r"s in (\S+), .* s in (\d+ MB)", readme=True),
    Row("CCSD iteration of benzene/cc-pVTZ", "ccsd", ("benzene/cc-pVTZ: an iteration over PySCF's",), time_over,
        "PySCF"),
    Row("CCSD(T) of ten water molecules/cc-pVDZ", "ccsd_water10", (r"\(H2O\)10/cc-pVDZ, 2GB: CCSD\(T\)",), plain,
        "", r", (\S+): CCSD"),
    Row("CCSD energy in little memory and in much, C14H8F6/cc-pVDZ", "ccsd_large", (r".*: energy after.*",),
        difference, "ours with more memory", r"iterations, (\S+) against (\S+)"),
    Row("Full CI of {} determinants, an iteration", "fci_large", (r"Be2 .*: iteration",), plain,
        "Cray T3D, 64 processors: 15050 s", r"\], (\S+):.* (?P<count>\d+) determinants", readme=True),
    Row("Full CI product of H2O/cc-pVDZ", "fci", ("H2O/cc-pVDZ, frozen core: product",), faster, "PySCF"),
    Row("Full CI of N2/6-31G, whole run", "fci", ("N2/6-31G: whole run, share of the peer's time",), time_over,
        "PySCF"),
    Row("CASSCF(14,14) of anthracene, whole run", "casscf",
        (r"CASSCF\(14,14\).*: time", r"CASSCF\(14,14\).*: time of the peer"), against, "PySCF"),
    Row("MRCI product of N2/cc-pVQZ, processor time", "mrci", ("N2/cc-pvqz.*: one thread",), time_over,
        "OpenMolcas"),
    Row("MRCI of {} determinants, an iteration", "mrci_large", (r"H2CO.*: determinants", r"H2CO.*: iteration"),
        lambda claims: plain(claims[1:]), "", r"CAS\(12,9\), (\S+):.* (?P<count>\d+) determinants"),
    Row("Hartree-Fock of C14H8F6/6-31G* on disk, without and with its C2 axis", "scf",
        ("C14H8F6: integrals on disk against NWChem's",
         "C14H8F6: integrals on disk with symmetry C2 against NWChem's"), faster, "NWChem", readme=True),
    Row("Hartree-Fock energies whose error is within the stated bound", "accuracy",
        ("error within the bound that the run states",), plain, "PySCF"),
    Row("bytes of a contraction of arrays on disk", "einsum", ("square: bytes and prediction",), planned,
        "its own plan", r"in (\d+ MB)"),
    Row("time of a contraction of arrays on disk", "einsum", ("square: against dask",), faster, "Dask on zarr"),
    Row("global arrays between nodes, get and put of 1 MiB", "ga",
        ("get, as between nodes, against MPI", "put, as between nodes, against MPI"), faster, "MPI"),
    Row("checkpoint of a global array, saved and loaded", "checkpoint",
        ("save, against h5py", "load, against h5py"), faster, "h5py"),
    Row("EOM-CCSD energies of excited singlets", "eom_accuracy",
        ("RHF-EOM-CCSD, fitted integrals, singlets: largest difference",), difference, "PySCF"),
    Row("gradient of formaldehyde after an optimisation, CCSD(T)/cc-pVTZ", "optimized",
        ("formaldehyde/cc-pvtz: derivative along a random direction at the end, gradient against energies",),
        lambda claims: f"{claims[0]['value']:.0e} Eh/bohr apart", "differences of energies"),
    Row("disk arrays, written and synced", "pario", (r"DRA write with sync of 5000x5000, aligned",), faster,
        "Global Arrays"),
)  # fmt: skip


def headlines(root: Path, _: str) -> str:
    """The five numbers of README."""
    return _table(root, [row for row in ROWS if row.readme])


def machines(root: Path, _: str) -> str:
    """The machines that the five numbers of README were measured on."""
    found = set()
    for row in ROWS:
        if row.readme and (result := load(root, row.bench)):
            machine = result["machine"]
            memory = f"{machine['memory_bytes'] / 2**30:.0f} GiB"
            found.add(f"{machine['processor']}, {machine['cores']} cores, {memory}")
    return f"Measured on {'; '.join(sorted(found))}."


def decide(root: Path, _: str) -> str:
    """The first screen of the results."""
    return _table(root, ROWS)


def _table(root: Path, rows: tuple[Row, ...] | list[Row]) -> str:
    lines = ["| measured | result | against | memory | date |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_line(root, row) for row in rows), _kills(root)])


def _line(root: Path, row: Row) -> str:
    found = load(root, row.bench)
    command = f"outcore bench {row.bench} --json benchmarks/results/{row.bench}.json"
    if found is None or found["quick"]:
        short = "is of a short form" if found else "is missing"
        raise Refused(f"the result of '{row.what}' {short}: run {command}")
    claims = [_claim(found, pattern) for pattern in row.claims]
    text = f"{claims[0]['name']} {claims[0]['how']}"
    given = re.search(row.given, text) if row.given else None
    if row.given and given is None:
        raise Refused(f"'{row.what}': {row.given} is not in '{text}'")
    counts = {} if given is None else given.groupdict()
    sizes = [] if given is None else [each for each in given.groups() if each not in counts.values()]
    memory = " against ".join(_spaced(each) for each in sizes)
    what = row.what.format(*(f"{int(each):,}" for each in counts.values()))
    return f"| {what} | **{row.say(claims)}** | {row.peer} | {memory} | {found['date'][:10]} |"


def _claim(found: dict[str, Any], pattern: str) -> dict[str, Any]:
    for claim in found["claims"]:
        if re.fullmatch(pattern, claim["name"]) and claim["value"] is not None:
            return dict(claim)
    raise Refused(f"{found['bench']} has no measured claim {pattern}")


def _spaced(size: str) -> str:
    return re.sub(r"(?<=\d)(?=[kMG]?B)", " ", re.sub(r"000 ?MB", "GB", size))


def _kills(root: Path) -> str:
    """The row of random programs: how many kills they had, and how many they survived."""
    runs = json.loads((root / "tests" / "conformance" / "random_programs.json").read_text())
    kills = sum(run["kills"] for run in runs)
    lost = sum(run["failed"] for run in runs if run["kills"])
    return f"| kills that programs of arrays survived | **{kills - lost} of {kills}** | | | |"
