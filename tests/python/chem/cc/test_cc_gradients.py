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
from pyscf import scf
from pyscf.scf import hf
from pyscf.tools import molden

from outcore import OutcoreError
from outcore.base.errors import NotConverged
from outcore.chem import ri
from outcore.chem.cc import CCSD
from outcore.chem.cc.plan import describe
from outcore.chem.formats import densities as formats
from outcore.chem.gradients import response
from outcore.cli import main as cli

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
HOF = "O 0.10 0.02 0.00; F 1.43 -0.05 0.10; H -0.25 0.93 0.05"
LOW = "O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}
ONE = {"conv_tol": 0.9, "conv_tol_normt": 0.9}  # one iteration

Values = np.ndarray[Any, np.dtype[Any]]


def mean_field(atoms: str, **settings: Any) -> Any:
    import pyscf

    mf = ri.RHF(
        pyscf.M(atom=atoms, basis="6-31g", verbose=0), "cc-pvdz-jkfit", comm=None, memory="1GB", **settings
    )
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    return mf


def gradient(atoms: str, frozen: int, **settings: Any) -> tuple[float, Values]:
    with (
        mean_field(atoms) as mf,
        CCSD(
            mf, frozen, comm=None, memory="1GB", threads=2, auxbasis="cc-pvdz-ri", **{**TIGHT, **settings}
        ) as cc,
    ):
        cc.kernel()
        found = cc.nuc_grad_method().kernel()
        assert abs(cc_support.of_whole_molecule(mf.mol, found)).max() < 1e-8
        return cc.e_tot, found


@pytest.mark.parametrize(
    ("frozen", "energy", "of_oxygen", "of_hydrogen"),
    [
        pytest.param(0, -76.1193489433, -0.010365410, -0.022837802, marks=pytest.mark.long),
        (1, -76.1184407738, -0.010442181, -0.022868258),
    ],
)
def test_water(frozen: int, energy: float, of_oxygen: float, of_hydrogen: float) -> None:
    e_tot, found = gradient(WATER, frozen)
    assert e_tot == pytest.approx(energy, abs=2e-9)
    assert found[0, 2] == pytest.approx(of_oxygen, abs=2e-9)
    assert found[1, 1] == pytest.approx(of_hydrogen, abs=2e-9)
    assert abs(found.sum(0)).max() < 1e-10


def test_the_correlation_and_the_relaxed_dipole_moment_of_water() -> None:
    with (
        mean_field(WATER) as mf,
        CCSD(mf, comm=None, memory="1GB", threads=2, auxbasis="cc-pvdz-ri", ladder="rebuild", **TIGHT) as cc,
    ):
        cc.kernel()
        density = cc.make_rdm1(relaxed=True, ao_repr=True)
        assert cc.e_corr == pytest.approx(-0.1353782425, abs=1e-9)
        assert np.sum(density * mf.mol.intor("int1e_r")[2]) == pytest.approx(0.9942286169, abs=2e-9)


@pytest.mark.parametrize(
    "settings",
    [pytest.param({}, marks=pytest.mark.long), {"storage": "disk", "ladder": "disk"}, {"ladder": "rebuild"}],
    ids=str,
)
def test_a_molecule_of_low_symmetry_with_frozen_cores(settings: dict[str, Any]) -> None:
    e_tot, found = gradient(HOF, 2, **settings)
    assert e_tot == pytest.approx(-174.9257942305, abs=1e-9)
    assert found[0] == pytest.approx([0.152332730, 0.028557197, 0.014584246], abs=1e-9)


def test_a_ladder_in_single_precision_changes_it_by_less_than_its_document_says() -> None:
    as_commands = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7}
    stored, exact = (gradient(HOF, 2, ladder=each, **as_commands)[1] for each in ("memory", "rebuild"))
    assert 0 < abs(stored - exact).max() < 1e-9


