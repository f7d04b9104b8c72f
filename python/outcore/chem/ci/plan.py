"""The plan that fits a CI into the memory of its processes: the place of vectors, and the size of the tasks of
products. It is arithmetic over the lists of strings, the same at all processes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.ci import strips
from outcore.chem.ci.passes import AHEAD as PASS_AHEAD
from outcore.chem.ci.products import PAGE_BYTES, PANELS, ProductWays
from outcore.chem.ci.sigma import tiles_ahead

if TYPE_CHECKING:
    from outcore.chem.ci.deal import Deal
    from outcore.chem.ci.finished import Finished
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.products import ProductBytes, ProductWay
    from outcore.chem.ci.search import SearchOptions
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.tiles import VectorTiling
    from outcore.tensor.plan.rates import Rates

_MIB = 1 << 20
_DOUBLE, _SINGLE = 8, 4
_PACKED = 3  # bytes of an element of packed vectors, at most what searches have had
_BATCH = 144  # holes of the kernel's products of matrices
_SLAB_BYTES = 4 * _MIB  # of the kernel's same-spin part
_MIN_CACHE_BYTES, _MAX_CACHE_BYTES = 2 * _MIB, 64 * _MIB  # of a disk array
_BLAS_BYTES = 8 * _MIB  # of a thread
_STRING_BYTES = 160  # lists and flags of planning and of the kernel, for each string


@dataclass(frozen=True)
class Plan:
    """Bytes are of one process, unless they say otherwise."""

    space: Space
    tiling: VectorTiling
    options: SearchOptions
    roots: int
    processes: int
    kind: str  # place of vectors, see vector.KINDS; if vectors are packed, place of products
    states_on_disk: bool  # states are kept on disk, whatever the kind
    packed: bool  # vectors are packed on disk
    overlaps: bool
    panel_bytes: int  # of all tasks that are in memory together
    cache_bytes: int  # of each disk array
    vector_bytes: int  # in memory
    fixed_bytes: int
    limit: str
    nodes: tuple[int, ...] = ()  # of each process; none given: all on one
    array_bytes: float = inf  # that the world has for arrays, vectors among them
    rates: Rates | None = None  # None: what the network can do counts for nothing
    _made: dict[str, ProductWay] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def memory_bytes(self) -> int:
        return self.fixed_bytes + self.panel_bytes + self.vector_bytes + self._caches

    @property
    def _caches(self) -> int:
        needs = _Needs(
            self.space,
            self.tiling,
            self.options,
            self.roots,
            self.processes,
            self.states_on_disk,
            self.packed,
        )
        return self.cache_bytes * needs.arrays(self.kind)

    @property
    def states(self) -> int:
        """Number of vectors that are stored with the states: states and H times them; if packed, those of the small
        space and their products."""
        return 2 * self.roots * (self.options.vectors if self.packed else 1)

    @property
    def _packed_bytes(self) -> int:
        return self.states * self.tiling.elements * _PACKED

    @property
    def work_type(self) -> str:
        return "float32" if self.options.precision == "mixed" else "float64"

    def state_bytes(self, dtype: str) -> int:
        """Bytes of states and H times them, of all processes."""
        return 2 * self.roots * self.tiling.elements * np.dtype(dtype).itemsize

    @property
    def work_bytes(self) -> int:
        """Bytes of the other vectors, of all processes; if packed, of their products before rounding."""
        if self.packed:
            return self.roots * self.tiling.elements * _DOUBLE
        pairs = (self.options.vectors - 1) * self.roots
        return 2 * pairs * self.tiling.elements * np.dtype(self.work_type).itemsize

    @property
    def kept_bytes(self) -> int:
        """Bytes on disk that outlast the run, of all processes: states, and products of an iteration. Both exist
        twice while they are written."""
        if not self.states_on_disk:
            return 0
        if self.packed:
            return 2 * self._packed_bytes + self._states_bytes(1)
        return self._states_bytes(2) * 3 // 2

    @property
    def scratch_bytes(self) -> int:
        """Bytes on the disks for scratch, of all processes."""
        states = self._packed_bytes if self.packed else self._states_bytes(1)
        found = 0 if self.states_on_disk or not (self.packed or self.kind == "disk") else states
        return found + (self.work_bytes + self._strip_bytes if self.kind == "disk" else 0)

    @property
    def _strip_bytes(self) -> int:
        """Bytes of strips. Those of one precision exist at a time."""
        types = {self.work_type, "float64"}
        return max(2 * strips.file_bytes(self.space, each) if self.bands(each) else 0 for each in types)

    @property
    def largest_file(self) -> int:
        """Bytes of the largest file: that of one vector; if packed, the file of all vectors, with its holes."""
        if self.kind != "disk" and not self.states_on_disk and not self.packed:
            return 0
        vectors = self.states if self.packed else 1
        return vectors * self.tiling.elements * _DOUBLE // self.processes

    @property
    def disk_bytes(self) -> int:
        return self.kept_bytes + self.scratch_bytes

    def _states_bytes(self, times: int) -> int:
        """Bytes of states in both precisions, one after the other."""
        found = times * self.state_bytes("float64")
        return found + (times * self.state_bytes("float32") if self.options.precision == "mixed" else 0)

    def tasks(self, dtype: str, finished: Finished | None = None) -> list[Task]:
        """The tasks of a product in this precision, for the part that is not `finished`."""
        product = self._product(dtype)
        return product.tasks if finished is None else self.products.left(product, dtype, finished)

    def deal(self, dtype: str) -> Deal | None:
        """Which node does which of the tasks, if products in this precision go through rows; see rows.py."""
        return self._product(dtype).deal

    @property
    def product(self) -> ProductWay:
        """In double precision ("mixed": single)."""
        return self._product(self.work_type)

    def bands(self, dtype: str) -> list[Task] | None:
        """Tasks of whole rows, if products in this precision go through strips; else None. See strips.py."""
        return self._product(dtype).bands

    @property
    def product_bytes(self) -> ProductBytes:
        """Of one product in double precision ("mixed": single), of all processes."""
        return self.product.moved

    @property
    def products(self) -> ProductWays:
        return ProductWays(
            self.space,
            self.tiling,
            self.kind,
            self.processes,
            self.options.threads * self.processes,
            self.nodes or (0,) * self.processes,
            self.overlaps,
            self.panel_bytes,
            self.array_bytes - self.vector_bytes - self._caches,
            self.rates,
        )

    def _product(self, dtype: str) -> ProductWay:
        if dtype not in self._made:
            self._made[dtype] = self.products.choose(dtype)
        return self._made[dtype]

    @property
    def pass_bytes(self) -> tuple[int, int]:
        """Bytes that a typical pass of corrections reads and writes, of all processes."""
        if self.packed:
            # A pass reads the small space for corrections; then vectors and their products, to store these.
            size, vectors = self.roots * self.tiling.elements, self.options.vectors
            products = _DOUBLE if self.kind == "disk" else 0
            return size * (3 * vectors * _PACKED + products), size * 6 * _PACKED
        # States, directions and corrections are written. The product of a correction with H times it is a pass of
        # its own, as H times it must be complete.
        size = self.roots * self.tiling.elements * np.dtype(self.work_type).itemsize
        return (2 * self.options.vectors + 2) * size, 5 * size

    @property
    def least_iteration_bytes(self) -> int:
        """Bytes that an iteration moves at least by its formulas, of all processes, if vectors are not packed: each
        vector of the small space and H times it is read once, those that change are written once, and a product
        reads its vector and writes its result once."""
        size = self.roots * self.tiling.elements * np.dtype(self.work_type).itemsize
        return (2 * self.options.vectors + 5 + 2) * size

    @property
    def in_words(self) -> str:
        where = {"memory": "in memory", "global": "in the memory of all processes", "disk": "on disk"}[
            self.kind
        ]
        kept = ", states on disk" if self.states_on_disk and self.kind != "disk" else ""
        through = ", products through strips of rows" if self.bands(self.work_type) else ""
        if self.deal(self.work_type):
            through = ", products through rows at the nodes whose tasks need them"
        if self.packed:
            return f"vectors packed on disk, products {where}{through}"
        return f"vectors {where}{kept}{through}"


def kernel_bytes(space: Space, threads: int, *, mixed: bool) -> int:
    """Bytes of the kernel: its integrals, its tables, and the work space of its threads."""
    n, groups, (alpha, beta) = space.orbitals, space.groups, space.electrons
    strings = sum(space.counts[0]) + sum(space.counts[1])
    integrals = 2 * n**4 // groups * (_DOUBLE + (_SINGLE if mixed else 0))
    tables = sum(
        comb(n, max(count - 1, 0)) * n * 8 + comb(n, count) * comb(count, 2) * 12 for count in (alpha, beta)
    )
    of_irrep = np.bincount(space.irreps, minlength=groups)
    pairs = [int(of_irrep @ of_irrep[np.arange(groups) ^ g]) for g in range(groups)]
    lines = 2 * (sum(space.counts[1]) + groups) * int(of_irrep.max())
    opposite = lines + 3 * _BATCH * max(pairs) + max(pairs) ** 2
    same = max(
        _slab_elements(n, groups, electrons, max(columns))
        for electrons, columns in zip(space.electrons, space.counts, strict=True)
    )
    densities = sum(each * each for each in pairs)
    work = (max(opposite, same) + densities) * _DOUBLE + _BLAS_BYTES
    return integrals + tables + _STRING_BYTES * strings + threads * work


def _slab_elements(orbitals: int, groups: int, electrons: int, columns: int) -> int:
    """Elements of the rows that a thread of the same-spin part transposes, and of its products of matrices."""
    rows = min(max(_SLAB_BYTES // (max(columns, 1) * _DOUBLE), 64), 512)
    pairs = comb(orbitals - electrons + 2, 2) // groups + 1
    return 2 * rows * columns + 2 * pairs * rows + pairs * pairs


@dataclass(frozen=True)
class _Needs:
    """Memory that a search needs of each process, with its vectors in memory or on disk (bytes)."""

    space: Space
    tiling: VectorTiling
    options: SearchOptions
    roots: int
    processes: int
    states_on_disk: bool
    packed: bool

    @property
    def _mixed(self) -> bool:
        return self.options.precision == "mixed"

    @property
    def _tile(self) -> int:
        return self.tiling.largest * _DOUBLE

    @property
    def fixed(self) -> int:
        """The kernel, tiles under way in products, and sums."""
        roots, mixed = self.roots, self._mixed
        in_products = 2 * tiles_ahead(self.tiling, "float32" if mixed else "float64") * self._tile
        in_products = max(in_products, strips.buffer_bytes(self.space, "float64"))
        products = roots * roots * max(3 * 5, 2 * self.options.vectors + 2)
        sums = 8 * len(self.tiling) * (products + 2 * roots)
        return kernel_bytes(self.space, self.options.threads, mixed=mixed) + in_products + sums

    @property
    def in_passes(self) -> int:
        """Tiles of all vectors in passes of corrections."""
        places = 2 * self.roots * self.options.vectors + self.roots
        found = (self.options.threads + PASS_AHEAD) * places * self._tile
        if self.packed:  # a thread has two copies of the tiles that it rounds
            found += self.options.threads * (2 * self.roots + 3) * self._tile
        return found

    @property
    def vectors(self) -> int:
        """All vectors, if they are in memory; if packed, their products."""
        roots, mixed, kept = self.roots, self._mixed, self.states_on_disk
        count = self.options.vectors
        if self.packed:
            return -(-self.tiling.elements // self.processes) * roots * _DOUBLE
        pairs = 2 * roots * (0 if kept else _DOUBLE)
        pairs += 2 * roots * (count - 1) * (_SINGLE if mixed else _DOUBLE)
        # At the switch there are states in both precisions, directions, and corrections without their products.
        if mixed and not kept:
            pairs = max(pairs, 2 * roots * (_DOUBLE + _SINGLE) + roots * (2 * count - 3) * _SINGLE)
        return -(-self.tiling.elements // self.processes) * pairs

    @property
    def panels(self) -> int:
        """Of the smallest tasks."""
        return 2 * _min_elements(self.space) * _DOUBLE + PANELS * PAGE_BYTES

    @property
    def buffers(self) -> int:
        return self.in_passes if self.processes > 1 or self.states_on_disk or self.packed else 0

    def arrays(self, kind: str) -> int:
        """Number of disk arrays that are open together: of states, of kept products, of the other vectors. Packed:
        of the small space, of kept products, of products under way."""
        if self.packed:
            return 1 + int(self.states_on_disk) + (self.roots if kind == "disk" else 0)
        types = 2 if self._mixed else 1
        found = 2 * types if self.states_on_disk else types if kind == "disk" else 0
        return found + (2 * (self.options.vectors - 1) * self.roots if kind == "disk" else 0)

    def _caches(self, kind: str) -> int:
        return self.arrays(kind) * _MIN_CACHE_BYTES

    @property
    def in_memory(self) -> int:
        return self.fixed + self.buffers + self._caches("memory") + self.vectors + self.panels

    @property
    def on_disk(self) -> int:
        return self.fixed + self.in_passes + self._caches("disk") + self.panels


def _choices(needs: Callable[[bool], _Needs]) -> list[_Needs]:
    """The ways to have vectors in memory, best first: all vectors, unpacked; else products of packed vectors.
    needs: called with whether vectors are packed."""
    plain = needs(False)
    if plain.options.error_bound <= 0:
        return [plain]
    return [needs(True)] if plain.states_on_disk else [plain, needs(True)]


def least_bytes(
    space: Space,
    tiling: VectorTiling,
    options: SearchOptions,
    *,
    roots: int,
    processes: int,
    states_on_disk: bool,
) -> int:
    """The least memory of each process that `make_plan` accepts."""
    every = _choices(partial(_Needs, space, tiling, options, roots, processes, states_on_disk))
    return min(every[-1].on_disk, *(needs.in_memory for needs in every))


def make_plan(
    space: Space,
    tiling: VectorTiling,
    options: SearchOptions,
    free_bytes: int,
    *,
    roots: int = 1,
    processes: int = 1,
    states_on_disk: bool = False,
    limit: str = "--memory",
    nodes: tuple[int, ...] = (),
    array_bytes: float = inf,
    rates: Rates | None = None,
) -> Plan:
    """For `free_bytes` at each process, which `limit` leaves. `nodes`: of each process; `array_bytes`: that the
    world has for arrays; `rates`: of several nodes, so that products take the least time there. Raises
    OutcoreError (ENOMEM) if that is too little, with what is enough."""
    every = _choices(partial(_Needs, space, tiling, options, roots, processes, states_on_disk))
    everything = _everything(space)

    def plan(
        needs: _Needs, kind: str, *, overlaps: bool, panels: int, cache: int, vectors: int, buffers: int
    ) -> Plan:
        return Plan(
            space, tiling, options, roots, processes, kind, states_on_disk, needs.packed, overlaps,
            min(panels, everything * (2 if overlaps else 1)), cache, vectors, needs.fixed + buffers, limit, nodes,
            array_bytes, rates,
        )  # fmt: skip

    for needs in every:
        least = needs.panels
        left = free_bytes - needs.in_memory + least
        if left < least:
            continue
        return plan(
            needs,
            "memory" if processes == 1 else "global",
            overlaps=(processes > 1 or needs.packed) and left >= 2 * least,
            panels=left,
            cache=_MIN_CACHE_BYTES if needs.arrays("memory") else 0,
            vectors=needs.vectors,
            buffers=needs.buffers,
        )
    needs = every[-1]
    arrays, need = needs.arrays("disk"), needs.on_disk
    if free_bytes < need:
        raise OutcoreError(
            errno.ENOMEM,
            "full CI",
            detail=f"{space.determinants} determinants need at least {in_words(need)} more in each of "
            f"{processes} processes, but {limit} leaves {in_words(free_bytes)} to each",
        )
    left = free_bytes - need
    cache = _MIN_CACHE_BYTES + int(min(left // (8 * arrays), _MAX_CACHE_BYTES))
    panels = free_bytes - needs.fixed - needs.in_passes - arrays * cache
    return plan(
        needs,
        "disk",
        overlaps=panels >= 2 * needs.panels,
        panels=panels,
        cache=cache,
        vectors=0,
        buffers=needs.in_passes,
    )


def _everything(space: Space) -> int:
    """Bytes of the panels of a single task, in double precision."""
    return 2 * space.determinants * _DOUBLE + PANELS * PAGE_BYTES


def _min_elements(space: Space) -> int:
    """Elements of x in the panel of the smallest tasks: no hole needs more."""
    alpha, beta = (space.counts[spin] for spin in (0, 1))
    row = max(width for g, width in enumerate(beta) if alpha[g ^ space.irrep])
    column = 0 if space.folded else max(height for g, height in enumerate(alpha) if beta[g ^ space.irrep])
    holes = space.orbitals - space.electrons[0] + 1 if min(space.electrons) else 1
    return max(holes * row, column)
