"""Options of `outcore ccsd`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore.chem import scf_options, storage
from outcore.chem.cc.equations import methods
from outcore.chem.cc.plan.places import STORAGES, check_places
from outcore.chem.cc.settings import Settings
from outcore.chem.gradients.options import ASKED, DensityOptions
from outcore.chem.options import FROZEN, FROZEN_VIRTUAL, INTEGRALS, ROHF, TOLERANCE
from outcore.job import preflight

NORM = 1e-7  # largest norm of the last change of amplitudes, for a density


@dataclass(frozen=True, kw_only=True)
class Options(DensityOptions):
    """Options of coupled cluster."""

    method: Annotated[
        str,
        typer.Option(
            help="'ccsd'; for closed shells also 'dcsd' (distinguishable cluster), 'cc2' (doubles of second "
            "order), or 'ccd' and 'lccd' (linearized), which have no singles."
        ),
    ] = Settings.method
    storage: Annotated[str, storage.option(STORAGES, "integrals and amplitudes")] = "auto"
    integrals: Annotated[
        str,
        INTEGRALS,
    ] = "ri"
    tolerance: Annotated[float | None, TOLERANCE] = None
    auxbasis: Annotated[
        str | None,
        typer.Option(
            help="Auxiliary basis of coupled cluster: a name or a file, or 'auto' for even-tempered functions "
            "where none is on record. Default: that of the basis."
        ),
    ] = None
    jkbasis: Annotated[
        str | None,
        typer.Option(
            help="Auxiliary basis of the SCF: a name or a file, or 'auto' for even-tempered functions where none "
            "is on record. Default: that of the basis."
        ),
    ] = None
    frozen: Annotated[str, FROZEN] = "0"
    frozen_virtual: Annotated[str, FROZEN_VIRTUAL] = "0"
    rohf: Annotated[bool, ROHF] = False
    orbitals: Annotated[
        str | None,
        typer.Option(
            help="With --rohf and --frozen: orbitals become semicanonical before some are frozen ('semicanonical', "
            "the default), or after ('standard', the default if a list names the frozen ones).",
            show_default=False,
        ),
    ] = None
    fno: Annotated[
        float,
        typer.Option(
            help="Leave out virtual natural orbitals of second order whose occupation is not above this number, "
            "such as 1e-5; their second-order energy is added."
        ),
    ] = Settings.fno
    triples: Annotated[
        bool, typer.Option("--triples", help="Add (T), connected triples by perturbation theory.")
    ] = False
    ladder: Annotated[
        str,
        typer.Option(
            help="Integrals of the particle ladder: on 'disk' and in 'memory' in single precision, or in double "
            "where amplitudes converge below 1e-7; 'rebuild': recomputed in each iteration; 'auto': of those that "
            "fit, the fastest on this machine."
        ),
    ] = Settings.ladder
    cc_tol: Annotated[
        float, typer.Option(help="Change of the energy below which an iteration may be the last (Hartree).")
    ] = Settings.conv_tol
    amplitude_tol: Annotated[
        float,
        typer.Option(help="Norm of the change of the amplitudes below which an iteration may be the last."),
    ] = Settings.conv_tol_normt
    iterations: Annotated[int, typer.Option(help="Maximum number of iterations after the SCF.")] = (
        Settings.max_cycle
    )
    diis: Annotated[int, typer.Option(help="Vectors of the extrapolation (DIIS); 1 for none.")] = (
        Settings.diis_space
    )
    scf_level_shift: Annotated[
        float,
        typer.Option(
            "--scf-level-shift",
            help="Raises empty orbitals during the SCF (Hartree): slower, safer.",
            show_default=False,
        ),
    ] = 0.0
    scf_damping: Annotated[
        float,
        typer.Option(
            "--scf-damping",
            help="Share of the last Fock matrix that stays in each cycle of the SCF, below 1: slower, safer.",
            show_default=False,
        ),
    ] = 0.0
    level_shift: Annotated[
        float, typer.Option(help="Raises virtual orbitals in denominators (Hartree): slower, safer.")
    ] = Settings.level_shift
    amplitudes: Annotated[
        Path | None,
        typer.Option(
            help="Write amplitudes to this HDF5 file at the end, in the form of PySCF's checkpoints."
        ),
    ] = None
    from_amplitudes: Annotated[
        Path | None,
        typer.Option(help="Begin with the amplitudes of this HDF5 file, from --amplitudes or from PySCF."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Continue with an SCF that has not converged.")] = (
        False
    )
    damping: Annotated[
        float, typer.Option(help="Share of the old amplitudes that stays, below 1: slower, safer.")
    ] = Settings.damping

    def check(self) -> None:
        scf_options.check_one_method(self.uhf, self.rohf)
        if not self.rohf or (self.frozen == "0" and self.frozen_virtual == "0"):
            preflight.refuse({"--orbitals": self.orbitals}, "without --rohf and --frozen")
        if self.estimate:
            preflight.refuse(
                {"--amplitudes": self.amplitudes, "--from-amplitudes": self.from_amplitudes},
                "with --estimate, which computes nothing",
            )
        check_places(self.storage, self.ladder)
        if self.integrals != "ri":
            why = f"with --integrals {self.integrals}, which needs no auxiliary basis"
            preflight.refuse({"--auxbasis": self.auxbasis, "--jkbasis": self.jkbasis}, why)
        if self.integrals != "cholesky":
            preflight.refuse({"--tolerance": self.tolerance}, "without --integrals cholesky")
        method = methods.of(self.method)
        if not method.has_ladder and self.ladder != Settings.ladder:
            preflight.refuse({"--ladder": self.ladder}, f"with --method {self.method}, which has no ladder")
        self.settings()
        self._check_density(method)
        if not method.has_amplitude_file:
            preflight.refuse(
                {"--amplitudes": self.amplitudes}, f"with --method {self.method}: the file is of CCSD"
            )
        if not method.has_triples:
            preflight.refuse({"--triples": self.triples}, f"with --method {self.method}: (T) is of CCSD")
        super().check()

    def _check_density(self, method: methods.MethodFacts) -> None:
        """Raises OutcoreError for densities and gradients that the method does not have."""
        if not method.has_densities:
            preflight.refuse(self.asked_for, f"with --method {self.method}: densities are of CCSD")
        if self.fno:
            preflight.refuse(self.asked_for, "with --fno, whose orbitals are not those of the SCF")
        if self.rohf:
            preflight.refuse(self.asked_for, "with --rohf: relaxed densities are of RHF and UHF")
        if self.integrals != "ri":
            preflight.refuse(
                self.asked_for, f"with --integrals {self.integrals}: relaxed densities are of density fitting"
            )

    @property
    def has_density(self) -> bool:
        """Whether a density of any state is made."""
        return self.of_density

    @property
    def tightened_by(self) -> str:
        """For people: what needs amplitudes that converge more tightly than `amplitude_tol`."""
        return "their density"

    def reads(self) -> dict[str, Any]:
        return super().reads() | {"the amplitudes": self.from_amplitudes}

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--amplitudes": self.amplitudes}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.amplitudes, "write amplitudes")

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of CCSD."""
        found: dict[str, Any] = {
            "method": self.method,
            "integrals": self.integrals,
            "ladder": self.ladder,
            # A density has the error of the amplitudes, an energy its square.
            "conv_tol": min(self.cc_tol, ASKED) if self.has_density else self.cc_tol,
            "conv_tol_normt": min(self.amplitude_tol, NORM) if self.has_density else self.amplitude_tol,
            "max_cycle": self.iterations,
            "diis_space": self.diis,
            "level_shift": self.level_shift,
            "damping": self.damping,
            "fno": self.fno,
        }
        for name in ("tolerance", "orbitals"):
            if (value := getattr(self, name)) is not None:
                found[name] = value
        Settings(**found)
        return found
