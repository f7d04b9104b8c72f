"""Threads that multiply."""

from __future__ import annotations

import threading
import time

import pytest

from outcore.tensor.crew import Crew


def test_a_slow_part_holds_no_other_of_its_step() -> None:
    """Part 0 ends when all others have ended, so they must not be given to its thread."""
    left = threading.Semaphore(0)

    def slow() -> None:
        for _ in range(5):
            assert left.acquire(timeout=60)

    with Crew(2) as crew:
        crew.give([slow, *[left.release] * 5])
        crew.wait()
    assert crew.under_way == 0


def test_a_part_begins_when_that_of_the_step_before_is_done() -> None:
    seen: list[tuple[int, int]] = []

    def work(step: int, part: int) -> None:
        if part == step % 3:
            time.sleep(0.002)
        seen.append((step, part))

    with Crew(3) as crew:
        for step in range(20):
            crew.give([lambda step=step, part=part: work(step, part) for part in range(3)])  # type: ignore[misc]
        assert crew.under_way == 20
        for _ in range(20):
            crew.wait()
    for part in range(3):
        assert [step for step, which in seen if which == part] == list(range(20))


def test_the_first_error_is_raised_and_nothing_is_done_after_it() -> None:
    done: list[int] = []

    def fail() -> None:
        raise OSError("no")

    with Crew(1) as crew:
        crew.give([fail])
        crew.give([lambda: done.append(1)])
        with pytest.raises(OSError, match="no"):
            crew.wait()
    assert not done
