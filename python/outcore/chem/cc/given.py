"""Double excitations as PySCF has them, read from extended arrays that may lie on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import orbitals

if TYPE_CHECKING:
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class GivenDoubles:
    """Doubles [i,j,a,b] of `CCSD.active_orbitals`, i and a of the first spin. They stay where they are until NumPy
    asks: `np.asarray(t2)` brings all of them into memory, `t2[i, j, a, b]` an element or a box. Unless orbitals
    were turned, it reads this box alone. Not collective.

    array: the extended array [a,i,b,j] of correlated orbitals.
    """

    def __init__(self, array: Array, first: CorrelatedOrbitals, second: CorrelatedOrbitals) -> None:
        self.array, self._spins = array, (first, second)
        (i, a), (j, b) = first.sizes, second.sizes
        self.shape = (i, j, a, b)
        self.dtype = np.dtype(float)
        self.ndim = 4

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<doubles {self.shape}, of {self.array!r}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        if copy is False:
            raise ValueError(f"{self!r}: they are in memory as a copy only")
        whole = self.array.to_numpy().transpose(1, 3, 0, 2)
        return orbitals.given_doubles(whole, *self._spins).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        if any(each.missing or each.turned is not None for each in self._spins):
            return np.asarray(self)[key]
        box = of_four(key)
        if box is None:  # lists and masks
            return np.asarray(self)[key]
        i, j, a, b = box
        found = np.asarray(self.array[a, i, b, j])
        there = [name for name, each in zip("aibj", (a, i, b, j), strict=True) if isinstance(each, slice)]
        wanted = [there.index(name) for name in "ijab" if name in there]
        return found.transpose(wanted) if wanted else found[()]


def of_four(key: Any) -> list[Any] | None:
    """The key as integers and slices of four axes, or None if it is something else."""
    given = list(key) if isinstance(key, tuple) else [key]
    places = [n for n, each in enumerate(given) if each is Ellipsis]
    if len(places) > 1:
        return None
    at = places[0] if places else len(given)
    rest = [slice(None)] * (4 - len(given) + len(places))
    found = [*given[:at], *rest, *given[at + 1 :]]
    plain = all(isinstance(each, slice | int | np.integer) and not isinstance(each, bool) for each in found)
    return found if len(found) == 4 and plain else None
