"""What is known of a mean-field method before it runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from outcore.chem import ri
from outcore.chem.mean_field import expected_cycles, gradient

pyscf = pytest.importorskip("pyscf")


def tolerances(energy: float, of_gradient: float | None, most: int = 50) -> SimpleNamespace:
    return SimpleNamespace(
        conv_tol=energy, conv_tol_grad=of_gradient, max_cycle=most, mol=SimpleNamespace(nelectron=40)
    )


def test_the_gradient_follows_the_energy_unless_it_is_given() -> None:
    assert gradient(tolerances(1e-8, None)) == pytest.approx(1e-4)
    assert gradient(tolerances(1e-8, 1e-6)) == 1e-6


def test_a_tighter_gradient_takes_more_cycles() -> None:
    expected = [expected_cycles(tolerances(1e-9, of_gradient)) for of_gradient in (1e-3, 1e-5, 1e-7)]
    assert expected == sorted(set(expected))


def test_no_more_cycles_are_expected_than_are_allowed() -> None:
    assert expected_cycles(tolerances(1e-9, 1e-7, most=4)) == 4


@pytest.mark.parametrize("of_gradient", [1e-4, 1e-7])
def test_an_scf_takes_about_the_expected_cycles(of_gradient: float) -> None:
    mol = pyscf.gto.M(
        atom="N 0 0 0; H 0 0.94 -0.4; H 0.81 -0.47 -0.4; F -0.81 -0.47 -0.4", basis="6-31g", verbose=0
    )
    with ri.RHF(mol, "def2-svp-jkfit", comm=None) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-9, of_gradient
        mf.kernel()
        assert 0.6 < mf.cycles / expected_cycles(mf) < 1.4
