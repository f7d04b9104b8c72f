"""The error of the energy by storing integrals: the bound that a run states against the actual error.

Extended, regular systems are the hard ones: their small integrals are many, alike, and of one sign. PySCF converges
each molecule with all integrals (in memory, or recomputed without screening; for the largest molecules with a
screening of 1e-15, from Outcore's density). Outcore then converges it for errors of 1e-6 to 1e-11 Hartree, in the
three ways that store integrals, from PySCF's density. A run of Outcore with an error of 1e-14 (1e-12 for the
largest molecules), whose values are exact, measures the uncertainty of the reference. --quick takes small
molecules and two of the errors.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from outcore.chem.hf import scf
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most

from ._molecules import alkane, flake, hydrogen_chain, hydrogen_lattice, hydrogen_ring, waters

ERRORS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
STORAGES = ("disk", "mixed", "auto")
_FEW_ERRORS = (1e-6, 1e-9)  # for molecules that take long
_CONVERGED = 1e-11
_GRADIENT = 1e-7  # of the reference: near-degenerate lattices are not converged when the energy stands still
_IN_MEMORY = 150  # basis functions up to which PySCF keeps all integrals


@dataclass(frozen=True)
class Case:
    name: str
    atoms: list[str]
    basis: str
    errors: tuple[float, ...] = ERRORS

    @property
    def is_large(self) -> bool:
        """Whether the molecule takes long: it runs with few errors, none below 1e-9."""
        return self.errors == _FEW_ERRORS

    @property
    def reference_screening(self) -> float:
        return 1e-15 if self.is_large else 0.0

    @property
    def exact(self) -> float:
        """The error of the run of Outcore that is compared with the reference."""
        return 1e-12 if self.is_large else 1e-14


@dataclass(frozen=True)
class Run:
    """A run: the error that was asked for, the bound that the run states, and the actual error (Hartree)."""

    storage: str
    asked: float
    bound: float
    error: float

    @property
    def within(self) -> bool:
        return abs(self.error) <= self.bound

    @property
    def pessimism(self) -> float:
        return self.bound / max(abs(self.error), 1e-300)


def _cases(quick: bool) -> Iterator[Case]:
    yield Case("ring H50", hydrogen_ring(50), "sto-3g")
    yield Case("lattice H32", hydrogen_lattice(2, 4, 4), "sto-3g")
    yield Case("alkane C8H18", alkane(8), "sto-3g")
    yield Case("water (H2O)4", waters(4), "6-31g")
    if quick:
        return
    yield Case("chain H20", hydrogen_chain(20), "6-31g")
    yield Case("ring H100", hydrogen_ring(100), "sto-3g")
    yield Case("ring H30", hydrogen_ring(30), "cc-pvdz")
    yield Case("chain H80", hydrogen_chain(80), "sto-3g")
    yield Case("lattice H64", hydrogen_lattice(4, 4, 4), "sto-3g")
    yield Case("alkane C10H22", alkane(10), "6-31g*")
    yield Case("alkane C30H62", alkane(30), "sto-3g", _FEW_ERRORS)
    yield Case("alkane C60H122", alkane(60), "sto-3g", _FEW_ERRORS)
    yield Case("water (H2O)12", waters(12), "6-31g", _FEW_ERRORS)
    yield Case("water (H2O)2", waters(2), "aug-cc-pvdz")
    yield Case("water (H2O)2", waters(2), "cc-pvtz")
    yield Case("flake C24H12", flake(2), "sto-3g")
    yield Case("chain H40", hydrogen_chain(40), "sto-3g")
    yield Case("flake C6H6", flake(1), "6-31g")
    yield Case("alkane C4H10", alkane(4), "6-31g")
    yield Case("flake C54H18", flake(3), "sto-3g", _FEW_ERRORS)


def run(options: BenchOptions) -> list[Claim]:
    claims: list[Claim] = []
    all_runs: list[Run] = []
    for case in _cases(options.quick):
        runs, noise = _one(options, case, _FEW_ERRORS if options.quick else case.errors)
        all_runs += runs
        claims.append(_claim(case, runs, noise))
    return [*_summary(all_runs), *claims]


def _summary(runs: list[Run]) -> list[Claim]:
    asked = [each.asked for each in runs]
    how = f"{len(runs)} runs: {', '.join(STORAGES)}; errors of {max(asked):.0e} to {min(asked):.0e} Hartree"
    inside = 100 * sum(each.within for each in runs) / len(runs)
    kept = 100 * sum(each.bound <= each.asked for each in runs) / len(runs)
    pessimism = statistics.median(each.pessimism for each in runs)
    return [
        Claim("error within the bound that the run states", inside, "% of runs", at_least(100), "", how),
        Claim("bound over error, median", pessimism, "times", at_most(10), "", how),
        Claim("bound within the error asked for", kept, "% of runs", None, "", how),
    ]  # fmt: skip


def _claim(case: Case, runs: list[Run], noise: float) -> Claim:
    """The worst run of a molecule; `how` lists all its runs."""
    how = "; ".join(
        f"{each.storage} {each.asked:.0e}: bound {each.bound:.1e}, error {each.error:.1e}" for each in runs
    )
    return Claim(
        f"{case.name}/{case.basis}: error over bound, worst of {len(runs)} runs",
        max(abs(each.error) / each.bound for each in runs),
        "",
        at_most(1),
        f"PySCF; with exact values ours differs by {noise:.1e}",
        how,
    )


def _one(options: BenchOptions, case: Case, errors: tuple[float, ...]) -> tuple[list[Run], float]:
    from pyscf import gto

    mol = gto.M(atom="; ".join(case.atoms), basis=case.basis, verbose=0)

    def begun(asked: float, **settings: Any) -> Any:
        mf = scf.RHF(mol, comm=None, scratch=str(options.scratch), error=asked, **settings)
        return mf.set(conv_tol=_CONVERGED, conv_tol_grad=1e-6 if asked > 1e-9 else 1e-7)

    start = None
    if case.is_large:  # PySCF starts from Outcore's density
        with begun(1e-9, storage="disk") as mf:
            mf.kernel()
            start = mf.make_rdm1()
    exact, density = _reference(mol, case, start)

    def ours(asked: float, **settings: Any) -> tuple[float, Any, int]:
        with begun(asked, **settings) as mf:
            energy = mf.kernel(density)
            assert mf.stored_summary is not None
            return energy - exact, mf.energy_error(), mf.stored_summary.bytes

    noise = ours(case.exact)[0]
    runs = []
    for asked in errors:
        half = 0
        for storage in STORAGES:
            settings = {"disk_bytes": half} if storage == "mixed" else {}
            found, promised, size = ours(asked, storage=storage, **settings)
            half = half or size // 2
            runs.append(Run(storage, asked, promised.bound, found))
            options.say(
                f"{case.name}/{case.basis}, {mol.nao} functions, {storage}, {asked:.0e}: bound "
                f"{promised.bound:.1e}, error {found:.1e} ({noise:.0e} with exact values)"
            )
    return runs, noise


def _reference(mol: Any, case: Case, start: Any) -> tuple[float, Any]:
    """Energy and density of PySCF. start: the first density; None: PySCF's own guess."""
    from pyscf import scf as theirs

    screening = case.reference_screening
    mf = theirs.RHF(mol)
    mf.conv_tol, mf.conv_tol_grad, mf.direct_scf_tol = _CONVERGED, _GRADIENT, screening
    mf.max_cycle = 200
    if mol.nao > _IN_MEMORY:  # only the last cycles need the tight screening
        if start is None:
            mf.direct_scf_tol = 1e-13
            mf.kernel()
            start = mf.make_rdm1()
        mf = theirs.RHF(mol).set(
            conv_tol=_CONVERGED,
            conv_tol_grad=_GRADIENT,
            max_cycle=200,
            direct_scf_tol=screening,
            direct_scf=False,
            incore_anyway=False,
        )
        mf.max_memory = 0
    energy = mf.kernel(start)
    if not mf.converged:
        raise RuntimeError("the reference does not converge")
    return energy, mf.make_rdm1()
