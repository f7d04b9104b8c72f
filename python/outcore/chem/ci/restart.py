"""Checkpoints of the states of a CI, committed in each iteration: x and H x of every root; for a packed search all
vectors of its small space, and their stored products.

They lie tile by tile, in an order that depends on the space alone, so a run continues from them on any number of
processes, with any budget. A killed run leaves the states of its last complete iteration, and beside them the
finished part of the products of the next one: see kept_products.py.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

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
    from outcore.chem.ci.plan import Plan
    from outcore.chem.ci.search import Iteration
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.tiles import VectorTiling
    from outcore.chem.ci.vector import Vectors
    from outcore.chem.small_space import Matrix
    from outcore.job.world import World

FORMAT = 3  # of states, and of the way corrections follow from them, as products of corrections are kept
STATES, PRODUCTS = "states", "products"  # names of kept vectors; for products see kept_products.py
_WHAT = "states of a CI"
_TYPES = ("float64", "float32")  # in the order in which they are looked for
_GO_ON = "go on from kept states"


def problem(
    space: Space,
    hamiltonian: Hamiltonian,
    roots: int,
    spin: int | None,
    spin_shift: float,
    packed: dict[str, Any] | None = None,
    *,
    any_integrals: bool = False,
) -> Problem:
    """Everything that states depend on. Integrals differ by rounding from run to run. packed: settings of packed
    vectors. any_integrals: orbitals change between runs, and states for any integrals may start a search."""
    settings: dict[str, Any] = {"orbitals": "change"}
    if not any_integrals:
        settings = {"integrals": [_weighed(each) for each in _integrals(hamiltonian)]}
    settings |= (packed or {}) | {
        "irreps of orbitals": space.irreps,
        "electrons": list(space.electrons),
        "irrep": space.irrep,
        "parity": space.parity,
        "roots": roots,
        "spin": spin,
        "spin shift": float(spin_shift),
    }
    return Problem(_WHAT, FORMAT, settings, converged=() if any_integrals else ("integrals",))


def _integrals(hamiltonian: Hamiltonian) -> list[Any]:
    count = (2, 3) if hamiltonian.unrestricted else (1, 1)
    return [*hamiltonian.ones[: count[0]], *hamiltonian.twos[: count[1]]]


def _weighed(integrals: Any) -> float:
    """A number that identifies integrals. It does not depend on the signs of orbitals."""
    sizes = np.abs(np.ravel(integrals))
    return float(sizes @ (1.5 + np.sin(np.arange(1.0, len(sizes) + 1.0))))


def allocated_bytes(directory: Path) -> int:
    """Bytes of kept states on the disk: a run that continues from them reuses their space."""
    return scratch.allocated_bytes(
        each for name in (STATES, PRODUCTS) for each in directory.glob(f"{name}.*")
    )


@dataclass(frozen=True)
class FoundStates:
    """States of the last complete iteration. iteration: its number, counted through all runs; 0: the start vectors.
    multiplied: H times the states belongs to the present integrals, bit by bit; if not, it has to be recomputed.
    ritz: see `Iteration`. small_space: of packed vectors, see `Iteration.kept`; None: they are start vectors."""

    states: KeptVectors
    iteration: int
    multiplied: bool
    ritz: Matrix
    small_space: dict[str, Any] | None = None


class KeptStates:
    """The kept states in a directory; for a packed search, all vectors of its small space. Methods are collective.

    Attributes: `digest`: of integrals, to the last bit; `stamp`: identifies the states that were found or kept
    last.

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
        chosen: Plan,
        *,
        any_integrals: bool = False,
    ) -> None:
        Stages(world, directory)
        self.world, self.directory, self.tiling = world, directory, tiling
        self.roots, self._cache_bytes = roots, chosen.cache_bytes
        self._packed, self._count = chosen.packed, chosen.states
        options = chosen.options
        packed = {"error bound": options.error_bound, "vectors": options.vectors} if self._packed else None
        self.problem = problem(
            tiling.space, hamiltonian, roots, spin, spin_shift, packed, any_integrals=any_integrals
        )
        self._record = self.problem.as_json()
        self._before = 0  # iterations of earlier runs that this one continues
        self.digest, self.stamp = digest(*_integrals(hamiltonian)), ""

    def path(self, name: str, dtype: str) -> Path:
        return self.directory / f"{name}.{dtype}"

    def open(
        self, name: str, dtype: str, count: int, check: Callable[[BlockSparseArray], None]
    ) -> BlockSparseArray | None:
        """Opens an array of `count` vectors that another run has kept; None if there is none. `check` inspects the
        metadata of the array.

        Raises OutcoreError: EIO (damaged), and as `check` does."""
        path = self.path(name, dtype)
        try:
            with offering(path):
                array = only_flushed(
                    BlockSparseArray.open(self.world, path, read_only=False, cache_bytes=self._cache_bytes)
                )
        except OutcoreError as error:
            if error.errno != errno.ENOENT or Path(error.path or path).name not in (path.name, "manifest"):
                raise
            return None
        try:
            with self.world.together(_GO_ON, path.name):
                check(array)
                wanted = KeptVectors.tilings(self.tiling, count)
                if array.dtype != np.dtype(dtype) or array.tilings != wanted:
                    raise damaged(_GO_ON, path, "its type or its tiles are others; remove it and run again")
        except OutcoreError:  # at all processes
            array.close()
            raise
        return array

    def find(self) -> FoundStates | None:
        """The states that another run has kept, in the highest precision; None if there are none.

        Raises OutcoreError: EINVAL (another problem), ENOTSUP (another format), EIO (damaged)."""
        for dtype in _TYPES:
            array = self.open(STATES, dtype, self._count, self._check)
            if array is not None:
                facts = array.metadata
                self._before, self.stamp = facts["iteration"], facts["stamp"]
                return FoundStates(
                    KeptVectors(self.tiling, array),
                    self._before,
                    facts["digest"] == self.digest,
                    np.array(facts["ritz_hartree"], float),
                    facts.get("small space"),
                )
        return None

    def _check(self, array: BlockSparseArray) -> None:
        facts, path = array.metadata, array.path or STATES
        self.problem.check(facts, _GO_ON, path)
        types = {"iteration": int, "digest": str, "stamp": str, "ritz_hartree": list}
        if any(type(facts.get(name)) is not kind for name, kind in types.items()):
            raise damaged(_GO_ON, path, "it does not say of which iteration it is; remove it and run again")
        ritz = facts["ritz_hartree"]
        if len(ritz) != self.roots or not all(type(each) is float and np.isfinite(each) for each in ritz):
            raise damaged(_GO_ON, path, "it does not say the energies of its states; remove it and run again")
        if self._packed and facts["iteration"] and not isinstance(facts.get("small space"), dict):
            raise damaged(_GO_ON, path, "it does not say what its vectors are; remove it and run again")

    def make(self, dtype: str, count: int, name: str = STATES) -> KeptVectors:
        """Makes new vectors in place of existing ones. Another run finds them only after the first `keep`."""
        codec = "fixed-point" if self._packed and name == STATES else "none"
        return KeptVectors.make(
            self.world, self.tiling, count, dtype, self.path(name, dtype), self._cache_bytes, codec
        )

    def begin(self, states: Vectors) -> None:
        """Keeps the start vectors, without H times them: another run may continue from them."""
        nothing = [0.0] * self.roots
        self._keep(states, {"iteration": 0, "digest": "", "ritz_hartree": nothing}, is_new=True)

    def keep(self, iteration: Iteration, states: Vectors) -> None:
        """Keeps the contents of these states, which `make` or `find` returned: another run continues from them."""
        facts = {
            "iteration": self._before + iteration.number,
            "digest": self.digest,
            "ritz_hartree": [float(each) for each in iteration.ritz],
            "energies_hartree": [float(each) for each in iteration.energies],
            "residuals": [float(each) for each in iteration.residuals],
        }
        if iteration.kept is not None:
            facts["small space"] = iteration.kept
        self._keep(states, facts, is_new=not iteration.as_found)
        if states.dtype == np.float64:
            self.remove(STATES, "float32")  # states of lower precision are no longer needed

    def _keep(self, states: Vectors, facts: dict[str, Any], *, is_new: bool) -> None:
        assert isinstance(states, KeptVectors)
        if is_new:
            self.stamp = self.world.broadcast(uuid4().hex)
        states.flush(self._record | {"stamp": self.stamp} | facts)

    def remove(self, name: str, *dtypes: str) -> None:
        """Removes the vectors of this name with these types, with all types if none is named."""
        with self.world.together("remove kept vectors", name, *dtypes):
            if self.world.node_rank == 0:
                for dtype in dtypes or _TYPES:
                    with suppress(FileNotFoundError):
                        shutil.rmtree(self.path(name, dtype))
