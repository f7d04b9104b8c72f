"""Random recorded programs: contractions, sums, functions of tiles and loops, on arrays of all kinds, with
little and much memory, killed and resumed; results are those of NumPy.

A seed decides a recipe, which NumPy carries out, and which any number of processes record as a Program.
"""

from __future__ import annotations

import errno
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from conformance.random_arrays import Chance, elements, filled, holding
from conformance.random_recipes import FUNCTIONS, TILED, Einsum, Loop, Recipe, Sum
from conformance.resident import resident

import outcore
from outcore import Array, OutcoreError, Program
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.program_plan import ProgramPlan


@dataclass
class Settings:
    """Settings of one run, which may differ when the program is resumed after a kill."""

    memory: int | str = "20MB"
    disk: int | str | None = None
    checkpoint: Any = None
    rates: Any = None


def settings(chance, world, *, is_large=False):
    """Random settings of any kind of machine, with memory of any size."""
    fast = chance.one_of([1e8, 1e9, 1e11])
    rates = replace(
        ASSUMED,
        read=fast,
        write=fast / chance.one_of([1, 3]),
        network=chance.one_of([1e9, 1e11]),
        processes=world.size,
        nodes=world.node_count,
        threads=chance.one_of([1, 2]),
    )
    memory = 10 ** (chance.random.uniform(5.5, 6.9) if is_large else chance.random.uniform(3.6, 6.5))
    return Settings(memory=int(memory), rates=rates)


class Recorded:
    """A recipe recorded as a Program of a world. Collective. `close` closes all arrays that it has made."""

    def __init__(self, world, recipe, options):
        self.world, self.recipe, self.options = world, recipe, options
        self.bases: list[Any] = []  # of those that are wrapped
        self.arrays = {item.name: self._made(item) for item in recipe.items if item.is_input}
        self.variables: dict[str, Any] = {}
        with Program(
            world, memory=options.memory, disk=options.disk, checkpoint=options.checkpoint, every=0
        ) as self.program:
            for item in recipe.items:
                if item.is_input:
                    self.variables[item.name] = self.program.input(self.arrays[item.name], item.name)
                elif item.kind == "made":
                    what = item.values.shape if item.layout is None else item.layout
                    self.variables[item.name] = self.program.array(what, item.dtype, item.name)
            self._record(recipe.steps)
            for item in recipe.items:
                if item.is_output and item.name in self.variables:
                    self.program.output(self.variables[item.name], item.name)

    def _made(self, item):
        """The array of the caller."""
        world, values, layout = self.world, item.values, item.layout
        if item.kind == "view":
            return Chance([self.recipe.seed, len(item.name)]).view(values)
        if item.kind in TILED:
            return self._tiled(item)
        kind = item.kind.removeprefix("wrapped ")
        array = (
            holding(world, kind, values) if kind in ("numpy", "node") else filled(world, kind, layout, values)
        )
        if kind == item.kind:
            return array
        self.bases.append(array)
        return Array.wrap(world, array, layout)

    def _tiled(self, item):
        world, values, layout = self.world, item.values, item.layout
        if item.kind == "generated":
            return Array.generated(world, layout, lambda box: values[box], item.dtype)
        if item.kind == "extended":
            return Array.from_numpy(world, values, layout, item.place, store_dtype=item.stored)
        path = f"{world.scratch}/opened-{self.recipe.seed}-{item.name}"
        Array.from_numpy(world, values, layout, "disk", path=path, overwrite=True).close()
        return Array.open(world, path)

    def _record(self, steps):
        p, v = self.program, self.variables
        for step in steps:
            if isinstance(step, Loop):
                until = (lambda i, last=step.last: i >= last) if step.last < step.count else None
                for _ in p.iterate(step.count, until):
                    self._record(step.body)
                continue
            out = v.get(step.out.name)
            if isinstance(step, Einsum):
                operands = [v[item.name] for item in step.operands]
                made = outcore.einsum(
                    step.subscripts, *operands, out=out, accumulate=step.accumulate, scale=step.scale
                )
            elif isinstance(step, Sum):
                linear = sum((f * v[item.name] for f, item in step.terms[1:]), _first(v, step.terms[0]))
                made = p.combine(linear, out, accumulate=step.accumulate)
            else:
                operands = [v[item.name] for item in step.operands]
                made = p.map(FUNCTIONS[step.function], *operands, out=out, accumulate=step.accumulate)
            if out is None:
                v[step.out.name] = made

    def plan(self):
        """Plans with the chosen memory; if that is too little, with exactly the memory that the error
        names."""
        try:
            return self.program.plan(self.options.rates)
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
            least = int(re.search(r"takes ([0-9]+) bytes", str(error))[1])
        assert least > self.options.memory
        self.options.memory = self.program.memory = least
        return self.program.plan(self.options.rates)

    def limit_disk(self, plan):
        """Limits the disk to exactly the space that a plan takes: it is enough."""
        self.options.disk = self.program.disk = math.ceil(plan.disk_bytes)
        plan = self.plan()
        assert plan.disk_bytes <= self.options.disk
        return plan

    def run(self, plan=None, *, restart=False):
        """Runs the program; returns the resident memory of this process."""
        plan = self.plan() if plan is None else plan
        with resident(self.world) as found:
            self.program.run(plan=plan, restart=restart)
        return found

    def check(self):
        """Outputs and inputs, changed or not, have NumPy's values. Collective."""
        for item in self.recipe.items:
            if item.is_input:
                self._compare(item, self.arrays[item.name])
            elif item.is_output and item.name in self.variables:
                self._compare(item, self.variables[item.name].result)

    def _compare(self, item, array):
        exact = self.recipe.results[item.name]
        found = elements(self.world, array)
        assert found.dtype == item.dtype or item.kind == "fresh"
        with np.errstate(invalid="ignore"):
            near = np.abs(found - exact.value) <= 1000 * exact.eps * exact.size + 1e-30
        wrong = np.where(np.isfinite(exact.value), ~near, np.isfinite(found))
        if wrong.any():
            place = tuple(int(each[0]) for each in np.nonzero(np.atleast_1d(wrong)))
            values = [np.atleast_1d(each)[place] for each in (found, exact.value)]
            detail = f"{values[0]}, NumPy has {values[1]}"
            raise AssertionError(
                f"{item.name}{list(place)}: {detail}; {wrong.sum()} of {wrong.size} are wrong"
            )

    def close(self):
        results = [v.result for v in self.variables.values() if v.source is None]
        for array in [*self.arrays.values(), *results, *self.bases]:
            if array is not None and not isinstance(array, np.ndarray):
                array.close()

    def story(self):
        return f"{self.recipe.story()}\n{self.program.text()}\n{self.world.size} processes, {self.options}"


