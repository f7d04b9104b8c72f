"""Options of `outcore mrci`."""

from __future__ import annotations

import errno
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import storage as storage_words
from outcore.chem.formats import densities
from outcore.chem.hf.settings import METHOD, STORAGES
from outcore.chem.mrci.settings import WORDS, Settings
from outcore.chem.mrci.spaces import Asked, GivenOrbitals, choose
from outcore.chem.options import (
    ACTIVE,
    BASIS,
    DENSITY,
    DENSITY_OF,
    DIPOLE,
    FCIDUMP,
    FROZEN,
    FROZEN_VIRTUAL,
    GEOMETRY,
    GROUP,
    INTEGRALS,
    OF_SCF,
    ROHF,
    SPIN_SHIFT,
    TOLERANCE,
    MoleculeOptions,
)
from outcore.chem.ri import plan as ri_plan
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole

# Options that an FCIDUMP file replaces.
_OF_MOLECULES = (
    *("geometry", "basis", "ecp", "cart", "charge", "frame", "unit", "rohf", *OF_SCF),
    *("group", "integrals", "tolerance", "auxbasis", "jkbasis", "dipole", "density"),
)


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """Options of multireference CI: of a molecule, after its SCF, or with the integrals of a file."""

    geometry: Annotated[Path | None, GEOMETRY] = None  # type: ignore[assignment]
    basis: Annotated[str | None, BASIS] = None  # type: ignore[assignment]
    fcidump: Annotated[
        Path | None,
        FCIDUMP,
    ] = None
    storage: Annotated[str, storage_words.option(STORAGES, "integrals of the SCF")] = "auto"
    integrals: Annotated[
        str,
        INTEGRALS,
    ] = Settings.integrals
    tolerance: Annotated[float | None, TOLERANCE] = None
    auxbasis: Annotated[
        str | None,
        typer.Option(
            help="Auxiliary basis of the CI with --integrals ri: a name or a file, or 'auto' for even-tempered "
            "functions where none is on record. Default: that of the basis for MP2."
        ),
    ] = None
    jkbasis: Annotated[
        str | None,
        typer.Option(
            help="Auxiliary basis of the SCF: a name or a file, or 'auto' for even-tempered functions where none "
            "is on record. Default: that of the basis."
        ),
    ] = None
    rohf: Annotated[bool, ROHF] = False
    frozen: Annotated[str, FROZEN] = "0"
    frozen_virtual: Annotated[str, FROZEN_VIRTUAL] = "0"
    inactive: Annotated[
        str | None,
        typer.Option(help="Orbitals that are doubly occupied in all references, in the form of --active."),
    ] = None
    active: Annotated[str | None, ACTIVE] = None
    cas: Annotated[
        str | None,
        typer.Option(metavar="N,M", help="N electrons in M orbitals, in place of --inactive and --active."),
    ] = None
    references: Annotated[
        str,
        typer.Option(
            help="'symmetry': all configurations of the active orbitals with the irrep of the state; 'all': with "
            "any irrep; a number, such as 0.001: those with this weight in a state of the active orbitals alone; "
            "else a file that lists them, one line of 0, 1 and 2 each."
        ),
    ] = "symmetry"
    couplings: Annotated[
        str,
        typer.Option(
            help="'all' spin functions of each configuration, or 'interacting': only those that the Hamiltonian "
            "couples to references."
        ),
    ] = Settings.couplings
    group: Annotated[str | None, GROUP] = None
    irrep: Annotated[
        str | None,
        typer.Option(
            help="Irrep of the states, by name; a number as in ORBSYM with --fcidump. Default: that of the SCF, or "
            "ISYM."
        ),
    ] = None
    roots: Annotated[int, typer.Option(help="Number of states.")] = 1
    acpf: Annotated[bool, typer.Option("--acpf", help="MR-ACPF in place of CI.")] = False
    aqcc: Annotated[bool, typer.Option("--aqcc", help="MR-AQCC in place of CI.")] = False
    plus_q: Annotated[bool, typer.Option("--plus-q", help="Corrections of Davidson, Pople and Meissner.")] = (
        False
    )
    natural: Annotated[
        bool, typer.Option("--natural", help="Print occupations of the natural orbitals of each root.")
    ] = False
    dipole: Annotated[bool, DIPOLE] = False
    density: Annotated[Path | None, DENSITY] = None
    density_of: Annotated[str, DENSITY_OF] = "1"
    error_bound: Annotated[
        float,
        typer.Option(help="Pack vectors with at most this error of the energy (Hartree); 0: do not pack."),
    ] = Settings.error_bound
    residual: Annotated[
        float, typer.Option(help="Norm of the residual below which a root is converged (Hartree).")
    ] = Settings.residual
    iterations: Annotated[int, typer.Option(help="Maximum number of iterations after the SCF.")] = (
        Settings.max_cycle
    )
    min_weight: Annotated[
        float | None,
        typer.Option(
            help="Least weight of the references in each root; a smaller one is an error. Default: "
            "0.1; 0.5 for --acpf and --aqcc.",
            show_default=False,
        ),
    ] = None
    spin_shift: Annotated[float | None, SPIN_SHIFT] = None

    @property
    def functional(self) -> str:
        return "acpf" if self.acpf else "aqcc" if self.aqcc else "ci"

    def check(self) -> None:
        if self.fcidump is not None:
            self._check_file()
        elif self.geometry is None or self.basis is None:
            missing = "GEOMETRY" if self.geometry is None else "--basis"
            raise _refused(f"{missing} is missing: give an XYZ file and --basis, or --fcidump FILE")
        if self.integrals != "ri":
            why = f"with --integrals {self.integrals}, which needs no auxiliary basis"
            preflight.refuse({"--auxbasis": self.auxbasis, "--jkbasis": self.jkbasis}, why)
        if self.integrals != "cholesky":
            preflight.refuse({"--tolerance": self.tolerance}, "without --integrals cholesky")
        if self.uhf:
            preflight.refuse(
                {"--uhf": True}, "for a multireference CI, which takes the orbitals of RHF or ROHF"
            )
        if self.acpf and self.aqcc:
            preflight.refuse({"--acpf": True}, "with --aqcc")
        if self.plus_q and self.functional != "ci":
            preflight.refuse({"--plus-q": True}, f"with --{self.functional}, which needs no correction")
        if self.estimate:
            of_states = {"--natural": self.natural, "--dipole": self.dipole, "--density": self.density}
            preflight.refuse({"--plus-q": self.plus_q, **of_states}, "with --estimate")
        densities.check("--density", self.density)
        densities.check_root(self.density_of, self.roots, {"--density": self.density})
        if self.cas is not None:
            preflight.refuse({"--inactive": self.inactive, "--active": self.active}, "with --cas")
            self._cas()
        elif self.active is None:
            raise _refused("--active is missing: give --inactive and --active, or --cas N,M")
        self._asked(self.inactive, self.active).read()
        preflight.check_count("--roots", self.roots)
        preflight.check_count("--iterations", self.iterations)
        of_scf = (ri_plan.STORAGES, ri_plan.METHOD) if self.integrals == "ri" else (STORAGES, METHOD)
        storage_words.check(self.storage, *of_scf)
        Settings(**self.settings())
        super().check()

    def _check_file(self) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        given = [name for name in _OF_MOLECULES if getattr(self, name) != defaults[name]]
        named = {
            ("GEOMETRY" if name == "geometry" else f"--{name.replace('_', '-')}"): True
            for name in sorted(given)
        }
        preflight.refuse(named, "with --fcidump, whose integrals are taken as they are")
        if self.frozen.strip() == "auto":
            raise _refused("--frozen auto: with --fcidump a number is needed, or a list")

    def _cas(self) -> tuple[int, int]:
        """The numbers of electrons and of orbitals in --cas."""
        numbers = str(self.cas).split(",")
        if len(numbers) != 2 or not all(each.strip().isdigit() for each in numbers):
            raise _refused(
                f"--cas {self.cas}: two numbers are needed, of electrons and of orbitals, such as 6,6"
            )
        return int(numbers[0]), int(numbers[1])

    def _asked(self, inactive: str | int | None, active: str | int | None) -> Asked:
        return Asked(self.frozen, self.frozen_virtual, inactive, active)

    def asked(self, mol: Mole | None, orbitals: int, electrons: tuple[int, int]) -> Asked:
        """The choice of orbitals, for a molecule, or for a file (None). electrons: all alpha and all beta
        electrons."""
        if self.cas is None:
            return self._asked(self.inactive, self.active)
        wanted, active = self._cas()
        left = (
            sum(electrons)
            - 2 * choose(mol, self._asked(0, 0), GivenOrbitals.of(orbitals, electrons)).choice.frozen
        )
        inactive, odd = divmod(left - wanted, 2)
        if odd or inactive < 0:
            raise _refused(f"--cas {self.cas}: {wanted} of {left} electrons leave no pairs")
        return self._asked(inactive, active)

    def settings(self) -> dict[str, Any]:
        """The settings of MRCI."""
        found: dict[str, Any] = {
            "references": self._references(),
            "couplings": self.couplings,
            "functional": self.functional,
            "residual": self.residual,
            "max_cycle": self.iterations,
            "min_weight": self.min_weight,
            "spin_shift": self.spin_shift,
            "error_bound": self.error_bound,
            "integrals": self.integrals,
            "auxbasis": self.auxbasis,
        }
        if self.tolerance is not None:
            found["tolerance"] = self.tolerance
        return found

    def _references(self) -> str | float | Path:
        if self.references in WORDS:
            return self.references
        try:
            return float(self.references)
        except ValueError:
            return Path(self.references)

    def reads(self) -> dict[str, Any]:
        listed = self._references()
        return super().reads() | {
            "the integrals": self.fcidump,
            "the references": listed if isinstance(listed, Path) else None,
        }

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--density": self.density}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.density, "write the density")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "choose options", detail=detail)
