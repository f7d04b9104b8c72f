"""The kinds of states, by the word of the command, and the equations of each."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.excited import open_blocks
from outcore.chem.cc.equations.excited.attached import AttachedStates
from outcore.chem.cc.equations.excited.ionized import IonizedStates
from outcore.chem.cc.equations.excited.left_ions import LeftAttached, LeftIonized
from outcore.chem.cc.equations.excited.left_singlets import LeftSinglets
from outcore.chem.cc.equations.excited.left_triplets import LeftTriplets
from outcore.chem.cc.equations.excited.open_left_states import OpenLeftStates
from outcore.chem.cc.equations.excited.open_states import OpenStates
from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
from outcore.chem.cc.equations.excited.singlets import Singlets
from outcore.chem.cc.equations.excited.triplets import Triplets
from outcore.chem.cc.equations.transformed import TransformedHamiltonian
from outcore.chem.cc.equations.transposed import TransposedProducts

if TYPE_CHECKING:
    import numpy as np

    from outcore.chem.cc.equations.excited.open_blocks import OpenStateBlocks
    from outcore.chem.cc.equations.excited.vectors import StateVector

    Singles = Sequence[np.ndarray[Any, np.dtype[Any]]]


_SINGLE, _ION, _ATTACHED = (
    ("single excitation", "double excitation"),
    ("ionisation", "ionisation with an excitation"),
    ("attachment", "attachment with an excitation"),
)


@dataclass(frozen=True)
class Kind:
    """title: for people. equations: products with right vectors. left: products with left ones, from equations of
    amplitudes, singles and right vectors. words: names of its singles and of its doubles. most: the number of
    single excitations, for numbers of occupied and virtual orbitals of alpha, and of beta. blocks: spins of open
    shells. by_core: whether core-valence separation is possible. from_ground: whether light makes transitions from
    the ground state. is_ion: whether states have Dyson orbitals. of_many: whether equations take how many vectors
    are multiplied at a time, and whether rings of singles are kept."""

    title: str
    equations: Callable[[Any], Any]
    left: Callable[[Any, Singles, Sequence[StateVector]], Any]
    words: tuple[str, str]
    most: Callable[[tuple[int, int], tuple[int, int]], int]
    blocks: OpenStateBlocks | None = None
    by_core: bool = False
    from_ground: bool = False
    is_ion: bool = False
    of_many: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of arrays of doubles of right vectors."""
        if self.blocks is None:
            found: tuple[str, ...] = self.equations.names  # type: ignore[attr-defined]
            return found
        return tuple(self.blocks.array_name(part) for part in range(len(self.blocks.doubles)))


def _open(
    title: str,
    blocks: OpenStateBlocks,
    words: tuple[str, str],
    most: Callable[[tuple[int, int], tuple[int, int]], int],
    **more: Any,
) -> Kind:
    def left(of: Any, t1: Singles, right: Sequence[StateVector]) -> OpenLeftStates:
        return OpenLeftStates(OpenTransformedHamiltonian(of, list(t1)), blocks, right)

    return Kind(title, lambda of: OpenStates(of, blocks), left, words, most, blocks, **more)


def _closed(make: Callable[[Any, Sequence[StateVector]], Any]) -> Any:
    return lambda of, t1, right: make(TransformedHamiltonian(of, t1[0]), right)


def _left_singlets(of: Any, t1: Singles, right: Sequence[StateVector]) -> LeftSinglets:
    return LeftSinglets(TransposedProducts(of, t1[0]), right)


KINDS = {
    "ee": Kind(
        "EOM-EE-CCSD, singlets",
        Singlets,
        _left_singlets,
        _SINGLE,
        lambda a, _: a[0] * a[1],
        by_core=True,
        from_ground=True,
        of_many=True,
    ),
    "ee3": Kind(
        "EOM-EE-CCSD, triplets",
        Triplets,
        _closed(LeftTriplets),
        _SINGLE,
        lambda a, _: a[0] * a[1],
        by_core=True,
    ),
    "ip": Kind(
        "EOM-IP-CCSD", IonizedStates, _closed(LeftIonized), _ION, lambda a, _: a[0], by_core=True, is_ion=True
    ),
    "ea": Kind(
        "EOM-EA-CCSD",
        AttachedStates,
        _closed(LeftAttached),
        _ATTACHED,
        lambda a, _: a[1],
        is_ion=True,
    ),
    "uee": _open(
        "EOM-EE-CCSD of open shells",
        open_blocks.EE,
        _SINGLE,
        lambda a, b: a[0] * a[1] + b[0] * b[1],
        from_ground=True,
    ),
    "usf": _open("EOM-SF-CCSD", open_blocks.SF, _SINGLE, lambda a, b: a[0] * b[1]),
    "uip": _open("EOM-IP-CCSD of open shells", open_blocks.IP, _ION, lambda a, b: a[0] + b[0], is_ion=True),
    "uea": _open(
        "EOM-EA-CCSD of open shells",
        open_blocks.EA,
        _ATTACHED,
        lambda a, b: a[1] + b[1],
        is_ion=True,
    ),
}
NAMES = ("ee", "ip", "ea", "sf")
"""Words that a user may ask for; with a multiplicity and a reference a word names one of the kinds."""


def check(name: str, multiplicity: int | None) -> None:
    """Raises OutcoreError (EINVAL) if no reference has such states."""
    if name not in NAMES:
        raise _wrong(f"kind '{name}' is none of {', '.join(NAMES)}")
    if multiplicity is not None and name != "ee":
        raise _wrong(f"a multiplicity is of kind 'ee' alone, not of '{name}'")
    if multiplicity not in (None, 1, 3):
        raise _wrong(f"multiplicity {multiplicity}; closed shells have 1 and 3")


def named(name: str, multiplicity: int | None, *, restricted: bool) -> str:
    """The kind of states of a name and a multiplicity, of closed shells (None: singlets) or of a reference of two
    spins. Raises OutcoreError (EINVAL) if no such kind exists."""
    check(name, multiplicity)
    if not restricted:
        if multiplicity is not None:
            raise _wrong("a multiplicity is of closed shells alone; states of a UHF reference have none")
        return f"u{name}"
    if name == "sf":
        raise _wrong("spins are flipped from a high-spin reference; this one is of closed shells")
    return "ee3" if multiplicity == 3 else name


def of(name: str) -> Kind:
    """A kind, by its key in KINDS."""
    return KINDS[name]


def _wrong(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "EOM-CCSD", detail=detail)
