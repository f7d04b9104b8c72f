"""A disk array as `_cderi` of unchanged PySCF."""

import numpy as np
import pytest
from pyscf import cc, df, gto, mp, scf

import outcore
from outcore.chem import ri
from outcore.interfaces.pyscf import as_cderi, fitted_tensor


@pytest.fixture(scope="module")
def mol():
    return gto.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", basis="6-31g*", verbose=0)


@pytest.fixture(scope="module")
def given(mol):
    """PySCF's own tensor, and the same in a disk array."""
    tensor = df.DF(mol, "cc-pvdz-jkfit").build()._cderi
    with outcore.World(None) as world:
        array = outcore.DiskArray(world, tensor.shape)
        array[:] = tensor
        yield tensor, array


def on(mol, cderi, kind=scf.RHF):
    mf = kind(mol).density_fit("cc-pvdz-jkfit")
    mf.with_df._cderi = cderi
    mf.conv_tol = 1e-11
    return mf


def test_hartree_fock_is_that_of_the_tensor_in_memory(mol, given):
    tensor, array = given
    for kind in (scf.RHF, scf.UHF):
        wanted, found = on(mol, tensor, kind).run(), on(mol, as_cderi(array), kind).run()
        assert found.e_tot == pytest.approx(wanted.e_tot, abs=1e-9)
        assert found.with_df.get_naoaux() == len(tensor)


def test_mp2_and_coupled_cluster_read_it(mol, given):
    tensor, array = given
    wanted, found = on(mol, tensor).run(), on(mol, as_cderi(array)).run()
    assert mp.dfmp2.DFMP2(found).run().e_corr == pytest.approx(mp.dfmp2.DFMP2(wanted).run().e_corr, abs=1e-9)
    assert cc.CCSD(found).run().e_corr == pytest.approx(cc.CCSD(wanted).run().e_corr, abs=1e-7)


def test_integrals_of_a_fitting_are_packed_as_pyscf_packs_them(mol, tmp_path):
    with outcore.World(None) as world:
        fitting = ri.DensityFitting(mol, "cc-pvdz-jkfit", comm=world, screening=0.0)
        array = fitted_tensor(world, fitting, tmp_path / "cderi")
        fitting.close()
        wanted = df.DF(mol, "cc-pvdz-jkfit").build()._cderi
        # Rows are fixed but for a rotation: products of two are the integrals.
        found = array.to_numpy()
        np.testing.assert_allclose(found.T @ found, wanted.T @ wanted, atol=1e-8)
        mf = on(mol, as_cderi(array)).run()
        assert mf.e_tot == pytest.approx(on(mol, wanted).run().e_tot, abs=1e-8)
        array.close()


@pytest.mark.parametrize(("shape", "dtype"), [((4, 5), "float64"), ((4, 6), "float32"), ((6,), "float64")])
def test_another_form_is_refused(shape, dtype):
    with (
        outcore.World(None) as world,
        outcore.DiskArray(world, shape, dtype) as array,
        pytest.raises(outcore.OutcoreError, match="naux by n"),
    ):
        as_cderi(array)
    with pytest.raises(outcore.OutcoreError, match="a DiskArray is needed, not ndarray"):
        as_cderi(np.zeros((4, 6)))
