"""How a calculation is fitted into the memory of its processes. Pure arithmetic, the same at all of them."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from outcore.errors import OutcoreError

STORAGES = ("auto", "disk")  # what fits stays in memory; all on disk

_MIB = 1 << 20
_DOUBLE = 8
DIIS_MATRICES = 40  # of n*n doubles, which an SCF driver with DIIS over 8 vectors, two spins, may hold
BLAS_BYTES = 16 * _MIB  # work space of BLAS, integral code and threads
READ_AHEAD = 2  # batches of rows under way while threads work on others
_CHUNK_BYTES = 192 << 10
_WIDEST_SLAB = 4096
_MOST_ROWS = 64  # of a batch; more do not make BLAS faster
_CACHE = (2 * _MIB, 32 * _MIB)  # of a disk array at one process: least, most


@dataclass(frozen=True)
class IntegralSizes:
    """What is to be fitted: functions, auxiliary functions, kept columns, orbitals of one spin that exchange is
    made of, and the largest product of two shells."""

    functions: int
    auxiliary: int
    columns: int
    orbitals: int
    largest_pair: int

    @property
    def bytes(self) -> int:
        """Of all three-index integrals."""
        return self.auxiliary * self.columns * _DOUBLE


@dataclass(frozen=True)
class IntegralPlan:
    """Bytes are of one process, rows of all together."""

    width: int  # columns of a slab
    chunk_rows: int
    batch_rows: int
    memory_rows: int  # that stay in memory
    cache_bytes: int  # of the disk array
    build_bytes: int  # beside what is there already, while integrals are made
    iterate_bytes: int  # while J and K are
    memory_bytes: int  # integrals in memory


def check_storage(storage: str) -> str:
    """Raises OutcoreError (EINVAL)."""
    if storage not in STORAGES:
        raise OutcoreError(errno.EINVAL, f"storage '{storage}'", detail=f"it may be {' or '.join(STORAGES)}")
    return storage


def plan_integrals(
    sizes: IntegralSizes, free_bytes: int, processes: int, threads: int, storage: str = "auto"
) -> IntegralPlan:
    """The plan for `free_bytes` at each process. Raises OutcoreError (ENOMEM) if nothing fits, with what does."""
    least = _least_bytes(sizes, threads)
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "three-index integrals",
            detail=f"{sizes.functions} functions with {sizes.auxiliary} auxiliary ones need at least "
            f"{least / 1e6:.0f} MB more in each of {processes} processes, but --memory leaves "
            f"{max(0, free_bytes) / 1e6:.0f} MB to each",
        )
    fixed = _fixed_bytes(sizes, threads)
    whole = _rows_plan(sizes, free_bytes, threads, cache=0, buffers=0)
    share = -(-sizes.auxiliary // processes) * sizes.columns * _DOUBLE
    need = share + max(whole.build_bytes, whole.iterate_bytes) + fixed
    if storage == "auto" and need <= free_bytes:
        return _with_rows(whole, sizes.auxiliary, share)
    cache = min(max((free_bytes - fixed) // 16, _CACHE[0]), _CACHE[1])
    partly = _rows_plan(sizes, free_bytes, threads, cache=cache, buffers=threads + READ_AHEAD)
    if storage == "disk":
        return partly
    left = free_bytes - fixed - max(partly.build_bytes, partly.iterate_bytes)
    rows = max(0, left) // (sizes.columns * _DOUBLE)
    rows = min(rows * processes, sizes.auxiliary)
    rows -= rows % partly.batch_rows
    return _with_rows(partly, rows, -(-rows // processes) * sizes.columns * _DOUBLE)


def _with_rows(plan: IntegralPlan, rows: int, memory: int) -> IntegralPlan:
    return IntegralPlan(
        plan.width,
        plan.chunk_rows,
        plan.batch_rows,
        rows,
        plan.cache_bytes,
        plan.build_bytes,
        plan.iterate_bytes,
        memory,
    )


def _rows_plan(sizes: IntegralSizes, free_bytes: int, threads: int, cache: int, buffers: int) -> IntegralPlan:
    room = free_bytes - _fixed_bytes(sizes, threads) - cache
    metric = sizes.auxiliary**2 * _DOUBLE
    per_column = threads * sizes.auxiliary * _DOUBLE
    width = min(max((room - metric) // 2 // per_column, sizes.largest_pair), _WIDEST_SLAB)
    width = max(width, sizes.largest_pair)
    per_row = _row_bytes(sizes, threads, buffers)
    rows = min(max(room // 2 // per_row, 1), _MOST_ROWS)
    chunk_rows = min(max(_CHUNK_BYTES // (width * _DOUBLE), 1), rows)
    rows -= rows % chunk_rows
    return IntegralPlan(
        int(width),
        int(chunk_rows),
        int(rows),
        0,
        int(cache),
        int(metric + per_column * width + cache),
        int(per_row * rows + cache),
        0,
    )


def matrices_at_once(n: int) -> int:
    """Matrices [n][n] that one thread expands before it uses them: what stays in the cache of its core."""
    return max(1, min(_MOST_ROWS, _MIB // (n * n * _DOUBLE)))


def _fixed_bytes(sizes: IntegralSizes, threads: int) -> int:
    """Matrices of the SCF, and of each thread: expanded ones, two sums and a product."""
    n = sizes.functions
    return (DIIS_MATRICES + threads * (matrices_at_once(n) + 3)) * n**2 * _DOUBLE + BLAS_BYTES


def _row_bytes(sizes: IntegralSizes, threads: int, buffers: int) -> int:
    """One row of a batch: as read, and half transformed by each thread."""
    return (buffers * sizes.columns + threads * sizes.functions * sizes.orbitals) * _DOUBLE


def _least_bytes(sizes: IntegralSizes, threads: int) -> int:
    build = (sizes.auxiliary**2 + threads * sizes.auxiliary * sizes.largest_pair) * _DOUBLE
    iterate = _row_bytes(sizes, threads, threads + READ_AHEAD)
    return _fixed_bytes(sizes, threads) + _CACHE[0] + max(build, iterate)


@dataclass(frozen=True)
class TransformSizes:
    """What MP2 is made of: basis functions, kept columns, auxiliary functions; active occupied and virtual orbitals
    of each spin that has integrals of its own."""

    functions: int
    columns: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]

    @property
    def orbital_bytes(self) -> int:
        """Of one occupied orbital's integrals, of the spin with most."""
        return self.auxiliary * max(self.virtual) * _DOUBLE

    @property
    def bytes(self) -> int:
        """Of all transformed integrals."""
        return sum(o * v for o, v in zip(self.occupied, self.virtual, strict=True)) * self.auxiliary * _DOUBLE


