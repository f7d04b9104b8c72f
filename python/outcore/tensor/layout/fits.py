"""Checks that elements have the symmetry of a layout, and are zero where it has no tiles."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.layout import Layout, Tile

if TYPE_CHECKING:
    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]


class Readable(Protocol):
    """Elements that can be read by boxes: an array of NumPy, of h5py, of zarr."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, box: Any, /) -> Any: ...


def check_fits(values: Readable, layout: Layout, tolerance: float | None) -> None:
    """Raises ValueError for another shape. Raises OutcoreError (EINVAL) if elements differ by more than `tolerance`
    from those that follow from the stored tiles; the error names the tile and the difference. None: the rounding of
    the largest element."""
    if tuple(values.shape) != layout.shape:
        raise ValueError(f"an array of shape {tuple(values.shape)} for {layout!r}")
    if layout.is_dense:
        return
    largest, worst = 0.0, (0.0, "", ())
    for tile in np.ndindex(*layout.grid):
        found = np.asarray(values[layout.box(tile)])
        largest = max(largest, largest_finite(found))
        stored, axes, sign = layout.canonical(tile)
        if stored is None:
            difference = largest_difference(found, np.zeros((), found.dtype), 1)
            what = "its layout has no such tile"
        elif stored == tile:
            continue  # a Survey of the tiles that are put checks their own symmetry
        else:
            other = np.asarray(values[layout.box(stored)])
            difference = largest_difference(found, np.transpose(other, axes), sign)
            what = f"the symmetry makes it {'minus ' * (sign < 0)}tile {stored} with axes {axes}"
        if difference > worst[0]:
            worst = (difference, what, tile)
    difference, what, place = worst
    limit = largest * rounding(np.dtype(values.dtype)) if tolerance is None else tolerance
    if difference > limit:
        raise OutcoreError(
            errno.EINVAL,
            f"take tile {place} of an array",
            detail=f"{what}; it differs by {difference:.3g}, more than {limit:.3g}",
        )


class Surveyed(Protocol):
    @property
    def world(self) -> World: ...

    @property
    def store_dtype(self) -> np.dtype[Any]: ...


class Survey:
    """How much tiles change under permutations of the symmetry that map each to itself."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._largest = 0.0  # the largest size of an element
        self._worst: tuple[float, Tile, tuple[int, ...]] = (0.0, (), ())

    def see(self, number: int, values: Values) -> None:
        if not self._layout.symmetry:
            return
        tile = self._layout.stored[number]
        self._largest = max(self._largest, largest_finite(values))
        for permutation, sign in self._layout.own_symmetry(tile):
            difference = largest_difference(values, np.transpose(values, permutation), sign)
            self._worst = max(self._worst, (difference, tile, permutation))

    def judge(self, array: Surveyed, tolerance: float | None = None) -> None:
        """Raises OutcoreError (EINVAL) at all processes if a tile changes by more than `tolerance`. Collective."""
        if not self._layout.symmetry:
            return
        found = array.world.gather((self._largest, self._worst))
        largest, (difference, tile, permutation) = max(f[0] for f in found), max(f[1] for f in found)
        if difference > (largest * rounding(array.store_dtype) if tolerance is None else tolerance):
            error = OutcoreError(
                errno.EINVAL,
                f"take tile {tile} of {array!r}",
                detail=f"it does not have the symmetry of axes {permutation}: it differs by {difference:.3g}",
            )
            error.collective = True
            raise error


def largest_difference(a: Values, b: Values, sign: int) -> float:
    """The largest difference of a and sign * b. Two NaN, or two equal infinities, differ by zero."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - b if sign > 0 else a + b)
        strange = ~np.isfinite(difference)
        if strange.any():
            same = (a == (b if sign > 0 else -b)) | (np.isnan(a) & np.isnan(b))
            difference = np.where(strange, np.where(same, 0, np.inf), difference)
    return float(difference.max(initial=0))


def largest_finite(values: Values) -> float:
    sizes = np.abs(values)
    return float(sizes.max(initial=0, where=np.isfinite(sizes)))


def rounding(dtype: np.dtype[Any]) -> float:
    """A generous bound of the rounding error of elements that are sums, relative to the largest element."""
    return float(np.finfo(dtype).eps) * 1e4
