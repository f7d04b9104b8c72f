"""Methods on 1 to 512 nodes of a cluster, from their own plans.

Plans, tasks, bytes and forecasts are those of the methods. Rates and memory are those of a modelled cluster, see
`_cluster.Cluster`; the first claim describes it. Efficiency is the time of the operations with all cores busy, over
the total time. Three things are measured on this machine: the two-electron integrals of Hartree-Fock, the rate at
which records of multireference CI are packed, and the planning of Full CI, which each process does. --quick:
smaller systems.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.chem.cc.plan import describe
from outcore.chem.ci import estimate
from outcore.chem.hf import plan
from outcore.cli.bench import BenchOptions, Claim

from . import _scale_cc, _scale_fci, _scale_hf, _scale_mrci, _scale_requests
from ._cluster import NODES, Cluster, Taken, claims, largest
from ._molecules import fullerene, waters

HAS_CASES = True
FORMALDEHYDE = "O 0 0 1.2050; C 0 0 0; H 0 0.9429 -0.5876; H 0 -0.9429 -0.5876"
_FOUR_TB = Cluster(disk=4e12)


def run(options: BenchOptions) -> list[Claim]:
    options.say(f"assumed: {Cluster()}")
    parts: dict[str, Callable[[BenchOptions], list[Claim]]] = {
        "Full CI": _fci,
        "CCSD(T)": _cc,
        "multireference CI": _mrci,
        "requests": lambda options: _scale_requests.run(quick=options.quick),
        "Hartree-Fock": _hf,
    }
    if not options.quick:
        parts |= {
            "largest coupled cluster": _largest_cc,
            "largest Hartree-Fock": _largest_hf,
            "largest multireference CI": _largest_mrci,
            "largest Full CI": _largest_fci,
            "fluoride": _fluoride,
        }
    found = [Claim("cores of a node", Cluster().cores, "", None, "", f"assumed: {Cluster()}")]
    for name, part in parts.items():
        found += options.claims(name, partial(part, options))
    return found


def _on_nodes(
    options: BenchOptions, method: str, what: str, take: Callable[[Cluster], Taken | str]
) -> list[Claim]:
    found: dict[int, Taken | str] = {}
    for nodes in NODES:
        found[nodes] = taken = take(Cluster(nodes=nodes))
        told = (
            taken
            if isinstance(taken, str)
            else f"{taken.seconds:.4g} s, {taken.efficiency:.3f}, {taken.limit}"
        )
        options.say(f"{method} on {nodes} nodes: {told}")
    return claims(method, what, found)


def _fci(options: BenchOptions) -> list[Claim]:
    case = _scale_fci.SMALL if options.quick else _scale_fci.FROZEN
    what = f"{case.name}, {case.space.determinants} determinants, whole run"
    return _on_nodes(options, "Full CI", what, lambda cluster: _scale_fci.taken(case, cluster))


def _cc(options: BenchOptions) -> list[Claim]:
    case = (
        _scale_cc.Case("(H2O)4/cc-pVDZ", waters(4), "cc-pvdz")
        if options.quick
        else _scale_cc.Case("C60/cc-pVDZ", fullerene(), "cc-pvdz")
    )
    (occupied,), (virtual,) = case.sizes.occupied, case.sizes.virtual
    orbitals = f"{occupied} occupied and {virtual} virtual orbitals"
    what = f"{case.name}, {orbitals}, {describe.ITERATIONS} iterations and (T)"
    found = _on_nodes(options, "CCSD(T)", what, lambda cluster: _scale_cc.taken(case.sizes, cluster))
    at_64 = _scale_cc.taken(case.sizes, Cluster(nodes=64))
    if isinstance(at_64, Taken):
        found.append(
            _scale_requests.failures(
                "CCSD(T) on 64 nodes", _scale_cc.kept_pieces(at_64), 64, years=5.0, again_s=300.0
            )
        )
    return found


def _hf(options: BenchOptions) -> list[Claim]:
    atoms, name = (waters(4), "(H2O)4") if options.quick else (fullerene(), "C60")
    of = _scale_hf.Sampled.of(f"{name}/cc-pVDZ", atoms, "cc-pvdz", str(options.scratch))
    what = f"{of.name}, {of.functions} functions, whole SCF"
    return _on_nodes(options, "Hartree-Fock", what, lambda cluster: _scale_hf.taken(of, cluster))


def _mrci(options: BenchOptions) -> list[Claim]:
    of = _formaldehyde("cc-pvdz" if options.quick else "cc-pvqz")
    how = "of products of matrices, assumed"
    if not options.quick:
        how = "counted operations over the measured iteration of mrci_large"
    found = [Claim("MRCI: rate of a core", of.rate / 1e9, "Gflop/s", None, "", how)]
    what = f"{of.name}, {of.elements} coefficients, an iteration"
    return found + _on_nodes(options, "MRCI", what, lambda cluster: _scale_mrci.taken(of, cluster))


def _formaldehyde(basis: str) -> _scale_mrci.Counted:
    """The space of formaldehyde; in cc-pVQZ with the rate that `mrci_large` measured."""
    found = _scale_mrci.Counted.of(f"H2CO/{basis}, CAS(12,9)", FORMALDEHYDE, basis, active=9, frozen=2)
    if basis != "cc-pvqz":
        return found
    return found.as_fast_as(*_measured("mrci_large", "H2CO/cc-pvqz, CAS(12,9), 1500MB: iteration"))


def _measured(bench: str, name: str) -> tuple[float, int]:
    """The value of a claim in seconds, and the number of cores of the machine where it was measured."""
    found = json.loads((Path(__file__).parent / "results" / f"{bench}.json").read_text())
    (value,) = (claim["value"] for claim in found["claims"] if claim["name"] == name)
    return float(value), int(found["machine"]["cores"])


# ---- one node ----


def _largest_cc(options: BenchOptions) -> list[Claim]:
    def of(count: int) -> Any:
        return _scale_cc.Case(f"(H2O){count}/cc-pVTZ", waters(count), "cc-pvtz").sizes

    def fits(count: int) -> bool:
        try:
            return _scale_cc.plan_of(of(count), _FOUR_TB).disk_bytes <= _FOUR_TB.disk
        except OutcoreError:
            return False

    sizes = range(10, 200, 5)
    count = largest(sizes, fits)
    assert count is not None
    refused = _scale_cc.taken(of(count + sizes.step), _FOUR_TB)
    taken = _scale_cc.taken(of(count), _FOUR_TB)
    seconds, how = (None, taken) if isinstance(taken, str) else (taken.seconds / 86400, taken.how)
    name = f"CCSD(T), largest row of water molecules in cc-pVTZ on a node with 4 TB: (H2O){count}"
    return [Claim(name, seconds, "days", None, "", f"{how}; 5 molecules more: {_why(refused)}")]


def _why(refused: Taken | str) -> str:
    return refused if isinstance(refused, str) else f"more disk is needed; {refused.how}"


def _largest_hf(options: BenchOptions) -> list[Claim]:
    carbons, functions = _scale_hf.largest(_FOUR_TB)
    seconds = plan.CYCLES * _scale_hf.eigen_s(functions)
    return [
        Claim(
            f"Hartree-Fock, largest alkane in cc-pVDZ on a node: C{carbons}H{2 * carbons + 2}, {functions} "
            "functions",
            seconds / 3600, "hours at least", None, "",
            "each process has its own matrices, which fill its memory; eigenvalues at process 0 alone take that "
            "long",
        )
    ]  # fmt: skip


def _largest_fci(options: BenchOptions) -> list[Claim]:
    """The largest number of orbitals of F-/aug-cc-pVTZ for ten electrons on one node."""
    planned: dict[int, _scale_fci.Planned] = {}

    def fits(orbitals: int) -> bool:
        case = replace(_scale_fci.FLUORIDE, orbitals=orbitals)
        planned[orbitals] = found = _scale_fci.Planned.of(case, _FOUR_TB)
        return found.plan.disk_bytes <= _FOUR_TB.disk

    orbitals = largest(range(42, 46), fits)
    assert orbitals is not None
    found = planned[orbitals]
    taken = found.taken()
    assert isinstance(taken, Taken), taken
    name = f"Full CI, most orbitals for 10 electrons in D2h on a node with 4 TB: {orbitals}"
    how = f"{found.case.space.determinants} determinants, {taken.how}"
    return [Claim(name, taken.seconds / 86400, "days", None, f"limit: {taken.limit}", how)]


def _largest_mrci(options: BenchOptions) -> list[Claim]:
    of = _formaldehyde("cc-pvqz")
    found = _scale_mrci.largest(of, _FOUR_TB)
    assert found is not None
    name = f"MRCI, H2CO, CAS(12,9), most external orbitals on a node with 4 TB: {found.external}"
    how = (
        f"{found.times} times those of cc-pVQZ; integrals between their pairs {found.tables / 1e12:.3g} TB, packed "
        f"vectors {found.vectors / 1e12:.3g} TB, integrals with internal orbitals {found.replicated / 1e9:.3g} GB "
        f"in each process; reading the former takes {found.tables / _FOUR_TB.read:.0f} s"
    )
    return [Claim(name, found.seconds / 3600, "hours for a product, at most", None, "", how)]


def _fluoride(options: BenchOptions) -> list[Claim]:
    """Claims for 2.35e11 determinants on a node of 64 cores."""
    case, node = _scale_fci.FLUORIDE, Cluster(cores=64, disk=2e12)
    what = f"{case.name}, {case.space.determinants} determinants, on a node of 64 cores"
    found = []
    for name, cluster, vectors in (
        ("512 GB of memory", node.of(1, disk=8e12), 3),
        ("1.5 TB of memory", node.of(1, memory=1.5e12, disk=8e12), 2),
    ):
        planned = _scale_fci.Planned.of(case, cluster, vectors=vectors)
        disk, taken = planned.plan.disk_bytes / 1e12, planned.taken()
        assert isinstance(taken, Taken), taken
        how = f"{what}; small space of {vectors} vectors; {taken.how}"
        iteration = taken.seconds / estimate.ITERATIONS
        found += [
            Claim(f"{case.name}, {name}: disk", disk, "TB", None, "", how),
            Claim(
                f"{case.name}, {name}: iteration",
                iteration / 3600,
                "hours",
                None,
                f"limit: {taken.limit}",
                "",
            ),
            Claim(f"{case.name}, {name}: whole run", taken.seconds / 3600, "hours", None, "", ""),
        ]
        options.say(f"{name}: {disk:.3g} TB, {taken.seconds:.4g} s")
    return found
