"""`outcore ccsd` takes no more memory than it was given, as little as that may be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")

COMMAND = [sys.executable, "-m", "outcore", "ccsd"]
MOLECULES = {
    "water": "3\n\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n",
    "amino": "3\n\nN 0 0 0\nH 0 0.8 0.6\nH 0 -0.8 0.6\n",
}


@pytest.mark.memory
@pytest.mark.parametrize(
    ("name", "basis", "more"),
    [
        ("amino", "aug-cc-pvdz", []),
        ("water", "aug-cc-pvtz", []),
        ("water", "cc-pvtz", ["--gradient", "--iterations", "99"]),
    ],
    ids=["open shell", "closed shell", "gradient"],
)
def test_the_least_memory_is_enough_and_no_more_is_taken(
    name: str, basis: str, more: list[str], tmp_path: Path
) -> None:
    (tmp_path / "molecule.xyz").write_text(MOLECULES[name])
    results = tmp_path / "results.json"
    arguments = [tmp_path / "molecule.xyz", "--basis", basis, "--frozen", "auto", "--triples"]
    arguments += ["--scratch", tmp_path, "--json", results, "--threads", "2", *more]
    loose = ["--cc-tol", "0.9", "--amplitude-tol", "0.9"]

    def run(megabytes: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, arguments), *loose, "--memory", f"{megabytes}MB"],
            capture_output=True,
            text=True,
            check=False,
        )

    told = re.search(r"--memory (\d+)MB is the least", run(1).stderr)
    assert told
    megabytes = int(told[1])
    enough = run(megabytes)
    assert enough.returncode == 0, enough.stderr
    found = json.loads(results.read_text())
    assert found["memory_budget_bytes"] == megabytes * 10**6
    assert found["peak_memory_bytes"] <= found["memory_budget_bytes"]
