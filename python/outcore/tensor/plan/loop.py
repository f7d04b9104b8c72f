"""The native loop of a product, as Python calls it: arrays as boxes that native code moves, or functions of Python
where only those can; steps as tables."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.parallel.requests import Request, all_of, then
from outcore.tensor.layout.geometry import ProductGeometry, ProductTask
from outcore.tensor.layout.kernels import DTYPES, type_name
from outcore.tensor.layout.operands import Array, Operand, Use
from outcore.tensor.plan import gemm

_BLOCK = 1 << 17  # elements of a block of a diagonal

Described = tuple[int, Sequence[int], Sequence[int]]  # address, extents, strides in bytes


def at_address(address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Memory that native code lends."""
    return np.asarray(_Lent(address, shape, strides, dtype))


class _Lent:
    def __init__(
        self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]
    ) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(strides),
            "typestr": dtype.str,
            "version": 3,
        }


# ---- arrays ----


def boxes_of(operand: Operand, labels: str, dtype: np.dtype[Any], use: Use) -> _core.Boxes:
    """An array with these axes in a product of elements of a type."""
    if dtype in DTYPES and operand.facts.dtype == dtype and len(set(labels)) == len(labels):
        found = operand.native(use)
        if found is not None:
            return found
    return _core.Boxes.of_python(Moves(operand, labels, dtype))


class Moves:
    """Boxes of an array that native code does not move: the axes of a box are the different letters of the array,
    its elements those that are multiplied. A letter twice is the diagonal."""

    def __init__(self, operand: Operand, labels: str, dtype: np.dtype[Any]) -> None:
        self._operand, self._labels, self._dtype = operand, labels, dtype
        self._letters = "".join(dict.fromkeys(labels))

    def get(
        self, begin: Sequence[int], end: Sequence[int], address: int, strides: Sequence[int]
    ) -> Sequence[Request]:
        target = self._memory(begin, end, address, strides)
        if self._letters != self._labels:
            self._get_diagonal(begin, end, target)
            return []
        box, facts = self._box(begin, end), self._operand.facts
        if facts.dtype == self._dtype:
            return self._operand.get(box, target)
        buffer = np.zeros([last - first for first, last in box], facts.dtype)
        return [then(all_of(self._operand.get(box, buffer)), lambda _: np.copyto(target, buffer))]

    def _get_diagonal(self, begin: Sequence[int], end: Sequence[int], target: Array) -> None:
        """Block after block along it: what lies beside the diagonal takes more memory than a panel has."""
        facts, labels, letters = self._operand.facts, self._labels, self._letters
        for part in itertools.product(*self._along_diagonal(begin, end)):
            box = self._box(*zip(*part, strict=True))
            block = np.zeros([last - first for first, last in box], facts.dtype)
            all_of(self._operand.get(box, block)).wait()
            place = tuple(
                slice(first - origin, last - origin)
                for (first, last), origin in zip(part, begin, strict=True)
            )
            target[place] = np.einsum(f"{labels}->{letters}", block)

    def _along_diagonal(self, begin: Sequence[int], end: Sequence[int]) -> list[list[tuple[int, int]]]:
        """Where each letter of a box is cut: one that comes twice, between tiles or so that a block is small."""
        whole = dict(zip(self._letters, zip(begin, end, strict=True), strict=True))
        counts = Counter(self._labels)
        others = math.prod(last - first for x, (first, last) in whole.items() if counts[x] == 1)
        axes = sum(count for count in counts.values() if count > 1)
        side = max(1, int((_BLOCK / max(1, others)) ** (1 / axes)))
        found = []
        for letter, (first, last) in whole.items():
            cuts = self._operand.facts.tiles[self._labels.index(letter)]
            if counts[letter] == 1:
                ends = [first, last]
            elif cuts is None:
                ends = [*range(first, last, side), last]
            else:
                ends = [each for each in cuts if first <= each <= last]
            found.append(list(itertools.pairwise(ends)))
        return found

    def put(
        self, begin: Sequence[int], end: Sequence[int], address: int, strides: Sequence[int], add: bool
    ) -> Sequence[Request]:
        value = self._memory(begin, end, address, strides)
        value = value.astype(self._operand.facts.dtype, copy=False)
        return self._operand.put(self._box(begin, end), value, add=add)

    def prefetch(self, boxes: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        if self._operand.facts.where == "disk" and self._letters == self._labels:
            self._operand.prefetch([self._box(*each) for each in boxes])

    def _box(self, begin: Sequence[int], end: Sequence[int]) -> list[tuple[int, int]]:
        intervals = dict(zip(self._letters, zip(begin, end, strict=True), strict=True))
        return [intervals[label] for label in self._labels]

    def _memory(
        self, begin: Sequence[int], end: Sequence[int], address: int, strides: Sequence[int]
    ) -> Array:
        shape = [last - first for first, last in zip(begin, end, strict=True)]
        return at_address(address, shape, strides, self._dtype)


# ---- steps ----


def step_table(tasks: Sequence[ProductTask]) -> NDArray[np.int32]:
    """[n][4]: the panels of batch, rows, columns and inner indices of all steps. Inner -1: the result is zero."""
    steps = itertools.chain.from_iterable(map(_steps_of_task, tasks))
    return np.fromiter(itertools.chain.from_iterable(steps), np.int32).reshape(-1, 4)


def _steps_of_task(task: ProductTask) -> Iterator[tuple[int, int, int, int]]:
    """As iterating does, without an object for each of what may be hundreds of thousands."""
    if len(task.pairs) == 1:
        ((rows, columns),) = task.pairs
        return itertools.product((task.batch,), (rows,), (columns,), task.inner)
    return ((task.batch, *pair, inner) for inner in task.inner for pair in task.pairs)


def steps_of(geometry: ProductGeometry, tasks: Sequence[ProductTask], *, half: bool = False) -> _core.Steps:
    """As native code carries them out. `half`: tasks make one of two panels that are alike."""
    product = geometry.problem.product
    groups = []
    for cut, panels in zip(geometry.cuts, geometry.panels, strict=True):
        cells = np.array(cut.cells, np.int64).reshape(len(cut.cells), len(cut.cuts), 2)
        groups.append((cells, [list(members) for members in panels]))
    sides, flags = [], []
    for labels, own, there in (
        (product.left, (0, 1, 3), geometry.left),
        (product.right, (0, 3, 2), geometry.right),
        (product.out, (0, 1, 2), geometry.out),
    ):
        places = {
            label: (which, place)
            for which, group in enumerate(own)
            for place, label in enumerate(product.groups[group])
        }
        sides.append((own, [places[label] for label in dict.fromkeys(labels)]))
        flags.append(None if there is None else np.ascontiguousarray(there, np.uint8).tobytes())
    ends = np.cumsum([len(task) for task in tasks], dtype=np.int64).tolist()
    return _core.Steps(groups, sides, flags, step_table(tasks), ends, half)


# ---- multiplication ----


def multiplication(dtype: np.dtype[Any], scale: complex) -> tuple[Any, Array]:
    """Who multiplies elements of a type, for `tensor_product`, and what by."""
    factor = np.array(scale, dtype if dtype in DTYPES else None)
    if dtype in DTYPES and gemm.has_blas():
        return type_name(dtype), factor

    def multiply(left: Described, right: Described, out: Described, add: bool) -> None:
        panels = [at_address(*each, dtype) for each in (left, right, out)]
        gemm.multiply(panels[0], panels[1], panels[2], scale, add=add)

    return multiply, factor
