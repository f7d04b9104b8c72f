"""Hartree-Fock objects against PySCF's."""

from __future__ import annotations

import errno
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

from outcore import World, checkpoint
from outcore.base.errors import OutcoreError
from outcore.chem.hf import scf
from outcore.chem.hf.integrals import Summary

pyscf = pytest.importorskip("pyscf")
from pyscf import cc, gto, mp  # noqa: E402
from pyscf import scf as reference  # noqa: E402

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
MOLECULES = {
    "HF cc-pVQZ, s to g, spherical": {"atom": "H 0 0 0; F 0 0 0.917", "basis": "cc-pvqz"},
    "H2O cc-pVTZ, cartesian": {"atom": WATER, "basis": "cc-pvtz", "cart": True},
    "HF STO-3G": {"atom": "H 0 0 0; F 0 0 0.917", "basis": "sto-3g"},
    "Ne general contraction": {"atom": "Ne 0 0 0", "basis": "ano@4s3p2d"},
    "C2H6 6-31G*": {
        "atom": "C 0 0 0; C 0 0 1.54; H 0 1.02 -.39; H .88 -.51 -.39; H -.88 -.51 -.39;"
        "H 0 -1.02 1.93; H .88 .51 1.93; H -.88 .51 1.93",
        "basis": "6-31g*",
    },
}
SCREENING = 1e-12
WAYS = {
    "disk": {"storage": "disk"},
    "direct": {"storage": "direct"},
    "mixed": {"storage": "mixed", "disk_bytes": 100_000},
    "auto": {"storage": "auto"},
}


def molecule(**given) -> gto.Mole:
    return gto.M(verbose=0, **given)


@cache
def pyscfs_energy(name: str) -> float:
    return float(reference.RHF(molecule(**MOLECULES[name])).run(conv_tol=1e-11).e_tot)


@dataclass
class Outcome:
    energy: float
    summary: Summary | None


def outcome(mol, scratch, **settings) -> Outcome:
    with scf.RHF(mol, scratch=str(scratch), screening=SCREENING, **settings) as mf:
        mf.conv_tol = 1e-11
        return Outcome(mf.kernel(), mf.stored_summary)


@pytest.fixture
def water() -> gto.Mole:
    return molecule(atom=WATER, basis="6-31g*")


@pytest.fixture
def mean_field(water, tmp_path):
    with scf.RHF(water, scratch=str(tmp_path), screening=SCREENING) as mf:
        yield mf


ONE_WAY = {
    "HF cc-pVQZ, s to g, spherical": "disk",
    "H2O cc-pVTZ, cartesian": "direct",
    "Ne general contraction": "mixed",
    "C2H6 6-31G*": "auto",
}
"""Of each molecule but the smallest, which has every way."""


@pytest.mark.usefixtures("short_surveys")
@pytest.mark.parametrize(
    ("name", "integrals"),
    [
        pytest.param(name, way, marks=() if ONE_WAY.get(name, way) == way else pytest.mark.long)
        for name in MOLECULES
        for way in WAYS
    ],
)
def test_rhf_energy_is_pyscfs(name, integrals, tmp_path):
    mol = molecule(**MOLECULES[name])
    expected = pyscfs_energy(name)
    with scf.RHF(mol, **WAYS[integrals], scratch=str(tmp_path), screening=SCREENING) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(expected, abs=1e-9)
        assert mf.converged


@pytest.mark.usefixtures("short_surveys")
@pytest.mark.parametrize("integrals", WAYS)
@pytest.mark.parametrize("cart", [False, pytest.param(True, marks=pytest.mark.long)])
def test_uhf_energy_is_pyscfs(integrals, cart, tmp_path):
    mol = molecule(atom="O 0 0 0; O 0 0 1.2", basis="6-31g*", spin=2, cart=cart)
    expected = reference.UHF(mol).run(conv_tol=1e-11).e_tot
    with scf.UHF(mol, **WAYS[integrals], scratch=str(tmp_path), screening=SCREENING) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_change_the_energy(water, threads, tmp_path):
    expected = reference.RHF(water).run(conv_tol=1e-11).e_tot
    with scf.RHF(water, scratch=str(tmp_path), threads=threads, screening=SCREENING) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("page_cache", ["auto", "direct", "buffered"])
