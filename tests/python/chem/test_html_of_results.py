"""Notebook output of methods, before and after they have run."""

import pyscf
import pytest

from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI
from outcore.chem.mp2 import MP2
from outcore.chem.mrci import MRCI


@pytest.fixture(scope="module")
def water():
    mol = pyscf.M(atom="O 0 0 0; H 0 0 0.96; H 0.93 0 -0.24", basis="sto-3g", verbose=0)
    return mol.RHF().run(conv_tol=1e-11)


def test_hartree_fock(water):
    with hf.RHF(water.mol, storage="disk", error=1e-8) as mf:
        assert "not run" in mf._repr_html_()
        mf.kernel()
        shown = mf._repr_html_()
        assert f"{mf.e_tot:.10f} Eh" in shown and "yes" in shown
        error = mf.energy_error()
        assert f"{error.bound:.1e} Eh" in error._repr_html_() and "1.0e-08 Eh" in error._repr_html_()


def test_fitted_hartree_fock(water):
    with ri.RHF(water.mol, "def2-universal-jkfit") as mf:
        mf.kernel()
        assert f"{mf.e_tot:.10f} Eh" in mf._repr_html_()


def test_coupled_cluster(water):
    with CCSD(water, integrals="conventional") as cc:
        assert "not run" in cc._repr_html_()
        assert "Plan of coupled cluster" in cc.prepare()._repr_html_()
        cc.kernel()
        assert f"{cc.e_tot:.10f} Eh" in cc._repr_html_() and "(T)" not in cc._repr_html_()
        cc.ccsd_t()
        assert f"{cc.e_tot + cc.e_t:.10f} Eh" in cc._repr_html_()


def test_coupled_cluster_that_has_not_converged(water):
    with CCSD(water, integrals="conventional", max_cycle=1) as cc:
        cc.kernel()
        assert ">no<" in cc._repr_html_()


def test_another_method_of_coupled_cluster_has_its_own_name(water):
    with CCSD(water, integrals="conventional", method="dcsd") as cc:
        cc.kernel()
        shown = cc._repr_html_()
        assert "DCSD energy" in shown and ">CCSD" not in shown


def test_mp2(water):
    mp2 = MP2(water, auxbasis="cc-pvdz-ri")
    assert "not run" in mp2._repr_html_()
    mp2.prepare()  # a forecast needs the plan
    assert "estimate" in mp2.forecast()._repr_html_()
    mp2.kernel()
    assert f"{mp2.e_tot:.10f} Eh" in mp2._repr_html_()
    mp2.close()


def test_full_ci(water):
    with FCI(water, roots=2) as ci:
        assert "not run" in ci._repr_html_()
        assert "441" in ci.forecast()._repr_html_()
        ci.kernel()
        shown = ci._repr_html_()
        assert f"{ci.e_tot[1]:.10f} Eh" in shown and "energy of root 2" in shown


def test_multireference_ci(water):
    mc = pyscf.mcscf.CASSCF(water, 2, 2).run()
    with MRCI(mc) as ci:
        assert "not run" in ci._repr_html_()
        ci.kernel()
        assert f"{ci.e_tot:.10f} Eh" in ci._repr_html_()
        assert f"{ci.corrections().davidson:.8f} Eh" in ci.corrections()._repr_html_()
