"""Results of a command as an AtomicResult of QCSchema; errors as a FailedOperation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outcore.interfaces import job

if TYPE_CHECKING:
    from qcelemental.models.v2 import AtomicResult, FailedOperation

    from outcore.interfaces.job import Done
    from outcore.interfaces.qcschema.translate import SchemaRequest

# Keys of results, and their names in the schema.
_COUNTED = {
    "scf": {"energy_hartree": "scf_total_energy", "cycles": "scf_iterations"},
    "ri-scf": {"energy_hartree": "scf_total_energy", "cycles": "scf_iterations"},
    "rimp2": {
        "energy_hartree": "scf_total_energy",
        "correlation_hartree": "mp2_correlation_energy",
        "same_spin_hartree": "mp2_same_spin_correlation_energy",
        "opposite_spin_hartree": "mp2_opposite_spin_correlation_energy",
        "total_hartree": "mp2_total_energy",
    },
    "ccsd": {
        "scf_energy_hartree": "scf_total_energy",
        "ccsd_correlation_hartree": "ccsd_correlation_energy",
        "ccsd_energy_hartree": "ccsd_total_energy",
        "ccsd_t_energy_hartree": "ccsd_prt_pr_total_energy",
    },
    "fci": {"scf_energy_hartree": "scf_total_energy"},
    "mrci": {"scf_energy_hartree": "scf_total_energy"},
    "casscf": {"scf_energy_hartree": "scf_total_energy"},
}
# Variables of QCEngine; some of them have no field in the schema.
_VARIABLES = {
    "scf_total_energy": ("HF TOTAL ENERGY", "SCF TOTAL ENERGY", "CURRENT REFERENCE ENERGY"),
    "mp2_correlation_energy": ("MP2 CORRELATION ENERGY", "MP2 DOUBLES ENERGY"),
    "mp2_same_spin_correlation_energy": ("MP2 SAME-SPIN CORRELATION ENERGY",),
    "mp2_opposite_spin_correlation_energy": ("MP2 OPPOSITE-SPIN CORRELATION ENERGY",),
    "mp2_total_energy": ("MP2 TOTAL ENERGY",),
    "ccsd_correlation_energy": ("CCSD CORRELATION ENERGY",),
    "ccsd_total_energy": ("CCSD TOTAL ENERGY",),
}
_DIPOLES = {"scf": "scf", "ri-scf": "scf", "rimp2": "mp2", "ccsd": "ccsd"}


def result(request: SchemaRequest, done: Done) -> AtomicResult:
    """An AtomicResult of version 2. Its `extras` have all results under `outcore`, and energies and the gradient by
    the names of QCEngine under `qcvars`."""
    from qcelemental.models.v2 import AtomicResult

    found = done.results
    asked = request.model.specification
    driver = str(getattr(asked.driver, "value", asked.driver))
    properties = _properties(request, found, driver)
    values: dict[str, Any] = {
        "energy": properties["return_energy"],
        "gradient": found.get("gradient_hartree_per_bohr"),
        "properties": _of_state(request, found),
    }
    return AtomicResult(
        input_data=request.model,
        molecule=request.model.molecule,
        properties=properties,
        return_result=values[driver],
        success=True,
        stdout=done.said or None,
        stderr="\n".join(done.warnings) or None,
        provenance={
            "creator": "Outcore",
            "version": found["version"],
            "routine": f"outcore {request.method.command}",
            "nthreads": found["processes"] * found["threads_of_a_process"],
        },
        extras={"outcore": found, "qcvars": _variables(request, properties)},
    )


def _properties(request: SchemaRequest, found: Mapping[str, Any], driver: str) -> dict[str, Any]:
    method, molecule = request.method, found["molecule"]
    electrons, spin = molecule["electrons"], molecule["spin"]
    properties = {
        "calcinfo_natom": len(molecule["atoms"]),
        "calcinfo_nbasis": molecule["functions"],
        "calcinfo_nmo": found["molecular_orbitals"],
        "calcinfo_nalpha": (electrons + spin) // 2,
        "calcinfo_nbeta": (electrons - spin) // 2,
        "return_energy": method.energy_of(found),
    }
    for key, name in _COUNTED[method.command].items():
        if key in found:
            properties[name] = found[key]
    if "ccsd_prt_pr_total_energy" in properties:
        properties["ccsd_prt_pr_correlation_energy"] = (
            found["ccsd_t_energy_hartree"] - found["scf_energy_hartree"]
        )
    if "ccsd_total_energy" in properties and "iterations" in found:
        properties["ccsd_iterations"] = found["iterations"]
    if "mp2_correlation_energy" in properties:  # orbitals of RHF and UHF: singles have no energy
        properties |= {"mp2_singles_energy": 0.0, "mp2_doubles_energy": properties["mp2_correlation_energy"]}
    if driver == "gradient":
        properties["return_gradient"] = found["gradient_hartree_per_bohr"]
        if method.title == "HF":
            properties["scf_total_gradient"] = properties["return_gradient"]
    dipole = method.dipole_of(found)
    if dipole is not None and (of_dipole := _dipole_name(request)):
        properties[of_dipole] = dipole
    return properties


def _variables(request: SchemaRequest, properties: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: properties[key] for key, names in _VARIABLES.items() for name in names if key in properties
    }
    title, energy = request.method.title, properties["return_energy"]
    found |= {f"{title} TOTAL ENERGY": energy, "CURRENT ENERGY": energy}
    if title != "HF":
        correlation = energy - properties["scf_total_energy"]
        found |= {f"{title} CORRELATION ENERGY": correlation, "CURRENT CORRELATION ENERGY": correlation}
    if title == "MP2":
        found["MP2 SINGLES ENERGY"] = 0.0
    if title == "CCSD(T)":
        found["(T) CORRECTION ENERGY"] = energy - properties["ccsd_total_energy"]
    if "return_gradient" in properties:
        gradient = properties["return_gradient"]
        found |= {f"{title} TOTAL GRADIENT": gradient, "CURRENT GRADIENT": gradient}
    return found


def _dipole_name(request: SchemaRequest) -> str | None:
    method = request.method
    if method.command == "ccsd" and method.energy != "ccsd_energy_hartree":
        return "ccsd_prt_pr_dipole_moment" if method.options.get("triples") else None
    return f"{_DIPOLES[method.command]}_dipole_moment" if method.command in _DIPOLES else None


def _of_state(request: SchemaRequest, found: Mapping[str, Any]) -> dict[str, Any]:
    """The return value of the driver `properties`: atomic units, multipoles about the origin."""
    method = request.method
    values: dict[str, Any] = {"energy": method.energy_of(found), "dipole_moment": method.dipole_of(found)}
    for key, name in (
        ("quadrupole_au", "quadrupole_moment"),
        ("mulliken_charges", "mulliken_charges"),
        ("mulliken_spins", "mulliken_spins"),
        ("energies_hartree", "energies"),
    ):
        values[name] = found.get(key)
    return {name: value for name, value in values.items() if value is not None}


def failed(given: Any, error: BaseException) -> FailedOperation:
    """A FailedOperation of version 2: the input, the kind of the error as QCEngine names it, and its message."""
    from qcelemental.models.v2 import FailedOperation

    return FailedOperation(
        input_data=given,
        error={"error_type": f"{job.kind_of(error)}_error", "error_message": str(error) or repr(error)},
    )
