"""Coupled cluster takes no more memory than its limit, however small that is: commands and objects."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives
from outcore.chem.cc.equations.open_triple_derivatives import OpenTripleDerivatives
from outcore.chem.cc.equations.triple_arrays import Derivatives
from outcore.chem.cc.equations.triple_derivatives import TripleDerivatives
from outcore.chem.cc.keep import kept
from outcore.keep import clock
from outcore.tensor.arrays.array import Array

pytest.importorskip("pyscf")

COMMAND = [sys.executable, "-m", "outcore", "ccsd"]
MOLECULES = {
    "water": "3\n\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n",
    "amino": "3\n\nN 0 0 0\nH 0 0.8 0.6\nH 0 -0.8 0.6\n",
}


# Stored integrals of ladders have single precision, and which are stored depends on the memory.
GRADIENT = ["--gradient", "--iterations", "99", "--ladder", "rebuild"]


@pytest.mark.memory
@pytest.mark.parametrize(
    ("name", "basis", "more"),
    [
        ("amino", "6-31g", []),
        ("water", "cc-pvdz", GRADIENT),
        ("amino", "6-31g", GRADIENT),
        pytest.param(
            "water", "6-31g", [*GRADIENT, "--ranks", "2"], marks=[pytest.mark.launcher, pytest.mark.long]
        ),
        pytest.param("amino", "cc-pvdz", [], marks=pytest.mark.long),
        pytest.param("amino", "aug-cc-pvdz", [], marks=pytest.mark.long),
        pytest.param("water", "aug-cc-pvtz", [], marks=pytest.mark.long),
        pytest.param("water", "cc-pvtz", GRADIENT, marks=pytest.mark.long),
    ],
    ids=[
        "open shell",
        "gradient",
        "gradient of an open shell",
        "gradient on two processes",
        "large open shell",
        "larger open shell",
        "larger closed shell",
        "larger gradient",
    ],
)
def test_the_least_memory_is_enough_and_no_more_is_taken(
    name: str, basis: str, more: list[str], tmp_path: Path
) -> None:
    (tmp_path / "molecule.xyz").write_text(MOLECULES[name])
    results = tmp_path / "results.json"
    arguments = [tmp_path / "molecule.xyz", "--basis", basis, "--frozen", "auto", "--triples"]
    threads = 1 if "--ranks" in more else 2
    arguments += ["--scratch", tmp_path, "--json", results, "--threads", threads, *more]
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
    if "--gradient" in more:
        plenty = run(1000)
        assert plenty.returncode == 0, plenty.stderr
        gradient = np.array(json.loads(results.read_text())["gradient_hartree_per_bohr"])
        assert abs(gradient - found["gradient_hartree_per_bohr"]).max() < 1e-9


@pytest.mark.memory
@pytest.mark.long
def test_states_take_no_more_than_the_least_memory(tmp_path: Path) -> None:
    """Tiles are so large that the work space of BLAS, transfers and plans counts."""
    atoms = [
        f"{element} {radius * x:.4f} {radius * y:.4f} 0"
        for element, radius in (("C", 1.395), ("H", 2.482))
        for x, y in [(1, 0), (0.5, 0.866025), (-0.5, 0.866025), (-1, 0), (-0.5, -0.866025), (0.5, -0.866025)]
    ]
    (tmp_path / "benzene.xyz").write_text("\n".join(["12", "", *atoms, ""]))
    results = tmp_path / "results.json"
    command = [
        sys.executable,
        "-m",
        "outcore",
        "eom",
        "benzene.xyz",
        "--basis",
        "cc-pvdz",
        "--frozen",
        "auto",
    ]
    command += ["--states", "4", "--threads", "2", "--scratch", str(tmp_path), "--json", str(results)]
    command += ["--cc-tol", "0.9", "--amplitude-tol", "0.9", "--state-tol", "0.1", "--memory"]

    def run(memory: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, memory], capture_output=True, text=True, check=False, cwd=tmp_path)

    told = re.search(r"--memory (\d+MB) is the least", run("1MB").stderr)
    assert told
    enough = run(told[1])
    assert enough.returncode == 0, enough.stderr
    found = json.loads(results.read_text())
    assert found["peak_memory_bytes"] <= found["memory_budget_bytes"]


SCRIPT = """
import sys
from pyscf import gto, scf
from outcore.chem.cc import CCSD
from outcore.job import resources

