"""Checkpoints of the states of a multireference CI, committed in each iteration: a killed run loses only the
iteration under way. The blocks depend on the space alone: another run continues on any number of processes, with
any memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.chem.mrci.integrals import weighed
from outcore.job.unclosed import only_flushed
from outcore.keep.problem import Problem
from outcore.keep.stages import Stages, damaged, offering

if TYPE_CHECKING:
    from outcore.chem.mrci.orbitals import Correlated
    from outcore.chem.mrci.records import Records
    from outcore.chem.mrci.solver import Iteration
    from outcore.chem.mrci.vectors import Array, Vector, VectorLayout
    from outcore.job.world import World

FORMAT = 3
_NAME = "states"
_GO_ON = "go on from kept states"
_CACHE_BYTES = 1 << 20  # more would be memory that no plan knows

States = Callable[[int], "Array"]  # returns [state][element] of a block


def problem(
    found: Correlated, records: Records, roots: int, spin: int, functional: str, spin_shift: float
) -> Problem:
    """Everything that states depend on. Integrals differ by rounding from run to run."""
    settings = {
        "integrals": found.two.made_of or [weighed(found.one), weighed(found.two.rows)],
        "irreps of orbitals": [*found.orbitals.internal, *found.orbitals.external],
        "internal orbitals": len(found.orbitals.internal),
        "references": hashlib.sha256(records.references.tobytes()).hexdigest(),
        "interacting": records.interacting,
        "electrons": list(records.electrons),
        "irrep": records.irrep,
        "spin": spin,
        "spin shift": float(spin_shift),
        "roots": roots,
        "functional": functional,
    }
    return Problem("states of a multireference CI", FORMAT, settings, converged=("integrals",))


class KeptStates:
    """The kept states in a directory. Methods are collective.

    Raises OutcoreError: ENOENT (no such directory)."""

    def __init__(
        self, world: World, directory: Path, layout: VectorLayout, wanted: Problem, roots: int
    ) -> None:
        Stages(world, directory)
        self._world, self._layout, self._roots, self._problem = world, layout, roots, wanted
        self._path = directory / _NAME
        self._array: BlockSparseArray | None = None
        self._before = 0

    @property
    def _tilings(self) -> list[list[int]]:
        ends = [self._layout.slice(block).stop for block in range(len(self._layout.blocks))]
        return [list(range(self._roots + 1)), [0, *ends]]

    @property
    def _mine(self) -> range:
        return range(self._world.rank, len(self._layout.blocks), self._world.size)

    def find(self, states: list[Vector]) -> bool:
        """Reads the states of another run into `states`. Returns whether there were any.

        Raises OutcoreError: EINVAL (another problem), ENOTSUP (another format), EIO (damaged)."""
        try:
            with offering(self._path):
                array = only_flushed(
                    BlockSparseArray.open(self._world, self._path, read_only=False, cache_bytes=_CACHE_BYTES)
                )
        except OutcoreError as error:
            if Path(error.path or self._path).name in (self._path.name, "manifest") and error.errno == 2:
                return False
            raise
        try:
            with self._world.together(_GO_ON, self._path.name):
                self._check(array)
                for block in self._mine:
                    size = self._layout.size(block)
                    for root, state in enumerate(states):
                        data = np.empty((1, size))
                        array.get_tile_async((root, block), data).wait()
                        state.write(block, data[0])
        except OutcoreError:  # at all processes
            array.close()
            raise
        self._array, self._before = array, int(array.metadata["iteration"])
        return True

    def _check(self, array: BlockSparseArray) -> None:
        facts = array.metadata
        self._problem.check(facts, _GO_ON, self._path)
        if array.tilings != self._tilings or type(facts.get("iteration")) is not int:
            raise damaged(_GO_ON, self._path, "its tiles are others; remove it and run again")

    def keep(self, iteration: Iteration, states: States) -> None:
        """Keeps the states, from which another run continues."""
        if self._array is None:
            there = np.ones((self._roots, len(self._layout.blocks)), bool)
            self._array = only_flushed(
                BlockSparseArray(
                    self._world,
                    self._tilings,
                    there,
                    "float64",
                    path=self._path,
                    overwrite=True,
                    cache_bytes=_CACHE_BYTES,
                )
            )
        with self._world.together("keep states"):
            for block in self._mine:
                data = states(block)
                for root in range(self._roots):
                    tile = np.ascontiguousarray(data[root : root + 1])
                    self._array.put_tile_async((root, block), tile).wait()
        facts: dict[str, Any] = {
            "iteration": self._before + iteration.number,
            "correlation_energies_hartree": [float(each) for each in iteration.energies],
            "residuals": [float(each) for each in iteration.residuals],
        }
        self._array.flush(self._problem.as_json() | facts)

    @property
    def iteration(self) -> int:
        """Number of iterations of the earlier runs that this one continues."""
        return self._before

    def close(self) -> None:
        """Closes without a commit: only `keep` commits, because after an error tiles may belong to two iterations.
        May be repeated."""
        if self._array is not None:
            self._array.drop()
            self._array = None
