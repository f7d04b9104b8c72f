"""Extended arrays in checkpoints: dense files, which every language reads, with the layout beside the elements."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.base.errors import OutcoreError
from outcore.job.world import World
from outcore.tensor.arrays.array import Array
from outcore.tensor.layout.description import element_type, facts_of
from outcore.tensor.layout.layout import Layout


def facts(array: Array) -> dict[str, Any]:
    """Facts from which an array of the same kind can be made, without elements; for the metadata of its file."""
    return facts_of(array.layout, array.dtype, array.metadata) | {"store_dtype": array.store_dtype.name}


def put_all(array: Array, file: DiskArray) -> None:
    """Puts all elements into a file of the same shape, also those that follow by symmetry. Collective."""
    array.sync()
    layout = array.layout
    with array.world.together("save an extended array"):
        for tile in array.own_tiles():
            values = array.get_tile(tile)
            for image, axes, sign in layout.images(tile):
                file.put(layout.box(image), values if image == tile else sign * np.transpose(values, axes))
        file.sync()


def loaded(world: World, file: DiskArray) -> Array:
    """A new array, where there is room for it, with the elements of a file that `put_all` has filled. Collective.
    Raises OutcoreError (EIO) if the facts beside it are damaged."""
    found = file.metadata
    with world.together("load an extended array"):
        try:
            layout = Layout.from_json(found["layout"])
            dtype, stored = element_type(found["dtype"]), element_type(found["store_dtype"])
            fits = layout.shape == file.shape or (0 in layout.shape or not layout.shape)
            if not fits or dtype != file.dtype:
                raise ValueError(f"{layout!r} of {dtype} beside {file!r}")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OutcoreError(
                errno.EIO, "load an extended array", path=file.path or "", detail=f"damaged: {error}"
            ) from error
    array = Array(world, layout, dtype, store_dtype=stored)

    def tile(number: int) -> np.ndarray[Any, Any]:
        values: np.ndarray[Any, Any]
        values = file.get(layout.box(layout.stored[number])) if layout.shape else file.get(...).reshape(())
        return values

    try:
        array.fill_copies(tile, "load")
    except OutcoreError:
        array.close()
        raise
    return array
