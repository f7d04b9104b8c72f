"""Random statements over extended arrays, each of which is compared with NumPy as it is carried out.

A seed makes axes with tilings and labels, and a pool of arrays of all kinds: symmetric or not, with all tiles
or some, of four types, in all places. Statements contract several of them, add, scale, move, reduce. Their
results join the pool. All processes of a world run the same program.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from conformance.random_arrays import DTYPES, PLACES, Chance, elements, filled, holding

import outcore
from outcore import Array, BlockSparseArray, Layout, OutcoreError, Tiling

MOST = 9  # arrays in the pool
DENSE = ("numpy", "view", "node", "disk", "global")  # without tiles
WRAPPED = ("numpy", "disk", "global", "sparse")


@dataclass
class Member:
    """An array, NumPy's counterpart, and the axes by their numbers. `is_extended`: of class Array."""

    array: Any
    shadow: np.ndarray
    axes: tuple[int, ...]
    base: Any = None  # of one that is wrapped

    @property
    def is_extended(self):
        return isinstance(self.array, Array)


def name_of(array):
    return f"NumPy {array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)


def tilings_of(array):
    """The tiling of each axis of an array that has tiles."""
    if isinstance(array, Array):
        return array.layout.tilings
    return [Tiling(cuts[-1], cuts) for cuts in array.tilings] if isinstance(array, BlockSparseArray) else []


def equal_tilings(a, b):
    return a.array.layout.tilings == b.array.layout.tilings


