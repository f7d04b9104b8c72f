"""The error of the energy in uniform extended systems, whose small integrals are many and of one sign: the
omitted integrals must give no bias, in each way to keep integrals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from outcore.chem import scf_options
from outcore.chem.hf import accuracy, scf
from outcore.cli import main as cli
from outcore.job import resources

pyscf = pytest.importorskip("pyscf")
from pyscf import gto  # noqa: E402
from pyscf import scf as reference  # noqa: E402

ANGLES = [2 * math.pi * n / 50 for n in range(50)]
RING = "; ".join(f"H {7.1667 * math.cos(at):.9f} {7.1667 * math.sin(at):.9f} 0" for at in ANGLES)
CHAIN = "; ".join(f"H 0 0 {0.9 * n}" for n in range(30))
LATTICE = "; ".join(
    f"H {1.8 * x} {1.8 * y} {0.8 * z + (z // 2)}" for x in range(3) for y in range(3) for z in range(4)
)
WATERS = "; ".join(f"O {3 * n} 0 0; H {3 * n} .757 .587; H {3 * n} -.757 .587" for n in range(4))
MOLECULES = {"ring": RING, "chain": CHAIN, "lattice": LATTICE, "waters": WATERS}
WAYS = {
    "disk": {"storage": "disk"},
    "mixed": {"storage": "mixed", "disk_bytes": 300_000},
    "auto": {"storage": "auto"},
    "direct": {"storage": "direct"},
}


@pytest.fixture(scope="module")
def exact() -> Callable[[str], tuple[gto.Mole, float, np.ndarray]]:
    """A molecule, its energy and density with all integrals."""

    @cache
    def found(name: str) -> tuple[gto.Mole, float, np.ndarray]:
        mol = gto.M(atom=MOLECULES[name], basis="sto-3g", verbose=0)
        mf = reference.RHF(mol).run(conv_tol=1e-12, conv_tol_grad=1e-7)
        return mol, mf.e_tot, mf.make_rdm1()

    return found


ONE_WAY = {"ring": "disk", "chain": "direct", "lattice": "auto", "waters": "mixed"}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=() if ONE_WAY[name] == way else pytest.mark.long)
        for name in MOLECULES
        for way in WAYS
    ],
)
def test_the_error_is_within_the_bound(name, way, exact, tmp_path):
    mol, energy, density = exact(name)
    for allowed in (1e-6, 1e-9) if way in ("disk", "direct") else (1e-7,):
        with scf.RHF(mol, comm=None, scratch=str(tmp_path), error=allowed, **WAYS[way]) as mf:
            mf.conv_tol = 1e-11
            error = mf.kernel(density) - energy
            promised = mf.energy_error()
        assert abs(error) <= promised.bound
        assert promised.kept


def test_what_is_left_out_scatters_as_the_standard_deviation_says(exact, tmp_path):
    """Over steps, each with its own choice of omitted integrals: no bias, and a bound not far above."""
    mol, energy, density = exact("ring")
    errors = []
    for allowed in 1e-6 * 1.3 ** -np.arange(12):
        with scf.RHF(mol, comm=None, scratch=str(tmp_path), error=float(allowed)) as mf:
            mf.conv_tol = 1e-11
            errors.append((mf.kernel(density) - energy) / mf.energy_error().sigma)
    assert abs(np.mean(errors)) < 1.2  # four standard deviations of the mean of twelve
    assert 0.4 < np.sqrt(np.mean(np.square(errors))) < 1.7


@pytest.mark.parametrize("way", ["mixed", "auto", "direct"])
def test_the_last_energy_is_that_of_all_of_the_density(way, exact, tmp_path, monkeypatch):
    """Also if screening by the density is so coarse that J and K of the cycles are far off."""
    monkeypatch.setattr(scf.Settings, "density_cutoff", property(lambda self: 1e-5))
    mol, _, density = exact("chain")
    with scf.RHF(mol, comm=None, scratch=str(tmp_path), error=1e-8, **WAYS[way]) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-6, 1e-2
        found = mf.kernel(density)
        whole = mf.energy_tot(mf.make_rdm1(), vhf=reference.RHF(mol).get_veff(mol, mf.make_rdm1()))
        assert abs(found - whole) <= mf.energy_error().bound


def test_auto_runs_in_the_memory_in_which_disk_runs(exact, tmp_path):
    mol, energy, density = exact("waters")
    common = {"comm": None, "scratch": str(tmp_path), "record_bytes": 16 << 20, "threads": 2, "prefetch": 2}
    with scf.RHF(mol, **common) as mf:
        least = resources.resident_bytes() + mf.two_electron._work_bytes(2)
    with scf.RHF(mol, **common, storage="auto", memory=least + (60 << 20)) as mf:
        assert mf.kernel(density) == pytest.approx(energy, abs=1e-8)


def test_shells_larger_than_a_record_are_stored_in_parts(tmp_path):
    mol = gto.M(atom="Ar 0 0 0", basis="ano@6s5p3d2f", verbose=0)
    exact = reference.RHF(mol).run(conv_tol=1e-12)
    for way in ("disk", "auto"):
        with scf.RHF(mol, comm=None, scratch=str(tmp_path), record_bytes=64 << 10, storage=way) as mf:
            mf.conv_tol = 1e-11
            assert mf.kernel(exact.make_rdm1()) == pytest.approx(exact.e_tot, abs=1e-9)
            assert mf.energy_error().kept


def test_arithmetic_is_in_the_bound_and_not_in_what_finer_integrals_can_help():
    error = accuracy.EnergyError(1e-12, 1e-9, 1e-11, arithmetic=accuracy.arithmetic(-1e4))
    assert error.bound > 4e-11 > error.allowed
    assert error.kept


def test_cycles_go_on_until_what_is_not_converged_is_below_the_error_asked_for():
    assert scf_options.convergence(None) == scf_options.convergence(1e-6) == 1e-9
    assert scf_options.convergence(1e-10) == 1e-10


def test_the_command_states_a_bound_of_direct_runs_too(tmp_path, capsys):
    path, results = tmp_path / "water.xyz", tmp_path / "results.json"
    path.write_text("3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n")
    arguments = ["scf", str(path), "--basis", "6-31g*", "--storage", "direct", "--json", str(results)]
    assert cli.run(arguments) == 0
    assert "error of the energy" in capsys.readouterr().out
    storage = json.loads(results.read_text())["storage_error"]
    assert 0 < storage["bound"] <= storage["allowed"]
