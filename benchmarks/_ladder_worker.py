"""The worker of bench ccsd_ladder: ladder products of coupled cluster in one process. Prints their times as JSON.

Integrals and amplitudes are random numbers of the given sizes; the plan is that of a real calculation.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from outcore import World
from outcore.chem.cc.equations.ladder import Ladder
from outcore.chem.cc.equations.steps import Steps
from outcore.chem.cc.plan.plan import make_plan
from outcore.chem.cc.plan.room import Room
from outcore.chem.cc.plan.sizes import Sizes
from outcore.tensor.arrays.array import Array
from outcore.tensor.plan.rates import Rates, measured

_FREE_BYTES = 1 << 30


class _Integrals:
    """Random three-index integrals B[Q,p,c] in blocks. Each block is generated once."""

    def __init__(self, room: Room, spaces: Any) -> None:
        self._spaces, self._auxiliary = spaces, room.sizes.auxiliary
        self.bvo, self.bvv = room.array("Bvo"), room.array("Bvv")
        self._blocks: dict[tuple[int, int], Any] = {}
        for p in range(len(spaces.all)):
            for c in range(len(spaces.v)):
                self.block(p, c)

    def recent(self, limit_bytes: int) -> Any:
        return self.block

    def block(self, p: int, c: int) -> Any:
        if (p, c) not in self._blocks:
            rows, columns = (
                int(np.diff(cuts)[n]) for cuts, n in ((self._spaces.cuts, p), (self._spaces.v.cuts, c))
            )
            generator = np.random.default_rng([p, c])
            self._blocks[p, c] = generator.normal(size=(self._auxiliary, rows, columns))
        return self._blocks[p, c]


def _seconds(world: World, sizes: Sizes, way: str, rates: Rates, repeats: int) -> tuple[float, float]:
    """Seconds of building the stored integrals, and the median seconds of a ladder product."""
    plan = make_plan(sizes, _FREE_BYTES, rates, ladder=way)
    room = Room(world, rates.threads, plan)
    spaces = plan.spaces[0]
    one = Ladder(room, spaces, _Integrals(room, spaces), is_stored=way != "rebuild")  # type: ignore[arg-type]
    amplitudes = Array(world, plan.arrays["T"].layout, where="process")
    generator = np.random.default_rng(1)
    for tile in amplitudes.layout.stored:
        amplitudes.put_tile(tile, generator.normal(size=amplitudes.layout.tile_shape(tile)))
    begin = time.perf_counter()
    one.build()
    once, times = time.perf_counter() - begin, []
    for _ in range(repeats):
        begin = time.perf_counter()
        one.contract(amplitudes, Steps())
        times.append(time.perf_counter() - begin)
    amplitudes.close()
    room.close()
    return once, statistics.median(times)


def main() -> None:
    """Arguments: sizes as JSON, threads, scratch, repeats, and ways separated by commas."""
    functions, auxiliary, occupied, virtual = json.loads(sys.argv[1])
    threads, scratch, repeats, ways = int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5].split(",")
    cuts = (*range(0, auxiliary, 32), auxiliary)
    sizes = Sizes(functions, auxiliary, (occupied,), (virtual,), 6, cuts)
    with World("self", memory=4 << 30, scratch=scratch) as world:
        rates = measured(world, threads)
        seconds = {way: _seconds(world, sizes, way, rates, repeats) for way in ways}
        plan = make_plan(sizes, _FREE_BYTES, rates, storage="disk")
    narrow = float(rates.flops(occupied**2 // 2))
    print(
        json.dumps(
            {
                "measured": seconds,
                "modelled": {way: [plan.ways[way].once_s, plan.ways[way].ladder_s] for way in ways},
                "auto": plan.ladder,
                "rates": [rates.peak, rates.copy * threads, narrow * threads],
            }
        )
    )
