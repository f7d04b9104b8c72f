"""The command `outcore optimize`: results, checkpoints and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")
pytest.importorskip("geometric")

from outcore.chem.mp2 import MP2

WATER = "3\nwater\nO 0 0 0.1\nH 0 0.75 -0.47\nH 0.1 -0.75 -0.5\n"


def optimised(folder: Path, *arguments: str) -> dict:
    path, results = folder / "water.xyz", folder / "results.json"
    path.write_text(WATER)
    given = ["--scratch", str(folder), "--basis", "sto-3g", "--json", str(results), *arguments]
    assert cli.run(["optimize", str(path), *given]) == 0
    return json.loads(results.read_text())


def length_and_angle(result: dict) -> tuple[float, float]:
    o, *hydrogens = (np.array(each[1:]) for each in result["geometry_angstrom"])
    first, second = (each - o for each in hydrogens)
    length = np.linalg.norm(first)
    return float(length), float(np.degrees(np.arccos(first @ second / length / np.linalg.norm(second))))


def test_a_geometry_of_hartree_fock_is_that_of_the_literature(tmp_path):
    found = optimised(tmp_path, "--method", "scf", "--convergence", "gau_tight")
    assert length_and_angle(found) == pytest.approx((0.9894, 100.03), abs=5e-3)
    assert abs(np.array(found["gradient_hartree_per_bohr"])).max() < 1.5e-5
    assert found["energy_hartree"] == pytest.approx(-74.965901, abs=2e-6)


def test_a_run_that_was_ended_goes_on_from_its_steps(tmp_path, capsys, monkeypatch):
    kept = ["--method", "rimp2", "--frozen", "1", "--checkpoint", str(tmp_path / "kept")]
    with pytest.raises(OutcoreError, match=r"after \d+ steps the largest element"):
        optimised(tmp_path, *kept, "--max-steps", "2")
    computed, kernel = [], MP2.kernel

    def counted(self):
        computed.append(self)
        return kernel(self)

    monkeypatch.setattr(MP2, "kernel", counted)
    capsys.readouterr()
    trajectory = tmp_path / "steps.xyz"
    found = optimised(tmp_path, *kept, "--trajectory", str(trajectory))
    said = capsys.readouterr().out
    assert 0 < said.count("   found") == found["steps"] - len(computed)
    frames = trajectory.read_text().count("Properties=species:S:1:pos:R:3:forces:R:3")
    assert frames == found["steps"]
    monkeypatch.undo()
    whole = optimised(tmp_path, *kept[:-2])
    assert found["energy_hartree"] == pytest.approx(whole["energy_hartree"], abs=1e-9)


def test_steps_of_another_problem_are_refused(tmp_path):
    kept = ["--checkpoint", str(tmp_path / "kept")]
    optimised(tmp_path, *kept, "--convergence", "gau_loose")
    with pytest.raises(OutcoreError, match="charge"):
        optimised(tmp_path, *kept, "--charge", "2")


def test_an_estimate_has_the_memory_of_the_gradient(tmp_path):
    found = optimised(tmp_path, "--method", "rimp2", "--estimate")
    assert found["least_memory_bytes"] > 0 and "energy_hartree" not in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "casscf"], "it may be scf, ri-scf, rimp2, ccsd"),
        (["--convergence", "tight"], "GAU_TIGHT"),
        (["--frozen", "1"], "correlates nothing"),
        (["--method", "scf", "--jkbasis", "cc-pvdz-jkfit"], "integrals are exact"),
        (["--stability"], "step before"),
    ],
)
def test_what_has_no_effect_is_refused(tmp_path, arguments, said):
    with pytest.raises(OutcoreError, match=said):
        optimised(tmp_path, *arguments)


def test_a_geometry_of_coupled_cluster_is_where_its_gradient_vanishes(tmp_path):
    found = optimised(tmp_path, "--method", "ccsd(t)", "--frozen", "1")
    assert abs(np.array(found["gradient_hartree_per_bohr"])).max() < 4.5e-4
    length, angle = length_and_angle(found)
    assert length == pytest.approx(1.028, abs=2e-3)
    assert angle == pytest.approx(97.0, abs=0.5)


@pytest.mark.long
def test_a_geometry_of_an_open_shell_has_the_least_energy_near_by(tmp_path):
    path, results = tmp_path / "radical.xyz", tmp_path / "results.json"
    path.write_text("2\nhydroxyl\nO 0 0 0\nH 0 0 1.0\n")
    arguments = ["--basis", "sto-3g", "--spin", "1", "--frozen", "1", "--scratch", str(tmp_path)]
    arguments += ["--json", str(results)]
    assert cli.run(["optimize", str(path), "--method", "ccsd(t)", *arguments]) == 0
    found = json.loads(results.read_text())
    (*_, low), (*_, high) = found["geometry_angstrom"]

    def energy(stretched: float) -> float:
        path.write_text(f"2\nhydroxyl\nO 0 0 0\nH 0 0 {abs(high - low) + stretched:.12f}\n")
        assert cli.run(["ccsd", str(path), "--triples", "--ladder", "rebuild", *arguments]) == 0
        return json.loads(results.read_text())["ccsd_t_energy_hartree"]

    shorter, longer = energy(-5e-3), energy(5e-3)
    assert min(shorter, longer) > found["energy_hartree"]
    assert abs(longer - shorter) / 1e-2 < 1e-3  # Hartree/Angstrom
