"""Spaces of few determinants, and products H x of PySCF to compare with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from pyscf.fci import cistring, direct_spin1

from outcore import _core
from outcore.chem.ci import deal, groups, vector
from outcore.chem.ci.passes import Place
from outcore.chem.ci.sigma import Sigma
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling


def random_integrals(irreps, seed=0):
    """One- and two-electron integrals of orbitals with these irreps."""
    random = np.random.default_rng(seed)
    n, g = len(irreps), np.array(irreps)
    one = random.standard_normal((n, n))
    one = np.where((g[:, None] ^ g) == 0, one + one.T, 0)
    two = random.standard_normal((n, n, n, n))
    two = two + two.transpose(1, 0, 2, 3)
    two = two + two.transpose(0, 1, 3, 2)
    two = two + two.transpose(2, 3, 0, 1)
    two[(g[:, None, None, None] ^ g[:, None, None] ^ g[:, None] ^ g) != 0] = 0
    return one, two


def reference(space, one, two, dense):
    """H x by PySCF, for a matrix in our order of strings."""
    n, (na, nb) = space.orbitals, space.electrons
    places = [
        np.argsort(np.argsort(strings.strings)) for strings in (space.alpha, space.beta)
    ]  # of ours among all, by value
    full = np.zeros((cistring.num_strings(n, na), cistring.num_strings(n, nb)))
    full[np.ix_(*places)] = dense
    h = direct_spin1.absorb_h1e(one, two, n, (na, nb), 0.5)
    product = direct_spin1.contract_2e(h, full, n, (na, nb))
    return product[np.ix_(*places)]


def random_vector(space, seed=5):
    random = np.random.default_rng(seed)
    dense = random.standard_normal((len(space.alpha.strings), len(space.beta.strings)))
    if space.parity:
        dense = dense + space.parity * dense.T
    irreps = [
        np.searchsorted(each.offsets, np.arange(len(each.strings)), side="right") - 1
        for each in (space.alpha, space.beta)
    ]
    dense[(irreps[0][:, None] ^ irreps[1]) != space.irrep] = 0
    return dense


def put(vectors, dense, index=0):
    for tile in vectors.tiles():
        (r, c), (height, width) = tile.first, tile.shape
        block = np.ascontiguousarray(dense[r : r + height, c : c + width].astype(vectors.dtype))
        vectors.put(index, tile, block)
    vectors.sync()


CASES = {
    "folded": ([0, 0, 0, 1, 1, 2, 3, 3], 4, (3, 3, 0, 1)),
    "folded, odd": ([0, 0, 0, 1, 1, 2, 3, 3], 4, (3, 3, 2, -1)),
    "folded, odd, on the diagonal": ([0, 0, 0, 1, 1, 2, 3, 3], 4, (4, 4, 0, -1)),
    "no symmetry": ([0] * 7, 1, (3, 3, 0, 1)),
    "unfolded": ([0, 0, 0, 1, 1, 2, 3, 3], 4, (3, 3, 1, 0)),
    "different": ([0, 0, 0, 1, 1, 2, 3, 3], 4, (4, 2, 3, 0)),
    "one alpha": ([0, 0, 0, 1, 1, 1], 2, (1, 3, 0, 0)),
    "one beta": ([0, 0, 0, 1, 1, 1], 2, (3, 1, 0, 0)),
    "no beta": ([0, 0, 0, 1, 1, 1], 2, (3, 0, 1, 0)),
    "no alpha": ([0, 0, 0, 1, 1, 1], 2, (0, 2, 0, 0)),
    "one of each": ([0, 0, 0, 1, 1, 1], 2, (1, 1, 0, 1)),
    "full shell": ([0, 0, 1, 1], 2, (4, 3, 0, 0)),
}


WITH_ROWS = [name for name in CASES if name not in ("no beta", "no alpha")]


def make(name):
    irreps, count, arguments = CASES[name]
    space = Space(SimpleNamespace(irreps=irreps, groups=count, unrestricted=False), *arguments)
    one, two = random_integrals(irreps)
    kernel = _core.CIKernel(irreps, count, *space.electrons, space.irrep, space.parity, one, two)
    return space, one, two, kernel


def min_limit(space, layout=None):
    """Elements of the smallest panels that work."""
    low, high = 0, 1
    while groups.make_tasks(space, high, layout=layout) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = groups.make_tasks(space, middle, layout=layout) is not None
        low, high = (low, middle) if fits else (middle, high)
    return high


def check_rows(world, name, dtype, *, count, kind, side, near_tiles=False, copied=False):
    """A product through rows at the nodes of this world is PySCF's, and moves the bytes that its tasks say. count:
    tasks of each process. Collective."""
    space, one, two, kernel = make(name)
    dense, word = random_vector(space), np.dtype(dtype).itemsize
    expected, tolerance = reference(space, one, two, dense), 1e-11 if dtype == "float64" else 1e-5
    node_of, tiling = world.gather(world.node), VectorTiling(space, side)
    work = deal.make_node_tasks(
        groups.Holes(space), tuple(np.bincount(node_of).tolist()), count, 1 << 30, dtype
    )
    tiles = deal.TilesOfNodes(tiling, node_of)
    dealt = deal.make_deal(work, tiles, space, near_tiles=near_tiles, copied=copied)
    sigma = Sigma(world, kernel, tiling, lambda _: [], deal=lambda _: dealt, threads=2)
    with vector.make(world, tiling, kind, count=3, dtype=dtype, cache_bytes=1 << 20) as vectors:
        put(vectors, dense)
        for result in (1, 2):  # rows are used again
            sigma.apply(Place(vectors, 0), Place(vectors, result))
            found = vectors.dense(result)
            assert abs(found - expected).max() < tolerance * abs(expected).max()
            if space.parity:
                assert np.array_equal(found, space.parity * found.T)
        world.barrier()
    sigma.close()
    slabs = [task for task in dealt.tasks if task.transposed]
    elements = tiling.elements + sum(int(tiling.sizes[task.tiles(tiling)].sum()) for task in slabs)
    copies = 0 if dealt.copies is None else int(dealt.copies.sizes.sum())
    moved = 2 * word * (elements + copies + dealt.moved + space.determinants)
    counts = np.array(world.gather((sigma.moved.read, sigma.moved.added))).sum(axis=0)
    assert counts.tolist() == [moved, moved]
