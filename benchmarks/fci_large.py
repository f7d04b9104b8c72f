"""Full CI of half a billion and of a billion determinants, killed in the middle and restarted.

Each case is one command, `outcore fci --checkpoint`. It gets SIGKILL in its fourth iteration and then runs again.
The energy is compared with the literature where there is a value. The seconds, and the share of them in which a
process waited for vectors, are those of all iterations of both runs; the T3D study (64 processors) stands beside
them. Then the same case runs a few iterations with less memory.

--quick: H2O/6-31G on disk, in the same way.
"""

from __future__ import annotations

from outcore.cli.bench import BenchOptions, Claim

from ._fci_runs import Case, converged

REASONS = {
    ".*: (iteration|share of iterations that waited)": (
        "a pass of corrections reads six vectors and writes five, and nothing is computed beside "
        "it: the rate of the disk decides"
    ),
}

WATER = "3\nH2O\nO 0 0 -0.004762593\nH 0 0.80184232855 -0.56034446694\nH 0 -0.80184232855 -0.56034446694\n"
SMALL_WATER = "3\nH2O\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"


def beryllium() -> str:
    """[9s2p1d] as a NWChem basis: cc-pVDZ with its s functions uncontracted."""
    from pyscf import gto

    known = gto.basis.load("cc-pvdz", "Be")
    exponents = dict.fromkeys(row[0] for shell in known if shell[0] == 0 for row in shell[1:])
    shells = [[0, [each, 1.0]] for each in exponents] + [shell for shell in known if shell[0] > 0]
    lines = ["BASIS spherical"]
    for angular, *rows in shells:
        lines.append(f"Be {'SPD'[angular]}")
        lines += [f"  {exponent!r} {coefficient!r}" for exponent, coefficient in rows]
    return "\n".join([*lines, "END", ""])


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        case = Case(
            "H2O/6-31G", SMALL_WATER, "6-31g", "C2v", "215MB", -76.1208675389, "PySCF, direct_spin0_symm"
        )
        return converged(options, case)
    cases = [
        Case("H2O/cc-pVDZ", WATER, "cc-pvdz", "C2v", "1GB", -76.2418601, "Olsen et al. 1996", 60.0),
        Case(
            "Be2 [9s2p1d]",
            "2\nBe2\nBe 0 0 1.225\nBe 0 0 -1.225\n",
            beryllium(),
            "D2h",
            "4GB",
            max_seconds=90.0,
            less_memory="500MB",
            t3d=True,
        ),
    ]
    return [claim for case in cases for claim in converged(options, case)]
