"""Multireference CI on a cluster. The method has no forecast of seconds. This module counts the operations of the
kernel's tasks and the records that they read and add to; the slowest of these determines the time of a product."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outcore import _core
from outcore.chem.mrci import MRCI, estimate
from outcore.chem.mrci.records import Orbitals
from outcore.chem.mrci.solver import SearchOptions
from outcore.chem.mrci.storage import PACKED_VECTORS
from outcore.chem.mrci.tables import table_bytes
from outcore.chem.mrci.transform import row_bytes
from outcore.chem.mrci.vectors import VectorLayout
from outcore.parallel.tasks import uneven

from ._cluster import Cluster, Taken, core, longest
from ._cluster import largest as _largest

_SIDE = 64  # side of the kernel's matrices: about the external orbitals of an irrep
_TASKS, _TASK_ELEMENTS = 16, 1 << 23  # the values of `mrci.packed` and `mrci.storage` for ample memory
_DRAWN = 300  # size of the sample of tasks whose records are counted
_RECORD, _ERROR, _MAGNITUDE = 1250, 1e-8, 1e-5  # elements of a record, their error bound and typical size
_PER_NODE = (8, 32, 128)  # processes per node to try
_WRITTEN = 3  # vectors that a pass writes


@dataclass(frozen=True)
class Counted:
    """A space with its kernel, which has no integrals: tasks depend only on the space."""

    name: str
    elements: int
    orbitals: Orbitals
    layout: VectorLayout
    kernel: _core.MRCIKernel
    operations: float
    replicated: int  # bytes of integrals with internal orbitals, at each process
    tables: int  # bytes of integrals between external pairs, at each process
    unpacked: float  # elements per second that a thread unpacks
    packed: float  # elements per second that a thread packs
    rate: float = core(_SIDE)  # operations per second of a core

    def as_fast_as(self, seconds: float, cores: int) -> Counted:
        """This space with the rate of a measured iteration on so many cores, passes over vectors included."""
        return replace(self, rate=self.operations / (seconds * cores))

    @classmethod
    def of(cls, name: str, atoms: str, basis: str, active: int, frozen: int) -> Counted:
        from pyscf import gto, scf

        mol = gto.M(atom=atoms, basis=basis, symmetry=True, verbose=0)
        mf = scf.RHF(mol).run(conv_tol=1e-4)  # only the irreps of its orbitals matter
        with MRCI.from_mean_field(mf, active=active, frozen=frozen, with_integrals=False) as ci:
            layout, n, inner = VectorLayout(ci.records), ci.orbitals.count, ci.orbitals.choice.internal
            orbitals = ci.orbitals.orbitals
            elements = ci.records.elements
        square = np.zeros((n, n))
        rows = np.zeros((inner * (inner + 1) // 2 + (n - inner) * inner, n * (n + 1) // 2))
        kernel = _core.MRCIKernel(layout.space, square, rows, square, square)
        operations = sum(task.cost for task in kernel.tasks(math.inf))
        return cls(
            name,
            elements,
            orbitals,
            layout,
            kernel,
            operations,
            row_bytes(n, inner),
            table_bytes(orbitals),
            *_packing(),
        )


@dataclass(frozen=True)
class Largest:
    """A space with `times` as many external orbitals. seconds: an upper bound for a product, as its operations grow
    at most with the fourth power of their number."""

    times: int
    external: int
    vectors: float
    tables: int
    replicated: int
    seconds: float


def largest(of: Counted, cluster: Cluster) -> Largest | None:
    """The largest space that fits. Integrals between external pairs and packed vectors are on disk; each process
    has all integrals with internal orbitals. The number of records stays the same; the number of coefficients grows
    with the square of that of external orbitals."""

    def grown(times: int) -> Largest:
        more = replace(of.orbitals, external=tuple(sorted(of.orbitals.external * times)))
        inner, count = len(more.internal), len(more.external)
        packed = estimate.BITS / 8 * of.elements * times**2 * SearchOptions(vectors=PACKED_VECTORS).most(1)
        seconds = of.operations * times**4 / (of.rate * cluster.cores * cluster.nodes)
        return Largest(times, count, packed, table_bytes(more), row_bytes(inner + count, inner), seconds)

    def fits(times: int) -> bool:
        one = grown(times)
        on_disk = one.vectors + one.tables <= cluster.disk * cluster.nodes
        return on_disk and 2 * one.replicated <= cluster.free_bytes  # twice: the kernel has a copy

    times = _largest(range(1, 100), fits)
    return None if times is None else grown(times)


def _packing() -> tuple[float, float]:
    """Elements per second that a thread unpacks, and that it packs, measured on this machine."""
    numbers = np.random.default_rng(1).standard_normal(_RECORD) * _MAGNITUDE
    packed, out = _core.pack_numbers(numbers, _ERROR), np.empty_like(numbers)
    unpack = _rate(lambda: _core.unpack_numbers(packed, _ERROR, out))
    return unpack, _rate(lambda: _core.pack_numbers(numbers, _ERROR))


def _rate(call: Callable[[], Any], times: int = 2000) -> float:
    best = math.inf
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - begin)
    return _RECORD * times / best


def taken(of: Counted, cluster: Cluster) -> Taken | str:
    """Time and traffic of an iteration, with the fastest of some numbers of processes per node."""
    every = [_taken(of, cluster.of(cluster.nodes, processes=count)) for count in _PER_NODE]
    found = [each for each in every if isinstance(each, Taken)]
    return min(found, key=lambda each: each.seconds) if found else every[0]


def _taken(of: Counted, cluster: Cluster) -> Taken | str:
    """A product and a pass over vectors. In each process one thread reads and unpacks records for all computing
    threads; another one adds to records: it reads, unpacks, packs and writes each."""
    held = of.replicated + of.tables
    if held > cluster.free_bytes:
        return f"integrals take {held / 1e9:.3g} GB in each process, there are {cluster.free_bytes / 1e9:.3g}"
    threads = cluster.threads * cluster.size
    tasks = of.kernel.tasks(of.operations / (_TASKS * threads), _TASK_ELEMENTS, of.layout.unit_of)
    moved = _elements(of, tasks)
    rate = of.rate * threads
    last = uneven(sorted((task.cost for task in tasks), reverse=True), threads)
    item = estimate.BITS / 8
    away = 3 * item * moved * (1 - 1 / cluster.nodes)  # one read, and a read and a write by the addition
    computing = of.operations / rate
    product = longest(
        {
            "records that a thread reads": moved / of.unpacked / cluster.size,
            "records that a thread adds to": moved * (1 / of.unpacked + 1 / of.packed) / cluster.size,
            "records over the network": away / (cluster.network * cluster.nodes),
            "products of matrices, uneven": computing * last,
        }
    )
    if "products of matrices, uneven" in product:
        product = {"products of matrices": computing, "uneven tasks": computing * (last - 1)}
    vectors = SearchOptions(vectors=PACKED_VECTORS).most(1)
    passes = of.elements * (vectors / of.unpacked + _WRITTEN / of.packed) / threads
    packed = item * of.elements * vectors
    spilled = max(0.0, packed - (cluster.free_bytes - held) * cluster.size / 2)
    return Taken(
        computing,
        {**product, "passes over vectors": passes},
        spilled,
        away,
        f"{cluster.processes} processes on a node, {len(tasks)} tasks; a product reads {moved / of.elements:.3g} "
        f"times the elements of a vector; packed vectors {packed / 1e9:.3g} GB, integrals {held / 1e9:.3g} GB in "
        "each process",
    )


def _elements(of: Counted, tasks: list[Any]) -> float:
    """Elements that all tasks read, estimated from a sample of tasks."""
    chosen = np.random.default_rng(1).permutation(len(tasks))[:_DRAWN]
    sizes, unit_of = of.layout.unit_sizes, of.layout.unit_of
    read = [float(sizes[of.kernel.units_of(tasks[number], unit_of)].sum()) for number in chosen]
    return float(np.mean(read)) * len(tasks)
