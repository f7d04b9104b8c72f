"""Arrays of all kinds, as contractions see them: facts for plans, boxes to get, put and accumulate.

A box is a pair of numbers for each axis. An array without tiles gives any box; a box of an array with tiles
consists of whole tiles. Only `sync` and `take` are collective.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np

from outcore import _core
from outcore.arrays.disk_array_access import DiskArrayAccess
from outcore.arrays.global_array import GlobalArray
from outcore.arrays.node_array import NodeArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.base.recent import Key
from outcore.job.world import World
from outcore.parallel.requests import Request, Window, then
from outcore.tensor.layout import kernels
from outcore.tensor.layout.cells import Axis, Cuts, Interval, cut_for
from outcore.tensor.layout.tiling import Tiling

Array = np.ndarray[Any, np.dtype[Any]]
Box = Sequence[Interval]
Where = Literal["process", "node", "global", "disk"]
Use = Literal["get", "put", "add"]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_TAKEN = 1 << 18  # elements that are copied at a time
_COPIES = 3  # tiles of an array that have a buffer on their way at a time; of small tiles more
_COPIED_BYTES = 8 << 20
_COPIED_SHARE = 64  # or so much of the budget: each operand of a product takes it, outside of any workspace


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts of an array that a plan depends on. The facts of a layout, and of arrays without tiles, are made once.
    So loops that contract the same arrays again find results derived from the facts at once.

    Attributes:
        tilings: the tiling of each axis; None where boxes may begin anywhere.
        readable: which tiles are not zero, those that follow from stored ones by symmetry included; None: all.
        stored: which tiles of a result have to be put; None: all.
        item_bytes: bytes of a stored element.
        chunk: shape of the chunks on disk; None if there are none that a plan should know.
        array: the number of the first operand that is the same array; -1: only one operand is this array.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    where: Where
    item_bytes: int
    tilings: tuple[Tiling | None, ...]
    readable: Mask | None = None
    stored: Mask | None = None
    chunk: tuple[int, ...] | None = None
    array: int = -1

    @cached_property
    def tiles(self) -> tuple[Cuts | None, ...]:
        """Boundaries along each axis."""
        return tuple(None if tiling is None else tiling.cuts for tiling in self.tilings)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal facts. Labels of tiles do not count."""
        masks = tuple(
            None if mask is None else hashlib.blake2b(mask.tobytes()).digest()
            for mask in (self.readable, self.stored)
        )
        return (
            self.shape, self.dtype.str, self.where, self.item_bytes, self.tiles, masks, self.chunk, self.array
        )  # fmt: skip

    @cached_property
    def form(self) -> Key:
        """A key that is equal for equal facts, labels of tiles included. It holds no flags of tiles, which may be
        large."""
        return Key(self.key, self.tilings)

    @cached_property
    def described(self) -> str:
        """A description for plans."""
        grid = "x".join("1" if cuts is None else str(len(cuts) - 1) for cuts in self.tiles)
        tiles = "" if all(cuts is None for cuts in self.tiles) else f", {grid} tiles"
        chunk = "" if self.chunk is None else f", chunks of {'x'.join(map(str, self.chunk))}"
        share = "" if self.readable is None else f", {self.readable.mean():.3g} of them not zero"
        return f"{'x'.join(map(str, self.shape)) or 'number'} {self.dtype} {self.where}{tiles}{chunk}{share}"

    @cached_property
    def largest_tile(self) -> int:
        """The most elements of a tile, along the axes that have tiles."""
        sides = [max((b - a for a, b in itertools.pairwise(cuts)), default=0) for cuts in self.tiles if cuts]
        return math.prod(sides)

    def numbered(self, array: int) -> Facts:
        """These facts for an array that several operands are; the first of these has the number `array`."""
        found = self._numbered.get(array)
        if found is None:
            found = self._numbered[array] = replace(self, array=array)
        return found

    @cached_property
    def _numbered(self) -> dict[int, Facts]:
        return {}

    @property
    def bytes(self) -> int:
        """Bytes of all stored elements."""
        mask = self.readable if self.stored is None else self.stored
        if mask is None:
            return int(np.prod(self.shape, dtype=np.int64)) * self.item_bytes
        sizes: Any = np.ones((), np.int64)
        for cuts in self.tiles:
            sizes = np.multiply.outer(sizes, np.diff(cuts or (0,)))
        return int((sizes * mask).sum()) * self.item_bytes


