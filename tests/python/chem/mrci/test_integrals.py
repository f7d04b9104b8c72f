"""Integrals between external pairs: in memory, read from disk, made from three-index factors."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from mrci_dense import Case
from mrci_molecules import WATER, mean_field

from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI, integrals, tables
from outcore.chem.mrci.records import Orbitals
from outcore.job.world import World

pytest.importorskip("pyscf")

ENERGY = -76.1160029238
CASES = [
    {"internal": [0, 1, 2, 3], "external": [0, 0, 1, 2, 2, 3], "groups": 4, "electrons": (3, 2), "irrep": 2},
    {"internal": [0, 0, 0], "external": [0, 0, 0], "groups": 1, "electrons": (2, 2), "shift": 0.3},
]


def water(**settings):
    settings = {"comm": None, "inactive": 1, "active": 6} | settings
    return MRCI.from_mean_field(mean_field(WATER), **settings)


@pytest.mark.parametrize("slab", [1, 7, 1000])
@pytest.mark.parametrize("case", CASES)
def test_products_read_from_disk_what_is_in_memory(case, slab, monkeypatch):
    monkeypatch.setattr(tables, "_SLAB_ELEMENTS", slab)
    case = Case(**case)
    x = np.random.default_rng(0).standard_normal(case.space.size)
    wanted, shift = case.apply(x), case.kernel
    with World("self") as world:
        case.kernel = case.made(spin_shift=0.3 if case.orbitals.groups == 1 else 0.0)
        array = tables.on_disk(world, case.kernel, case.integrals.external, len(case.orbitals.external), 2)
        assert case.kernel.on_disk and array.nbytes == tables.table_bytes(case.orbitals)
        assert case.kernel.integral_bytes == shift.integral_bytes - array.nbytes
        np.testing.assert_allclose(case.apply(x), wanted, atol=1e-12)
        array.close()


def test_without_tables_there_is_no_product():
    case = Case(**CASES[1])
    case.kernel = case.made()
    with pytest.raises(RuntimeError, match="there are no tables of integrals"):
        case.apply(np.zeros(case.space.size))


@pytest.mark.parametrize(
    "more", [{}, pytest.param({"vector_memory": 200_000}, marks=pytest.mark.long), {"threads": 3}]
)
def test_streamed_energies_are_those_in_memory(more):
    """If not all integrals fit, they are decomposed to rounding."""
    with water(integral_memory=0, **more) as ci:
        assert ci.orbitals.two.title.endswith("tolerance 1e-11 Eh")
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.streamed_bytes == tables.table_bytes(ci.orbitals.orbitals)
    with water() as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.streamed_bytes == 0


def whole_of(ci, path):
    """The same integrals as a file."""
    from pyscf.tools import fcidump

    two, n, u = ci.orbitals.two, ci.orbitals.count, ci.orbitals.choice.internal
    packed = np.zeros((n * (n + 1) // 2,) * 2)
    inner, outer = integrals.internal_pairs(u, n), integrals.external_pairs(u, n)
    packed[inner] = two.rows
    packed[:, inner] = two.rows.T
    for c in range(n - u):
        of_c = integrals._pairs_with(c, n - u)
        packed[np.ix_(outer[of_c], outer)] = two.external.column(c)
    electrons = 2 * ci.orbitals.electrons[0]
    fcidump.from_integrals(
        str(path), ci.orbitals.one, packed, n, electrons, ci.orbitals.core_energy, tol=1e-16
    )


@pytest.mark.parametrize("kind", ["ri", "cholesky"])
def test_factors_and_the_integrals_that_they_make(kind, tmp_path):
    """The field of the factors includes frozen orbitals."""
    given = {"inactive": 0, "active": 6, "frozen": 1}
    kinds = {"ri": {"auxbasis": "cc-pvdz-ri"}, "cholesky": {"tolerance": 1e-4}}
    with water(integrals=kind, **kinds[kind], integral_memory=0, **given) as ci:
        whole_of(ci, tmp_path / "FCIDUMP")
        energy = ci.kernel()
        assert ci.kernel() == pytest.approx(energy, abs=1e-10)
        assert ci.streamed_bytes > 0
    del given["frozen"]
    with MRCI.from_fcidump(tmp_path / "FCIDUMP", comm=None, **given) as ci:
        assert ci.kernel() == pytest.approx(energy, abs=1e-9)
    with water(inactive=0, active=6, frozen=1) as ci:
        assert 1e-7 < abs(ci.kernel() - energy) < 1e-3


def test_cisd_of_pyscf_with_the_same_fitting():
    from pyscf import ci as pyscf_ci
    from pyscf import gto, scf

    mol = gto.M(atom=WATER, basis="6-31g", symmetry=True, verbose=0)
    mf = scf.RHF(mol).density_fit(auxbasis="weigend").run(conv_tol=1e-12)
    theirs = pyscf_ci.CISD(mf).run(conv_tol=1e-12)
    with MRCI.from_mean_field(mf, inactive=5, active=0, comm=None, integral_memory=0) as ci:
        assert ci.orbitals.two.title == "density fitting of the SCF"
        assert ci.kernel() == pytest.approx(theirs.e_tot, abs=1e-9)
        assert ci.e_reference == pytest.approx(mf.e_tot, abs=1e-9)


def test_fitting_is_of_what_differs_from_the_scf():
    """As in coupled cluster: PySCF's CISD with the Fock matrix of its SCF and fitted integrals."""
    from pyscf import ci as pyscf_ci
    from pyscf import df, scf

    mf = mean_field(WATER)
    factors = df.DF(mf.mol, "cc-pvdz-ri").build()._cderi
    fitted = scf.RHF(mf.mol)
    fitted._eri, fitted.mo_coeff, fitted.mo_occ = factors.T @ factors, mf.mo_coeff, mf.mo_occ
    fitted.mo_energy, fitted.e_tot, fitted.converged = mf.mo_energy, mf.e_tot, True
    theirs = pyscf_ci.CISD(fitted)
    theirs.conv_tol = 1e-12
    integrals_of = theirs.ao2mo(mf.mo_coeff)
    integrals_of.fock, integrals_of.mo_energy = np.diag(mf.mo_energy), mf.mo_energy
    correlation = theirs.kernel(eris=integrals_of)[0]
    with water(integrals="ri", auxbasis="cc-pvdz-ri", inactive=5, active=0) as ci:
        assert ci.kernel() - mf.e_tot == pytest.approx(correlation, abs=1e-9)
        assert ci.e_reference == pytest.approx(mf.e_tot, abs=1e-9)


