"""The least memory of each process for a multireference CI, from the sizes of its space. The numbers are bounds: if
integrals can be made in two ways, the one that needs less counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore.chem.mrci import reference_states, size_consistency, storage
from outcore.chem.mrci.configurations import determinants
from outcore.chem.mrci.tables import table_bytes
from outcore.chem.mrci.transform import factor_bytes, integral_bytes, row_bytes, whole_bytes
from outcore.chem.mrci.vectors import BLOCK_ELEMENTS

if TYPE_CHECKING:
    from outcore.chem.mrci.mrci import MRCI

_MIB = 1 << 20
_DISK_TABLES = 32 * _MIB  # cache and slabs of tables on disk
_LINES = (1 << 18, 1 << 21)  # elements of a panel of the kernel, with tables in memory and on disk
_SLAB = 1 << 20  # elements of tables that a product reads at once
_RECORD_BYTES = 256  # tables for each record
_LISTS = 8 * _MIB  # lists of tasks and units, and of groups for the interacting part
_INNER = 8  # copies of integrals of internal orbitals


def least_bytes(ci: MRCI, functions: int, rank: int | None) -> dict[str, int]:
    """The least memory of each stage. ci: has its space, without integrals. functions: of the basis. rank: number
    of three-index functions; None: all integrals are made at once."""
    found = ci.orbitals
    internal, count, several = found.choice.internal, found.count, ci.world.size > 1
    rows = row_bytes(count, internal)
    if rank is None:
        made = whole_bytes(functions, count, internal, several=several)
        external = integral_bytes(count)
    else:
        factors = factor_bytes(rank, count + found.choice.frozen)
        made = 16 * rank * rank + max(2 * factors, 3 * factors + rows)
        external = factors
    return {
        "integrals of a multireference CI": made,
        "multireference CI": _space_bytes(ci) + _search_bytes(ci, rows, external),
    }


def _space_bytes(ci: MRCI) -> int:
    return _RECORD_BYTES * len(ci.records) + _LISTS


def _search_bytes(ci: MRCI, rows: int, external: int) -> int:
    """Memory of the search. Integrals exist twice, in their object and in the kernel; tables of external pairs are
    made from those of the object."""
    tables = table_bytes(ci.orbitals.orbitals)
    in_memory, on_disk = (_passes(ci, on_disk=each) for each in (False, True))
    searched = max(_of_references(ci), tables + in_memory)
    with_tables = max(external + 2 * tables, searched)
    with_disk = _DISK_TABLES + max(external, on_disk, _of_references(ci))
    # Tables that fit into half of the free memory are in memory: then the search has to fit beside them.
    if external + tables < in_memory:
        return 2 * rows + with_tables
    return 2 * rows + min(with_tables, with_disk)


def _of_references(ci: MRCI) -> int:
    """Memory for the states of the references, which are found first."""
    alpha, _ = determinants(ci.records.references, *ci.electrons)
    return reference_states.matrix_bytes(len(alpha)) + _INNER * 8 * len(ci.orbitals.orbitals.internal) ** 4


def _passes(ci: MRCI, *, on_disk: bool) -> int:
    """Memory of a search of packed vectors, with the work space of the kernel."""
    pairs = ci.orbitals.count**2
    panel = max(pairs, min(_LINES[on_disk], pairs << (10 if on_disk else 7)))
    work = 8 * (4 * panel + (2 * max(pairs, _SLAB) if on_disk else 0))
    block = min(ci.records.elements, max(BLOCK_ELEMENTS, int(ci.records.sizes.max())))
    blocks = 2 * ci.records.elements // BLOCK_ELEMENTS + 1
    penalty = size_consistency.penalty(ci.settings.functional, sum(ci.electrons))
    return ci.threads * work + storage.least_bytes(
        block, min(ci.threads, blocks), penalty, ci.settings.vectors, ci.roots
    )