class RandomStatements(Chance):
    def __init__(self, world, seed):
        super().__init__(seed)
        self.world = world
        self.pool: list[Member] = []
        self.said: list[str] = []  # statements, for readers of a failure
        self.refused = 0

    # ---- arrays ----

    def new(self, axes=None, *, extended=False, dtype=None):
        axes = self.some_axes() if axes is None else axes
        dtype = self.one_of(DTYPES) if dtype is None else dtype
        kinds = ["extended"] * 7 + ["generated", *DENSE, "sparse", *(f"wrapped {kind}" for kind in WRAPPED)]
        kind = self.one_of([k for k in kinds if not extended or k.startswith(("extended", "wrapped"))])
        has_tiles = kind in ("extended", "generated")
        layout = self.layout(axes, symmetric=has_tiles, sparse=has_tiles or kind.endswith("sparse"))
        shadow = self.values(layout, dtype)
        self.say(f"new {kind} {axes} {dtype} {layout!r} {layout.symmetry!r}")
        if kind == "extended":
            return self._new_extended(axes, layout, shadow)
        if kind == "generated":
            array = Array.generated(self.world, layout, lambda box: shadow[box], dtype)
            return self.join(Member(array, shadow, axes))
        base = (
            self.view(shadow) if kind == "view" else self._held(kind.removeprefix("wrapped "), layout, shadow)
        )
        if not kind.startswith("wrapped"):
            return self.join(Member(base, shadow, axes))
        return self.join(Member(Array.wrap(self.world, base, layout), shadow, axes, base))

    def _held(self, kind, layout, values):
        return (
            holding(self.world, kind, values)
            if kind in ("numpy", "node")
            else filled(self.world, kind, layout, values)
        )

    def _new_extended(self, axes, layout, shadow):
        narrow = {"float64": "float32", "complex128": "complex64"}.get(shadow.dtype.name)
        stored = narrow if narrow and self.chance(0.25) else None
        array = Array.from_numpy(self.world, shadow, layout, self.one_of(PLACES), store_dtype=stored)
        found = elements(self.world, array)
        bound = array.storage_error
        for part, exact in ((found.real, shadow.real), (found.imag, shadow.imag)):
            assert (np.abs(part - exact) <= bound.relative * np.abs(exact) + bound.absolute).all()
        return self.join(Member(array, found, axes))

    def join(self, member):
        self.pool.append(member)
        if len(self.pool) > MOST:
            self.drop(self.pool[int(self.random.integers(len(self.pool) - 1))])
        return member

    def drop(self, member):
        self.pool = [each for each in self.pool if each is not member]
        for array in (member.array, member.base):
            if array is not None and not isinstance(array, np.ndarray):
                array.close()

    # ---- what is found ----

    def compare(self, found, exact, scale, dtype):
        """`scale`: the magnitude of the terms of each element."""
        eps = float(np.finfo(dtype).eps)
        wrong = np.abs(found - exact) > 100 * eps * scale + 1e-30
        if np.any(wrong):
            place = tuple(int(each[0]) for each in np.nonzero(np.atleast_1d(wrong)))
            worst = np.abs(found - exact).max()
            raise AssertionError(f"{self.story()}\nelement {place}: off by {worst}")

    def took(self, array, exact, scale, axes):
        """A result becomes a member. NumPy's counterpart gets the values that were found, so that rounding
        does not add up."""
        found = elements(self.world, array)
        self.compare(found, exact, scale, array.dtype)
        member = Member(array, np.array(found), axes)
        largest = np.abs(found).max(initial=0)
        if largest > 100 and not (
            isinstance(array, Array) and array.read_only and array.where == "generated"
        ):
            if isinstance(array, Array):
                array *= 1 / 128  # exact
                member.shadow = member.shadow / found.dtype.type(128)
            else:
                self.drop(member)
                return None
        return self.join(member)

    def say(self, text):
        self.said.append(text)

    def story(self):
        return f"seed {self.seed}, {self.world.size} processes:\n  " + "\n  ".join(self.said)

    # ---- statements ----

    def run(self, statements):
        try:
            for _ in range(3):
                self.new()
            for _ in range(statements):
                kind = self.one_of(
                    ["einsum"] * 6 + ["arithmetic", "in_place", "move", "reduce", "index", "rearrange", "new"]
                )
                getattr(self, kind)()
        except Exception as error:
            raise AssertionError(self.story()) from error
        for member in list(self.pool):
            self.drop(member)

    def extended(self):
        found = [each for each in self.pool if each.is_extended]
        return self.one_of(found) if found else self.new(extended=True)

    def einsum(self):
        operands = [self.one_of(self.pool) for _ in range(int(self.random.integers(1, 4)))]
        subscripts, of_axis = self.subscripts([member.axes for member in operands], 0.6)
        if self.extent(of_axis, of_axis) > 3e5:
            return
        output = self.turned([letter for letter in of_axis if self.chance(0.5)], of_axis)[:4]
        text = f"{','.join(subscripts)}->{''.join(output)}"
        axes = tuple(of_axis[letter] for letter in output)
        tilings: dict[str, Tiling] = {}
        differ = False
        for word, member in zip(subscripts, operands, strict=True):
            for letter, axis in zip(word, tilings_of(member.array), strict=False):
                differ |= tilings.setdefault(letter, axis).cuts != axis.cuts
        of_output = [tilings.get(letter, self.axes[of_axis[letter]]) for letter in output]
        self._contract(text, operands, axes, of_output, differ)

    def _contract(self, text, operands, axes, tilings, differ):
        """differ: the same axis has different tilings in two operands, which may be refused."""
        arrays = [each.array for each in operands]
        shadows = [each.shadow for each in operands]
        wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in shadows]
        exact, size = np.einsum(text, *wide), np.einsum(text, *[np.abs(x) for x in wide])
        factor = self.one_of([1, 1, -0.5, 3.0])
        exact, size = exact * factor, size * abs(factor)
        options: dict[str, Any] = {"scale": factor}
        if self.chance(0.5):
            options["memory"] = int(10 ** self.random.uniform(3.5, 5.5))
        if self.chance(0.3):
            options["threads"] = 2
        dtype = np.result_type(*shadows)
        out = None
        symmetry = self.symmetry(axes) if axes else None
        if symmetry and self.chance(0.7):
            options["symmetrize"] = True
            if not all(tilings[i] == tilings[j] for p in symmetry.elements for i, j in enumerate(p)):
                return
            if self.chance(0.5) and all(each.is_extended for each in operands):
                options["symmetry"] = symmetry
            else:
                where = self.one_of(["auto", "global", "disk"])
                layout = Layout(tilings, None, symmetry)
                options["out"] = out = Array(self.world, layout, dtype, where)
            exact, size = (
                sum((sign if signed else 1) * np.transpose(x, p) for p, sign in symmetry.elements.items())
                for x, signed in ((exact, True), (size, False))
            )
        elif axes and self.chance(0.4):
            out, before = self._target(tilings, dtype)
            options["out"] = out
            if self.chance(0.5):
                options["accumulate"] = True
                exact, size = exact + before, size + np.abs(before)
        shown = {name: value for name, value in options.items() if name != "out"}
        self.say(f"einsum {text} of {[*map(name_of, arrays)]} {shown} out={name_of(out)}")
        result = self._call(text, arrays, options, differ)
        if result is None:
            return
        if axes:
            self.took(result, exact, size, axes)
        else:
            self.compare(np.asarray(result), exact, size, dtype)

    def _call(self, text, arrays, options, differ):
        """Runs a call; if it needs more memory, again with exactly the memory that the error names. None if
        it was refused."""
        try:
            return outcore.einsum(text, *arrays, world=self.world, **options)
        except OutcoreError as error:
            self.say(f"  refused: {error}")
            if error.errno == errno.EINVAL and differ:
                return None
            if error.errno != errno.ENOMEM or "memory" not in options:
                raise
            least = int(re.search(r"take ([0-9]+) bytes", str(error))[1])
        self.refused += 1
        assert least > options["memory"]
        return outcore.einsum(text, *arrays, world=self.world, **(options | {"memory": least}))

    def _target(self, tilings, dtype):
        """An existing dense array, and its values."""
        layout = Layout(tilings)
        before = self.values(layout, dtype)
        kind = self.one_of(["extended", "extended", *DENSE])
        if kind == "view":
            return self.view(before), before
        if kind == "extended":
            return Array.from_numpy(self.world, before, layout, self.one_of(PLACES)), before
        return self._held(kind, layout, before), before

    def arithmetic(self):
        a = self.extended()
        same = [each for each in self.pool if each.is_extended and equal_tilings(each, a)]
        b = self.one_of(same)
        name = self.one_of(["add", "subtract", "multiply", "number"])
        self.say(f"{name} {a.array!r} {b.array!r}")
        if name == "number":
            found, exact = 2.5 * a.array, 2.5 * a.shadow
        else:
            function = getattr(np, name)
            found = {"add": a.array.__add__, "subtract": a.array.__sub__, "multiply": a.array.__mul__}[name](
                b.array
            )
            exact = function(a.shadow, b.shadow)
        self.took(found, exact, np.abs(exact) + np.abs(a.shadow) + np.abs(b.shadow), a.axes)

    def in_place(self):
        a = self.extended()
        if a.array.where == "generated":
            return
        same = [
            each
            for each in self.pool
            if each.is_extended
            and each.axes == a.axes
            and each.array.dtype == a.array.dtype
            and each.array.layout.tilings == a.array.layout.tilings
            and not (each.array.layout.there & ~a.array.layout.there).any()
            and a.array.layout.symmetry.elements.items() <= each.array.layout.symmetry.elements.items()
        ]
        b = self.one_of(same)
        self.say(f"axpy {a.array!r} {b.array!r}")
        exact = a.shadow - 0.25 * b.shadow
        a.array.axpy(-0.25, b.array)
        found = elements(self.world, a.array)
        self.compare(found, exact, np.abs(a.shadow) + np.abs(b.shadow), a.array.store_dtype)
        a.shadow = np.array(found)

    def move(self):
        a = self.extended()
        if a.array.where == "generated":
            return
        where = self.one_of(PLACES)
        self.say(f"move {a.array!r} {where}")
        a.array.move(where)
        assert np.array_equal(elements(self.world, a.array), a.shadow)

    def reduce(self):
        a = self.extended()
        self.say(f"reduce {a.array!r}")
        size = np.abs(a.shadow).sum()
        self.compare(np.asarray(a.array.sum()), a.shadow.sum(dtype="complex128"), size, a.array.dtype)
        self.compare(np.asarray(a.array.norm()), np.linalg.norm(a.shadow), size, a.array.dtype)
        same = [each for each in self.pool if each.is_extended and equal_tilings(each, a)]
        b = self.one_of(same)
        product = a.shadow.astype("complex128") * b.shadow
        self.compare(np.asarray(a.array.dot(b.array)), product.sum(), np.abs(product).sum(), "float32")

    def index(self):
        a = self.extended()
        index = []
        for extent in a.shadow.shape:
            begin, end = sorted(int(i) for i in self.random.integers(-extent, extent + 1, 2))
            index.append(self.one_of([slice(None), slice(begin, end), slice(None, None, -2), extent - 1]))
        self.say(f"index {a.array!r} {index}")
        assert np.array_equal(a.array[tuple(index)], a.shadow[tuple(index)])
        self.world.all_reduce(0)

    def rearrange(self):
        a = self.extended()
        order = tuple(int(i) for i in self.random.permutation(len(a.axes)))
        self.say(f"transpose {a.array!r} {order}")
        exact = a.shadow.transpose(order)
        self.took(a.array.transpose(*order), exact, np.abs(exact), tuple(a.axes[i] for i in order))
