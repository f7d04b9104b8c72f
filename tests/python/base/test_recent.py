"""Values that are kept by key."""

from __future__ import annotations

import pytest

from outcore.base.recent import Recent


def test_a_value_is_made_once():
    made = []
    recent: Recent[int] = Recent(2)
    for _ in range(3):
        assert recent.get("a", lambda: made.append(1) or len(made)) == 1
    assert made == [1]
    recent.clear()
    assert recent.get("a", lambda: 7) == 7


def test_the_one_that_was_not_asked_for_longest_goes_first():
    recent: Recent[int] = Recent(2)
    recent.get("a", lambda: 1)
    recent.get("b", lambda: 2)
    recent.get("a", lambda: 0)
    recent.get("c", lambda: 3)
    assert recent.get("a", lambda: 0) == 1
    assert recent.get("b", lambda: 4) == 4


def test_what_is_not_worth_it_and_what_fails_are_made_again():
    recent: Recent[int] = Recent(2)
    assert recent.get("a", lambda: 1, lambda value: value > 1) == 1
    with pytest.raises(KeyError):
        recent.get("a", lambda: {}["nothing"])
    assert recent.get("a", lambda: 2, lambda value: value > 1) == 2
    assert recent.get("a", lambda: 3) == 2
