"""The search recovers if products of vectors with H have become wrong."""

import pytest
from mrci_molecules import mean_field

from outcore.chem.mrci import MRCI, solver

NITROGEN = {"frozen": 1, "inactive": 0, "active": 5, "comm": None}


@pytest.fixture
def quartet():
    return mean_field("N 0 0 0", "6-31g", "D2h", spin=3)


def lowest(atom, **given):
    with MRCI.from_mean_field(atom, spin=3, irrep="Au", **NITROGEN, **given) as ci:
        return ci.kernel(), ci.found.iterations


def test_errors_of_directions_of_converged_roots_make_no_states(quartet):
    """Two doublets converge long before the third root, which a quartet below may replace. The smallest space
    must reject their directions, which depend on the others except for rounding."""
    given = {"spin": 1, "irrep": "Au", "roots": 3}
    found = []
    for vectors in (3, 6):
        with MRCI.from_mean_field(quartet, vectors=vectors, **NITROGEN, **given) as ci:
            found.append(ci.kernel())
            assert ci.converged and ci.spin_square(2) == pytest.approx(0.75, abs=1e-6)
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_wrong_products_are_made_anew(quartet, monkeypatch):
    expected, _ = lowest(quartet)
    correct = solver.Search.correct

    def spoil(self):
        correct(self)
        if len(self.iterations) == 4:
            for block in range(len(self.layout.blocks)):
                self._multiplied[0].write(block, 1.5 * self._multiplied[0].read(block) - 1e-2)

    monkeypatch.setattr(solver.Search, "correct", spoil)
    assert lowest(quartet)[0] == pytest.approx(expected, abs=1e-9)


def test_no_root_converges_while_its_product_may_be_wrong(quartet, monkeypatch):
    """Sums that may be wrong by more than the tolerance are not trusted: H is applied to the states again."""
    expected, without = lowest(quartet)
    asked = solver.Search.unconverged

    def doubt(self):
        if len(self.iterations) == len(without):
            self.errors[0] = 1e-3
        return asked(self)

    monkeypatch.setattr(solver.Search, "unconverged", doubt)
    energy, iterations = lowest(quartet)
    assert len(iterations) > len(without)
    assert energy == pytest.approx(expected, abs=1e-9)
    # Not either if nothing is left but to say so.
    with MRCI.from_mean_field(quartet, spin=3, irrep="Au", max_cycle=len(without), **NITROGEN) as ci:
        ci.kernel()
        assert not ci.converged
