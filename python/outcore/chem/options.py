"""Options of the commands that begin with an SCF of a molecule, named once."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import cube_orbitals, occupation, scf_options, storage
from outcore.chem.formats import orbitals
from outcore.chem.hf.settings import STORAGES
from outcore.cli.run import JobOptions
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole


GEOMETRY = typer.Argument(help="XYZ file, in Angstrom.")
BASIS = typer.Option(help="Basis set, as PySCF names it, or a file in NWChem's format.")
# Options of several methods after an SCF.
FCIDUMP = typer.Option(help="Take the integrals from this FCIDUMP or TREXIO file, instead of a molecule.")
WRITE_FCIDUMP = typer.Option(metavar="FILE", help="Write the integrals of the active orbitals here.")
FROZEN = typer.Option(
    help="Orbitals that are not correlated: a number of the lowest, 'auto' for the cores, or a list such as 0,5 or "
    "0-2,7, counted from 0 as in PySCF (of open shells also alpha/beta, 0,1/0)."
)
FROZEN_VIRTUAL = typer.Option(
    help="Virtual orbitals that are not correlated: a number of the highest, or a list as of --frozen."
)
ACTIVE = typer.Option(
    help="Active orbitals: a number, the next ones above the frozen ones; a list such as 3,4,6-8, counted from 0; "
    "or a number for each irrep, such as A1=3,B1=1. Occupied ones that neither names stay doubly occupied."
)
GROUP = typer.Option(
    help="Point group whose symmetry is used: D2h, C2v, C2h, D2, Cs, C2, Ci or C1. Default: the largest that the "
    "molecule has."
)
STATES = typer.Option(
    metavar="IRREP:2S:N,..",
    help="States of several irreps and spins, such as A1:0:2,B2:2:1, in place of --irrep and --roots.",
)
DIPOLE = typer.Option("--dipole", help="Dipole and quadrupole moments, and Mulliken charges.")
DENSITY = typer.Option(
    metavar="FILE",
    help="Write the one-particle density here: natural orbitals (name.molden), matrices over basis functions "
    "(name.npz), values on a grid (name.cube), or TREXIO (name.h5, name.trexio).",
)
DENSITY_OF = typer.Option(
    metavar="N",
    help="State of --density, counted from 1; of full CI also of --molden and --trexio; of CASSCF also 'average', "
    "that of all states with their weights.",
)
INTEGRALS = typer.Option(
    help="'ri': density fitting, in the SCF too; 'cholesky': decomposed to --tolerance; 'conventional': exact, to "
    "rounding."
)
ROHF = typer.Option("--rohf", help="Restricted open-shell.")
SPIN_SHIFT = typer.Option(
    help="Raises states of higher spin by this times S(S+1) during the search of a CI (Hartree). Default: 0.05.",
    show_default=False,
)
SMEARING = typer.Option(
    help="Width of a Fermi distribution of the occupations (Hartree); each spin has its electrons.",
    show_default=False,
)
TOLERANCE = typer.Option(help="Tolerance of --integrals cholesky (Hartree). Default: 1e-8.")


# Options of the SCF, which have no effect where there is none.
OF_SCF = (
    *("uhf", "guess", "conv_tol", "max_cycle", "storage", "screening", "restart", "scf_level_shift"),
    *("scf_damping", "diis_space", "second_order", "stability", "irrep_nelec", "swap", "save_orbitals"),
    "cube_orbitals",
)


@dataclass(frozen=True, kw_only=True)
class MoleculeOptions(JobOptions):
    """The molecule, and the options of its SCF."""

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
        int | None, typer.Option(help="Total charge. Default: that in the comment of the XYZ file, or 0.")
    ] = None
    spin: Annotated[
        int | None,
        typer.Option(help="Unpaired electrons (2S). Default: those in the comment, or 0, or 1 if odd."),
    ] = None
    frame: Annotated[
        int | None, typer.Option(help="Number of the geometry in a file: 1, 2, .., or -1 for the last.")
    ] = None
    unit: Annotated[
        str | None, typer.Option(help="Unit of the coordinates: angstrom or bohr. Default: that of the file.")
    ] = None
    uhf: Annotated[
        bool,
        typer.Option("--uhf", help="Unrestricted. The default if electrons are unpaired, except for CI."),
    ] = False
    guess: Annotated[str | None, typer.Option(help="Start guess, as PySCF names it. Default: minao.")] = None
    conv_tol: Annotated[
        float | None,
        typer.Option(
            help="Convergence of the energy (Hartree). Default: 1e-9, or --error if that is less; for a method "
            "after the SCF as it needs."
        ),
    ] = None
    max_cycle: Annotated[int, typer.Option(help="Maximum number of SCF cycles.")] = 50
    scf_level_shift: Annotated[
        float,
        typer.Option(
            "--level-shift",
            "--scf-level-shift",
            help="Raises empty orbitals during the SCF (Hartree): slower, safer.",
            show_default=False,
        ),
    ] = 0.0
    scf_damping: Annotated[
        float,
        typer.Option(
            "--damping",
            "--scf-damping",
            help="Share of the last Fock matrix that stays in each cycle of the SCF, below 1: slower, safer.",
            show_default=False,
        ),
    ] = 0.0
    diis_space: Annotated[
        int | None, typer.Option(help="Fock matrices of the extrapolation (DIIS) of the SCF. Default: 8.")
    ] = None
    second_order: Annotated[
        bool | None,
        typer.Option(
            "--second-order/--no-second-order",
            help="Second-order SCF from the start, or never. Default: where DIIS does not converge.",
            show_default=False,
        ),
    ] = None
    stability: Annotated[
        bool,
        typer.Option(
            "--stability",
            help="Follow instabilities of the SCF to a minimum; for closed shells say whether UHF is lower.",
        ),
    ] = False
    irrep_nelec: Annotated[
        str | None,
        typer.Option(
            help="Electrons of irreps, such as A1=6,B1=2, or A1=3/3,B1=2/1 of both spins; the others as energies "
            "say."
        ),
    ] = None
    swap: Annotated[
        str | None,
        typer.Option(
            help="Exchange occupations of orbitals of --restart, such as 5:6, or a5:6 of spin alpha, counted from "
            "1, and keep the orbitals occupied that are occupied then (maximum overlap)."
        ),
    ] = None
    storage: Annotated[str, storage.option(STORAGES, "integrals")] = "auto"
    screening: Annotated[
        float | None,
        typer.Option(
            help="Leave out integrals (with density fitting: pairs of functions) whose Schwarz bound is less. "
            "Default: what --error needs; 1e-11 with density fitting."
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep finished orbitals, integrals and stages here; a run of the same problem "
            "continues from them.",
        ),
    ] = None
    restart: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Begin with the orbitals that another run has kept by --checkpoint, of any method; or with those "
            "of a Molden or TREXIO file or a chkfile of PySCF, of any basis and charge.",
        ),
    ] = None

    save_orbitals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the orbitals of the SCF here, for other programs: name.molden, name.chk (a chkfile of "
            "PySCF), name.h5 or name.trexio (TREXIO); some of them as values on a grid: name.cube.",
        ),
    ] = None
    cube_orbitals: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Orbitals of --save-orbitals name.cube, counted from 0, such as 3,4,6-8, of open shells also "
            "alpha/beta. Default: the highest occupied and the lowest empty one.",
        ),
    ] = None

    def check(self) -> None:
        orbitals.check("--save-orbitals", self.save_orbitals)
        cube_orbitals.check(self.cube_orbitals, self.save_orbitals)
        if self.estimate:
            preflight.refuse({"--save-orbitals": self.save_orbitals}, "with --estimate, without orbitals")
        scf_options.check_guess(self.guess or scf_options.GUESSES[0])
        scf_options.check_iterations(self.conv_tol, self.max_cycle)
        preflight.check_number("--screening", self.screening, zero=True)
        if self.restart is not None:
            preflight.refuse({"--guess": self.guess}, "with --restart, which starts from orbitals")
        self._check_way()
        super().check()

    def _check_way(self) -> None:
        """Checks options of how the SCF reaches its state."""
        for option, value, below in (
            ("--scf-level-shift", self.scf_level_shift, 100.0),
            ("--scf-damping", self.scf_damping, 1.0),
        ):
            preflight.check_number(option, value, zero=True, below=below)
        if self.diis_space is not None and not 2 <= self.diis_space <= 32:
            raise OutcoreError(
                errno.EINVAL, f"--diis-space {self.diis_space}", detail="it must be from 2 to 32"
            )
        of_diis = {
            "--scf-level-shift": self.scf_level_shift or None,
            "--scf-damping": self.scf_damping or None,
            "--diis-space": self.diis_space,
        }
        if self.second_order:
            preflight.refuse(of_diis, "with --second-order, which is without DIIS")
        if self.irrep_nelec is not None:
            occupation.irreps(self.irrep_nelec)
        if self.swap is not None:
            occupation.swaps(self.swap)
            if self.restart is None:
                raise OutcoreError(
                    errno.EINVAL,
                    "choose options",
                    detail="--swap needs --restart, whose orbitals it exchanges",
                )
            why = "with --swap, which keeps to given orbitals whatever their energy"
            preflight.refuse(
                {
                    "--second-order": self.second_order is not None,
                    "--stability": self.stability,
                    "--irrep-nelec": self.irrep_nelec,
                },
                why,
            )

    def writes(self) -> dict[str, Any]:
        return super().writes() | {
            "--checkpoint": self.checkpoint,
            "--save-orbitals": self.save_orbitals,
        }

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_directory(self.checkpoint, "write checkpoint")
        preflight.check_file(self.save_orbitals, "write orbitals")
        if self.checkpoint is not None and self.checkpoint.is_dir():
            from outcore.chem.restart import ORBITALS

            preflight.check_directory(self.checkpoint / ORBITALS, "write checkpoint", array=True)

    def reads(self) -> dict[str, Any]:
        return {
            "the geometry": self.geometry,
            "the basis": self.basis,
            "the potentials": self.ecp,
            "the orbitals": None if self.restart is None or self.restart.is_dir() else self.restart,
        }

    def build(self, say: Callable[[str], None]) -> Mole:
        """Builds the molecule. `say` gets lines about findings in the file."""
        from outcore.chem import molecule

        mol = molecule.build(
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
        return mol if self.irrep_nelec is None else occupation.with_irreps(mol)

    def set_up(
        self,
        mf: Any,
        allowed_error: float | None = None,
        *,
        asked: float | None = None,
        smearing: float = 0.0,
    ) -> Any:
        """Sets the options of an SCF. Returns the object itself, or one that smears occupations.

        allowed_error: of its energy, see scf_options.convergence. asked: convergence of a method after it, see
        scf_options.for_correlation. smearing: width (Hartree)."""
        if self.conv_tol is not None:
            mf.conv_tol = self.conv_tol
        elif asked is not None:
            mf.conv_tol, mf.conv_tol_grad = scf_options.for_correlation(asked)
        else:
            mf.conv_tol = scf_options.convergence(allowed_error)
        mf.max_cycle, mf.chkfile = self.max_cycle, None
        mf.init_guess = self.guess or scf_options.GUESSES[0]
        mf.level_shift, mf.diis_damp = self.scf_level_shift, self.scf_damping
        if self.diis_space is not None:
            mf.diis_space = self.diis_space
        if self.irrep_nelec is not None:
            wanted = occupation.irreps(self.irrep_nelec)
            occupation.check_irreps(mf.mol, wanted)
            mf.irrep_nelec = wanted
        if self.swap is not None:
            mf.swapped = self.swap
        cube_orbitals.of(self.cube_orbitals, mf)  # or it is refused now
        if smearing:
            mf = occupation.smear(mf, smearing)
        return mf

    def title(self, method: str, mol: Mole) -> str:
        """The first line of a run."""
        return (
            f"{method}/{self.basis}  {self.geometry.name}: {mol.natm} atoms, {mol.nelectron} electrons, "
            f"{mol.nao} {'cartesian' if mol.cart else 'spherical'} functions in {mol.nbas} shells"
        )