def test_page_cache_does_not_change_the_energy(water, page_cache, tmp_path):
    expected = reference.RHF(water).run(conv_tol=1e-11).e_tot
    with scf.RHF(water, scratch=str(tmp_path), page_cache=page_cache, screening=SCREENING) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("hermi", [0, 1, 2])
def test_jk_of_any_density(mean_field, hermi):
    n = mean_field.mol.nao
    densities = np.random.default_rng(hermi).standard_normal((3, n, n))
    if hermi:
        transposed = densities.transpose(0, 2, 1)
        densities = densities + transposed if hermi == 1 else densities - transposed
    coulomb, exchange = mean_field.get_jk(dm=densities, hermi=hermi)
    j, k = reference.hf.get_jk(mean_field.mol, densities, hermi=hermi)
    np.testing.assert_allclose(coulomb, j, atol=1e-8)
    np.testing.assert_allclose(exchange, k, atol=1e-8)


def test_jk_gives_what_is_asked_for(mean_field):
    density = mean_field.get_init_guess()
    assert mean_field.get_jk(dm=density, with_k=False)[1] is None
    assert mean_field.get_jk(dm=density, with_j=False)[0] is None
    assert mean_field.get_jk(dm=density)[0].shape == density.shape


@pytest.mark.parametrize("hermi", [0, 1, 2])
def test_jk_of_a_complex_density(mean_field, hermi):
    n = mean_field.mol.nao
    generator = np.random.default_rng(hermi)
    density = generator.standard_normal((2, n, n)) + 1j * generator.standard_normal((2, n, n))
    if hermi:
        conjugate = density.conj().transpose(0, 2, 1)
        density = density + conjugate if hermi == 1 else density - conjugate
    j, k = reference.hf.get_jk(mean_field.mol, density, hermi=0)
    coulomb, exchange = mean_field.get_jk(dm=density, hermi=hermi)
    np.testing.assert_allclose(coulomb, j, atol=1e-8)
    np.testing.assert_allclose(exchange, k, atol=1e-8)


def test_integrals_are_computed_once(mean_field):
    mean_field.kernel()
    stored = mean_field.stored_summary
    mean_field.kernel()
    assert mean_field.stored_summary is stored
    assert stored.stored > 0 and stored.computed >= stored.stored
    assert stored.bytes == stored.disk_bytes and stored.bytes % 4096 == 0


def test_mixed_keeps_to_its_disk_budget_and_uses_it(water, tmp_path):
    whole = outcome(water, tmp_path, storage="disk")
    part = outcome(water, tmp_path, storage="mixed", disk_bytes=100_000, threads=1)
    assert part.summary.disk_bytes <= 100_000 and part.summary.memory_bytes == 0
    assert 50_000 < part.summary.bytes < whole.summary.bytes
    assert part.energy == pytest.approx(whole.energy, abs=1e-10)


def test_auto_keeps_all_in_memory_where_it_fits(water, tmp_path):
    whole = outcome(water, tmp_path, storage="disk")
    auto = outcome(water, tmp_path, storage="auto")
    assert auto.summary.disk_bytes == 0 and auto.summary.memory_bytes > 0
    assert auto.summary.stored == whole.summary.stored
    assert auto.energy == pytest.approx(whole.energy, abs=1e-10)


def test_a_disk_budget_of_nothing_is_a_direct_run(water, tmp_path):
    direct = outcome(water, tmp_path, storage="direct")
    nothing = outcome(water, tmp_path, storage="mixed", disk_bytes=0)
    assert nothing.summary is None and os.listdir(tmp_path) == []
    assert nothing.energy == pytest.approx(direct.energy, abs=1e-12)


def test_a_disk_budget_below_one_record_is_used(water, tmp_path):
    # One thread: each fills its own record, and two records may not fit on so small a disk.
    part = outcome(water, tmp_path, storage="mixed", disk_bytes=80_000, record_bytes=1 << 20, threads=1)
    assert 20_000 < part.summary.disk_bytes <= 80_000


def test_a_disk_budget_larger_than_the_disk_keeps_everything(water, tmp_path):
    whole = outcome(water, tmp_path, storage="disk")
    part = outcome(water, tmp_path, storage="mixed", disk_bytes=1 << 60)
    assert part.summary.stored == whole.summary.stored


