"""Options that `outcore ri-scf` and `outcore rimp2` have in common, named once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore.chem.options import MoleculeOptions
from outcore.chem.ri.plan import check_storage
from outcore.job import preflight


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """What both commands are asked for."""

    screening: Annotated[
        float, typer.Option(help="Schwarz bound of pairs of functions that are left out.")
    ] = 1e-11
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep integrals, orbitals and finished pairs here; a run of the same problem goes on from them.",
        ),
    ] = None

    def check(self) -> None:
        super().check()
        preflight.check_number("--screening", self.screening, zero=True)
        check_storage(self.storage)

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_directory(self.checkpoint, "keep arrays")

    def settings(self, world: Any) -> dict[str, Any]:
        """For DensityFitting and MP2."""
        return {
            "memory": self.memory,
            "threads": self.threads,
            "screening": self.screening,
            "storage": self.storage,
            "checkpoint": self.checkpoint,
            "comm": world,
        }
