"""Parts of vectors in memory, and arguments that the kernel refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from ci_kernel_support import NOTHING, indices, irreps_of, random_one, random_two

from outcore._core import CIKernel, CIPanel


def refused(text: str, call: Any) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_what_is_refused() -> None:
    rng = np.random.default_rng(9)
    irreps = [0, 0, 1, 1]
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    pair, triple = (one, one), (two, two, two)

    def make(*arguments: Any, **named: Any) -> Any:
        return lambda: CIKernel(*arguments, **named)

    refused("5 electrons", make(irreps, 2, 5, 2, 0, 0, one, two))
    refused("irrep 2 of the state", make(irreps, 2, 2, 2, 2, 0, one, two))
    refused("parity", make(irreps, 2, 2, 2, 0, 2, one, two))
    refused("as many alpha as beta", make(irreps, 2, 2, 1, 0, 1, one, two))
    refused("sorted by irrep", make(irreps[::-1], 2, 2, 2, 0, 0, one, two))
    refused("both tuples", make(irreps, 2, 2, 2, 0, 0, pair, two))
    refused("of each pair of spins", make(irreps, 2, 2, 2, 0, 0, pair, pair))
    refused("same orbitals", make(irreps, 2, 2, 2, 0, 1, pair, triple))
    refused("spin_shift", make(irreps, 2, 2, 2, 0, 0, pair, triple, 0.1))
    refused(r"\[n\]\[n\]", make(irreps, 2, 2, 2, 0, 0, one[:3, :3].copy(), two))

    kernel = CIKernel(irreps, 2, 2, 2, 0, 0, one, two)
    other = CIKernel(irreps, 2, 2, 2, 0, 0, one, two)
    full = indices(6)
    x, t = (CIPanel(kernel, full, NOTHING, NOTHING, np.float64) for _ in range(2))
    refused("holes", lambda: kernel.opposite_spin(x, t, 0, 5))
    refused("panel of its own", lambda: kernel.opposite_spin(x, x, 0, 4))
    refused("another kernel", lambda: other.opposite_spin(x, t, 0, 4))
    few = CIPanel(kernel, full[:3], NOTHING, NOTHING, np.float64)
    refused("a panel has not", lambda: kernel.opposite_spin(few, t, 0, 4))
    refused("same home rows", lambda: kernel.same_spin(few, t))
    sectors = kernel.alpha_strings.offsets[(full >= kernel.alpha_strings.offsets[1]).astype(int)]
    narrow = CIPanel(kernel, NOTHING, full, sectors + 1, np.float64)
    refused("a panel has not", lambda: kernel.opposite_spin(narrow, t, 0, 4))
    refused(
        "same precision", lambda: kernel.same_spin(x, CIPanel(kernel, full, NOTHING, NOTHING, np.float32))
    )
    turned = [CIPanel(kernel, full, NOTHING, NOTHING, np.float64, transposed=True) for _ in range(2)]
    refused("rows must be alpha", lambda: kernel.opposite_spin(*turned, 0, 4))
    refused("must ascend", lambda: CIPanel(kernel, full[::-1].copy(), NOTHING, NOTHING, np.float64))
    refused("must ascend", lambda: CIPanel(kernel, full + 1, NOTHING, NOTHING, np.float64))
    refused("must ascend", lambda: CIPanel(kernel, NOTHING, full[::-1].copy(), sectors, np.float64))
    refused("given twice", lambda: CIPanel(kernel, full[:3], full, sectors, np.float64))
    refused("6 other rows with 5", lambda: CIPanel(kernel, NOTHING, full, sectors[:5], np.float64))
    for wrong in (sectors - 1, sectors + 7):
        refused("cannot begin", lambda wrong=wrong: CIPanel(kernel, NOTHING, full, wrong, np.float64))
    for unit in (0, 32, 96, -64):
        refused(
            "power of two",
            lambda unit=unit: CIPanel(kernel, full, NOTHING, NOTHING, np.float64, unit=unit),
        )
    refused("dtype", lambda: CIPanel(kernel, full, NOTHING, NOTHING, np.complex128))
    refused("one sector", lambda: x.load(0, 0, np.zeros((6, 6))))
    refused("not in the vector", lambda: kernel.diagonal(3, 0, np.zeros((4, 1))))
    for far in (-1, 2**63 - 1):  # also where the end is no number
        refused("one sector", lambda far=far: x.load(far, 0, np.zeros((2, 2))))
        refused("one sector", lambda far=far: x.unload(0, far, np.zeros((2, 2))))
        refused("not in the vector", lambda far=far: kernel.diagonal(far, 0, np.zeros((2, 2))))
        refused("not in the vector", lambda far=far: kernel.diagonal(0, far, np.zeros((2, 2))))
    with pytest.raises(TypeError):
        x.load(0, 0, np.zeros((2, 2), dtype=complex))  # type: ignore[call-overload]


_ANOTHER_BLAS = """
import ctypes
import numpy as np
from scipy.linalg import cython_blas
from outcore._core import CIKernel

