"""Three-index integrals in a disk array, for an unchanged PySCF.

tensor = fitted_tensor(world, fitting)         # or any DiskArray of PySCF's form, naux by n(n+1)/2
mf = scf.RHF(mol).density_fit()
mf.with_df._cderi = as_cderi(tensor)
mf.kernel()                                    # and RI-MP2, CCSD, .. of PySCF, which read slabs of rows
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.ri.fitting import DensityFitting
    from outcore.job.world import World

ROWS = 240  # auxiliary functions that PySCF reads together


class _Tensor(h5py.Group):  # type: ignore[misc]
    """Looks to PySCF like a group of an HDF5 file; its dataset, under any name, is a disk array."""

    def __init__(self, array: DiskArray) -> None:
        self._array = array

    def __getitem__(self, name: Any) -> DiskArray:
        return self._array

    def __bool__(self) -> bool:
        return not self._array.closed

    def __repr__(self) -> str:
        return f"<_cderi in {self._array!r}>"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def as_cderi(array: DiskArray) -> Any:
    """An object for `with_df._cderi` of PySCF. `array`: [naux][n(n+1)/2], lower triangles as PySCF packs them,
    float64; it must stay open as long as PySCF reads. Each process reads for itself.

    Raises OutcoreError (EINVAL) for another form."""
    attempted = "give a tensor to PySCF"
    if not isinstance(array, DiskArray):
        raise OutcoreError(
            errno.EINVAL, attempted, detail=f"a DiskArray is needed, not {type(array).__name__}"
        )
    columns = array.shape[1] if array.ndim == 2 else 0
    n = int((2 * columns) ** 0.5)
    if columns < 1 or n * (n + 1) // 2 != columns or array.dtype != np.float64:
        raise OutcoreError(
            errno.EINVAL,
            attempted,
            detail=f"it is {array.shape} of {array.dtype}, but naux by n(n+1)/2 of float64 is needed",
        )
    return _Tensor(array)


def fitted_tensor(
    world: World, fitting: DensityFitting, path: str | os.PathLike[str] | None = None
) -> DiskArray:
    """The integrals of a fitting as PySCF packs them, [naux][n(n+1)/2], in a disk array: a persistent one at
    `path`, or scratch. Rank 0 writes them, slab by slab. Collective. Raises OutcoreError."""
    n, rows = int(fitting.mol.nao), fitting.prepare().rows
    columns = n * (n + 1) // 2
    array = DiskArray(world, (rows, columns), path=path, typical=(min(rows, ROWS), columns))
    with world.together("write a tensor for PySCF"):
        if world.rank == 0:
            begin = 0
            for block in fitting.loop(ROWS):
                array[begin : begin + len(block)] = block
                begin += len(block)
    array.sync()
    return array
