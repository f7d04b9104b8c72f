"""Orbitals of an SCF that are kept in a directory, and found again, bit by bit the same."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.chem import restart
from outcore.chem.problem import Settings
from outcore.chem.reference import mark_canonical


def load(mf: Any, method: str, name: Path, more: Settings) -> dict[str, Any] | None:
    """What is in a checkpoint of `restart.Checkpoint`: orbitals by name, and its meta; None if there is none. Not
    collective. Raises OutcoreError: EIO (damaged), ENOTSUP (of another format), EINVAL (of another problem)."""
    try:
        orbitals, meta = restart.load(mf, method, name, more)
    except OutcoreError as error:
        if error.errno != errno.ENOENT:
            raise
        return None
    return orbitals | {"meta": meta}


def finished(mf: Any, found: dict[str, Any]) -> bool:
    """Whether the orbitals are converged as far as those of `mf` are to be; if not, an SCF goes on from them."""
    meta = found["meta"]
    return bool(meta["converged"] and meta["conv_tol"] <= mf.conv_tol)


def restore(mf: Any, found: dict[str, Any]) -> None:
    """Leaves a mean-field object as it was when its converged orbitals were kept."""
    for name in ("mo_coeff", "mo_energy", "mo_occ"):
        setattr(mf, name, found[name])
    mf.e_tot, mf.converged, mf.cycles = found["meta"]["energy_hartree"], True, found["meta"]["cycle"]
    mark_canonical(mf)
