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
    """The largest error among the integrals."""
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
    """Equivalent atoms have integrals that are equal except for rounding."""
    mol = pyscf.M(atom=RING, basis="6-31g", verbose=0)
    wanted = cholesky.search(cholesky.Shells(mol), 1e-4, PLENTY, str(tmp_path))
    generator = np.random.default_rng(1)
    rows, diagonal = cholesky.Shells.rows, cholesky.Shells.diagonal

    def noisy(values: Any) -> Any:
        return values * (1 + 4e-15 * generator.normal(size=values.shape))

    monkeypatch.setattr(cholesky.Shells, "rows", lambda *given: noisy(rows(*given)))
    monkeypatch.setattr(cholesky.Shells, "diagonal", lambda *given: noisy(diagonal(*given)))
    least = 16 * len(wanted.m) ** 2 + 1000
    for memory in (PLENTY, PLENTY, 4 * least, 2 * least, least):
        found = cholesky.search(cholesky.Shells(mol), 1e-4, memory, str(tmp_path))
        assert found.m.tolist() == wanted.m.tolist() and found.n.tolist() == wanted.n.tolist()


def test_a_factor_that_does_not_fit_is_refused_with_its_size() -> None:
    mol = pyscf.M(atom=WATER, basis="6-31g", verbose=0)
    with World("self") as world, pytest.raises(OutcoreError, match=r"whose factor takes 113 kB, but 20.0 kB"):
        Cholesky(world, mol, 1e-8, 20_000)


# ---- symmetry ----

TWISTED = "C 0 0 .67; C 0 0 -.67; H .2 .9 1.23; H -.2 -.9 1.23; H -.2 .9 -1.23; H .2 -.9 -1.23"
PEROXIDE = "O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3"
EVEN = "O 0 0 .1173; H 0 .7572 -.4692; H 0 -.7572 -.4692"


def turned(atoms: str, basis: str, **more: Any) -> Any:
    """A molecule in a frame unrelated to its axes."""
    mol = pyscf.M(atom=atoms, basis=basis, verbose=0, **more)
    axes = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    places = mol.atom_coords() @ axes + (0.3, -1.1, 0.7)
    symbols = [mol.atom_symbol(atom) for atom in range(mol.natm)]
    return pyscf.M(atom=list(zip(symbols, places, strict=True)), unit="Bohr", basis=basis, verbose=0, **more)


def test_symmetry_with_axes_of_its_own_is_not_used() -> None:
    """A product of rotated functions is a sum of products, each of which is right within the tolerance."""
    mol = turned(PEROXIDE, "6-31g*", cart=True)
    with World("self") as world:
        vectors = Cholesky(world, mol, 1e-7, PLENTY)
        assert vectors.settings["symmetry operations"] is None
        assert errors(mol, vectors) < 1.001e-7


@pytest.mark.parametrize("cart", [False, True])
@pytest.mark.parametrize("atoms", [EVEN, TWISTED, PEROXIDE])
def test_integrals_are_right_with_symmetry(atoms: str, cart: bool) -> None:
    mol = pyscf.M(atom=atoms, basis="6-31g*" if atoms is PEROXIDE else "6-31g", cart=cart, verbose=0)
    with World("self") as world:
        vectors = Cholesky(world, mol, 1e-7, PLENTY)
        alone = Cholesky(world, mol, 1e-7, PLENTY, group="C1")
        assert vectors.settings["symmetry operations"] is not None
        assert alone.settings["symmetry operations"] is None
        assert 1e-11 < errors(mol, vectors) < 1.001e-7
        assert abs(vectors.rank - alone.rank) <= 2


def test_integrals_of_pairs_that_operations_exchange_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mol = pyscf.M(atom=TWISTED, basis="6-31g", verbose=0)
    made, block = [0], cholesky.Shells._block

    def counted(self: Any, a: int, b: int) -> Any:
        made[0] += 1
        return block(self, a, b)

    monkeypatch.setattr(cholesky.Shells, "_block", counted)
    counts, ranks = [], []
    with World("self") as world:
        for group in (None, "C1"):
            made[0] = 0
            vectors = Cholesky(world, mol, 1e-4, PLENTY, group=group)
            of_search, made[0] = made[0], 0
            for piece in range(len(vectors.cuts) - 1):
                vectors.matrices(piece)
            counts.append((of_search, made[0]))
            ranks.append(vectors.rank)
    assert abs(ranks[0] - ranks[1]) <= 2
    assert all(one < 0.5 * other for one, other in zip(*counts, strict=True))


def test_diagonals_and_rows_are_those_without_symmetry() -> None:
    mol = pyscf.M(atom=TWISTED, basis="6-31g*", verbose=0)
    with World("self") as world:
        shells = Cholesky(world, mol, 1e-1, PLENTY)._shells
    plain = cholesky.Shells(shells._mol)
    np.testing.assert_allclose(shells.diagonal(), plain.diagonal(), atol=1e-13)
    some = np.arange(0, mol.nao * (mol.nao + 1) // 2, 3)
    for of in (None, some):
        functions = [np.flatnonzero(shells.of == shell) for shell in range(shells.count)]
        products = [
            (functions[a], np.repeat(functions[b][:1], len(functions[a])))
            for a in range(shells.count)
            for b in range(0, a + 1, 3)
        ]
        for number, rows in shells.rows_of(products, of):
            np.testing.assert_allclose(rows, plain.rows(*products[number], of), atol=1e-12)


def test_a_molecule_that_is_not_quite_symmetric_has_its_own_integrals() -> None:
    mol = pyscf.M(atom=PEROXIDE, basis="6-31g", verbose=0)
    places = mol.atom_coords()
    places[3, 2] += 3e-8
    mol.set_geom_(places, unit="Bohr")
    with World("self") as world:
        for tolerance, used in ((1e-4, True), (1e-8, False)):
            vectors = Cholesky(world, mol, tolerance, PLENTY)
            assert (vectors.settings["symmetry operations"] is not None) == used
            assert errors(mol, vectors) < 1.01 * tolerance
