"""A directory for checkpoints of one molecule at many geometries, which are computed one after the other."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from outcore.job import launch, preflight

_LAST, _NEXT = "last.chk", "next.chk"  # orbitals


class Geometries:
    """Each geometry has a checkpoint of its own in `folder`, which is removed when the next geometry is done; so a
    calculation that was stopped continues from its checkpoint. Each calculation begins with the orbitals of the
    geometry before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def options(self, geometry: str) -> dict[str, Any]:
        """Options of the command for a calculation at this geometry. Collective."""
        found = preflight.at_root(launch.world(), self._begin)
        given = {
            "checkpoint": str(self._folder / _name(geometry)),
            "save_orbitals": str(self._folder / _NEXT),
        }
        return given | ({"restart": str(self._folder / _LAST)} if found else {})

    def done(self, geometry: str) -> None:
        """Called after the calculation at this geometry has its results. Collective."""
        preflight.at_root(launch.world(), lambda: self._end(_name(geometry)))

    def _begin(self) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        return (self._folder / _LAST).exists()

    def _end(self, name: str) -> None:
        (self._folder / _NEXT).replace(self._folder / _LAST)
        for each in self._folder.iterdir():
            if each.is_dir() and each.name != name and len(each.name) == len(name):
                shutil.rmtree(each, ignore_errors=True)


def _name(geometry: str) -> str:
    return hashlib.sha256(geometry.encode()).hexdigest()[:16]
