"""States of a CI that outlast a run: x and H x of every root, committed in each iteration.

They lie tile by tile, in an order that depends on the space alone, so a run goes on from them on any number of
processes, with any budget. A killed run leaves the states of its last complete iteration.
"""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.chem.ci.vector import KeptVectors
from outcore.chem.problem import digest
from outcore.job import scratch
from outcore.job.unclosed import only_flushed
from outcore.keep.problem import Problem
from outcore.keep.stages import Stages, damaged, offering

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian
    from outcore.chem.ci.search import Iteration
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.tiles import VectorTiling
    from outcore.chem.ci.vector import Vectors
    from outcore.job.world import World

FORMAT = 2
_WHAT = "states of a CI"
_TYPES = ("float64", "float32")  # which to look for first
_GO_ON = "go on from kept states"


def problem(
    space: Space, hamiltonian: Hamiltonian, roots: int, spin: int | None, spin_shift: float
) -> Problem:
    """All that states depend on. Integrals differ by rounding from run to run."""
    settings = {
        "integrals": [_weighed(each) for each in _integrals(hamiltonian)],
        "irreps of orbitals": space.irreps,
        "electrons": list(space.electrons),
        "irrep": space.irrep,
        "parity": space.parity,
        "roots": roots,
        "spin": spin,
        "spin shift": float(spin_shift),
    }
    return Problem(_WHAT, FORMAT, settings, converged=("integrals",))


def _integrals(hamiltonian: Hamiltonian) -> list[Any]:
    count = (2, 3) if hamiltonian.unrestricted else (1, 1)
    return [*hamiltonian.ones[: count[0]], *hamiltonian.twos[: count[1]]]


def _weighed(integrals: Any) -> float:
    """A number that tells integrals apart, whatever the signs of orbitals."""
    sizes = np.abs(np.ravel(integrals))
    return float(sizes @ (1.5 + np.sin(np.arange(1.0, len(sizes) + 1.0))))


def allocated_bytes(directory: Path) -> int:
    """What kept states take on the disk: a run that goes on from them writes in their place."""
    return scratch.allocated_bytes(directory.glob("states.*"))


@dataclass(frozen=True)
class FoundStates:
    """States of the last complete iteration, counted through all runs. multiplied: H times them is that of the
    present integrals, bit by bit; it is to be made again otherwise."""

    states: KeptVectors
    iteration: int
    multiplied: bool


class KeptStates:
    """In a directory. Methods are collective.

    Raises OutcoreError: ENOENT (no such directory)."""

    def __init__(
        self,
        world: World,
        directory: Path,
        tiling: VectorTiling,
        hamiltonian: Hamiltonian,
        roots: int,
        spin: int | None,
        spin_shift: float,
        cache_bytes: int,
    ) -> None:
        Stages(world, directory)
        self.world, self.directory, self._tiling = world, directory, tiling
        self._roots, self._cache_bytes = roots, cache_bytes
        self._problem = problem(tiling.space, hamiltonian, roots, spin, spin_shift)
        self._record = self._problem.as_json()
        self._before = 0  # iterations of the runs that this one goes on from
        self._digest = digest(*_integrals(hamiltonian))

    def _path(self, dtype: str) -> Path:
        return self.directory / f"states.{dtype}"

    def find(self) -> FoundStates | None:
        """What another run has kept, of the highest precision.

        Raises OutcoreError: EINVAL (of another problem), ENOTSUP (in another format), EIO (damaged)."""
        for dtype in _TYPES:
            path = self._path(dtype)
            try:
                with offering(path):
                    array = only_flushed(
                        BlockSparseArray.open(
                            self.world, path, read_only=False, cache_bytes=self._cache_bytes
                        )
                    )
            except OutcoreError as error:
                if error.errno != errno.ENOENT or Path(error.path or path).name not in (
                    path.name,
                    "manifest",
                ):
                    raise
                continue
            try:
                with self.world.together(_GO_ON, path.name):
                    self._check(array, dtype, path)
            except OutcoreError:  # at all processes
                array.close()
                raise
            facts = array.metadata
            states = KeptVectors(self._tiling, array)
            self._before = int(facts["iteration"])
            return FoundStates(states, self._before, facts["digest"] == self._digest)
        return None

    def _check(self, array: BlockSparseArray, dtype: str, path: Path) -> None:
        facts = array.metadata
        self._problem.check(facts, _GO_ON, path)
        if type(facts.get("iteration")) is not int or type(facts.get("digest")) is not str:
            raise damaged(_GO_ON, path, "it does not say of which iteration it is; remove it and run again")
        wanted = KeptVectors.tilings(self._tiling, 2 * self._roots)
        if array.dtype != np.dtype(dtype) or array.tilings != wanted:
            raise damaged(_GO_ON, path, "its type or its tiles are others; remove it and run again")

    def make(self, dtype: str, count: int) -> KeptVectors:
        """New states, in place of what is there. They count from the first `keep` on."""
        return KeptVectors.make(self.world, self._tiling, count, dtype, self._path(dtype), self._cache_bytes)

    def keep(self, iteration: Iteration, states: Vectors) -> None:
        """What is in these states, made by `make` or found by `find`, is what another run goes on from."""
        assert isinstance(states, KeptVectors)
        facts: dict[str, Any] = {
            "iteration": self._before + iteration.number,
            "digest": self._digest,
            "energies_hartree": [float(each) for each in iteration.energies],
            "residuals": [float(each) for each in iteration.residuals],
        }
        states.flush(self._record | facts)
        if states.dtype == np.float64:
            self._remove("float32")

    def _remove(self, dtype: str) -> None:
        """Of a lower precision: it is needed no more."""
        path = self._path(dtype)
        with self.world.together("remove kept states", dtype):
            if self.world.node_rank == 0:
                with suppress(FileNotFoundError):
                    shutil.rmtree(path)
