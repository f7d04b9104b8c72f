"""Axes, layouts and arrays that a seed makes, the same at all processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import (
    Array,
    BlockSparseArray,
    DiskArray,
    GlobalArray,
    Labels,
    Layout,
    NodeArray,
    Symmetry,
    Tiling,
)

DTYPES = ("float64", "float64", "float64", "float32", "complex128", "complex64")
PLACES = ("auto", "process", "node", "global", "disk")
LARGEST = 3000  # elements of an array


class Chance:
    """The choices of a seed. `axes`: with tilings and labels, used for all arrays, which have at most
    `largest` elements. `is_large`: arrays of megabytes."""

    def __init__(self, seed, *, is_large=False):
        self.seed, self.is_large = seed, is_large
        self.largest = (200 if is_large else 1) * LARGEST
        self.random = np.random.default_rng(seed)
        self.axes = [self._axis() for _ in range(3)]

    def chance(self, probability):
        return bool(self.random.random() < probability)

    def one_of(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def number(self, low, high):
        """From low to high - 1."""
        return int(self.random.integers(low, high))

    def _axis(self):
        size = self.number(10, 60) if self.is_large else self.number(1, 10)
        inner = [i for i in range(1, size) if self.chance(0.07 if self.is_large else 0.35)]
        cuts = [0, *inner, size]
        irreps = [int(i) for i in self.random.integers(0, 2, len(cuts) - 1)]
        spins = [int(i) for i in self.random.integers(-1, 2, len(cuts) - 1)]
        return Tiling(size, cuts, irreps=irreps, spins=spins if self.chance(0.5) else None)

    def some_axes(self, rank=None):
        rank = self.number(1, 5) if rank is None else rank
        while True:
            axes = tuple(int(a) for a in self.random.integers(0, len(self.axes), rank))
            if np.prod([self.axes[a].size for a in axes]) <= self.largest:
                return axes
            rank = max(1, rank - 1)

    def subscripts(self, operands, common):
        """Subscripts of a contraction of arrays with these axes: the letters of each array, and the axis of
        each letter. With the probability `common` an axis that has a letter is used again."""
        letters: dict[int, list[str]] = {}
        subscripts = []
        for axes in operands:
            word = ""
            for axis in axes:
                known = [c for c in letters.get(axis, []) if c not in word or self.chance(0.1)]
                if known and self.chance(common):
                    word += self.one_of(known)
                else:
                    letters.setdefault(axis, []).append(chr(ord("a") + sum(map(len, letters.values()))))
                    word += letters[axis][-1]
            subscripts.append(word)
        return subscripts, {letter: axis for axis, each in letters.items() for letter in each}

    def extent(self, letters, of_axis):
        """Number of elements of an array with these letters."""
        return np.prod([float(self.axes[of_axis[letter]].size) for letter in letters])

    def turned(self, output, of_axis):
        """Letters in another order, at most as many as an array may have axes."""
        self.random.shuffle(output)
        while self.extent(output, of_axis) > self.largest:
            output.pop()
        return output

    def symmetry(self, axes):
        """A symmetry of an array with these axes."""
        words, free = [], list(range(len(axes)))
        half = len(axes) // 2
        halves = [axes[:half], axes[half:]] if len(axes) % 2 == 0 else []
        if half > 1 and all(len(set(each)) == 1 for each in halves) and self.chance(0.3):
            words.append("pair")
        while self.chance(0.5):
            equal = [(i, j) for i in free for j in free if i < j and axes[i] == axes[j]]
            if not equal:
                break
            i, j = self.one_of(equal)
            words.append(f"{self.one_of(['symmetric', 'antisymmetric'])}({i},{j})")
            free = [k for k in free if k not in (i, j)]
        try:
            return Symmetry.parse(words, len(axes))
        except ValueError:  # such an array could only be zero
            return Symmetry(len(axes))

    def layout(self, axes, *, symmetric=True, sparse=True):
        tilings = [self.axes[axis] for axis in axes]
        symmetry = self.symmetry(axes) if symmetric else Symmetry(len(axes))
        sparsity: Any = None
        if sparse and self.chance(0.25):
            irrep = self.number(0, 2) if self.chance(0.7) else None
            spin = self.number(-1, 2) if irrep is None or self.chance(0.3) else None
            # Axes that a symmetry exchanges count alike.
            sparsity = Labels(irrep, spin, (1,) * len(axes) if symmetry else None)
        elif sparse and self.chance(0.25):
            sparsity = self.random.random([len(tiling) for tiling in tilings]) < 0.6
            for permutation in symmetry.elements:
                sparsity = sparsity | np.transpose(sparsity, permutation)
        return Layout(tilings, sparsity, symmetry)

    def values(self, layout, dtype):
        """Elements that the layout can hold."""
        whole = self.random.uniform(-1, 1, layout.shape)
        if np.dtype(dtype).kind == "c":
            whole = whole + 1j * self.random.uniform(-1, 1, layout.shape)
        whole = whole.astype(dtype)
        result = np.zeros(layout.shape, dtype)
        for permutation, sign in layout.symmetry.elements.items():
            result += sign * np.transpose(whole, permutation)
        for tile in np.ndindex(*layout.grid):
            stored, axes, sign = layout.canonical(tile)
            result[layout.box(tile)] = (
                0 if stored is None else sign * np.transpose(result[layout.box(stored)].copy(), axes)
            )
        return result

    def with_strange(self, layout, values):
        """Values of which some are NaN or infinite, with the same symmetry."""
        for _ in range(self.number(0, 3)):
            index = tuple(self.number(0, extent) for extent in layout.shape)
            value = self.one_of([np.nan, np.inf, -np.inf])
            images: dict[tuple[int, ...], set[int]] = {}
            for permutation, sign in layout.symmetry.elements.items():
                image = [0] * len(index)
                for place, axis in zip(index, permutation, strict=True):
                    image[axis] = place
                images.setdefault(tuple(image), set()).add(sign)
            if all(len(signs) == 1 for signs in images.values()):
                for image_of, (sign,) in images.items():
                    values[image_of] = sign * value
        return values

    def view(self, values):
        """A NumPy array of these values whose elements do not lie side by side."""
        order = self.random.permutation(values.ndim)
        base = np.zeros([2 * values.shape[axis] for axis in order], values.dtype)
        view = base[tuple(slice(None, None, self.one_of([2, -2])) for _ in order)].transpose(
            np.argsort(order)
        )
        view[...] = values
        return view


def filled(world, kind, layout, values):
    """A disk array, a global array or a block-sparse array with the tiles of a layout, which has these values.
    Collective."""
    if kind == "sparse":
        array: Any = BlockSparseArray(
            world, [list(axis.cuts) for axis in layout.tilings], layout.there, values.dtype
        )
        for tile in array.own_tiles:
            array.put_tile(tile, values[layout.box(tile)])
    else:
        array = (DiskArray if kind == "disk" else GlobalArray)(world, layout.shape, values.dtype)
        if world.rank == 0:
            array[...] = values
    with world.together("put elements"):
        if kind != "global":
            array.sync()
    if kind == "global":
        array.sync()
    return array


def holding(world, kind, values):
    """An array with these values; kind: "numpy", "node", "global", "disk", "sparse" or "array: PLACE".
    Collective."""
    if kind == "numpy":
        return values.copy()
    if kind == "node":
        array = NodeArray(world, values.shape, values.dtype)
        if world.node_rank == 0:
            array.view[...] = values
        array.barrier()
        return array
    if kind in ("global", "disk", "sparse"):
        layout = Layout([Tiling(extent, tile=7) for extent in values.shape])
        return filled(world, kind, layout, values)
    tilings = [Tiling(extent, tile=7) for extent in values.shape]
    return Array.from_numpy(world, values, tilings, where=kind.removeprefix("array: "))


def elements(world, array):
    """All elements of an array, at this process. Returns when all processes have them. Collective."""
    if isinstance(array, np.ndarray | np.generic | complex | float):
        return np.asarray(array)
    if isinstance(array, NodeArray):
        found = array.view.copy()
    else:
        found = array.to_numpy() if isinstance(array, Array | BlockSparseArray) else array[...]
    world.all_reduce(0)
    return found
