"""A calculator of ASE.

    atoms.calc = Outcore(method="mp2", basis="cc-pvdz", memory="2GB")
    forces = atoms.get_forces()  # eV/Angstrom

It computes in the calling process, without files except scratch; under a launcher all processes call it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import extras, plain_file
from outcore.interfaces import job, methods
from outcore.interfaces.geometries import Geometries

try:
    from ase.calculators import calculator
    from ase.calculators.calculator import (
        CalculationFailed,
        CalculatorSetupError,
        InputError,
        PropertyNotImplementedError,
        ReadError,
        SCFError,
        all_changes,
    )
    from ase.io import jsonio
    from ase.units import Bohr, Hartree
except ModuleNotFoundError as error:
    raise extras.missing(error, "make a calculator of ASE") or error from error

if TYPE_CHECKING:
    from ase import Atoms

_ERRORS = {"input": InputError, "resource": CalculatorSetupError, "convergence": SCFError}


class Outcore(calculator.Calculator):  # type: ignore[misc]
    """Energy (eV), forces (eV/Angstrom) and dipole moment (e Angstrom, about the origin) of a molecule.

    Args:
        method: a name of `outcore.interfaces.methods`, such as "hf", "ri-hf", "mp2", "ccsd(t)", "fci".
        basis: as PySCF names it, or a file in NWChem's format.
        restart: a file that `write` made: atoms, keywords and results are read from it.
        keywords: options of the command of the method, such as memory, threads, scratch, frozen, charge, spin;
            `ranks` starts processes for each calculation. With `checkpoint=DIR` each calculation begins with the
            orbitals of the one before, also of an earlier program, and continues if it was stopped. Charge and
            unpaired electrons are by default the sums of the initial charges and magnetic moments of the atoms.

    Raises errors of ASE, before anything is computed: InputError (methods, keywords, basis sets, periodic cells),
    CalculatorSetupError (memory, disk), PropertyNotImplementedError; later SCFError if an iteration has not
    converged; ReadError for `restart`. `warnings`: why the last results are doubtful.
    """

    implemented_properties = ["energy", "free_energy", "forces", "dipole"]  # noqa: RUF012 (ASE's convention)
    default_parameters = {"method": "hf", "basis": None}  # noqa: RUF012
    discard_results_on_any_change = True
    nolabel = True  # then ASE's command line gives no label

    def __init__(self, restart: str | os.PathLike[str] | None = None, **keywords: Any) -> None:
        for name in ("label", "directory", "ignore_bad_restart_file"):
            if name in keywords:
                raise InputError(f"'{name}' has no effect: only checkpoint and write make files")
        self.warnings: list[str] = []
        super().__init__(None if restart is None else os.fspath(restart), **keywords)

    def set(self, **keywords: Any) -> dict[str, Any]:
        """Changes keywords; None removes one. Raises InputError."""
        kept = dict(self.parameters)
        plain = {
            name: os.fspath(each) if isinstance(each, os.PathLike) else each
            for name, each in keywords.items()
        }
        changed: dict[str, Any] = super().set(**plain)
        try:
            for name in [
                name for name, value in self.parameters.items() if value is None and name != "basis"
            ]:
                del self.parameters[name]
            self._options(None)
        except Exception as error:
            self.parameters.clear()
            self.parameters.update(kept)
            raise _as_ases(error) from error
        method = self._method
        has = {"forces": method.has_gradient, "dipole": method.has_dipole or method.command == "fci"}
        self.implemented_properties = [
            name for name in type(self).implemented_properties if has.get(name, True)
        ]
        return changed

    def calculate(
        self,
        atoms: Atoms | None = None,
        properties: Any = ("energy",),
        system_changes: Any = all_changes,
    ) -> None:
        """Collective under a launcher."""
        super().calculate(atoms, properties, system_changes)
        for name in properties:
            if name not in self.implemented_properties:
                raise PropertyNotImplementedError(f"{self.parameters.method} has no {name}")
        method = self._method
        try:
            given, text = self._options(self.atoms, properties), _geometry(self.atoms)
            kept = Geometries(Path(given["checkpoint"])) if "checkpoint" in given else None
            if kept is not None:
                given |= kept.options(text)
            done = job.compute(method.command, given, text)
            if kept is not None:
                kept.done(text)
        except Exception as error:
            raise _as_ases(error) from error
        found = done.results
        energy = method.energy_of(found) * Hartree
        self.results |= {"energy": energy, "free_energy": energy}
        if (gradient := found.get("gradient_hartree_per_bohr")) is not None:
            self.results["forces"] = -np.array(gradient) * Hartree / Bohr
        if (dipole := method.dipole_of(found)) is not None:
            self.results["dipole"] = np.array(dipole) * Bohr
        self.warnings = done.warnings

    @property
    def _method(self) -> methods.NamedMethod:
        return methods.find(str(self.parameters.method))

    def _options(self, atoms: Atoms | None, properties: Any = ()) -> dict[str, Any]:
        """The options of the command. atoms: None to check the keywords only."""
        method = self._method
        keywords = {
            name: value for name, value in self.parameters.items() if name not in self.default_parameters
        }
        if not isinstance(self.parameters.basis, str):
            raise job.refused("basis is missing: give the name of a set, or of a file in NWChem's format")
        own: dict[str, Any] = {"basis": self.parameters.basis, "unit": "angstrom", "frame": None}
        if method.has_gradient:
            own["gradient"] = "forces" in properties or None
        if method.has_dipole:
            own["dipole"] = "dipole" in properties or "forces" in properties or None
        if atoms is not None:
            keywords |= _state(atoms, keywords)
        given = job.options(method, keywords, own)
        job.words(method.command, given)
        return given

    # ---- results in files ----

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes atoms, keywords and results of the last calculation, as JSON for `restart`. Raises
        OutcoreError."""
        if self.atoms is None:
            raise CalculationFailed("there is no calculation to write")
        found = {"atoms": self.atoms, "parameters": dict(self.parameters), "results": self.results}
        plain_file.write_text(path, "write a calculation", jsonio.encode(found))

    def read(self, path: str) -> None:
        """Reads a file of `write`. Raises ReadError."""
        try:
            plain_file.check_regular(path, "read a calculation")
            found = jsonio.read_json(path)
            atoms, parameters, results = (found[name] for name in ("atoms", "parameters", "results"))
        except Exception as error:  # ASE's parser may raise anything for a damaged file
            raise ReadError(f"{path}: no calculation of Outcore ({type(error).__name__}: {error})") from error
        self.parameters = calculator.Parameters(parameters)
        self.atoms, self.results = atoms, results


