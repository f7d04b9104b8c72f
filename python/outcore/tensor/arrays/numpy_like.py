"""NumPy's interface of extended arrays: indices, arithmetic, reductions."""

from __future__ import annotations

import errno
import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.indexing import select
from outcore.base.errors import OutcoreError
from outcore.job import arguments
from outcore.tensor.arrays import numpy_functions
from outcore.tensor.layout.layout import Layout, Tile
from outcore.tensor.layout.result_check import as_number
from outcore.tensor.layout.symmetry import Symmetry

if TYPE_CHECKING:
    from outcore.parallel.requests import Request
    from outcore.tensor.arrays.backends.backend import Backend

    Values = np.ndarray[Any, np.dtype[Any]]

_AHEAD = 4  # tiles that are fetched before they are used


class NumpyLike(AsNumpy):
    """Each process may index, or call `to_numpy`, by itself. All else is collective, and sees all tiles that
    processes have put and added before.

    Operands of arithmetic are extended arrays of equal tilings, numbers, and arrays that `wrap` takes, of the same
    shape. The result has the tiles and the symmetry that follow from those of its operands, and lies where the
    first of them lies (where="auto" if that is none of the places where arrays are made). OutcoreError EINVAL for
    tilings that differ, and where an array that is changed in place cannot hold the result.

    `numpy.sum`, `numpy.linalg.norm`, `numpy.max`, `numpy.min`, `numpy.vdot` and `numpy.transpose` of whole arrays
    are the methods of that name (`dot` of `vdot`). Other functions of NumPy take copies (`to_numpy`); functions of
    its elements, such as `numpy.exp`, are refused (TypeError).
    """

    __array_ufunc__ = None  # a NumPy array on the left leaves the operation to this class

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_functions.apply(function, NumpyLike, args, kwargs)  # type: ignore[type-abstract]

    @property
    @abstractmethod
    def layout(self) -> Layout: ...

    @property
    @abstractmethod
    def backend(self) -> Backend: ...

    @abstractmethod
    def get_tile_async(self, tile: Sequence[int], out: Values | None = None) -> Request: ...

    @abstractmethod
    def get_tile(self, tile: Sequence[int], out: Values | None = None) -> Values: ...

    @abstractmethod
    def own_tiles(self) -> list[Tile]: ...

    @abstractmethod
    def sync(self) -> None: ...

    @abstractmethod
    def _new(self, layout: Layout, dtype: np.dtype[Any]) -> Self:
        """An array of zeros at the same place. Collective."""

    @abstractmethod
    def _fill(self, tiles: Callable[[list[int]], Iterable[tuple[int, Values]]], what: str) -> None:
        """Puts tiles: `tiles` gets the numbers that this process has to fill, and yields their elements.
        Collective."""

    @abstractmethod
    def _wrapped(self, other: Any) -> Self:
        """Wraps an array of another kind, with the same tilings. Collective."""

    # ---- form ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return self.layout.rank

    @property
    def T(self) -> Self:
        """As `transpose()`: a new array."""
        return self.transpose()

    _how_to_compare = "(a - b).norm() for how far two arrays are apart, "

    # ---- to NumPy ----

    def __getitem__(self, index: Any) -> Any:
        """A copy of a section, of integers, slices and an Ellipsis; of an integer for each axis, the element."""
        selection = select(index, self.shape, repr(self))
        if not self.shape:
            return self.get_tile(()).copy()[() if index == () else ...]
        result = np.zeros(selection.shape, self.dtype)
        if 0 in selection.shape:
            return result
        view = selection.as_stored(result)
        tiles = (t for t in self.layout.tiles_of(selection.begin, selection.end) if self.layout.there[t])
        for tile, (values,) in ahead(tiles, [self]):
            source, target = [], []
            for cut, begin, end, step in zip(
                self.layout.box(tile), selection.begin, selection.end, selection.step, strict=True
            ):
                first = begin + -(-max(0, cut.start - begin) // step) * step
                last = max(first, min(end, cut.stop))
                source.append(slice(first - cut.start, last - cut.start, step))
                place = (first - begin) // step
                target.append(slice(place, place + -(-(last - first) // step)))
            view[tuple(target)] = values[tuple(source)]
        return result[()] if selection.is_element else result

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"elements of {self!r} are not assigned: use put_tile or acc_tile, a.fill(number), "
            "a.fill(0) and then a += x, or Array.from_numpy"
        )

    def _whole(self) -> Values:
        whole: Values = self[...]
        return whole

    # ---- element by element ----

    def __add__(self, other: Any) -> Self:
        return self._combined("add", np.add, other, _sum_layout)

    def __radd__(self, other: Any) -> Self:
        return self._combined("add", np.add, other, _sum_layout)

    def __sub__(self, other: Any) -> Self:
        return self._combined("subtract", np.subtract, other, _sum_layout)

    def __rsub__(self, other: Any) -> Self:
        return self._combined("subtract from", lambda a, b: np.subtract(b, a), other, _sum_layout)

    def __mul__(self, other: Any) -> Self:
        return self._combined("multiply", np.multiply, other, _product_layout)

    def __rmul__(self, other: Any) -> Self:
        return self._combined("multiply", np.multiply, other, _product_layout)

    def __truediv__(self, other: Any) -> Self:
        """The quotient of elements. It lacks the same tiles as this array."""
        return self._combined("divide", np.divide, other, _quotient_layout)

    def __neg__(self) -> Self:
        return self * -1

    def __pos__(self) -> Self:
        return self.copy()

    def __abs__(self) -> Self:
        absolute = self.layout.symmetry.times(self.layout.symmetry)  # all signs are 1
        dtype = np.empty(0, self.dtype).real.dtype
        return self._made("abs", np.abs, Layout(self.layout.tilings, self.layout.there, absolute), dtype)

    def __iadd__(self, other: Any) -> Self:
        return self._change("add", np.add, other)

    def __isub__(self, other: Any) -> Self:
        return self._change("subtract", np.subtract, other)

    def __imul__(self, other: Any) -> Self:
        return self._change("multiply", np.multiply, other, scales=True)

    def __itruediv__(self, other: Any) -> Self:
        return self._change("divide", np.divide, other, scales=True)

    def axpy(self, alpha: complex, x: Any) -> Self:
        """self += alpha * x, without an array between. Returns itself."""
        with self.world.together("add to an extended array", alpha):
            factor = as_number(f"add to {self!r}", "alpha", alpha)
            if isinstance(factor, complex) and self.dtype.kind != "c":
                raise TypeError(f"{self!r} cannot hold complex elements")
        return self._change("axpy", lambda a, b: a + a.dtype.type(factor) * b, x)

    def fill(self, value: complex) -> None:
        """Sets all stored tiles to `value`. OutcoreError EINVAL if the symmetry changes its sign."""
        self.sync()
        with self.world.together("fill an extended array", value):
            value = as_number(f"fill {self!r}", "value", value)
            if isinstance(value, complex) and self.dtype.kind != "c":
                raise TypeError(f"{self!r} cannot hold complex elements")
            if value != 0 and self.layout.symmetry.has_signs:
                raise ValueError(f"{self!r} is antisymmetric: it cannot be {value} everywhere")
            number = self.dtype.type(value)
        self._fill(
            lambda numbers: (
                (n, np.full(self.layout.tile_shape(self.layout.stored[n]), number)) for n in numbers
            ),
            "fill",
        )

    def copy(self) -> Self:
        """A new array at the same place."""
        return self._made("copy", lambda a: a, self.layout, self.dtype)

    def astype(self, dtype: Any) -> Self:
        """A new array of another element type at the same place."""
        wanted = np.dtype(dtype)
        return self._made("astype", lambda a: a.astype(wanted), self.layout, wanted)

    def conj(self) -> Self:
        return self._made("conj", np.conj, self.layout, self.dtype)

    def transpose(self, *axes: Any) -> Self:
        """A new array at the same place, its axes in this order, as numbers or one tuple; without axes they are
        reversed."""
        given = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        self.sync()
        with self.world.together("transpose an extended array", given):
            numbered = arguments.integers("axes", given) if given else range(self.ndim)[::-1]
            order = tuple(axis + self.ndim if axis < 0 else axis for axis in numbered)
            if sorted(order) != list(range(self.ndim)):
                raise ValueError(f"axes {given} of an array of {self.ndim}")
            layout = self.layout.permuted(order)
        result = self._new(layout, self.dtype)

        def tiles(numbers: list[int]) -> Iterator[tuple[int, Values]]:
            for number in numbers:
                source = [0] * self.ndim
                for place, axis in zip(layout.stored[number], order, strict=True):
                    source[axis] = place
                yield number, np.asarray(np.transpose(self.get_tile(tuple(source)), order), order="C")

        result._fill(tiles, "transpose")
        return result

    # ---- reductions ----

    def sum(self) -> Any:
        """The sum of all elements, in double precision."""

        def part(tile: Tile, values: Values) -> Any:
            signs = sum(sign for _, _, sign in self.layout.images(tile))
            return signs * values.sum(dtype=_wide(self.dtype)) if signs else 0

        return self._reduced("sum", part)

    def norm(self) -> float:
        """The square root of the sum of squares of absolute values."""

        def part(tile: Tile, values: Values) -> float:
            wide = values.astype(_wide(self.dtype), copy=False).ravel()
            return float(np.vdot(wide, wide).real) * _count(self.layout.images(tile))

        return math.sqrt(self._reduced("norm", part).real)

    def dot(self, other: Any, *, conjugate: bool = False) -> Any:
        """The sum of products of elements, in double precision; `conjugate`: those of this array conjugated."""
        array, _ = self._operands(other)
        with self.world.together("multiply extended arrays", conjugate):
            if array is None:
                raise TypeError(f"{other!r} is no array")
        assert array is not None
        product = np.vdot if conjugate else np.dot
        same = self.layout.symmetry == array.layout.symmetry
        wide = _wide(np.result_type(self.dtype, array.dtype))
        total: Any = wide.type(0)
        with self.world.together("multiply extended arrays"):
            for stored, (mine,) in ahead(self.own_tiles(), [self]):
                images = [image for image in self.layout.images(stored) if array.layout.there[image[0]]]
                if same and images:  # each image adds as much as the first
                    factor, images = len(images), images[:1]
                else:
                    factor = 1
                for tile, axes, sign in images:
                    here = np.asarray(np.transpose(mine, axes), order="C").astype(wide, copy=False)
                    there = array.get_tile(tile).astype(wide, copy=False)
                    total = total + factor * sign * product(here.ravel(), there.ravel())
        return self.world.all_reduce(complex(total) if wide.kind == "c" else float(total))

    def max(self) -> Any:
        """The largest element; not of complex ones."""
        return self._extreme("max", np.max)

    def min(self) -> Any:
        return self._extreme("min", np.min)

    # ---- how ----

    def _operands(self, other: Any) -> tuple[Self | None, Any]:
        """The other operand as an array, or as a number. Collective."""
        if isinstance(other, np.ndarray) and other.ndim:
            with self.world.together("use a NumPy array with an extended array", other.shape):
                other = _repeated(self, other)
        if isinstance(other, NumpyLike):
            array: Any = other
        elif np.ndim(other) == 0 and not hasattr(other, "world"):
            with self.world.together_with("use a number with an extended array", lambda: _number(other)):
                pass
            return None, other
        else:
            if getattr(other, "shape", self.shape) != self.shape:
                raise OutcoreError(
                    errno.EINVAL,
                    f"use {other!r} with {self!r}",
                    detail="their shapes differ; only arrays of NumPy are repeated along an axis",
                )
            array = self._wrapped(other)
        with self.world.together("use two extended arrays"):
            if array.shape != self.shape:
                raise ValueError(
                    f"shapes that differ: {self!r}, {array!r}; only arrays of NumPy are repeated along an axis"
                )
            if array.layout.tilings != self.layout.tilings:
                raise ValueError(f"tilings that differ: {self!r}, {array!r}")
        self.sync()
        array.sync()
        return array, None

    def _combined(
        self,
        what: str,
        function: Callable[[Any, Any], Any],
        other: Any,
        of: Callable[[Layout, Layout | None], Layout],
    ) -> Self:
        array, number = self._operands(other)
        layout = of(self.layout, None if array is None else array.layout)
        if array is None:
            dtype = np.result_type(self.dtype, number)
            return self._made(what, lambda a: function(a, number), layout, dtype)
        return self._made(what, function, layout, np.result_type(self.dtype, array.dtype), array)

    def _made(
        self,
        what: str,
        function: Callable[..., Values],
        layout: Layout,
        dtype: np.dtype[Any],
        *others: NumpyLike,
    ) -> Self:
        self.sync()
        result = self._new(layout, dtype)
        stored = layout.stored

        def tiles(numbers: list[int]) -> Iterator[tuple[int, Values]]:
            wanted = ahead((stored[number] for number in numbers), [self, *others])
            for number, (_, values) in zip(numbers, wanted, strict=True):
                yield number, np.asarray(function(*values), dtype, order="C")

        result._fill(tiles, what)
        return result

    def _change(
        self, what: str, function: Callable[..., Values], other: Any, *, scales: bool = False
    ) -> Self:
        """Changes this array in place. scales: it multiplies or divides, so zeros stay zero."""
        array, number = self._operands(other)
        with self.world.together("change an extended array", scales):
            if self.backend.read_only:
                raise ValueError(f"{self!r} is read-only")
            result = _changed_layout(self.layout, None if array is None else array.layout, scales)
            missing = result.there & ~self.layout.there
            lost = self.layout.symmetry.elements.items() - result.symmetry.elements.items()
            if missing.any() or lost:
                differs = "tiles" if missing.any() else "symmetry"
                raise ValueError(f"{self!r} cannot hold the result, whose {differs} differ")
            other_type = self.dtype if array is None else array.dtype
            if not np.can_cast(np.result_type(self.dtype, other_type), self.dtype, "same_kind") or (
                array is None and np.iscomplexobj(number) and self.dtype.kind != "c"
            ):
                raise TypeError(f"{self!r} cannot hold complex elements")
        stored = self.layout.stored

        def tiles(numbers: list[int]) -> Iterator[tuple[int, Values]]:
            arrays = [self] if array is None else [self, array]
            extra = [number] if array is None else []
            wanted = ahead((stored[n] for n in numbers), arrays)
            for n, (_, values) in zip(numbers, wanted, strict=True):
                yield n, np.asarray(function(*values, *extra), self.dtype, order="C")

        self.sync()
        self._fill(tiles, what)
        return self

    def _reduced(self, what: str, part: Callable[[Tile, Values], Any]) -> Any:
        self.sync()
        total: Any = _wide(self.dtype).type(0)
        with self.world.together("reduce an extended array", what):
            for tile, (values,) in ahead(self.own_tiles(), [self]):
                total = total + part(tile, values)
        return self.world.all_reduce(complex(total) if np.iscomplexobj(total) else float(total))

    def _extreme(self, what: str, of: Callable[..., Any]) -> Any:
        self.sync()
        found = []
        with self.world.together("reduce an extended array", what):
            if self.dtype.kind == "c":
                raise TypeError("complex numbers have no order")
            for tile, (values,) in ahead(self.own_tiles(), [self]):
                found += [of(sign * values) for sign in {sign for _, _, sign in self.layout.images(tile)}]
        if self.world.rank == 0 and not self.layout.there.all():
            found.append(self.dtype.type(0))
        return of(np.array([each for part in self.world.gather(found) for each in part], self.dtype))


def ahead(tiles: Iterable[Tile], arrays: Sequence[NumpyLike]) -> Iterator[tuple[Tile, list[Values]]]:
    """Yields tiles of some arrays; a few of them are fetched ahead."""
    waiting: deque[tuple[Tile, list[Request]]] = deque()
    source = iter(tiles)
    while True:
        while len(waiting) < _AHEAD:
            tile = next(source, None)
            if tile is None:
                break
            waiting.append((tile, [array.get_tile_async(tile) for array in arrays]))
        if not waiting:
            return
        tile, requests = waiting.popleft()
        yield tile, [request.wait() for request in requests]


def _repeated(array: NumpyLike, other: Values) -> Values:
    """An array of NumPy with the shape of an extended one, repeated along axes as NumPy does."""
    if isinstance(other, np.ma.MaskedArray):
        raise TypeError("a masked array, whose mask would be lost; give array.filled(..)")
    try:
        return np.broadcast_to(other, array.shape)
    except ValueError:
        raise ValueError(
            f"an array of shape {other.shape} with {array!r}, whose shape the result has"
        ) from None


def _number(value: Any) -> Any:
    number = np.asarray(value)
    if number.dtype.kind not in "biufc":
        raise TypeError(f"{value!r} is no number")
    return number


def _sum_layout(a: Layout, b: Layout | None) -> Layout:
    if b is None:  # a number, everywhere
        plus = [(p, sign) for p, sign in a.symmetry.elements.items() if sign > 0]
        return Layout(a.tilings, None, Symmetry(a.rank, plus))
    return Layout(a.tilings, a.there | b.there, a.symmetry.plus(b.symmetry))


def _product_layout(a: Layout, b: Layout | None) -> Layout:
    return a if b is None else Layout(a.tilings, a.there & b.there, a.symmetry.times(b.symmetry))


def _quotient_layout(a: Layout, b: Layout | None) -> Layout:
    return a if b is None else Layout(a.tilings, a.there, a.symmetry.times(b.symmetry))


def _changed_layout(a: Layout, b: Layout | None, scales: bool) -> Layout:
    return _quotient_layout(a, b) if scales else _sum_layout(a, b)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype("complex128" if dtype.kind == "c" else "float64")


def _count(items: Iterable[Any]) -> int:
    return sum(1 for _ in items)
