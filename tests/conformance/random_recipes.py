"""Recipes of random programs, and their results by NumPy."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from conformance.random_arrays import DTYPES, Chance

from outcore import Layout, Symmetry
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.result_symmetry import factors, missing

SPACE = 1e5  # multiplications of a contraction
DENSE = ("numpy", "view", "node", "disk", "global")  # without tiles
TILED = ("extended", "generated", "opened")  # with layouts of any kind
WRAPPED = ("wrapped numpy", "wrapped disk", "wrapped global", "wrapped sparse")
KINDS = (*["extended"] * 5, *DENSE, "sparse", "generated", "opened", *WRAPPED)


@dataclass(eq=False)
class Item:
    """An array of a recipe.

    Attributes:
        kind: for an input, the kind of the caller's array; "made": an array of the program; "fresh": a result
            that a statement makes.
        layout: the tiles that it can hold; a dense one for arrays without tiles.
        values: its initial values.
    """

    name: str
    axes: tuple[int, ...]
    layout: Layout | None
    dtype: np.dtype[Any]
    kind: str
    values: np.ndarray
    place: str = "auto"
    stored: str | None = None  # type of the elements where they lie, if that is another one
    is_output: bool = False

    @property
    def is_input(self):
        return self.kind in KINDS

    @property
    def can_be_written(self):
        return self.kind not in ("generated", "opened", "fresh")

    @property
    def symmetry(self):
        """The symmetry that the program knows."""
        known = self.layout is not None and (self.kind in TILED or self.kind == "made")
        return self.layout.symmetry if known else Symmetry(len(self.axes))


@dataclass(frozen=True, eq=False)
class Einsum:
    subscripts: str
    operands: tuple[Item, ...]
    out: Item
    accumulate: bool
    scale: complex


@dataclass(frozen=True, eq=False)
class Sum:
    """out = the sum of factor times item, or out += that sum."""

    terms: tuple[tuple[float, Item], ...]
    out: Item
    accumulate: bool


@dataclass(frozen=True, eq=False)
class Map:
    function: str
    operands: tuple[Item, ...]
    out: Item
    accumulate: bool


@dataclass(frozen=True, eq=False)
class Loop:
    """`last`: the iteration after which `until` ends it."""

    count: int
    last: int
    body: list[Any]

    @property
    def rounds(self):
        return min(self.count, self.last + 1)


def squash(box, x):
    with np.errstate(invalid="ignore"):
        return x / (1 + np.abs(x))


def product(box, x, y):
    with np.errstate(invalid="ignore"):
        return x * y


def shift(box, x):
    return x + x.dtype.type(1)


def weights(box, x):
    """A weight for each element, by its place."""
    total = np.zeros(x.shape, x.real.dtype)
    for axis, side in enumerate(box):
        shape = [-1 if axis == other else 1 for other in range(x.ndim)]
        total = total + np.arange(side.start, side.stop).reshape(shape) / (8 * (axis + 1))
    with np.errstate(invalid="ignore"):
        return x * total.astype(x.real.dtype)


FUNCTIONS = {each.__name__: each for each in (squash, product, shift, weights)}
KEEP_SYMMETRY = ("squash",)


class Recipe(Chance):
    """A program, as a value: `items` in the order in which they are made, `steps` with nested loops.
    `operands`: number of operands of a contraction, by chance. `strange`: inputs have elements that are NaN
    or infinite, and all arrays have all tiles, because an absent tile is zero whatever it is multiplied
    by."""

    def __init__(self, seed, operands=(1, 2, 2, 2, 2, 2, 2, 3), *, is_large=False):
        super().__init__(seed, is_large=is_large)
        self.operands = operands
        self.space = (1000 if is_large else 1) * SPACE
        self.strange = self.chance(0.12)
        self.items: list[Item] = []
        for _ in range(self.number(2, 5)):
            self._input()
        for _ in range(self.number(1, 4)):
            self._made()
        self.steps = self._block(self.number(3, 8), depth=0)
        fresh = [item for item in self.items if not item.is_input]
        for item in fresh:
            item.is_output = self.chance(0.6) or item is fresh[-1]
        self.results = self._carry_out()

    # ---- arrays ----

    def _input(self):
        kind = self.one_of(KINDS)
        sparse = (kind in TILED or kind.endswith("sparse")) and not self.strange
        layout = self.layout(self.some_axes(), symmetric=kind in TILED, sparse=sparse)
        axes = tuple(next(i for i, known in enumerate(self.axes) if known is a) for a in layout.tilings)
        dtype = np.dtype(self.one_of(DTYPES))
        values = self.values(layout, dtype)
        if self.strange:
            values = self.with_strange(layout, values)
        item = Item(f"in{len(self.items)}", axes, layout, dtype, kind, values)
        if kind == "extended":
            item.place = self.one_of(["auto", "process", "node", "global", "disk", "disk"])
            narrow = {"float64": "float32", "complex128": "complex64"}.get(dtype.name)
            if narrow and self.chance(0.2):
                item.stored, item.values = narrow, values.astype(narrow).astype(dtype)
        self.items.append(item)

    def _made(self):
        axes = self.some_axes() if self.chance(0.8) else ()
        layout = self.layout(axes, sparse=not self.strange) if axes and self.chance(0.5) else None
        dtype = np.dtype(self.one_of(DTYPES))
        zeros = np.zeros([self.axes[axis].size for axis in axes], dtype)
        self.items.append(Item(f"new{len(self.items)}", axes, layout, dtype, "made", zeros))

    def _fresh(self, axes, dtype):
        zeros = np.zeros([self.axes[axis].size for axis in axes], dtype)
        item = Item(f"fresh{len(self.items)}", axes, None, np.dtype(dtype), "fresh", zeros)
        self.items.append(item)
        return item

    # ---- statements ----

    def _block(self, count, depth):
        steps: list[Any] = []
        for _ in range(count):
            if depth < 2 and self.chance(0.2):
                rounds = self.number(0, 4) if self.chance(0.3) else self.number(2, 4)
                body = self._block(self.number(1, 4), depth + 1)
                if body:
                    last = self.number(0, rounds) if rounds and self.chance(0.3) else rounds
                    steps.append(Loop(rounds, last, body))
            else:
                made = self.one_of(
                    [self._einsum] * 4 + [self._gram, self._gram, self._sum, self._sum, self._map]
                )()
                steps += [made] if made is not None else []
        return steps

    def _takes(self, axes, dtype, operands):
        """An array that can take a result without symmetry; None: a fresh one, or no array."""
        found = [
            item
            for item in self.items
            if item.can_be_written
            and item.axes == axes
            and not (item.layout is not None and item.layout.symmetry)
            and item not in operands
            and np.can_cast(dtype, item.dtype, "same_kind")
        ]
        return self.one_of(found) if found else None

    def _einsum(self):
        operands = tuple(self.one_of(self.items) for _ in range(self.one_of(self.operands)))
        subscripts, of_axis = self.subscripts([item.axes for item in operands], 0.7)
        if self.extent(of_axis, of_axis) > self.space:
            return None
        output = self.turned([letter for letter in of_axis if self.chance(0.5)][:4], of_axis)
        dtype = np.result_type(*(item.dtype for item in operands))
        phase = 1j if self.chance(0.1) else 1.0
        dtype = np.result_type(dtype, phase)
        out = self._target_of_einsum(operands, of_axis, output, dtype)
        if out is None:
            out, accumulate = self._fresh(tuple(of_axis[letter] for letter in output), dtype), False
        else:
            output, out = out
            accumulate = self.chance(0.6)
        summed = [letter for letter in of_axis if letter not in output]
        terms = self.extent(summed, of_axis)
        scale = phase * self.one_of([1.0, -0.5, 2.0] * 5 + [0.0]) * 2.0 ** -math.ceil(math.log2(terms))
        return Einsum(f"{','.join(subscripts)}->{''.join(output)}", operands, out, accumulate, scale)

    def _target_of_einsum(self, operands, of_axis, output, dtype):
        """An existing array, and letters in the order of its axes."""
        if self.chance(0.4):
            return None
        for item in self.random.permutation(np.array(self.items, object)):
            left, chosen = list(of_axis), []
            for axis in item.axes:
                letter = next((c for c in left if of_axis[c] == axis), None)
                if letter is None:
                    break
                left.remove(letter)
                chosen.append(letter)
            fits = len(chosen) == len(item.axes)
            if fits and self._takes(item.axes, dtype, operands) is not None:
                return chosen, self._takes(item.axes, dtype, operands)
        return None

    def _gram(self):
        """A product of an array with itself, in which one or two axes differ: x[pa..] x[ra..], x[pqa..]
        x[rsa..]. The result has symmetries, whatever x is."""
        found = [item for item in self.items if item.axes and item.values.size <= self.largest / 10]
        if not found:
            return None
        item = self.one_of(found)
        letters = "abcd"[: len(item.axes)]
        count = self.number(1, 1 + min(2, len(letters)))
        kept = self.one_of(list(itertools.combinations(range(len(letters)), count)))
        left, right = list(letters), list(letters)
        for place, one, other in zip(kept, "pq", "rs", strict=False):
            left[place], right[place] = one, other
        output = "prqs"[: 2 * len(kept)]
        axes = tuple(item.axes[place] for place in kept for _ in range(2))
        sizes = [self.axes[axis].size for axis in (*axes, *item.axes)]
        if math.prod(sizes[: len(axes)]) > self.largest or math.prod(sizes) > self.space:
            return None
        text = f"{''.join(left)},{''.join(right)}->{output}"
        expression = parse(text, [item.values.shape] * 2)
        has = factors(expression, [item, item], [item.symmetry] * 2)
        targets = [
            each
            for each in self.items
            if each.can_be_written
            and each.axes == axes
            and missing(expression, has, each.symmetry) is None
            and each is not item
            and np.can_cast(item.dtype, each.dtype, "same_kind")
        ]
        out = self.one_of(targets) if targets and self.chance(0.6) else None
        if out is None:
            layout = Layout(
                [self.axes[axis] for axis in axes], symmetry=self._symmetry_of(expression, has, axes)
            )
            out = Item(f"new{len(self.items)}", axes, layout, item.dtype, "made", np.zeros(layout.shape))
            self.items.append(out)
        scale = 2.0 ** -math.ceil(math.log2(max(1, item.values.size)))
        return Einsum(text, (item, item), out, self.chance(0.6), scale)

    def _symmetry_of(self, expression, has, axes):
        """A symmetry that the result must have."""
        words = ["pair"] if len(axes) == 4 else []
        words += [
            f"{kind}({i},{j})"
            for i, j in itertools.combinations(range(len(axes)), 2)
            if axes[i] == axes[j]
            for kind in ("symmetric", "antisymmetric")
        ]
        found = Symmetry(len(axes))
        for word in self.random.permutation(words):
            try:
                both = [found, Symmetry.parse(str(word), len(axes))]
                more = Symmetry(len(axes), [pair for each in both for pair in each.elements.items()])
            except ValueError:
                continue
            if missing(expression, has, more) is None:
                found = more
        return found

    def _sum(self):
        first = self.one_of([item for item in self.items if item.axes])
        known = [item for item in self.items if item.axes == first.axes]
        out = self.one_of([item for item in known if item.can_be_written] or [None])
        symmetric = out is not None and out.layout is not None and out.layout.symmetry
        if symmetric:
            wanted = out.layout.symmetry.elements.items()
            known = [
                i for i in known if i.layout is not None and wanted <= i.layout.symmetry.elements.items()
            ]
        terms = tuple(
            (self.one_of([0.5, -0.25, 1.0, -1.0]), self.one_of(known)) for _ in range(self.number(1, 4))
        )
        dtype = np.result_type(*(item.dtype for _, item in terms))
        if out is None or not np.can_cast(dtype, out.dtype, "same_kind"):
            return Sum(terms, self._fresh(first.axes, dtype), False)
        return Sum(terms, out, self.chance(0.5))

    def _map(self):
        name = self.one_of(list(FUNCTIONS))
        first = self.one_of([item for item in self.items if item.axes])
        known = [item for item in self.items if item.axes == first.axes]
        operands = (first, self.one_of(known)) if name == "product" else (first,)
        dtype = np.result_type(*(item.dtype for item in operands))
        out = self._takes(first.axes, dtype, ())
        if name in KEEP_SYMMETRY and first.can_be_written and self.chance(0.5):
            return Map(name, operands, first, self.chance(0.3))
        if out is None or self.chance(0.3):
            return Map(name, operands, self._fresh(first.axes, dtype), False)
        return Map(name, operands, out, self.chance(0.5))

    # ---- NumPy ----

    def _carry_out(self):
        state = {item.name: Shadow.of(item) for item in self.items}
        with np.errstate(invalid="ignore"):
            self._run(self.steps, state)
        return state

    def _run(self, steps, state):
        for step in steps:
            if isinstance(step, Loop):
                for _ in range(step.rounds):
                    self._run(step.body, state)
                continue
            found = _value(step, state)
            before = state[step.out.name]
            state[step.out.name] = found.into(step.out, before if step.accumulate else None)

    def story(self):
        lines = [
            f"{item.name}: {item.kind} {item.values.shape} {item.dtype} {item.place} {item.layout!r} "
            f"{item.layout.symmetry if item.layout else ''}"
            for item in self.items
            if item.kind != "fresh"
        ]
        return f"seed {self.seed}\n  " + "\n  ".join(lines)


@dataclass
class Shadow:
    """NumPy's counterpart of an array: elements, the magnitude of the terms that were added to each, and the
    precision."""

    value: np.ndarray
    size: np.ndarray
    eps: float

    @staticmethod
    def of(item):
        wide = item.values.astype("complex128" if item.dtype.kind == "c" else "float64")
        return Shadow(wide, np.abs(wide), float(np.finfo(item.stored or item.dtype).eps))

    def into(self, item, before):
        """The values as `item` stores them, added to `before`."""
        value, size, eps = (
            self.value,
            self.size,
            max(self.eps, float(np.finfo(item.stored or item.dtype).eps)),
        )
        if item.layout is not None:
            there = np.zeros(item.layout.shape, bool)
            for tile in np.argwhere(item.layout.there):
                there[item.layout.box(tuple(tile))] = True
            value, size = np.where(there, value, 0), np.where(there, size, 0)
        if before is not None:
            value, size, eps = value + before.value, size + before.size, max(eps, before.eps)
        return Shadow(value, size, eps)


def _value(step, state):
    if isinstance(step, Sum):
        parts = [(factor, state[item.name]) for factor, item in step.terms]
        return Shadow(
            sum(factor * part.value for factor, part in parts),
            sum(abs(factor) * part.size for factor, part in parts),
            max(part.eps for _, part in parts),
        )
    parts = [state[item.name] for item in step.operands]
    eps = max(part.eps for part in parts)
    if isinstance(step, Einsum):
        value, size = (
            np.einsum(step.subscripts, *each, optimize=len(parts) > 2)
            for each in ([part.value for part in parts], [part.size for part in parts])
        )
        return Shadow(step.scale * value, abs(step.scale) * size, eps)
    function = FUNCTIONS[step.function]
    box = tuple(slice(0, extent) for extent in parts[0].value.shape)
    size = 2 * parts[0].size if step.function == "squash" else function(box, *(part.size for part in parts))
    return Shadow(function(box, *(part.value for part in parts)), size, eps)
