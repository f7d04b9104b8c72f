"""Products H x task by task, against PySCF."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ci_products import CASES, WITH_ROWS, check_rows, make, min_limit, put, random_vector, reference

import outcore
from outcore import _core
from outcore.chem.ci import groups, strips, vector
from outcore.chem.ci import sigma as sigma_module
from outcore.chem.ci.passes import Place
from outcore.chem.ci.sigma import Sigma
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling

CI_PANEL = _core.CIPanel


@pytest.mark.parametrize("name", CASES)
def test_products_of_any_budget_are_those_of_pyscf(name, tmp_path):
    space, one, two, kernel = make(name)
    assert kernel.determinants == space.determinants
    assert np.array_equal(kernel.alpha_strings.strings, space.alpha.strings)
    assert np.array_equal(kernel.beta_strings.strings, space.beta.strings)
    dense = random_vector(space)
    expected = reference(space, one, two, dense)
    least = min_limit(space)
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        for limit, kind, overlaps in (
            (least, "disk", True),
            (least, "memory", False),
            (3 * least, "memory", True),
            (1 << 30, "global", False),
        ):
            tasks = groups.make_tasks(space, limit)
            tiling = VectorTiling(space, 8)
            sigma = Sigma(world, kernel, tiling, lambda _, some=tasks: some, threads=2, overlaps=overlaps)
            with vector.make(world, tiling, kind, count=2, cache_bytes=1 << 20) as vectors:
                put(vectors, dense)
                sigma.apply(Place(vectors, 0), Place(vectors, 1))
                found = vectors.dense(1)
                assert abs(found - expected).max() < 1e-11 * abs(expected).max()
                if space.parity:
                    assert np.array_equal(found, space.parity * found.T)
            sigma.close()


@pytest.mark.parametrize("name", ["folded", "no symmetry", "different"])
def test_rows_and_their_first_columns_are_those_of_the_kernel(name):
    space, _, _, kernel = make(name)
    holes = groups.Holes(space)
    assert np.array_equal(holes.masks, kernel.holes)
    count = len(holes)
    for first, last in ((0, count), (0, 1), (count - 1, count), (2, 5)):
        rows, lowest = holes.rows(first, last)
        assert np.array_equal(rows, kernel.rows_of(first, last))
        assert np.array_equal(holes.begins(rows, lowest), kernel.begins_of(first, last))


def test_every_hole_and_row_has_one_task():
    space = Space(SimpleNamespace(irreps=[0] * 12, groups=1, unrestricted=False), 4, 4, 0, 1)
    for limit in (min_limit(space), 30000, 10**9):
        tasks = groups.make_tasks(space, limit)
        holes = sorted(hole for task in tasks for hole in task.holes)
        assert holes == list(range(len(groups.Holes(space))))
        rows = sorted(int(row) for task in tasks for row in task.home)
        assert rows == list(range(len(space.alpha.strings)))
        for task in tasks:
            assert task.elements(space) <= limit
    assert groups.make_tasks(space, min_limit(space) - 1) is None


def test_single_precision_and_ordered_sums(tmp_path):
    space, one, two, kernel = make("folded")
    dense = random_vector(space)
    expected = reference(space, one, two, dense)
    found = []
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        tiling = VectorTiling(space, 8)
        tasks = groups.make_tasks(space, 2 * min_limit(space))
        for _ in range(2):
            sigma = Sigma(world, kernel, tiling, lambda _, some=tasks: some, threads=3, ordered=True)
            with vector.make(world, tiling, "memory", count=2, dtype="float32") as vectors:
                put(vectors, dense)
                sigma.apply(Place(vectors, 0), Place(vectors, 1))
                found.append(vectors.dense(1))
    assert np.array_equal(found[0], found[1])
    assert abs(found[0] - expected).max() < 1e-5 * abs(expected).max()


class Interrupted:
    """A kernel that gets Ctrl-C in one of its calls."""

    def __init__(self, kernel, call):
        self._kernel, self._call, self.calls = kernel, call, 0

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def opposite_spin(self, *arguments):
        self.calls += 1
        if self.calls == self._call:
            raise KeyboardInterrupt
        self._kernel.opposite_spin(*arguments)


@pytest.mark.parametrize(("slots", "ordered"), [(1, False), (2, False), (2, True)])
def test_ctrl_c_is_heard_between_calls_of_a_task(tmp_path, monkeypatch, slots, ordered):
    monkeypatch.setattr(sigma_module, "_CALL_FLOPS", 1.0)
    space, one, two, native = make("folded")
    dense = random_vector(space)
    tasks = groups.make_tasks(space, (1 if slots == 1 else 4) * min_limit(space))
    kernel = Interrupted(native, 3)
    monkeypatch.setattr(
        sigma_module._core, "CIPanel", lambda _, *given, **more: CI_PANEL(native, *given, **more)
    )
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        tiling = VectorTiling(space, 8)
        sigma = Sigma(world, kernel, tiling, lambda _: tasks, overlaps=slots == 2, ordered=ordered)
        with vector.make(world, tiling, "disk", count=2) as vectors:
            put(vectors, dense)
            with pytest.raises(KeyboardInterrupt):
                sigma.apply(Place(vectors, 0), Place(vectors, 1))
            vectors.clear(1)
            sigma.apply(Place(vectors, 0), Place(vectors, 1))
            assert abs(vectors.dense(1) - reference(space, one, two, dense)).max() < 1e-10
        assert kernel.calls == 3 + len(groups.Holes(space))


def test_bytes_are_those_of_the_tasks(tmp_path):
    space, _, _, kernel = make("folded")
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        tiling = VectorTiling(space, 8)
        tasks = groups.make_tasks(space, min_limit(space))
        sigma = Sigma(world, kernel, tiling, lambda _: tasks)
        with vector.make(world, tiling, "disk", count=2, cache_bytes=1 << 20) as vectors:
            put(vectors, random_vector(space))
            sigma.apply(Place(vectors, 0), Place(vectors, 1))
        bytes_of_tiles = 8 * sum(int(tiling.sizes[task.tiles(tiling)].sum()) for task in tasks)
        assert sigma.moved.read == sigma.moved.added == bytes_of_tiles


def strip_work(space, tiling, dtype, times):
    """Tasks and bands of panels that are larger than the smallest by this factor."""
    layout = strips.layout(dtype)
    limit = times * min_limit(space, layout)
    return groups.make_tasks(space, limit, layout=layout), groups.make_bands(tiling, limit, layout)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if dtype == "float64" or name == "folded" else pytest.mark.long)
        for name in CASES
        for dtype in ("float64", "float32")
    ],
)
def test_products_through_strips_are_those_of_pyscf(name, dtype, tmp_path):
    """The traffic is that of the plan."""
    space, one, two, kernel = make(name)
    dense = random_vector(space)
    expected = reference(space, one, two, dense)
    word = np.dtype(dtype).itemsize
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        for times, overlaps, side in ((1, True, 8), (1, False, 32), (3, True, 8), (1000, False, 8)):
            tiling = VectorTiling(space, side)
            tasks, bands = strip_work(space, tiling, dtype, times)
            sigma = Sigma(
                world,
                kernel,
                tiling,
                lambda _, t=tasks: t,
                lambda _, b=bands: b,
                threads=2,
                overlaps=overlaps,
            )
            with vector.make(world, tiling, "disk", count=3, dtype=dtype, cache_bytes=1 << 20) as vectors:
                put(vectors, dense)
                for result in (1, 2):  # strips are used again
                    sigma.apply(Place(vectors, 0), Place(vectors, result))
                    found = vectors.dense(result)
                    tolerance = 1e-11 if dtype == "float64" else 1e-5
                    assert abs(found - expected).max() < tolerance * abs(expected).max()
                    if space.parity:
                        assert np.array_equal(found, space.parity * found.T)
            sigma.close()
            rows = sum(strips.task_bytes(space, task, dtype) for task in tasks if not task.transposed)
            moved_tiles = [*bands, *(task for task in tasks if task.transposed)]
            tiles = word * sum(int(tiling.sizes[task.tiles(tiling)].sum()) for task in moved_tiles)
            whole = strips.file_bytes(space, dtype)
            assert sigma.moved.read == 2 * (tiles + 2 * rows)
            assert sigma.moved.added == 2 * (whole + rows + tiles)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", WITH_ROWS)
def test_products_through_rows_are_those_of_pyscf(name, dtype, tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        check_rows(world, name, dtype, count=1, kind="memory", side=8)


@pytest.mark.parametrize("side", [8, 24])
@pytest.mark.parametrize("name", CASES)
def test_bands_are_all_rows_once(name, side):
    space = make(name)[0]
    tiling, layout = VectorTiling(space, side), strips.layout("float64")
    widths = np.array(space.counts[1])[np.arange(space.groups) ^ space.irrep]
    heights = np.diff(space.alpha.offsets)
    row = max(int(layout.room(np.zeros(1, int), width)[0]) for width in widths)
    for limit in (row, 3 * row, 1000 * row):
        bands = groups.make_bands(tiling, limit, layout)
        rows = np.concatenate([band.home for band in bands])
        assert len(rows) == len(set(rows.tolist())) == heights[widths > 0].sum()
        assert all(band.elements(space, layout) <= limit for band in bands)
    assert len(bands) == 1
    assert groups.make_bands(tiling, row - 1, layout) is None
