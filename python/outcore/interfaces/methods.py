"""Names of methods, as other programs give them, and the commands that compute them."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.chem.gradients.properties import DEBYE
from outcore.cli import main


@dataclass(frozen=True)
class NamedMethod:
    """energy: key of the energy in the results; a list of energies has one for each root. options: options of the
    command that define the method; keywords cannot change them."""

    command: str
    energy: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_gradient(self) -> bool:
        return "gradient" in self._names

    @property
    def has_dipole(self) -> bool:
        """Whether the command has an option for the dipole moment. Full CI computes it in any case."""
        return "dipole" in self._names

    @property
    def _names(self) -> set[str]:
        return {each.name for each in main.parameters(self.command)}

    def energy_of(self, found: Mapping[str, Any]) -> float:
        """The energy in the results (Hartree), that of the first root."""
        value = found[self.energy]
        return float(value[0] if isinstance(value, list) else value)

    def dipole_of(self, found: Mapping[str, Any]) -> list[float] | None:
        """The dipole moment in the results (atomic units, about the origin), that of the first root. None: it was
        not computed."""
        debye = found.get("dipole_debye") or found.get("roots", [{}])[0].get("dipole_debye")
        return None if debye is None else [each / DEBYE for each in debye]


def _cluster(method: str, energy: str, *, triples: bool = False) -> NamedMethod:
    return NamedMethod("ccsd", energy, {"method": method, "triples": triples})


def _multireference(*, acpf: bool = False, aqcc: bool = False) -> NamedMethod:
    return NamedMethod("mrci", "energies_hartree", {"acpf": acpf, "aqcc": aqcc})


_FITTED = NamedMethod("ri-scf", "energy_hartree")
_MP2 = NamedMethod("rimp2", "total_hartree")
METHODS = {
    "hf": NamedMethod("scf", "energy_hartree"),
    "scf": NamedMethod("scf", "energy_hartree"),
    "ri-hf": _FITTED,
    "ri-scf": _FITTED,
    "df-hf": _FITTED,
    "mp2": _MP2,
    "ri-mp2": _MP2,
    "df-mp2": _MP2,
    "ccsd(t)": _cluster("ccsd", "ccsd_t_energy_hartree", triples=True),
    **{name: _cluster(name, f"{name}_energy_hartree") for name in ("ccsd", "dcsd", "cc2", "ccd", "lccd")},
    "fci": NamedMethod("fci", "energies_hartree"),
    "mrci": _multireference(),
    "mr-acpf": _multireference(acpf=True),
    "mr-aqcc": _multireference(aqcc=True),
}


def find(name: str) -> NamedMethod:
    """The method of this name, in upper or lower case. Raises OutcoreError (EINVAL) if there is none."""
    found = METHODS.get(name.strip().lower())
    if found is None:
        close = difflib.get_close_matches(name.lower(), METHODS, 1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise OutcoreError(errno.EINVAL, f"method '{name}'", detail=f"{hint}there are {', '.join(METHODS)}")
    return found
