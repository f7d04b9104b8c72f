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
    """energy: key of the energy in the results; a list of energies has one for each root. title: in names of
    results. options: options of the command that define the method; keywords cannot change them."""

    command: str
    energy: str
    title: str
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


def _cluster(method: str) -> NamedMethod:
    return NamedMethod(
        "ccsd", f"{method}_energy_hartree", method.upper(), {"method": method, "triples": False}
    )


def _multireference(title: str, *, acpf: bool = False, aqcc: bool = False) -> NamedMethod:
    return NamedMethod("mrci", "energies_hartree", title, {"acpf": acpf, "aqcc": aqcc})


def _active(title: str, energy: str, *, casci: bool = False, nevpt2: bool = False) -> NamedMethod:
    return NamedMethod("casscf", energy, title, {"casci": casci, "nevpt2": nevpt2})


_EXACT = NamedMethod("scf", "energy_hartree", "HF")
_FITTED = NamedMethod("ri-scf", "energy_hartree", "HF")
_MP2 = NamedMethod("rimp2", "total_hartree", "MP2")
METHODS = {
    "hf": _EXACT,
    "scf": _EXACT,
    "ri-hf": _FITTED,
    "ri-scf": _FITTED,
    "df-hf": _FITTED,
    "mp2": _MP2,
    "ri-mp2": _MP2,
    "df-mp2": _MP2,
    "ccsd(t)": NamedMethod("ccsd", "ccsd_t_energy_hartree", "CCSD(T)", {"method": "ccsd", "triples": True}),
    **{name: _cluster(name) for name in ("ccsd", "dcsd", "cc2", "ccd", "lccd")},
    "fci": NamedMethod("fci", "energies_hartree", "FCI"),
    "mrci": _multireference("MRCI"),
    "mr-acpf": _multireference("MR-ACPF", acpf=True),
    "mr-aqcc": _multireference("MR-AQCC", aqcc=True),
    "casci": _active("CASCI", "energies_hartree", casci=True),
    "casscf": _active("CASSCF", "energies_hartree"),
    "nevpt2": _active("NEVPT2", "nevpt2_energies_hartree", nevpt2=True),
}


def find(name: str) -> NamedMethod:
    """The method of this name, in upper or lower case. Raises OutcoreError (EINVAL) if there is none."""
    found = METHODS.get(name.strip().lower())
    if found is None:
        close = difflib.get_close_matches(name.lower(), METHODS, 1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise OutcoreError(errno.EINVAL, f"method '{name}'", detail=f"{hint}there are {', '.join(METHODS)}")
    return found
