"""Combinations of requests; requests that hold memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from outcore import OutcoreError, Request, World, wait_all, wait_any
from outcore.parallel.requests import Window, _All, all_of, done, then


class Calls:
    """Numbered calls of a process to itself, answered on demand. Two are served at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._may_end = [threading.Event() for _ in range(4)]
        world.register("answer", self._answer)

    def _answer(self, _caller: int, header: Any, _payload: Any) -> bytes:
        assert self._may_end[header[0]].wait(60)
        if len(header) > 1:
            raise OutcoreError(5, "answer", detail=f"call {header[0]}")
        return bytes(header)

    def begin(self, number: int, *, fails: bool = False) -> Request:
        return self._world.call(0, "answer", bytes([number, 1] if fails else [number]))

    def end(self, *numbers: int) -> None:
        for number in numbers or range(4):
            self._may_end[number].set()


@pytest.fixture
def calls() -> Iterator[Calls]:
    with World("self") as world:
        calls = Calls(world)
        yield calls
        calls.end()
        world.barrier()


def number(reply: Any) -> int:
    return int(reply[0])


def test_one_that_is_complete() -> None:
    request = done(5)
    assert isinstance(request, Request)
    assert request.done and request.test() and request.wait() == request.wait() == 5
    assert done().wait() is None


def test_what_is_made_of_a_request_is_made_once_when_it_is_done(calls: Calls) -> None:
    made: list[int] = []
    request = then(calls.begin(2), lambda reply: made.append(number(reply)) or "made")  # type: ignore[func-returns-value]
    assert isinstance(request, Request)
    assert not request.done and not request.test() and not made
    calls.end(2)
    assert request.wait() == request.wait() == "made"
    assert request.done and request.test() and made == [2]


def test_test_makes_it_too(calls: Calls) -> None:
    request = then(calls.begin(1), number)
    calls.end(1)
    while not request.test():
        pass
    assert request.wait() == 1


def test_threads_that_wait_at_once_get_the_same(calls: Calls) -> None:
    request, found = then(calls.begin(0), lambda _: object()), list[object]()
    threads = [threading.Thread(target=lambda: found.append(request.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    calls.end(0)
    for thread in threads:
        thread.join(60)
    assert len(found) == 4 and len(set(found)) == 1


def test_an_error_of_what_is_made_is_raised_by_each() -> None:
    request = then(done(0), lambda value: 1 // value)
    assert request.done
    for ask in (request.wait, request.test, request.wait):
        with pytest.raises(ZeroDivisionError):
            ask()


def test_nothing_is_made_of_a_request_that_failed(calls: Calls) -> None:
    calls.end()
    request = then(calls.begin(3, fails=True), number)
    for ask in (request.wait, request.test):
        with pytest.raises(OutcoreError, match="call 3"):
            ask()
    assert request.done


def test_several_as_one_bring_a_list(calls: Calls) -> None:
    request = all_of([then(calls.begin(each), number) for each in (2, 0)] + [done("value")])
    calls.end(0)
    assert not request.done and not request.test()
    calls.end(2)
    assert request.wait() == [2, 0, "value"] and request.done and request.test()
    assert all_of([]).wait() == []


def test_several_as_one_raise_the_first_error_when_all_are_done(calls: Calls) -> None:
    first, left, last = calls.begin(1, fails=True), calls.begin(3), calls.begin(2, fails=True)
    request = all_of([first, left, last])
    calls.end(1, 2)
    wait_any([last])
    assert not request.done and not request.test()
    calls.end(3)
    for _ in range(2):
        with pytest.raises(OutcoreError, match="call 1"):
            request.wait()
    assert left.done


def test_wait_all_waits_for_a_mixture_and_raises_the_first_error(calls: Calls) -> None:
    made: list[int] = []
    calls.end()
    wait_all([calls.begin(0), then(calls.begin(1), lambda each: made.append(number(each))), done()])
    assert made == [1]
    with pytest.raises(OutcoreError, match="call 2"):
        wait_all([done(), all_of([calls.begin(2, fails=True)]), calls.begin(3, fails=True)])


def test_wait_any_finds_what_is_done_in_a_mixture(calls: Calls) -> None:
    both = all_of([calls.begin(0), then(calls.begin(1), number)])
    calls.end(0)
    requests = [both, then(calls.begin(2), number)]
    calls.end(2)
    assert wait_any(requests) == 1
    calls.end(1)
    assert wait_any([calls.begin(3), both]) == 1
    assert wait_any([calls.begin(3), done()]) == 1


def test_wait_any_finds_what_is_done_right_after_its_look(calls: Calls) -> None:
    class DoneAfterLook(_All):
        @property
        def done(self) -> bool:
            found = super().done
            calls.end(1)
            self.wait()
            return found

    assert wait_any([calls.begin(3), DoneAfterLook([calls.begin(1)])]) == 1


def test_wait_any_leaves_an_error_for_wait(calls: Calls) -> None:
    calls.end()
    request = then(calls.begin(1, fails=True), number)
    assert wait_any([request]) == 0
    with pytest.raises(OutcoreError, match="call 1"):
        request.wait()


def test_wait_any_begins_what_waits_for_its_turn(calls: Calls) -> None:
    window = Window(10)
    requests = [window.add(lambda n=n: calls.begin(n), 10) for n in range(2)]  # type: ignore[misc]
    calls.end(1)
    assert wait_any(requests) == 1
    calls.end()
    wait_all(requests)


@pytest.mark.parametrize("wait", [wait_all, wait_any])
def test_what_is_no_request_is_refused(calls: Calls, wait: Any) -> None:
    calls.end(0)
    with pytest.raises(TypeError, match="3 is no request"):
        wait([calls.begin(0), done(), 3])


class Recorded:
    """Numbered requests: records those that began and those that were waited for."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    def start(self, number: int, error: Exception | None = None) -> Request:
        def bring(_: Any) -> int:
            if error is not None:
                raise error
            return number

        self.begun.append(number)
        return then(done(), bring)


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

    def refuse() -> Request:
        raise OSError("no")

    first = window.add(lambda: seen.start(0), 10)
    refused = window.add(refuse, 10)
    last = window.add(lambda: seen.start(2), 10)
    assert first.wait() == 0
    with pytest.raises(OSError, match="no"):
        refused.wait()
    assert last.wait() == 2
