"""The description of an extended array: the layout and element type that a caller gives, and the facts that are
stored with its tiles on disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.tensor.layout import kernels, stored_types
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from outcore.tensor.layout.sparsity import Sparsity
    from outcore.tensor.layout.symmetry import Symmetry

_KIND = "extended array"  # in the metadata of an array on disk
_VERSION = 1
_TILE_BYTES = 4 << 20  # about the size of a tile


def as_layout(
    layout: Layout | Sequence[Tiling | int],
    sparsity: Sparsity = None,
    symmetry: Symmetry | str | Sequence[str] | None = None,
) -> Layout:
    """The layout that a caller gives, or a new one from tilings."""
    if not isinstance(layout, Layout):
        return Layout(layout, sparsity, symmetry)
    if sparsity is not None or symmetry is not None:
        raise TypeError("a layout has its symmetry and sparsity")
    return layout


def element_type(dtype: DTypeLike) -> np.dtype[Any]:
    wanted: np.dtype[Any] = np.dtype(dtype)
    if wanted not in kernels.DTYPES:
        names = ", ".join(each.name for each in kernels.DTYPES)
        raise TypeError(f"dtype {wanted}; elements of tensors are {names}")
    return wanted


def tiled(shape: Sequence[int], itemsize: int, chunk: Sequence[int] | None = None) -> list[Tiling]:
    """Tilings with tiles of a few MB, whose cuts are multiples of `chunk`."""
    if not shape or 0 in shape:
        return [Tiling(n) for n in shape]
    sides = [1] * len(shape) if chunk is None else [min(c, n) for c, n in zip(chunk, shape, strict=True)]
    wanted = _TILE_BYTES // itemsize
    while True:  # the tiles grow along the axis with most of them
        counts = [-(-n // side) for n, side in zip(shape, sides, strict=True)]
        axis = int(np.argmax(counts))
        if counts[axis] == 1 or int(np.prod(sides, dtype=np.int64)) * 2 > wanted:
            break
        sides[axis] = min(shape[axis], sides[axis] * 2)
    return [Tiling(n, [*range(0, n, side), n]) for n, side in zip(shape, sides, strict=True)]


def facts_of(layout: Layout, dtype: np.dtype[Any], metadata: Any) -> dict[str, Any]:
    return {
        "kind": _KIND,
        "version": _VERSION,
        "layout": layout.as_json(),
        "dtype": dtype.name,
        "metadata": metadata,
    }


def callers_metadata(found: Any) -> Any:
    """The metadata that a caller gave, out of all metadata of an array on disk."""
    return found.get("metadata") if isinstance(found, dict) and found.get("kind") == _KIND else found


def read_facts(array: BlockSparseArray) -> tuple[Layout, np.dtype[Any]]:
    facts = array.metadata
    if not isinstance(facts, dict) or facts.get("kind") != _KIND:
        raise OutcoreError(
            errno.EINVAL,
            "open an extended array",
            path=array.path or "",
            detail="it is a plain block-sparse array",
        )
    if facts.get("version") != _VERSION:
        detail = f"version {facts.get('version')}; this program knows {_VERSION}"
        raise OutcoreError(errno.ENOTSUP, "open an extended array", path=array.path or "", detail=detail)
    try:
        layout, dtype = Layout.from_json(facts["layout"]), element_type(facts["dtype"])
        stored_types.check(dtype, array.dtype)
        tiles = [tile or (0,) for tile in layout.stored]
        cuts = [list(axis.cuts) for axis in layout.tilings] or [[0, 1]]
        fits = tiles == array.tiles and cuts == array.tilings
    except (KeyError, TypeError, ValueError, IndexError) as error:
        detail = f"its description is damaged: {error}"
        raise OutcoreError(
            errno.EIO, "open an extended array", path=array.path or "", detail=detail
        ) from error
    if not fits:
        detail = "its description is of other tiles"
        raise OutcoreError(errno.EIO, "open an extended array", path=array.path or "", detail=detail)
    return layout, dtype


def layout_of_sparse(array: BlockSparseArray, given: Layout | Sequence[Tiling | int] | None) -> Layout:
    if given is None:
        return Layout([Tiling(axis[-1], axis) for axis in array.tilings], array.tiles)
    layout = as_layout(given)
    if [list(axis.cuts) for axis in layout.tilings] != array.tilings or layout.stored != array.tiles:
        raise ValueError(f"{layout!r} does not store the tiles of {array!r}")
    return layout
