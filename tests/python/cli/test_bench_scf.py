"""The claims of the Hartree-Fock benchmark about its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcore.cli import bench

scf = bench.load("scf")

CASE = scf.Case("molecule", Path("molecule.xyz"), "basis", 1, None, peers=True)
EXACT = -100.0


def runs(**errors: float) -> dict:
    """Runs of 100 s on disk, 400 s direct, 300 s with looser thresholds, 350 s with PySCF."""
    seconds = {
        "ours, disk": 100.0,
        "ours, direct": 400.0,
        scf._LOOSE: 300.0,
        scf._PYSCF_SAME: 350.0,
        scf._EXACT: 150.0,
    }
    return {name: [scf.Run(each, EXACT + errors.get(name, 0.0))] for name, each in seconds.items()}


@pytest.mark.parametrize(
    ("direct", "loose", "theirs", "value"),
    [(1e-9, 1e-8, -2e-8, 350 / 300), (1e-9, 3e-8, 2e-8, 350 / 400), (3e-8, 3e-8, 2e-8, 0.0)],
)
def test_direct_runs_are_compared_at_no_larger_error(direct, loose, theirs, value):
    times = runs(**{"ours, direct": direct, scf._LOOSE: loose, scf._PYSCF_SAME: theirs})
    claims = [claim for claim in scf._claims(CASE, times) if "no larger" in claim.name]
    assert [claim.value for claim in claims] == [pytest.approx(value)]
    assert claims[0].holds == (value >= 1)
