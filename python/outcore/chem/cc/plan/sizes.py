"""The sizes of a coupled-cluster calculation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of basis functions, of auxiliary functions (rows of B), of active orbitals of each spin (one for
    closed shells) and of vectors of the extrapolation; the boundaries of rows that are transformed together; and
    the method, by its word (`methods.METHODS`)."""

    functions: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    vectors: int
    cuts: tuple[int, ...]
    method: str = "ccsd"
