"""The checkpoint of a method at one geometry after another: a directory of the geometry under way, below that of
the whole calculation. It has the orbitals of the SCF; methods after the SCF keep their own parts there."""

from __future__ import annotations

import errno
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore.base.errors import OutcoreError
from outcore.chem import restart
from outcore.chem.problem import digest
from outcore.chem.ri.problem import of_mean_field
from outcore.keep.stages import Stages

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.gradients.densities import Matrix
    from outcore.job.world import World

_PREFIX = "geometry."
_OURS = re.compile(rf"{re.escape(_PREFIX)}[0-9a-f]{{16}}")


class GeometryCheckpoint:
    """Methods are collective. Raises OutcoreError.

    Args:
        directory: of the whole calculation; made if it does not exist.
    """

    def __init__(self, world: World, directory: Path) -> None:
        self.world, self._directory = world, directory

    def at(self, mol: Mole) -> Path:
        """The directory of a geometry, which exists from now on. Those of other geometries are removed: the caller
        has kept their results, or will not come back to them. A geometry that differs in its last bits is another
        one."""
        directory = Stages(self.world, self._directory).directory
        name = f"{_PREFIX}{digest(mol.atom_coords())[:16]}"
        self._remove(but=name)
        return Stages(self.world, directory / name).directory

    def remove(self) -> None:
        """Removes the directory of the geometry under way, once its results are kept."""
        self._remove()

    def _remove(self, but: str = "") -> None:
        with self.world.together("remove the checkpoint of a geometry"):
            if self.world.node_rank:  # the directory may be one of each node
                return
            for path in self._directory.glob(f"{_PREFIX}*"):
                if path.name == but or not _OURS.fullmatch(path.name):
                    continue
                try:
                    shutil.rmtree(path)
                except FileNotFoundError:  # by another node
                    continue
                except OSError as error:
                    raise OutcoreError(
                        error.errno or errno.EIO, "remove the checkpoint of a geometry", path=path
                    ) from error


def run_scf(scf: Any, mol: Mole, world: World, place: Path | None) -> None:
    """Runs the SCF of a PySCF scanner at a geometry. It begins with the orbitals in the directory `place` and keeps
    its own there; converged ones are taken as they are. place: of `GeometryCheckpoint`; None: nothing is kept.
    Collective."""
    if place is None:
        scf(mol)
        return
    scf.reset(mol)
    kind = next((each for each in ("UHF", "ROHF") if scf.istype(each)), "RHF")
    found, keeper = restart.begin(
        scf, kind, world, _quiet, checkpoint=place, restart=None, more=partial(of_mean_field, scf)
    )
    if found is not None and found.finished(scf):
        found.restore(scf)
        return
    before = scf.callback

    def keep(state: dict[str, Any]) -> None:
        assert keeper is not None
        keeper.cycle(state, int(state["cycle"]) + 1)
        if before is not None:
            before(state)

    if keeper is not None:
        scf.callback = keep
    try:
        scf(mol, **({} if found is None else {"dm0": found.density(scf)}))
    finally:
        scf.callback = before
    with world.together("keep orbitals"):
        if keeper is not None:
            keeper.finish()


def _quiet(_line: str) -> None:
    pass


class KeptGradients:
    """A scanner of gradients of an SCF, with a checkpoint of the geometry under way. Calls are collective."""

    def __init__(self, scanner: Any, places: GeometryCheckpoint) -> None:
        self._scanner, self._places = scanner, places

    def __call__(self, mol: Mole) -> tuple[float, Matrix]:
        """Energy (Hartree) and gradient [atom][x] (Hartree/Bohr)."""
        scanner = self._scanner
        scanner.reset(mol)
        run_scf(scanner.base, mol, self._places.world, self._places.at(mol))
        return float(scanner.base.e_tot), scanner.kernel()

    def remove_checkpoint(self) -> None:
        """Removes the checkpoint of the last geometry. Collective."""
        self._places.remove()
