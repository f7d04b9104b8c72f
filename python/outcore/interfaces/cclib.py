"""Results of Outcore (`--json FILE`) as data of cclib, for cclib's writers and methods.

data = outcore.interfaces.cclib.read("results.json")
cclib.io.ccwrite(data, "cjson", "results.cjson")
"""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import numpy as np

from outcore.base import extras, plain_file
from outcore.base.errors import OutcoreError
from outcore.cli.run import SCHEMA

_ATTEMPTED = "read results for cclib"
_MAX_BYTES = 1 << 28
_CLUSTER = ("ccsd_t", "ccsd", "dcsd", "cc2", "ccd", "lccd")  # the last step of a run comes first


def read(path: str | os.PathLike[str]) -> Any:
    """A ccData of a file of results. In cclib's units: eV, Angstrom, Debye, gradients in Hartree/Bohr.

    Raises OutcoreError: ENOENT and other errors of the file, EINVAL (no results of Outcore, or those of an
    estimate), and if cclib is missing."""
    try:
        from cclib.parser.data import ccData
    except ModuleNotFoundError as error:
        raise extras.missing(error, _ATTEMPTED) or error from error
    try:
        found = json.loads(plain_file.read_bytes(path, _ATTEMPTED, _MAX_BYTES))
    except ValueError as error:  # wrong JSON or UTF-8
        raise _refused(path, str(error)) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise _refused(path, f"its schema is not {SCHEMA}")
    if "molecule" not in found or "run_seconds" not in found:
        raise _refused(path, "it has no results of a molecule")
    return ccData({name: value for name, value in _attributes(found).items() if value is not None})


def _attributes(found: dict[str, Any]) -> dict[str, Any]:
    from pyscf.data.elements import charge

    molecule = found["molecule"]
    last = found.get("geometry_angstrom")
    geometries = [np.array([row[1:] for row in each], float) for each in (molecule["atoms"], last) if each]
    symbols = [row[0].rpartition("-")[2] for row in molecule["atoms"]]
    dipole = found.get("dipole_debye") or (found.get("roots") or [{}])[0].get("dipole_debye")
    gradient = found.get("gradient_hartree_per_bohr")
    charges = found.get("mulliken_charges")
    scf = found.get("scf_energy_hartree", found.get("energy_hartree"))
    correlated = next((found[key] for name in _CLUSTER if (key := f"{name}_energy_hartree") in found), None)
    if correlated is None and "energies_hartree" in found:
        correlated = found["energies_hartree"][0]
    return {
        "atomnos": np.array([charge(each) for each in symbols]),
        "atomcoords": np.array(geometries),
        "natom": len(symbols),
        "charge": molecule["charge"],
        "mult": molecule["spin"] + 1,
        "nbasis": molecule["functions"],
        "nelectrons": molecule["electrons"],
        "scfenergies": None if scf is None else _electron_volts(scf),
        "mpenergies": None
        if "total_hartree" not in found
        else _electron_volts(found["total_hartree"])[:, None],
        "ccenergies": None if correlated is None else _electron_volts(correlated),
        **_excited(found),
        "grads": None if gradient is None else np.array([gradient]),
        "moments": None if dipole is None else [np.zeros(3), np.array(dipole)],
        "atomcharges": None if charges is None else {"mulliken": np.array(charges)},
        "metadata": {
            "package": "Outcore",
            "package_version": found["version"],
            "methods": [found["method"].partition("/")[0]],
            "basis_set": molecule["basis"],
            "success": bool(found.get("converged", True)),
        },
    }


def _excited(found: dict[str, Any]) -> dict[str, Any]:
    """Excitation energies (1/cm) and oscillator strengths of EOM, in which all states have converged."""
    from cclib.parser.utils import convertor

    states = found.get("states", [])
    if found.get("kind") != "ee" or not all(each["converged"] for each in states):
        return {}
    energies = [convertor(each["energy_hartree"], "hartree", "wavenumber") for each in states]
    strengths = [each["oscillator_strength"] for each in states if "oscillator_strength" in each]
    return {"etenergies": np.array(energies), "etoscs": np.array(strengths) if strengths else None}


def _electron_volts(value: float) -> Any:
    from cclib.parser.utils import convertor

    return np.array([convertor(value, "hartree", "eV")])


def _refused(path: str | os.PathLike[str], detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _ATTEMPTED, path=path, detail=detail)
