"""One electron, whose states are those of its Hamiltonian, and no electron."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import integrals
from mrci_molecules import mean_field

from outcore.chem.mrci import MRCI

pytest.importorskip("pyscf")


@pytest.mark.parametrize("functional", ["ci", "acpf"])
def test_one_electron(tmp_path, functional):
    """The second root resembles no lower state of the references."""
    from pyscf import ao2mo
    from pyscf.tools import fcidump

    irreps = [0, 1, 0, 1, 0, 0]
    one, two = integrals(6, 3, irreps)
    path = str(tmp_path / "FCIDUMP")
    symmetry = [each + 1 for each in irreps]
    fcidump.from_integrals(
        path, one, ao2mo.restore(8, two, 6), 6, 1, nuc=0.5, ms=1, orbsym=symmetry, tol=1e-16
    )
    given = {"inactive": 0, "active": 3, "roots": 2, "functional": functional, "irrep": "1", "comm": None}
    with MRCI.from_fcidump(path, **given) as ci:
        found, density = ci.kernel(), ci.make_rdm1()
        assert ci.records.determinants == 4
    energies, orbitals = np.linalg.eigh(one[np.ix_([0, 2, 4, 5], [0, 2, 4, 5])])
    assert found == pytest.approx(energies[:2] + 0.5, abs=1e-9)
    wanted = np.zeros((6, 6))
    wanted[np.ix_([0, 2, 4, 5], [0, 2, 4, 5])] = np.outer(orbitals[:, 0], orbitals[:, 0])
    np.testing.assert_allclose(density, wanted, atol=1e-6)


@pytest.mark.parametrize("active", [0, 2])
def test_no_electron(active):
    mf = mean_field("He 0 0 0", "cc-pvdz")
    with MRCI.from_mean_field(mf, frozen=1, inactive=0, active=active, comm=None) as ci:
        assert ci.kernel() == pytest.approx(mf.e_tot, abs=1e-10)
        assert ci.converged and ci.reference_weight() == 1
        assert not ci.natural_orbitals().occupations.any() and ci.corrections().davidson == 0
