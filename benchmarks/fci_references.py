"""Full CI against energies of the literature, some with half a billion determinants. Each case is one command,
which is killed in its fourth iteration and runs again.

--quick: H2O/6-31G, in the same way.
"""

from __future__ import annotations

from outcore.cli.bench import BenchOptions, Claim

from ._fci_runs import Case, converged

_TOLD = (": energy", ": iterations", ": peak resident")  # `fci_large` reports seconds

_WATER = "3\nH2O\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
_LONG_WATER = "3\nH2O\nO 0 0 0\nH 0.967 0 0\nH -0.2923916843556798 0.9217353757557798 0\n"


def nitrogen(bohr: float) -> str:
    half = bohr * 0.529177210903 / 2
    return f"2\nN2\nN 0 0 {half:.10f}\nN 0 0 {-half:.10f}\n"


def run(options: BenchOptions) -> list[Claim]:
    cases = [
        Case("H2O/6-31G", _WATER, "6-31g", "C2v", "215MB", -76.1208675389, "PySCF, direct_spin0_symm"),
        Case(
            "H2O/cc-pVDZ, frozen core",
            _WATER,
            "cc-pvdz",
            "C2v",
            "300MB",
            -76.241687654,
            "PySCF, residual 6e-6",
            frozen=1,
        ),
        Case(
            "H2O/cc-pVDZ, 0.967 A", _LONG_WATER, "cc-pvdz", "C2v", "1GB", -76.24321859, "Rust code of CDFCI"
        ),
        Case(
            "N2/cc-pVDZ, frozen core, 2.118 bohr",
            nitrogen(2.118),
            "cc-pvdz",
            "D2h",
            "1GB",
            -109.278340,
            "Goodson 2002, Larsen et al. 2000",
            frozen=2,
        ),
        Case(
            "N2/cc-pVDZ, frozen core, 2.58 bohr",
            nitrogen(2.58),
            "cc-pvdz",
            "D2h",
            "1GB",
            -109.192522175,
            "Psi4, issue 448",
            frozen=2,
        ),
    ]
    claims = [claim for case in (cases[:1] if options.quick else cases) for claim in converged(options, case)]
    return [claim for claim in claims if any(word in claim.name for word in _TOLD)]
