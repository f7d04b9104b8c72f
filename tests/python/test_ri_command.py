"""The commands `outcore ri-scf` and `outcore rimp2`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from outcore import cli
from outcore.errors import OutcoreError

pytest.importorskip("pyscf")

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"


@pytest.fixture
def water(tmp_path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


def run(command: str, path: Path, *arguments: str) -> int:
    return cli.run([command, str(path), "--scratch", str(path.parent), *arguments])


def refused(command: str, path: Path, *arguments: str) -> str:
    with pytest.raises((OutcoreError, cli.UsageError)) as caught:
        run(command, path, *arguments)
    return str(caught.value)


def fitted(path: Path, basis: str, **given):
    from pyscf import gto, scf

    mf = scf.HF(gto.M(atom=str(path), basis=basis, verbose=0, **given)).density_fit()
    mf.conv_tol = 1e-11
    mf.kernel()
    return mf


def number(output: str, start: str) -> float:
    line = next(line for line in output.splitlines() if line.strip().startswith(start))
    return float(line.strip().removeprefix(start).split()[0])


def test_scf_prints_its_energy(water, capsys):
    assert run("ri-scf", water, "--basis", "cc-pvdz") == 0
    output = capsys.readouterr().out
    assert number(output, "RI-RHF energy") == pytest.approx(fitted(water, "cc-pvdz").e_tot, abs=1e-8)
    assert "cc-pvdz-jkfit" in output and "cycle" in output


def test_mp2_prints_its_energies(water, capsys):
    from pyscf.mp import dfmp2_native

    assert run("rimp2", water, "--basis", "cc-pvdz", "--frozen", "auto", "--pairs") == 0
    output = capsys.readouterr().out
    expected = dfmp2_native.DFRMP2(fitted(water, "cc-pvdz"), frozen=1)
    expected.kernel()
    assert number(output, "correlation energy") == pytest.approx(expected.e_corr, abs=1e-7)
    assert number(output, "opposite spin") + number(output, "same spin") == pytest.approx(
        expected.e_corr, abs=1e-7
    )
    pairs = [
        line.split() for line in output.splitlines() if len(line.split()) == 3 and line.split()[0].isdigit()
    ]
    assert sum(float(energy) for _, _, energy in pairs) == pytest.approx(expected.e_corr, abs=1e-7)
    assert {first for first, _, _ in pairs} == {"2", "3", "4", "5"}


def test_json_has_the_results(water, tmp_path):
    results = tmp_path / "results.json"
    run("rimp2", water, "--basis", "cc-pvdz", "--charge", "1", "--json", str(results))
    data = json.loads(results.read_text())
    assert data["correlation_hartree"] == pytest.approx(
        data["opposite_spin_hartree"] + data["same_spin_hartree"]
    )
    assert data["total_hartree"] == pytest.approx(data["energy_hartree"] + data["correlation_hartree"])
    assert data["peak_memory_bytes"] > 0 and data["functions"] == 24


def test_the_auxiliary_basis_can_be_chosen(water, capsys):
    run("rimp2", water, "--basis", "cc-pvdz", "--auxbasis", "cc-pvtz-ri", "--jkbasis", "cc-pvtz-jkfit")
    output = capsys.readouterr().out
    assert "cc-pvtz-ri" in output and "cc-pvtz-jkfit" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--auxbasis", "cc-pvdz-rj"), "unknown auxiliary basis 'cc-pvdz-rj'; similar"),
        (("--frozen", "9"), "9 frozen, but only 5 are occupied"),
        (("--frozen", "core"), "neither a number"),
        (("--scs", "1"), "two numbers are needed"),
        (("--memory", "10MB"), "need at least"),
        (("--storage", "tape"), "storage 'tape'"),
        (("--max-cycle", "2"), "after 2 cycles"),
    ],
)
def test_bad_input_is_explained(water, arguments, message):
    assert message in refused("rimp2", water, "--basis", "cc-pvdz", *arguments)


@pytest.mark.launcher
def test_energies_do_not_depend_on_processes_or_placement(water, tmp_path):
    pytest.importorskip("mpi4py")
    energies = []
    for ranks, storage in (("1", "auto"), ("1", "disk"), ("2", "auto"), ("2", "disk")):
        results = tmp_path / f"{ranks}.{storage}.json"
        command = [
            sys.executable,
            "-m",
            "outcore",
            "rimp2",
            str(water),
            "--basis",
            "cc-pvdz",
            "--ranks",
            ranks,
        ]
        command += [
            "--storage",
            storage,
            "--conv-tol",
            "1e-12",
            "--scratch",
            str(tmp_path),
            "--json",
            str(results),
        ]
        answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200)
        assert answer.returncode == 0, answer.stderr
        data = json.loads(results.read_text())
        energies.append([data["energy_hartree"], data["correlation_hartree"]])
    for other in energies[1:]:
        assert other == pytest.approx(energies[0], abs=1e-10)
