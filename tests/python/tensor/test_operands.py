"""Arrays of all kinds as operands of products."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore import Array, Tiling, World
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout import operands


def test_tiles_on_their_way_take_little_beside_the_panels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an array with symmetry half of the tiles are transposed, and none lies in a panel in its stored
    form."""
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


def test_small_tiles_on_their_way_take_a_share_of_the_budget(tmp_path: Path) -> None:
    """With 64 MB, less than eight MB for each operand."""
    with World("self", scratch=tmp_path, memory="64MB") as world:
        array = Array(world, [Tiling(64, [0, 32, 64])], where="disk", cache_bytes="1MB")
        assert operand(array).max_bytes == 1_000_000
