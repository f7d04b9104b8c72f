"""What ways to go through panels take, for all sizes of panels at once: seconds, bytes and memory.

Memory of a process, in bytes of the elements that are multiplied: one panel of the result or two (one goes to disk
while the other is made), two panels of each operand (one is used, one is on its way), and of an operand that is
kept all its panels. Panels of an array of another type have a copy beside them on their way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.plan.passes import Grid, Panels, Reuse
from outcore.tensor.plan.rates import Rates

STEP_S = 4e-5  # of the loop, for each step
PANEL_S = 2e-5  # of requests, for each panel of an operand that comes
MAX_STEPS = 400_000  # products of panels: plans of more are not looked at


def priced(
    problem: ProductProblem, rates: Rates, panels: Panels, way: Reuse
) -> Iterator[tuple[int, Grid, Grid, Grid]]:
    """With memory for the results that are made at once, and for twice as many: seconds, bytes of disk and network,
    and of memory. All options are there together, so estimates are short numbers."""
    (a, w, c), (ta, tb, tc) = panels.sizes, panels.counts
    work, puts, disk, moved = _seconds(
        problem,
        rates,
        (way.left, way.right, _puts(problem, way.parts)),
        (a, w, c),
        way.units * way.parts,
        np.ceil(tc / way.parts) * way.parts / tc - 1,
        panels.made,
    )
    if problem.out.where == "disk" and not problem.adds:  # a chunk that is put in parts is read before
        in_parts = panels.in_parts_of_chunks * problem.out.bytes
        again = np.where(way.parts > 1, 0.0, in_parts / (rates.read * rates.nodes))
        puts, disk = puts + again, disk + again
    moved = moved.astype(np.float32)
    word, (left, right, put) = problem.dtype.itemsize, problem.copied
    steps = ta * tb * tc * panels.batch.count * panels.made
    come = (way.left * ta + way.right * tb) * tc * panels.batch.count
    apart = (steps * STEP_S + come * PANEL_S) / rates.processes
    results_each = np.maximum(1.0, way.results * way.parts / rates.processes)
    for results in (1, 2) if problem.out.where == "disk" else (1,):
        waits = puts if results == 1 else puts / results_each  # of the last alone
        seconds = np.maximum(work + waits, disk) + apart
        seconds = np.where(steps <= MAX_STEPS, seconds, np.inf).astype(np.float32)
        made = a * w * (word * results * way.at_once + put)
        held = way.held[0] * (word + left) + way.held[1] * (word + right)
        yield results, seconds, moved, panels.batch.largest * (made + held)


def shortest_side(rows: Any, columns: Any, inner: Any, threads: int) -> Any:
    """Of the matrices that one thread multiplies: threads divide the longer side of a panel of the result."""
    longer, shorter = np.maximum(rows, columns), np.minimum(rows, columns)
    return np.minimum(np.minimum(longer / threads, shorter), inner)


def _density(problem: ProductProblem) -> tuple[float, float, float]:
    """Stored shares of left, right and result, by tiles."""

    def share(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None) -> float:
        return 1.0 if mask is None else max(1e-12, float(mask.mean()))

    return share(problem.left.readable), share(problem.right.readable), share(problem.out.stored)


def _puts(problem: ProductProblem, parts: Grid) -> Grid:
    """How often the result is moved: what is added is read, too; before several parts zeros are put."""
    reads = problem.out.where == "disk"
    added = (2.0 if reads else 1.0) * parts
    if problem.adds:
        return added
    return np.where(parts > 1, added + 1, 1.0)


def _seconds(
    problem: ProductProblem,
    rates: Rates,
    times: tuple[Grid, Grid, Grid],
    panel: tuple[Grid, Grid, Grid],
    units: Grid,
    uneven: Grid,
    made: Grid | float,
) -> tuple[Grid, Grid, Grid, Grid]:
    """Seconds of processors, of puts of the result to disk and of the disk; and bytes of disk and network.
    `uneven`: by how much the longest piece of work is longer than the mean, relative to that. `made`: the share of
    the result that is multiplied."""
    a, w, c = panel
    b, m, n, k = problem.product.sizes(problem.extents)
    density = _density(problem)
    workers = rates.threads * rates.processes
    rate = rates.flops(shortest_side(a, w, c, rates.threads))
    idle = (np.ceil(units / rates.processes) + uneven) * rates.processes / units
    work = 2.0 * b * m * n * k * made * min(density) / (rate * workers) * idle
    disk, network = np.zeros_like(units), np.zeros_like(units)
    puts = np.zeros_like(units)
    for (_, facts), elements, share, count, speed in zip(
        problem.arrays,
        (b * m * k, b * k * n, b * m * n),
        density,
        times,
        (rates.read, rates.read, rates.write),
        strict=True,
    ):
        moved = elements * share * facts.item_bytes * count
        work = work + moved / (rates.copy * workers)
        if facts.where == "disk":
            disk = disk + moved / (speed * rates.nodes)
            puts = moved / (speed * rates.nodes) if facts is problem.out else puts
        elif facts.where == "global":
            network = network + moved
    work = work + network / (rates.network * rates.processes)
    return work, puts, disk, disk * rates.read + network