def numbered(arrays: Sequence[object], facts: Sequence[Facts]) -> list[Facts]:
    """The facts of operands. If several operands are one array, their facts have its number."""
    found = []
    for array, its_facts in zip(arrays, facts, strict=True):
        same = [number for number, each in enumerate(arrays) if each is array]
        found.append(its_facts if len(same) == 1 else its_facts.numbered(same[0]))
    return found


class Operand(ABC):
    """An array in a contraction."""

    facts: Facts
    world: World | None = None

    @abstractmethod
    def get(self, box: Box, out: Array) -> list[Request]:
        """Starts to bring a box into `out`, of any strides. Zero tiles are left out; the caller has set `out` to
        zero there."""

    def prefetch(self, boxes: Sequence[Box]) -> None:
        """Hints that `get` will soon ask for boxes. Their owners begin to read them from disk."""
        return

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        """Starts to put or add a box; `value`, of any strides, must not change until the requests are complete.
        Tiles that are not stored are left out. Waits for earlier puts while too many copies of tiles are under way.
        Raises OutcoreError (EROFS) if the array is only read, and the errors of those earlier puts."""
        raise OutcoreError(
            errno.EROFS, "write an operand", detail=f"this {self.facts.where} array is only read"
        )

    def native(self, use: Use) -> _core.Boxes | None:
        """The array for native code that moves its boxes, for one use. None: only `get` and `put` move them. Its
        type is one of kernels.DTYPES."""
        return None

    @property
    def storage(self) -> Any:
        """The memory or object that has the elements. Several operands may have it in common."""
        return self

    @property
    def read_only(self) -> bool:
        return False

    def copies(self, world: World) -> int:
        """Number of copies: of processes or nodes each of which has the whole array, and so needs the result."""
        return 1

    def take(self, world: World, source: Operand, *, add: bool) -> None:
        """Puts or adds the whole array `source` into each copy. Collective."""
        raise OutcoreError(errno.ENOTSUP, "copy a result", detail="there is one copy")

    def share_adds(self, world: World) -> None:
        """From now on several processes may add to the same element. Collective."""
        return

    def sync(self) -> None:
        """All processes see everything that was put. Collective."""
        return


def slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(begin, end) for begin, end in box)


def plain(shape: Sequence[int], dtype: np.dtype[Any], where: Where) -> Facts:
    """Facts of an array without tiles."""
    return _plain(tuple(shape), dtype, where)


@lru_cache(maxsize=1000)
def _plain(shape: tuple[int, ...], dtype: np.dtype[Any], where: Where) -> Facts:
    return Facts(shape, dtype, where, dtype.itemsize, (None,) * len(shape))


