"""The least traffic of three-index integrals."""

from __future__ import annotations

import pytest

from outcore.chem.ri import bound
from outcore.chem.ri.plan import TransformSizes, pair_tasks

SIZES = TransformSizes(60, 1800, 200, (20,), (40,))
OPEN = TransformSizes(60, 1800, 200, (20, 18), (40, 42))


def test_what_fits_into_memory_is_not_moved() -> None:
    assert bound.once(100.0, 100.0) == 0
    assert bound.once(100.0, 30.0) == 70
    assert bound.pairs(SIZES, [(0, 0)], SIZES.bytes) == 0


@pytest.mark.parametrize("block", [1, 2, 4, 7])
@pytest.mark.parametrize("tile", [1, 2])
@pytest.mark.parametrize(("sizes", "kinds"), [(SIZES, [(0, 0)]), (OPEN, [(0, 0), (1, 1), (0, 1)])])
def test_blocks_and_tiles_of_pairs_move_no_less(
    block: int, tile: int, sizes: TransformSizes, kinds: list[tuple[int, int]]
) -> None:
    """A block stays in memory while tiles go by."""
    orbital = [8 * sizes.auxiliary * virtual for virtual in sizes.virtual]
    moved = sizes.bytes  # written
    for a, b in kinds:
        tasks = pair_tasks(sizes.occupied[a], sizes.occupied[b], block, tile, a == b)
        moved += sum((end - begin) * orbital[a] for begin, end in {block for block, _ in tasks})
        moved += sum((end - begin) * orbital[b] for _, (begin, end) in tasks)
    least = bound.pairs(sizes, kinds, (block + tile) * max(orbital))
    assert 0.1 * moved < least < moved


def test_less_memory_moves_more() -> None:
    found = [bound.pairs(SIZES, [(0, 0)], share * SIZES.bytes) for share in (0.5, 0.2, 0.1, 0.05)]
    assert found == sorted(found) and found[0] >= SIZES.bytes
