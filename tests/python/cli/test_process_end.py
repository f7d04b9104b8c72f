"""A process of a command ends without objects of the core that nobody has released."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"
SETS = ("--auxbasis", "def2-svp-ri", "--jkbasis", "def2-svp-jkfit")


@pytest.mark.parametrize(
    "arguments",
    [
        ("scf", "--gradient"),
        pytest.param(("scf", "--storage", "disk", "--uhf"), marks=pytest.mark.long),
        pytest.param(("ri-scf", "--auxbasis", "def2-svp-jkfit", "--gradient"), marks=pytest.mark.long),
        ("rimp2", *SETS, "--gradient"),
        ("ccsd", *SETS, "--triples", "--gradient"),
        pytest.param(("ccsd", "--integrals", "conventional", "--uhf"), marks=pytest.mark.long),
        ("eom", *SETS, "--states", "1", "--properties"),
        ("fci",),
        ("casscf", "--cas", "4,4", "--nevpt2"),
        ("mrci", "--active", "6"),
        pytest.param(("optimize", "--method", "scf"), marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_a_command_leaves_nothing_to_be_reported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "water.xyz").write_text(WATER)
    name, *options = arguments
    ended = subprocess.run(
        [sys.executable, "-m", "outcore", name, "water.xyz", "--basis", "sto-3g", "--scratch", ".", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
