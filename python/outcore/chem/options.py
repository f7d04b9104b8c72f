"""Options of the commands that begin with an SCF of a molecule, named once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore.chem import scf_options, storage
from outcore.chem.hf.settings import STORAGES
from outcore.cli.run import JobOptions
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole


GEOMETRY = typer.Argument(help="XYZ file, in Angstrom.")
BASIS = typer.Option(help="Basis set, as PySCF names it, or a file in NWChem's format.")
# What several methods take after an SCF.
FCIDUMP = typer.Option(help="Take the integrals from this FCIDUMP file, instead of a molecule.")
FROZEN = typer.Option(
    help="Orbitals that are not correlated: a number of the lowest, 'auto' for the cores, or a list such as 0,5 or "
    "0-2,7, counted from 0 as in PySCF (of open shells also alpha/beta, 0,1/0)."
)
FROZEN_VIRTUAL = typer.Option(
    help="Virtual orbitals that are not correlated: a number of the highest, or a list as of --frozen."
)
ACTIVE = typer.Option(
    help="Active orbitals: a number of the next ones behind frozen ones; a list such as 3,4,6-8, counted from 0; "
    "or a number for each irrep, such as A1=3,B1=1. Occupied ones that neither names stay doubly occupied."
)
INTEGRALS = typer.Option(
    help="'ri': density fitting, in the SCF too; 'cholesky': decomposed to --tolerance; 'conventional': exact, to "
    "rounding."
)
ROHF = typer.Option("--rohf", help="Restricted open-shell.")
SPIN_SHIFT = typer.Option(
    help="Raises states of higher spin by it, times S(S+1), during the search of a CI (Hartree). Default: 0.05.",
    show_default=False,
)
TOLERANCE = typer.Option(help="Of --integrals cholesky (Hartree). Default: 1e-8.")


@dataclass(frozen=True, kw_only=True)
class MoleculeOptions(JobOptions):
    """The molecule, and how its SCF goes."""

    geometry: Annotated[Path, GEOMETRY]
    basis: Annotated[str, BASIS]
    ecp: Annotated[
        str | None,
        typer.Option(
            help="Effective core potentials, by name or file. Default: those that go with the basis."
        ),
    ] = None
    cart: Annotated[bool, typer.Option("--cart", help="Cartesian d, f, g functions.")] = False
    charge: Annotated[
        int | None, typer.Option(help="Total charge. Default: what the comment of the XYZ file says, or 0.")
    ] = None
    spin: Annotated[
        int | None,
        typer.Option(help="Unpaired electrons (2S). Default: what the comment says, or 0, or 1 if odd."),
    ] = None
    frame: Annotated[
        int | None, typer.Option(help="Of a file of several geometries: 1, 2, .., or -1 for the last.")
    ] = None
    unit: Annotated[
        str | None, typer.Option(help="Of the coordinates: angstrom or bohr. Default: what the file says.")
    ] = None
    uhf: Annotated[
        bool, typer.Option("--uhf", help="Unrestricted; if electrons are unpaired the default, but of CI.")
    ] = False
    guess: Annotated[str | None, typer.Option(help="Start guess, as PySCF names it. Default: minao.")] = None
    conv_tol: Annotated[
        float | None,
        typer.Option(help="Convergence of the energy (Hartree). Default: 1e-9, or --error if that is less."),
    ] = None
    max_cycle: Annotated[int, typer.Option(help="Most SCF cycles.")] = 50
    storage: Annotated[str, storage.option(STORAGES, "integrals")] = "auto"
    screening: Annotated[
        float | None,
        typer.Option(
            help="Integrals (of density fitting: pairs of functions) whose Schwarz bound is below it are left out. "
            "Default: what --error asks for; 1e-11 of density fitting."
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="What is complete (orbitals, integrals, stages) is kept here; a run of the same problem goes on "
            "from what is there.",
        ),
    ] = None
    restart: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Begin with the orbitals that another run has kept by --checkpoint, of any method.",
        ),
    ] = None

    def check(self) -> None:
        scf_options.check_guess(self.guess or scf_options.GUESSES[0])
        scf_options.check_iterations(self.conv_tol, self.max_cycle)
        preflight.check_number("--screening", self.screening, zero=True)
        if self.restart is not None:
            preflight.refuse({"--guess": self.guess}, "with --restart, which starts from orbitals")
        super().check()

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--checkpoint": self.checkpoint}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_directory(self.checkpoint, "write checkpoint")
        if self.checkpoint is not None and self.checkpoint.is_dir():
            from outcore.chem.restart import ORBITALS

            preflight.check_directory(self.checkpoint / ORBITALS, "write checkpoint", array=True)

    def reads(self) -> dict[str, Any]:
        return {"the geometry": self.geometry, "the basis": self.basis, "the potentials": self.ecp}

    def build(self, say: Callable[[str], None]) -> Mole:
        """The molecule. `say`: for a line that tells what was found in the file."""
        from outcore.chem import molecule

        return molecule.build(
            self.geometry,
            self.basis,
            charge=self.charge,
            spin=self.spin,
            cartesian=self.cart,
            ecp=self.ecp,
            frame=self.frame,
            unit=self.unit,
            say=say,
        )

    def set_up(self, mf: Any, allowed_error: float | None = None) -> None:
        """How an SCF goes. `allowed_error`: of its energy, see scf_options.convergence."""
        tolerance = self.conv_tol
        mf.conv_tol = scf_options.convergence(allowed_error) if tolerance is None else tolerance
        mf.max_cycle, mf.chkfile = self.max_cycle, None
        mf.init_guess = self.guess or scf_options.GUESSES[0]

    def title(self, method: str, mol: Mole) -> str:
        """The first line of a run."""
        return (
            f"{method}/{self.basis}  {self.geometry.name}: {mol.natm} atoms, {mol.nelectron} electrons, "
            f"{mol.nao} {'cartesian' if mol.cart else 'spherical'} functions in {mol.nbas} shells"
        )
