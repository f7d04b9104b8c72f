"""Arrays without references free their memory, without being closed."""

import numpy as np
import pytest

import outcore
from outcore import Array, BlockSparseArray, DiskArray, GlobalArray, NodeArray

TURNS = 1000
X = np.ones((8, 8))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with outcore.World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="64MB") as made:
        DiskArray(made, 1).close()  # which makes the services that all of them share
        yield made


KINDS = {
    "global": lambda world: GlobalArray(world, (8, 8)),
    "node": lambda world: NodeArray(world, (8, 8)),
    "disk": lambda world: DiskArray(world, (8, 8), cache_bytes="128KB"),
    "sparse": lambda world: BlockSparseArray(world, [[0, 8], [0, 8]], [(0, 0)], cache_bytes="128KB"),
    "wrapped": lambda world: Array.wrap(world, X),
    "generated": lambda world: Array.generated(world, (8, 8), lambda box: X[box]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_dropped(world, kind):
    before = world.budget.used_bytes
    for _ in range(TURNS):
        KINDS[kind](world)
    assert world.budget.used_bytes == before


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("process", marks=pytest.mark.long),
        pytest.param("node", marks=pytest.mark.long),
        "global",
        "disk",
    ],
)
def test_temporaries_of_arithmetic_and_results_of_einsum(world, where):
    with Array.from_numpy(world, X, where=where) as a, Array.from_numpy(world, 3 * X, where=where) as b:
        assert (a - b).norm() == 16
        assert outcore.einsum("ij,jk->ik", a, b, memory="8MB").sum() == 1536
        before = world.budget.used_bytes
        for _ in range(TURNS):
            (a - b).norm()
        assert world.budget.used_bytes == before
        for _ in range(TURNS):
            outcore.einsum("ij,jk->ik", a, b, memory="8MB")
        assert world.budget.used_bytes == before


def test_memory_is_accounted_until_the_last_view_of_it_is_gone(world):
    before = world.budget.used_bytes
    tile = Array.from_numpy(world, X, where="process").get_tile((0, 0))
    assert world.budget.used_bytes == before + X.nbytes
    assert (tile == X).all()
    del tile
    assert world.budget.used_bytes == before
