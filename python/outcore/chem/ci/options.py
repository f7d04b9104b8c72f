"""Options of `outcore fci`."""

from __future__ import annotations

import errno
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import storage as storage_words
from outcore.chem.active import read as read_active
from outcore.chem.ci import trexio_states
from outcore.chem.ci.settings import Settings
from outcore.chem.ci.target import MAX_ROOTS, AskedStates, read_states
from outcore.chem.formats import densities
from outcore.chem.hf.settings import METHOD, STORAGES
from outcore.chem.options import (
    ACTIVE,
    BASIS,
    DENSITY,
    DENSITY_OF,
    FCIDUMP,
    FROZEN,
    FROZEN_VIRTUAL,
    GEOMETRY,
    GROUP,
    OF_SCF,
    ROHF,
    SPIN_SHIFT,
    STATES,
    WRITE_FCIDUMP,
    MoleculeOptions,
)
from outcore.chem.scf_options import check_one_method
from outcore.job import preflight

# Options that an FCIDUMP file replaces.
_OF_MOLECULES = (
    *("geometry", "basis", "ecp", "cart", "charge", "frame", "unit", "rohf", *OF_SCF),
    *(
        "frozen",
        "frozen_virtual",
        "active",
        "group",
        "molden",
        "density",
    ),
)
# Options that only affect the search and the output about its states.
_OF_STATES = (
    *(
        "roots",
        "states",
        "precision",
        "residual",
        "iterations",
        "vectors",
        "start",
        "start_selection",
        "spin_shift",
        "unfolded",
        "ordered",
        "error_bound",
    ),
    *("largest", "energy_only", "molden", "trexio", "density", "density_of", "estimate"),
)


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """Options of full CI: of a molecule, after its SCF, or with the integrals of a file."""

    geometry: Annotated[Path | None, GEOMETRY] = None  # type: ignore[assignment]
    basis: Annotated[str | None, BASIS] = None  # type: ignore[assignment]
    storage: Annotated[str, storage_words.option(STORAGES, "integrals of the SCF")] = "auto"
    rohf: Annotated[bool, ROHF] = False
    fcidump: Annotated[Path | None, FCIDUMP] = None
    frozen: Annotated[str, FROZEN] = "0"
    frozen_virtual: Annotated[str, FROZEN_VIRTUAL] = "0"
    active: Annotated[str | None, ACTIVE] = None
    group: Annotated[str | None, GROUP] = None
    irrep: Annotated[
        str | None,
        typer.Option(
            help="Irrep of the states, by name; a number as in ORBSYM with --fcidump. Default: that of the SCF, or "
            "ISYM."
        ),
    ] = None
    roots: Annotated[int, typer.Option(help="Number of states.")] = 1
    states: Annotated[str | None, STATES] = None
    precision: Annotated[
        str,
        typer.Option(help="'double', or 'mixed': single precision first, double in the end."),
    ] = "double"
    residual: Annotated[
        float, typer.Option(help="Norm of the residual below which a root is converged (Hartree).")
    ] = Settings.residual
    iterations: Annotated[int, typer.Option(help="Maximum number of iterations after the SCF.")] = (
        Settings.max_cycle
    )
    vectors: Annotated[
        int, typer.Option(help="Vectors of the search for each root, 2 or more; more converge faster.")
    ] = Settings.vectors
    start: Annotated[
        int, typer.Option(help="Determinants of the small space whose states the search begins with.")
    ] = Settings.guess_size
    start_selection: Annotated[
        str,
        typer.Option(
            help="How these determinants are chosen: 'energy': the lowest diagonal elements; 'weights': the "
            "largest weights in a small CI."
        ),
    ] = Settings.guess_selection
    error_bound: Annotated[
        float,
        typer.Option(
            help="Vectors on disk are packed for at most this error of the energy (Hartree), in place of "
            "--residual; those in memory are not packed. 0: nothing is packed."
        ),
    ] = Settings.error_bound
    spin_shift: Annotated[float, SPIN_SHIFT] = Settings.spin_shift
    unfolded: Annotated[
        bool, typer.Option("--unfolded", help="Singlets and triplets as whole vectors, not as folded halves.")
    ] = False
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Always add in one order, so that runs repeat bit by bit.")
    ] = False
    largest: Annotated[int, typer.Option(help="Print so many of the largest determinants; 0 for none.")] = 5
    energy_only: Annotated[
        bool, typer.Option("--energy-only", help="No densities: neither <S^2>, occupations nor dipole.")
    ] = False
    molden: Annotated[
        Path | None,
        typer.Option(help="Write the natural orbitals of a root here, in Molden's format."),
    ] = None
    write_fcidump: Annotated[Path | None, WRITE_FCIDUMP] = None
    trexio: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write orbitals, integrals, densities and all determinants of a root here, as TREXIO (name.h5, "
            "name.trexio).",
        ),
    ] = None
    density: Annotated[Path | None, DENSITY] = None
    density_of: Annotated[str, DENSITY_OF] = "1"

    no_solve: Annotated[
        bool, typer.Option("--no-solve", help="End when the integrals are written, without a CI.")
    ] = False

    def check(self) -> None:
        if self.no_solve:
            self._check_no_solve()
        if self.estimate:
            preflight.refuse({"--write-fcidump": self.write_fcidump}, "with --estimate, without integrals")
        if self.fcidump is not None:
            self._check_file()
        else:
            self._check_molecule()
        preflight.check_count("--roots", self.roots, MAX_ROOTS)
        if self.states is not None:
            self._check_states()
        preflight.check_count("--iterations", self.iterations)
        read_active(self.active, 2)
        preflight.check_number("--residual", self.residual)
        if self.largest < 0:
            raise OutcoreError(errno.EINVAL, f"--largest {self.largest}", detail="it must be 0 or more")
        if self.energy_only:
            preflight.refuse({"--molden": self.molden}, "with --energy-only, without natural orbitals")
            of_density = {"--trexio": self.trexio, "--density": self.density}
            preflight.refuse(of_density, "with --energy-only, without densities")
        if self.estimate:
            unused = {"--molden": self.molden, "--trexio": self.trexio, "--density": self.density}
            preflight.refuse(unused, "with --estimate, without states")
        trexio_states.check_name("--trexio", self.trexio)
        densities.check("--density", self.density)
        self._check_density_of()
        self.settings()
        super().check()

    def _check_density_of(self) -> None:
        groups = self.groups()
        roots = groups[0].roots if groups else self.roots
        files = {"--density": self.density, "--molden": self.molden, "--trexio": self.trexio}
        densities.check_root(self.density_of, roots, files)

    def _check_states(self) -> None:
        instead = {"--irrep": self.irrep, "--roots": self.roots != 1}
        preflight.refuse(instead, "with --states, which names irreps and numbers of states")
        if self.fcidump is not None:
            preflight.refuse({"--spin": self.spin is not None}, "with --states of a file, which names spins")
        preflight.refuse({"--states": self.uhf}, "with --uhf, whose states have any spin")
        read_states(self.states or "")

    def groups(self) -> tuple[AskedStates, ...]:
        """The groups of states of --states, each of one irrep and spin; empty without it."""
        return () if self.states is None else read_states(self.states)

    def _check_file(self) -> None:
        preflight.refuse(self._given(_OF_MOLECULES), "with --fcidump, whose integrals are taken as they are")

    def _check_no_solve(self) -> None:
        preflight.refuse(self._given(_OF_STATES), "with --no-solve, which finds no states")
        if self.write_fcidump is None:
            preflight.refuse({"--no-solve": True}, "without --write-fcidump")

    def _given(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Which of these options differ from their defaults."""
        defaults = {each.name: each.default for each in fields(self)}
        given = [name for name in sorted(names) if getattr(self, name) != defaults[name]]
        return {"GEOMETRY" if name == "geometry" else f"--{name.replace('_', '-')}": True for name in given}

    def _check_molecule(self) -> None:
        if self.geometry is None or self.basis is None:
            missing = "GEOMETRY" if self.geometry is None else "--basis"
            raise OutcoreError(
                errno.EINVAL,
                "choose options",
                detail=f"{missing} is missing: give an XYZ file and --basis, or --fcidump FILE",
            )
        check_one_method(self.uhf, self.rohf)
        storage_words.check(self.storage, STORAGES, METHOD)
        if self.uhf:
            preflight.refuse(
                {"--molden": self.molden}, "with --uhf, whose states have no natural orbitals here"
            )
            preflight.refuse({"--trexio": self.trexio}, "with --uhf, whose states are not written as TREXIO")
            preflight.refuse(
                {"--spin-shift": self.spin_shift != Settings.spin_shift},
                "with --uhf, whose states have any spin",
            )
            preflight.refuse({"--unfolded": self.unfolded}, "with --uhf, whose vectors are not folded")

    def settings(self) -> dict[str, Any]:
        """The settings of FCI."""
        found: dict[str, Any] = {
            "residual": self.residual,
            "max_cycle": self.iterations,
            "vectors": self.vectors,
            "precision": self.precision,
            "guess_size": self.start,
            "guess_selection": self.start_selection,
            "spin_shift": self.spin_shift,
            "ordered": self.ordered,
            "error_bound": self.error_bound,
        }
        Settings(**found)
        return found | {"checkpoint": self.checkpoint}

    def reads(self) -> dict[str, Any]:
        return super().reads() | {"the integrals": self.fcidump}

    def writes(self) -> dict[str, Any]:
        return super().writes() | {
            "--molden": self.molden,
            "--write-fcidump": self.write_fcidump,
            "--trexio": self.trexio,
            "--density": self.density,
        }

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.molden, "write molden file")
        preflight.check_file(self.write_fcidump, "write FCIDUMP")
        preflight.check_file(self.trexio, "write TREXIO")
        preflight.check_file(self.density, "write the density")
