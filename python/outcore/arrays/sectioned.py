"""What global arrays and disk arrays have in common: any process moves sections of them by itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays import list_indexing
from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.indexing import Selection, as_elements, select

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from outcore import _core
    from outcore._core import Request

    Array = np.ndarray[Any, np.dtype[Any]]


class Sectioned(AsNumpy):
    """A box is what NumPy would index with: slices, integers and an Ellipsis, as `numpy.s_[2:5, :]` makes it.
    `a[box]` cuts slices at the edge as NumPy does; methods refuse a box that reaches outside."""

    _native: _core.GlobalArray | _core.DiskArrayAccess
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _name: str

    def _take_shape(
        self,
        native: _core.GlobalArray | _core.DiskArrayAccess,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        kind: str,
    ) -> None:
        self._native = native
        self._shape = shape
        self._dtype = dtype
        self._name = f"{kind} of shape {shape}"
        self._one = np.ones((), dtype)

    # ---- what it is ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, at all processes together."""
        return self.size * self._dtype.itemsize

    def _whole(self) -> Array:
        return self.get(...)

    # ---- transfers ----

    def __getitem__(self, index: Any) -> Any:
        """A copy of a section; the element itself if every axis is indexed by an integer. One axis may be indexed
        by a list of integers or booleans, and all axes together by a mask of booleans."""
        if list_indexing.is_more_than_a_box(index):
            return list_indexing.get(self, index, self._name)
        selection = self._select(index)
        result = np.empty(selection.shape, self._dtype)
        self._get(selection, result)
        return result[()] if selection.is_element else result

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        """Puts into a section, with NumPy's broadcasting. TypeError for elements of another type."""
        if list_indexing.is_more_than_a_box(index):
            list_indexing.put(self, index, value, self._name)
        else:
            self._put(self._select(index), value)

    def get(self, box: Any, out: Array | None = None) -> Array:
        """A copy of a box; into `out`, of any strides, if given. Returns it."""
        selection, result = self._get_arguments(box, out)
        self._get(selection, result)
        return result

    def get_async(self, box: Any, out: Array | None = None) -> Request:
        """Starts a get; `wait()` of the request returns the array."""
        selection, result = self._get_arguments(box, out)
        return self._start_get(selection, result).returning(result)

    def put(self, box: Any, value: ArrayLike) -> None:
        """Puts into a box, with NumPy's broadcasting. TypeError for elements of another type."""
        self._put(self._select(box, strict=True), value)

    def put_async(self, box: Any, value: ArrayLike) -> Request:
        """Starts a put; `value` must not be changed until it is complete."""
        return self._start_put(self._select(box, strict=True), value)

    def acc(self, box: Any, value: ArrayLike, alpha: complex = 1) -> None:
        """Adds `alpha * value` to a box; concurrent accumulates of an element add up. Types of 4 bytes and
        more."""
        self._acc(self._select(box, strict=True), value, alpha)

    def acc_async(self, box: Any, value: ArrayLike, alpha: complex = 1) -> Request:
        """Starts an accumulate; `value` must not be changed until it is complete."""
        return self._start_acc(self._select(box, strict=True), value, alpha)

    @abstractmethod
    def boxes(self) -> _core.Boxes:
        """The array as native contractions read and write it: box by box."""

    # ---- how: `_start_...` starts a transfer, the others wait for it, too ----

    def _start_get(self, selection: Selection, result: Array) -> Request:
        memory = selection.as_stored(result)
        return self._native.get(selection.begin, selection.end, selection.step, memory)

    def _start_put(self, selection: Selection, value: ArrayLike) -> Request:
        return self._native.put(
            selection.begin, selection.end, selection.step, self._to_store(selection, value)
        )

    def _start_acc(self, selection: Selection, value: ArrayLike, alpha: complex) -> Request:
        memory = self._to_store(selection, value)
        return self._native.accumulate(
            selection.begin, selection.end, selection.step, memory, self._number(alpha)
        )

    def _get(self, selection: Selection, result: Array) -> None:
        self._start_get(selection, result).wait()

    def _put(self, selection: Selection, value: ArrayLike) -> None:
        self._start_put(selection, value).wait()

    def _acc(self, selection: Selection, value: ArrayLike, alpha: complex) -> None:
        self._start_acc(selection, value, alpha).wait()

    # ---- arguments ----

    def _select(self, index: Any, *, strict: bool = False) -> Selection:
        return select(index, self._shape, self._name, strict=strict)

    def _get_arguments(self, box: Any, out: Array | None) -> tuple[Selection, Array]:
        selection = self._select(box, strict=True)
        if out is None:
            return selection, np.empty(selection.shape, self._dtype)
        if out.dtype != self._dtype:
            raise TypeError(f"{self!r}: `out` has elements of type {out.dtype}")
        if out.shape != selection.shape:
            raise ValueError(f"{self!r}: `out` has shape {out.shape}, the section {selection.shape}")
        return selection, out

    def _to_store(self, selection: Selection, value: ArrayLike) -> Array:
        elements = as_elements(value, self._dtype, "put into an array")
        if elements.shape == selection.shape:
            return selection.as_stored(elements)
        # As in NumPy's assignment, the value may have more leading axes of length 1 than the section.
        while elements.ndim > len(selection.shape) and elements.shape[0] == 1:
            elements = elements[0]
        return selection.as_stored(np.broadcast_to(elements, selection.shape))

    def _number(self, alpha: complex) -> Array:
        return self._one if alpha == 1 else as_elements(alpha, self._dtype, "alpha")