class LocalOperand(Operand):
    """A NumPy array; each process has one."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.facts = plain(array.shape, array.dtype, "process")

    def native(self, use: Use) -> _core.Boxes | None:
        return _core.Boxes.of_memory(
            self.array, self.array.shape, kernels.type_name(self.facts.dtype), use != "get"
        )

    def _view(self, box: Box) -> Array:
        view: Array = self.array[slices(box) or ...]
        return view

    @property
    def storage(self) -> Any:
        return self.array

    @property
    def read_only(self) -> bool:
        return not self.array.flags.writeable

    def get(self, box: Box, out: Array) -> list[Request]:
        out[...] = self._view(box)
        return []

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        target = self._view(box)
        if add:
            target += value
        else:
            target[...] = value
        return []

    def copies(self, world: World) -> int:
        return world.size

    def take(self, world: World, source: Operand, *, add: bool) -> None:
        self._take(world, source, 0, 1, add=add)

    def _take(self, world: World, source: Operand, first: int, step: int, *, add: bool) -> None:
        """Takes every `step`-th box of `source`, from the box `first` on."""
        axes = [Axis(str(number), extent) for number, extent in enumerate(self.facts.shape)]
        with world.together("copy a result"):
            for box in cut_for(axes, _TAKEN).cells[first::step]:
                block = np.empty([end - begin for begin, end in box], source.facts.dtype)
                for request in source.get(box, block):
                    request.wait()
                self.put(box, block, add=add)
        self.sync()


class SummedOperand(LocalOperand):
    """A number. Each process has its own part, until `sync` adds up the parts of all."""

    def __init__(self, world: World, dtype: np.dtype[Any]) -> None:
        super().__init__(np.zeros((), dtype))
        self._sums = world

    def sync(self) -> None:
        self.array[...] = self._sums.all_reduce(self.array)


class NodeOperand(LocalOperand):
    """An array that the processes of a node share."""

    def __init__(self, array: NodeArray) -> None:
        super().__init__(array.view)
        self.facts = plain(array.shape, array.dtype, "node")
        self._node = array
        self._lock: _core.Lock | None = None

    def share_adds(self, world: World) -> None:
        self._lock = world.lock()

    def native(self, use: Use) -> _core.Boxes | None:
        boxes = super().native(use)
        return boxes if boxes is None or self._lock is None else boxes.adding_under(self._lock)

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        with self._lock if add and self._lock is not None else nullcontext():
            return super().put(box, value, add=add)

    def copies(self, world: World) -> int:
        return world.nodes

    def take(self, world: World, source: Operand, *, add: bool) -> None:
        self._take(world, source, world.node_rank, world.node_size, add=add)

    def sync(self) -> None:
        self._node.barrier()


class BoxOperand(Operand):
    """A disk array or a global array."""

    def __init__(self, array: DiskArrayAccess | GlobalArray) -> None:
        self.array = array
        self.world = array.world
        where: Where = "global" if isinstance(array, GlobalArray) else "disk"
        self.facts = plain(array.shape, array.dtype, where)
        if isinstance(array, DiskArrayAccess) and array.shape:  # on disk a number has one axis
            self.facts = replace(self.facts, chunk=tuple(array.chunk))

    @property
    def storage(self) -> Any:
        return self.array

    @property
    def read_only(self) -> bool:
        return bool(getattr(self.array, "read_only", False))

    def native(self, use: Use) -> _core.Boxes | None:
        return self.array.boxes() if self.facts.shape else None

    def get(self, box: Box, out: Array) -> list[Request]:
        return [self.array.get_async(slices(box), out)]

    def prefetch(self, boxes: Sequence[Box]) -> None:
        if isinstance(self.array, DiskArrayAccess):
            self.array.prefetch([slices(box) for box in boxes])

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        move = self.array.acc_async if add else self.array.put_async
        return [move(slices(box), value)]

    def sync(self) -> None:
        self.array.sync()
        if self.world is not None and not isinstance(self.array, GlobalArray):
            self.world.barrier()
            self.array.sync()


class Tiled(Operand):
    """An array of tiles, which has get_tile_async, put_tile_async and acc_tile_async."""

    array: Any

    @property
    def storage(self) -> Any:
        return self.array

    @property
    def read_only(self) -> bool:
        return bool(self.array.read_only)

    def get(self, box: Box, out: Array) -> list[Request]:
        started: list[Request] = []
        for tile, inside in tiles_of(self.facts.tiles, box):
            if self.facts.readable is not None and not self.facts.readable[tile]:
                continue
            target = out[inside]
            if self._lands_in(tile, target):
                started.append(self.array.get_tile_async(tile, target))
            else:
                bring = partial(self._bring, tile, target)
                started.append(self._under_way.add(bring, target.size * self.facts.item_bytes))
        return started

    def _lands_in(self, tile: tuple[int, ...], target: Array) -> bool:
        """Whether a tile comes to its place without a buffer on the way."""
        return bool(target.flags.c_contiguous)

    def _bring(self, tile: tuple[int, ...], target: Array) -> Request:
        return then(self.array.get_tile_async(tile), partial(_copy, target))

    @cached_property
    def _under_way(self) -> Window:
        """Tiles that come through a buffer, and are then copied to their place."""
        return Window(self.max_bytes)

    @cached_property
    def max_bytes(self) -> int:
        """The most bytes of buffers of tiles on their way: so many for those that are read, and for those that are
        put."""
        small = _COPIED_BYTES
        if self.world is not None:
            small = min(small, self.world.budget.limit_bytes // _COPIED_SHARE)
        return max(_COPIES * self.facts.largest_tile * self.facts.item_bytes, small)

    def prefetch(self, boxes: Sequence[Box]) -> None:
        if self.facts.where == "disk":
            there = self.facts.readable
            tiles = (tile for box in boxes for tile, _ in tiles_of(self.facts.tiles, box))
            self.array.prefetch([tile for tile in tiles if there is None or there[tile]])

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        move = self.array.acc_tile_async if add else self.array.put_tile_async
        started: list[Request] = []
        for tile, inside in tiles_of(self.facts.tiles, box):
            if self.facts.stored is not None and not self.facts.stored[tile]:
                continue
            part = value[inside]
            if part.flags.c_contiguous:
                started.append(move(tile, part))
                continue
            held = sum(nbytes for _, nbytes in self._copied)
            while self._copied and held + part.nbytes > self.max_bytes:
                first, nbytes = self._copied.popleft()
                first.wait()
                held -= nbytes
            request = move(tile, part)
            self._copied.append((request, part.nbytes))
            started.append(request)
        return started

    @cached_property
    def _copied(self) -> deque[tuple[Request, int]]:
        """Puts of tiles that needed a copy, with the bytes of each."""
        return deque()


def _copy(target: Array, values: Array) -> None:
    kernels.permute(target, np.asarray(values), range(target.ndim))


class TileOperand(Tiled):
    """A block-sparse array on disk."""

    def __init__(self, array: BlockSparseArray) -> None:
        self.array, self.world = array, array.world
        tilings = tuple(Tiling(axis[-1], axis) for axis in array.tilings)
        there = np.zeros(array.grid, bool)
        for tile in array.tiles:
            there[tile] = True
        present = None if there.all() else there
        self.facts = Facts(array.shape, array.dtype, "disk", array.dtype.itemsize, tilings, present, present)
        self._there = there

    def native(self, use: Use) -> _core.Boxes | None:
        numbers = np.where(self._there, np.cumsum(self._there).reshape(self._there.shape) - 1, -1)
        table = _core.TileTable(
            [cuts for cuts in self.facts.tiles if cuts is not None],
            numbers.ravel().astype(np.int32),
            np.zeros(numbers.size, np.int32),
            [(list(range(numbers.ndim)), 1)],
        )
        found: _core.Boxes = self.array.boxes(table, self.max_bytes)
        return found

    def sync(self) -> None:
        self.array.sync()
        self.array.world.barrier()
        self.array.sync()


def tiles_of(cuts: Sequence[Cuts | None], box: Box) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """The tiles of a box, and the index of each in it; the index gives a view even of a number. Raises ValueError
    for a box that cuts a tile."""
    axes = []
    for axis, (begin, end) in zip(cuts, box, strict=True):
        assert axis is not None
        if begin not in axis or end not in axis:
            raise ValueError(f"elements {begin} to {end} of an axis are no whole tiles: it is cut at {axis}")
        inside = [
            (tile, slice(b - begin, e - begin))
            for tile, (b, e) in enumerate(itertools.pairwise(axis))
            if begin <= b and e <= end and b < e
        ]
        axes.append(inside)
    for parts in itertools.product(*axes):
        yield tuple(tile for tile, _ in parts), (*(inside for _, inside in parts), ...)


class OnesOperand(Operand):
    """An array of ones; a product with it is a sum."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.facts = plain(shape, dtype, "process")

    @property
    def read_only(self) -> bool:
        return True

    def native(self, use: Use) -> _core.Boxes | None:
        dtype = self.facts.dtype
        return _core.Boxes.of_ones(np.ones((), dtype), len(self.facts.shape), dtype.name)

    def get(self, box: Box, out: Array) -> list[Request]:
        out[...] = 1
        return []

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        raise OutcoreError(errno.EROFS, "write ones")


def plain_operand(array: Any) -> Operand:
    """The operand of an array of any kind except `outcore.Array`. Raises TypeError if `array` is no array."""
    if isinstance(array, np.ndarray):
        return LocalOperand(_numbers(array))
    if isinstance(array, DiskArrayAccess | GlobalArray):
        return BoxOperand(array)
    if isinstance(array, NodeArray):
        return NodeOperand(array)
    if isinstance(array, BlockSparseArray):
        return TileOperand(array)
    if isinstance(array, list | tuple | int | float | complex | np.generic):
        copied = _numbers(np.array(array))
        copied.flags.writeable = False  # nobody would see a result in it
        return LocalOperand(copied)
    raise TypeError(f"{type(array).__name__} is no array that can be contracted")


def _numbers(array: Array) -> Array:
    if array.dtype.kind not in "biufc":
        raise TypeError(f"an array of {array.dtype}: its elements are no numbers")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array: nothing is left out of a contraction; give array.filled(..)")
    return array