def test_two_molecules_keep_their_integrals_apart(water, tmp_path):
    other = molecule(atom="N 0 0 0; N 0 0 1.1", basis="6-31g*")
    with (
        scf.RHF(water, scratch=str(tmp_path), screening=SCREENING) as one,
        scf.RHF(other, scratch=str(tmp_path), screening=SCREENING) as two,
    ):
        _ = one.two_electron, two.two_electron
        assert one.kernel() == pytest.approx(reference.RHF(water).kernel(), abs=1e-9)
        assert two.kernel() == pytest.approx(reference.RHF(other).kernel(), abs=1e-9)


def test_integrals_of_another_geometry_are_not_reused(mean_field):
    mean_field.kernel()
    stretched = molecule(atom=WATER.replace("0.757", "0.857"), basis="6-31g*")
    mean_field.reset(stretched)
    assert mean_field.kernel() == pytest.approx(reference.RHF(stretched).run().e_tot, abs=1e-8)


def test_a_geometry_changed_in_place_is_noticed(mean_field):
    mean_field.kernel()
    mean_field.mol.set_geom_(mean_field.mol.atom_coords(unit="Angstrom") * 1.1, unit="Angstrom")
    expected = reference.RHF(mean_field.mol).run().e_tot
    assert mean_field.kernel() == pytest.approx(expected, abs=1e-8)


def test_jk_of_another_molecule_is_that_molecules(mean_field):
    other = molecule(atom="He 0 0 0", basis="6-31g")
    density = np.eye(other.nao)
    coulomb, _ = mean_field.get_jk(other, density)
    np.testing.assert_allclose(coulomb, reference.hf.get_jk(other, density)[0], atol=1e-12)


def test_post_scf_methods_take_it(mean_field, water):
    mean_field.conv_tol = 1e-11
    mean_field.kernel()
    expected = reference.RHF(water).run(conv_tol=1e-11)
    assert mp.MP2(mean_field).kernel()[0] == pytest.approx(mp.MP2(expected).kernel()[0], abs=1e-8)
    assert cc.CCSD(mean_field).kernel()[0] == pytest.approx(cc.CCSD(expected).kernel()[0], abs=1e-7)


def test_progress_ends_at_the_whole(water, tmp_path):
    seen: list[float] = []
    with scf.RHF(water, scratch=str(tmp_path), screening=SCREENING) as mf:
        mf.on_progress = seen.append
        mf.kernel()
    assert seen and seen[-1] == 1.0
    assert seen == sorted(seen)


def test_estimate_bounds_what_is_stored(water, tmp_path):
    estimates = []
    with scf.RHF(water, scratch=str(tmp_path)) as mf:
        mf.on_estimate = estimates.append
        mf.kernel()
        (estimate,) = estimates
        assert estimate.integrals == mf.stored_summary.computed
        assert 0 < mf.stored_summary.bytes <= estimate.disk_bytes + mf.stored_summary.records * 8192
        assert estimate.scratch == str(tmp_path)


def test_scratch_is_empty_afterwards(water, tmp_path):
    with scf.RHF(water, scratch=str(tmp_path)) as mf:
        mf.kernel()
    assert [path for path in tmp_path.rglob("*") if path.stat().st_size > 4096] == []


def test_memory_too_small_says_how_much_is_needed(water, tmp_path):
    with pytest.raises(OutcoreError, match=r"need at least [\d.]+ MB.*--memory leaves 0 bytes") as caught:
        scf.RHF(water, scratch=str(tmp_path), memory=10**6).kernel()
    assert caught.value.errno == errno.ENOMEM


def test_missing_scratch_is_named(water, tmp_path):
    missing = tmp_path / "none"
    with pytest.raises(OutcoreError, match="no such directory") as caught:
        scf.RHF(water, scratch=str(missing)).kernel()
    assert caught.value.filename == str(missing)


