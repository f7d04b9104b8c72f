"""Options of `outcore eom`."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from outcore.base.errors import OutcoreError
from outcore.chem.cc import options
from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.start_vectors import SUFFIX
from outcore.chem.cc.settings import TIGHT
from outcore.chem.formats import densities
from outcore.job import preflight


@dataclass(frozen=True, kw_only=True)
class Options(options.Options):
    """Options of CCSD, and of its states."""

    without: ClassVar[tuple[str, ...]] = (
        "method",
        "fno",
        "triples",
        "gradient",
        "dipole",
        "density",
    )

    states: Annotated[int, typer.Option(help="Number of states; the lowest ones are found.")] = 3
    kind: Annotated[
        str,
        typer.Option(
            help="Which states: 'ee' (excited), 'ip' (ionised), 'ea' (with one electron more), 'sf' (flipped spin)."
        ),
    ] = "ee"
    multiplicity: Annotated[
        int | None,
        typer.Option(
            help="Multiplicity of excited states of closed shells: 1 (singlets, the default) or 3 (triplets)."
        ),
    ] = None
    cvs: Annotated[
        int | None,
        typer.Option(
            help="Core-excited states, or core ions: the number of lowest orbitals that are the core."
        ),
    ] = None
    properties: Annotated[
        bool,
        typer.Option(
            "--properties",
            help="Dipole moments by left vectors, with strengths of excited states or pole strengths of ions.",
        ),
    ] = False
    spectrum: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Write energies, strengths and a broadened spectrum here, with --properties.",
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the spectrum (name.png, name.pdf, name.svg), with --properties."
        ),
    ] = None
    width: Annotated[
        float | None,
        typer.Option(
            help="Full width at half maximum of the lines of --spectrum and --plot (eV).", show_default="0.4"
        ),
    ] = None
    nto: Annotated[
        Path | None,
        typer.Option(
            metavar="PREFIX",
            help="Write natural transition orbitals of each state to PREFIX1.molden and so on, with --properties.",
        ),
    ] = None
    dyson: Annotated[
        Path | None,
        typer.Option(
            metavar="PREFIX",
            help="Write Dyson orbitals of each ion to PREFIX1.molden and so on, with --properties.",
        ),
    ] = None
    state_density: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the one-particle density of each state, with --properties, to files with the number of the "
            "state: name1.cube and so on for name.cube; name.molden, name.npz, name.h5 and name.trexio as of "
            "`outcore ccsd --density`.",
        ),
    ] = None
    save_states: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write the states here, for --follow of another run."),
    ] = None
    follow: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Find the first states of this file, which --save-states wrote, instead of the lowest ones: they "
            "are followed by overlap. Nuclei may have moved since.",
        ),
    ] = None
    state_tol: Annotated[
        float,
        typer.Option(
            help="Norm of the residual below which a state has converged (Hartree); below 1e-7, amplitudes "
            "converge as tightly."
        ),
    ] = StateSettings.residual
    state_iterations: Annotated[int, typer.Option(help="Maximum number of iterations for states.")] = (
        StateSettings.max_cycle
    )

    def check(self) -> None:
        kinds.check(self.kind, self.multiplicity)
        self.state_settings()
        of_light = {"--spectrum": self.spectrum, "--plot": self.plot, "--nto": self.nto}
        of_ions = {"--dyson": self.dyson}
        files = of_light | of_ions | {"--state-density": self.state_density}
        densities.check("--state-density", self.state_density)
        if not self.properties:
            preflight.refuse(files, "without --properties")
        if self.kind != "ee" or self.multiplicity == 3:
            preflight.refuse(of_light, "on states to which light makes no transitions from the ground state")
        if self.kind not in ("ip", "ea"):
            preflight.refuse(of_ions, "but on ions, of --kind ip and ea")
        if self.estimate:
            of_files = {"--save-states": self.save_states, "--follow": self.follow}
            preflight.refuse(files | of_files, "with --estimate, which computes nothing")
        if self.save_states is not None and self.save_states.suffix != SUFFIX:
            raise OutcoreError(
                errno.EINVAL, f"--save-states {self.save_states}", detail=f"its name must end in {SUFFIX}"
            )
        if self.spectrum is None and self.plot is None:
            preflight.refuse({"--width": self.width}, "without --spectrum or --plot")
        preflight.check_number("--width", self.width, below=100.0)
        if self.spectrum is not None or self.plot is not None:
            from outcore.chem.cc.excited import spectrum

            spectrum.check_table("--spectrum", self.spectrum)
            spectrum.check_figure("--plot", self.plot)
        super().check()

    @property
    def has_density(self) -> bool:
        return self.properties or super().has_density

    @property
    def nto_files(self) -> list[Path]:
        """A file for each state, with --nto."""
        return self._numbered(self.nto, ".molden")

    @property
    def dyson_files(self) -> list[Path]:
        """A file for each state, with --dyson."""
        return self._numbered(self.dyson, ".molden")

    @property
    def density_files(self) -> list[Path]:
        """A file for each state, with --state-density."""
        path = self.state_density
        return [] if path is None else self._numbered(path.with_suffix(""), path.suffix)

    def _numbered(self, prefix: Path | None, suffix: str) -> list[Path]:
        if prefix is None:
            return []
        return [prefix.with_name(f"{prefix.name}{n + 1}{suffix}") for n in range(self.states)]

    def writes(self) -> dict[str, Any]:
        every = (
            ("--nto", self.nto_files),
            ("--dyson", self.dyson_files),
            ("--state-density", self.density_files),
        )
        files = {f"{name}, of state {n + 1}": each for name, group in every for n, each in enumerate(group)}
        named = {"--spectrum": self.spectrum, "--plot": self.plot, "--save-states": self.save_states}
        return super().writes() | named | files

    def reads(self) -> dict[str, Any]:
        return super().reads() | {"the states to follow": self.follow}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.spectrum, "write the spectrum")
        preflight.check_file(self.plot, "draw the spectrum")
        preflight.check_file(self.save_states, "write states to follow")
        for each in self.nto_files:
            preflight.check_file(each, "write transition orbitals")
        for each in self.dyson_files:
            preflight.check_file(each, "write Dyson orbitals")
        for each in self.density_files:
            preflight.check_file(each, "write the density")

    @property
    def _is_tight(self) -> bool:
        """Whether states converge so tightly that amplitudes, on which their energies depend, have to as well."""
        return self.state_tol < TIGHT

    @property
    def tightened_by(self) -> str:
        return "--state-tol" if self._is_tight else super().tightened_by

    def settings(self) -> dict[str, Any]:
        found = super().settings()
        if self._is_tight:
            found["conv_tol_normt"] = min(found["conv_tol_normt"], self.state_tol)
        return found

    def state_settings(self) -> StateSettings:
        return StateSettings(
            nroots=self.states,
            residual=self.state_tol,
            max_cycle=self.state_iterations,
            multiplicity=self.multiplicity,
            cvs=self.cvs,
        )
