"""What makes extended arrays feel like NumPy's: indices, arithmetic, reductions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.indexing import select
from outcore.tensor.layout import Layout

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.prefetch import Waitable
    from outcore.tensor.backends.backend import Backend

    Values = np.ndarray[Any, np.dtype[Any]]


class NumpyLike:
    """Indexing and `to_numpy` are for each process alone; all else is collective."""

    @property
    @abstractmethod
    def world(self) -> World: ...

    @property
    @abstractmethod
    def layout(self) -> Layout: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]: ...

    @property
    @abstractmethod
    def where(self) -> str: ...

    @property
    @abstractmethod
    def backend(self) -> Backend: ...

    @abstractmethod
    def get_tile_async(self, tile: Sequence[int], out: Values | None = None) -> Waitable: ...

    @abstractmethod
    def get_tile(self, tile: Sequence[int], out: Values | None = None) -> Values: ...

    @abstractmethod
    def sync(self) -> None: ...

    @abstractmethod
    def _fill(self, make: Callable[[int], Values], what: str) -> None: ...

    # ---- what it is ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return self.layout.rank

    @property
    def size(self) -> int:
        """Elements of the shape, zeros and all."""
        return self.layout.size

    def __len__(self) -> int:
        return self.shape[0]

    # ---- to NumPy ----

    def __getitem__(self, index: Any) -> Any:
        """A copy of a section, of integers, slices and an Ellipsis; of an integer for each axis, the element."""
        selection = select(index, self.shape, repr(self))
        result = np.zeros(selection.shape, self.dtype)
        view = selection.as_stored(result)
        if view.size:
            whole = view.shape
            tiles = self.layout.tiles_of(selection.begin, selection.end)
            for tile in tiles:
                if not self.layout.there[tile]:
                    continue
                source, target = [], []
                for cut, begin, end, step in zip(
                    self.layout.box(tile), selection.begin, selection.end, selection.step, strict=True
                ):
                    first = begin + -(-max(0, cut.start - begin) // step) * step
                    last = min(end, cut.stop)
                    count = max(0, -(-(last - first) // step))
                    source.append(slice(first - cut.start, max(first, last) - cut.start, step))
                    target.append(slice((first - begin) // step, (first - begin) // step + count))
                view[tuple(target)] = self.get_tile(tile)[tuple(source)]
            assert view.shape == whole
        return result[()] if selection.is_element else result

    def to_numpy(self) -> Values:
        """All of it, zeros included, in memory of this process. OutcoreError (ENOMEM) if it is larger than what is
        left of the budget."""
        nbytes = self.size * self.dtype.itemsize
        budget = self.world.budget
        budget.reserve(nbytes, f"all of {self!r} as an array of NumPy; sections may fit")
        try:
            whole: Values = self[...]
        finally:
            budget.release(nbytes)
        return whole

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        """As `to_numpy`, for numpy.asarray and what uses it."""
        if copy is False:
            raise ValueError(f"{self!r} is no NumPy array: only a copy can be made")
        whole = self.to_numpy()
        return whole if dtype is None else whole.astype(dtype, copy=False)
