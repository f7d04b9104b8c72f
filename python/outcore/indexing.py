"""What stands between the brackets of an array: slices and integers, as NumPy takes them, made into boxes."""

from __future__ import annotations

import errno
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.errors import OutcoreError

Axis = int | slice
"""One axis of an index. A box is a tuple of them, as `numpy.s_[2:5, :]` makes it."""


@dataclass(frozen=True)
class Selection:
    """Every `step`-th element of a box, and how the result differs from it: some axes run backwards, those
    indexed by an integer are dropped."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    step: tuple[int, ...]
    backwards: tuple[bool, ...]
    dropped: tuple[bool, ...]

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Shape of the elements, no axis dropped."""
        return tuple(
            max(0, -(-(end - begin) // step))
            for begin, end, step in zip(self.begin, self.end, self.step, strict=True)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(n for n, drop in zip(self.full_shape, self.dropped, strict=True) if not drop)

    def as_stored(self, result: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A view of memory of the shape of the result with all axes, running forwards."""
        key: list[Any] = []
        for drop, back in zip(self.dropped, self.backwards, strict=True):
            key.append(None if drop else slice(None, None, -1 if back else 1))
        view: np.ndarray[Any, Any] = result[tuple(key)]
        return view


def select(index: Any, shape: Sequence[int], what: str, *, strict: bool = False) -> Selection:
    """Understands integers, slices and an Ellipsis. Slices that reach beyond the shape are cut, as NumPy does;
    with `strict` they are OutcoreError (EINVAL). IndexError for anything else, or an integer outside."""
    axes = _all_axes(index, len(shape), what)
    rows = [
        _axis(axis, extent, i, what, strict) for i, (axis, extent) in enumerate(zip(axes, shape, strict=True))
    ]
    begin, end, step, backwards, dropped = zip(*rows, strict=True)
    return Selection(begin, end, step, backwards, dropped)


def _all_axes(index: Any, rank: int, what: str) -> list[Any]:
    """One entry for each dimension."""
    axes = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, axis in enumerate(axes) if axis is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{what}: more than one Ellipsis in an index")
    if len(axes) - len(dots) > rank:
        raise IndexError(f"{what}: {len(axes) - len(dots)} indices for {rank} dimensions")
    place = dots[0] if dots else len(axes)
    missing = [slice(None)] * (rank - (len(axes) - len(dots)))
    return axes[:place] + missing + axes[place + len(dots) :]


def _axis(axis: Any, extent: int, i: int, what: str, strict: bool) -> tuple[int, int, int, bool, bool]:
    """begin, end, step, backwards, dropped."""
    if isinstance(axis, slice):
        if strict:
            _check_inside(axis, extent, i, what)
        start, stop, step = axis.indices(extent)
        count = len(range(start, stop, step))
        if count == 0:
            return 0, 0, 1, False, False
        last = start + (count - 1) * step
        return min(start, last), max(start, last) + 1, abs(step), step < 0, False
    if axis is None:
        raise IndexError(f"{what}: None adds no axis here; add it to the result")
    if isinstance(axis, bool | np.bool_):
        raise IndexError(f"{what}: booleans are no index")
    try:
        number = operator.index(axis)
    except TypeError:
        raise IndexError(
            f"{what}: {type(axis).__name__} on axis {i}; an index is made of integers, slices and an Ellipsis "
            "(for lists of indices use gather, scatter or scatter_acc)"
        ) from None
    if not -extent <= number < extent:
        raise IndexError(f"{what}: index {number} is out of bounds for axis {i} with size {extent}")
    number %= extent
    return number, number + 1, 1, False, True


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
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        if scalar_fits(value, dtype):
            return np.asarray(value, dtype)
        raise TypeError(f"{what}: {value!r} is no {dtype}")
    array = np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"{what}: elements of type {array.dtype}; convert them first: x.astype('{dtype}')")
    return array
