"""Checkpoints of the unfinished products H x of an iteration of a CI, beside the kept states.

For each product the checkpoint has the sum of its finished tasks, tile by tile, and a description of these tasks.
It does not have x, which follows from the kept states to the last bit. Another run continues with the remaining
tasks, on any number of processes, with any budget: see finished.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.ci.finished import Finished
from outcore.chem.ci.passes import Place, copy
from outcore.chem.ci.restart import PRODUCTS
from outcore.chem.ci.vector import KeptVectors
from outcore.keep.clock import Clock
from outcore.keep.stages import damaged, offering

if TYPE_CHECKING:
    from outcore.arrays.sparse_array import BlockSparseArray
    from outcore.chem.ci.finished import Flags, ProductName
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.restart import KeptStates
    from outcore.chem.ci.search import Iteration
    from outcore.chem.ci.vector import Vectors

_WHAT = "products of a CI"
_GO_ON = "go on with kept products"


@dataclass
class Commits:
    """Counts of a search, for all processes together. found: products of another run that it continued. anew:
    whether it recomputed products of another run because integrals differ in rounding. count, written_bytes,
    seconds: of commits within iterations."""

    found: int = 0
    anew: bool = False
    count: int = 0
    written_bytes: int = 0
    seconds: float = 0.0


@dataclass
class _Changed:
    """A product under way. tiles: flags of those that have changed since the last commit."""

    y: Place
    finished: Finished
    tiles: Flags


class KeptProducts:
    """The kept products of one search, beside its states, which this object owns from now on. Methods are
    collective.

    Raises OutcoreError: EINVAL (another problem), ENOTSUP (another format), EIO (damaged)."""

    def __init__(self, states: KeptStates, threads: int) -> None:
        self.states, self.clock, self.commits = states, Clock(states.world), Commits()
        self._world, self._threads = states.world, threads
        self._tiling, self._roots = states.tiling, states.roots
        self._problem = replace(states.problem, what=_WHAT)
        self._record = self._problem.as_json()
        self._arrays: dict[str, KeptVectors | None] = {}  # by type; None: there is none yet
        self._changed: dict[ProductName, _Changed] = {}

    def begin(self, product: ProductName, y: Place) -> Finished:
        """Puts the finished part of a product of another run into y, which must be zero. Returns which part it
        is."""
        finished = self._found(product, y.vectors.dtype.name)
        if finished:
            kept = self._arrays[y.vectors.dtype.name]
            assert kept is not None
            self.commits.found += 1
            with offering(self.states.path(PRODUCTS, y.vectors.dtype.name)):
                copy(self._world, [Place(kept, product.root)], [y], self._threads, finished.tiles)
        self._changed[product] = _Changed(y, finished, np.zeros(len(self._tiling), bool))
        return finished

    def add(self, product: ProductName, tasks: Iterable[Task]) -> None:
        """Notes that y has the results of these tasks, at all processes. y must not change until states are kept,
        except by further tasks."""
        changed = self._changed[product]
        for task in tasks:
            changed.finished.add(task)
            changed.tiles[task.tiles(self._tiling)] = True

    @contextmanager
    def committing(self) -> Iterator[None]:
        """A context that commits all changed tiles at its end. `clock` says when a commit is due."""
        begin = time.monotonic()
        with self.clock.committing():
            yield
            self._commit()
        self.commits.seconds += time.monotonic() - begin

    def _commit(self) -> None:
        changed = {product: each for product, each in self._changed.items() if each.tiles.any()}
        try:
            for dtype in {each.y.vectors.dtype.name: None for each in changed.values()}:
                of_type = {k: v for k, v in changed.items() if v.y.vectors.dtype.name == dtype}
                self._keep(dtype, of_type)
        except BaseException:
            self.close()  # some tiles on disk may be newer than the commit
            raise
        self.commits.count += bool(changed)
        for each in changed.values():
            each.tiles[:] = False

    def keep(self, iteration: Iteration, states: Vectors) -> None:
        """Keeps states, from which another run continues. Products of their iteration are no longer needed."""
        self.states.keep(iteration, states)
        self._changed.clear()
        self.clock.restart()

    def close(self) -> None:
        """Closes the arrays without a commit. May be repeated."""
        for kept in self._arrays.values():
            if kept is not None:
                kept.drop()
        self._arrays.clear()

    def remove(self) -> None:
        """Removes kept products, also those of other runs."""
        self.close()
        self.states.remove(PRODUCTS)

    # ---- arrays ----

    def _keep(self, dtype: str, changed: dict[ProductName, _Changed]) -> None:
        (of,) = {product.of for product in changed}  # an iteration has one kind of product of each type
        kept = self._made(dtype)
        is_of = self._is_of(of)
        before = kept.metadata or {}
        finished = dict(before["finished"]) if before.get("is of") == is_of else {}
        for product, each in changed.items():
            copy(self._world, [each.y], [Place(kept, product.root)], self._threads, each.tiles)
            finished[str(product.root)] = each.finished.as_json()
            self.commits.written_bytes += int(self._tiling.sizes[each.tiles].sum()) * kept.dtype.itemsize
        kept.flush(self._record | {"is of": is_of, "finished": finished})

    def _is_of(self, of: str) -> dict[str, str]:
        """Identifies the states and integrals that kept products belong to."""
        return {"states": self.states.stamp, "integrals": self.states.digest, "vectors": of}

    def _found(self, product: ProductName, dtype: str) -> Finished:
        kept, wanted = self._open(dtype), self._is_of(product.of)
        is_of = None if kept is None else kept.metadata.get("is of")
        if kept is None or is_of != wanted:
            if isinstance(is_of, dict) and is_of.get("states") == wanted["states"]:
                self.commits.anew |= is_of.get("integrals") != wanted["integrals"]
            return Finished(self._tiling)
        path = self.states.path(PRODUCTS, dtype)
        with self._world.together(_GO_ON, path.name):
            finished = kept.metadata.get("finished")
            if not isinstance(finished, dict):
                raise damaged(_GO_ON, path, "it does not say what is finished; remove it and run again")
            found = finished.get(str(product.root))
            try:
                return Finished(self._tiling) if found is None else Finished.of_json(self._tiling, found)
            except ValueError as error:
                raise damaged(_GO_ON, path, f"{error}; remove it and run again") from error

    def _open(self, dtype: str) -> KeptVectors | None:
        if dtype not in self._arrays:
            found = self.states.open(PRODUCTS, dtype, self._roots, self._check)
            self._arrays[dtype] = None if found is None else KeptVectors(self._tiling, found)
        return self._arrays[dtype]

    def _check(self, array: BlockSparseArray) -> None:
        self._problem.check(array.metadata, _GO_ON, array.path or PRODUCTS)

    def _made(self, dtype: str) -> KeptVectors:
        kept = self._open(dtype)
        if kept is None:
            kept = self._arrays[dtype] = self.states.make(dtype, self._roots, PRODUCTS)
        return kept
