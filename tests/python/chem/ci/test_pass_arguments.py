"""Arguments that passes over tiles refuse: they change memory in place, and must not change a copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outcore import _core

Array = NDArray[Any]
N = 16


def correct(**changed: Any) -> Array:
    """One state and its H x, without other vectors: x becomes 2 x. Returns the sums."""
    arguments: dict[str, Any] = {
        "states": [np.ones(N)],
        "h_states": [np.ones(N)],
        "vectors": [],
        "h_vectors": [],
        "corrections": [],
        "diagonal": np.zeros(N),
        "to_states": np.full((1, 1), 2.0),
        "to_vectors": np.zeros((0, 0)),
        "collapses": False,
        "energies": np.zeros(1),
        "active": [],
        "smallest": 0.1,
        "parity": 0,
        "sums": np.zeros(4),
    } | changed
    _core.ci_correct(**arguments)
    sums: Array = arguments["sums"]
    return sums


def test_what_is_given_is_changed() -> None:
    x = np.ones(N)
    assert correct(states=[x]).tolist() == [4 * N, 4 * N, 4 * N, 0]
    assert x.tolist() == [2.0] * N


@pytest.mark.parametrize("name", ["states", "h_states"])
@pytest.mark.parametrize(
    "tile",
    [np.ones(2 * N)[::2], np.ones((N // 4, 4)).T, np.broadcast_to(1.0, N), [1.0] * N],
    ids=["strided", "transposed", "read-only", "list"],
)
def test_a_tile_that_would_have_to_be_copied_is_refused(name: str, tile: Any) -> None:
    with pytest.raises(TypeError):
        correct(**{name: [tile]})


@pytest.mark.parametrize(
    "sums",
    [np.zeros(8)[::2], np.zeros(4, np.float32), np.zeros(4, np.int64)],
    ids=["strided", "single", "int"],
)
def test_sums_that_would_have_to_be_copied_are_refused(sums: Array) -> None:
    with pytest.raises(TypeError):
        correct(sums=sums)
    with pytest.raises(TypeError):
        _core.ci_dots([np.ones(N)] * 2, [np.ones(N)] * 2, sums)
    assert not sums.any()


def test_numbers_that_do_not_fit_are_refused() -> None:
    for text, changed in (
        ("do not fit", {"sums": np.zeros(5)}),
        ("do not fit", {"energies": np.zeros(2)}),
        ("do not fit", {"to_states": np.zeros(2)}),
        ("different sizes", {"states": [np.ones(N + 1)]}),
        ("must be states", {"active": [1], "corrections": [np.zeros(N)], "sums": np.zeros(8)}),
        ("parity", {"parity": 2}),
    ):
        with pytest.raises(ValueError, match=text):
            correct(**changed)


def test_a_folded_tile_is_a_square() -> None:
    side = 4
    x = np.arange(1.0, N + 1).reshape(side, side)
    correct(states=[x], parity=-1)
    assert np.array_equal(x, -x.T)
    tile = np.ones(side * side - 1)
    with pytest.raises(ValueError, match="square"):
        correct(states=[tile], h_states=[tile.copy()], diagonal=tile.copy(), parity=1)
