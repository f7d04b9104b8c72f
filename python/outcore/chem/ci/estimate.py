"""The forecast of a CI before it begins: determinants, tasks, memory, disk, bytes moved, time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base import html
from outcore.chem.ci import solver, speeds
from outcore.chem.ci.plan import Plan
from outcore.chem.ci.products import alone, between_nodes
from outcore.chem.ci.sigma import least_moved
from outcore.parallel.tasks import uneven

if TYPE_CHECKING:
    from rich.table import Table

    from outcore.chem.ci.hamiltonian import Hamiltonian
    from outcore.chem.ci.search import SearchOptions
    from outcore.chem.ci.solver import Solved
    from outcore.chem.ci.space import Space
    from outcore.job.world import World
    from outcore.tensor.plan.rates import Rates

ITERATIONS = 14  # as a rule, for a residual of 1e-6
_FLOPS_OF_PASS = 40.0  # for each element of a pass of corrections, at about the rate of memory


@dataclass(frozen=True)
class Forecast:
    """Of all processes together. Bytes and seconds are of one iteration: a product for each root, and a pass of
    corrections. `disk_measured`: else the disk is assumed to be slow. `network_bytes`: between nodes. `parts`:
    seconds of computing and moving in products, which go on at the same time if the plan `overlaps`, of
    corrections, and of moving that nothing goes on beside: tiles into rows before products and back after them,
    the first task of a process and the last one. `uneven`: how much longer the last process computes than their
    mean."""

    plan: Plan
    names: tuple[str, ...]  # of irreps
    memory_bytes: int
    disk_bytes: int
    read_bytes: int
    written_bytes: int
    flops: float
    seconds: float
    disk_measured: bool
    network_bytes: float = 0.0
    parts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    uneven: float = 1.0

    @property
    def total_seconds(self) -> float:
        return ITERATIONS * self.seconds

    @property
    def passes(self) -> float:
        """Bytes that one product reads, over the bytes of a stored vector."""
        word = np.dtype(self.plan.work_type).itemsize
        return self.plan.product_bytes.read / (self.plan.tiling.elements * word)

    @property
    def over_bound(self) -> float | None:
        """Bytes that one product reads and adds, over the least for any product; None if vectors are in memory.
        Bytes that are read only to add to them are left out here, as in the counts of a run."""
        if self.plan.kind != "disk":
            return None
        moved = self.plan.product_bytes
        return (moved.read + moved.added) / least_moved(self.plan.tiling, self.plan.work_type)

    @property
    def iteration_over_bound(self) -> float | None:
        """Bytes that an iteration reads, adds and writes, over the least by its formulas; None if vectors are in
        memory, or packed."""
        moved = self.plan.product_bytes
        return self._over_iteration(moved.read + moved.added)

    def _over_iteration(self, of_product: float) -> float | None:
        """As `iteration_over_bound`, for the bytes of one product."""
        plan = self.plan
        if plan.kind != "disk" or plan.packed:
            return None
        return (plan.roots * of_product + sum(plan.pass_bytes)) / plan.least_iteration_bytes

    def rows(self) -> list[tuple[str, str]]:
        """For people: names and values."""
        space, plan = self.plan.space, self.plan
        blocks = [
            f"{count} ({name} x {self.names[g ^ space.irrep]})"
            for g, (name, count) in enumerate(zip(self.names, space.blocks, strict=True))
            if count
        ]
        tasks = len(plan.tasks(plan.work_type))
        over = self.over_bound
        least = "" if over is None else f"; {over:.2f} times the least is moved"
        whole = self.iteration_over_bound
        of_iteration = "" if whole is None else f", {whole:.2f} times the least by its formulas"
        crossing = f"{self.network_bytes / 1e6:.0f} MB an iteration"
        between_nodes = [("between nodes", crossing)] if self.network_bytes else []
        return [
            ("determinants", f"{space.determinants}"),
            ("blocks", ", ".join(blocks)),
            ("vectors", f"{plan.in_words}, {plan.tiling.elements} elements each, {len(plan.tiling)} tiles"),
            (
                "tasks of a product",
                f"{tasks}, {self.passes:.2f} times the bytes of a stored vector are read{least}",
            ),
            ("memory", f"{self.memory_bytes / 1e6:.0f} MB beside what processes hold"),
            ("disk", f"{self.disk_bytes / 1e6:.0f} MB"),
            (
                "an iteration",
                f"{self.read_bytes / 1e6:.0f} MB read, {self.written_bytes / 1e6:.0f} MB written{of_iteration}, "
                f"{self.flops / 1e9:.1f} Gflop, {self.seconds:.1f} s"
                + ("" if self.disk_measured else ", disk not measured"),
            ),
            *between_nodes,
            (f"{ITERATIONS} iterations", f"{self.total_seconds:.0f} s"),
        ]

    def table(self) -> Table:
        from rich.table import Table

        table = Table("", "estimate", title="Full CI")
        for name, value in self.rows():
            table.add_row(name, value)
        return table

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        return html.facts("Full CI, estimate", self.rows())

    def as_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "determinants": plan.space.determinants,
            "blocks": plan.space.blocks,
            "kind": plan.kind,
            "tasks": len(plan.tasks(plan.work_type)),
            "passes": self.passes,
            "over_bound": self.over_bound,
            "iteration_over_bound": self.iteration_over_bound,
            "memory_bytes": self.memory_bytes,
            "disk_bytes": self.disk_bytes,
            "iteration_read_bytes": self.read_bytes,
            "iteration_written_bytes": self.written_bytes,
            "iteration_network_bytes": self.network_bytes,
            "iteration_flops": self.flops,
            "iteration_seconds": self.seconds,
            "seconds": self.total_seconds,
            "disk_measured": self.disk_measured,
        }

    def against(self, solved: Solved, seconds: float) -> str:
        """The line of a run that is done, which took so many seconds."""
        predicted = (self.plan.product_bytes.read + self.plan.product_bytes.added) * solved.products
        moved = solved.moved.read + solved.moved.added
        times = ""
        if self.plan.kind == "disk" and solved.moved.least:
            times = f" ({moved / solved.moved.least:.2f} times the least"
            whole = self._over_iteration(moved / max(solved.products, 1))
            times += ")" if whole is None else f"; with passes {whole:.2f} times)"
        return (
            f"predicted / actual: moved in products {predicted / 1e6:.0f} / {moved / 1e6:.0f} MB{times}, "
            f"an iteration {self.seconds:.1f} / {seconds / max(len(solved.iterations), 1):.1f} s"
        )


def forecast(
    world: World,
    space: Space,
    hamiltonian: Hamiltonian,
    *,
    roots: int = 1,
    options: SearchOptions | None = None,
    memory_bytes: int | None = None,
    kept: bool = False,
) -> Forecast:
    """For a budget of all processes together. Collective. Raises OutcoreError (ENOMEM)."""
    options = options or solver.SearchOptions()
    plan = solver.plan(world, space, options, roots=roots, memory_bytes=memory_bytes, kept=kept)
    found = speeds.measured(world, options.threads, plan.work_type, disks=_uses_disks(plan))
    with world.together("estimate of a CI"):
        result = of_plan(plan, hamiltonian, found)  # the same at all processes, as plan and rates are
    return result


def _uses_disks(plan: Plan) -> bool:
    return plan.kind == "disk" or plan.packed or plan.states_on_disk


def of_plan(plan: Plan, hamiltonian: Hamiltonian, rates: Rates) -> Forecast:
    """Of a plan, on a machine of these rates. Tiles lie on all nodes alike, so that of what a product moves the
    share of the other nodes goes over the network, beside the disk, but for rows, which lie at nodes that need
    them; passes of corrections work on own tiles."""
    kernel = solver.make_kernel(plan.space, hamiltonian)
    flops = plan.roots * product_flops(plan.space, kernel)
    moved = plan.product_bytes
    read, written = plan.roots * (moved.read + moved.again), plan.roots * moved.added
    passes_read, passes_written = plan.pass_bytes
    rate = speeds.gemm(rates) * plan.options.threads * plan.processes
    disk_read, disk_write = rates.read * rates.nodes, rates.write * rates.nodes
    costs = [task.cost for task in plan.tasks(plan.work_type)]
    last = uneven(costs, plan.processes) if plan.processes > 1 and any(costs) else 1.0
    computing = speeds.of_product(rates, flops, plan.options.threads * plan.processes) * last
    correcting = _FLOPS_OF_PASS * plan.roots * plan.tiling.elements / rate * 4
    turning = 0.0
    if plan.product.deal is None:
        crossing = (read + written) * (1 - 1 / rates.nodes)
        moving = crossing / speeds.network(rates)
    else:
        crossing = plan.roots * (moved.crossing + moved.turning)
        moving, turning = (plan.roots * each for each in between_nodes(plan.product, rates))
        if plan.overlaps:
            turning += alone(plan.product, computing, moving)
    if plan.kind == "disk":
        moving = max(moving, read / disk_read + written / disk_write)
    if plan.kind == "disk" or plan.packed:
        correcting += passes_read / disk_read + passes_written / disk_write
    elif plan.states_on_disk:
        states = plan.state_bytes(plan.work_type)
        correcting += states / disk_read + states / disk_write
    seconds = (max(computing, moving) if plan.overlaps else computing + moving) + turning + correcting
    return Forecast(
        plan,
        tuple(hamiltonian.names),
        plan.memory_bytes * plan.processes,
        plan.disk_bytes,
        read + passes_read,
        written + passes_written,
        flops,
        seconds,
        bool(rates.storage) or math.isinf(rates.read),
        crossing,
        (computing, moving, correcting, turning),
        last,
    )


def product_flops(space: Space, kernel: Any) -> float:
    """Operations of the products of matrices in a product H x; those of the same-spin part by one row of each
    sector."""
    total = float(kernel.flops(0, len(kernel.holes)))
    for transposed in (False,) if space.folded else (False, True):
        rows = space.beta if transposed else space.alpha
        for g in range(space.groups):
            sector = rows.sector(g)
            if len(sector):
                first = np.array([sector.start], np.int64)
                panel = _core.CIPanel(kernel, first, first[:0], first[:0], "float64", transposed=transposed)
                total += len(sector) * kernel.same_spin_flops(panel)
    return total
