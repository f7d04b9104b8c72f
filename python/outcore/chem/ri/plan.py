"""Plans that fit a calculation into the memory of its processes. Pure arithmetic, the same at all of them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import storage as storage_words

METHOD = "density fitting"
STORAGES = ("auto", "disk")  # in memory as far as integrals fit; all on disk

_MIB = 1 << 20
_DOUBLE = 8
SCF_MATRICES = 28  # matrices of n*n doubles for each spin that an SCF driver with DIIS over 8 vectors holds
PANEL = 192  # auxiliary functions that are fitted at once
READ_AHEAD = 3  # batches of rows under way while threads work on others: one is begun as another ends
_INNER = 512  # inner dimension of a matrix product at which BLAS is fastest
_CHUNK_BYTES = 128 << 10  # chunk that a disk array reads and checks as a whole
_WIDEST_SLAB = 2048
_MAX_ROWS = 16  # most rows of a batch; more do not make BLAS faster
_MAX_TRANSFORMED_ROWS = 32  # must not be less than the functions of a shell
_CACHE_BYTES = 2 * _MIB  # least cache of a disk array at one process
_TRANSFER_PART = 12  # a collective transfer of a disk array takes at most this fraction of a budget
_MIN_TRANSFER_BYTES, _MAX_TRANSFER_BYTES = 256 << 10, 30 * _MIB
_PAGE_BYTES = 2 * _MIB  # large buffers take whole huge pages


@dataclass(frozen=True)
class IntegralSizes:
    """Sizes of a fitting: functions, auxiliary functions, kept columns, orbitals of one spin for exchange, the
    largest product of two shells, number of spins with densities of their own, and auxiliary functions of each
    irrep if integrals have symmetry. With symmetry columns are those that stand for others."""

    functions: int
    auxiliary: int
    columns: int
    orbitals: int
    largest_pair: int
    spins: int = 1
    irreps: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all three-index integrals."""
        return self.auxiliary * self.columns * _DOUBLE

    @property
    def metric(self) -> int:
        """Number of elements of the metric that are not 0 by symmetry."""
        return sum(count**2 for count in self.irreps or (self.auxiliary,))


@dataclass(frozen=True)
class IntegralPlan:
    """Bytes are of one process, rows of all together."""

    width: int  # columns of a slab
    chunk_rows: int
    batch_rows: int
    half_rows: int  # rows of a batch that are half transformed at once
    memory_rows: int  # rows that stay in memory
    cache_bytes: int  # of the disk array
    build_bytes: int  # further memory while integrals are made
    iterate_bytes: int  # further memory while J and K are made
    memory_bytes: int  # integrals in memory


def check_storage(storage: str) -> str:
    """Checks a word for the storage. Raises OutcoreError (EINVAL)."""
    return storage_words.check(storage, STORAGES, METHOD)


