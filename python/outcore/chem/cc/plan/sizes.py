"""The sizes of a coupled-cluster calculation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What is to be computed: basis functions, auxiliary functions (rows of B), active orbitals
    of each spin (one of closed shells), vectors of the extrapolation, the boundaries of rows that are
    transformed together, and the method, by its word (`methods.METHODS`)."""

    functions: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    vectors: int
    cuts: tuple[int, ...]
    method: str = "ccsd"
