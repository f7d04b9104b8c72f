"""Stored tiles and their numbers, in four bytes for each tile. A list and a dictionary of tuples would take fifty
times as much, in memory that no plan counts."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, overload

import numpy as np

Index = tuple[int, ...]  # the index of a tile
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_AT_ONCE = 4096  # tiles for which an iteration makes tuples at once


class StoredTiles(Sequence[Index]):
    """The tiles of a grid that flags name, in row-major order. It acts as a list of tuples."""

    def __init__(self, flags: Flags) -> None:
        self.grid = flags.shape
        self.places = array("i", np.flatnonzero(flags).astype(np.int32).tobytes())  # rising

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, number: int) -> Index: ...
    @overload
    def __getitem__(self, number: slice) -> list[Index]: ...
    def __getitem__(self, number: int | slice) -> Index | list[Index]:
        if isinstance(number, slice):
            return self._tiles(self.places[number])
        place, tile = self.places[number], []
        for extent in reversed(self.grid):
            place, index = divmod(place, extent)
            tile.append(index)
        return tuple(reversed(tile))

    def __iter__(self) -> Iterator[Index]:
        if len(self) == math.prod(self.grid):
            yield from product(*map(range, self.grid))
            return
        for first in range(0, len(self), _AT_ONCE):
            yield from self._tiles(self.places[first : first + _AT_ONCE])

    def _tiles(self, places: array[int]) -> list[Index]:
        if not self.grid:
            return [()] * len(places)
        found = np.unravel_index(np.frombuffer(places, np.int32), self.grid)
        return list(zip(*(axis.tolist() for axis in found), strict=True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredTiles):
            return self.grid == other.grid and self.places == other.places
        if not isinstance(other, Sequence) or len(other) != len(self):
            return False
        return all(tile == its for tile, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} tiles of a grid of {self.grid}>"


class TileNumbers(Mapping[Index, int]):
    """The number of each stored tile. Raises KeyError for any other tile."""

    def __init__(self, tiles: StoredTiles) -> None:
        self._tiles = tiles
        self._places = tiles.places
        self._grid = tiles.grid

    def __getitem__(self, tile: Index) -> int:
        if len(tile) != len(self._grid):
            raise KeyError(tile)
        place = 0
        for index, extent in zip(tile, self._grid, strict=True):
            if not 0 <= index < extent:
                raise KeyError(tile)
            place = place * extent + index
        number = bisect_left(self._places, place)
        if number == len(self._places) or self._places[number] != place:
            raise KeyError(tile)
        return number

    def __iter__(self) -> Iterator[Index]:
        return iter(self._tiles)

    def __len__(self) -> int:
        return len(self._tiles)
