"""The sizes of a coupled-cluster calculation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """Numbers of basis functions, of auxiliary functions (rows of B), of active orbitals of each spin (one for
    closed shells) and of vectors of the extrapolation; the boundaries of rows that are transformed together; the
    method, by its word (`methods.METHODS`); and numpy's name of the type of stored integrals of ladders."""

    functions: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    vectors: int
    cuts: tuple[int, ...]
    method: str = "ccsd"
    ladder_type: str = "float32"

    @property
    def ladder_item_bytes(self) -> int:
        return np.dtype(self.ladder_type).itemsize
