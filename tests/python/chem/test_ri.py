"""SCF and MP2 with three-index integrals out of core: equal to PySCF's, wherever the integrals are."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from outcore import DiskArray, World
from outcore.base.errors import OutcoreError
from outcore.chem.mp2 import MP2

pytest.importorskip("pyscf")
from pyscf import cc, dft, gto
from pyscf import scf as reference
from pyscf.df.incore import aux_e2
from pyscf.mp import dfmp2_native, dfump2_native

from outcore.chem import ri
from outcore.chem.reference import mark_canonical
from outcore.chem.ri import auxiliary
from outcore.chem.ri.metric import Metric
from outcore.chem.ri.plan import IntegralSizes, TransformSizes, plan_integrals, plan_transform
from outcore.chem.ri.three_index import ThreeIndex

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
OXYGEN = "O 0 0 0; O 0 0 1.2"
STORAGES = ("auto", "disk")


def molecule(**given) -> gto.Mole:
    return gto.M(verbose=0, **given)


def fitted(mf):
    """PySCF's own fitted SCF, tightly converged."""
    result = mf.density_fit()
    result.conv_tol = 1e-12
    result.kernel()
    return result


@pytest.fixture(scope="module")
def water() -> gto.Mole:
    return molecule(atom=WATER, basis="cc-pvdz")


@pytest.fixture(scope="module")
def water_reference(water):
    return fitted(reference.RHF(water))


@pytest.fixture(params=STORAGES)
def water_scf(request, water):
    with ri.RHF(water, storage=request.param) as mf:
        mf.conv_tol = 1e-12
        mf.kernel()
        yield mf


# ---- SCF ----


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("RHF", {"atom": WATER, "basis": "aug-cc-pvdz"}),
        ("RHF", {"atom": WATER, "basis": "6-31g*", "cart": True}),
        ("UHF", {"atom": OXYGEN, "basis": "6-31g*", "spin": 2}),
    ],
)
def test_energy_is_that_of_pyscfs_density_fitting(storage, method, given):
    mol = molecule(**given)
    with getattr(ri, method)(mol, storage=storage) as mf:
        mf.conv_tol = 1e-12
        assert mf.kernel() == pytest.approx(fitted(getattr(reference, method)(mol)).e_tot, abs=1e-9)


def test_hydrogen_fluoride_has_its_reference_energy():
    with ri.RHF(molecule(atom="H 0 0 0; F 0 0 0.917", basis="cc-pvdz")) as mf:
        assert mf.kernel() == pytest.approx(-100.019400605629, abs=1e-8)


@pytest.mark.parametrize("hermi", [0, 1, 2])
def test_jk_of_any_density_is_pyscfs(water, water_reference, hermi):
    densities = np.random.default_rng(1).normal(size=(2, water.nao, water.nao))
    if hermi:
        transposed = densities.transpose(0, 2, 1)
        densities = densities + transposed if hermi == 1 else densities - transposed
    fitting = ri.DensityFitting(water, storage="disk")
    j, k = fitting.get_jk(densities, hermi)
    expected_j, expected_k = water_reference.with_df.get_jk(densities, hermi)
    fitting.close()
    np.testing.assert_allclose(j, expected_j, atol=1e-8)
    np.testing.assert_allclose(k, expected_k, atol=1e-8)


def test_jk_of_a_complex_density(water, water_reference):
    generator = np.random.default_rng(2)
    density = generator.normal(size=(water.nao, water.nao)) + 1j * generator.normal(
        size=(water.nao, water.nao)
    )
    fitting = ri.DensityFitting(water)
    for ours, theirs in zip(
        fitting.get_jk(density, 0), water_reference.with_df.get_jk(density, 0), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    fitting.close()


def test_jk_gives_what_is_asked_for(water_scf):
    density = water_scf.make_rdm1()
    assert water_scf.with_df.get_jk(density, with_k=False)[1] is None
    assert water_scf.with_df.get_jk(density, with_j=False)[0] is None
    assert water_scf.with_df.get_jk(density)[1].shape == density.shape


def test_tags_that_do_not_belong_to_the_density_are_not_believed(water_scf):
    from pyscf import lib

    density = water_scf.make_rdm1()
    lying = lib.tag_array(2 * np.asarray(density), mo_coeff=water_scf.mo_coeff, mo_occ=water_scf.mo_occ)
    np.testing.assert_allclose(
        water_scf.with_df.get_jk(lying)[1], 2 * water_scf.with_df.get_jk(density)[1], atol=1e-9
    )


def test_a_geometry_changed_in_place_is_noticed():
    mol = molecule(atom=WATER, basis="6-31g")
    with ri.RHF(mol) as mf:
        mf.kernel()
        mol.set_geom_(mol.atom_coords(unit="Angstrom") * 1.1, unit="Angstrom")
        assert mf.kernel() == pytest.approx(fitted(reference.RHF(mol)).e_tot, abs=1e-8)


# ---- as PySCF's with_df ----


def test_rows_are_those_of_pyscf_up_to_a_rotation(water_scf, water_reference):
    fitting = water_scf.with_df
    ours = np.concatenate(list(fitting.loop(17)))
    theirs = np.concatenate(list(water_reference.with_df.loop()))
    assert len(ours) == fitting.get_naoaux() == len(theirs)
    np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, atol=1e-10)


