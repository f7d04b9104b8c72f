"""The command `outcore ccsd`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cc_support import WATER

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli


@pytest.fixture
def water(tmp_path: Path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text("3\nwater\n" + WATER.replace("; ", "\n") + "\n")
    return path


def run(path: Path, *arguments: Any) -> int:
    given = ["--basis", "sto-3g", "--integrals", "conventional", "--threads", "1", "--memory", "1GB"]
    return cli.run(["ccsd", str(path), *given, "--scratch", str(path.parent), *map(str, arguments)])


def test_an_scf_that_has_not_converged_is_refused_but_by_force(water: Path, capsys: Any) -> None:
    with pytest.raises(OutcoreError, match="after 2 cycles"):
        run(water, "--max-cycle", "2")
    capsys.readouterr()
    assert run(water, "--max-cycle", "2", "--force", "--cc-tol", "1e-3", "--amplitude-tol", "1e-2") == 0
    output = capsys.readouterr().out
    assert "not converged in 2 cycles" in output
    assert "of an SCF that has not converged" in output
    assert "CCSD energy" in output


def test_amplitudes_of_one_run_begin_another(water: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("h5py")
    assert run(water, "--amplitudes", tmp_path / "t.h5") == 0
    first = capsys.readouterr().out
    assert f"amplitudes in {tmp_path / 't.h5'}" in " ".join(first.split())
    assert run(water, "--from-amplitudes", tmp_path / "t.h5") == 0
    second = capsys.readouterr().out
    assert len(second.splitlines()) < len(first.splitlines()) - 4  # fewer iterations
    energies = [next(x for x in each.splitlines() if x.startswith("CCSD energy")) for each in (first, second)]
    assert abs(float(energies[0].split()[2]) - float(energies[1].split()[2])) < 1e-7


def test_a_file_of_amplitudes_that_cannot_be_written_is_refused_before_anything_is_done(water: Path) -> None:
    with pytest.raises(OutcoreError, match="write amplitudes"):
        run(water, "--amplitudes", water.parent / "none" / "t.h5")
