"""Node arrays: arrays that the processes of one node share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.arrays.as_numpy import AsNumpy
from outcore.base import html
from outcore.base.sizes import shape_rows
from outcore.job import arguments
from outcore.job.collective import Closing, in_gate

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from outcore.job.world import World


class NodeArray(AsNumpy, Closing):
    """An array of `shape` (0 to 8 dimensions), zero at first, in memory that the processes of one node share; each
    node has one of its own.

    To make one, `barrier` and `close` are collective among the processes of a node, which call them in the same
    order; other nodes take no part, and may make others or none. Its bytes are divided among the budgets of the
    processes, so a node accounts for them once.

    Args:
        world: the processes.
        shape: extents.
        dtype: int8, int16, int32, int64, uint8, float32, float64, complex64 or complex128.

    Raises (the same at all processes of the node):
        OutcoreError: EINVAL (arguments that do not fit, or differ between processes), ENOMEM (more than a budget
            allows; the message has the numbers). After close: EBADF.
    """

    def __init__(self, world: World, shape: int | Sequence[int], dtype: DTypeLike = "float64") -> None:
        def bring() -> tuple[str, list[int]]:
            self._dtype = arguments.element_type(dtype)
            extents = arguments.integers("shape", shape)
            self._shape = tuple(extents)
            return self._dtype.name, extents or [1]

        self._world = world
        self._native = in_gate("create a node array", lambda gate: _core.NodeArray(world, gate), bring)

    @property
    def world(self) -> World:
        return self._world

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; they exist once on each node."""
        return self.size * self._dtype.itemsize

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def view(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The whole array as a writable NumPy array. It keeps the memory alive, but must not be used after
        `close`. Other processes see after `barrier` what this one writes."""
        return self._native.view.reshape(self._shape)

    def _whole(self) -> np.ndarray[Any, np.dtype[Any]]:
        return self.view.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy, which may be used after `close`; the view itself if no copy is allowed."""
        if copy is False:
            return np.asarray(self.view, dtype, copy=False)
        return super().__array__(dtype, copy)

    def barrier(self) -> None:
        """Waits for all processes of the node. Afterwards each sees what the others have written before."""
        self._native.barrier()

    def post(self, element: int, value: int) -> None:
        """Stores an element of an array of int32, by its number in row-major order, and wakes the processes that
        wait for it. A process whose `wait_for` returns sees what this one has written before. Any thread."""
        self._native.post(element, value)

    def wait_for(self, element: int, least: int, timeout_s: float) -> bool:
        """Sleeps until `post` has stored `least` or more in an element, but no longer than `timeout_s`. Returns
        whether the element is `least` or more. Any thread; not collective."""
        return self._native.wait_for(element, least, round(timeout_s * 1e6))

    def close(self) -> None:
        """Frees the memory; may be repeated. Collective on the node."""
        self._native.close()

    def __repr__(self) -> str:
        return f"<outcore.NodeArray {self._shape} {self._dtype}{', closed' if self.closed else ''}>"

    def _repr_html_(self) -> str:
        state = "closed" if self.closed else "memory that the processes of a node share"
        return html.facts("outcore.NodeArray", [*shape_rows(self._shape, self._dtype), ("where", state)])
