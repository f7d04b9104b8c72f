"""Options that `outcore ri-scf` and `outcore rimp2` have in common, named once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from outcore import preflight
from outcore.chem import scf_options
from outcore.chem.ri.plan import check_storage
from outcore.resources import parse_bytes

_MEMORY = (
    "Budget of all processes, what they need to start included, e.g. 2GB. Default: half of what is free."
)


@dataclass(frozen=True)
class Options:
    """What both commands are asked for."""

    geometry: Annotated[Path, typer.Argument(help="XYZ file, in Angstrom.")]
    basis: Annotated[str, typer.Option(help="Basis set, as PySCF names it, or a file in NWChem's format.")]
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
        bool, typer.Option("--uhf", help="Unrestricted; the default if electrons are unpaired.")
    ] = False
    ranks: Annotated[
        int | None, typer.Option(help="Processes to start; leave out under mpiexec or srun.")
    ] = None
    threads: Annotated[
        int | None, typer.Option(help="Threads of each process. Default: its share of the cores.")
    ] = None
    memory: Annotated[str | None, typer.Option(help=_MEMORY)] = None
    scratch: Annotated[
        str | None, typer.Option(help="Scratch directory. Default: the fastest node-local one.")
    ] = None
    storage: Annotated[
        str, typer.Option(help="'auto': integrals that fit into --memory stay there; 'disk': all on disk.")
    ] = "auto"
    threshold: Annotated[
        float, typer.Option(help="Schwarz bound of pairs of functions that are left out.")
    ] = 1e-11
    guess: Annotated[str, typer.Option(help="Start guess, as PySCF names it.")] = "minao"
    conv_tol: Annotated[float, typer.Option(help="Convergence of the energy (Hartree).")] = 1e-9
    max_cycle: Annotated[int, typer.Option(help="Most SCF cycles.")] = 50
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep integrals, orbitals and finished pairs here; a run of the same problem goes on from them.",
        ),
    ] = None
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Print memory, disk, bytes moved and time, and compute nothing."),
    ] = False
    json_file: Annotated[Path | None, typer.Option("--json", help="Write results here.")] = None

    def check(self) -> None:
        """Raises OutcoreError for values that are out of range, before anything is done."""
        scf_options.check_guess(self.guess)
        scf_options.check_iterations(self.conv_tol, self.max_cycle)
        scf_options.check_threads(self.threads)
        preflight.check_number("--threshold", self.threshold, zero=True)
        check_storage(self.storage)

    def check_targets(self) -> None:
        """Raises OutcoreError if what is to be written cannot be."""
        read = {"the geometry": self.geometry, "the basis": self.basis, "the potentials": self.ecp}
        preflight.check_distinct(read, {"--json": self.json_file})
        preflight.check_file(self.json_file, "write results")
        preflight.check_directory(self.checkpoint, "keep arrays")

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else parse_bytes(self.memory)

    def settings(self, world: Any) -> dict[str, Any]:
        """For DensityFitting and MP2."""
        return {
            "memory": self.memory,
            "threads": self.threads,
            "threshold": self.threshold,
            "storage": self.storage,
            "checkpoint": self.checkpoint,
            "comm": world,
        }


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """A command whose first parameter is Options, as one that has the fields of Options in its place."""
    hints = get_type_hints(Options, include_extras=True)
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    common = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(Options)
    ]
    parameters = common + [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

    def flat(**given: Any) -> int:
        options = Options(**{each.name: given.pop(each.name) for each in common})
        return command(options, **given)

    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
    return flat
