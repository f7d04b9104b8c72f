"""The command `outcore optimize`: results, checkpoints and refusals."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")
pytest.importorskip("geometric")

from pyscf import gto

from outcore.chem import restart
from outcore.chem.cc import CCSD
from outcore.chem.gradients.geometries import GeometryCheckpoint
from outcore.chem.mp2 import MP2
from outcore.chem.optimize import steps

CHUNK_BYTES = 128 << 10  # a chunk is stored as a whole
WATER = "3\nwater\nO 0 0 0.1\nH 0 0.75 -0.47\nH 0.1 -0.75 -0.5\n"


def optimised(folder: Path, *arguments: str, basis: str = "sto-3g", alone: bool = False) -> dict:
    """alone: in a process of its own, as the peak of disk space is that of a process."""
    path, results = folder / "water.xyz", folder / "results.json"
    path.write_text(WATER)
    given = ["optimize", str(path), "--scratch", str(folder), "--basis", basis, "--json", str(results)]
    if alone:
        subprocess.run([sys.executable, "-m", "outcore", *given, *arguments], capture_output=True, check=True)
    else:
        assert cli.run([*given, *arguments]) == 0
    return json.loads(results.read_text())


HYDROGEN_FLUORIDE = "2\nhydrogen fluoride\nF 0 0 0\nH 0 0 0.95\n"
KILLED = """
import os, signal, sys
from outcore.chem.cc import CCSD
from outcore.cli import main as cli
from outcore.keep import clock

stage, wanted = sys.argv[1], int(sys.argv[2])
clock.INTERVAL_S = 0.0
progress, seen = CCSD.progress, []

def told(self, part):
    print("PART", part, flush=True)
    seen.append(part)
    if seen.count(stage) == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return progress(self, part)