memory, way = sys.argv[1:]
mol = gto.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="cc-pvdz", verbose=0)
mf = scf.RHF(mol).density_fit().run()
loose = {"conv_tol": 0.9, "conv_tol_normt": 0.9}
with CCSD(mf, frozen="auto", comm=None, memory=memory + "MB", threads=1, **loose) as cc:
    cc.verbose = 3
    cc.on_iteration = lambda _: print("an iteration")
    if way == "energy first":
        cc.kernel()
    cc.nuc_grad_method().kernel()
print("peak", resources.peak_resident_bytes())
"""


@pytest.mark.memory
@pytest.mark.parametrize("way", ["at once", "energy first"])
def test_an_object_says_before_anything_is_computed_how_much_a_gradient_needs(way: str) -> None:
    def run(megabytes: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", SCRIPT, str(megabytes), way], capture_output=True, text=True, check=False
        )

    refused = run(1)
    assert "an iteration" not in refused.stdout
    words = "with densities and gradients" if way == "energy first" else "for all of them are enough"
    told = re.search(rf"(\d+) MB {words}", refused.stderr)
    assert told
    less = run(int(told[1]) - 20)
    assert less.returncode != 0
    if way == "energy first":  # which was requested before, and is there
        assert "memory: enough for the energy; densities and gradients need" in less.stdout
        return
    assert "an iteration" not in less.stdout
    enough = run(int(told[1]))
    assert enough.returncode == 0, enough.stderr
    peak = re.search(r"peak (\d+)", enough.stdout)
    assert peak and int(peak[1]) <= int(told[1]) * 10**6


def test_kept_arrays_have_the_caches_that_plans_leave_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kept array of steps is open at a time. A cache of the usual size would break the promise of memory."""
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    imidogen, loose = open_mean_field("UHF", IMIDOGEN, "6-31g"), {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}
    caches: list[Any] = []
    made, opened = Array.__init__, Array.open.__func__  # type: ignore[attr-defined]

    def make(self: Array, *given: Any, **options: Any) -> None:
        if options.get("path") is not None:
            caches.append(options.get("cache_bytes"))
        made(self, *given, **options)

    def open_(cls: type[Array], *given: Any, **options: Any) -> Any:
        caches.append(options.get("cache_bytes"))
        return opened(cls, *given, **options)

    monkeypatch.setattr(Array, "__init__", make)
    monkeypatch.setattr(Array, "open", classmethod(open_))
    for _ in range(2):
        with CCSD(imidogen, 1, comm=None, memory="1GB", threads=1, checkpoint=tmp_path, **loose) as cc:
            cc.kernel()
    assert len(caches) > 4 and set(caches) == {kept.CACHE_BYTES}


@pytest.mark.parametrize("kind", ["RHF", "UHF"])
def test_contractions_after_the_tasks_of_triples_find_no_memory_of_these(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Both have the work space of the plan: together they would break the promise of memory."""
    tasks, sums = (
        (TripleDerivatives, Derivatives) if kind == "RHF" else (OpenTripleDerivatives, OpenDerivatives)
    )
    begin, rotation, found = tasks._begin, sums.rotation, list[int]()

    def begin_(self: Any) -> None:
        tracemalloc.start()
        begin(self)

    def rotate(self: Any, *given: Any) -> Any:
        if tracemalloc.is_tracing():  # plans record statements, too
            found.extend(tracemalloc.get_traced_memory())
            tracemalloc.stop()
        return rotation(self, *given)

    monkeypatch.setattr(tasks, "_begin", begin_)
    monkeypatch.setattr(sums, "rotation", rotate)
    mf = mean_field(WATER, "cc-pvdz") if kind == "RHF" else open_mean_field("UHF", IMIDOGEN, "cc-pvdz")
    with CCSD(mf, 1, comm=None, memory="1GB", threads=1, conv_tol=1e-3, conv_tol_normt=1e-2) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        cc.solve_lambda()
    left, peak = found
    assert left < 0.1 * peak
