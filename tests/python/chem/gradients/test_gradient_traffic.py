"""Densities and gradients move no less than their bounds, which docs/why/bounds.md derives."""

from __future__ import annotations

import json

import numpy as np
import pytest

from outcore.cli import main as cli
from outcore.job.resources import Allowance
from outcore.job.world import World

pytest.importorskip("pyscf")
from pyscf import gto

from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.gradients.densities import Densities, DensityOfSpin
from outcore.chem.gradients.fitted import FittedSizes, fitted, plan
from outcore.chem.mp2 import MP2
from outcore.chem.mp2.gradient import DensityPlan, response
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.plan import TransformPlan
from outcore.chem.ri.rows import FittedRows
from outcore.chem.ri.traffic import TrafficWatch

LARGE, SMALL = 64, 20  # atoms of chains
SETS = {"H": [[0, [1.2, 1.0]], [0, [0.4, 1.0]]]}  # few auxiliary functions
MEMORY = 170_000  # room for six orbitals of the small chain, and caches


def chain(atoms: int) -> list[tuple[str, tuple[float, float, float]]]:
    """Molecules of hydrogen in a row."""
    return [("H", (0.0, 0.0, 1.1 * atom + 0.4 * (atom // 2))) for atom in range(atoms)]


def on_disk(sizes, *_, **__) -> TransformPlan:
    """A plan that holds one orbital and reads three ahead, and a small cache."""
    return TransformPlan(64, False, (64, 1), 1, 1, 16 << 10, 0, 0, 0, 0)


def little(*_) -> Allowance:
    return Allowance(MEMORY, "a test")


@pytest.fixture
def orbitals_in_memory(monkeypatch):
    """The memory holds a few orbitals. Work space of matrices and libraries, which is most of the least memory of
    so small a molecule, does not count: it holds no integrals."""
    mp2 = "outcore.chem.mp2"
    for place in ("mp2", "gradient"):
        monkeypatch.setattr(f"{mp2}.{place}.free_memory", little)
    monkeypatch.setattr(f"{mp2}.mp2.plan_transform", on_disk)
    monkeypatch.setattr(
        f"{mp2}.gradient.plan", lambda sizes, *_, **__: DensityPlan(on_disk(sizes), max(sizes.virtual))
    )


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_a_fitted_gradient(no_work_space, tmp_path, share):
    """share: of the integrals, for which there is memory beyond the least."""
    mol = gto.M(atom=chain(LARGE), basis="sto-3g", verbose=0)
    orbitals = np.linalg.qr(np.random.default_rng(0).normal(size=(LARGE, LARGE)))[0]
    spin = DensityOfSpin(orbitals, orbitals, np.zeros((LARGE, LARGE)))  # their number matters, no more
    with World("self", scratch=str(tmp_path)) as world:
        rows = FittedRows(world, mol, SETS, 1, SCREENING, "jk")
        sizes = FittedSizes.of(rows, [(LARGE, LARGE)])
        memory = sizes.least_bytes(1, 1, "auto") + int(share * sizes.transformed.bytes)
        chosen = plan(sizes, memory, 1, 1, limit="a test")
        watch = TrafficWatch()
        fitted(world, mol, rows, Densities([spin], np.zeros((LARGE, LARGE))), chosen, 1)
        found = watch.traffic(world, chosen.least_moved)
    assert found.least_bytes == 2 * max(0, sizes.transformed.bytes - memory)
    assert found.bytes >= found.least_bytes
    assert (found.least_bytes == 0) == (share > 1) == (found.bytes == 0)


def test_densities_and_the_gradient_of_mp2(orbitals_in_memory, tmp_path):
    """Integrals are read for all pairs; their density is written and read."""
    mol = gto.M(atom=chain(SMALL), basis="sto-3g", verbose=0)
    mf = hf.RHF(mol, storage="direct", comm=None).run(conv_tol=1e-10)
    mp2 = MP2(mf, auxbasis="cc-pvdz-ri", comm=None, threads=1, scratch=str(tmp_path))
    with response(mp2) as found:
        before = found.traffic()
        found.gradient()
        after = found.traffic()
    of_pairs, whole = mp2.least_bytes(), mp2.integral_bytes
    assert of_pairs >= 2 * (whole - MEMORY) > 0
    assert before.least_bytes == after.least_bytes == of_pairs + 2 * (whole - MEMORY)
    assert after.least_bytes <= before.bytes < after.bytes


def test_the_gradient_of_coupled_cluster(monkeypatch):
    memory = 30_000  # room for the cache, an orbital, and rows
    monkeypatch.setattr("outcore.chem.cc.gradient.plan_transform", on_disk)
    monkeypatch.setattr(
        "outcore.chem.cc.gradient.free_memory_of_each", lambda *_: Allowance(memory, "a test")
    )
    mol = gto.M(atom="H 0 0 0; F 0 0 0.92", basis="6-31g", verbose=0)
    with (
        ri.RHF(mol, "cc-pvdz-jkfit", comm=None) as mf,
        CCSD(mf.run(conv_tol=1e-10), comm=None, threads=1, auxbasis="cc-pvdz-ri") as cc,
    ):
        cc.kernel()
        found = cc.relaxed_densities(gradient=True)
        found.gradient()
        traffic = found.traffic()
        density_bytes = 8 * cc.plan.sizes.auxiliary * mol.nao**2
    assert density_bytes > 2 * memory
    assert traffic.least_bytes == 2 * (density_bytes - memory) <= traffic.bytes


def test_the_command_tells_how_much_more_was_moved(orbitals_in_memory, tmp_path, capsys):
    path, results = tmp_path / "chain.xyz", tmp_path / "results.json"
    atoms = [f"{name} {x} {y} {z}" for name, (x, y, z) in chain(SMALL)]
    path.write_text("\n".join([str(SMALL), "", *atoms, ""]))
    given = ["--basis", "sto-3g", "--jkbasis", "cc-pvdz-jkfit", "--auxbasis", "cc-pvdz-ri", "--gradient"]
    assert cli.run(["rimp2", str(path), *given, "--scratch", str(tmp_path), "--json", str(results)]) == 0
    found = json.loads(results.read_text())
    for stage in ("mp2", "densities"):
        traffic = found[f"{stage}_traffic"]
        moved = traffic["read_bytes"] + traffic["written_bytes"]
        assert moved >= traffic["least_bytes"] > 0
        assert traffic["over_least"] == pytest.approx(moved / traffic["least_bytes"])
    told = f"densities and gradient: {moved / 1e6:.0f} MB moved to and from disk, {traffic['over_least']:.2f}"
    assert f"{told} times the least that must be moved" in capsys.readouterr().out


def test_what_closed_integrals_had_to_move_still_counts():
    mol = gto.M(atom="H 0 0 0; H 0 0 0.74", basis="sto-3g", verbose=0)
    with ri.RHF(mol, "cc-pvdz-jkfit", comm=None) as mf:
        fitting = mf.with_df
        for least in (5.0, 7.0):
            fitting.build().three_index.least_bytes = least
            fitting.close_integrals()
        assert fitting.least_bytes == 12.0
        assert fitting.another("cc-pvdz-jkfit").least_bytes == 0.0
