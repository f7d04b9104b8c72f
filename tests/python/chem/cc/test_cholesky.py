"""Cholesky decomposition of integrals: pivots first, then vectors by shells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import WATER

from outcore import OutcoreError, World
from outcore.chem.ri import cholesky
from outcore.chem.ri.cholesky import Cholesky

pyscf = pytest.importorskip("pyscf")

PLENTY = 1 << 30


def errors(mol: Any, vectors: Cholesky) -> float:
    """The largest error of an integral."""
    rows = np.concatenate([vectors.matrices(piece) for piece in range(len(vectors.cuts) - 1)])
    b = vectors.fit(rows.reshape(len(rows), -1))
    exact = mol.intor("int2e").reshape(b.shape[1], -1)
    return float(abs(b.T @ b - exact).max())


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7, 1e-11])
def test_integrals_are_right_within_any_tolerance(tolerance: float) -> None:
    mol = pyscf.M(atom=WATER, basis="6-31g*", verbose=0)
    with World("self") as world:
        vectors = Cholesky(world, mol, tolerance, PLENTY)
        assert tolerance / 1e4 < errors(mol, vectors) < 1.001 * tolerance + 1e-13


def test_vectors_that_do_not_fit_into_memory_lie_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    mol = pyscf.M(atom=WATER, basis="6-31g", cart=True, verbose=0)
    opened = []
    original = cholesky._core.ExclusiveFile

    def open_file(*arguments: Any, **options: Any) -> Any:
        opened.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(cholesky._core, "ExclusiveFile", open_file)
    with World("self") as world:
        large = Cholesky(world, mol, 1e-2, PLENTY)
        assert not opened
        small = Cholesky(world, mol, 1e-2, 16 * large.rank**2 + 1000)
        assert opened
        assert errors(mol, small) < 1.001e-2


RING = "".join(f"H {np.cos(a):.12f} {np.sin(a):.12f} 0; " for a in np.arange(6) * np.pi / 3)


def test_pivots_are_the_same_in_any_memory_and_with_any_rounding(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of equivalent atoms, whose integrals are equal but for rounding."""
    mol = pyscf.M(atom=RING, basis="6-31g", verbose=0)
    wanted = cholesky.search(mol, 1e-4, PLENTY, str(tmp_path))
    generator = np.random.default_rng(1)
    rows, diagonal = cholesky.Shells.rows, cholesky.Shells.diagonal

    def noisy(values: Any) -> Any:
        return values * (1 + 4e-15 * generator.normal(size=values.shape))

    monkeypatch.setattr(cholesky.Shells, "rows", lambda *given: noisy(rows(*given)))
    monkeypatch.setattr(cholesky.Shells, "diagonal", lambda *given: noisy(diagonal(*given)))
    least = 16 * len(wanted.m) ** 2 + 1000
    for memory in (PLENTY, PLENTY, 4 * least, 2 * least, least):
        found = cholesky.search(mol, 1e-4, memory, str(tmp_path))
        assert found.m.tolist() == wanted.m.tolist() and found.n.tolist() == wanted.n.tolist()


def test_a_factor_that_does_not_fit_is_refused_with_its_size() -> None:
    mol = pyscf.M(atom=WATER, basis="6-31g", verbose=0)
    with World("self") as world, pytest.raises(OutcoreError, match=r"whose factor takes 113 kB, but 20.0 kB"):
        Cholesky(world, mol, 1e-8, 20_000)
