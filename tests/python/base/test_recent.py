"""Values that are kept by key."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from outcore.base.recent import Key, Recent


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


def test_a_heavy_one_takes_the_place_of_several():
    recent: Recent[str] = Recent(5, len)
    for name in ("a", "b", "cc"):
        recent.get(name, lambda name=name: name)
    recent.get("ddd", lambda: "ddd")
    assert [recent.get(name, lambda: "") for name in ("cc", "ddd")] == ["cc", "ddd"]
    assert [recent.get(name, lambda: "") for name in ("a", "b")] == ["", ""]


def test_what_is_too_heavy_and_what_fails_are_made_again():
    recent: Recent[int] = Recent(6, lambda value: value, heaviest=3)
    assert recent.get("a", lambda: 4) == 4
    with pytest.raises(KeyError):
        recent.get("a", lambda: {}["nothing"])
    assert recent.get("a", lambda: 3) == 3
    assert recent.get("a", lambda: 2) == 3


def test_one_that_a_call_within_has_made_counts_once():
    recent: Recent[int] = Recent(3, lambda value: value)
    assert recent.get("a", lambda: recent.get("a", lambda: 1) + 1) == 2
    recent.get("b", lambda: 1)
    assert recent.get("a", lambda: 0) == 2


def test_keys_of_equal_parts_are_equal():
    assert Key("a", (1, 2)) == Key("a", (1, 2)) != Key("a", (1, 3))
    assert len({Key("a", 1), Key("a", 1), Key("a", 2)}) == 2


def test_a_key_of_another_process_has_the_hash_that_it_has_here():
    code = "import pickle; from outcore.base.recent import Key; print(pickle.dumps(Key('a', 'b')).hex())"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert hash(pickle.loads(bytes.fromhex(told.stdout.decode()))) == hash(Key("a", "b"))
