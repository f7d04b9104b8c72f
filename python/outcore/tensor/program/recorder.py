"""A room in which equations run without data: their calls on arrays become a description.

Equations touch arrays by the verbs of a room alone (`array`, `contract`, `add`, `each_tile`, `each_row`, `kernel`),
and by tiles within them. Their branches may depend neither on values nor on how many elements a tile has: they work
on a model, which has as many tiles, but small ones. Among tiles that look alike they work on one, which counts for
all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from outcore.parallel.requests import done
from outcore.tensor.arrays.extended import layout_facts
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.layout import Layout, Tile
from outcore.tensor.layout.operands import plain
from outcore.tensor.plan.statements import (
    ArraySpec,
    Call,
    Contract,
    Described,
    Description,
    Kernel,
    Loop,
    Pass,
    Space,
    Touched,
    no_space,
)

Values = np.ndarray[Any, np.dtype[Any]]

_FLOAT = np.dtype(float)
HELD = 6
"""Tiles of an array that a thread has at a time while it works on one of them: those that it reads and writes,
copies with other orders of axes, and sums."""


@dataclass(eq=False, kw_only=True)
class RecordedArray(Described):
    """An `outcore.Array` of zeros, whose room records each access to it. `layout` is that of the array, `model`
    that of the tiles that equations get."""

    room: Recorder
    spec: ArraySpec
    layout: Layout
    model: Layout
    where: str = "process"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.model.shape

    @property
    def nbytes(self) -> int:
        return self.spec.bytes

    def tile_shape(self, tile: Tile) -> tuple[int, ...]:
        return self.model.tile_shape(tile)

    def get_tile(self, tile: Tile, out: Values | None = None) -> Values:
        self.room.saw(self, tile, reads=True)
        if out is None:
            return np.zeros(self.tile_shape(tile))
        out[...] = 0.0
        return out

    def get_tile_async(self, tile: Tile, out: Values | None = None) -> Any:
        return done(self.get_tile(tile, out))

    def put_tile(self, tile: Tile, values: Values) -> None:
        self.room.saw(self, tile, writes=True)

    def acc_tile(self, tile: Tile, values: Values, alpha: float = 1) -> None:
        self.room.saw(self, tile, reads=True, writes=True)

    def own_tiles(self) -> Sequence[Tile]:
        return self.layout.stored

    def sync(self) -> None:
        """Does nothing, as a recording has nothing to wait for."""

    def __iadd__(self, other: RecordedArray) -> Self:
        self.room.add(self, other)
        return self


class Alone:
    """The world of a room without data. size: number of processes of the calculation."""

    rank = 0

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def all_reduce(self, value: Any, how: str = "sum") -> Any:
        return value


@dataclass
class _Seen:
    """Accesses of one piece of work: bytes of each array, and the arrays that were written before they were
    read."""

    read: Counter[RecordedArray] = field(default_factory=Counter)
    written: Counter[RecordedArray] = field(default_factory=Counter)
    filled: set[RecordedArray] = field(default_factory=set)

    @property
    def arrays(self) -> list[RecordedArray]:
        return list(dict.fromkeys((*self.read, *self.written)))


class Recorder:
    """Args:
    specs: of all arrays that equations may ask for, by name.
    models: their layouts with few elements, by name.
    each: work on all tiles, not on one of those that look alike.

    `description`: the recorded statements; `arrays`: those that equations have asked for.
    """

    def __init__(
        self, specs: Mapping[str, ArraySpec], models: Mapping[str, Layout], *, each: bool = False
    ) -> None:
        self._specs, self._models, self._each = specs, models, each
        self.world = Alone()
        self.description = Description()
        self.arrays: list[RecordedArray] = []
        self._seen: _Seen | None = None

    # ---- verbs of a room ----

    def array(self, name: str) -> RecordedArray:
        """A new array of this name. Raises KeyError for an unknown name."""
        spec, number = self._specs[name], len(self.description.variables)
        facts = layout_facts(spec.layout, _FLOAT, "disk", spec.item_bytes)
        model = self._models[name]
        made = RecordedArray(number, name, facts, layout=spec.layout, room=self, spec=spec, model=model)
        self.description.variables.append(made)
        self.arrays.append(made)
        return made

    def release(self, *arrays: RecordedArray) -> None:
        """Does nothing: arrays take no memory here."""

    def contract(
        self, subscripts: str, *operands: Any, out: Any = None, scale: float = 1.0, add: bool = False
    ) -> Any:
        expression = parse(subscripts, [each.shape for each in operands])
        result = np.zeros(expression.shape(expression.output)) if out is None else out
        words, arrays = [*expression.inputs, expression.output], [*operands, result]
        extents = dict(expression.extents)
        for word, array in zip(words, arrays, strict=True):
            if isinstance(array, RecordedArray):
                extents |= zip(word, array.layout.shape, strict=True)
        described = [
            self._described(array, [extents[letter] for letter in word])
            for word, array in zip(words, arrays, strict=True)
        ]
        space = self.space_of_product(described)
        self._record(Contract(subscripts, tuple(described[:-1]), described[-1], add, scale, space))
        return result

    def each_tile(
        self,
        array: RecordedArray,
        work: Callable[[Tile], None],
        what: str,
        *,
        held: int = HELD,
        beside: Space = no_space,
    ) -> None:
        """held: tiles of `array` that a thread has at a time. beside: the work space, if it is more than these."""
        kinds: dict[Hashable, list[Tile]] = {}
        for number, tile in enumerate(array.own_tiles()):
            kinds.setdefault(number if self._each else _look(array.layout, tile), []).append(tile)
        with self._pass(what, self.space_of_tiles(array, held, beside)) as count:
            for tiles in kinds.values():
                with count(len(tiles)):
                    work(tiles[0])

    def each_row(
        self,
        array: RecordedArray,
        axis: int,
        work: Callable[[int, list[Tile]], None],
        what: str,
        *,
        held: int = HELD,
        beside: Space = no_space,
    ) -> None:
        rows: dict[int, list[Tile]] = {}
        for tile in array.own_tiles():
            rows.setdefault(tile[axis], []).append(tile)
        kinds: dict[Hashable, list[int]] = {}
        for row, tiles in rows.items():
            looks = frozenset(Counter(_look(array.layout, tile) for tile in tiles).items())
            kinds.setdefault(row if self._each else looks, []).append(row)
        with self._pass(what, self.space_of_tiles(array, held, beside)) as count:
            for alike in kinds.values():
                with count(len(alike)):
                    work(alike[0], rows[alike[0]])

    def add(self, out: RecordedArray, other: RecordedArray) -> None:
        self.each_tile(out, lambda tile: out.acc_tile(tile, other.get_tile(tile)), "sum")

    def kernel(
        self, kernel: Kernel, run: Callable[[], Sequence[float]], memory_bytes: float | None = None
    ) -> None:
        """Records a kernel, which does not run here."""
        self._record(Call(kernel))

    # ---- work space ----

    def space_of_product(self, arrays: Sequence[Any]) -> Space:
        """The work space of a product. arrays: its operands, and its result."""
        return no_space

    def space_of_tiles(self, array: RecordedArray, held: int, beside: Space) -> Space:
        """The work space of a pass over an array; see `each_tile`."""
        return beside

    def work_space(self, tile: int) -> float:
        """The least bytes of work space of all statements; see `Space`."""
        return max((each.work_space(tile) for each in self.description.statements), default=0.0)

    @contextmanager
    def loop(self, count: int) -> Iterator[None]:
        """Statements that are recorded within run `count` times."""
        first = self._now
        yield
        self.description.loops.append(Loop(first, self._now, count))

    # ---- tiles that are seen ----

    def saw(self, array: RecordedArray, tile: Tile, *, reads: bool = False, writes: bool = False) -> None:
        """Records that a tile is read, written, or added to."""
        if self._seen is None:  # outside of passes
            with self._pass("tile", self.space_of_tiles(array, 1, no_space)) as count, count(1):
                self.saw(array, tile, reads=reads, writes=writes)
            return
        seen = self._seen
        stored = array.layout.canonical(tile)[0]
        if stored is None:  # zero
            return
        bytes_ = math.prod(array.layout.tile_shape(stored)) * array.spec.item_bytes
        if writes and not reads and array not in seen.read:
            seen.filled.add(array)
        if reads:
            seen.read[array] += bytes_
        if writes:
            seen.written[array] += bytes_

    @contextmanager
    def _pass(self, what: str, space: Space) -> Iterator[Callable[[int], Any]]:
        total, unfilled = dict[RecordedArray, Touched](), set[RecordedArray]()

        @contextmanager
        def count(times: int) -> Iterator[None]:
            seen = self._seen = _Seen()
            yield
            self._seen = None
            for each in seen.arrays:
                before = total.get(each, Touched(0, 0))
                total[each] = Touched(
                    before.read + times * seen.read[each], before.written + times * seen.written[each]
                )
                if each not in seen.filled:
                    unfilled.add(each)

        yield count
        self._record(Pass(what, total, frozenset(total) - unfilled, space))

    @property
    def _now(self) -> int:
        return len(self.description.statements)

    def _record(self, statement: Any) -> None:
        self.description.statements.append(statement)

    def _described(self, value: Any, shape: Sequence[int]) -> Described:
        if isinstance(value, RecordedArray):
            return value
        number = len(self.description.variables)
        made = Described(number, f"x{number}", plain(shape, _FLOAT, "process"))
        self.description.variables.append(made)
        return made


def _look(layout: Layout, tile: Tile) -> Hashable:
    """Equal for tiles that look alike: the shape of a tile, and which of its axes have the same block."""
    blocks = [(layout.tilings[axis], block) for axis, block in enumerate(tile)]
    return layout.tile_shape(tile), tuple(blocks.index(each) for each in blocks)