def _first(variables, term):
    factor, item = term
    return factor * variables[item.name]


def run(world, seed, *, ways=(0, 1), is_large=False):
    """One recipe in several ways: way 0 in exactly the least memory that it takes. Collective. Returns the
    largest share of what was left of the budget that was resident in a process. Raises AssertionError with
    all that is needed to reproduce it."""
    recipe = Recipe(seed, is_large=is_large)
    share = 0.0
    for way in ways:
        chance = Chance([seed, 1, way])
        options = settings(chance, world, is_large=is_large)
        if way == 0:
            options.memory = 1
        found = _run(Recorded(world, recipe, options), limit_disk=chance.chance(0.15))
        share = max(share, *world.gather(found.share))
    return share


def go_on(world, seed, path, attempt, begins):
    """Runs one recipe, and resumes from the state in the directory `path`, if there is one; `attempt` chooses
    the memory. Calls `begins()` when it starts to run. Collective."""
    options = settings(Chance([seed, 2, attempt]), world)
    options.checkpoint = path / "kept"
    recorded = Recorded(world, Recipe(seed, (1, 2, 2)), options)  # which are planned in no time
    file = path / f"plan{world.size}-{attempt % 3}.json"
    found = world.broadcast(file.read_text() if file.exists() else None)
    plan = recorded.plan() if found is None else ProgramPlan.from_json(found)
    if found is None and world.rank == 0:
        path.mkdir(exist_ok=True)
        file.with_suffix(".new").write_text(plan.as_json())
        file.with_suffix(".new").rename(file)
    world.barrier()
    begins()
    _run(recorded, plan, restart=True)


def _run(recorded, plan=None, *, restart=False, limit_disk=False):
    try:
        if limit_disk:
            plan = recorded.limit_disk(recorded.plan())
        found = recorded.run(plan, restart=restart)
        recorded.check()
    except Exception as error:
        raise AssertionError(recorded.story()) from error
    recorded.close()
    return found
