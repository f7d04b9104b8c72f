"""Block-sparse arrays that one process makes or opens in another way."""

from __future__ import annotations

import numpy as np
from gates import NAME, PATHS, SIZES, STRANGE, Calls, unpicklable

from outcore import BlockSparseArray

CALLS = Calls()
each = CALLS.each

TILINGS = [[0, 3, 4, 10], [0, 5, 7]]


def store_sparse(world, place):
    BlockSparseArray(world, TILINGS, [(0, 1)], path=place).close()


@each(
    "tilings",
    5,
    "text",
    [[0, 3, 4, 10]],
    [[0, 3, 10], [0, 5, 7]],
    [[0, 4, 3], [0, 1]],
    [[0.5, 1]],
    [],
    STRANGE,
)
@each("nonzero", 5, "text", np.ones((2, 2), bool), [(9, 9)], [(0, 0)], [(0.5, 1)], STRANGE)
@each("dtype", "float16", "no type", "int32", object(), STRANGE)
@each("path", *PATHS)
@each("codec", "zip", 5, "blosc2", NAME, STRANGE)
@each("placement", "here", 5, "shared", NAME, STRANGE)
@each("overwrite", True, "yes", 5, STRANGE)
@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
def make_a_block_sparse_array(
    world, paths, tilings=TILINGS, nonzero=((0, 1), (2, 1)), dtype="float64", **options
):
    with BlockSparseArray(world, tilings, nonzero, dtype, **options) as made:
        made.stored_bytes()


@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
def flush_a_block_sparse_array(world, paths, metadata="right"):
    with BlockSparseArray(world, TILINGS, [(0, 1)], path=paths.new()) as b:
        b.flush(metadata)
        b.flush()


@each("path", *PATHS, None)
@each("read_only", False, "yes", 5, STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
def open_a_block_sparse_array(world, paths, path="right", **options):
    place = paths.made(store_sparse, world)
    with BlockSparseArray.open(world, place if path == "right" else path, **options) as opened:
        opened.stored_bytes()


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)