@pytest.fixture
def read_only(tmp_path):
    """A directory that nobody can write to, not even root."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        yield tmp_path
        return
    command = ["mount", "-t", "tmpfs", "-o", "ro", "outcore-test", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a read-only file system, or not to be root")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_read_only_scratch_is_refused(water, read_only):
    with pytest.raises(OutcoreError, match="not writable") as caught:
        scf.RHF(water, scratch=str(read_only)).kernel()
    assert caught.value.errno == errno.EACCES
    assert caught.value.filename == str(read_only)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"storage": "tape"}, "'tape'.*no such word; Hartree-Fock has disk, mixed, direct, auto"),
        (
            {"storage": "memory"},
            "'memory'.*Hartree-Fock does not have it; Hartree-Fock has disk, mixed, direct, auto",
        ),
        ({"screening": -1.0}, "not positive"),
        ({"prefetch": 1}, "2 records"),
        ({"record_bytes": 5000}, "multiple of 4096"),
        ({"page_cache": "sometimes"}, "sometimes"),
        ({"records": "elsewhere"}, "is none of own, any"),
        ({"records": "any", "scratch": "/"}, "scratch directory of the world"),
    ],
)
def test_wrong_settings_are_refused(water, tmp_path, settings, text):
    with pytest.raises(OutcoreError, match=text) as caught:
        scf.RHF(water, **{"scratch": str(tmp_path), **settings}).kernel()
    assert caught.value.errno == errno.EINVAL


def test_a_geometry_that_is_no_number_is_refused(tmp_path):
    mol = molecule(atom=WATER, basis="6-31g*")
    mol._env[mol._atm[1, 1]] = np.nan
    with pytest.raises(OutcoreError, match="number 24 of env is nan: a coordinate"):
        scf.RHF(mol, scratch=str(tmp_path), screening=1e-10).get_jk(dm=np.eye(mol.nao))


@pytest.mark.parametrize("way", ["disk", "mixed", "auto"])
def test_kept_integrals_are_reused(water, tmp_path, way):
    settings = {**WAYS[way], "keep": str(tmp_path)}
    first = outcome(water, tmp_path, **settings)
    again = outcome(water, tmp_path, **settings)
    assert first.summary.computed > 0 and first.summary.stored == again.summary.stored
    with scf.RHF(water, screening=SCREENING, **settings) as mf:
        assert mf.two_electron.reused
        assert mf.two_electron.summary().computed == 0
    assert again.energy == pytest.approx(first.energy, abs=1e-11)


def test_a_run_that_was_killed_before_it_had_kept_its_integrals_is_no_obstacle(water, tmp_path):
    killed = patch("outcore.checkpoint._make_empty", side_effect=OSError)
    with World("self") as world, killed, pytest.raises(OutcoreError):
        checkpoint.save(world, tmp_path / "integrals", {"problem": np.zeros(3)}, {})
    with pytest.raises(OutcoreError, match="none was completed"), World("self") as world:
        checkpoint.load(world, tmp_path / "integrals")
    outcome(water, tmp_path, keep=str(tmp_path))
    with scf.RHF(water, keep=str(tmp_path), screening=SCREENING) as mf:
        assert mf.two_electron.reused


def test_kept_integrals_of_another_problem_are_refused(water, tmp_path):
    outcome(water, tmp_path, keep=str(tmp_path))
    other = molecule(atom=WATER.replace("0.757", "0.758"), basis="6-31g*")
    with pytest.raises(OutcoreError, match="of another geometry") as caught:
        outcome(other, tmp_path, keep=str(tmp_path))
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OutcoreError, match="screening = 1e-12, now it is 1e-10"):
        scf.RHF(water, keep=str(tmp_path), screening=1e-10).kernel()


def test_a_damaged_record_of_kept_integrals_is_recomputed(water, tmp_path):
    first = outcome(water, tmp_path, keep=str(tmp_path))
    path = next(tmp_path.glob("integrals-*"))
    data = bytearray(path.read_bytes())
    data[100] ^= 0x10  # in the first record; between records there are holes
    path.write_bytes(data)
    with scf.RHF(water, keep=str(tmp_path), screening=SCREENING) as mf:
        mf.conv_tol = 1e-11
        assert mf.kernel() == pytest.approx(first.energy, abs=1e-11)
        assert mf.two_electron.work().damaged == 1


def test_kept_integrals_of_which_a_file_is_gone_are_refused(water, tmp_path):
    outcome(water, tmp_path, keep=str(tmp_path))
    next(tmp_path.glob("integrals-*")).unlink()
    with pytest.raises(OutcoreError, match="missing") as caught:
        outcome(water, tmp_path, keep=str(tmp_path))
    assert caught.value.errno == errno.ENOENT


def test_records_of_a_run_that_was_killed_are_not_used_and_go(water, tmp_path):
    left = tmp_path / "integrals-0123456789ab.0"
    left.write_bytes(b"half a run")
    outcome(water, tmp_path, keep=str(tmp_path))
    assert not left.exists() and len(list(tmp_path.glob("integrals-*"))) == 1
