"""Turns an index between the brackets of an array (slices and integers, as in NumPy) into a box."""

from __future__ import annotations

import errno
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError

Axis = int | slice
"""One axis of an index. A box is a tuple of them, as `numpy.s_[2:5, :]` makes it."""


class Selection:
    """Every `step`-th element of a box, and how the result differs from it: some axes run backwards, those
    indexed by an integer are dropped. `shape` is that of the result."""

    __slots__ = ("_as_stored", "backwards", "begin", "dropped", "end", "shape", "step")

    def __init__(
        self, begin: list[int], end: list[int], step: list[int], backwards: list[bool], dropped: list[bool]
    ) -> None:
        self.begin, self.end, self.step = begin, end, step
        self.backwards, self.dropped = backwards, dropped
        self.shape = tuple(
            [
                max(0, -(-(e - b) // s))
                for b, e, s, drop in zip(begin, end, step, dropped, strict=True)
                if not drop
            ]
        )
        self._as_stored: tuple[Any, ...] | None = None
        if True in backwards or True in dropped:
            self._as_stored = tuple(
                [
                    None if drop else slice(None, None, -1 if back else 1)
                    for drop, back in zip(dropped, backwards, strict=True)
                ]
            )

    @property
    def is_element(self) -> bool:
        """Whether every axis was indexed by an integer."""
        return not self.shape and bool(self.dropped)

    @property
    def is_plain(self) -> bool:
        """Whether it selects every element of the box, in rising order."""
        return True not in self.backwards and all(step == 1 for step in self.step)

    def as_stored(self, result: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A view of `result` with all axes of the array, each in rising order."""
        if self._as_stored is None:
            return result
        view: np.ndarray[Any, Any] = result[self._as_stored]
        return view


def select(index: Any, shape: Sequence[int], what: str, *, strict: bool = False) -> Selection:
    """Understands integers, slices and an Ellipsis. Slices that reach beyond the shape are cut, as NumPy does;
    with `strict` they are OutcoreError (EINVAL). IndexError for anything else, or an integer outside. `what` is
    named in errors."""
    axes = index if type(index) is tuple else (index,)
    if not shape:  # one element: stored with an axis of length 1, as if an integer had indexed it
        _all_axes(axes, 0, what)
        return Selection([0], [1], [1], [False], [True])
    if len(axes) != len(shape) or any([axis is Ellipsis for axis in axes]):
        axes = _all_axes(axes, len(shape), what)
    begin, end, steps, backwards, dropped = [], [], [], [], []
    for i, axis in enumerate(axes):
        extent = shape[i]
        drop = back = False
        if type(axis) is slice:
            if strict:
                _check_inside(axis, extent, i, what)
            first, stop, step = axis.indices(extent)
            if step != 1:
                first, stop, step, back = _forwards(first, stop, step)
            elif stop < first:
                stop = first
        else:
            first, step, drop = _integer(axis, extent, i, what), 1, True
            stop = first + 1
        begin.append(first)
        end.append(stop)
        steps.append(step)
        backwards.append(back)
        dropped.append(drop)
    return Selection(begin, end, steps, backwards, dropped)


def _all_axes(axes: tuple[Any, ...], rank: int, what: str) -> tuple[Any, ...]:
    """One entry for each dimension."""
    dots = [i for i, axis in enumerate(axes) if axis is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{what}: more than one Ellipsis in an index")
    if len(axes) - len(dots) > rank:
        raise IndexError(f"{what}: {len(axes) - len(dots)} indices for {rank} dimensions")
    place = dots[0] if dots else len(axes)
    missing = (slice(None),) * (rank - (len(axes) - len(dots)))
    return axes[:place] + missing + axes[place + len(dots) :]


def _forwards(start: int, stop: int, step: int) -> tuple[int, int, int, bool]:
    """The same elements in rising order: begin, end, step, and whether the order was turned round."""
    count = len(range(start, stop, step))
    if count == 0:
        return 0, 0, 1, False
    last = start + (count - 1) * step
    return min(start, last), max(start, last) + 1, abs(step), step < 0


def _integer(axis: Any, extent: int, i: int, what: str) -> int:
    if axis is None:
        raise IndexError(f"{what}: None adds an axis between the brackets of a[...] only")
    if isinstance(axis, bool | np.bool_):
        raise IndexError(f"{what}: booleans are no index")
    try:
        number = operator.index(axis)
    except TypeError:
        raise IndexError(
            f"{what}: {type(axis).__name__} on axis {i}; an index is made of integers, slices and an Ellipsis "
            "(lists may stand between the brackets of a[...] only; for points use gather, scatter or scatter_acc)"
        ) from None
    if not -extent <= number < extent:
        raise IndexError(f"{what}: index {number} is out of bounds for axis {i} with size {extent}")
    return number % extent


def _check_inside(axis: slice, extent: int, i: int, what: str) -> None:
    for bound in (axis.start, axis.stop):
        if bound is not None and not -extent <= operator.index(bound) <= extent:
            raise OutcoreError(
                errno.EINVAL,
                f"section of {what}",
                detail=f"{bound} on axis {i} is outside of its {extent} elements",
            )


def scalar_fits(value: object, dtype: np.dtype[Any]) -> bool:
    """Whether a Python number can become an element without losing anything but digits."""
    if isinstance(value, bool | int):
        if dtype.kind not in "iu":
            return True
        limits = np.iinfo(dtype)
        return int(limits.min) <= value <= int(limits.max)
    if isinstance(value, float):
        return dtype.kind in "fc"
    return isinstance(value, complex) and dtype.kind == "c"


def as_elements(value: Any, dtype: np.dtype[Any], what: str) -> np.ndarray[Any, Any]:
    """An array of the type. Python numbers are converted where nothing is lost, arrays never: TypeError."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        if scalar_fits(value, dtype):
            return np.asarray(value, dtype)
        raise TypeError(f"{what}: {value!r} is no {dtype}")
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{what}: a masked array, whose mask would be lost; give array.filled(..)")
    array = np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"{what}: elements of type {array.dtype}; convert them first: x.astype('{dtype}')")
    return array
