"""Frozen, inactive and active orbitals by number, by list and for each irrep."""

from __future__ import annotations

import numpy as np
import pytest
from mrci_molecules import WATER, mean_field

from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI
from outcore.chem.mrci.spaces import Asked, GivenOrbitals, choose

pytest.importorskip("pyscf")

IRREPS = {"A": 0, "B": 1}
LABELS = np.array([0, 0, 1, 0, 1, 0, 1, 0])  # of eight orbitals, of which three are doubly occupied


def spaces(filled=3, single=0, **asked):
    """Frozen, inactive, active, external and deleted orbitals, and whether a note is made."""
    given = GivenOrbitals(np.arange(8), filled, single)
    found = choose(None, Asked(**asked), given, LABELS, IRREPS.__getitem__)
    each = (found.frozen, found.inactive, found.active, found.external, found.left_out)
    return *(positions.tolist() for positions in each), len(found.notes)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"frozen": 1, "inactive": 1, "active": 3}, ([0], [1], [2, 3, 4], [5, 6, 7], [], 0)),
        ({"frozen": "1", "inactive": "1", "active": "3"}, ([0], [1], [2, 3, 4], [5, 6, 7], [], 0)),
        ({"frozen": [1], "inactive": 1, "active": 3}, ([1], [0], [2, 3, 4], [5, 6, 7], [], 0)),
        ({"frozen": [1, 4], "inactive": 1, "active": 2}, ([1], [0], [2, 3], [5, 6, 7], [4], 0)),
        ({"frozen_virtual": 2, "inactive": 3}, ([], [0, 1, 2], [], [3, 4, 5], [6, 7], 0)),
        ({"frozen_virtual": [3], "active": 8 - 1}, ([], [], [0, 1, 2, 4, 5, 6, 7], [], [3], 0)),
        ({"frozen": 1, "active": "2,4,6"}, ([0], [1], [2, 4, 6], [3, 5, 7], [], 0)),
        ({"active": [1, 5], "inactive": [0]}, ([], [0, 2], [1, 5], [3, 4, 6, 7], [], 1)),
        ({"active": [1, 5], "inactive": 2}, ([], [0, 2], [1, 5], [3, 4, 6, 7], [], 0)),
        ({"inactive": "0-1", "active": 3}, ([], [0, 1], [2, 3, 4], [5, 6, 7], [], 0)),
        ({"frozen": 1, "active": "A=2,B=2"}, ([0], [], [1, 2, 3, 4], [5, 6, 7], [], 0)),
        ({"inactive": "A=1", "active": {"B": 2, "A": 1}}, ([], [0], [1, 2, 4], [3, 5, 6, 7], [], 0)),
    ],
)
def test_spaces(asked, expected):
    assert spaces(**asked) == expected


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"active": [0, 9]}, "there is no orbital 9: they are 0 to 7"),
        ({"active": [4, 4]}, "orbital 4 is listed more than once"),
        ({"active": [0, 4], "frozen": 1}, "orbital 0 is frozen as well"),
        ({"active": [2], "inactive": [2]}, "orbital 2 is inactive and active"),
        ({"active": [2], "inactive": [3]}, "orbital 3 is not doubly occupied"),
        (
            {"active": 3, "inactive": 6},
            "6 inactive and 3 active orbitals, but there are 8 above 0 frozen ones",
        ),
        ({"active": [2], "inactive": 3}, "3 inactive and 1 active orbitals"),
        ({"active": {"B": 4}}, "4 active orbitals of B, but 3 are left"),
        ({"active": "some"}, "'some' is neither a number"),
        ({"active": [2, 4], "single": 1}, r"orbital 3 \(from 0\) holds one electron"),
        ({"active": 2, "inactive": 2, "frozen_virtual": [3], "single": 1}, r"orbital 3 \(from 0\) holds one"),
    ],
)
def test_what_is_refused(asked, message):
    with pytest.raises(OutcoreError, match=message):
        spaces(**asked)


def water(**given):
    return MRCI.from_mean_field(mean_field(WATER), comm=None, **given)


@pytest.mark.parametrize("integrals", ["conventional", "cholesky"])
def test_frozen_lists_are_those_of_pyscf(integrals):
    """With one reference; densities have the order of the remaining orbitals."""
    from pyscf import ci as pyscf_ci

    theirs = pyscf_ci.CISD(mean_field(WATER), frozen=[0, 2, 11]).run(conv_tol=1e-12)
    wanted = theirs.make_rdm1(ao_repr=False)
    left = np.setdiff1d(np.arange(13), [0, 2, 11])
    given = {"frozen": [0, 2], "frozen_virtual": [11], "inactive": 3, "active": 0, "residual": 1e-7}
    with water(**given, integrals=integrals, tolerance=1e-10) as ci:
        assert ci.kernel() == pytest.approx(theirs.e_tot, abs=5e-9)
        np.testing.assert_allclose(ci.make_rdm1(), wanted[np.ix_(left, left)], atol=1e-5)


def test_active_orbitals_of_irreps():
    """As by the list of the same orbitals; also for a file of integrals."""
    mf = mean_field(WATER)
    with water(frozen=1, active="A1=3,B2=2,B1=1", inactive=0) as ci:
        labels = [ci.orbitals.group.irreps[each] for each in ci.orbitals.orbitals.internal]
        found = ci.kernel()
    assert sorted(labels) == ["A1"] * 3 + ["B1"] + ["B2"] * 2
    names = np.array([mf.mol.irrep_name[mf.mol.irrep_id.index(each)] for each in mf.mo_coeff.orbsym])
    chosen = [
        np.flatnonzero(names == name)[skip:][:n]
        for name, n, skip in (("A1", 3, 1), ("B2", 2, 0), ("B1", 1, 0))
    ]
    with water(frozen=1, active=np.concatenate(chosen).tolist()) as ci:
        assert ci.kernel() == pytest.approx(found, abs=1e-10)


def test_lists_of_a_file(tmp_path):
    from pyscf.tools import fcidump

    path = str(tmp_path / "FCIDUMP")
    fcidump.from_scf(mean_field(WATER), path, tol=1e-15)
    given = {"frozen": [0, 12], "inactive": [2], "active": "1,3-6"}
    with MRCI.from_fcidump(path, comm=None, **given) as file, water(**given) as ci:
        assert file.kernel() == pytest.approx(ci.kernel(), abs=1e-9)


def test_lists_beside_a_casci_object():
    from pyscf import mcscf

    mc = mcscf.CASCI(mean_field(WATER), 4, 4).run(verbose=0)
    with MRCI(mc, frozen=[1], frozen_virtual=1, comm=None) as ci:
        choice = ci.orbitals.choice
        assert (choice.frozen, choice.inactive, choice.active, choice.left_out) == (1, 2, 4, 1)
        assert ci.kernel() < mc.e_tot - 0.01
        assert ci.e_reference == pytest.approx(mc.e_tot, abs=1e-9)
    with pytest.raises(OutcoreError, match=r"orbital 4 \(from 0\) is active in the CASCI object"):
        MRCI(mc, frozen=[4], comm=None)
