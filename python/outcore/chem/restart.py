"""Checkpoints of an SCF: orbitals, from which another run goes on, on any number of processes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import checkpoint
from outcore.chem.molecule import problem, same_problem
from outcore.errors import OutcoreError
from outcore.world import World

if TYPE_CHECKING:
    from pyscf.gto import Mole

Array = np.ndarray[Any, np.dtype[Any]]


class Checkpoint:
    """Keeps the orbitals of the newest cycle under a name. Belongs to one process, the one that drives the SCF;
    not collective. Raises OutcoreError; a save that fails leaves the checkpoint before."""

    def __init__(self, mol: Mole, method: str, name: str | os.PathLike[str]) -> None:
        self._name = Path(name)
        self._facts = {"what": "SCF orbitals", "method": method}
        self._problem = problem(mol)
        if not self._name.absolute().parent.is_dir():
            raise OutcoreError(errno.ENOENT, "write checkpoint", path=self._name, detail="no such directory")

    def cycle(self, state: dict[str, Any]) -> None:
        """For mf.callback: saves in every cycle."""
        orbitals = {key: state[key] for key in ("mo_coeff", "mo_energy", "mo_occ")}
        self.save(orbitals, int(state["cycle"]) + 1, float(state["e_tot"]), converged=False)

    def save(self, orbitals: dict[str, Array], cycle: int, energy: float, *, converged: bool) -> None:
        """orbitals: mo_coeff [n][orbitals] (UHF: [2][n][orbitals]), mo_energy (Hartree), mo_occ."""
        meta = {**self._facts, "cycle": cycle, "energy_hartree": energy, "converged": converged}
        with World("self") as world:
            arrays = {key: np.asarray(each) for key, each in orbitals.items()}
            checkpoint.save(world, self._name, {"problem": self._problem, **arrays}, meta)


def density(mf: Any, method: str, name: str | os.PathLike[str]) -> tuple[Array, dict[str, Any]]:
    """The density matrix of the orbitals in a checkpoint, and its meta. Not collective.

    Raises OutcoreError: ENOENT, EIO (damaged), EINVAL (of another molecule, basis or method).
    """
    with World("self") as world, checkpoint.load(world, name) as saved:
        meta = saved.meta
        if not isinstance(meta, dict) or meta.get("what") != "SCF orbitals":
            raise OutcoreError(errno.EINVAL, "restart", path=name, detail="it holds no SCF orbitals")
        missing = [key for key in ("problem", "mo_coeff", "mo_occ") if key not in saved]
        if missing or not isinstance(meta.get("method"), str):
            raise _damaged(name, f"it lacks {', '.join(missing) or 'the method'}")
        if meta["method"] != method:
            raise OutcoreError(
                errno.EINVAL, f"restart {method}", path=name, detail=f"it is of {meta['method']}"
            )
        found, wanted = saved["problem"], problem(mf.mol)
        if not same_problem(found, wanted):
            raise OutcoreError(
                errno.EINVAL, "restart", path=name, detail="it is of another geometry, charge, spin or basis"
            )
        orbitals, occupations = saved["mo_coeff"], saved["mo_occ"]
        functions = mf.mol.nao
        if occupations.ndim != orbitals.ndim - 1 or orbitals.shape[-2:] != (functions, occupations.shape[-1]):
            raise _damaged(name, f"orbitals of shape {orbitals.shape} for {functions} functions")
        if orbitals.shape[:-2] not in ((), (2,)) or occupations.shape[:-1] != orbitals.shape[:-2]:
            raise _damaged(name, f"occupations of shape {occupations.shape} for orbitals {orbitals.shape}")
        return np.asarray(mf.make_rdm1(orbitals, occupations)), meta


def _damaged(name: str | os.PathLike[str], detail: str) -> OutcoreError:
    return OutcoreError(errno.EIO, "restart", path=name, detail=f"damaged or written wrongly: {detail}")
