"""Products of a ladder of coupled cluster in one process, as `ccsd_ladder` asks for them: their times as JSON.

Integrals and amplitudes are random numbers, of the sizes that are given; the plan is that of a calculation.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from outcore import World
from outcore.chem.cc.forecast import Rates, ladder
from outcore.chem.cc.ladder import Ladder
from outcore.chem.cc.plan import Sizes, make_plan
from outcore.chem.cc.room import Room
from outcore.chem.cc.steps import Steps
from outcore.tensor.array import Array

_FREE_BYTES = 1 << 30


class _Integrals:
    """B[Q,p,c] of blocks, each made once."""

    def __init__(self, spaces: Any, auxiliary: int) -> None:
        self._spaces, self._auxiliary = spaces, auxiliary
        self._blocks: dict[tuple[int, int], Any] = {}
        for p in range(len(spaces.all)):
            for c in range(len(spaces.v)):
                self.block(p, c)

    def block(self, p: int, c: int) -> Any:
        if (p, c) not in self._blocks:
            rows, columns = (
                int(np.diff(cuts)[n]) for cuts, n in ((self._spaces.cuts, p), (self._spaces.v.cuts, c))
            )
            generator = np.random.default_rng([p, c])
            self._blocks[p, c] = generator.normal(size=(self._auxiliary, rows, columns))
        return self._blocks[p, c]


def _seconds(world: World, sizes: Sizes, way: str, threads: int, repeats: int) -> tuple[float, float]:
    """Of making what is stored, and the median of some products."""
    plan = make_plan(sizes, _FREE_BYTES, 1, threads, ladder=way)
    room = Room(world, threads, plan)
    spaces = plan.spaces[0]
    one = Ladder(room, spaces, _Integrals(spaces, sizes.auxiliary), is_stored=way != "rebuild")  # type: ignore[arg-type]
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
    """Arguments: sizes as JSON, threads, scratch, repeats, and ways with commas between."""
    functions, auxiliary, occupied, virtual = json.loads(sys.argv[1])
    threads, scratch, repeats, ways = int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5].split(",")
    cuts = (*range(0, auxiliary, 32), auxiliary)
    sizes = Sizes(functions, auxiliary, (occupied,), (virtual,), 6, cuts)
    with World("self", memory=4 << 30, scratch=scratch) as world:
        rates = Rates.measure(world, threads, occupied**2 // 2)
        measured = {way: _seconds(world, sizes, way, threads, repeats) for way in ways}
        chosen = make_plan(sizes, _FREE_BYTES, 1, threads, rates=rates, storage="disk").ladder
    modelled = ladder(sizes, rates)
    print(
        json.dumps(
            {
                "measured": measured,
                "modelled": {way: [modelled[way].once_s, modelled[way].iteration_s] for way in ways},
                "auto": chosen,
                "rates": [rates.flops, rates.copied, rates.narrow],
            }
        )
    )
