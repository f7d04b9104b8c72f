"""Water in a small space."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def given():
    """Integrals of water: see `ci_water.integrals`."""
    import ci_water

    return ci_water.integrals()


@pytest.fixture(scope="session")
def energy(given):
    """The energy of the lowest singlet of `given` (Hartree), by PySCF."""
    import ci_water

    return ci_water.expected(given)[0]
