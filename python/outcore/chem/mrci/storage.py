"""The place of vectors of a multireference CI: the memory of one process, or packed records of all processes."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.mrci.operator import MemoryOperator
from outcore.chem.mrci.packed import PackedOperator, Packing
from outcore.chem.mrci.solver import SearchOptions
from outcore.job.processes import free_memory_of_each
from outcore.job.scratch import bytes_here, check_room

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.solver import Operator
    from outcore.chem.mrci.vectors import VectorLayout
    from outcore.job.world import World

_PIECES = 4  # tasks that are being read or added, or wait, in addition to one for each thread
_LARGEST_TASK = 1 << 23  # elements
_LEAST = 4 << 20  # least bytes for records and tasks
_TEMPORARY = 8  # arrays of a block that a pass makes for each state, in addition to the vectors
_PACKED_BYTES = 3  # bytes of a packed element: the most that searches had
_WHOLE_BYTES = 12  # bytes of an element with the free space between records: more memory is of no use
PACKED_VECTORS = 3  # vectors of the small space for each state: the state, its last direction, its correction
PASSED_VECTORS = 4  # further vectors for each state, if states are passed over
_SHARE = 1 / 16  # share of the error bound for packing a vector; searches add several vectors
_GAP = 0.3  # Hartree: about a correlation energy
_CORRECTIONS = 1e-3  # error of a correction, relative to it
_ADDITIONS = 8  # about the square root of the number of additions to an element of a product


@dataclass(frozen=True, kw_only=True)
class Wishes:
    roots: int
    error_bound: float
    memory_bytes: int | None
    vector_memory: int | None


def choose(
    world: World, layout: VectorLayout, kernel: _core.MRCIKernel, options: SearchOptions, wishes: Wishes
) -> tuple[Operator, SearchOptions]:
    """Chooses vectors in memory, not packed, if they fit, there is one process, and the user asks for nothing else;
    else packed records. Collective.

    Raises OutcoreError: ENOMEM, which says how much is needed at least."""
    elements = layout.records.elements
    free = free_memory_of_each(world, wishes.memory_bytes, options.threads)
    packed = world.size > 1 or wishes.error_bound > 0 or wishes.vector_memory is not None
    work = kernel.work_bytes * int(world.all_reduce(options.threads, "max"))
    passed = passed_vectors(layout.penalty)
    for each in () if packed else (PASSED_VECTORS, passed):
        more = replace(options, passed=each)
        whole = 8 * elements * more.most(wishes.roots)
        if whole + work + _pass_bytes(world, layout, more, wishes.roots) <= free.bytes:
            return MemoryOperator(layout, kernel, options.threads), more
    options = replace(
        options,
        passed=passed,
        vectors=min(options.vectors, PACKED_VECTORS),
        exact=wishes.error_bound == 0,
        worth=wishes.error_bound / 2,
    )
    passes = work + _pass_bytes(world, layout, options, wishes.roots)
    needed = passes + _LEAST
    if free.bytes < needed:
        raise OutcoreError(
            errno.ENOMEM,
            "multireference CI",
            detail=f"{layout.records.determinants} determinants need at least {in_words(needed)} more "
            f"in each of {world.size} processes, beside {in_words(kernel.integral_bytes)} of integrals, "
            f"but {free.reason} leaves {in_words(free.bytes)} to each",
        )
    left = free.bytes - passes
    vectors = options.most(wishes.roots)
    pieces = _PIECES + int(world.all_reduce(options.threads, "max"))
    task_elements = min(_LARGEST_TASK, max(left // 2 // (16 * pieces), 1024))
    memory = max(left - 16 * pieces * task_elements, 0) * 3 // 4
    if wishes.vector_memory is not None:
        memory = min(memory, wishes.vector_memory)
    most = _WHOLE_BYTES * elements * vectors // world.size + (1 << 16)
    memory = min(memory, most)
    packed_bytes = elements * vectors * (_PACKED_BYTES if wishes.error_bound else 9)
    spilled = max(0, packed_bytes - int(world.all_reduce(memory)))
    needs = []
    if spilled:
        with world.together("look at the scratch disk"):
            needs.append((Path(world.scratch), bytes_here(world, world.scratch, spilled)))
    check_room(world, "multireference CI", needs, largest_file=spilled // world.size)
    packing = Packing(
        memory_bytes=memory,
        **_errors(world, layout, kernel, wishes.error_bound),
        vectors=vectors,
        roots=wishes.roots,
        task_elements=task_elements,
        workers=int(world.all_reduce(options.threads)),
    )
    return PackedOperator(world, layout, kernel, packing, options.threads), options


def least_bytes(block: int, threads: int, penalty: float, vectors: int, roots: int) -> int:
    """The least memory of a process for passes over packed vectors with `block` elements in a block, with records
    and tasks."""
    options = SearchOptions(vectors=min(vectors, PACKED_VECTORS), passed=passed_vectors(penalty))
    return 8 * block * threads * (options.most(roots) + (_TEMPORARY - 1) * roots) + _LEAST


def passed_vectors(penalty: float) -> int:
    """Number of vectors that are needed for states that are passed over. Only functionals need them: their spaces
    have low states without references."""
    return PASSED_VECTORS if penalty != 1 else 0


def _pass_bytes(world: World, layout: VectorLayout, options: SearchOptions, roots: int) -> int:
    """Memory of passes over vectors, at the process with most threads. Collective."""
    largest = max(layout.size(block) for block in range(len(layout.blocks)))
    threads = min(options.threads, -(-len(layout.blocks) // world.size))
    return int(
        world.all_reduce(8 * largest * threads * (options.most(roots) + (_TEMPORARY - 1) * roots), "max")
    )


def _errors(world: World, layout: VectorLayout, kernel: _core.MRCIKernel, bound: float) -> dict[str, float]:
    """Allowed errors of elements. states: so that sum |d - E| delta^2 is at most a share of the bound. products: so
    that the second-order energy of their errors in residuals is no more. corrections: relative to their norm.
    Collective."""
    if bound == 0:
        return {"states": 0.0, "corrections": 0.0, "products": 0.0}
    sums = np.zeros(2)
    for block in range(world.rank, len(layout.blocks), world.size):
        diagonal, records = np.empty(layout.size(block)), layout.records_of(block)
        kernel.diagonal(records.start, records.stop, diagonal)
        gaps = np.abs(diagonal) + _GAP
        sums += layout.weights(block) @ gaps, layout.weights(block) @ (1 / gaps)
    up, down = (float(each) for each in world.all_reduce(sums))
    return {
        "states": math.sqrt(_SHARE * bound / up),
        "corrections": _CORRECTIONS / math.sqrt(layout.records.determinants),
        "products": math.sqrt(_SHARE * bound / down) / _ADDITIONS,
    }
