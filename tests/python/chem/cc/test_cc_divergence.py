"""The error of a diverged iteration names an amplitude: which one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import outcore
from outcore import Array, OutcoreError, Tiling
from outcore.chem.cc import divergence
from outcore.chem.cc.divergence import Names
from outcore.chem.cc.iteration import Iteration

ENERGY = -0.5


@pytest.fixture
def world(tmp_path: Path) -> Iterator[outcore.World]:
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def refuse(world: outcore.World, singles: list[Any], doubles: Any, *, norm: float = 1e7) -> None:
    """Raises the error, for spins with 2 and 1 frozen, 3 and 2 occupied and 2 and 3 virtual orbitals."""
    a, b = (2, 3), (3, 2)
    with Array(world, [Tiling(extent, tile=2) for extent in (*a, *b)]) as residual:
        for tile in residual.own_tiles():
            residual.put_tile(tile, doubles[residual.layout.box(tile)])
        residual.sync()
        each: Any = SimpleNamespace(spins=(0, 1), residual=residual)
        found = Iteration(4, ENERGY, 0.0, norm, 1.0)
        divergence.refuse(
            world,
            found,
            Names([[3, 4, 5], [2, 3]], [[6, 7], [4, 5, 6]]),
            singles,
            [each],
            lambda each, tile: each.residual.get_tile(tile),
        )


def zeros() -> tuple[list[Any], Any]:
    return [np.zeros((3, 2)), np.zeros((2, 3))], np.zeros((2, 3, 3, 2))


def test_the_largest_double_is_named(world: outcore.World) -> None:
    singles, doubles = zeros()
    singles[0][0, 0], doubles[1, 0, 0, 0], doubles[1, 2, 2, 1] = 7.0, -8.0, -9.0
    with pytest.raises(OutcoreError, match=r"of orbitals 5a, 3b -> 7a, 6b by 9.0e\+00 alone") as caught:
        refuse(world, singles, doubles)
    assert caught.value.errno == errno.ERANGE


def test_what_is_no_number_is_larger_than_all_that_are(world: outcore.World) -> None:
    singles, doubles = zeros()
    singles[1][1, 0], doubles[0, 0, 0, 0] = np.nan, 1e300
    with pytest.raises(OutcoreError, match="of orbitals 3b -> 4b by inf alone"):
        refuse(world, singles, doubles, norm=np.nan)


def test_what_has_not_diverged_is_not_refused(world: outcore.World) -> None:
    refuse(world, *zeros(), norm=1e5)