CCSD.progress = told
sys.exit(cli.run(sys.argv[3:]))
"""


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


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 2])
def test_the_step_under_way_goes_on_after_kills(tmp_path, monkeypatch, step):
    path, results, kept = tmp_path / "hf.xyz", tmp_path / "results.json", tmp_path / "kept"
    path.write_text(HYDROGEN_FLUORIDE)
    command = ["optimize", str(path), "--basis", "sto-3g", "--method", "ccsd", "--threads", "1"]
    command += ["--scratch", str(tmp_path), "--json", str(results), "--convergence", "gau_loose"]
    assert cli.run(command) == 0
    whole = json.loads(results.read_text())
    assert whole["steps"] >= step
    command += ["--checkpoint", str(kept)]

    def parts_until_killed_in(stage: str, number: int) -> list[str]:
        code = [sys.executable, "-c", KILLED, stage, str(number), *command]
        ended = subprocess.run(code, capture_output=True, text=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert len(list(kept.glob("geometry.*"))) == 1
        return [line[5:] for line in ended.stdout.splitlines() if line.startswith("PART ")]

    parts_until_killed_in("iteration 4", step)
    told = parts_until_killed_in("Lambda iteration 3", 1)
    assert next(each for each in told if each.startswith("iteration")) == "iteration 4"
    told, progress = [], CCSD.progress

    def tell(self, part):
        told.append(part)
        return progress(self, part)

    monkeypatch.setattr(CCSD, "progress", tell)
    assert cli.run(command) == 0
    found = json.loads(results.read_text())
    first = next(number for number, each in enumerate(told) if "iteration" in each)
    assert told[first] == "Lambda iteration 3"
    assert sum(each == "Lambda iteration 1" for each in told) == whole["steps"] - step
    assert found["steps"] == whole["steps"]
    assert found["energy_hartree"] == pytest.approx(whole["energy_hartree"], abs=1e-9)
    for one, other in zip(found["geometry_angstrom"], whole["geometry_angstrom"], strict=True):
        assert one[1:] == pytest.approx(other[1:], abs=1e-6)
    assert not list(kept.glob("geometry.*"))


@pytest.mark.parametrize("method", [pytest.param("scf", marks=pytest.mark.long), "rimp2"])
def test_orbitals_of_the_step_under_way_are_taken_as_they_are(tmp_path, method):
    kept, folder = ["--method", method, "--checkpoint", str(tmp_path / "kept")], tmp_path / "kept"
    restored, restore, add = [], restart.FoundOrbitals.restore, steps.GeometrySteps.add

    def seen(self, mf):
        restored.append(self.meta["energy_hartree"])
        restore(self, mf)

    def ends(self, places, energy, gradient):
        if self._energies:
            raise OutcoreError(errno.EIO, "keep the second step")
        add(self, places, energy, gradient)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps.GeometrySteps, "add", ends)
        with pytest.raises(OutcoreError, match="keep the second step"):
            optimised(tmp_path, *kept)
    (place,) = folder.glob("geometry.*")
    assert (place / "orbitals").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restart.FoundOrbitals, "restore", seen)
        found = optimised(tmp_path, *kept, "--convergence", "gau_loose")
    assert found["converged"] and len(restored) == 1
    assert not list(folder.glob("geometry.*"))


def test_an_open_shell_may_have_restricted_orbitals(tmp_path):
    import pyscf

    path, results = tmp_path / "radical.xyz", tmp_path / "results.json"
    path.write_text("2\nhydroxyl\nO 0 0 0\nH 0 0 1.0\n")
    command = ["optimize", str(path), "--basis", "sto-3g", "--spin", "1", "--method", "scf", "--rohf"]
    assert cli.run([*command, "--scratch", str(tmp_path), "--json", str(results)]) == 0
    found = json.loads(results.read_text())
    mol = pyscf.M(atom=found["geometry_angstrom"], basis="sto-3g", spin=1, verbose=0)
    mf = mol.ROHF().run(conv_tol=1e-12)
    assert found["energy_hartree"] == pytest.approx(mf.e_tot, abs=1e-8)
    assert mol.UHF().run().e_tot < mf.e_tot - 1e-4
    expected = mf.nuc_grad_method().kernel()
    assert np.array(found["gradient_hartree_per_bohr"]) == pytest.approx(expected, abs=1e-6)


def test_steps_of_another_problem_are_refused(tmp_path):
    kept = ["--checkpoint", str(tmp_path / "kept")]
    optimised(tmp_path, *kept, "--convergence", "gau_loose")
    with pytest.raises(OutcoreError, match="charge"):
        optimised(tmp_path, *kept, "--charge", "2")


@pytest.mark.parametrize("method", ["scf", "ri-scf", "rimp2", "ccsd", "ccsd(t)"])
def test_an_estimate_has_memory_time_and_disk_space_of_a_step(tmp_path, method):
    found = optimised(tmp_path, "--method", method, "--storage", "disk", "--estimate")
    assert found["least_memory_bytes"] > 0 and "energy_hartree" not in found
    parts = found["step_estimate"]
    assert {"SCF", "derivatives of integrals"} <= set(parts)
    assert ("derivatives of (T)" in parts) == (method == "ccsd(t)")
    assert all(each["seconds"] > 0 for each in parts.values())
    assert found["step_seconds"] == pytest.approx(sum(each["seconds"] for each in parts.values()))
    assert found["disk_bytes"] == max(each["disk_bytes"] for each in parts.values()) > 0


def test_an_estimate_bounds_the_disk_space_of_steps(tmp_path):
    given = ["--method", "ri-scf", "--storage", "disk"]
    most = optimised(tmp_path, *given, "--estimate", basis="6-31g")["disk_bytes"]
    few = ["--convergence", "gau_loose"]
    used = optimised(tmp_path, *given, *few, basis="6-31g", alone=True)["peak_disk_bytes"]
    assert most / 3 < used < 1.2 * most + CHUNK_BYTES


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "casscf"], "it may be scf, ri-scf, rimp2, ccsd"),
        (["--convergence", "tight"], "GAU_TIGHT"),
        (["--frozen", "1"], "correlates nothing"),
        (["--method", "scf", "--jkbasis", "cc-pvdz-jkfit"], "integrals are exact"),
        (["--stability"], "step before"),
        (["--method", "ccsd", "--rohf"], "gradients are of RHF and UHF"),
        (["--uhf", "--rohf"], "exclude each other"),
    ],
)
def test_what_has_no_effect_is_refused(tmp_path, arguments, said):
    with pytest.raises(OutcoreError, match=said):
        optimised(tmp_path, *arguments)


@pytest.mark.parametrize(
    ("atoms", "said"),
    [
        ("1\n\nHe 0 0 0\n", "one atom alone"),
        ("3\n\nH 0 0 0\nghost-O 0 0 2\nF 0 0 0.9\n", r"ghosts .*\(atom 2\)"),
    ],
)
def test_atoms_without_a_geometry_are_refused_by_name(tmp_path, atoms, said):
    path = tmp_path / "atoms.xyz"
    path.write_text(atoms)
    with pytest.raises(OutcoreError, match=said):
        cli.run(["optimize", str(path), "--basis", "sto-3g", "--scratch", str(tmp_path)])


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


def test_the_checkpoint_of_a_geometry_leaves_other_files_alone(tmp_path):
    mol = gto.M(atom="H 0 0 0; H 0 0 0.8", verbose=0)
    (tmp_path / "geometry.old").mkdir()
    (tmp_path / "geometry.xyz").write_text("2")
    with outcore.World("self") as world:
        places = GeometryCheckpoint(world, tmp_path)
        first = places.at(mol)
        second = places.at(mol.set_geom_("H 0 0 0; H 0 0 0.9", inplace=False))
        assert not first.exists() and second.is_dir()
        places.remove()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["geometry.old", "geometry.xyz"]


def test_steps_of_another_problem_are_refused_before_the_first_step(tmp_path):
    mol = gto.M(atom="H 0 0 0; H 0 0 0.8", verbose=0)
    steps.GeometrySteps(mol, {"method": "scf"}, tmp_path, None)
    assert steps.GeometrySteps(mol, {"method": "scf"}, tmp_path, None).kept == 0
    with pytest.raises(OutcoreError, match="method"):
        steps.GeometrySteps(mol, {"method": "rimp2"}, tmp_path, None)


def test_kept_steps_of_another_start_or_auxiliary_basis_are_refused(tmp_path):
    kept = ["--method", "ri-scf", "--checkpoint", str(tmp_path / "kept"), "--convergence", "gau_loose"]
    optimised(tmp_path, *kept)
    for more, name in (
        (["--guess", "hcore"], "start of the SCF"),
        (["--jkbasis", "def2-universal-jkfit"], "auxiliary"),
    ):
        with pytest.raises(OutcoreError, match=name):
            optimised(tmp_path, *kept, *more)
