"""Indices that are no boxes: one list of integers or booleans among the slices, a mask of the whole, new axes.

Their meaning is that of NumPy and h5py; an index that means different things to the two is refused. Such an index
is cut into boxes (runs of neighbours in a list, rows of a mask), and each box is transferred by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.indexing import as_elements

if TYPE_CHECKING:
    from outcore import _core
    from outcore.arrays.sectioned import Sectioned

    Array = np.ndarray[Any, np.dtype[Any]]
    Started = _core.Request

_PLAIN = (int, slice, type(Ellipsis), np.int64)
_UNDER_WAY = 64  # transfers at most at a time
_PIECE_BYTES = 16 << 20  # bytes of the array that a mask reads at a time


def is_more_than_a_box(index: Any) -> bool:
    """Whether this module has to understand an index."""
    for axis in index if type(index) is tuple else (index,):
        if type(axis) not in _PLAIN and (axis is None or isinstance(axis, list | tuple | range | np.ndarray)):
            return not isinstance(axis, np.ndarray) or axis.ndim > 0
    return False


def get(array: Sectioned, index: Any, what: str) -> Array:
    """The result of `a[index]`."""
    if (mask := _mask(index, array.shape, what)) is not None:
        return _get_masked(array, mask)
    listed = _ListIndex(index, array.shape, what)
    boxes, shape = listed.boxes(), listed.stored_shape(array)
    stored = np.empty(shape, array.dtype)
    _all(array._start_get(array._select(box), stored[part]) for box, part in boxes)
    return listed.as_result(stored)


def put(array: Sectioned, index: Any, value: Any, what: str) -> None:
    """Does `a[index] = value`."""
    elements = as_elements(value, array.dtype, "put into an array")
    if (mask := _mask(index, array.shape, what)) is not None:
        _put_masked(array, mask, elements)
        return
    listed = _ListIndex(index, array.shape, what)
    stored = listed.as_stored(elements, listed.stored_shape(array))
    _all(array._start_put(array._select(box), stored[part]) for box, part in listed.boxes())


def _all(transfers: Iterator[Started]) -> None:
    under_way: deque[Started] = deque()
    for transfer in transfers:
        under_way.append(transfer)
        if len(under_way) == _UNDER_WAY:
            under_way.popleft().wait()
    for transfer in under_way:
        transfer.wait()


# ---- a list and new axes ----


class _ListIndex:
    """An index with at most one list, taken apart."""

    def __init__(self, index: Any, shape: tuple[int, ...], what: str) -> None:
        self._what = what
        entries = [_as_list(axis) for axis in (index if type(index) is tuple else (index,))]
        lists = [i for i, entry in enumerate(entries) if isinstance(entry, np.ndarray)]
        if len(lists) > 1:
            raise IndexError(f"{what}: {len(lists)} lists in an index; one can be used at a time")
        self._refuse_what_has_two_meanings(entries)
        self._entries = self._all_axes(entries, len(shape))
        self._axes = [entry for entry in self._entries if entry is not None]  # without new axes
        self.axis = next((i for i, axis in enumerate(self._axes) if isinstance(axis, np.ndarray)), -1)
        if self.axis >= 0:
            self._list = self._checked(self._axes[self.axis], shape[self.axis])
            # Each index once, in rising order; if one occurs twice, the value that is put last stays.
            reverse = self._list.ravel()[::-1]
            self._sorted, last = np.unique(reverse, return_index=True)
            self._last = reverse.size - 1 - last

    def _refuse_what_has_two_meanings(self, entries: list[Any]) -> None:
        """Refuses a list and an integer with slices between them: NumPy treats the integer as a list, too, and then
        makes the list's axis the first of the result; h5py does not."""
        places = [i for i, e in enumerate(entries) if isinstance(e, np.ndarray | int | np.integer)]
        has_list = any(isinstance(e, np.ndarray) for e in entries)
        if has_list and len(places) > 1 and places[-1] - places[0] >= len(places):
            raise IndexError(
                f"{self._what}: a list and an integer with slices between them mean different things to NumPy and "
                "to h5py; index in two steps, or use a slice of one element"
            )

    def _all_axes(self, entries: list[Any], rank: int) -> list[Any]:
        dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
        given = sum(entry is not None and entry is not Ellipsis for entry in entries)
        if len(dots) > 1:
            raise IndexError(f"{self._what}: more than one Ellipsis in an index")
        if given > rank:
            raise IndexError(f"{self._what}: {given} indices for {rank} dimensions")
        place = dots[0] if dots else len(entries)
        return entries[:place] + [slice(None)] * (rank - given) + entries[place + len(dots) :]

    def _checked(self, numbers: Array, extent: int) -> Array:
        """The list as integers from 0; IndexError as NumPy raises it."""
        if numbers.dtype == bool:
            if numbers.shape != (extent,):
                raise IndexError(
                    f"{self._what}: a mask of shape {numbers.shape} for axis {self.axis} with size {extent}"
                )
            return np.flatnonzero(numbers)
        if numbers.dtype.kind not in "iu":
            raise IndexError(f"{self._what}: a list of {numbers.dtype} is no index")
        outside = (numbers < -extent) | (numbers >= extent)
        if outside.any():
            first = numbers[outside][0]
            raise IndexError(
                f"{self._what}: index {first} is out of bounds for axis {self.axis} with size {extent}"
            )
        return np.where(numbers < 0, numbers + extent, numbers).astype(np.intp)

    def _position(self) -> int:
        """Position of the list's axis in the transferred array."""
        return sum(isinstance(axis, slice) for axis in self._axes[: self.axis])

    def stored_shape(self, array: Sectioned) -> tuple[int, ...]:
        """Shape of the transferred array: each index of the list once, no new axes."""
        if self.axis < 0:
            return array._select(tuple(self._axes)).shape
        axes = list(self._axes)
        axes[self.axis] = slice(None)
        shape = list(array._select(tuple(axes)).shape)
        shape[self._position()] = len(self._sorted)
        return tuple(shape)

    def boxes(self) -> Iterator[tuple[Any, Any]]:
        """Boxes of the array, each with the place of its elements in the transferred array."""
        axes = list(self._axes)
        if self.axis < 0:
            yield tuple(axes), ...
            return
        before = (slice(None),) * self._position()
        ends = np.flatnonzero(np.diff(self._sorted) != 1) + 1
        for run in np.split(np.arange(len(self._sorted)), ends):
            if len(run):
                first, last = self._sorted[run[0]], self._sorted[run[-1]]
                axes[self.axis] = slice(int(first), int(last) + 1)
                yield tuple(axes), (*before, slice(int(run[0]), int(run[-1]) + 1))

    def as_result(self, stored: Array) -> Array:
        """The transferred array in the order of the list, with new axes."""
        if self.axis >= 0:
            order = np.searchsorted(self._sorted, self._list.ravel())
            if len(order) != len(self._sorted) or np.any(order != np.arange(len(order))):
                stored = np.take(stored, order, axis=self._position())
        return stored.reshape(self._result_shape(stored.shape))

    def as_stored(self, value: Array, shape: tuple[int, ...]) -> Array:
        """A value, broadcast to the shape of the result, in the order of the transfer."""
        whole = list(shape)
        if self.axis >= 0:
            whole[self._position()] = self._list.size
        result = self._result_shape(tuple(whole))
        while value.ndim > len(result) and value.shape[0] == 1:
            value = value[0]
        every = np.broadcast_to(value, result).reshape(whole)
        return every if self.axis < 0 else np.take(every, self._last, axis=self._position())

    def _result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        sides, result = iter(shape), []
        for entry in self._entries:
            if entry is None:
                result.append(1)
            elif isinstance(entry, np.ndarray):
                next(sides)
                result += self._list.shape
            elif isinstance(entry, slice):
                result.append(next(sides))
        return tuple(result)


