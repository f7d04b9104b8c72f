"""Products H x through rows at several nodes: those of PySCF, with the bytes that the plan says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "ci"))
from ci_products import WITH_ROWS, check_rows

from outcore.job.world import World

FEW = [
    *(
        (name, "float64")
        for name in ("folded", "folded, odd, on the diagonal", "different", "no symmetry", "one beta")
    ),
    ("folded", "float32"),
]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if (name, dtype) in FEW else pytest.mark.long)
        for name in WITH_ROWS
        for dtype in ("float64", "float32")
    ],
)
def test_products_of_nodes_are_those_of_pyscf(comm, name, dtype, shared_tmp_path):
    with World(comm, scratch=shared_tmp_path, memory="256MB", nodes="processes") as world:
        check_rows(world, name, dtype, count=2, kind="global", side=32, copied=True)
        check_rows(world, name, dtype, count=3, kind="disk", side=8, near_tiles=True, copied=True)
        check_rows(world, name, dtype, count=2, kind="global", side=8)
