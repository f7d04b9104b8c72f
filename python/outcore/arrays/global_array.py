"""Global arrays: N-dimensional arrays in the memory of all processes, reached one-sidedly.

with outcore.GlobalArray(world, (1000, 1000)) as g:
    g.local[...] = world.rank          # the own patch, in place
    g.sync()
    row = g[17, :]                     # a copy, from whoever holds it
    g.acc(np.s_[0:10, 0:10], block, alpha=2.0)
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.indexing import Selection, as_elements
from outcore.arrays.sectioned import Sectioned
from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import shape_rows
from outcore.job import arguments
from outcore.job.collective import Closing, in_gate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from outcore._core import Distribution
    from outcore.job.world import World

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Section(AsNumpy):
    """A box of a global array, for collective transfers; nothing is copied. `begin` and `end` have one number
    for each axis of the array: an integer in the index gives an axis of length 1."""

    array: GlobalArray
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(end - begin for begin, end in zip(self.begin, self.end, strict=True))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def world(self) -> World:
        return self.array.world

    def _whole(self) -> Array:
        return self.array.get(tuple(slice(b, e) for b, e in zip(self.begin, self.end, strict=True)))


class GlobalArray(Sectioned, Closing):
    """An array of `shape` (0 to 8 dimensions), zero at first, in the memory of all processes of `world`.

    Creating it, `sync` and `close` are collective: all processes call them, in the same order. Everything else is
    one-sided: any process and any thread may call it at any time, without help of the processes that hold the
    elements. Functions of whole arrays are in `outcore.linalg` (`fill`, `dot`, `matmul`), and are collective, too.
    After `sync` all processes see what any process has put or accumulated before. Concurrent accumulates of one
    element are atomic. Boxes are those of Sectioned.

    Args:
        world: the processes that share it.
        shape: extents.
        dtype: int8, int16, int32, int64, uint8, float32, float64, complex64 or complex128.
        block: shape of blocks that are dealt out in turn (block-cyclic); one number: in all dimensions.
        distribution: a Distribution, or for each dimension the first indices of its blocks, from 0 on. Without
            it, and without `block`, each process holds one block, of nearly equal extents.

    Raises (the same at all processes):
        OutcoreError: EINVAL (arguments that do not fit, or differ between processes), ENOMEM (more than the
            budget of a process; the message has the numbers). After close: EBADF.
    """

    _native: _core.GlobalArray

    def __init__(
        self,
        world: World,
        shape: int | Sequence[int],
        dtype: DTypeLike = "float64",
        *,
        block: int | Sequence[int] | None = None,
        distribution: Distribution | Sequence[Sequence[int]] | None = None,
    ) -> None:
        wanted = np.dtype(float)

        def bring() -> tuple[str, Distribution]:
            nonlocal wanted
            wanted = arguments.element_type(dtype)
            return wanted.name, _distribution(shape, world.size, block, distribution)

        native = in_gate("create a global array", lambda gate: _core.GlobalArray(world, gate), bring)
        self._world = world
        self._distribution = native.distribution
        scalar = len(arguments.integers("shape", shape)) == 0
        self._take_shape(native, () if scalar else self._distribution.shape, wanted, "global array")

    # ---- what it is ----

    @property
    def world(self) -> World:
        return self._world

    def boxes(self) -> _core.Boxes:
        return _core.Boxes.of_global(self._native)

    @property
    def distribution(self) -> Distribution:
        return self._distribution

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def patch(self) -> tuple[slice, ...]:
        """The box that this process holds, maybe empty; OutcoreError (EINVAL) if the array is block-cyclic."""
        begin, end = self._distribution.patch(self._world.rank)
        return tuple(slice(b, e) for b, e in zip(begin, end, strict=True))

    @property
    def local(self) -> Array:
        """A writable view of the memory of this process, in the shape of the patch (block-cyclic: of
        ScaLAPACK's local array). It keeps the array alive, but must not be used after `close`. Other processes
        see after `sync` what is written here."""
        return self._native.local

    def __repr__(self) -> str:
        state = "closed" if self.closed else self._distribution.kind
        return f"<outcore.GlobalArray {self._shape} {self._dtype}, {state}>"

    def _repr_html_(self) -> str:
        state = "closed" if self.closed else f"memory of all processes, {self._distribution.kind}"
        return html.facts("outcore.GlobalArray", [*shape_rows(self._shape, self._dtype), ("where", state)])

    # ---- scattered transfers, and sections ----

    def gather(self, indices: ArrayLike) -> Array:
        """The elements at `indices` (count x ndim integers, none negative): an array of `count`."""
        checked = self._indices(indices)
        result = np.empty(len(checked), self._dtype)
        self._native.gather(checked, result)
        return result

    def scatter(self, indices: ArrayLike, value: ArrayLike) -> None:
        """Puts the elements `value` at `indices` (count x ndim). If an index occurs twice, either may win."""
        checked = self._indices(indices)
        self._native.scatter(checked, self._list_of_elements(value, len(checked)))

    def scatter_acc(self, indices: ArrayLike, value: ArrayLike, alpha: complex = 1) -> None:
        """Adds `alpha * value` at `indices` (count x ndim), each atomically; equal indices add up."""
        checked = self._indices(indices)
        elements = self._list_of_elements(value, len(checked))
        self._native.scatter_accumulate(checked, elements, self._number(alpha))

    def read_increment(self, index: int | Sequence[int], value: int = 1) -> int:
        """Adds to an element of an int64 array and returns the value before; atomic."""
        place = [index] if isinstance(index, int | np.integer) else list(index)
        return self._native.read_increment([int(i) for i in place], value)

    def section(self, box: Any = ...) -> Section:
        """A handle of a box for collective transfers, such as those of disk arrays. No data moves."""
        selection = self._select(box, strict=True)
        if not selection.is_plain:
            raise OutcoreError(errno.EINVAL, f"section of {self!r}", detail="its steps must be 1")
        return Section(self, tuple(selection.begin), tuple(selection.end))

    # ---- collective ----

    def sync(self) -> None:
        """Collective. Afterwards all see what any process has put or accumulated before."""
        self._native.sync()

    def close(self) -> None:
        """Collective; may be repeated. Waits for all transfers of all processes and frees the memory. The memory
        of an array that is not closed is freed once no process uses the array any more."""
        self._native.close()

    # ---- arguments ----

    def _select(self, index: Any, *, strict: bool = False) -> Selection:
        if isinstance(index, Section):
            if index.array is not self:
                raise OutcoreError(errno.EINVAL, f"section of {self!r}", detail="it is of another array")
            index = tuple(slice(b, e) for b, e in zip(index.begin, index.end, strict=True))
        return super()._select(index, strict=strict)

    def _indices(self, indices: ArrayLike) -> np.ndarray[Any, np.dtype[np.int64]]:
        array = np.asarray(indices)
        if array.size == 0:
            array = array.reshape(0, self.ndim).astype(np.int64)
        if array.dtype.kind not in "iu":
            raise TypeError(f"{self!r}: indices of type {array.dtype}")
        if array.ndim == 1 and self.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != self.ndim:
            raise ValueError(f"{self!r}: indices of shape {array.shape}, expected (count, {self.ndim})")
        return np.ascontiguousarray(array, np.int64)

    def _list_of_elements(self, value: ArrayLike, count: int) -> Array:
        elements = as_elements(value, self._dtype, "put into a global array")
        return np.ascontiguousarray(np.broadcast_to(elements, (count,)))


def _distribution(shape: Any, processes: int, block: Any, given: Any) -> Distribution:
    extents = arguments.integers("shape", shape) or [1]  # an array without axes is stored with one
    if block is not None and given is not None:
        raise TypeError("give either block or distribution")
    if isinstance(given, _core.Distribution):
        if list(given.shape) != extents:
            raise ValueError(f"the distribution is of shape {given.shape}")
        return given
    if np.size(shape) == 0 and (block is not None or given is not None):
        raise ValueError("an array without axes is at one process: it has no blocks to distribute")
    if given is not None:
        begins = [arguments.integers("distribution", axis) for axis in given]
        return _core.Distribution.irregular(extents, processes, begins)
    if block is not None:
        sides = arguments.integers("block", block)
        if np.ndim(block) == 0:
            sides *= len(extents)
        return _core.Distribution.block_cyclic(extents, processes, sides)
    return _core.Distribution.regular(extents, processes)
