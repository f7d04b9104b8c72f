"""Collective calls with wrong arguments at one process: all raise the same OutcoreError, and can go on. A
module test_gates_*.py has functions that make one kind of call each, correctly; decorators of a function name
the wrong arguments of one process. An argument that names the processes (a world, an array that is written)
is always right: without it no process could be told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from outcore import OutcoreError


class Strange:
    """Raises its own error at any access."""

    class Error(Exception):
        pass

    def refuse(self, *_):
        raise self.Error("not with me")

    __fspath__ = __index__ = __array__ = __iter__ = __reduce__ = __len__ = __getitem__ = refuse


def unpicklable():
    """An object that neither pickle nor JSON can encode."""


STRANGE = Strange()
unpicklable.__qualname__ = "nowhere"
NAME = "\ud800"  # cannot be converted to bytes
PATHS = (5, NAME, "zero\0inside", b"bytes", "other/name", STRANGE)
SIZES = ("much", -1, [], STRANGE)

Call = Callable[..., None]


class Calls:
    """The calls of a module, and for each the arguments that one process passes where the others pass
    none."""

    def __init__(self):
        self._wrong: dict[Call, list[dict[str, Any]]] = {}

    def wrong(self, **arguments):
        """Arguments of the call below that are wrong only together, or only at one process."""

        def add(call):
            self._wrong.setdefault(call, []).append(arguments)
            return call

        return add

    def each(self, name, *values):
        """Several wrong values for one argument of the call below."""

        def add(call):
            self._wrong.setdefault(call, []).extend({name: value} for value in values)
            return call

        return add

    def parametrize(self, test):
        """Parametrizes a test by `call` and `who`: each call, wrong at the first process or at the last."""
        by_call = pytest.mark.parametrize("call", self._wrong, ids=lambda call: call.__name__)
        return pytest.mark.parametrize("who", ["first", "last"])(by_call(test))

    def check(self, world, paths, call, who):
        strays = world.rank == (0 if who == "first" else world.size - 1)
        for arguments in self._wrong[call]:
            print(arguments)  # shown if it hangs
            said = error_of(call, world, paths, **(arguments if strays else {}))
            assert all_say_the_same(world, said), (arguments, said)
            world.barrier()
            call(world, paths)


def error_of(call, *arguments, **more):
    """The error of this process, for comparison with the others."""
    try:
        call(*arguments, **more)
    except OutcoreError as error:
        return error.errno, error.rank, str(error)
    return "no error"


def all_say_the_same(world, said):
    return isinstance(said, tuple) and set(world.gather(said)) == {said}