def _state(atoms: Atoms, keywords: dict[str, Any]) -> dict[str, int]:
    """Charge and number of unpaired electrons of the atoms. Raises OutcoreError if keywords contradict them."""
    if atoms.pbc.any():
        raise job.refused("the atoms are periodic, but methods compute molecules: set pbc=False")
    found = {}
    for name, values in (
        ("charge", atoms.get_initial_charges()),
        ("spin", atoms.get_initial_magnetic_moments()),
    ):
        if not np.any(values):
            continue
        total = abs(np.sum(values)) if name == "spin" else np.sum(values)
        if abs(total - round(total)) > 1e-6:
            raise job.refused(f"the {name} of the atoms is {total:.3f}, which is no whole number")
        if keywords.get(name, round(total)) != round(total):
            raise job.refused(f"{name} is {keywords[name]}, but that of the atoms is {round(total)}")
        found[name] = round(total)
    return found


def _geometry(atoms: Atoms) -> str:
    lines = [
        " ".join([symbol, *(repr(float(each)) for each in place)])
        for symbol, place in zip(atoms.get_chemical_symbols(), atoms.positions, strict=True)
    ]
    return "\n".join([str(len(lines)), "ASE", *lines, ""])


def _as_ases(error: Exception) -> Exception:
    kind = _ERRORS.get(job.kind_of(error), CalculationFailed)
    return kind(str(error))  # type: ignore[no-any-return]


if "outcore" not in calculator.external_calculators:
    calculator.register_calculator_class("outcore", Outcore)