def test_fitting_of_open_shells():
    """The determinant of ROHF keeps its energy, frozen orbitals or not."""
    mf = mean_field("N 0 0 0; H 0 0.8 0.64; H 0 -0.8 0.64", spin=1)
    given = {"active": 1, "comm": None}
    with MRCI.from_mean_field(mf, inactive=4, **given) as ci:
        wanted = ci.kernel()
    fitting = {"integrals": "ri", "auxbasis": "cc-pvdz-ri"}
    with MRCI.from_mean_field(mf, inactive=4, **given, **fitting) as ci:
        assert 1e-8 < abs(ci.kernel() - wanted) < 3e-4
        assert ci.e_reference == pytest.approx(mf.e_tot, abs=1e-9)
    with MRCI.from_mean_field(mf, frozen=1, inactive=3, **given, **fitting) as ci:
        ci.kernel()
        assert ci.e_reference == pytest.approx(mf.e_tot, abs=1e-9)


@pytest.mark.parametrize("counts", [[7], [5, 3], [7, 0, 2, 4], [9, 1, 4, 4, 1, 9, 4, 4]])
def test_tables_take_at_least_what_is_known_before_their_irreps(counts):
    random = np.random.default_rng(len(counts))
    for others in range(1, sum(counts) // 2):
        least = tables.min_table_bytes(counts, others)
        orbitals = np.repeat(np.arange(len(counts)), counts)
        for _ in range(20):
            left = np.sort(random.permutation(orbitals)[others:])
            whole = tables.table_bytes(Orbitals((), tuple(left.tolist()), len(counts)))
            assert least <= whole
    assert tables.min_table_bytes(counts, 0) == tables.table_bytes(
        Orbitals((), tuple(orbitals.tolist()), len(counts))
    )


def test_integrals_too_large_for_the_disk_are_refused_before_the_start(monkeypatch):
    monkeypatch.setattr(tables, "table_bytes", lambda _: 1 << 60)
    monkeypatch.setattr("outcore.chem.mrci.transform.table_bytes", lambda _: 1 << 60)
    with pytest.raises(OutcoreError, match="arrays take 1152922 TB") as caught:
        water(integral_memory=0)
    assert caught.value.errno == errno.ENOSPC


def test_integrals_become_symmetric_in_place(monkeypatch):
    monkeypatch.setattr(integrals, "_ROWS", 4)
    values = np.random.default_rng(1).random((10, 10))
    expected = (values + values.T) / 2
    change = integrals.symmetrize(found := values.copy())
    np.testing.assert_array_equal(found, expected)
    assert change == pytest.approx(abs(values - expected).max())


def test_factors_larger_than_memory():
    with pytest.raises(
        OutcoreError, match="three-index integrals of 100 functions over 20 orbitals"
    ) as caught:
        integrals.check_factors(100, 20, 1000)
    assert caught.value.errno == errno.ENOMEM


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"integrals": "thc"}, "integrals 'thc' are none of conventional, ri, cholesky"),
        ({"tolerance": 0.0}, "a tolerance of 0 Hartree"),
        ({"integral_memory": -1}, "-1 bytes of memory for integrals"),
        ({"integrals": "ri", "auxbasis": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be(settings, message):
    with pytest.raises(OutcoreError, match=message):
        water(**settings)