@pytest.mark.parametrize(
    ("options", "of_oxygen", "dipole"),
    [
        pytest.param([], -0.010442181, -2.52675, marks=pytest.mark.long),
        (["--triples"], -0.011548350, -2.51781),
    ],
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
    mol, _, orbitals, occupations, *_ = molden.load(str(density))
    written = (orbitals * occupations) @ orbitals.T
    assert found["dipole_debye"] == pytest.approx(hf.dip_moment(mol, written, verbose=0), abs=2e-4)
    quadrupole = hf.quad_moment(mol, written, unit="AU", verbose=0, origin=np.zeros(3))
    assert np.array(found["quadrupole_au"]) == pytest.approx(quadrupole, abs=2e-4)
    charges = hf.mulliken_pop(mol, written, verbose=0)[1]
    assert found["mulliken_charges"] == pytest.approx(charges, abs=2e-4)


def test_natural_orbitals_of_a_file_rebuild_the_density(tmp_path: Path) -> None:
    with cc_support.fitted_mean_field(cc_support.molecule(LOW), "RHF") as mf:
        with CCSD(mf, 1, comm=None, memory="1GB", threads=1, auxbasis="cc-pvdz-ri", **ONE) as cc:
            cc.kernel()
            found = cc.relaxed_densities().densities
        formats.write(tmp_path / "w.molden", mf.mol, found.both)
    mol, _, orbitals, occupations, *_ = molden.load(str(tmp_path / "w.molden"))
    overlap = mol.intor("int1e_ovlp")
    assert orbitals.T @ overlap @ orbitals == pytest.approx(np.eye(mol.nao), abs=1e-9)
    assert (occupations[:-1] >= occupations[1:]).all()
    assert 1.9 < occupations[4] < 2 and 0 < occupations[5] < 0.1
    # The format has five decimal digits of occupations.
    assert occupations.sum() == pytest.approx(10, abs=1e-5 * len(occupations))
    assert (orbitals * occupations) @ orbitals.T == pytest.approx(found.total, abs=2e-5)


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


def made(mf: Any, frozen: int = 1, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"auxbasis": "cc-pvdz-ri", "integrals": "ri", "ladder": "rebuild", **settings}
    return CCSD(mf, frozen, comm=None, memory="1GB", threads=1, **given)


def test_with_exact_integrals_of_the_scf_it_is_the_derivative_of_the_energy() -> None:
    mol = cc_support.molecule(LOW)
    atom, axis, h = 1, 2, 4e-3

    def energy_and(step: float) -> tuple[float, Values | None]:
        places = mol.atom_coords()
        places[atom, axis] += step
        mf = scf.RHF(mol.set_geom_(places, unit="Bohr", inplace=False))
        mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
        with made(mf.run(), **TIGHT) as cc:
            cc.kernel()
            return cc.e_tot, None if step else cc.nuc_grad_method().kernel()

    found = energy_and(0.0)[1]
    assert found is not None
    assert abs(cc_support.of_whole_molecule(mol, found)).max() < 1e-8
    near, far = (energy_and(n * h)[0] - energy_and(-n * h)[0] for n in (1, 2))
    assert found[atom, axis] == pytest.approx((8 * near - far) / (12 * h), abs=1e-7)


def test_a_response_that_does_not_converge_is_refused_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cc_support.fitted_mean_field(cc_support.molecule(LOW), "RHF") as mf:
        with made(mf, **ONE) as cc:
            cc.kernel()
            expected = cc.nuc_grad_method().kernel()
        with made(mf, checkpoint=tmp_path / "kept", **ONE) as cc:
            cc.kernel()
            with monkeypatch.context() as patched:
                patched.setattr(response, "_PRODUCTS", 2)
                with pytest.raises(NotConverged, match=r"Z-vector .* residual of .* after 2 products"):
                    cc.nuc_grad_method().kernel()
            assert cc.converged and cc.multipliers.converged
        with made(mf, checkpoint=tmp_path / "kept", **ONE) as cc:
            cc.kernel()
            assert cc.nuc_grad_method().kernel() == pytest.approx(expected, abs=1e-9)
            assert cc.iterations == cc.multipliers.iterations == []


SAME = [[0, [0.5, 1.0]], [0, [0.5 + 1e-9, 1.0]], [0, [2.0, 1.0]], [1, [1.0, 1.0]]]  # two nearly the same


@pytest.mark.parametrize(
    ("basis", "auxbasis", "why"),
    [
        ({"H": SAME}, "cc-pvdz-ri", "left out as linearly dependent"),
        ("sto-3g", {"H": SAME}, "depend on others"),
    ],
    ids=["basis", "auxiliary basis"],
)
def test_functions_that_depend_on_each_other_have_no_gradient(basis: Any, auxbasis: Any, why: str) -> None:
    mol = cc_support.molecule("H 0 0 0; H 0 0 0.8", basis=basis)
    with ri.RHF(mol, "cc-pvdz-jkfit", comm=None, memory="1GB", threads=1) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
        mf.kernel()
        with made(mf, 0, auxbasis=auxbasis, **ONE) as cc, pytest.raises(OutcoreError, match=why) as caught:
            cc.nuc_grad_method().kernel()
        assert caught.value.errno == errno.ENOTSUP


def test_pyscfs_optimiser_finds_the_least_energy() -> None:
    pytest.importorskip("geometric")
    mol = cc_support.molecule("H 0 0 0; F 0 0 1.0")
    with cc_support.fitted_mean_field(mol, "RHF") as mf, made(mf, conv_tol=1e-9, conv_tol_normt=1e-7) as cc:
        found = cc.nuc_grad_method().optimizer(solver="geomeTRIC").kernel()
    length, h = float(np.linalg.norm(np.subtract(*found.atom_coords()))), 0.02
    energies = []
    with cc_support.fitted_mean_field(mol, "RHF") as mf, made(mf, conv_tol=1e-9, conv_tol_normt=1e-7) as cc:
        energy_at = cc.as_scanner()
        for step in (-h, 0.0, h):
            places = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, length + step]])
            energies.append(energy_at(mol.set_geom_(places, unit="Bohr", inplace=False)))
    left, middle, right = energies
    least = h * (left - right) / (2 * (left + right - 2 * middle))  # of a parabola, from `length` on
    assert abs(least) < 1e-3


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
    run = told("--cc-tol", 0.9, "--amplitude-tol", 0.9)
    predicted = run["densities_forecast"]
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
    chunk = 128 << 10  # stored as a whole
    assert run["peak_disk_bytes"] <= max(each["disk_bytes"] for each in found.values()) + chunk
