"""Whether stored integrals lead an SCF to another state than exact integrals, over many hard systems.

Rings and chains of 10 to 100 hydrogen atoms, close and stretched, and stretched and symmetric molecules: if
occupied and virtual orbitals are nearly degenerate, the least noise decides which are occupied. PySCF converges
each molecule with all integrals in memory, and `outcore scf` from the same start with stored integrals, for two
errors and two ways of storing. A run is right if its energy equals PySCF's, or is lower, within the bound that
it states; or if it reports that the state is undecided or that it has not converged (exit status 3 or an
error). --quick takes few molecules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from outcore.base.errors import NotConverged
from outcore.cli.bench import BenchOptions, Claim, at_most

from ._molecules import acene, hydrogen_lattice

HAS_CASES = True
RUNS = (("disk", 1e-6), ("disk", 1e-8), ("auto", 1e-6))
SIZES = (10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 34, 38, 42, 46, 50, 56, 64, 74, 86, 100)
SPACINGS = (0.9, 1.3)  # Angstrom
CONVERGED = 1e-9  # Hartree, convergence of both SCFs
_SPLIT = (10, 16, 22, 28)  # atoms of rings and chains in 6-31G
_UNDECIDED = 3  # exit status


@dataclass(frozen=True)
class Case:
    """atoms: "element x y z" in Angstrom."""

    name: str
    atoms: tuple[str, ...]
    basis: str = "sto-3g"

    @property
    def title(self) -> str:
        return f"{self.name}/{self.basis}"


@dataclass(frozen=True)
class Found:
    """Results of one run. The energy (Hartree) is relative to that of exact integrals. told: the reason why the run
    says that it is not sure."""

    title: str
    error: float
    bound: float
    told: str

    @property
    def kind(self) -> str:
        if self.told:
            return "told"
        if self.error > self.bound + 2 * CONVERGED:
            return "above"
        return "same" if self.error >= -self.bound - 2 * CONVERGED else "below"


def _ring(count: int, spacing: float) -> tuple[str, ...]:
    radius = spacing / 2 / math.sin(math.pi / count)
    angles = [2 * math.pi * n / count for n in range(count)]
    return tuple(f"H {radius * math.cos(at):.12f} {radius * math.sin(at):.12f} 0" for at in angles)


def _chain(count: int, spacing: float) -> tuple[str, ...]:
    return tuple(f"H 0 0 {spacing * n:.12f}" for n in range(count))


def _cases(quick: bool) -> Iterator[Case]:
    for count in (10, 20) if quick else SIZES:
        for spacing in SPACINGS:
            yield Case(f"ring H{count}, {spacing} A", _ring(count, spacing))
            yield Case(f"chain H{count}, {spacing} A", _chain(count, spacing))
    if quick:
        return
    for count in _SPLIT:
        yield Case(f"ring H{count}, 0.9 A", _ring(count, 0.9), "6-31g")
        yield Case(f"chain H{count}, 0.9 A", _chain(count, 0.9), "6-31g")
    yield Case("lattice H16", tuple(hydrogen_lattice(2, 2, 4)))
    yield Case("lattice H32", tuple(hydrogen_lattice(2, 4, 4)))
    yield Case("benzene", tuple(acene(1)), "6-31g")
    yield Case("naphthalene", tuple(acene(2)))
    for name, atoms in (
        ("N2", "N 0 0 {0}; N 0 0 -{0}"),
        ("F2", "F 0 0 {0}; F 0 0 -{0}"),
        ("C2", "C 0 0 {0}; C 0 0 -{0}"),
        ("cyclobutadiene, square", "C {0} {0} 0; C {0} -{0} 0; C -{0} {0} 0; C -{0} -{0} 0; "
         "H {1} {1} 0; H {1} -{1} 0; H -{1} {1} 0; H -{1} -{1} 0"),
    ):  # fmt: skip
        for half in (0.71, 1.1):
            lines = atoms.format(half, half + 0.77).split("; ")
            yield Case(f"{name}, {half} A", tuple(lines), "6-31g")


def run(options: BenchOptions) -> list[Claim]:
    found: list[Found] = []
    for case in _cases(options.quick):
        found += [Found(**each) for each in options.case(case.title, partial(_one, options, case))]
    counts = {
        kind: [each for each in found if each.kind == kind] for kind in ("same", "below", "above", "told")
    }
    same, below, above, told = (counts[kind] for kind in ("same", "below", "above", "told"))
    how = f"{len(found)} runs of {len(found) // len(RUNS)} molecules"
    largest = max((max(0.0, abs(each.error) - 2 * CONVERGED) / each.bound for each in same), default=0.0)
    return [
        Claim(
            "runs that end above the state of exact integrals, without a word",
            len(above),
            "runs",
            at_most(0),
            "PySCF",
            _listed(above) or how,
        ),
        Claim("runs that end in the state of exact integrals", len(same), "runs", None, "PySCF", how),
        Claim(
            "of them, error over the bound that is stated, largest",
            largest,
            "",
            at_most(1),
            "PySCF",
            f"beside {2 * CONVERGED:.0e} Eh, to which two SCFs converge",
        ),
        Claim("runs that end in a lower state", len(below), "runs", None, "PySCF", _listed(below)),
        Claim("runs that say that they are not sure", len(told), "runs", None, "", _listed(told)),
    ]


def _listed(found: list[Found]) -> str:
    return "; ".join(f"{each.title}: {each.told or f'{each.error:.1e} Eh'}" for each in found)


def _one(options: BenchOptions, case: Case) -> list[dict[str, Any]]:
    """All runs of a molecule."""
    exact, found = _exact(case), []
    for storage, error in RUNS:
        each = _stored(options, case, storage, error, exact)
        options.say(f"{each.title}: {each.kind}, {each.error:.1e} Eh, bound {each.bound:.1e} Eh {each.told}")
        found.append(vars(each))
    return found


def _exact(case: Case) -> float:
    """PySCF's energy (Hartree), by its default solver, or by its second-order solver if the default one does not
    converge."""
    from pyscf import gto, lib, scf

    mol = gto.M(atom="; ".join(case.atoms), basis=case.basis, verbose=0)
    with lib.with_omp_threads(1):
        mf = scf.RHF(mol).set(conv_tol=CONVERGED, chkfile=None, max_memory=8000, max_cycle=100)
        mf.kernel()
        if not mf.converged:
            mf = mf.newton().run(mf.mo_coeff, mf.mo_occ)
        if not mf.converged:
            raise RuntimeError(f"{case.title}: PySCF does not converge")
    return float(mf.e_tot)


def _stored(options: BenchOptions, case: Case, storage: str, error: float, exact: float) -> Found:
    """Runs the command in this process, because starting hundreds of processes would take longer than their
    work."""
    from outcore.cli import main

    molecule, results = options.scratch / "molecule.xyz", options.scratch / "results.json"
    molecule.write_text("\n".join([str(len(case.atoms)), case.name, *case.atoms]) + "\n")
    title, told = f"{case.title}, {storage} {error:.0e}", ""
    arguments = [
        "scf", molecule, "--basis", case.basis, "--error", error, "--storage", storage, "--threads", 1,
        "--conv-tol", CONVERGED, "--scratch", options.scratch, "--json", results, "--quiet",
    ]  # fmt: skip
    try:
        status = main.run([str(each) for each in arguments])
    except NotConverged:
        return Found(title, 0.0, 0.0, "not converged")
    found = json.loads(results.read_text())
    results.unlink()
    if status == _UNDECIDED:
        told = "undecided"
    return Found(title, found["energy_hartree"] - exact, found["storage_error"]["bound"], told)
