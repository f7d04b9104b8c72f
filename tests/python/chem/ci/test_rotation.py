"""States in rotated orbitals, against PySCF."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from ci_cases import random_hamiltonian
from test_densities import random_states, theirs

from outcore.base.errors import OutcoreError
from outcore.chem.ci import rotation
from outcore.job.world import World

pytest.importorskip("pyscf")

IRREPS = [2, 0, 3, 0, 1, 2]
CASES = [((3, 3), 0, 1), ((3, 3), 1, -1), ((3, 2), 3, 0), ((1, 4), 1, 0), ((2, 0), 2, 0), ((6, 6), 0, 1)]


@pytest.fixture(scope="module")
def world():
    with World("self") as made:
        yield made


def rotations(h, kind):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(2):
        generator = rng.standard_normal((6, 6)) * (h.irreps[:, None] == h.irreps)
        u = scipy.linalg.expm(generator - generator.T) if kind != "permutation" else np.eye(6)
        if kind != "small":  # neighbours of one irrep change places
            u = u[:, [1, 0, 2, 4, 3, 5]]
        found.append(u)
    return found


@pytest.mark.parametrize(("electrons", "irrep", "parity"), CASES)
@pytest.mark.parametrize("kind", ["small", "large", "permutation"])
def test_states_are_rotated_as_those_of_pyscf(world, electrons, irrep, parity, kind):
    from pyscf.fci import addons

    h = random_hamiltonian(6, 1, IRREPS)
    solved = random_states(world, electrons, irrep, parity, 3)
    a, b = rotations(h, kind)
    b = a if parity else b
    found = rotation.rotated(solved, 1, h, a, b)
    expected = addons.transform_ci(theirs(solved, 1), electrons, (a, b))
    new = SimpleNamespace(states=found, space=solved.space)
    np.testing.assert_allclose(theirs(new, 0), expected, atol=1e-12 * abs(expected).max())
    if parity:
        dense = found.dense(0)
        np.testing.assert_array_equal(dense, parity * dense.T)


def test_what_cannot_be_rotated_is_refused(world):
    h = random_hamiltonian(6, 1, IRREPS)
    solved = random_states(world, (3, 3), 0, 1, 3)
    mixed = np.eye(6)[:, ::-1]
    with pytest.raises(OutcoreError, match="mixes irreps"):
        rotation.rotated(solved, 0, h, mixed, mixed)
    a, b = rotations(h, "small")
    with pytest.raises(OutcoreError, match="one rotation for both spins"):
        rotation.rotated(solved, 0, h, a, b)
    singular = np.diag([1.0, 1, 1, 0, 1, 1])
    with pytest.raises(OutcoreError, match="singular"):
        rotation.rotated(solved, 0, h, singular, singular)
