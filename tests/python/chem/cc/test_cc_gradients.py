"""Gradients of closed-shell CCSD, against independently derived values and finite differences."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cc_support
import numpy as np
import pytest

from outcore import OutcoreError
from outcore.chem import ri
from outcore.chem.cc import CCSD
from outcore.chem.cc.plan import describe
from outcore.cli import main as cli

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
HOF = "O 0.10 0.02 0.00; F 1.43 -0.05 0.10; H -0.25 0.93 0.05"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}


def mean_field(atoms: str, **settings: Any) -> Any:
    import pyscf

    mf = ri.RHF(
        pyscf.M(atom=atoms, basis="6-31g", verbose=0), "cc-pvdz-jkfit", comm=None, memory="1GB", **settings
    )
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    return mf


def gradient(atoms: str, frozen: int, **settings: Any) -> tuple[float, np.ndarray[Any, Any]]:
    with (
        mean_field(atoms) as mf,
        CCSD(
            mf, frozen, comm=None, memory="1GB", threads=2, auxbasis="cc-pvdz-ri", **TIGHT, **settings
        ) as cc,
    ):
        cc.kernel()
        return cc.e_tot, cc.nuc_grad_method().kernel()


@pytest.mark.parametrize(
    ("frozen", "energy", "of_oxygen", "of_hydrogen"),
    [
        (0, -76.1193489433, -0.010365410, -0.022837802),
        (1, -76.1184407738, -0.010442181, -0.022868258),
    ],
)
def test_water(frozen: int, energy: float, of_oxygen: float, of_hydrogen: float) -> None:
    e_tot, found = gradient(WATER, frozen)
    assert e_tot == pytest.approx(energy, abs=2e-9)
    assert found[0, 2] == pytest.approx(of_oxygen, abs=2e-9)
    assert found[1, 1] == pytest.approx(of_hydrogen, abs=2e-9)
    assert abs(found.sum(0)).max() < 1e-10


@pytest.mark.parametrize(
    "settings", [{}, {"storage": "disk", "ladder": "disk"}, {"ladder": "rebuild"}], ids=str
)
def test_a_molecule_of_low_symmetry_with_frozen_cores(settings: dict[str, Any]) -> None:
    e_tot, found = gradient(HOF, 2, **settings)
    assert e_tot == pytest.approx(-174.9257942305, abs=2e-9)
    assert found[0] == pytest.approx([0.152332730, 0.028557197, 0.014584246], abs=3e-9)


@pytest.mark.parametrize(
    ("options", "of_oxygen", "dipole"),
    [([], -0.010442181, -2.52675), (["--triples"], -0.011548350, -2.51781)],
    ids=["CCSD", "CCSD(T)"],
)
def test_the_command_prints_it(tmp_path: Path, options: list[str], of_oxygen: float, dipole: float) -> None:
    geometry, result, density = tmp_path / "w.xyz", tmp_path / "w.json", tmp_path / "w.molden"
    geometry.write_text("3\n\n" + WATER.replace("; ", "\n") + "\n")
    arguments = [
        "ccsd",
        geometry,
        "--basis",
        "6-31g",
        "--jkbasis",
        "cc-pvdz-jkfit",
        "--auxbasis",
        "cc-pvdz-ri",
    ]
    more = ["--frozen", "1", "--gradient", "--dipole", "--density", density, "--json", result]
    assert cli.run([str(each) for each in (*arguments, *more, *options, "--memory", "1GB")]) == 0
    found = json.loads(result.read_text())
    assert found["gradient_hartree_per_bohr"][0][2] == pytest.approx(of_oxygen, abs=2e-8)
    assert found["dipole_debye"][2] == pytest.approx(dipole, abs=1e-4)
    assert density.exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--fno", "1e-5"], "--fno"),
        (["--rohf"], "with --rohf"),
        (["--integrals", "cholesky"], "density fitting"),
        (["--method", "dcsd"], "densities are of CCSD"),
    ],
    ids=["natural orbitals", "ROHF", "Cholesky", "method"],
)
def test_what_has_no_gradient_is_refused(tmp_path: Path, options: list[str], why: str) -> None:
    geometry = tmp_path / "w.xyz"
    geometry.write_text("3\n\n" + WATER.replace("; ", "\n") + "\n")
    with pytest.raises(OutcoreError) as error:
        cli.run(["ccsd", str(geometry), "--basis", "6-31g", "--gradient", *options])
    assert why in str(error.value)


def test_blocks_of_amplitudes_leave_room_for_what_may_follow() -> None:
    mf = cc_support.mean_field(WATER, "cc-pvdz")
    plans = []
    for later in (None, describe.response_of_triples):
        with CCSD(mf, comm=None, memory="1GB", threads=1, integrals="ri") as cc:
            cc.later = later
            plans.append(cc.estimate())
    assert plans[0].spaces == plans[1].spaces


def test_too_little_memory_for_multipliers_names_how_much_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan_of = CCSD.plan_of

    def in_little(self: CCSD, what: Any, free_bytes: int, *given: Any) -> Any:
        return plan_of(self, what, 1 << 20, *given)

    with CCSD(
        cc_support.mean_field(WATER, "sto-3g"),
        comm=None,
        memory="1GB",
        threads=1,
        conv_tol=0.9,
        conv_tol_normt=0.9,
    ) as cc:
        cc.kernel()
        before = np.asarray(cc.t2)
        with monkeypatch.context() as patched:
            patched.setattr(CCSD, "plan_of", in_little)
            with pytest.raises(OutcoreError, match=r"this part needs \d+ MB for all") as caught:
                cc.solve_lambda()
        assert caught.value.errno == errno.ENOMEM
        assert (np.asarray(cc.t2) == before).all()
        cc.solve_lambda()
        assert cc.multipliers.converged


def test_an_estimate_tells_what_the_run_says_that_it_has_predicted(tmp_path: Path) -> None:
    geometry, result = tmp_path / "m.xyz", tmp_path / "m.json"
    geometry.write_text("3\n\n" + WATER.replace("; ", "\n") + "\n")
    sets = ["--auxbasis", "def2-svp-ri", "--jkbasis", "def2-svp-jkfit"]
    common = ["ccsd", geometry, "--basis", "6-31g", *sets, "--triples", "--gradient", "--memory", "1GB"]

    def told(*more: object) -> Any:
        # In a process of its own: what other tests have left in this one counts as its memory.
        given = [str(each) for each in (*common, *more, "--json", result)]
        subprocess.run([sys.executable, "-m", "outcore", *given], capture_output=True, check=True)
        return json.loads(result.read_text())

    found = told("--estimate")["estimate"]["densities"]
    predicted = told("--cc-tol", 0.9, "--amplitude-tol", 0.9)["densities_forecast"]
    together = {name: [found[each]["seconds"] for each in name.split(" and ")] for name in predicted}
    assert {name: sum(each) for name, each in together.items()} == {
        name: seconds for name, (seconds, _) in predicted.items()
    }
    assert set(predicted) == {
        "derivatives of (T)",
        "Lambda equations",
        "densities and orbital response",
        "derivatives of integrals",
    }
    assert min(min(each) for each in together.values()) > 0
    assert found["three-index densities"]["disk_bytes"] > 0
