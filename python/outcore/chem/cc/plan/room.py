"""The arrays of a calculation, where its plan has them, and products of them in the memory that the plan leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.iteration import NOTHING, Meter, Moved
from outcore.chem.cc.plan.work import PANELS
from outcore.parallel import team
from outcore.tensor.arrays.array import Array
from outcore.tensor.plan.statements import no_space
from outcore.tensor.program.einsum import einsum
from outcore.tensor.program.recorder import HELD

if TYPE_CHECKING:
    from outcore.chem.cc.plan.fitting import Entry
    from outcore.chem.cc.plan.plan import Plan
    from outcore.job.world import World
    from outcore.tensor.layout.layout import Tile
    from outcore.tensor.plan.plan import Plan as ProductPlan
    from outcore.tensor.plan.statements import Kernel, Space

Values = np.ndarray[Any, np.dtype[Any]]


class Room:
    """All methods are collective. `plan`: the plan of the arrays; products take its work space. `signs`: of
    three-index integrals, see `ri.source.Source`. `moved`: disk traffic of all products since the room was made.
    `meter`: counts their operations."""

    def __init__(self, world: World, threads: int, plan: Plan, signs: Values | None = None) -> None:
        self.world, self.threads, self.plan, self.signs = world, threads, plan, signs
        self.sizes, self.spaces = plan.sizes, plan.spaces
        self.beside_made_bytes = plan.beside_made_bytes
        self._arrays: list[Array] = []
        self._entries: dict[int, Entry] = {}  # of `_arrays`, by identity
        self._given: dict[str, Array] = {}
        self._plans: dict[tuple[Any, ...], ProductPlan] = {}
        self.moved, self.meter = NOTHING, Meter()

    def array(self, name: str) -> Array:
        """A new array of zeros, or one that `take` has taken, by its name in the plan; closed with the room at the
        latest."""
        if name in self._given:
            return self._given.pop(name)
        return self._made(name)

    def take(self, other: Room, arrays: Mapping[str, Array]) -> None:
        """Takes arrays of another room, by name: `array` gives them here. One that this plan has in another place
        is copied there."""
        places = {name: self.plan.entry(name) for name in arrays}
        for name in sorted(arrays, key=lambda name: places[name].in_memory):  # those to disk come first
            array, entry = arrays[name], places[name]
            if (array.where == "disk") == entry.in_memory:
                made = self._made(name)
                move = partial(_copy, made, array)
                self.each_tile(made, move, "move arrays")
                other.release(array)
                array = made
            else:
                other.give(array)
                self._hold(array, entry)
            self._given[name] = array

    def has(self, array: Array) -> bool:
        """Whether an array belongs to this room, and is not closed."""
        return any(each is array for each in self._arrays)

    def give(self, array: Array) -> None:
        """Gives an array to another room."""
        self._arrays = [each for each in self._arrays if each is not array]

    def entry_of(self, array: Array) -> Entry:
        """The entry of an array in the plan."""
        return self._entries[id(array)]

    def _hold(self, array: Array, entry: Entry) -> None:
        self._arrays.append(array)
        self._entries[id(array)] = entry

    def _made(self, name: str) -> Array:
        entry = self.plan.entry(name)
        memory = "process" if self.world.size == 1 else "global"
        where = memory if entry.in_memory else "disk"
        options: dict[str, Any] = {} if entry.in_memory else {"cache_bytes": entry.cache_bytes}
        found = Array(self.world, entry.layout, where=where, store_dtype=entry.store_dtype, **options)
        self._hold(found, entry)
        return found

    def contract(
        self, subscripts: str, *operands: Any, out: Any = None, scale: float = 1.0, add: bool = False
    ) -> Any:
        """`outcore.einsum`, planned once for operands of the same forms. `out`: an array, or None for a new one of
        NumPy, the same at all processes. Terms of a sum over Q, the rows of three-index integrals, get their
        signs."""
        if self.signs is not None and subscripts.count("Q") == 2 and "Q" not in subscripts.split("->")[1]:
            return self._contract_signed(subscripts, *operands, out=out, scale=scale, add=add)
        result = out
        if out is None:
            inputs, output = subscripts.split("->")
            extents = {
                letter: length
                for letters, each in zip(inputs.split(","), operands, strict=True)
                for letter, length in zip(letters, each.shape, strict=True)
            }
            result = np.zeros([extents[letter] for letter in output])
        # A plan for an array times itself does not fit two arrays.
        same = tuple(next(n for n, other in enumerate(operands) if other is each) for each in operands)
        key = (subscripts, add, same, *(_form(each) for each in (*operands, result)))
        plan = self._plans.get(key)
        result, counted = einsum(
            subscripts,
            *operands,
            out=result,
            scale=scale,
            accumulate=add,
            memory=int(PANELS * self.plan.work_bytes),
            plan=plan,
            world=self.world,
            threads=self.threads,
            report=True,
        )
        self._plans[key] = counted.plan
        self.meter.add(counted.actual.flops)
        self.moved += Moved(counted.predicted.disk, counted.actual.disk, counted.plan.bound_bytes)
        return result

    def _contract_signed(self, subscripts: str, *operands: Any, out: Any, scale: float, add: bool) -> Any:
        """Products of the rows of either sign, one sign after the other; in memory, as models are small. Rows of
        Fock matrices, which follow those of three-index integrals, have the sign 1."""
        assert self.signs is not None
        whole: dict[int, Values] = {}
        for each in operands:
            whole[id(each)] = each.to_numpy() if isinstance(each, Array) else each
        rows = operands[0].shape[0]
        negative = np.concatenate([self.signs < 0, np.zeros(rows - len(self.signs), bool)])
        letters = subscripts.replace("Q", "P")  # a letter without signs
        for of, factor in ((~negative, scale), (negative, -scale)):
            if not of.any():
                continue
            parts = {name: np.ascontiguousarray(values[of]) for name, values in whole.items()}
            given = [parts[id(each)] for each in operands]
            out = self.contract(letters, *given, out=out, scale=factor, add=add)
            add = True
        return out

    def each_tile(
        self,
        array: Array,
        work: Callable[[Tile], None],
        what: str,
        *,
        held: int = HELD,
        beside: Space = no_space,
    ) -> None:
        """Calls `work` for each stored tile of an array, in threads of the process near to the tile. held, beside:
        the plan has left their work space, see `Recorder.each_tile`."""
        with self.world.together(what):
            team.each(array.own_tiles(), self.threads, lambda _, tile: work(tile))
        array.sync()

    def kernel(
        self, kernel: Kernel, run: Callable[[], Sequence[float]], memory_bytes: float | None = None
    ) -> None:
        """Calls `run`, which carries out the kernel and returns, for each part of it, the share that this run has
        done; counts the traffic, as `kernel` says. memory_bytes: of the kernel in each process; None: the work
        space of the plan."""
        done = run()
        on_disk = {each for each in (*kernel.operands, *kernel.results) if each.where == "disk"}
        planned, counted = (
            sum(bytes_.total for array, bytes_ in kernel.moved(shares).items() if array in on_disk)
            for shares in ([1.0] * len(done), done)
        )
        memory = (self.plan.work_bytes if memory_bytes is None else memory_bytes) * self.world.size
        self.moved += Moved(planned, counted, kernel.least_bytes(on_disk, memory))

    def each_row(
        self,
        array: Array,
        axis: int,
        work: Callable[[int, list[Tile]], None],
        what: str,
        *,
        held: int = HELD,
        beside: Space = no_space,
    ) -> None:
        """As `each_tile`, by rows: `work` gets the number of a block of one axis, and all tiles of the block that
        are near to this process."""
        rows: dict[int, list[Tile]] = {}
        for tile in array.own_tiles():
            rows.setdefault(tile[axis], []).append(tile)
        with self.world.together(what):
            team.each(list(rows.items()), self.threads, lambda _, row: work(*row))
        array.sync()

    def add(self, out: Array, other: Array) -> None:
        """out += other, of equal tiles."""
        self.each_tile(out, lambda tile: out.acc_tile(tile, other.get_tile(tile)), "sum")

    def release(self, *arrays: Array) -> None:
        """Closes arrays that are not needed any more."""
        self._arrays = [each for each in self._arrays if not any(each is one for one in arrays)]
        for array in arrays:
            array.close()

    def keep(self, *arrays: Array) -> int:
        """Closes all other arrays. Returns the memory of this process that is free then, by the plan (bytes)."""
        self.release(*(each for each in self._arrays if not any(each is one for one in arrays)))
        return self.plan.left_by(self.entry_of(each) for each in self._arrays)

    def close(self) -> None:
        for array in self._arrays:
            array.close()
        self._arrays.clear()


def _copy(to: Array, array: Array, tile: Tile) -> None:
    to.put_tile(tile, array.get_tile(tile))


def _form(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.shape
    return array.layout, array.where, array.store_dtype