function = ctypes.CFUNCTYPE(None)(lambda: None)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
signature = b"void (char *, char *, long *, long *, long *, d *)"  # stays as long as the capsule
capsule = new_capsule(ctypes.cast(function, ctypes.c_void_p), signature, None)
cython_blas.__pyx_capi__["dgemm"] = capsule
CIKernel([0, 0], 1, 1, 1, 0, 0, np.zeros((2, 2)), np.zeros((2, 2, 2, 2)))
"""


def test_a_blas_with_sizes_of_another_type_is_refused() -> None:
    """Its arguments would be read as other numbers. In a process that has not looked for a BLAS yet."""
    found = subprocess.run([sys.executable, "-c", _ANOTHER_BLAS], capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert re.search(r"scipy's dgemm.*long \*", found.stderr), found.stderr


def test_panels_take_and_give_tiles() -> None:
    """Any tile of a sector, as it is or transposed, into panels of any rows and columns."""
    rng = np.random.default_rng(10)
    irreps = irreps_of([4, 3])
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    kernel = CIKernel(irreps, 2, 3, 3, 1, 0, one, two)
    offsets = kernel.alpha_strings.offsets
    count = int(offsets[2])
    for dtype, tiles in ((np.float64, np.float32), (np.float32, np.float64), (np.float64, np.float64)):
        for transposed, unit in ((False, 64), (True, 64), (False, 4096), (True, 128)):
            rows = np.sort(rng.choice(count, 20, replace=False)).astype(np.int64)
            at_home = rng.random(20) < 0.4
            irrep = (rows >= offsets[1]).astype(int) ^ 1  # of its columns
            begins = rng.integers(offsets[irrep], offsets[irrep + 1] + 1)
            begins[at_home] = offsets[irrep][at_home]
            panel = CIPanel(
                kernel,
                rows[at_home],
                rows[~at_home],
                begins[~at_home],
                dtype,
                transposed=transposed,
                unit=unit,
            )
            assert np.array_equal(panel.rows, rows)
            panel.clear()
            whole = np.zeros((count, count), dtype=tiles)
            for a, b in ((0, 1), (1, 0)):
                for first in range(offsets[a], offsets[a + 1], 6):
                    for left in range(offsets[b], offsets[b + 1], 9):
                        shape = min(6, offsets[a + 1] - first), min(9, offsets[b + 1] - left)
                        tile = rng.standard_normal(shape).astype(tiles)
                        whole[first : first + shape[0], left : left + shape[1]] = tile
                        if left % 2:
                            panel.load(first, left, tile, scale=2.0)
                        else:
                            panel.load(first, left, np.asfortranarray(tile.T), transpose=True, scale=2.0)
            given, turned = np.ones_like(whole), np.ones_like(whole)
            for a, b in ((0, 1), (1, 0)):
                part = slice(offsets[a], offsets[a + 1]), slice(offsets[b], offsets[b + 1])
                panel.unload(offsets[a], offsets[b], given[part], scale=-0.5)
                panel.unload(offsets[a], offsets[b], turned[part[::-1]], transpose=True, scale=-0.5)
            inside = np.zeros((count, count), dtype=bool)
            for row, begin, end in zip(rows, begins, offsets[irrep + 1], strict=True):
                inside[row, begin:end] = True
            np.testing.assert_allclose(given, 1 - np.where(inside, whole, 0), atol=1e-6)
            np.testing.assert_array_equal(given, turned.T)


def test_a_panel_is_used_again() -> None:
    rng = np.random.default_rng(11)
    irreps = [0] * 5
    kernel = CIKernel(irreps, 1, 2, 2, 0, 0, random_one(irreps, rng), random_two(irreps, rng))
    panel = CIPanel(kernel, indices(10), NOTHING, NOTHING, np.float64)
    before = panel.nbytes
    panel.assign(NOTHING, indices(3), np.array([5, 5, 5], np.int64))
    assert panel.nbytes < before
    panel.clear()
    panel.load(0, 0, np.ones((10, 10)))
    found = np.zeros((10, 10))
    panel.unload(0, 0, found)
    assert found[:3, 5:].all()
    assert found.sum() == 15


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("parity", [1, -1])
def test_tiles_of_a_folded_vector_at_once(dtype: Any, parity: int) -> None:
    """The result is the same as if tiles are moved one by one."""
    rng = np.random.default_rng(12)
    irreps = irreps_of([4, 3])
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    kernel = CIKernel(irreps, 2, 3, 3, 0, parity, one, two)
    offsets = kernel.alpha_strings.offsets
    tiles, vector = [], []
    for g in range(2):
        cuts = [*range(offsets[g], offsets[g + 1], 5), int(offsets[g + 1])]
        for i in range(len(cuts) - 1):
            for j in range(i + 1):
                shape = cuts[i + 1] - cuts[i], cuts[j + 1] - cuts[j]
                tiles.append([sum(len(each) for each in vector), cuts[i], cuts[j], *shape])
                block = rng.standard_normal(shape).astype(dtype)
                vector.append((block + parity * block.T if i == j else block).ravel())
    places, values = np.array(tiles, np.int64), np.concatenate(vector)
    rows = np.arange(0, offsets[2], 2)
    alone, together = (CIPanel(kernel, NOTHING, rows, begins_of(rows, offsets), dtype) for _ in range(2))
    for panel in (alone, together):
        panel.clear()
    together.load_tiles(values, places, parity, 3)
    expected, count = np.zeros_like(values), int(offsets[2])
    for offset, row, column, height, width in tiles:
        tile = values[offset : offset + height * width].reshape(height, width)
        alone.load(row, column, tile)
        if row != column:
            alone.load(column, row, tile, transpose=True, scale=parity)
    dense = [np.zeros((count, count), dtype) for _ in range(2)]
    for panel, into in zip((alone, together), dense, strict=True):
        for a, b in pairwise(offsets):
            panel.unload(a, a, into[a:b, a:b])
    np.testing.assert_array_equal(*dense)
    assert np.count_nonzero(dense[0]) > 0
    found = np.zeros_like(values)
    together.add_to_tiles(found, places, parity, 3)
    both = dense[0] + parity * dense[0].T
    for offset, row, column, height, width in tiles:
        part = slice(offset, offset + height * width)
        expected[part] = both[row : row + height, column : column + width].ravel()
    np.testing.assert_array_equal(found, expected)
    wrong = places.copy()
    wrong[-1, 0] += 1
    refused("is not in a vector", lambda: together.load_tiles(values, wrong, parity))
    refused("is not in a vector", lambda: together.add_to_tiles(values, wrong, parity))
    wrong[-1] = places[0]
    wrong[-1, 3] -= 1
    refused("is no square", lambda: together.load_tiles(values, wrong, parity))
    refused(r"\[tiles\]\[5\]", lambda: together.load_tiles(values, places[:, :4].copy(), parity))


def begins_of(rows: Any, offsets: Any) -> Any:
    """A first column for each row of a state of irrep 0."""
    irreps = np.searchsorted(offsets, rows, side="right") - 1
    return offsets[irreps] + rows % 7
