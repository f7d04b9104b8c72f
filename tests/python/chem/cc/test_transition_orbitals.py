"""Natural transition orbitals: pairs of a hole and a particle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from cc_support import mean_field, open_mean_field
from eom_support import TIGHT, Determinants

from outcore.chem.cc import CCSD
from outcore.chem.cc.excited import transition_orbitals

Values = np.ndarray[Any, np.dtype[Any]]

FOUR = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2"
FIVE = (f"{FOUR}; H 1.8 0.9 0.4", 0, 1)


@pytest.fixture(scope="module")
def references() -> dict[str, Any]:
    return {"four": mean_field(FOUR, "sto-3g"), "five": open_mean_field("UHF", FIVE, "sto-3g")}


Found = Callable[[str], tuple[Any, Any]]
"""Of a reference: the calculation, and the properties of two states."""


@pytest.fixture(scope="module")
def found(references: dict[str, Any]) -> Iterator[Found]:
    made = list[CCSD]()

    @cache
    def properties(name: str) -> tuple[Any, Any]:
        cc = CCSD(references[name], 0, comm=None, memory="1GB", threads=1, **TIGHT)
        made.append(cc)
        cc.kernel()
        return cc, cc.states("ee", nroots=2, residual=1e-8).properties()

    yield properties
    for each in made:
        each.close()


@pytest.fixture(autouse=True)
def every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair is left out."""
    monkeypatch.setattr(transition_orbitals, "_LEAST", 0.0)


@pytest.mark.parametrize("name", ["four", pytest.param("five", marks=pytest.mark.long)])
@pytest.mark.parametrize("root", [0, 1])
def test_pairs_add_up_to_the_transition_density(found: Found, name: str, root: int) -> None:
    """sum_k sqrt(w_k) |particle k><hole k| is the density, scaled to the norm one of all spins."""
    _, properties = found(name)
    orbitals = transition_orbitals.of_root(properties, root)
    densities = properties.transition_densities(root)
    norm = np.sqrt(sum(np.vdot(each, each) for each in densities))
    assert sum(float(each.weights.sum()) for each in orbitals.spins) == pytest.approx(1.0, abs=1e-12)
    for spin, density, c in zip(orbitals.spins, densities, properties.orbitals_of_spins, strict=True):
        assert (np.diff(spin.weights) <= 0).all()
        rebuilt = (spin.particles * np.sqrt(spin.weights)) @ spin.holes.T
        assert abs(rebuilt - c @ (density / norm) @ c.T).max() < 1e-12


@pytest.mark.parametrize("name", ["four", "five"])
def test_holes_and_particles_are_orthonormal(found: Found, name: str) -> None:
    cc, properties = found(name)
    overlap = cc.mol.intor("int1e_ovlp")
    for spin in transition_orbitals.of_root(properties, 0).spins:
        for each in (spin.holes, spin.particles):
            assert abs(each.T @ overlap @ each - np.eye(each.shape[1])).max() < 1e-10


def test_particles_are_those_of_the_density_of_all_determinants(
    references: dict[str, Any], found: Found
) -> None:
    """<k|E_pq|0> creates an electron in p, so its left singular vectors are particles."""
    cc, properties = found("four")
    exact = Determinants(references["four"], *cc.amplitudes())
    orbitals = transition_orbitals.of_root(properties, 0).spins[0]
    up, down = exact.density(1, 0), exact.density(0, 1).T
    c = properties.orbitals_of_spins[0]
    inverse = np.linalg.inv(c)
    particle, hole = inverse @ orbitals.particles[:, 0], inverse @ orbitals.holes[:, 0]
    for density in (up, down):
        left, _, right = np.linalg.svd(density)
        assert abs(left[:, 0] @ particle) > 0.99
        assert abs(right[0] @ hole) > 0.99
