"""Worlds, their collectives and steps of which one process makes a wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from gates import NAME, STRANGE, Calls, all_say_the_same, error_of, unpicklable

from outcore import World

CALLS = Calls()
each, wrong = CALLS.each, CALLS.wrong


@each("nodes", "racks", 5, STRANGE)
@each("memory", "much", -1, 0, [], STRANGE)
@each("scratch", 5, "/no/such/place", NAME, STRANGE)
def make_a_world(world, paths, **options):
    with World(world.comm, **options) as made:
        made.barrier()


@each("color", "red", 1.5, 1 << 40, None, STRANGE)
@each("key", "first", 1 << 40)
@each("scratch", 5, "/no/such/place", NAME, STRANGE)
def split(world, paths, color=0, key=0, scratch=None):
    with world.split(color, key, scratch) as part:
        part.barrier()


@each("root", 99, -1, 1.5, "first", 1 << 40, STRANGE)
@wrong(root=1)
def broadcast(world, paths, root=0):
    assert world.broadcast(world.rank, root) == root


@each("value", unpicklable, STRANGE)
def gather(world, paths, value=1):
    assert world.gather(value) == [1] * world.size


@each("value", "text", np.ones(3), np.ones(2, np.float32), 1.0, np.ones(2, object), STRANGE)
@each("op", "mean", 5, "max", STRANGE)
def all_reduce(world, paths, value=(1, 2), op="sum"):
    world.all_reduce(np.asarray(value) if isinstance(value, tuple) else value, op)


@each("what", "other work", 5)
@each("argument", 2, unpicklable, STRANGE)
@each("step", STRANGE.refuse, 5)
def together(world, paths, what="work", argument=1, step=int):
    with world.together(what, argument):
        step()


@each("name", 5, None, "other", NAME, STRANGE)
@each("procedure", None, 5)
def register(world, paths, name="right", procedure=print):
    new = str(paths.new())
    world.register(new if name == "right" else name, procedure)


@each("name", 5, "another", NAME, STRANGE)
def unregister(world, paths, name="right"):
    served = str(paths.new())
    world.register(served, lambda *_: None)
    world.unregister(served if name == "right" else name)


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)


@pytest.mark.parametrize("who", ["first", "last"])
def test_what_cannot_be_pickled_is_an_error_where_it_is_not_even_sent(world, who):
    root = 0 if who == "first" else world.size - 1
    said = error_of(world.broadcast, unpicklable, root)
    assert all_say_the_same(world, said), said
    assert said[1] == root
    assert world.broadcast(world.rank, root) == root
