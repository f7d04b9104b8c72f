"""Arrays in memory that one process makes in another way."""

from __future__ import annotations

from gates import STRANGE, Calls

from outcore import GlobalArray, NodeArray

CALLS = Calls()
each, wrong = CALLS.each, CALLS.wrong


@each("shape", "large", (4, -1), (), (5, 6), (4.5, 5), (1,) * 9, (1 << 70,), None, STRANGE)
@each("dtype", "float16", "no type", "int32", object(), 5, STRANGE)
@each("block", "x", (2, 2), (2, 2, 2), 0, STRANGE)
@each("distribution", 3, [[0, 9], [0]], [[0]], STRANGE)
@wrong(block=2, distribution=[[0], [0]])
def make_a_global_array(world, paths, shape=(4, 5), dtype="float64", **options):
    with GlobalArray(world, shape, dtype, **options) as made:
        made.sync()


@each("shape", "large", (4, -1), (), (5, 6), (4.5, 5), (1,) * 9, (1 << 70,), None, STRANGE)
@each("dtype", "float16", "no type", "int32", object(), STRANGE)
def make_a_node_array(world, paths, shape=(4, 5), dtype="float64"):
    with NodeArray(world, shape, dtype) as made:
        made.barrier()


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)
