"""Options of `outcore casscf`."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from outcore.base.errors import OutcoreError
from outcore.chem import storage as storage_words
from outcore.chem.casscf.space import THRESHOLD, AskedSpace
from outcore.chem.ci.target import MAX_ROOTS, AskedStates, read_states
from outcore.chem.formats import densities
from outcore.chem.hf.settings import METHOD, STORAGES
from outcore.chem.options import DENSITY, DENSITY_OF, STATES, WRITE_FCIDUMP, MoleculeOptions
from outcore.job import preflight

INTEGRALS = ("conventional", "ri")


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """Options of a CASSCF or CASCI of a molecule, after its SCF."""

    without: ClassVar[tuple[str, ...]] = ("uhf",)

    storage: Annotated[str, storage_words.option(STORAGES, "integrals of the SCF")] = "auto"
    cas: Annotated[
        str | None,
        typer.Option(metavar="N,M", help="N electrons in M orbitals; without --active the next ones."),
    ] = None
    active: Annotated[
        str | None,
        typer.Option(
            help="Active orbitals of the SCF: a list such as 3,4,6-8, counted from 0, or a number for each irrep "
            "such as A1=3,B1=1, above those that --cas or --core leaves doubly occupied."
        ),
    ] = None
    core: Annotated[
        str | None,
        typer.Option(
            help="Doubly occupied orbitals of each irrep, such as A1=2,B2=1, below those of --active. Default: for "
            "all electrons outside --cas: all of irreps without active orbitals, the lowest of others."
        ),
    ] = None
    avas: Annotated[
        str | None,
        typer.Option(
            help="Atomic orbitals whose span is active, such as 'N 2p' or 'Fe 3d,C 2pz', in place of --cas and "
            "--active; without point-group symmetry."
        ),
    ] = None
    avas_threshold: Annotated[
        float, typer.Option(help="Least share of an active orbital in the atomic ones of --avas.")
    ] = THRESHOLD
    integrals: Annotated[
        str, typer.Option(help="'conventional': exact; 'ri': density fitting, in the SCF too.")
    ] = INTEGRALS[0]
    jkbasis: Annotated[
        str | None,
        typer.Option(
            help="Auxiliary basis of the SCF: a name or a file, or 'auto' for even-tempered functions where none "
            "is on record. Default: that of the basis."
        ),
    ] = None
    casci: Annotated[
        bool, typer.Option("--casci", help="Keep the orbitals of the SCF, or those of --avas, as they are.")
    ] = False
    irrep: Annotated[
        str | None, typer.Option(help="Irrep of the states. Default: that of the lowest active orbitals.")
    ] = None
    roots: Annotated[int, typer.Option(help="Number of states.")] = 1
    states: Annotated[str | None, STATES] = None
    weights: Annotated[
        str | None,
        typer.Option(
            help="Weights of the states in the average for which orbitals are optimised. Default: all the same."
        ),
    ] = None
    iterations: Annotated[int, typer.Option(help="Maximum number of iterations after the SCF.")] = 50
    nevpt2: Annotated[bool, typer.Option("--nevpt2", help="Strongly contracted NEVPT2 of each state.")] = (
        False
    )
    quasi_degenerate: Annotated[
        bool,
        typer.Option("--quasi-degenerate", help="With --nevpt2: QD-NEVPT2, which mixes all states."),
    ] = False
    frozen: Annotated[
        str,
        typer.Option(
            help="Core orbitals that NEVPT2 does not correlate: a number of the lowest, or 'auto' for the cores."
        ),
    ] = "0"
    frozen_virtual: Annotated[
        str, typer.Option(help="Virtual orbitals that NEVPT2 does not correlate: a number of the highest.")
    ] = "0"
    density: Annotated[Path | None, DENSITY] = None
    write_fcidump: Annotated[Path | None, WRITE_FCIDUMP] = None

    density_of: Annotated[str, DENSITY_OF] = "1"

    def check(self) -> None:
        storage_words.check(self.storage, STORAGES, METHOD)
        if self.integrals not in INTEGRALS:
            raise OutcoreError(
                errno.EINVAL, f"--integrals {self.integrals}", detail=f"it may be {' or '.join(INTEGRALS)}"
            )
        if self.integrals != "ri":
            preflight.refuse({"--jkbasis": self.jkbasis}, "without --integrals ri")
        elif self.storage not in ("auto", "disk"):
            raise OutcoreError(
                errno.EINVAL, f"--storage {self.storage}", detail="fitted integrals have auto and disk"
            )
        preflight.check_count("--roots", self.roots, MAX_ROOTS)
        if self.states is not None:
            instead = {"--irrep": self.irrep, "--roots": self.roots != 1}
            preflight.refuse(instead, "with --states, which names irreps and numbers of states")
        preflight.check_count("--iterations", self.iterations)
        preflight.check_number("--avas-threshold", self.avas_threshold, below=1.0)
        if self.avas is None:
            preflight.refuse({"--avas-threshold": self.avas_threshold != THRESHOLD}, "without --avas")
        else:
            preflight.refuse({"--irrep": self.irrep}, "with --avas, which has no point-group symmetry")
            preflight.refuse({"--core": self.core}, "with --avas, which finds active orbitals")
            if self.estimate:
                preflight.refuse({"--avas": True}, "with --estimate, without orbitals")
        if self.casci:
            of_orbitals = {"--weights": self.weights, "--iterations": self.iterations != 50}
            preflight.refuse(of_orbitals, "with --casci, which optimises no orbitals")
        self.state_weights()
        if self.count == 1:
            preflight.refuse(
                {"--quasi-degenerate": self.quasi_degenerate}, "of one state, which mixes with none"
            )
        if not self.nevpt2:
            of_nevpt2 = {
                "--frozen": self.frozen != "0",
                "--frozen-virtual": self.frozen_virtual != "0",
                "--quasi-degenerate": self.quasi_degenerate,
            }
            preflight.refuse(of_nevpt2, "without --nevpt2")
        if self.estimate:
            files = {"--density": self.density, "--write-fcidump": self.write_fcidump}
            preflight.refuse(files, "with --estimate, without states")
        self._check_density()
        self.space().check()
        super().check()

    def _check_density(self) -> None:
        densities.check("--density", self.density)
        if self.density is None:
            preflight.refuse({"--density-of": self.density_of != "1"}, "without --density")
        if self.density_of != "average" and self.density_of not in map(str, range(1, self.count + 1)):
            raise OutcoreError(
                errno.EINVAL,
                f"--density-of {self.density_of}",
                detail=f"it may be a number from 1 to {self.count}, or 'average'",
            )

    def space(self) -> AskedSpace:
        """The choice of active orbitals."""
        names = tuple(each.strip() for each in self.avas.split(",")) if self.avas is not None else ()
        return AskedSpace(self._cas(), self.active, self.core, names, self.avas_threshold)

    def groups(self, spin: int) -> tuple[AskedStates, ...]:
        """The groups of states, each of one irrep and spin. spin: 2S of the SCF. Raises OutcoreError (EINVAL)."""
        if self.states is None:
            return (AskedStates(self.irrep, spin, self.roots),)
        return read_states(self.states)

    @property
    def count(self) -> int:
        """Number of states."""
        return sum(each.roots for each in self.groups(0))

    def _cas(self) -> tuple[int, int] | None:
        if self.cas is None:
            return None
        numbers = self.cas.split(",")
        if len(numbers) != 2 or not all(each.strip().isdigit() and int(each) for each in numbers):
            raise OutcoreError(
                errno.EINVAL,
                f"--cas {self.cas}",
                detail="two numbers are needed, of electrons and of orbitals, such as 6,6",
            )
        return int(numbers[0]), int(numbers[1])

    def density_weights(self) -> list[float]:
        """The weight of each state in the density that is written."""
        if self.density_of == "average":
            return self.state_weights()
        return [float(number == int(self.density_of)) for number in range(1, self.count + 1)]

    def state_weights(self) -> list[float]:
        """The weight of each state in the average; they add up to 1. Raises OutcoreError (EINVAL)."""
        if self.weights is None:
            return [1.0 / self.count] * self.count
        try:
            found = [float(each) for each in self.weights.split(",")]
        except ValueError:
            found = []
        good = len(found) == self.count > 1 and all(math.isfinite(each) and each >= 0 for each in found)
        if not good or not math.isclose(sum(found), 1.0, abs_tol=1e-9):
            raise OutcoreError(
                errno.EINVAL,
                f"--weights {self.weights}",
                detail="a number of 0 or more is needed for each of several --roots or --states, which add up to 1",
            )
        return found

    def writes(self) -> dict[str, Any]:
        return super().writes() | {"--density": self.density, "--write-fcidump": self.write_fcidump}

    def check_targets(self) -> None:
        super().check_targets()
        preflight.check_file(self.density, "write the density")
        preflight.check_file(self.write_fcidump, "write FCIDUMP")
