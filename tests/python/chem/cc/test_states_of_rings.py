"""States of pyridine and of the benzene cation beside PySCF's, from exact integrals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from eom_support import TIGHT

from outcore.chem.cc import CCSD

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

NOTHING = 1e-8  # Hartree: the energy of no state
PYRIDINE = """N 0 0 1.4247; C 0 1.1402 0.7206; C 0 -1.1402 0.7206; C 0 1.1965 -0.6722; C 0 -1.1965 -0.6722
C 0 0 -1.3814; H 0 2.0562 1.3037; H 0 -2.0562 1.3037; H 0 2.1522 -1.1835; H 0 -2.1522 -1.1835; H 0 0 -2.4660"""


def benzene() -> list[Any]:
    """Slightly longer along one axis, so that the hole of the cation is in one orbital."""
    ring = [(np.cos(angle), np.sin(angle)) for angle in np.pi / 3 * np.arange(6)]
    return [
        (element, (1.03 * radius * x, radius * y, 0.0))
        for element, radius in (("C", 1.395), ("H", 2.482))
        for x, y in ring
    ]


def peer(mf: Any) -> Any:
    from pyscf import cc

    found = cc.CCSD(mf).set_frozen()
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-11, 1e-9, 200
    found.kernel()
    assert found.converged
    return found


def lowest(eom: Any, roots: int, count: int) -> Any:
    """The lowest states of PySCF, of `count` that it computes. It finds vectors that are no states, too."""
    eom.conv_tol, eom.max_cycle, eom.max_space = 1e-10, 200, 40
    found = np.atleast_1d(eom.kernel(nroots=count)[0])[np.atleast_1d(eom.converged)]
    return np.sort(found[abs(found) > NOTHING])[:roots]


def mean_field(kind: str, **molecule: Any) -> Any:
    import pyscf

    mf = getattr(pyscf.M(basis="sto-3g", verbose=0, **molecule), kind)()
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
    mf.kernel()
    assert mf.converged
    return mf


@pytest.mark.parametrize(
    ("name", "of_peer"),
    [("eomee_ccsd_singlet", "EOMEESinglet"), ("eomee_ccsd_triplet", "EOMEETriplet"), ("ipccsd", "EOMIP")],
)
def test_pyridine(name: str, of_peer: str) -> None:
    from pyscf.cc import eom_rccsd

    mf = mean_field("RHF", atom=PYRIDINE)
    expected = lowest(getattr(eom_rccsd, of_peer)(peer(mf)), 3, 6)
    with CCSD(mf, "auto", comm=None, memory="2GB", ladder="rebuild", **TIGHT) as cc:
        cc.kernel()
        energies, states = getattr(cc, name)(nroots=3, residual=1e-7)
    assert states.converged.all()
    assert np.sort(energies) == pytest.approx(expected, abs=1e-7)


def test_the_benzene_cation() -> None:
    from pyscf.cc import eom_uccsd

    mf = mean_field("UHF", atom=benzene(), charge=1, spin=1)
    expected = lowest(eom_uccsd.EOMEESpinKeep(peer(mf)), 3, 6)
    with CCSD(mf, "auto", comm=None, memory="2GB", ladder="rebuild", **TIGHT) as cc:
        cc.kernel()
        energies, states = cc.eomee_ccsd(nroots=3, residual=1e-7)
    assert states.converged.all()
    assert np.sort(energies) == pytest.approx(expected, abs=1e-7)
