"""Memory of whole commands: processes that they start use the memory and the scratch directory of the
command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outcore.arrays.disk_array import DiskArray
from outcore.base.errors import OutcoreError
from outcore.cli import main as cli
from outcore.job.resources import Allowance
from outcore.job.world import World

pytest.importorskip("pyscf")

from outcore.chem.least import Least
from outcore.chem.ri.plan import max_transfer_bytes

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
AUXILIARY = "def2-svp-jkfit"
COMMANDS = {
    "scf": ["scf"],
    "ri-scf": ["ri-scf", "--auxbasis", AUXILIARY],
    "rimp2": ["rimp2", "--auxbasis", AUXILIARY, "--jkbasis", AUXILIARY],
    "ccsd": ["ccsd", "--integrals", "conventional"],
    "ccsd of fitted integrals": ["ccsd", "--auxbasis", AUXILIARY, "--jkbasis", AUXILIARY],
    "fci": ["fci", "--frozen", "3"],
    "casscf": ["casscf", "--cas", "2,2", "--casci", "--nevpt2"],
    "mrci": ["mrci", "--cas", "2,2"],
}
ONE_ITERATION = ["--cc-tol", "0.9", "--amplitude-tol", "0.9"]  # which takes as much memory as many
LOOSE = {"ccsd": ONE_ITERATION, "eom": [*ONE_ITERATION, "--state-tol", "0.1"]}


@pytest.fixture
def water(tmp_path: Path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_all_that_a_command_starts_has_its_memory_and_scratch(name, water, tmp_path, monkeypatch):
    made: list[tuple[int, str]] = []
    make = World.__init__

    def recorded(world: World, *given: Any, **more: Any) -> None:
        make(world, *given, **more)
        made.append((world.budget.limit_bytes, str(world.scratch)))

    monkeypatch.setattr(World, "__init__", recorded)
    command, *more = COMMANDS[name]
    place = tmp_path / "scratch"
    place.mkdir()
    common = ["--basis", "sto-3g", "--threads", "1", "--memory", "2500MB", "--scratch", str(place)]
    assert cli.run([command, str(water), *more, *common]) == 0
    assert set(made) == {(2_500_000_000, str(place))}


@pytest.mark.memory
@pytest.mark.parametrize(
    "arguments",
    [
        ("scf",),
        ("ri-scf",),
        ("rimp2", "--storage", "disk"),
        pytest.param(("ccsd",), marks=pytest.mark.long),
        pytest.param(("ccsd", "--triples", "--stability"), marks=pytest.mark.long),
        ("eom", "--properties", "--states", "2", "--storage", "disk"),
        ("ccsd", "--integrals", "conventional", "--storage", "disk", "--charge", "1"),
        ("ccsd", "--triples", "--ranks", "2"),
        pytest.param(("fci", "--frozen", "2", "--storage", "auto"), marks=pytest.mark.long),
        ("fci", "--frozen", "1", "--states", "B1:2:2,A1:0:2"),
        pytest.param(("casscf", "--cas", "2,2", "--casci"), marks=pytest.mark.long),
        pytest.param(("casscf", "--cas", "4,4", "--casci", "--nevpt2"), marks=pytest.mark.long),
        ("casscf", "--cas", "6,6", "--states", "A1:0:3,B1:2:2", "--casci", "--nevpt2", "--quasi-degenerate"),
        ("casscf", "--cas", "4,4", "--casci", "--nevpt2", "--integrals", "ri", "--jkbasis", AUXILIARY),
        ("mrci", "--cas", "2,2"),
        ("optimize", "--method", "scf"),
    ],
    ids=" ".join,
)
def test_the_least_memory_is_enough_and_one_megabyte_less_is_refused_before_the_scf(
    arguments, water, tmp_path
):
    command, *more = arguments
    if command == "optimize":
        pytest.importorskip("geometric")
    common = [water, "--basis", "6-31g", "--threads", "1", "--scratch", tmp_path, *more]
    common += LOOSE.get(command, [])
    if command in ("ri-scf", "rimp2", "ccsd", "eom") and "conventional" not in more:
        common += ["--auxbasis", AUXILIARY]
        common += [] if command == "ri-scf" else ["--jkbasis", AUXILIARY]

    def run(megabytes: int, *options: Any) -> subprocess.CompletedProcess[str]:
        given = [*common, *options, "--memory", f"{megabytes}MB"]
        return subprocess.run(
            [sys.executable, "-m", "outcore", command, *map(str, given)],
            capture_output=True,
            text=True,
            check=False,
        )

    told = re.search(r"--memory (\d+)MB is the least that is enough", run(1).stderr)
    assert told
    least, results = int(told[1]), tmp_path / "results.json"
    enough = run(least, "--json", results)
    assert enough.returncode == 0, enough.stderr
    found = json.loads(results.read_text())
    assert found["least_memory_bytes"] == found["memory_budget_bytes"] == least * 10**6
    assert found["peak_memory_bytes"] <= least * 10**6
    less = run(least - 1)
    assert less.returncode != 0 and f"--memory {least}MB is the least" in less.stderr
    assert "cycle" not in less.stdout


@pytest.mark.memory
def test_products_of_occupied_orbitals_have_their_work_space(tmp_path):
    """For a molecule with nearly all orbitals occupied, where no other work space is as large."""
    path = tmp_path / "f2.xyz"
    path.write_text("2\nfluorine\nF 0 0 0\nF 0 0 1.41\n")
    common = [str(path), "--basis", "sto-3g", "--threads", "1", "--scratch", str(tmp_path)]
    common += ["--auxbasis", AUXILIARY, "--jkbasis", AUXILIARY, "--storage", "disk", "--memory"]
    command = [sys.executable, "-m", "outcore", "ccsd", *ONE_ITERATION, *common]
    refused = subprocess.run([*command, "1MB"], capture_output=True, text=True, check=False)
    told = re.search(r"--memory (\d+MB) is the least that is enough", refused.stderr)
    assert told
    enough = subprocess.run([*command, told[1]], capture_output=True, text=True, check=False)
    assert enough.returncode == 0, enough.stderr


def test_the_least_memory_is_of_the_largest_stage_and_of_all_processes():
    least = Least(2, 100_000_000, {"Hartree-Fock": 5_000_000, "coupled cluster": 20_300_001})
    assert least.bytes == 241_000_000
    least.check(Allowance(120_500_000, "--memory"))
    with pytest.raises(
        OutcoreError, match=r"coupled cluster: .*--memory 241MB is .* for 2 processes together"
    ):
        least.check(Allowance(120_000_000, "--memory"))


def test_no_budget_has_a_larger_transfer_than_was_predicted():
    for megabytes in (1, 20, 100, 250, 500, 719, 721, 3000):
        with World("self", memory=megabytes * 10**6) as world:
            transfer = DiskArray.transfer_bytes(world)
            assert transfer <= max_transfer_bytes(megabytes * 10**6 - transfer)


@pytest.mark.parametrize(
    "command",
    [
        ["ccsd", "--integrals", "cholesky"],
        ["ccsd", "--integrals", "conventional"],
        ["fci", "--frozen", "1", "--active", "20"],
        ["mrci", "--cas", "2,2"],
        ["mrci", "--cas", "2,2", "--integrals", "ri"],
        ["casscf", "--cas", "2,2", "--nevpt2"],
    ],
    ids=" ".join,
)
def test_memory_that_is_too_little_whatever_comes_is_refused_before_anything_is_computed(
    command, water, monkeypatch
):
    for name in ("outcore.chem.ri.cholesky.search", "outcore.chem.run.MoleculeRun.first_orbitals"):
        monkeypatch.setattr(name, lambda *_: pytest.fail("something is computed"))
    name, *more = command
    with pytest.raises(OutcoreError, match=r"more than \d+MB are needed; --estimate computes how much"):
        cli.run([name, str(water), *more, "--basis", "cc-pvqz", "--memory", "1MB", "--threads", "1"])
