"""Methods report on the stream of their molecule, as `verbose` asks for, and to Python's logging."""

import io
import logging
from contextlib import closing

import pyscf
import pytest

import outcore
from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI, FCISolver
from outcore.chem.mp2 import MP2
from outcore.chem.mrci import MRCI

AUXILIARY = "def2-universal-jkfit"


@pytest.fixture(scope="module")
def lithium_hydride():
    mol = pyscf.M(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", verbose=0)
    return mol.RHF().run(conv_tol=1e-11)


@pytest.fixture
def scf(lithium_hydride):
    """A mean field with its own stream."""
    mf = lithium_hydride.copy()
    mf.stdout = io.StringIO()
    return mf


def methods():
    return [
        pytest.param(lambda mf: CCSD(mf, integrals="conventional"), "E(CCSD) = ", "cycle = 1  ", id="ccsd"),
        pytest.param(lambda mf: MP2(mf, auxbasis="cc-pvdz-ri"), "E(RI-MP2) = ", "RI-MP2: 2 x 4", id="mp2"),
        pytest.param(FCI, "E(full CI) = ", "cycle = 1  root 1", id="fci"),
        pytest.param(
            lambda mf: MRCI.from_mean_field(mf, active=2), "E(MRCI) = ", "cycle = 1  root 1", id="mrci"
        ),
    ]


@pytest.mark.parametrize("make, result, step", methods())
@pytest.mark.parametrize("verbose", [0, 3, 4])
def test_verbose_says_what_the_stream_gets(scf, make, result, step, verbose):
    scf.verbose = verbose
    with closing(make(scf)) as method:
        method.kernel()
    said = scf.stdout.getvalue()
    assert (result in said) == (verbose >= 3) and (step in said) == (verbose >= 4)
    assert verbose > 0 or not said


@pytest.mark.parametrize("make, result, step", methods())
def test_logging_has_all_lines_of_a_silent_object(scf, make, result, step, caplog):
    with caplog.at_level(logging.INFO, "outcore"), closing(make(scf)) as method:
        method.kernel()
    assert {each.name.split(".")[0] for each in caplog.records} == {"outcore"}
    assert result in caplog.text and step in caplog.text and not scf.stdout.getvalue()


def test_an_object_may_be_silenced(scf):
    scf.verbose = 4
    with CCSD(scf, integrals="conventional") as cc:
        cc.verbose = 0
        cc.kernel()
    assert not scf.stdout.getvalue()


def test_triples_are_told(scf):
    scf.verbose = 3
    with CCSD(scf, integrals="conventional") as cc:
        cc.kernel()
        cc.ccsd_t()
        assert f"E(CCSD(T)) = {cc.e_tot + cc.e_t:.15g}" in scf.stdout.getvalue()


def test_iterations_that_do_not_converge_are_told_with_results(scf):
    scf.verbose = 3
    with CCSD(scf, integrals="conventional", max_cycle=1) as cc:
        cc.kernel()
    assert "CCSD not converged" in scf.stdout.getvalue()


def test_stored_integrals_are_told(lithium_hydride):
    mol = lithium_hydride.mol.copy()
    mol.verbose, mol.stdout = 4, io.StringIO()
    with hf.RHF(mol, comm=None) as mf:
        mf.kernel()
    assert "two-electron integrals: " in mol.stdout.getvalue()
    with ri.RHF(mol, AUXILIARY, comm=None) as fitted:
        fitted.kernel()
    assert "density fitting: " in mol.stdout.getvalue()


def test_a_solver_of_casscf_tells_its_searches_a_level_later(scf):
    said = {}
    for verbose in (3, 4):
        mc = pyscf.mcscf.CASCI(scf, 2, 2)
        mc.fcisolver = FCISolver(scf.mol)
        mc.fcisolver.verbose, mc.fcisolver.stdout = verbose, io.StringIO()
        mc.kernel()
        said[verbose] = mc.fcisolver.stdout.getvalue()
    assert "E(full CI)" not in said[3] and "E(full CI)" in said[4]


@pytest.mark.parametrize(
    "make",
    [
        lambda mf: CCSD(mf, memry="1GB"),
        lambda mf: MP2(mf, memry="1GB"),
        lambda mf: FCI(mf, memry="1GB"),
        lambda mf: FCI.from_fcidump("none", memry="1GB"),
        lambda mf: FCISolver(mf.mol, memry="1GB"),
        lambda mf: MRCI(mf, memry="1GB"),
        lambda mf: MRCI.from_mean_field(mf, active=2, memory_bytes=10**9),
        lambda mf: hf.RHF(mf.mol, memory_bytes=10**9),
        lambda mf: hf.UHF(mf.mol, memry="1GB"),
        lambda mf: ri.RHF(mf.mol, memry="1GB"),
        lambda mf: outcore.World("self", max_memory="1GB"),
        lambda mf: outcore.einsum("i,i->", [1.0], [1.0], memry="1GB"),
    ],
)
def test_a_wrong_name_of_the_memory_gets_the_right_one(lithium_hydride, make):
    with pytest.raises(TypeError, match="did you mean 'memory'"):
        make(lithium_hydride)


def test_attributes_that_are_not_there_get_the_one_that_was_meant(lithium_hydride):
    with CCSD(lithium_hydride, integrals="conventional") as cc:
        with pytest.raises(AttributeError, match="did you mean 'max_cycle'"):
            cc.max_cycles = 100
        with pytest.raises(outcore.OutcoreError, match="did you mean 'level_shift'"):
            cc.set(level_shft=0.3)