def test_blocks_of_rows_are_each_their_own(water_scf):
    blocks = list(water_scf.with_df.loop(16))
    assert not np.shares_memory(blocks[0], blocks[1])
    assert abs(blocks[0] - blocks[1]).max() > 1e-3


def test_coupled_cluster_of_pyscf_takes_it(water_scf, water_reference):
    theirs = cc.CCSD(water_reference)
    ours = cc.CCSD(water_scf)
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-7)


@pytest.mark.parametrize("xc", ["b3lyp", pytest.param("camb3lyp", marks=pytest.mark.long), "hse06", "pbe"])
def test_kohn_sham_with_hybrids_of_every_kind(xc):
    mol = molecule(atom=WATER, basis="6-31g")
    mf = dft.RKS(mol, xc=xc)
    mf.grids.level = 1
    expected = fitted(mf)
    with ri.density_fit(mf, expected.with_df.auxbasis, storage="disk") as ours:
        ours.conv_tol = 1e-12
        assert ours.kernel() == pytest.approx(expected.e_tot, abs=1e-8)


def test_relativistic_methods_are_refused(water):
    with pytest.raises(OutcoreError, match="no molecular mean-field method") as caught:
        ri.density_fit(reference.DHF(water))
    assert caught.value.errno == errno.ENOTSUP


# ---- MP2 ----


def test_periodic_methods_are_refused():
    from pyscf.pbc import gto as periodic
    from pyscf.pbc import scf as periodic_scf

    cell = periodic.M(atom="He 0 0 0", a=np.eye(3) * 4, basis="sto-3g", verbose=0)
    with pytest.raises(OutcoreError, match="no molecular mean-field method"):
        ri.density_fit(periodic_scf.RHF(cell))


