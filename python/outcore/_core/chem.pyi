"""Kernels of the chemistry methods."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

class Basis:
    """Shells and functions of a molecule, in libcint's tables."""

    def __init__(
        self,
        atm: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bas: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        env: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        cartesian: bool,
        int2e: int,
        make_optimizer: int,
        delete_optimizer: int,
    ) -> None:
        """
        Flattened atm [atoms*6], bas [shells*8] and env; the addresses of int2e_cart or int2e_sph,
        int2e_optimizer and CINTdel_optimizer.
        """

    @property
    def shells(self) -> int: ...
    @property
    def functions(self) -> int: ...

class Screening:
    """Schwarz bounds and the tasks that pass the threshold."""

    def __init__(self, basis: Basis, threshold: float, threads: int) -> None: ...
    @property
    def integrals(self) -> int:
        """Integrals in the quartets that pass."""

    @property
    def tasks(self) -> int: ...
    def task_integrals(self) -> list[int]:
        """Integrals of each task."""

    def stored_bytes_bound(self, step: float) -> int:
        """
        Upper bound of the bytes on disk when values are rounded to multiples of step.
        """

class IntegralCounts:
    @property
    def quartets(self) -> int: ...
    @property
    def computed(self) -> int: ...
    @property
    def stored(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def records(self) -> int: ...

class TwoElectron:
    """
    This process's share of the two-electron integrals, on disk or recomputed.
    """

    def __init__(self, basis: Basis, screening: Screening, threads: int) -> None: ...
    def open_store(
        self, scratch: str, record_bytes: int, prefetch: int, step: float, cache: str, expected_bytes: int
    ) -> None: ...
    def store(self, thread: int, first_task: int, last_task: int) -> None:
        """Computes, packs and writes tasks [first, last)."""

    def close_store(self) -> None: ...
    def contract_stored(
        self,
        densities: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        symmetry: Sequence[int],
    ) -> tuple:
        """Partial J and K, [count][n][n] each, of the stored integrals."""

    def begin_direct(
        self,
        densities: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        symmetry: Sequence[int],
    ) -> None: ...
    def contract_direct(self, thread: int, first_task: int, last_task: int) -> None: ...
    def end_direct(self, count: int) -> tuple: ...
    def counts(self) -> IntegralCounts: ...

def memory_bytes(basis: Basis, threads: int, densities: int, record_bytes: int, prefetch: int) -> int:
    """
    Bytes that contracting `densities` matrices on `threads` threads takes; record_bytes 0: nothing stored.
    """