@dataclass(frozen=True)
class TransformPlan:
    """Bytes are of one process."""

    batch_rows: int  # auxiliary functions that are transformed at once
    in_memory: bool  # all integrals, distributed over processes
    chunk: tuple[int, int]  # of a disk array: auxiliary functions, occupied orbitals
    block: int  # occupied orbitals that are held
    tile: int  # occupied orbitals that pass by
    cache_bytes: int  # of a disk array
    memory_bytes: int  # integrals in memory
    transform_bytes: int
    fit_bytes: int
    pair_bytes: int


_MOST_TILE = 4  # orbitals; more do not make BLAS faster
_LARGEST_SHELL = 21  # functions
TILES = 3  # that pass by: one is worked on, the others are being read


def plan_transform(
    sizes: TransformSizes, free_bytes: int, processes: int, threads: int, storage: str = "auto"
) -> TransformPlan:
    """The plan for `free_bytes` at each process. Raises OutcoreError (ENOMEM) if not even one orbital fits."""
    most = max(sizes.occupied)
    n, virtual = sizes.functions, max(sizes.virtual)
    products = sum(o * v for o, v in zip(sizes.occupied, sizes.virtual, strict=True))
    per_row = threads * (sizes.columns + products) * _DOUBLE
    fixed = BLAS_BYTES + threads * matrices_at_once(n) * (n + most) * n * _DOUBLE
    shell = min(sizes.auxiliary, _LARGEST_SHELL)
    metric = sizes.auxiliary**2 * _DOUBLE

    def pair_bytes(block: int, tile: int, tiles: int = TILES) -> int:
        return (block + tiles * tile) * sizes.orbital_bytes + threads * tile * virtual**2 * _DOUBLE

    def fit_bytes(tile: int) -> int:
        return metric + threads * tile * sizes.orbital_bytes

    share = sum(
        -(-o // processes) * v * sizes.auxiliary * _DOUBLE
        for o, v in zip(sizes.occupied, sizes.virtual, strict=True)
    )
    tile = min(_MOST_TILE, most)
    left = free_bytes - fixed - share
    rows = min(max(left // per_row, 0), _MOST_ROWS)
    # A process that is alone has everything in its memory, and copies nothing.
    need = max(metric, pair_bytes(1, tile) if processes > 1 else pair_bytes(0, tile, 0))
    if storage == "auto" and rows >= shell and need <= left:
        block = (
            most if processes == 1 else min(most, max(1, (left - pair_bytes(0, tile)) // sizes.orbital_bytes))
        )
        pair = pair_bytes(0, tile, 0) if processes == 1 else pair_bytes(block, tile)
        return TransformPlan(
            int(rows), True, (1, 1), int(block), tile, 0, share, int(rows * per_row), metric, int(pair)
        )

    least = fixed + _CACHE[0] + max(shell * per_row, fit_bytes(1), pair_bytes(1, 1))
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "RI-MP2",
            detail=f"{sizes.auxiliary} auxiliary functions and {virtual} virtual orbitals need at least "
            f"{least / 1e6:.0f} MB more in each of {processes} processes, but --memory leaves "
            f"{max(0, free_bytes) / 1e6:.0f} MB to each",
        )
    left = free_bytes - fixed
    cache = int(min(max(left // 8, _CACHE[0]), 2 * _CACHE[1]))
    left -= cache
    while tile > 1 and max(pair_bytes(tile, tile), fit_bytes(tile)) > left:
        tile -= 1
    block = (left - pair_bytes(0, tile)) // sizes.orbital_bytes
    block = min(max(block - block % tile, tile), -(-most // tile) * tile)
    rows = min(max(left // per_row, shell), _MOST_ROWS)
    deep = max(1, min(sizes.auxiliary, _CHUNK_BYTES // (tile * virtual * _DOUBLE)))
    return TransformPlan(
        int(rows),
        False,
        (int(deep), tile),
        int(block),
        tile,
        cache,
        0,
        int(rows * per_row),
        int(fit_bytes(tile)),
        int(pair_bytes(block, tile)),
    )
