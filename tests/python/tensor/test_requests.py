"""Requests of tiles that hold memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore import Array, Tiling, World
from outcore.tensor import operands
from outcore.tensor.requests import Window


class Recorded:
    """Requests by number: those that began, those that were waited for."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    def start(self, number: int, error: Exception | None = None) -> Recorded._One:
        self.begun.append(number)
        return Recorded._One(number, error)

    class _One:
        def __init__(self, number: int, error: Exception | None) -> None:
            self._number, self._error = number, error

        def wait(self) -> int:
            if self._error is not None:
                raise self._error
            return self._number


def test_as_many_begin_as_there_is_room_for() -> None:
    seen, window = Recorded(), Window(30)
    requests = [window.add(lambda n=n: seen.start(n), 10) for n in range(6)]  # type: ignore[misc]
    assert seen.begun == [0, 1, 2]
    assert requests[0].wait() == 0
    assert seen.begun == [0, 1, 2, 3]
    assert [each.wait() for each in requests[1:]] == [1, 2, 3, 4, 5]


def test_one_begins_however_large_it_is() -> None:
    seen, window = Recorded(), Window(30)
    requests = [window.add(lambda n=n: seen.start(n), 100) for n in range(3)]  # type: ignore[misc]
    assert seen.begun == [0]
    assert [each.wait() for each in requests] == [0, 1, 2]


def test_one_that_is_waited_for_before_its_turn_begins_with_those_before_it() -> None:
    seen, window = Recorded(), Window(10)
    requests = [window.add(lambda n=n: seen.start(n), 10) for n in range(4)]  # type: ignore[misc]
    assert requests[2].wait() == 2
    assert seen.begun == [0, 1, 2]
    assert [requests[n].wait() for n in (0, 1, 3)] == [0, 1, 3]


def test_one_that_fails_leaves_its_room_to_others() -> None:
    seen, window = Recorded(), Window(10)
    failing = window.add(lambda: seen.start(0, OSError("no")), 10)
    other = window.add(lambda: seen.start(1), 10)
    with pytest.raises(OSError, match="no"):
        failing.wait()
    assert seen.begun == [0, 1]
    assert other.wait() == 1


def test_one_that_cannot_begin_fails_where_it_is_waited_for() -> None:
    seen, window = Recorded(), Window(10)

    def refuse() -> Recorded._One:
        raise OSError("no")

    first = window.add(lambda: seen.start(0), 10)
    refused = window.add(refuse, 10)
    last = window.add(lambda: seen.start(2), 10)
    assert first.wait() == 0
    with pytest.raises(OSError, match="no"):
        refused.wait()
    assert last.wait() == 2


def test_tiles_on_their_way_take_little_beside_the_panels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an array with symmetry half of the tiles are turned around, and none lies in a panel as it is stored."""
    monkeypatch.setattr(operands, "_COPIED_BYTES", 0)
    n, tile, memory = 1536, 128, 8_000_000
    axis = Tiling(n, list(range(0, n + 1, tile)))
    values = np.random.default_rng(1).random((n, n))
    values += values.T
    with World("self", scratch=tmp_path, memory="64MB") as world:
        a = Array(world, [axis, axis], where="disk", symmetry="symmetric(0,1)", cache_bytes="1MB")
        for each in a.own_tiles():
            a.put_tile(each, np.ascontiguousarray(values[a.layout.box(each)]))
        a.sync()
        out = Array(world, [axis, axis], where="disk", cache_bytes="1MB")
        plan = outcore.einsum.plan("ik,kj->ij", a, a, out=out, memory=memory)
        outcore.einsum("ik,kj->ij", a, a, out=out, memory=memory, plan=plan, threads=1)  # modules are loaded
        tracemalloc.start()
        outcore.einsum("ik,kj->ij", a, a, out=out, memory=memory, plan=plan, threads=1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        np.testing.assert_allclose(out.to_numpy(), values @ values, rtol=1e-12)
    assert peak < memory + 10 * tile * tile * 8
