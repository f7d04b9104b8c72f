"""What products of coupled cluster move to and from disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import outcore
from outcore.chem.cc.moved import Moved, by_ladder, multiplications
from outcore.tensor.array import Array


@pytest.fixture
def world() -> Iterator[outcore.World]:
    with outcore.World(None, memory="200MB") as world:
        yield world


def arrays(world: outcore.World, where: str) -> tuple[Array, Array, Array]:
    """Integrals of 30 pairs pq and 20 pairs cd, amplitudes, a product of 10 pairs ij."""
    return (
        Array(world, (30, 20), where=where, store_dtype="float32"),
        Array(world, (20, 10), where=where),
        Array(world, (30, 10), where=where),
    )


def test_integrals_go_by_once_for_each_part(world: outcore.World) -> None:
    v, t, a = arrays(world, "disk")
    found = by_ladder([v], t, [a], [1.0, 1.0], 1 << 20, 1)
    assert found.planned == found.counted == 2 * (30 * 20 * 4 + 20 * 10 * 8) + 30 * 10 * 8
    assert found.least == 30 * 20 * 4 + 20 * 10 * 8 + 30 * 10 * 8


def test_rows_that_another_run_has_made_are_not_counted(world: outcore.World) -> None:
    v, t, a = arrays(world, "disk")
    found = by_ladder([v], t, [a], [0.0, 0.5], 1 << 20, 1)
    assert found.counted == 30 * 20 * 4 / 2 + 20 * 10 * 8 + 30 * 10 * 8 / 4
    assert found.planned == by_ladder([v], t, [a], [1.0, 1.0], 1 << 20, 1).planned


def test_little_memory_has_to_move_more(world: outcore.World) -> None:
    v, t, a = arrays(world, "disk")
    found = by_ladder([v], t, [a], [1.0], 16 * 4, 1)
    assert found.least == (2 * 30 * 20 * 10 / 4 - 2 * 16) * 4


def test_nothing_moves_in_memory(world: outcore.World) -> None:
    v, t, a = arrays(world, "process")
    assert by_ladder([v], t, [a], [1.0], 1 << 20, 1) == Moved()


def test_products_of_two_spins_have_orbitals_and_not_pairs(world: outcore.World) -> None:
    v, a = Array(world, (6, 5, 4, 3)), Array(world, (6, 2, 5, 7))
    assert multiplications(v, a) == 6 * 5 * 4 * 3 * 2 * 7


def test_each_process_packs_all_amplitudes(world: outcore.World) -> None:
    v, t, a = arrays(world, "disk")
    one, two = (by_ladder([v], t, [a], [1.0, 0.0], 1 << 20, processes) for processes in (1, 2))
    assert two.planned - one.planned == 2 * 20 * 10 * 8
    assert two.counted - one.counted == 20 * 10 * 8