def test_methods_that_are_not_used_are_not_loaded():
    """PySCF loads all of its modules when an object is asked for an unknown attribute, which wastes
    memory."""
    program = (
        "import sys; from pyscf import gto; from outcore.chem import ri\n"
        "with ri.RHF(gto.M(atom='He 0 0 0', verbose=0)) as mf: mf.kernel()\n"
        "sys.exit('pyscf.pbc.scf' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("frozen", [0, 1])
def test_correlation_of_closed_shells_is_pyscfs(water_scf, water_reference, storage, frozen):
    expected = dfmp2_native.DFRMP2(water_reference, frozen=frozen).kernel()
    mp2 = MP2(water_scf, frozen, storage=storage)
    assert mp2.kernel() == pytest.approx(expected, abs=1e-9)
    assert mp2.e_tot == water_scf.e_tot + mp2.e_corr
    mp2.close()


@pytest.mark.parametrize(("frozen", "expected"), [(None, -0.22187976), ("auto", -0.21939028)])
def test_water_has_its_reference_correlation_energy(frozen, expected):
    # 0.958 A, 104.5 degrees
    mol = molecule(atom="O; H 1 0.958; H 1 0.958 2 104.5", basis="aug-cc-pvdz")
    with ri.RHF(mol) as mf:
        mf.conv_tol = 1e-12
        assert mf.kernel() == pytest.approx(-76.041361326286, abs=1e-8)
        mp2 = MP2(mf, frozen)
        assert mp2.kernel() == pytest.approx(expected, abs=1e-8)
        mp2.close()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("given", [{"atom": OXYGEN, "spin": 2}, {"atom": "H 0 0 0", "spin": 1}])
def test_correlation_of_open_shells_is_pyscfs(storage, given):
    mol = molecule(basis="6-31g*", **given)
    expected = dfump2_native.DFUMP2(fitted(reference.UHF(mol)))
    with ri.UHF(mol) as mf:
        mf.conv_tol = 1e-12
        mf.kernel()
        mp2 = MP2(mf, storage=storage)
        assert mp2.kernel() == pytest.approx(expected.kernel() if mol.nelectron > 1 else 0.0, abs=1e-9)
        mp2.close()


def test_spin_component_scaling_is_pyscfs(water_scf, water_reference):
    mp2 = MP2(water_scf)
    mp2.kernel()
    expected = dfmp2_native.SCSDFRMP2(water_reference).kernel()
    assert mp2.e_scs == pytest.approx(expected, abs=1e-9)
    mp2.close()


def test_pair_energies_add_up_and_are_symmetric(water_scf):
    mp2 = MP2(water_scf)
    mp2.kernel()
    opposite, same = mp2.pair_energies["os"], mp2.pair_energies["ss"]
    assert opposite.sum() == pytest.approx(mp2.e_os) and same.sum() == pytest.approx(mp2.e_ss)
    np.testing.assert_allclose(opposite, opposite.T)
    np.testing.assert_allclose(np.diag(same), 0.0, atol=1e-14)
    mp2.close()


def test_pair_energies_are_those_of_the_integrals(water_scf, water_reference):
    """One pair energy is computed from PySCF's integrals."""
    mp2 = MP2(water_scf, auxbasis=water_scf.with_df.auxmol.basis)
    mp2.kernel()
    c, e = water_scf.mo_coeff, water_scf.mo_energy
    o, v = c[:, :5], c[:, 5:]
    integrals = water_reference.with_df.ao2mo((o, v, o, v)).reshape(5, 19, 5, 19)
    gap = e[3] + e[4] - e[5:, None] - e[None, 5:]
    assert mp2.pair_energies["os"][4, 3] == pytest.approx((integrals[4, :, 3] ** 2 / gap).sum(), abs=1e-10)
    mp2.close()


# ---- bad input ----


def test_frozen_core_larger_than_the_occupied_space_is_refused(water_scf):
    with pytest.raises(OutcoreError, match="6 frozen, but only 5 are occupied"):
        MP2(water_scf, 6)


@pytest.mark.parametrize("frozen", ["some", -1])
def test_frozen_must_be_a_number_or_auto(water_scf, frozen):
    with pytest.raises(OutcoreError, match="neither a number of orbitals nor 'auto'"):
        MP2(water_scf, frozen)


@pytest.mark.parametrize(
    ("given", "frozen"),
    [
        ({"atom": "H 0 0 0", "basis": "sto-3g", "spin": 1}, 0),
        ({"atom": "H 0 0 0", "basis": "cc-pvdz", "spin": 1}, 0),
        ({"atom": "H 0 0 0; H 0 0 1", "basis": "6-31g", "charge": 1, "spin": 1}, 0),
        ({"atom": "H 0 0 0; H 0 0 1", "basis": "6-31g", "spin": 2}, 2),
        ({"atom": "He 0 0 0", "basis": "sto-3g"}, 0),
        ({"atom": "He 0 0 0", "basis": "6-31g"}, 1),
        ({"atom": WATER, "basis": "sto-3g"}, 5),
    ],
)
def test_without_pairs_or_virtual_orbitals_the_correlation_is_nothing(given, frozen):
    mol = molecule(**given)
    with (ri.UHF if mol.spin else ri.RHF)(mol, "def2-universal-jkfit") as mf:
        mf.kernel()
        mp2 = MP2(mf, frozen, "def2-tzvpp-ri")
        assert mp2.kernel() == 0.0
        assert mp2.e_tot == mf.e_tot and mp2.e_scs == 0.0
        mp2.close()


def test_an_unknown_auxiliary_basis_is_named_with_similar_ones(water):
    with pytest.raises(OutcoreError, match=r"unknown auxiliary basis 'cc-pvdz-jkfut'; similar: .*jkfit"):
        ri.RHF(water, "cc-pvdz-jkfut").kernel()


def test_an_auxiliary_basis_that_lacks_an_element_is_named():
    mol = molecule(atom="K 0 0 0; H 0 0 2.3", basis="def2-svp")
    with pytest.raises(
        OutcoreError,
        match="auxiliary basis 'cc-pvdz-jkfit' has no element K; it has H, B-Ne, Al-Ar, Ga-Kr; 'def2-universal",
    ):
        ri.RHF(mol, "cc-pvdz-jkfit").kernel()


def test_no_auxiliary_basis_on_record_is_said_and_not_made_up():
    mol = molecule(atom="He 0 0 0", basis=gto.basis.parse("He S\n 38.4 0.02\n 5.7 0.15\n He S\n 1.2 1.0"))
    with pytest.raises(OutcoreError, match=r"none is on record for He .* 'auto'"):
        ri.RHF(mol).kernel()
    with ri.RHF(mol, "etb") as mf:
        assert mf.kernel() < -2


def test_a_linearly_dependent_auxiliary_basis_is_reduced_and_reported(water):
    basis = {"O": gto.load("cc-pvdz-jkfit", "O") * 2, "H": gto.load("cc-pvdz-jkfit", "H")}
    with ri.RHF(water, basis) as mf, ri.RHF(water) as plain:
        assert mf.kernel() == pytest.approx(plain.kernel(), abs=1e-7)
        assert mf.with_df.three_index.dropped > 0
        assert "linearly dependent" in mf.with_df.three_index.summary(mf.with_df.auxmol)


class MetricOf:
    """Stands for a molecule with an auxiliary basis."""

    def __init__(self, smallest: float, seed: int) -> None:
        turned, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(40, 40)))
        self.nao = len(turned)
        self._matrix = (turned * np.array([smallest, *np.geomspace(1e-4, 100, 39)])) @ turned.T

    def intor(self, _name: str, hermi: int = 0) -> np.ndarray:
        return (self._matrix + self._matrix.T) / 2


