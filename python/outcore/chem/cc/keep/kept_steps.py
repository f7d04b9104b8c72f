"""Checkpoint of the finished steps of an iteration of coupled cluster, beside its amplitudes: rows of the products
of ladders, and arrays after some of their steps. Another run goes on after them, on any number of processes. It
recomputes rows of a ladder if its memory leads to other blocks of orbitals."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.steps import LadderRows, Steps
from outcore.chem.cc.keep.kept import CACHE_BYTES, State, copying
from outcore.job.unclosed import only_flushed
from outcore.keep.problem import fingerprint
from outcore.keep.stages import damaged, offering
from outcore.parallel import team
from outcore.tensor.arrays.array import Array

if TYPE_CHECKING:
    from outcore.chem.cc.keep.kept import KeptAmplitudes
    from outcore.chem.cc.plan.room import Room
    from outcore.keep.problem import Problem
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

STEPS = "iteration"
_GO_ON = "go on within an iteration"


class KeptSteps(Steps):
    """Collective.

    Args:
        amplitudes: commits the amplitudes of the iteration before its first step is committed.
        doubles: arrays of these amplitudes.
        orbitals: see KeptAmplitudes; here they must be the same to the last bit.
        name: names of files begin with it.

    Raises OutcoreError: EINVAL (of another problem), ENOTSUP (of another format), EIO (damaged).
    """

    def __init__(
        self,
        room: Room,
        directory: Path,
        problem: Problem,
        amplitudes: KeptAmplitudes,
        doubles: list[Array],
        orbitals: list[list[float]],
        name: str = STEPS,
    ) -> None:
        self.room, self._name = room, name
        self._directory, self._problem = directory, problem
        self._amplitudes, self._doubles = amplitudes, doubles
        self._orbitals = fingerprint(orbitals)
        self._opened: tuple[str, Array] | None = None  # one at a time: its cache has some tiles
        self._state: State | None = None
        self._numbers: dict[str, int] = {}  # number of the last step of each array
        self._found: dict[str, int] = {}  # number of the last step that another run has finished
        self._changed: dict[str, Callable[[], None]] = {}  # keep what has changed since the last commit

    def begin(self, state: State) -> None:
        """Begins a residual of these amplitudes. Kept steps of others are not used."""
        self._state = state
        self._numbers.clear()
        self._changed.clear()

    # ---- steps ----

    def step(self, name: str, array: Array, work: Callable[[], None]) -> None:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        if number == 1:
            self._found[name] = self._bring(name, array)
        if number <= self._found[name]:
            return
        work()
        self._changed[name] = partial(self._keep, name, array, number)
        if self._amplitudes.clock.is_late():
            self.commit()

    def _bring(self, name: str, array: Array) -> int:
        """Brings an array into the state after its last kept step of these amplitudes. Returns the number of this
        step; 0 without one."""
        kept = self.open(name)
        number = 0 if kept is None else kept.metadata.get("step")
        if not number or kept is None:
            return 0
        with self.room.world.together(_GO_ON, name):
            if type(number) is not int or kept.shape != array.shape:
                raise _damaged(self.path(name), f"step {number} of an array of shape {kept.shape}")
        self.room.each_tile(array, copying(array, kept), "kept steps")
        return number

    def _keep(self, name: str, array: Array, number: int) -> None:
        kept = self.made(name, array)
        self.room.each_tile(kept, copying(kept, array), "keep steps")
        self.flush(kept, step=number)

    # ---- rows ----

    def rows(
        self, products: Mapping[str, Array], count: int, parts: int, tile: Callable[[int, int], Tile]
    ) -> LadderRows:
        return KeptRows(self, products, count, parts, tile)

    def deadline(self) -> float:
        """When to stop work for the next commit, on the clock of time.monotonic. A commit that is due is made now:
        after the deadline a round would have one row for each process, with one thread at work."""
        clock = self._amplitudes.clock
        if clock.is_late():
            self.commit()
        return clock.deadline()

    def change(self, name: str, keep: Callable[[], None]) -> None:
        """Notes that something has changed since it was kept; `keep` keeps it. Commits if a commit is due."""
        self._changed[name] = keep
        if self._amplitudes.clock.is_late():
            self.commit()

    # ---- kept arrays ----

    def path(self, name: str) -> Path:
        return self._directory / f"{self._name}.{name}"

    def open(self, name: str) -> Array | None:
        """A kept array of the present amplitudes; None without one."""
        path, kept = self.path(name), self._open(name)
        if kept is None:
            return None
        facts = kept.metadata
        with self.room.world.together(_GO_ON, name):
            self._problem.check(facts, _GO_ON, path)
        return kept if facts.get("of") == self._mark else None

    def made(self, name: str, like: Array) -> Array:
        """A kept array to write to, with the layout of another."""
        found = self._open(name)
        if found is not None and found.layout.as_json() != like.layout.as_json():
            self.close()
            found = None
        if found is None:
            found = only_flushed(
                Array(
                    self.room.world,
                    like.layout,
                    path=self.path(name),
                    overwrite=True,
                    cache_bytes=CACHE_BYTES,
                )
            )
            self._opened = name, found
        return found

    def _open(self, name: str) -> Array | None:
        """A kept array of any amplitudes; None without one. The array that was open before is closed."""
        if self._opened is not None and self._opened[0] == name:
            return self._opened[1]
        self.close()
        path = self.path(name)
        try:
            with offering(path):
                found = only_flushed(
                    Array.open(self.room.world, path, read_only=False, cache_bytes=CACHE_BYTES)
                )
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None
        self._opened = name, found
        return found

    def flush(self, array: Array, **facts: Any) -> None:
        array.flush(self._problem.as_json() | {"of": self._mark} | facts)

    @property
    def _mark(self) -> dict[str, str]:
        assert self._state is not None
        return {"stamp": self._state.stamp, "orbitals": self._orbitals}

    def commit(self) -> None:
        """Commits the amplitudes, then all that has changed since the last commit."""
        assert self._state is not None
        try:
            with self._amplitudes.clock.committing():
                self._amplitudes.commit(self.room, self._doubles, self._state)
                for keep in self._changed.values():
                    keep()
        except BaseException:
            self.close()  # an array may have tiles of two steps: the committed one is opened again
            raise
        self._changed.clear()

    def remove(self) -> None:
        """Deletes all kept steps, once amplitudes have converged."""
        self.close()
        world, found = self.room.world, list[Path]()
        with world.together("remove kept steps"):
            found = sorted(each for each in self._directory.glob(f"{self._name}.*") if each.is_dir())
        for path in world.broadcast(found):
            # `open` would refuse an array that is damaged or was never committed.
            BlockSparseArray(
                world, [[0, 1]], [[0]], path=path, overwrite=True, cache_bytes=CACHE_BYTES
            ).remove()

    def close(self) -> None:
        """Closes without a commit."""
        if self._opened is not None:
            self._opened[1].drop()
        self._opened = None


class KeptRows(LadderRows):
    """Rows of one ladder in one residual. The constructor is collective, and brings the kept rows."""

    def __init__(
        self,
        steps: KeptSteps,
        products: Mapping[str, Array],
        count: int,
        parts: int,
        tile: Callable[[int, int], Tile],
    ) -> None:
        super().__init__(count)
        self._steps, self._products, self._tile = steps, products, tile
        self._done = np.ones((parts, count), bool)  # kept rows, of all processes
        for name, product in products.items():
            self._done &= self._kept(name, product)
        self._mine = np.zeros((parts, count), bool)  # rows of this process that are not kept yet
        if self._done.any():
            self._bring()

    def _kept(self, name: str, product: Array) -> Values:
        steps, wanted = self._steps, self._done.shape
        kept = steps.open(name)
        if kept is None or kept.layout.as_json() != product.layout.as_json():
            return np.zeros(wanted, bool)
        with steps.room.world.together(_GO_ON, name):
            done = np.array(kept.metadata.get("rows"))
            if done.shape != wanted or not ((done == 0) | (done == 1)).all():
                raise _damaged(steps.path(name), f"it does not say which of {wanted} rows it has")
        return done.astype(bool)

    def _bring(self) -> None:
        wanted = {self._tile(row, part) for part, row in np.argwhere(self._done)}
        for name, product in self._products.items():
            kept = self._steps.open(name)
            assert kept is not None

            def take(tile: Tile, product: Array = product, kept: Array = kept) -> None:
                if tile in wanted:
                    product.put_tile(tile, kept.get_tile(tile))

            self._steps.room.each_tile(product, take, "kept rows")

    def left(self, part: int) -> list[int]:
        return [int(row) for row in np.flatnonzero(~self._done[part])]

    def finish(self, part: int, row: int) -> None:
        self._mine[part, row] = True

    def rounds(self) -> Iterator[float]:
        more = True
        while more:
            yield self._steps.deadline()
            more = bool(self._steps.room.world.all_reduce(0 if self.exhausted else 1, "max"))
            self._steps.change("+".join(self._products), self._keep)

    def _keep(self) -> None:
        room = self._steps.room
        new = [self._tile(int(row), int(part)) for part, row in np.argwhere(self._mine)]
        done = self._done | (np.asarray(room.world.all_reduce(self._mine.astype(float))) > 0)
        for name, product in self._products.items():
            kept = self._steps.made(name, product)
            copy = copying(kept, product)
            with room.world.together("keep rows"):
                team.each(new, room.threads, lambda _, tile, copy=copy: copy(tile))  # type: ignore[misc]
            kept.sync()
            self._steps.flush(kept, rows=done.astype(int).tolist())
        self._done = done
        self._mine[...] = False


def _damaged(path: Path, detail: str) -> OutcoreError:
    return damaged(_GO_ON, path, f"{detail}; remove it and run again")
