"""Checks of a CI before its SCF, as far as the molecule, its basis and the options determine what is possible."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import active, frozen
from outcore.chem.ci import orbitals, target
from outcore.chem.ci.orbitals import GivenOrbitals
from outcore.chem.ci.space import Integers, count_strings
from outcore.chem.ci.target import AskedStates
from outcore.chem.symmetry import ABELIAN, IRREPS, functions_of_irreps, irrep_number

if TYPE_CHECKING:
    from pyscf.gto import Mole


@dataclass(frozen=True)
class Known:
    """Orbitals of known irreps in which each determinant of a CI lies.

    irreps: of each orbital, ascending, as numbers.
    names: of all irreps of the group; a single one if irreps do not count.
    electrons: numbers (alpha, beta) in these orbitals; the CI has one of them.
    unrestricted: whether orbitals differ in spin.
    """

    irreps: Integers
    names: tuple[str, ...]
    electrons: tuple[tuple[int, int], ...]
    unrestricted: bool = False

    @property
    def groups(self) -> int:
        return len(self.names)

    def check(self, irrep: int | None, spin: int | None, roots: int) -> None:
        """Raises OutcoreError (EINVAL) if there cannot be so many states. irrep: None: it is not known. spin: 2S;
        None: that of the electrons."""
        among = [0] if self.groups == 1 else list(range(self.groups)) if irrep is None else [irrep]
        found, refusal = list[int](), None
        for electrons in self.electrons:
            try:
                pair = target.of(self, electrons, spin=spin).electrons
            except OutcoreError as error:
                refusal = error
                continue
            alpha, beta = (count_strings(self.irreps.tolist(), self.groups, each) for each in pair)
            found += [sum(alpha[g] * beta[g ^ wanted] for g in range(self.groups)) for wanted in among]
        if refusal is not None and len(self.electrons) == 1:
            raise refusal
        most = max(found, default=0)
        if not most:
            state = f"determinant of irrep {self.names[among[0]]}" if found else f"state of 2S = {spin}"
            count = f"{len(self.irreps)} active orbitals"
            if len(self.electrons) == 1:
                count = f"{sum(self.electrons[0])} electrons in {len(self.irreps)} orbitals"
            detail = f"{count} have no {state}"
            raise OutcoreError(errno.EINVAL, "choose states of a CI", detail=detail)
        if roots > most:
            raise OutcoreError(
                errno.EINVAL, f"find {roots} roots", detail=f"there are at most {most} determinants"
            )


def whole(mol: Mole, *, unrestricted: bool = False) -> Known:
    """All orbitals of a molecule. Those outside the active ones are full or empty, and add nothing to an irrep."""
    counts = functions_of_irreps(mol)
    irreps = np.repeat(np.arange(len(counts)), counts)
    return Known(irreps, _names(mol), ((int(mol.nelec[0]), int(mol.nelec[1])),), unrestricted)


def of_count(count: int, electrons: tuple[int, int], *, unrestricted: bool = False) -> Known:
    """Active orbitals of which only the number is known."""
    return Known(np.zeros(count, np.int64), ("A",), (electrons,), unrestricted)


def of_names(
    mol: Mole,
    named: Iterable[tuple[str, int]],
    electrons: Sequence[tuple[int, int]],
    *,
    unrestricted: bool = False,
) -> Known:
    """Active orbitals by numbers for irreps."""
    irreps = [irrep_number(_group(mol), name) for name, count in named for _ in range(count)]
    return Known(np.sort(np.array(irreps, np.int64)), _names(mol), tuple(electrons), unrestricted)


def check_states(mol: Mole, known: Sequence[Known], states: Sequence[AskedStates]) -> None:
    """Checks each group of states. Raises OutcoreError (EINVAL) for an irrep that the point group of the molecule
    lacks, and for states that cannot be."""
    for each in states:
        irrep = None if each.irrep is None else irrep_number(_group(mol), each.irrep)
        for space in known:
            space.check(irrep, each.spin, each.roots)


def check(
    mol: Mole,
    states: Sequence[AskedStates],
    *,
    frozen_orbitals: str,
    frozen_virtual: str,
    active_orbitals: str | None,
    unrestricted: bool,
) -> None:
    """Checks states and orbitals of a full CI: frozen and active ones, as options name them. unrestricted: whether
    orbitals differ in spin. Raises OutcoreError (EINVAL)."""
    alpha, beta = int(mol.nelec[0]), int(mol.nelec[1])
    count = orbitals.count_before_scf(mol)
    whole_space = active_orbitals is None and (frozen_orbitals, frozen_virtual) == ("0", "0")
    if unrestricted and not whole_space:  # full orbitals of alpha and beta electrons may differ in irreps
        known = [of_count(count, (alpha, beta), unrestricted=True)]
    else:
        known = [whole(mol, unrestricted=unrestricted)]
    check_states(mol, known, states)
    filled = (alpha, beta) if unrestricted else (min(alpha, beta),)
    single = 0 if unrestricted else abs(alpha - beta)
    given = [GivenOrbitals.in_order(count, each, single) for each in filled]
    left_out = frozen.of(
        mol, frozen_orbitals, frozen_virtual, [(each.numbers, each.filled) for each in given]
    )
    wanted, number_of = active.read(active_orbitals, len(given)), partial(irrep_number, _group(mol))
    wanted.check(count, number_of, functions_of_irreps(mol))
    if wanted.of_irreps is not None:
        pairs = [(alpha - core, beta - core) for core in range(min(alpha, beta) + 1)]
        chosen = of_names(mol, wanted.of_irreps, pairs, unrestricted=unrestricted)
    else:
        nowhere = np.zeros(count, np.int64)
        spaces = [
            orbitals.chosen(each, left_out, wanted, spin, nowhere, number_of)
            for spin, each in enumerate(given)
        ]
        cores, counts = zip(*((len(core), len(some)) for core, some, _ in spaces), strict=True)
        electrons = alpha - cores[0], beta - cores[0]
        orbitals.check_counts(cores, counts, electrons)
        chosen = of_count(counts[0], electrons, unrestricted=unrestricted)
    check_states(mol, [chosen], states)


def _group(mol: Mole) -> str:
    return str(mol.groupname) if mol.symmetry else "C1"


def _names(mol: Mole) -> tuple[str, ...]:
    group = _group(mol)
    return IRREPS[ABELIAN.get(group, group)]
