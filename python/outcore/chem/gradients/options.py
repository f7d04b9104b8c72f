"""Options of commands whose method has densities and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore.chem.formats import densities
from outcore.chem.options import DENSITY, DIPOLE, MoleculeOptions
from outcore.job import preflight

ASKED = 1e-9  # convergence of a method with a gradient (Hartree), which that of the SCF follows


@dataclass(frozen=True, kw_only=True)
class DensityOptions(MoleculeOptions):
    """Options for properties of the density of a method, which is relaxed if it is not the SCF's."""

    gradient: Annotated[bool, typer.Option("--gradient", help="The nuclear gradient (Hartree/Bohr).")] = False
    dipole: Annotated[bool, DIPOLE] = False
    density: Annotated[Path | None, DENSITY] = None

    @property
    def of_density(self) -> bool:
        """Whether any property of the density is asked for."""
        return self.gradient or self.dipole or self.density is not None

    @property
    def asked_for(self) -> dict[str, Any]:
        return {"--gradient": self.gradient, "--dipole": self.dipole, "--density": self.density}

    def check(self) -> None:
        super().check()
        densities.check("--density", self.density)

    def check_smearing(self, width: float) -> None:
        """Raises OutcoreError for smeared occupations, whose response is not implemented."""
        if width:
            preflight.refuse(self.asked_for, "with --smearing, whose response is not there")

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--density": self.density}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.density, "write the density")
