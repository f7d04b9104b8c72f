"""The layout of a tensor, without data: tilings of its axes, present tiles, symmetry."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from outcore import _core
from outcore.job import arguments
from outcore.tensor.layout import sparsity as sparsity_module
from outcore.tensor.layout.sparsity import Flags, Sparsity
from outcore.tensor.layout.stored_tiles import StoredTiles, TileNumbers
from outcore.tensor.layout.symmetry import Permutation, Symmetry, inverse
from outcore.tensor.layout.tiling import Tiling, as_tiling

Tile = tuple[int, ...]

MAX_TILES = 1 << 24  # the most tiles of a grid, as in BlockSparseArray


_MAX_ELEMENTS = 1 << 62


class Layout:
    """The tiles of a tensor: a value that can be compared and stored.

    Of tiles that follow from one another by symmetry only one is stored, the one whose index comes first. A tile
    that the symmetry maps to itself is stored whole.

    Args:
        tilings: for each axis (0 to 8) a Tiling; a number stands for one tile of so many elements, 0 for no tile.
            Without axes there is one tile of one element.
        sparsity: which tiles are present: None (all), Labels, an array of booleans, or indices of tiles.
        symmetry: words, as "pair" or "antisymmetric(0,1) symmetric(2,3)", or a Symmetry.

    Raises ValueError if axes that the symmetry exchanges have different tilings, if only some of the tiles that
    follow from one another are present, or if the tiles are too many.
    """

    def __init__(
        self,
        tilings: Sequence[Tiling | int],
        sparsity: Sparsity = None,
        symmetry: Symmetry | str | Sequence[str] | None = None,
    ) -> None:
        self.tilings = tuple(as_tiling(axis) for axis in tilings)
        if len(self.tilings) > 8:
            raise ValueError(f"{len(self.tilings)} axes; there may be 8 at most")
        self.shape = tuple(axis.size for axis in self.tilings)
        self.grid = tuple(len(axis) for axis in self.tilings)
        if math.prod(self.grid) > MAX_TILES:
            raise ValueError(f"{math.prod(self.grid)} tiles; there may be {MAX_TILES}: make them larger")
        self.symmetry = Symmetry.parse(symmetry, self.rank)
        if isinstance(sparsity, np.bool_):  # NumPy turns flags without axes into this
            sparsity = np.asarray(sparsity)
        self.there: Flags = sparsity_module.flags(sparsity, self.tilings)
        self._check_size()
        self._check_symmetry()
        self.there.flags.writeable = False

    def _check_size(self) -> None:
        if math.prod(self.shape) < _MAX_ELEMENTS:
            return
        there = np.nonzero(self.there)
        sizes = [
            np.array(axis.sizes, float)[places] for axis, places in zip(self.tilings, there, strict=True)
        ]
        if np.prod(sizes, axis=0).sum() >= _MAX_ELEMENTS:
            raise ValueError(f"more than 2^62 elements of {self.shape}")

    def _check_symmetry(self) -> None:
        for permutation in self.symmetry.elements:
            for axis, other in enumerate(permutation):
                if self.tilings[axis] != self.tilings[other]:
                    raise ValueError(
                        f"the symmetry exchanges axes {axis} and {other}, whose tilings differ: "
                        f"{self.tilings[axis]!r}, {self.tilings[other]!r}"
                    )
            if not np.array_equal(np.transpose(self.there, permutation), self.there):
                raise ValueError(f"of tiles that the permutation {permutation} exchanges only some are there")

    # ---- form ----

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.tilings)

    @cached_property
    def canonical_flags(self) -> Flags:
        """Whether each tile is stored."""
        number = np.arange(math.prod(self.grid)).reshape(self.grid)
        stored = self.there.copy()
        for permutation in self.symmetry.elements:
            stored &= number <= np.transpose(number, permutation)
        return stored

    @cached_property
    def stored(self) -> StoredTiles:
        """The stored tiles, in row-major order. The number of a tile is its place here."""
        return StoredTiles(self.canonical_flags)

    @cached_property
    def numbers(self) -> TileNumbers:
        """The number of each stored tile."""
        return TileNumbers(self.stored)

    @cached_property
    def sizes(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of elements of each stored tile."""
        return self._sizes_of(self.canonical_flags)

    @cached_property
    def offsets(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of elements before each stored tile, if all lie one after another; last, their total."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def _sizes_of(self, flags: Flags) -> np.ndarray[Any, np.dtype[np.int64]]:
        sizes = np.ones(int(np.count_nonzero(flags)), np.int64)
        for axis, places in zip(self.tilings, np.argwhere(flags).T, strict=True):
            sizes *= np.array(axis.sizes, np.int64)[places]
        return sizes

    @cached_property
    def table(self) -> _core.TileTable:
        """A table for native code: the stored tile, permutation and sign of each tile of the grid, as in
        `canonical`."""
        number = np.arange(math.prod(self.grid), dtype=np.int32).reshape(self.grid)
        best, image = number.copy(), np.zeros(self.grid, np.int32)
        kinds: list[tuple[Permutation, int]] = []
        for place, (permutation, sign) in enumerate(self.symmetry.elements.items()):
            other = np.transpose(number, inverse(permutation))
            earlier = other < best
            best[earlier], image[earlier] = other[earlier], place
            kinds.append((inverse(permutation), sign))
        stored = np.full(number.size, -1, np.int32)
        flags = self.canonical_flags.ravel()
        stored[flags] = np.arange(np.count_nonzero(flags), dtype=np.int32)
        found = np.where(self.there, stored[best], -1).astype(np.int32)
        return _core.TileTable([axis.cuts for axis in self.tilings], found.ravel(), image.ravel(), kinds)

    @property
    def elements(self) -> int:
        """Number of stored elements."""
        return int(self.offsets[-1])

    @property
    def size(self) -> int:
        """Number of elements of the whole shape, zeros included."""
        return math.prod(self.shape)

    @cached_property
    def largest(self) -> int:
        """Number of elements of the largest stored tile; 0 without stored tiles."""
        return int(self.sizes.max(initial=0))

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """A cache for values that other modules derive from this layout. They live as long as the layout."""
        return {}

    @cached_property
    def is_dense(self) -> bool:
        """Whether all tiles are stored."""
        return not self.symmetry and bool(self.there.all())

    # ---- tiles ----

    def check(self, tile: Sequence[int]) -> Tile:
        """The index of a tile of the grid. Raises IndexError for a tile outside."""
        if type(tile) is tuple and len(tile) == self.rank and all(map(_is_index, tile, self.grid)):
            return tile
        index = tuple(arguments.integers("tile", tile))
        if len(index) != self.rank or any(not 0 <= i < n for i, n in zip(index, self.grid, strict=True)):
            raise IndexError(f"tile {index} is none of {self.grid}")
        return index

    def canonical(self, tile: Sequence[int]) -> tuple[Tile | None, Permutation, int]:
        """The stored tile from which a tile of the grid follows, None if it is zero; with axes and sign:
        tile == sign * transpose(stored, axes)."""
        index = tuple(tile)
        best, axes, sign = index, tuple(range(self.rank)), 1
        if not self.there[index]:
            return None, axes, sign
        if self.symmetry:
            for permutation, factor in self.symmetry.elements.items():
                other = tuple([index[axis] for axis in permutation])
                if other < best:
                    # T[other] is transpose(T[tile], permutation) times the sign.
                    best, axes, sign = other, inverse(permutation), factor
        return best, axes, sign

    def images(self, tile: Tile) -> Iterator[tuple[Tile, Permutation, int]]:
        """The different tiles of the grid that follow from a stored tile, itself first, with axes and sign:
        image == sign * transpose(stored, axes)."""
        seen = set()
        for permutation, sign in self.symmetry.elements.items():
            image = tuple([tile[axis] for axis in permutation])
            if image not in seen:
                seen.add(image)
                yield image, permutation, sign

    def own_symmetry(self, tile: Tile) -> list[tuple[Permutation, int]]:
        """Permutations except the identity that map a tile to itself. As a tensor of its own the tile has this
        symmetry."""
        return [
            (permutation, sign)
            for permutation, sign in self.symmetry.elements.items()
            if tuple([tile[axis] for axis in permutation]) == tile and permutation != tuple(range(self.rank))
        ]

    def tile_shape(self, tile: Sequence[int]) -> tuple[int, ...]:
        return tuple([axis.cuts[i + 1] - axis.cuts[i] for axis, i in zip(self.tilings, tile, strict=True)])

    def box(self, tile: Sequence[int]) -> tuple[slice, ...]:
        """The elements of a tile, as slices of the whole tensor."""
        return tuple(
            [slice(axis.cuts[i], axis.cuts[i + 1]) for axis, i in zip(self.tilings, tile, strict=True)]
        )

    def tiles_of(self, begin: Sequence[int], end: Sequence[int]) -> Iterable[Tile]:
        """Tiles of the grid that overlap with a box."""
        return product(*(axis.overlapping(b, e) for axis, b, e in zip(self.tilings, begin, end, strict=True)))

    # ---- others ----

    def permuted(self, axes: Sequence[int]) -> Layout:
        """The layout of transpose(T, axes)."""
        return Layout(
            [self.tilings[axis] for axis in axes],
            np.transpose(self.there, axes),
            self.symmetry.permuted(axes),
        )

    def as_json(self) -> dict[str, Any]:
        packed = np.packbits(self.there.ravel()).tobytes().hex()
        return {
            "tilings": [axis.as_json() for axis in self.tilings],
            "there": "all" if self.there.all() else packed,
            "symmetry": self.symmetry.as_json() if self.symmetry else [],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Layout:
        tilings = [Tiling.from_json(axis) for axis in value["tilings"]]
        there: Sparsity = None
        if value["there"] != "all":
            grid = tuple(len(axis) for axis in tilings)
            bits = np.frombuffer(bytes.fromhex(value["there"]), np.uint8)
            there = np.unpackbits(bits, count=math.prod(grid)).astype(bool).reshape(grid)
        return cls(tilings, there, Symmetry.from_json(len(tilings), value["symmetry"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return (
            self.tilings == other.tilings
            and self.symmetry == other.symmetry
            and np.array_equal(self.there, other.there)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout.from_json, (self.as_json(),)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.tilings, self.symmetry))

    def __repr__(self) -> str:
        return f"<outcore.Layout {self.shape}, {len(self.stored)} of {math.prod(self.grid)} tiles>"


def _is_index(index: object, extent: int) -> bool:
    return type(index) is int and 0 <= index < extent
