"""Options of `outcore eom`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from outcore.chem.cc import options
from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.excited.settings import StateSettings


@dataclass(frozen=True, kw_only=True)
class Options(options.Options):
    """Those of CCSD, and of its states."""

    without: ClassVar[tuple[str, ...]] = (
        "method",
        "fno",
        "triples",
        "gradient",
        "dipole",
        "density",
    )

    states: Annotated[int, typer.Option(help="How many states, the lowest.")] = 3
    kind: Annotated[
        str,
        typer.Option(
            help="Which states: 'ee' (excited), 'ip' (ionised), 'ea' (with one electron more), 'sf' (flipped spin)."
        ),
    ] = "ee"
    multiplicity: Annotated[
        int | None,
        typer.Option(
            help="Of excited states of closed shells: 1 (singlets, if nothing is said) or 3 (triplets)."
        ),
    ] = None
    cvs: Annotated[
        int | None,
        typer.Option(help="Core-excited states, or core ions: so many of the lowest orbitals are the core."),
    ] = None
    state_tol: Annotated[
        float, typer.Option(help="Norm of the residual below which a state has converged (Hartree).")
    ] = StateSettings.tolerance
    state_iterations: Annotated[int, typer.Option(help="Maximum number of iterations for states.")] = (
        StateSettings.max_cycle
    )

    def check(self) -> None:
        kinds.check(self.kind, self.multiplicity)
        self.state_settings()
        super().check()

    def state_settings(self) -> StateSettings:
        return StateSettings(
            nroots=self.states,
            tolerance=self.state_tol,
            max_cycle=self.state_iterations,
            multiplicity=self.multiplicity,
            cvs=self.cvs,
        )
