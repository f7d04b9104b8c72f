"""The integrals between pairs of external orbitals for products: tables in memory, or in a disk array that a
product reads in slabs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from outcore.arrays.disk_array import DiskArray
from outcore.job.scratch import check_room
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.integrals import External
    from outcore.chem.mrci.records import Orbitals
    from outcore.job.world import World

_SLAB_ELEMENTS = 1 << 20  # elements that a product reads at once
_CHUNK_ELEMENTS = 1 << 17


def table_bytes(orbitals: Orbitals) -> int:
    """Bytes of all tables."""
    return _bytes_of(orbitals.counts)


def _bytes_of(counts: list[int]) -> int:
    """Bytes of tables for so many external orbitals of each irrep."""
    total = 0
    for irrep in range(len(counts)):
        pairs = sum(n * counts[g ^ irrep] for g, n in enumerate(counts))
        equal = sum(counts) if irrep == 0 else 0
        total += ((pairs + equal) // 2) ** 2 + ((pairs - equal) // 2) ** 2
    return 8 * total


def min_table_bytes(counts: list[int], others: int) -> int:
    """A lower bound of the bytes of tables. counts: orbitals of each irrep. others: how many of them are not
    external; their irreps are unknown. To leave out one orbital makes tables smaller by at most the bytes of the
    first one."""
    whole = _bytes_of(counts)
    taken = (
        whole - _bytes_of([n - (g == irrep) for g, n in enumerate(counts)])
        for irrep, count in enumerate(counts)
        if count
    )
    return max(0, whole - others * max(taken, default=0))


def check_disk(world: World, size_bytes: int) -> None:
    """Raises OutcoreError if tables of this size are too large for the disk (ENOSPC), or if the part of a process
    is too large for a file (EFBIG). Collective."""
    check_room(
        world,
        "integrals of a multireference CI",
        [(Path(world.scratch), size_bytes if world.rank == 0 else 0)],
        largest_file=max(size_bytes // world.size, 8 * _CHUNK_ELEMENTS),
    )


def in_memory(kernel: _core.MRCIKernel, external: External, orbitals: int, threads: int) -> None:
    kernel.reserve_external()
    team.each(range(orbitals), threads, lambda _, c: kernel.take_external(c, external.column(c)))


def on_disk(
    world: World, kernel: _core.MRCIKernel, external: External, orbitals: int, threads: int
) -> DiskArray:
    """Writes the tables to a disk array. The caller closes it when the kernel is no longer used. Collective."""
    array = DiskArray(world, (max(kernel.external_size, 1),), chunk=(_CHUNK_ELEMENTS,))

    def work(_thread: int, c: int) -> None:
        for first, values in kernel.external_rows(c, external.column(c)):
            array.put((slice(first, first + len(values)),), values)

    with world.together("write integrals of a multireference CI"):
        team.each(range(world.rank, orbitals, world.size), threads, work)
        array.sync()
    world.barrier()
    kernel.read_external(array._native, _SLAB_ELEMENTS)
    return array