@pytest.mark.parametrize("smallest", [3e-14, 1e-15, 0.0, -1e-15])
def test_a_metric_that_is_singular_within_rounding_is_cut_also_where_it_has_a_factor(smallest):
    with World("self") as world:
        metrics = [Metric(world, MetricOf(smallest, seed)) for seed in range(12)]
    assert [each.dropped for each in metrics] == [1] * len(metrics)


def test_a_metric_that_is_regular_is_not_cut():
    with World("self") as world:
        assert Metric(world, MetricOf(1e-8, 1)).dropped == 0


def test_long_range_exchange_has_no_noise_of_a_singular_metric(water):
    """With many functions, of which the long-range operator distinguishes few."""
    density = reference.RHF(water).get_init_guess()
    auxmol = auxiliary.build(water, "def2-universal-jkfit")
    with water.with_range_coulomb(0.3), auxmol.with_range_coulomb(0.3):
        values, vectors = np.linalg.eigh(auxmol.intor("int2c2e"))
        three = aux_e2(water, auxmol, "int3c2e")
    kept = values > 1e-7
    fitted_rows = three @ (vectors[:, kept] / np.sqrt(values[kept]))
    expected = np.einsum("mlp,ls,nsp->mn", fitted_rows, density, fitted_rows, optimize=True)
    fitting = ri.DensityFitting(water, "def2-universal-jkfit")
    _, exchange = fitting.get_jk(density, omega=0.3)
    with fitting.range_coulomb(0.3) as other:
        assert other.three_index.dropped == np.count_nonzero(~kept) > 0
    fitting.close()
    np.testing.assert_allclose(exchange, expected, atol=1e-10)


def test_a_metric_takes_the_memory_that_is_planned_for(water):
    """Also a metric that must be diagonalised: twice its size while it is made, once afterwards."""
    basis = {name: gto.load("cc-pvqz-jkfit", name) for name in ("O", "H")}
    for auxbasis in (basis, basis | {"O": basis["O"] * 2}):
        auxmol = auxiliary.build(water, auxbasis)
        size = int(auxmol.nao) ** 2 * 8
        with World("self") as world:
            tracemalloc.start()
            metric = Metric(world, auxmol)
            held, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert 0.9 * size < held < 1.1 * size
        assert peak < 2.2 * size
        assert (metric.dropped > 0) == (auxbasis is not basis)


def test_too_little_memory_says_how_much_is_needed(water):
    with pytest.raises(OutcoreError, match=r"need at least [\d.]+ MB more in each of 1 processes") as caught:
        ri.RHF(water, memory=10**6).kernel()
    assert caught.value.errno == errno.ENOMEM


def test_two_spins_are_planned_for():
    sizes = IntegralSizes(300, 1500, 40_000, 70, 25)
    one, two = (
        plan_integrals(replace(sizes, spins=spins), 1 << 30, 1, 2, "disk", transfer_bytes=20 << 20)
        for spins in (1, 2)
    )
    assert two.iterate_bytes - one.iterate_bytes >= 28 * 300**2 * 8


