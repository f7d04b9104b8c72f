"""The kinds of states, by the word of the command, and the equations of each."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.excited import open_blocks
from outcore.chem.cc.equations.excited.attached import AttachedStates
from outcore.chem.cc.equations.excited.ionized import IonizedStates
from outcore.chem.cc.equations.excited.open_states import OpenStates
from outcore.chem.cc.equations.excited.singlets import Singlets
from outcore.chem.cc.equations.excited.triplets import Triplets

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.open_blocks import OpenStateBlocks
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian


_SINGLE, _ION, _ATTACHED = (
    ("single excitation", "double excitation"),
    ("ionisation", "ionisation with an excitation"),
    ("attachment", "attachment with an excitation"),
)


@dataclass(frozen=True)
class Kind:
    """title: for people. equations: its products with vectors. words: what its singles are, one and more. most:
    single excitations, of so many occupied and virtual orbitals of alpha, and of beta. least_occupied: orbitals of
    each spin that are correlated. by_core: there is core-valence separation."""

    title: str
    equations: Callable[[Any], Any]
    words: tuple[str, str]
    most: Callable[[tuple[int, int], tuple[int, int]], int]
    least_occupied: int = 1
    by_core: bool = False


def _open(blocks: OpenStateBlocks) -> Callable[[OpenTransformedHamiltonian], OpenStates]:
    return lambda of: OpenStates(of, blocks)


KINDS = {
    "ee": Kind("EOM-EE-CCSD, singlets", Singlets, _SINGLE, lambda a, _: a[0] * a[1], by_core=True),
    "ee3": Kind(
        "EOM-EE-CCSD, triplets", Triplets, _SINGLE, lambda a, _: a[0] * a[1], least_occupied=2, by_core=True
    ),
    "ip": Kind("EOM-IP-CCSD", IonizedStates, _ION, lambda a, _: a[0], by_core=True),
    "ea": Kind("EOM-EA-CCSD", AttachedStates, _ATTACHED, lambda a, _: a[1], least_occupied=2),
    "uee": Kind(
        "EOM-EE-CCSD of open shells",
        _open(open_blocks.EE),
        _SINGLE,
        lambda a, b: a[0] * a[1] + b[0] * b[1],
    ),
    "usf": Kind("EOM-SF-CCSD", _open(open_blocks.SF), _SINGLE, lambda a, b: a[0] * b[1], least_occupied=2),
    "uip": Kind("EOM-IP-CCSD of open shells", _open(open_blocks.IP), _ION, lambda a, b: a[0] + b[0]),
    "uea": Kind(
        "EOM-EA-CCSD of open shells",
        _open(open_blocks.EA),
        _ATTACHED,
        lambda a, b: a[1] + b[1],
        least_occupied=2,
    ),
}
NAMES = ("ee", "ip", "ea", "sf")
"""What a user may ask for; with a multiplicity, and of a reference, it is one of the kinds."""


def check(name: str, multiplicity: int | None) -> None:
    """Raises OutcoreError (EINVAL): no reference has such states."""
    if name not in NAMES:
        raise _wrong(f"kind '{name}' is none of {', '.join(NAMES)}")
    if multiplicity is not None and name != "ee":
        raise _wrong(f"a multiplicity is of kind 'ee' alone, not of '{name}'")
    if multiplicity not in (None, 1, 3):
        raise _wrong(f"multiplicity {multiplicity}; closed shells have 1 and 3")


def named(name: str, multiplicity: int | None, *, restricted: bool) -> str:
    """The kind of states of a name and a multiplicity, of closed shells (None: singlets) or of a reference of two
    spins. Raises OutcoreError (EINVAL): there is none."""
    check(name, multiplicity)
    if not restricted:
        if multiplicity is not None:
            raise _wrong("a multiplicity is of closed shells alone; states of a UHF reference have none")
        return f"u{name}"
    if name == "sf":
        raise _wrong("spins are flipped from a high-spin reference; this one is of closed shells")
    return "ee3" if multiplicity == 3 else name


def of(name: str) -> Kind:
    """By its key in KINDS."""
    return KINDS[name]


def _wrong(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "EOM-CCSD", detail=detail)