def plan_integrals(
    sizes: IntegralSizes,
    free_bytes: int,
    processes: int,
    threads: int,
    storage: str = "auto",
    *,
    transfer_bytes: int,
    limit: str = "--memory",
) -> IntegralPlan:
    """The plan for `free_bytes` at each process, which are left by `limit` (a name for errors). A collective
    transfer of a disk array takes `transfer_bytes` of them. Raises OutcoreError (ENOMEM) if no plan fits; the
    error says how much is enough."""
    from_disk = partial(_Integrals, sizes, threads, transfer_bytes)
    in_memory = partial(_Integrals, sizes, threads, None)
    share = _share(sizes, processes)
    whole = _largest(in_memory, free_bytes - share)
    if storage == "auto" and whole.bytes + share <= free_bytes:
        return whole.plan(sizes.auxiliary, share)
    least = min_for_integrals(sizes, processes, threads, storage, transfer_bytes=transfer_bytes)
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "three-index integrals",
            detail=f"{sizes.functions} functions with {sizes.auxiliary} auxiliary ones need at least "
            f"{in_words(least)} more in each of {processes} processes, but {limit} leaves "
            f"{in_words(free_bytes)} to each",
        )
    row = sizes.columns * _DOUBLE
    partly = _largest(from_disk, free_bytes)
    rows = 0 if storage == "disk" else (free_bytes - partly.bytes) // row * processes
    rows = min(rows - rows % (partly.rows * processes), sizes.auxiliary)
    return partly.plan(rows, -(-rows // processes) * row)


def min_for_integrals(
    sizes: IntegralSizes, processes: int, threads: int, storage: str, *, transfer_bytes: int
) -> int:
    """The least memory of each process for `plan_integrals`."""
    from_disk = _Integrals(sizes, threads, transfer_bytes, width=1, rows=1).bytes
    in_memory = _Integrals(sizes, threads, None, width=1, rows=1).bytes + _share(sizes, processes)
    return min(from_disk, in_memory) if storage == "auto" else from_disk


def max_transfer_bytes(beside_bytes: int) -> int:
    """The most memory of a collective transfer of a disk array: a part of the budget, up to a limit. The budget is
    the smallest one that has room for the transfer and for `beside_bytes`."""
    return min(beside_bytes // (_TRANSFER_PART - 1) + _MIN_TRANSFER_BYTES, _MAX_TRANSFER_BYTES)


def _share(sizes: IntegralSizes, processes: int) -> int:
    """Bytes of the integrals of one process."""
    return -(-sizes.auxiliary // processes) * sizes.columns * _DOUBLE


def blas_bytes(threads: int) -> int:
    """Work space of the BLAS of NumPy in each thread, and of those of SciPy and PySCF, with integral code."""
    return (6 + 4 * threads) * _MIB


@dataclass(frozen=True)
class _Integrals:
    """Memory for slabs of `width` columns and batches of `rows` rows."""

    sizes: IntegralSizes
    threads: int
    transfer_bytes: int | None  # None: nothing is on disk
    width: int
    rows: int

    @property
    def on_disk(self) -> bool:
        return self.transfer_bytes is not None

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk, so that the chunk has about the size that a disk array reads and checks as a whole."""
        return min(max(_CHUNK_BYTES // (self.slab_width * _DOUBLE), 1), self.rows)

    @property
    def slab_width(self) -> int:
        """A power of two, so that chunks are whole blocks of the disk."""
        return 1 << max(self.width, self.sizes.largest_pair).bit_length() - (
            1 if self.width >= 2 * self.sizes.largest_pair else 0
        )

    @property
    def half_rows(self) -> int:
        """Rows that are half transformed at once: just enough for the best speed of BLAS."""
        return min(self.rows, -(-_INNER // self.sizes.orbitals))

    @property
    def cache_bytes(self) -> int:
        return _CACHE_BYTES if self.on_disk else 0

    @property
    def build_bytes(self) -> int:
        """Memory while integrals are made. First the metric, twice while it is factorised; with symmetry its
        blocks and some panels in addition. Then for each thread a slab and the panel that is being fitted, and the
        cache of the disk array."""
        sizes = self.sizes
        panels = 3 * PANEL if sizes.irreps else 0
        made = sizes.auxiliary * (sizes.auxiliary + panels) + sizes.metric
        slabs = self.threads * self.slab_width * (sizes.auxiliary + PANEL)
        return max(made, sizes.metric + slabs) * _DOUBLE + self.cache_bytes + blas_bytes(self.threads)

    @property
    def iterate_bytes(self) -> int:
        """Memory while J and K are made: matrices of the SCF, with symmetry also densities and a sum along its
        axes; for each thread expanded matrices, sums and a product, and half-transformed rows; batches that are
        used and read."""
        n, spins = self.sizes.functions, self.sizes.spins
        of_scf, expanded = SCF_MATRICES, matrices_at_once(n)
        if self.sizes.irreps:  # matrices are expanded for symmetric densities, and for others
            of_scf, expanded = of_scf + 4, 2 * expanded
        matrices = (of_scf * spins + self.threads * (expanded + spins + 2)) * n**2
        half = self.threads * self.half_rows * n * self.sizes.orbitals
        total = (matrices + half) * _DOUBLE + blas_bytes(self.threads)
        if self.transfer_bytes is not None:
            batch = -(-self.rows * self.sizes.columns * _DOUBLE // _PAGE_BYTES) * _PAGE_BYTES
            total += (self.threads + READ_AHEAD) * batch + self.transfer_bytes + self.cache_bytes
        return total

    @property
    def bytes(self) -> int:
        return max(self.build_bytes, self.iterate_bytes)

    def plan(self, memory_rows: int, memory_bytes: int) -> IntegralPlan:
        return IntegralPlan(
            self.slab_width,
            self.chunk_rows,
            self.rows,
            self.half_rows,
            memory_rows,
            self.cache_bytes,
            self.build_bytes,
            self.iterate_bytes,
            memory_bytes,
        )


def _largest(integrals: Callable[..., _Integrals], free_bytes: int) -> _Integrals:
    """The widest slabs and the longest batches that fit; the smallest ones if none do."""
    width, rows = _WIDEST_SLAB, _MAX_ROWS
    while width > 1 and integrals(width=width, rows=1).build_bytes > free_bytes:
        width //= 2
    while rows > 1 and integrals(width=width, rows=rows).iterate_bytes > free_bytes:
        rows //= 2
    return integrals(width=width, rows=rows)


def matrices_at_once(n: int) -> int:
    """Number of matrices [n][n] that one thread expands before it uses them: as many as fit into the cache of its
    core."""
    return max(1, min(_MAX_ROWS, _MIB // (n * n * _DOUBLE)))


@dataclass(frozen=True)
class TransformSizes:
    """Sizes of MP2: basis functions, kept columns, auxiliary functions; active occupied and virtual orbitals of
    each spin with integrals of its own."""

    functions: int
    columns: int
    auxiliary: int
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]

    @property
    def orbital_bytes(self) -> int:
        """Bytes of the integrals of one occupied orbital, for the spin with the most."""
        return self.auxiliary * max(self.virtual) * _DOUBLE

    @property
    def bytes(self) -> int:
        """Bytes of all transformed integrals."""
        return sum(o * v for o, v in zip(self.occupied, self.virtual, strict=True)) * self.auxiliary * _DOUBLE


@dataclass(frozen=True)
class TransformPlan:
    """Bytes are of one process."""

    batch_rows: int  # auxiliary functions that are transformed at once
    in_memory: bool  # whether all integrals are in memory, distributed over processes
    chunk: tuple[int, int]  # of a disk array: auxiliary functions, occupied orbitals
    block: int  # occupied orbitals that are held in memory
    tile: int  # occupied orbitals that are read one tile after another
    cache_bytes: int  # of a disk array
    memory_bytes: int  # integrals in memory
    transform_bytes: int
    fit_bytes: int
    pair_bytes: int


_MAX_TILE = 4  # orbitals; more do not make BLAS faster
_LARGEST_SHELL = 21  # functions
TILES = 3  # tiles in memory: one is worked on, the others are being read


def plan_transform(
    sizes: TransformSizes,
    free_bytes: int,
    processes: int,
    threads: int,
    storage: str = "auto",
    *,
    limit: str = "--memory",
) -> TransformPlan:
    """The plan for `free_bytes` at each process, which are left by `limit` (a name for errors). Raises OutcoreError
    (ENOMEM) if not even one orbital fits."""
    needs = _Transform(sizes, processes, threads)
    most, virtual = needs.most, needs.virtual
    tile, share, per_row, shell = needs.tile, needs.share, needs.per_row, needs.shell
    left = free_bytes - needs.fixed - share
    rows = min(max(left // per_row, 0), _MAX_TRANSFORMED_ROWS)
    if storage == "auto" and free_bytes >= needs.min_in_memory:
        alone = processes == 1
        block = most if alone else min(most, max(1, (left - needs.pairs(0, tile)) // sizes.orbital_bytes))
        pair = needs.pairs(0, tile, 0) if alone else needs.pairs(block, tile)
        fit = 2 * needs.metric
        return TransformPlan(
            int(rows), True, (1, 1), int(block), tile, 0, share, int(rows * per_row), fit, int(pair)
        )

    least = min_for_transform(sizes, processes, threads, storage)
    if free_bytes < least:
        raise OutcoreError(
            errno.ENOMEM,
            "RI-MP2",
            detail=f"{sizes.auxiliary} auxiliary basis functions and {virtual} virtual orbitals need at least "
            f"{in_words(least)} more in each of {processes} processes, but {limit} leaves "
            f"{in_words(free_bytes)} to each",
        )
    left = free_bytes - needs.fixed
    cache = int(min(max(left // 8, _CACHE_BYTES), 32 * _CACHE_BYTES))
    left -= cache
    while tile > 1 and max(needs.pairs(tile, tile), needs.fit(tile)) > left:
        tile -= 1
    block = (left - needs.pairs(0, tile)) // sizes.orbital_bytes
    block = min(max(block - block % tile, tile), -(-most // tile) * tile)
    rows = min(max(left // per_row, shell), _MAX_TRANSFORMED_ROWS)
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
        int(needs.fit(tile)),
        int(needs.pairs(block, tile)),
    )


def min_for_transform(sizes: TransformSizes, processes: int, threads: int, storage: str) -> int:
    """The least memory of each process for `plan_transform`."""
    needs = _Transform(sizes, processes, threads)
    return min(needs.min_on_disk, needs.min_in_memory) if storage == "auto" else needs.min_on_disk


@dataclass(frozen=True)
class _Transform:
    """Memory of each process in the stages of MP2."""

    sizes: TransformSizes
    processes: int
    threads: int

    @property
    def most(self) -> int:
        return max(self.sizes.occupied)

    @property
    def virtual(self) -> int:
        return max(self.sizes.virtual)

    @property
    def tile(self) -> int:
        """Orbitals of a tile, just enough for a fast BLAS."""
        return min(_MAX_TILE, self.most)

    @property
    def metric(self) -> int:
        return self.sizes.auxiliary**2 * _DOUBLE

    @property
    def shell(self) -> int:
        """Number of auxiliary functions of the largest possible shell."""
        return min(self.sizes.auxiliary, _LARGEST_SHELL)

    @property
    def fixed(self) -> int:
        """Work space of any stage."""
        n, threads = self.sizes.functions, self.threads
        return blas_bytes(threads) + threads * matrices_at_once(n) * (n + self.most) * n * _DOUBLE

    @property
    def per_row(self) -> int:
        """Bytes for one auxiliary function that is transformed."""
        products = sum(o * v for o, v in zip(self.sizes.occupied, self.sizes.virtual, strict=True))
        return self.threads * (self.sizes.columns + products) * _DOUBLE

    @property
    def share(self) -> int:
        """Bytes of the transformed integrals of one process."""
        return sum(
            -(-o // self.processes) * v * self.sizes.auxiliary * _DOUBLE
            for o, v in zip(self.sizes.occupied, self.sizes.virtual, strict=True)
        )

    def pairs(self, block: int, tile: int, tiles: int = TILES) -> int:
        """Bytes for a block of orbitals that is held, and for tiles that are read."""
        passing = self.threads * tile * self.virtual**2 * _DOUBLE
        return (block + tiles * tile) * self.sizes.orbital_bytes + passing

    def fit(self, tile: int) -> int:
        return self.metric + max(self.metric, self.threads * tile * self.sizes.orbital_bytes)

    @property
    def min_in_memory(self) -> int:
        # A single process has all integrals in its memory, and needs no copies.
        pairs = self.pairs(1, self.tile) if self.processes > 1 else self.pairs(0, self.tile, 0)
        return self.fixed + self.share + max(self.shell * self.per_row, 2 * self.metric, pairs)

    @property
    def min_on_disk(self) -> int:
        return self.fixed + _CACHE_BYTES + max(self.shell * self.per_row, self.fit(1), self.pairs(1, 1))


def pair_tasks(
    rows: int, columns: int, block: int, tile: int, same: bool
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Tasks as ranges of i and of j. Tasks with the same range of i follow one another."""
    tasks = []
    for i in range(0, rows, block):
        end = min(i + block, rows)
        for j in range(0, end if same else columns, tile):
            tasks.append(((i, end), (j, min(j + tile, columns))))
    return tasks
