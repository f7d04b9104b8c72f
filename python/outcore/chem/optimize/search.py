"""geomeTRIC at the first process asks for energies and gradients, which all processes make (Wang, Song, J. Chem.
Phys. 144, 214108 (2016))."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import extras
from outcore.base.errors import NotConverged

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.optimize.steps import GeometrySteps, Matrix
    from outcore.job.world import World

    Scanner = Callable[[Mole], tuple[float, Matrix]]

SETS = ("GAU_LOOSE", "GAU", "GAU_TIGHT", "GAU_VERYTIGHT", "TURBOMOLE", "NWCHEM_LOOSE")  # geomeTRIC's
COORDINATES = ("tric", "dlc", "hdlc", "prim", "cart")

# geomeTRIC's own lines go nowhere: the run reports its results.
_LOG = """[loggers]
keys=root
[handlers]
keys=none
[formatters]
keys=
[logger_root]
level=WARNING
handlers=none
[handler_none]
class=logging.NullHandler
args=()
"""


class GeometrySearch:
    """`scanner` is collective, `steps` of the first process. `tell(number, energy, change, gradient, found)` is
    called after each step there."""

    def __init__(
        self,
        world: World,
        mol: Mole,
        scanner: Scanner,
        steps: GeometrySteps | None,
        tell: Callable[[int, float, float, Matrix, bool], None],
    ) -> None:
        self._world, self._mol, self._scanner, self._steps, self._tell = world, mol, scanner, steps, tell
        self.count, self.energy = 0, float("nan")
        self.places = np.asarray(mol.atom_coords())
        self.gradient = np.zeros_like(self.places)

    def run(self, convergence: str, coordinates: str, most: int) -> None:
        """Searches until the geometry has converged. Collective. Raises NotConverged, and errors of the scanner."""
        world = self._world
        failure: Exception | None = None
        with world.together("optimise", convergence, coordinates, most):
            _check()
        if world.rank == 0:
            try:
                self._lead(convergence, coordinates, most)
            except Exception as error:
                if getattr(error, "collective", False):
                    raise
                failure = error
            world.broadcast(None)
        else:
            nothing: Any = None
            while (places := world.broadcast(nothing)) is not None:
                self._scanner(self._at(places))
        unfinished = world.broadcast(failure.detail if isinstance(failure, NotConverged) else "")
        if unfinished:  # `together` would raise an error of the base class
            raise NotConverged(None, "optimise", detail=unfinished)
        with world.together("optimise"):
            if failure is not None:
                raise failure
        self.count, self.energy, self.places, self.gradient = world.broadcast(
            (self.count, self.energy, self.places, self.gradient)
        )

    def _at(self, places: Matrix) -> Mole:
        return self._mol.set_geom_(places, unit="Bohr", inplace=False)

    def _lead(self, convergence: str, coordinates: str, most: int) -> None:
        from geometric.engine import Engine
        from geometric.errors import GeomOptNotConvergedError
        from geometric.molecule import Molecule
        from geometric.nifty import bohr2ang
        from geometric.optimize import run_optimizer

        search = self

        class Energies(Engine):  # type: ignore[misc]
            def calc_new(self, coords: Any, _dirname: Any) -> dict[str, Any]:
                energy, gradient = search._step(np.array(coords, float).reshape(-1, 3))
                return {"energy": energy, "gradient": gradient.ravel()}

        molecule = Molecule()
        molecule.elem = [self._mol.atom_pure_symbol(atom) for atom in range(self._mol.natm)]
        molecule.xyzs = [self._mol.atom_coords() * bohr2ang]
        with tempfile.TemporaryDirectory() as folder:  # for files of geomeTRIC
            log = os.path.join(folder, "log.ini")
            with open(log, "w") as file:
                file.write(_LOG)
            try:
                run_optimizer(
                    customengine=Energies(molecule),
                    input="outcore.in",
                    prefix=os.path.join(folder, "outcore"),
                    convergence_set=convergence,
                    coordsys=coordinates,
                    maxiter=most,
                    logIni=log,
                    qdata=False,
                )
            except GeomOptNotConvergedError as error:
                raise NotConverged(
                    None,
                    "optimise",
                    detail=f"after {self.count} steps the largest element of the gradient is "
                    f"{abs(self.gradient).max():.1e} Eh/bohr; raise --max-steps, go on from --checkpoint, or ask "
                    "for less with --convergence",
                ) from error

    def _step(self, places: Matrix) -> tuple[float, Matrix]:
        assert self._steps is not None
        known = self._steps.find(places)
        if known is None:
            self._world.broadcast(places)
            try:
                energy, gradient = self._scanner(self._at(places))
            except NotConverged as error:
                error.collective = True  # all processes have the same residuals
                raise
            self._steps.add(places, float(energy), np.asarray(gradient))
        else:
            energy, gradient = known
        change = energy - self.energy
        self.count, self.energy, self.places, self.gradient = self.count + 1, energy, places, gradient
        self._steps.show(places, energy, gradient)
        self._tell(self.count, energy, change, gradient, known is not None)
        return energy, gradient


def _check() -> None:
    """Raises OutcoreError if geomeTRIC is missing."""
    try:
        import geometric  # noqa: F401
    except ImportError as error:
        raise extras.needed("geometric", "optimise") from error
