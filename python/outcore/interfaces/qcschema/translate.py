"""An AtomicInput of QCSchema as a command, its options and its geometry."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcore.base import extras
from outcore.base.errors import OutcoreError
from outcore.interfaces import job, methods
from outcore.interfaces.methods import NamedMethod

if TYPE_CHECKING:
    from qcelemental.models.v2 import AtomicInput, Molecule

_ATTEMPTED = "read a QCSchema input"


@dataclass(frozen=True)
class SchemaRequest:
    """model: the input in version 2. version: of the input as it was given, and of the answer."""

    model: AtomicInput
    version: int
    method: NamedMethod
    options: dict[str, Any]
    geometry: str


def parse(given: Mapping[str, Any]) -> tuple[AtomicInput, int]:
    """The input in version 2, and the version in which it was given.

    Raises OutcoreError: EINVAL if it is no AtomicInput; also if qcelemental is missing."""
    try:
        from qcelemental.models import v2
    except ModuleNotFoundError as error:
        raise extras.missing(error, _ATTEMPTED) or error from error
    version = 2 if "specification" in given or given.get("schema_version") == 2 else 1
    try:
        model = v2.AtomicInput(**given) if version == 2 else _first(given)
    except Exception as error:  # two versions of pydantic, and validators of the schema, raise different ones
        raise refused(f"it is no AtomicInput of version {version}: {error}") from error
    return model, version


def _first(given: Mapping[str, Any]) -> AtomicInput:
    try:
        from qcelemental.models.v1 import AtomicInput
    except RuntimeError:  # version 1 of pydantic raises it under Python 3.14
        from qcelemental.models._v1v2 import AtomicInput
    found: AtomicInput = AtomicInput(**given).convert_v(2)
    return found


def translate(model: AtomicInput, version: int) -> SchemaRequest:
    """The command for an input. Raises OutcoreError (EINVAL, ENOTSUP), which names the part that no command can
    compute."""
    asked = model.specification
    if asked.program.lower() not in ("", "outcore"):
        raise refused(f"specification.program is {asked.program}")
    driver = str(getattr(asked.driver, "value", asked.driver))
    method = methods.find(asked.model.method)
    if not isinstance(asked.model.basis, str) or not asked.model.basis:
        raise refused(
            "model.basis is missing"
            if not asked.model.basis
            else "model.basis is a BasisSet: give the name of a set, or of a file in NWChem's format"
        )
    if driver == "hessian" or (driver == "gradient" and not method.has_gradient):
        raise refused(f"{asked.model.method} has no {driver}", errno.ENOTSUP)
    wavefunction = str(getattr(asked.protocols.wavefunction, "value", asked.protocols.wavefunction))
    if wavefunction != "none":
        raise refused(f"protocols.wavefunction {wavefunction}: orbitals are not returned", errno.ENOTSUP)
    own: dict[str, Any] = {
        "basis": asked.model.basis,
        "charge": _whole(model.molecule.molecular_charge, "molecular_charge"),
        "spin": _whole(model.molecule.molecular_multiplicity, "molecular_multiplicity") - 1,
        "unit": "bohr",
        "frame": None,
    }
    if method.has_gradient:
        own["gradient"] = driver == "gradient" or None
    if method.has_dipole:
        own["dipole"] = driver in ("gradient", "properties") or None
    given = job.options(method, asked.keywords, own)
    return SchemaRequest(model, version, method, given, geometry(model.molecule))


def geometry(molecule: Molecule) -> str:
    """The text of an XYZ file, in Bohr with all digits; atoms that are not real are ghosts."""
    lines = [str(len(molecule.symbols)), "QCSchema"]
    for symbol, real, place in zip(molecule.symbols, molecule.real, molecule.geometry, strict=True):
        name = str(symbol) if real else f"ghost-{symbol}"
        lines.append(" ".join([name, *(repr(float(each)) for each in place)]))
    return "\n".join(lines) + "\n"


def _whole(value: float, name: str) -> int:
    if value != round(value):
        raise refused(f"{name} {value} is no whole number")
    return round(value)


def refused(detail: str, number: int = errno.EINVAL) -> OutcoreError:
    return OutcoreError(number, _ATTEMPTED, detail=detail)
