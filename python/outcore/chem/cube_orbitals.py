"""The orbitals of an SCF that a cube file has, as users name them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.chem import orbital_numbers
from outcore.chem.formats.orbitals import CUBE
from outcore.chem.orbital_numbers import Lists


def check(text: str | None, path: Path | None) -> None:
    """Raises OutcoreError (EINVAL) if the text is no list, or `path` no cube file."""
    if text is None:
        return
    _read(text, 2)
    if path is None or path.suffix != CUBE:
        raise OutcoreError(
            errno.EINVAL,
            "choose options",
            detail=f"--cube-orbitals has no effect without --save-orbitals name{CUBE}",
        )


def of(text: str | None, mf: Any) -> Lists | None:
    """The numbers of each spin, or of both together; None without a text. mf: a mean-field object, which need not
    have run. Raises OutcoreError (EINVAL) for orbitals that it does not have."""
    if text is None:
        return None
    spins = 2 if mf.istype("UHF") else 1
    found = _read(text, spins)
    for spin, numbers in enumerate(found):
        of_spin = orbital_numbers.of_spin(spin, found)
        orbital_numbers.check(numbers, int(mf.mol.nao), of_spin, _attempted(text))
    return found


def _read(text: str, spins: int) -> Lists:
    found = orbital_numbers.read(text, spins, _attempted(text))
    if isinstance(found, int):  # one orbital
        return ((found,),) * spins
    if found is None:
        raise OutcoreError(
            errno.EINVAL, _attempted(text), detail="a list of orbitals is needed, such as 3,4,6-8"
        )
    return found


def _attempted(text: str) -> str:
    return f"--cube-orbitals {text}"
