"""The plans that statements of coupled cluster share."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.chem.cc import CCSD

pyscf = pytest.importorskip("pyscf")


def test_a_plan_for_an_array_times_itself_is_none_for_two() -> None:
    """Operands have the same form, but a plan for an array times itself may make half of a symmetric
    result."""
    mol = pyscf.M(atom="O 0 0 0; H 0 0.76 0.59; H 0 -0.76 0.59", basis="sto-3g", verbose=0)
    random = np.random.default_rng(5)
    one, other = random.random((2, 40, 6, 6))
    with CCSD(mol.RHF().density_fit().run(), comm=None, threads=1) as cc:
        room = cc.set_up().room
        before = len(room._plans)
        for right in (one, other, one):
            found = room.contract("Qki,Qlj->kilj", one, right)
            np.testing.assert_allclose(found, np.einsum("Qki,Qlj->kilj", one, right), rtol=1e-13)
        assert len(room._plans) == before + 2
