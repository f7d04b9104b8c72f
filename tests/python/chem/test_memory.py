"""Memory of whole commands: what they start has the memory and the scratch directory of the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outcore.cli import main as cli
from outcore.job.world import World

pytest.importorskip("pyscf")

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
AUXILIARY = "def2-svp-jkfit"
COMMANDS = {
    "scf": ["scf"],
    "ri-scf": ["ri-scf", "--auxbasis", AUXILIARY],
    "rimp2": ["rimp2", "--auxbasis", AUXILIARY, "--jkbasis", AUXILIARY],
    "ccsd": ["ccsd", "--integrals", "conventional"],
    "ccsd of fitted integrals": ["ccsd", "--auxbasis", AUXILIARY, "--jkbasis", AUXILIARY],
    "fci": ["fci", "--frozen", "3"],
    "mrci": ["mrci", "--cas", "2,2"],
}


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
    common = ["--basis", "sto-3g", "--threads", "1", "--memory", "600MB", "--scratch", str(place)]
    assert cli.run([command, str(water), *more, *common]) == 0
    assert set(made) == {(600_000_000, str(place))}
