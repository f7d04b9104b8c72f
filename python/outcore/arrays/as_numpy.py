"""NumPy's protocol, which all kinds of arrays share: copies, comparisons, truth values, lengths."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.job.world import World

    Values = np.ndarray[Any, np.dtype[Any]]

_COMPARED = (complex, float, int, np.generic, list, tuple)  # what NumPy compares element by element


def _not_in_place(self: AsNumpy, other: object) -> Any:
    """Without it, `a += b` with an array `b` of NumPy would bind the name `a` to a new NumPy array, and leave this
    array unchanged."""
    raise TypeError(
        f"{self!r} has no arithmetic in place: assign to elements, or add at their owner by acc and its like; "
        "a.to_numpy() and outcore.Array have arithmetic"
    )


class AsNumpy:
    """A function of NumPy that gets an array of any kind works on a copy of all its elements (`to_numpy`). Arrays
    are not compared element by element: `==` and `!=` are TypeError for arrays and numbers, and an array is equal
    to itself. The truth value of an array with one element is that of the element; with several elements it is
    ValueError. Arithmetic in place (`+=`) is TypeError, unless the class has it. None of these methods is
    collective, unless the class says so."""

    @property
    @abstractmethod
    def world(self) -> World: ...

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]: ...

    @abstractmethod
    def _whole(self) -> Values:
        """A copy of all elements; the caller has reserved the memory for it."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements of the shape, at all processes together."""
        return int(np.prod(self.shape, dtype=np.int64))

    def to_numpy(self) -> Values:
        """A copy of all elements, zeros included, in the memory of this process. OutcoreError (ENOMEM) if it is
        larger than the rest of the budget."""
        nbytes = self.size * self.dtype.itemsize
        budget = self.world.budget
        budget.reserve(nbytes, f"all of {self!r} as an array of NumPy; sections may fit")
        try:
            return self._whole()
        finally:
            budget.release(nbytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        """As `to_numpy`; numpy.asarray and NumPy's functions call it. ValueError if `copy` is False."""
        if copy is False:
            raise ValueError(f"{self!r} is not in the memory of this process: only a copy can be made")
        whole = self.to_numpy()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self!r} has no axis, and no length")
        return self.shape[0]

    def __contains__(self, value: object) -> bool:
        """Whether an element equals `value`, as NumPy compares."""
        return value in self.to_numpy()

    def __bool__(self) -> bool:
        """The truth value of the one element. ValueError if the array has several elements, or none."""
        if self.size != 1:
            raise ValueError(
                f"{self!r} is neither true nor false, as it has {self.size} elements: use a.to_numpy().any() or "
                "all(), or a is not None"
            )
        return bool(self.to_numpy().item())

    def __eq__(self, other: object) -> bool:
        """TypeError for arrays and numbers, as elements are not compared one by one."""
        if self is other:
            return True
        if isinstance(other, (AsNumpy, *_COMPARED)) or hasattr(other, "__array__"):
            raise TypeError(
                f"{self!r} is not compared element by element: use {self._how_to_compare}"
                "numpy.equal(a.to_numpy(), b) for elements, a is b for the same array"
            )
        return NotImplemented

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = _not_in_place
    __ipow__ = __imatmul__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _not_in_place

    __hash__ = object.__hash__
    _how_to_compare = ""