def _as_list(axis: Any) -> Any:
    if isinstance(axis, list | tuple | range):
        numbers = np.asarray(axis)
        return numbers.astype(np.intp) if numbers.size == 0 else numbers
    if isinstance(axis, np.ndarray) and axis.ndim == 0 and axis.dtype.kind in "iu":
        return int(axis)
    return axis


# ---- a mask of the whole ----


def _mask(index: Any, shape: tuple[int, ...], what: str) -> Array | None:
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if not isinstance(index, list | np.ndarray):
        return None
    mask = np.asarray(index)
    if mask.dtype != bool or mask.ndim < 2:
        return None
    if mask.shape != shape:
        raise IndexError(
            f"{what}: a mask of shape {mask.shape}; it has to be that of the array, or of one axis"
        )
    return mask


def _rows(mask: Array, itemsize: int) -> Iterator[slice]:
    """Ranges of rows with selected elements, each of one row or at most `_PIECE_BYTES`."""
    most = max(1, _PIECE_BYTES // max(1, mask[0].size * itemsize))
    found = np.flatnonzero(mask.any(axis=tuple(range(1, mask.ndim))))
    while len(found):
        together = found[: int(np.argmax(np.append(np.diff(found) != 1, True))) + 1][:most]
        yield slice(int(together[0]), int(together[-1]) + 1)
        found = found[len(together) :]


def _get_masked(array: Sectioned, mask: Array) -> Array:
    pieces = [array.get(np.s_[rows, ...])[mask[rows]] for rows in _rows(mask, array.dtype.itemsize)]
    return np.concatenate(pieces) if pieces else np.empty(0, array.dtype)


def _put_masked(array: Sectioned, mask: Array, value: Array) -> None:
    """Writes the selected elements only: other processes may write those between them."""
    count = int(np.count_nonzero(mask))
    if value.ndim > 1 or value.size not in (1, count):
        raise ValueError(f"{value.shape} elements for the {count} that the mask selects")
    every = np.broadcast_to(value.ravel(), (count,))
    at = np.argwhere(mask)
    follows = np.all(np.diff(at, axis=0) == ([0] * (mask.ndim - 1) + [1]), axis=1)

    def transfers() -> Iterator[Started]:
        for run in np.split(np.arange(count), np.flatnonzero(~follows) + 1):
            if len(run):
                *row, first = (int(each) for each in at[run[0]])
                box = (*row, slice(first, first + len(run)))
                yield array._start_put(array._select(box), every[run[0] : run[-1] + 1])

    _all(transfers())
