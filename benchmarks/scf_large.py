"""Hartree-Fock of n-octacosane C28H58 with integrals on disk, semi-direct and direct, against PySCF and NWChem.

As the benchmark `scf`, with 536 functions and one run of each program. --quick does the same as that of `scf`.
"""

from __future__ import annotations

from outcore.cli.bench import BenchOptions, Claim

from . import scf
from ._molecules import alkane

REASONS = {
    "C28H58: direct, with an error no larger .*": "integrals of the same library are nearly all of both times"
}


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        return scf.run(options)
    scf.say_what_is_missing(options)
    return scf.measure(options, scf.case(options, "C28H58", alkane(28), "6-31g*", 1, None, peers=True))
