"""Orbitals of an SCF that are kept in a directory, and found again, bit by bit the same."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np

from outcore import checkpoint
from outcore.chem import restart
from outcore.chem.reference import mark_canonical
from outcore.errors import OutcoreError
from outcore.world import World

_NAMES = ("mo_coeff", "mo_energy", "mo_occ")


def load(mf: Any, method: str, name: Path) -> dict[str, Any] | None:
    """What is in a checkpoint of `restart.Checkpoint`: orbitals by name, and its meta; None if there is none. Not
    collective. Raises OutcoreError: EIO (damaged), EINVAL (of another molecule, basis or method)."""
    try:
        _, meta = restart.density(mf, method, name)
    except OutcoreError as error:
        if error.errno != errno.ENOENT:
            raise
        return None
    with World("self") as world, checkpoint.load(world, name) as saved:
        return {each: np.asarray(saved[each]) for each in _NAMES} | {"meta": meta}


def restore(mf: Any, found: dict[str, Any]) -> None:
    """Leaves a mean-field object as it was when its converged orbitals were kept."""
    for each in _NAMES:
        setattr(mf, each, found[each])
    mf.e_tot, mf.converged, mf.cycles = found["meta"]["energy_hartree"], True, found["meta"]["cycle"]
    mark_canonical(mf)
