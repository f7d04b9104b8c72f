"""The wanted states of a CI: electrons of each spin, irrep, spin, and folding of vectors."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian
    from outcore.chem.ci.space import Orbitals

MAX_ROOTS = 64
_STATES = re.compile(r"\s*([^:,\s]+)\s*:\s*(\d{1,3})\s*:\s*(\d{1,3})\s*", re.ASCII)
_FOLDED = (0, 2)  # values of 2S whose lowest states are, as a rule, the lowest of their parity


@dataclass(frozen=True)
class Target:
    """electrons: (alpha, beta). irrep: its number in the Hamiltonian. spin: 2S, None for states of any spin, as
    with orbitals that differ in spin. parity: of vectors under the exchange of spins, 0: not folded. roots: number
    of states."""

    electrons: tuple[int, int]
    irrep: int
    spin: int | None
    parity: int
    roots: int

    def title(self, hamiltonian: Hamiltonian) -> str:
        """The target in words."""
        spin = "any spin" if self.spin is None else f"2S = {self.spin}"
        name = hamiltonian.names[self.irrep]
        irrep = f"irrep {name}" if name.isdigit() else name
        return f"{self.roots} {'root' if self.roots == 1 else 'roots'} of {irrep}, {spin}"


@dataclass(frozen=True)
class AskedStates:
    """Wanted states of one irrep (None: that of the lowest orbitals) and one spin (2S)."""

    irrep: str | None
    spin: int
    roots: int

    def __str__(self) -> str:
        return f"{self.irrep}:{self.spin}:{self.roots}"


def read_states(text: str) -> tuple[AskedStates, ...]:
    """Reads a text such as "A1:0:2,B2:2:1": irrep, 2S and number of states. Raises OutcoreError (EINVAL)."""
    found: list[AskedStates] = []
    for part in text.split(","):
        matched = _STATES.fullmatch(part)
        if matched is None:
            raise _impossible(f"'{part.strip()}' is no irrep, 2S and number of states, such as A1:0:2")
        found.append(AskedStates(matched[1], int(matched[2]), int(matched[3])))
    for number, each in enumerate(found):
        if not 1 <= each.roots <= MAX_ROOTS:
            raise _impossible(f"{each.roots} roots; there may be 1 to {MAX_ROOTS}")
        if (each.irrep, each.spin) in [(other.irrep, other.spin) for other in found[:number]]:
            raise _impossible(f"{each.irrep} with 2S = {each.spin} is named twice; give the sum of its roots")
    return tuple(found)


def of(
    hamiltonian: Orbitals,
    electrons: tuple[int, int],
    *,
    irrep: int = 0,
    spin: int | None = None,
    roots: int = 1,
    folded: bool | None = None,
    fixed: bool = False,
) -> Target:
    """The target for states with the total number of electrons in `electrons` = (alpha, beta).

    spin: 2S; None: alpha - beta. For 2S = 0 and 2, vectors have as many alpha as beta electrons and are folded,
    unless `folded` is False; else they have 2S unpaired electrons. With orbitals that differ in spin, vectors have
    2S unpaired electrons, and states may have any spin. fixed: vectors have exactly the given alpha and beta
    electrons.

    Raises OutcoreError (EINVAL) for impossible states.
    """
    total, n = sum(electrons), len(hamiltonian.irreps)
    wanted = electrons[0] - electrons[1] if spin is None else spin
    if wanted < 0 and spin is None:  # more beta than alpha electrons: the same states with spins exchanged
        wanted = -wanted if not hamiltonian.unrestricted else wanted
    if abs(wanted) > total or (total - wanted) % 2 or (spin is not None and spin < 0):
        raise _cannot_have(total, wanted)
    pair = (total + wanted) // 2, (total - wanted) // 2
    if fixed:
        unpaired, pair = electrons[0] - electrons[1], electrons
        if wanted != abs(unpaired) and not (unpaired == 0 and wanted in _FOLDED):
            raise _impossible(
                f"states of 2S = {wanted} are looked for with {wanted} unpaired electrons, not with {unpaired}"
            )
    if max(pair) > n:
        raise _cannot_hold(n, max(pair), wanted)
    if not 0 <= irrep < hamiltonian.groups:
        raise _impossible(f"irrep {irrep} is none of {hamiltonian.groups}")
    if not 1 <= roots <= MAX_ROOTS:
        raise _impossible(f"{roots} roots; there may be 1 to {MAX_ROOTS}")
    if hamiltonian.unrestricted:
        if folded:
            raise _impossible("vectors of orbitals that differ in spin cannot be folded")
        return Target(pair, irrep, None, 0, roots)
    if wanted in _FOLDED and folded is not False and not (fixed and pair[0] != pair[1]):
        return Target((total // 2, total // 2), irrep, wanted, 1 if wanted % 4 == 0 else -1, roots)
    if folded:
        raise _impossible(f"vectors of 2S = {wanted} are not folded, only those of 2S = 0 and 2")
    return Target(pair, irrep, wanted, 0, roots)


def check_spin(electrons: int, orbitals: int, spin: int) -> None:
    """Raises OutcoreError (EINVAL) if so many electrons in so many orbitals have no state of this 2S."""
    if not 0 <= spin <= electrons or (electrons - spin) % 2:
        raise _cannot_have(electrons, spin)
    if (electrons + spin) // 2 > orbitals:
        raise _cannot_hold(orbitals, (electrons + spin) // 2, spin)


def _cannot_have(electrons: int, spin: int) -> OutcoreError:
    return _impossible(f"{electrons} electrons cannot have 2S = {spin}")


def _cannot_hold(orbitals: int, electrons: int, spin: int) -> OutcoreError:
    return _impossible(
        f"{orbitals} orbitals cannot hold {electrons} electrons of one spin, as 2S = {spin} needs"
    )


def _impossible(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "choose states of a CI", detail=detail)
