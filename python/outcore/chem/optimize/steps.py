"""Steps of an optimisation: energies and gradients of geometries, kept for another run, and their trajectory."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.units import HARTREE
from outcore.keep import stages
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from pyscf.gto import Mole

Matrix = np.ndarray[Any, np.dtype[np.float64]]

NAME = "optimization"  # in the directory of a checkpoint
_FORMAT = 1
_SAME = 1e-8  # largest difference of a geometry that is reached again (Bohr)
BOHR = 0.52917721092  # Angstrom, of PySCF


class GeometrySteps:
    """The first process has it. `checkpoint`: a directory; None: nothing is kept. `settings`: those that energies
    depend on. `trajectory`: a file of extended XYZ; None: none is written.

    Raises OutcoreError: EINVAL (kept steps are of another problem), EIO (damaged)."""

    def __init__(
        self, mol: Mole, settings: dict[str, Any], checkpoint: Path | None, trajectory: Path | None
    ) -> None:
        self._symbols = [mol.atom_pure_symbol(atom) for atom in range(mol.natm)]
        self._places, self._energies, self._gradients = list[Matrix](), list[float](), list[Matrix]()
        self._problem = Problem("steps of an optimisation", _FORMAT, settings)
        self._path = None if checkpoint is None else checkpoint / NAME
        self._trajectory = trajectory
        self.kept = 0
        if self._path is not None and not self._load(self._path, mol.natm):
            self._save(self._path)  # another problem must not find the checkpoint of the first step
        if trajectory is not None:
            trajectory.write_text("")

    def _load(self, path: Path, atoms: int) -> bool:
        """Loads kept steps, if there is a record of them."""
        try:
            with stages.opened(path, self._problem, "optimise") as saved:
                forms = {name: saved.form(name)[0] for name in ("places", "energies", "gradients")}
                count = forms["energies"][0]
                if forms != {
                    "places": (count, atoms, 3),
                    "energies": (count,),
                    "gradients": (count, atoms, 3),
                }:
                    raise stages.damaged("optimise", path, f"its arrays are {forms}")
                found = {name: np.array(saved[name]) for name in forms}
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return False
        self._places, self._gradients = list(found["places"]), list(found["gradients"])
        self._energies = [float(each) for each in found["energies"]]
        self.kept = count
        return True

    def find(self, places: Matrix) -> tuple[float, Matrix] | None:
        """Energy (Hartree) and gradient (Hartree/Bohr) at places [atom][x] (Bohr), if they are known."""
        for at, energy, gradient in zip(self._places, self._energies, self._gradients, strict=True):
            if abs(at - places).max() < _SAME:
                return energy, gradient
        return None

    def add(self, places: Matrix, energy: float, gradient: Matrix) -> None:
        """Adds a step, and writes the checkpoint at once."""
        self._places.append(places)
        self._energies.append(energy)
        self._gradients.append(gradient)
        if self._path is not None:
            self._save(self._path)

    def _save(self, path: Path) -> None:
        shape = len(self._energies), len(self._symbols), 3
        arrays = {
            "places": np.array(self._places).reshape(shape),
            "energies": np.array(self._energies),
            "gradients": np.array(self._gradients).reshape(shape),
        }
        stages.save(path, self._problem, arrays, {})

    def show(self, places: Matrix, energy: float, gradient: Matrix) -> None:
        """Writes a frame of the trajectory, in eV and Angstrom as programs read it."""
        if self._trajectory is None:
            return
        forces = -gradient * (HARTREE / BOHR)
        lines = [
            str(len(places)),
            f"Properties=species:S:1:pos:R:3:forces:R:3 energy={energy * HARTREE:.10f} "
            f'energy_hartree={energy:.12f} pbc="F F F"',
        ]
        for symbol, place, force in zip(self._symbols, places * BOHR, forces, strict=True):
            lines.append(f"{symbol:<3}" + "".join(f"{each:18.10f}" for each in (*place, *force)))
        try:
            with self._trajectory.open("a") as file:
                file.write("\n".join(lines) + "\n")
        except OSError as error:
            raise OutcoreError(
                error.errno or errno.EIO, "write the trajectory", path=self._trajectory
            ) from error