@pytest.mark.parametrize("processes", [1, 2])
def test_mp2_stays_in_memory_where_that_is_enough(processes):
    sizes = TransformSizes(300, 40_000, 1500, (40,), (240,))
    plan = plan_transform(sizes, 8 << 30, processes, 2)
    assert plan.in_memory
    assert plan.memory_bytes == sizes.bytes // processes


def test_too_little_memory_for_mp2_says_how_much_is_needed(water_scf):
    with pytest.raises(OutcoreError, match=r"RI-MP2.* need at least [\d.]+ MB more in each of 1") as caught:
        MP2(water_scf, memory=10**6).kernel()
    assert caught.value.errno == errno.ENOMEM


def test_missing_scratch_is_named(water, tmp_path):
    with pytest.raises(OutcoreError, match="no such directory"):
        ri.RHF(water, scratch=str(tmp_path / "none")).kernel()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 16 MB."""
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "outcore-test", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_disk_that_is_too_small_is_noticed_before_integrals_are_made(small_disk, monkeypatch):
    def never(*_):
        raise AssertionError("integrals were made")

    monkeypatch.setattr(ThreeIndex, "_fill", never)
    mol = molecule(atom="Ne 0 0 0; Ne 0 0 3; Ne 0 3.5 0", basis="cc-pvqz")
    with pytest.raises(OutcoreError, match="free") as caught:
        ri.RHF(mol, storage="disk", scratch=str(small_disk)).kernel()
    assert caught.value.errno == errno.ENOSPC


def test_a_disk_that_is_too_small_for_mp2_is_noticed_before_integrals_are_made(small_disk, monkeypatch):
    def never(*_):
        raise AssertionError("integrals were made")

    monkeypatch.setattr("outcore.chem.mp2.mp2.transform", never)
    mol = molecule(atom="Ne 0 0 0; Ne 0 0 3; Ne 0 3 0", basis="cc-pv5z")
    mf = reference.RHF(mol)
    values, vectors = np.linalg.eigh(mol.intor("int1e_ovlp"))
    mf.mo_coeff, mf.mo_energy = vectors / np.sqrt(values), np.arange(mol.nao) - 15.5
    mf.mo_occ = 2.0 * (np.arange(mol.nao) < 15)
    mf.converged = True
    mark_canonical(mf)
    with pytest.raises(OutcoreError, match="free") as caught:
        MP2(mf, storage="disk", scratch=str(small_disk)).kernel()
    assert caught.value.errno == errno.ENOSPC


def test_unknown_storage_is_refused(water):
    with pytest.raises(OutcoreError, match=r"storage 'tape'.*no such word; density fitting has auto, disk"):
        ri.RHF(water, storage="tape")
    with pytest.raises(
        OutcoreError, match=r"storage 'mixed'.*does not have it; density fitting has auto, disk"
    ):
        ri.RHF(water, storage="mixed")


def test_what_is_kept_is_found_again_with_the_orbitals_of_pyscf(water_reference, tmp_path):
    """Each run makes them canonical, which rounds differently each time."""
    first = MP2(water_reference, checkpoint=tmp_path / "kept")
    energy = first.kernel()
    for _ in range(6):
        again = MP2(water_reference, checkpoint=tmp_path / "kept")
        assert again.kernel() == pytest.approx(energy, abs=1e-11)
        assert again.found == {"fitted"}


def test_pairs_of_integrals_that_were_made_again_are_not_believed(water_reference, tmp_path):
    kept = tmp_path / "kept"
    energy = MP2(water_reference, checkpoint=kept).kernel()
    with World("self") as world:
        pairs = DiskArray.open(world, kept / "pairs.all", read_only=False)
        pairs.acc(np.s_[0, 4, 4], np.array(0.25))
        pairs.flush(pairs.metadata)
        pairs.close()
        integrals = DiskArray.open(world, kept / "mp2.0", read_only=False)
        integrals.remove()
    assert MP2(water_reference, checkpoint=kept).kernel() == pytest.approx(energy, abs=1e-10)


def test_an_object_logs_auxiliary_sets_that_were_made_for_another_basis(capsys):
    mol = gto.M(atom="H 0 0 0; H 0 0 0.74", basis="sto-3g", verbose=3)
    with ri.RHF(mol) as mf:
        mf.kernel()
    captured = capsys.readouterr()
    assert "def2-svp-jkfit for sto-3g" in captured.out + captured.err
