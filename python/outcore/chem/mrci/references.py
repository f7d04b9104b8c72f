"""The choice of the references of a multireference CI."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import words
from outcore.chem.mrci import configurations
from outcore.chem.mrci.configurations import Configurations

if TYPE_CHECKING:
    from outcore.chem.mrci.orbitals import Correlated
    from outcore.chem.mrci.spaces import OrbitalChoice

Matrix = NDArray[np.float64]

MAX_REFERENCES = 1_000_000

_BY_WEIGHT = "choose references by weight"


def check_space(choice: OrbitalChoice, electrons: int) -> None:
    """Raises OutcoreError (EFBIG) if the active space has more than MAX_REFERENCES configurations."""
    left = electrons - 2 * choice.inactive
    count = configurations.count_every(choice.active, left)
    if count > MAX_REFERENCES:
        raise OutcoreError(
            errno.EFBIG,
            "list references",
            detail=f"{left} electrons in {choice.active} active orbitals have {count} configurations; at most "
            f"{MAX_REFERENCES} can be listed: take fewer orbitals, or references from a file"
            " or by their weight in a vector of a CASCI object",
        )


def of_space(found: Correlated, irrep: int, *, symmetry: bool) -> Configurations:
    """All configurations of the active space; with `symmetry` only those of the irrep of the state.

    Raises OutcoreError: EFBIG, see `check_space`."""
    choice, total = found.choice, sum(found.electrons)
    check_space(choice, total)
    left = total - 2 * choice.inactive
    every = configurations.every(range(choice.inactive, choice.internal), left, (1 << choice.inactive) - 1)
    if symmetry:
        every = every[configurations.irreps(every, found.orbitals.internal) == irrep]
    return every


def of_file(path: Path, choice: OrbitalChoice, electrons: int) -> Configurations:
    """Reads references from a file, one in each line: 0, 1 or 2 electrons of every active orbital, such as 222000.
    The rest of a line after # is a comment.

    Raises OutcoreError (EINVAL), with the line."""
    listed = []
    wanted = electrons - 2 * choice.inactive
    for number, line in enumerate(words.read_lines(path, "read references"), 1):
        text = "".join(line.partition("#")[0].split())
        if not text:
            continue
        where = f"line {number}: {words.quoted(text)}"
        if set(text) - set("012"):
            raise _refused(path, f"{where} is more than the digits 0, 1 and 2")
        if len(text) != choice.active:
            raise _refused(path, f"{where} has {len(text)} orbitals; {choice.active} are active")
        occupation = [int(each) for each in text]
        if sum(occupation) != wanted:
            raise _refused(path, f"{where} has {sum(occupation)} electrons; {wanted} are active")
        listed.append(configurations.of_occupation([2] * choice.inactive + occupation))
    if not listed:
        raise _refused(path, "it lists no reference")
    return np.unique(np.array(listed, np.uint64))


def by_weight(found: Correlated, vectors: Sequence[Matrix], threshold: float) -> Configurations:
    """References with at least this weight in one of the vectors [alpha string][beta string] of the active space;
    strings are in the order of their values. Raises OutcoreError (EINVAL)."""
    choice = found.choice
    counts = [each - choice.inactive for each in found.electrons]
    strings = [_strings(choice.active, each) for each in counts]
    for each in vectors:
        if each.shape != (len(strings[0]), len(strings[1])):
            raise OutcoreError(
                errno.EINVAL,
                _BY_WEIGHT,
                detail=f"a vector of shape {each.shape} is none of {counts[0]} alpha and {counts[1]} beta "
                f"electrons in {choice.active} orbitals",
            )
    core, shift = np.uint64((1 << choice.inactive) - 1), np.uint64(choice.inactive)
    alpha, beta = (core | each << shift for each in strings)
    every = configurations.of_strings(alpha[:, None], beta).ravel()
    return heaviest(every, np.array([each.ravel() for each in vectors]), threshold)


def heaviest(every: Configurations, vectors: Matrix, threshold: float) -> Configurations:
    """Configurations whose determinants together have at least this weight in one of the vectors. every: the
    configuration of each determinant. vectors: [vector][determinant]. Raises OutcoreError (EINVAL)."""
    kept, where = np.unique(every, return_inverse=True)
    squares = vectors**2 / np.sum(vectors**2, axis=1, keepdims=True)
    weights = np.max([np.bincount(where.ravel(), each) for each in squares], axis=0)
    if not (weights >= threshold).any():
        raise OutcoreError(
            errno.EINVAL,
            _BY_WEIGHT,
            detail=f"no configuration has a weight of {threshold:g}; the largest is {weights.max():.4f}",
        )
    found: Configurations = kept[weights >= threshold]
    return found


def _strings(orbitals: int, electrons: int) -> NDArray[np.uint64]:
    """All strings, in the order of their values."""
    masks = np.arange(1 << orbitals, dtype=np.uint64)
    chosen: NDArray[np.uint64] = masks[np.bitwise_count(masks) == electrons]
    return chosen


def _refused(path: Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, f"read references from {path}", detail=detail)
