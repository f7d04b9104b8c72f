"""Contractions by plan on 16 to 1024 processes, on a simulated clock.

A ladder of coupled cluster with 100 occupied and 1000 virtual orbitals (for weak scaling the number of virtual
orbitals keeps the work of a process the same: 354 on 16 processes). A node has 16 processes of one thread and 2 GB
each, a disk of 3 GB/s, and a network of 2 GB/s per process. The plan, the pieces of work and their order are
those of a run. Disks and processors need a little more or less time for each request, at random, from a seed.
Processes of a node share panels where the plan says so. Nothing is measured, so the numbers are the same on
every machine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_least
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import plain
from outcore.tensor.plan.product_plan import Planned, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.plan.simulate import simulate


def run(options: BenchOptions) -> list[Claim]:
    claims = []
    for kind in ("strong", "weak"):
        base: float | None = None
        for processes in (16, 64, 256, 1024):
            orbitals = 1000 if kind == "strong" else round(1000 * (processes / 1024) ** 0.25)
            rates = replace(
                ASSUMED,
                processes=processes,
                nodes=processes // 16,
                sharing=16,
                network=2e9,
                read=3e9,
                write=3e9,
            )
            pairs, virtual = 100 * 101 // 2, orbitals * (orbitals + 1) // 2
            shapes = [(pairs, virtual), (virtual, virtual), (pairs, virtual)]
            extents = {"p": pairs, "c": virtual, "v": virtual}
            left, right, out = (plain(shape, np.dtype(np.float64), "disk") for shape in shapes)
            problem = ProductProblem(binary("pc", "cv", "pv", extents), extents, left, right, out)
            planned = Planned(problem, make_plan(problem, 2 << 30, rates))
            found = simulate(planned, rates, seed=1)
            work = found.seconds * processes / (pairs * virtual**2)  # process seconds per multiplication
            base = work if base is None else base
            options.say(f"{kind:6s} {processes:5d} processes: {found.seconds:9.1f} s, idle {found.idle:.3f}")
            claims += [
                Claim(
                    f"simulated, {kind} scaling: efficiency on {processes} processes",
                    base / work,
                    "",
                    at_least(0.8) if kind == "strong" else None,
                    "16 processes",
                    f"{found.seconds:.0f} s, {planned.plan.choice.keep} kept, {len(planned.units)} pieces of work, "
                    f"panels shared by {planned.plan.sharing}",
                ),
                Claim(f"simulated, {kind}: idle share on {processes}", found.idle, "", None, "", ""),
                Claim(
                    f"simulated, {kind}: read by a process of {processes}",
                    float(found.read_bytes.mean()) / planned.plan.sharing / 1e9,
                    "GB",
                    None,
                    "",
                    f"the most {float(found.read_bytes.max()) / planned.plan.sharing / 1e9:.3g} GB",
                ),
            ]
    return claims
