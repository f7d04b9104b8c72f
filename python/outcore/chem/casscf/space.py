"""The active orbitals of a CASSCF, chosen from those of a mean field: orbitals around the highest occupied one,
listed ones, a number for each irrep, or those that atomic orbitals span (AVAS).

AVAS: Sayfutyarova, Sun, Chan, Knizia, J. Chem. Theory Comput. 13, 4063 (2017).
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem.active import read
from outcore.chem.symmetry import (
    ABELIAN,
    IRREPS,
    functions_of_irreps,
    irrep_number,
    made_symmetric,
)

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

THRESHOLD = 0.2  # AVAS: least share of an active orbital in the atomic ones
_MINIMAL = "minao"  # the basis of atomic orbitals of AVAS
_ALL_SINGLY = 3  # AVAS keeps singly occupied orbitals, as PySCF numbers its options


@dataclass(frozen=True, eq=False)
class CasSpace:
    """coefficients [function][orbital]: doubly occupied orbitals, then active, then virtual ones. core, orbitals:
    numbers of doubly occupied and of active ones. electrons: in active orbitals."""

    coefficients: Matrix
    core: int
    orbitals: int
    electrons: int


@dataclass(frozen=True)
class AskedSpace:
    """A user's choice of active orbitals.

    cas: numbers of electrons and of orbitals. active: a list of orbitals of the SCF, from 0, or a number for each
    irrep. With numbers, active orbitals lie above the doubly occupied ones of their irrep. core: number of these
    for each irrep; None: orbitals for all electrons outside `cas`: all doubly occupied ones of irreps without
    active orbitals, and the lowest of the others.
    avas: atomic orbitals of the minimal basis, such as "N 2p": an active orbital has at least the share `threshold`
    in them."""

    cas: tuple[int, int] | None = None
    active: str | None = None
    core: str | None = None
    avas: tuple[str, ...] = ()
    threshold: float = THRESHOLD

    def check(self) -> None:
        """Raises OutcoreError (EINVAL) if options are missing or contradict each other."""
        if self.avas and (self.cas or self.active):
            raise _refused("--avas finds electrons and orbitals: --cas and --active have no effect with it")
        if not (self.avas or self.cas or self.active):
            raise _refused("active orbitals are missing: give --cas N,M, --active or --avas")
        listed, counts = self._listed, self.of_irreps
        if self.active is not None and listed is None and counts is None:
            raise _refused(
                f"--active {self.active}: give a list such as 3,4,6-8 or a number for each irrep such as "
                "A1=3,B1=1; for a number of orbitals give --cas N,M"
            )
        if counts is not None and (self.cas is None) == (self.core is None):
            raise _refused(
                f"--active {self.active} needs either --cas N,M or --core, which tell how many orbitals lie below"
            )
        if self.core is not None and counts is None:
            raise _refused("--core has no effect without --active of irreps, such as A1=3,B1=1")
        if self.core is not None and read(self.core).of_irreps is None:
            raise _refused(f"--core {self.core}: give a number for each irrep, such as A1=3,B1=1")
        number = None if self.active is None else len(listed or ()) or sum(each for _, each in counts or ())
        if self.cas is not None and number is not None and self.cas[1] != number:
            raise _refused(f"--cas has {self.cas[1]} orbitals, --active {number}")

    def check_irreps(self, mol: Any) -> None:
        """Checks names of irreps, and numbers of orbitals for each. Raises OutcoreError (EINVAL)."""
        number_of, counts = partial(irrep_number, _group(mol)), functions_of_irreps(mol)
        for text in (self.active, self.core):
            read(text).check(int(mol.nao), number_of, counts)

    def electrons(self, total: int) -> int:
        """The number of active electrons for numbers of each irrep. total: of all electrons. Raises OutcoreError
        (EINVAL)."""
        if self.cas is not None:
            return total - 2 * self._pairs_below(total)
        left = total - 2 * sum(count for _, count in read(self.core).of_irreps or ())
        if left < 0:
            raise _refused(f"--core {self.core}: there are {total} electrons")
        return left

    def check_atomic(self, mol: Any) -> None:
        """Checks that each name of `avas` is that of some atomic orbitals. Raises OutcoreError (EINVAL)."""
        minimal = mol.copy()
        minimal.atom, minimal.unit, minimal.symmetry, minimal.basis = mol._atom, "B", False, _MINIMAL
        minimal.build(False, False)
        for name in self.avas:
            try:
                is_there = bool(name) and len(minimal.search_ao_label(name)) > 0
            except re.error:
                is_there = False
            if not is_there:
                every = dict.fromkeys(f"{atom} {shell}" for _, atom, shell, _ in minimal.ao_labels(fmt=None))
                raise _refused(f"--avas: '{name}' is not among the atomic orbitals {', '.join(every)}")

    @property
    def _listed(self) -> tuple[int, ...] | None:
        listed = read(self.active).listed
        return None if listed is None else listed[0]

    @property
    def of_irreps(self) -> tuple[tuple[str, int], ...] | None:
        """The number of active orbitals of each irrep, by name; None if they are not chosen so."""
        return None if self.active is None else read(self.active).of_irreps

    def places(
        self, occupations: Integers, irreps: Integers | None = None, group: str = "C1"
    ) -> tuple[Integers, int]:
        """Positions of active orbitals among all, and the number of their electrons; not for AVAS. occupations: of
        all orbitals, in the order of the SCF. irreps: of all orbitals, numbers in the point group `group`; needed
        for numbers of each irrep. Raises OutcoreError (EINVAL)."""
        listed, total, count = self._listed, int(occupations.sum()), len(occupations)
        if self.of_irreps is not None:
            assert irreps is not None
            found = self._by_irreps(occupations, irreps, group)
        elif listed is not None:
            read(self.active).check(count, lambda name: 0)
            found = np.array(sorted(listed), np.int64)
        else:
            assert self.cas is not None
            core = self._pairs_below(total)
            found = np.arange(core, core + self.cas[1])
            if core + self.cas[1] > count:
                raise _refused(
                    f"{core} doubly occupied and {self.cas[1]} active orbitals, but there are {count}"
                )
        electrons = int(occupations[found].sum())
        if self.cas is not None and self.cas[0] != electrons:
            raise _refused(
                f"--cas has {self.cas[0]} electrons, but the active orbitals of the SCF have {electrons}"
            )
        outside = np.setdiff1d(np.flatnonzero(occupations == 1), found)
        if len(outside):
            raise _refused(
                f"orbital {outside[0]} is singly occupied, and must be active (numbers count from 0)"
            )
        return found, electrons

    def _pairs_below(self, total: int) -> int:
        """Number of doubly occupied orbitals for the electrons outside `cas`."""
        assert self.cas is not None
        core, odd = divmod(total - self.cas[0], 2)
        if odd or core < 0:
            raise _refused(f"{self.cas[0]} of {total} electrons leave no pairs")
        return core

    def _by_irreps(self, occupations: Integers, irreps: Integers, group: str) -> Integers:
        """Positions of active orbitals for numbers of each irrep, above those that stay doubly occupied."""
        if self.core is None:
            below = self._core_of_irreps(occupations, irreps, group)
        else:
            below = {irrep_number(group, name): each for name, each in read(self.core).of_irreps or ()}
        found = []
        for name, wanted in self.of_irreps or ():
            number = irrep_number(group, name)
            mine = np.flatnonzero(irreps == number)
            first = below.get(number, 0)
            if first + wanted > len(mine):
                raise _refused(
                    f"{first} doubly occupied and {wanted} active orbitals of {name}, but there are {len(mine)}"
                )
            found.append(mine[first : first + wanted])
        active = np.sort(np.concatenate(found))
        for number in range(int(irreps.max()) + 1):
            rest = np.setdiff1d(np.flatnonzero((irreps == number) & (occupations == 2)), active)
            if len(rest) != below.get(number, 0):
                name = IRREPS[ABELIAN.get(group, group)][number]
                raise _refused(
                    f"doubly occupied orbitals of {name} beside the active ones: the SCF has {len(rest)}, not "
                    f"{below.get(number, 0)}; see --core"
                )
        return active

    def _core_of_irreps(self, occupations: Integers, irreps: Integers, group: str) -> dict[int, int]:
        """Number of doubly occupied orbitals of each irrep: all of irreps without active orbitals, and the lowest
        of the others."""
        active = [irrep_number(group, name) for name, _ in self.of_irreps or ()]
        is_other = ~np.isin(irreps, active) & (occupations == 2)
        left = self._pairs_below(int(occupations.sum())) - int(np.count_nonzero(is_other))
        lowest = np.flatnonzero(np.isin(irreps, active))[: max(left, 0)]
        core = irreps[np.concatenate([np.flatnonzero(is_other), lowest])]
        return dict(zip(*(each.tolist() for each in np.unique(core, return_counts=True)), strict=True))

    def of_first(self, mf: Any) -> tuple[Integers, int]:
        """`places` in the orbitals of a mean field, which may be the start orbitals of an SCF."""
        occupations = np.asarray(mf.mo_occ).round().astype(np.int64)
        irreps = None if self.of_irreps is None else _symmetric(mf)[1]
        return self.places(occupations, irreps, _group(mf.mol))

    def choose(self, mf: Any) -> CasSpace:
        """The active space in the orbitals of a converged RHF or ROHF object. Raises OutcoreError (EINVAL)."""
        if self.avas:
            return self._of_avas(mf)
        occupations, coefficients = np.asarray(mf.mo_occ).round().astype(np.int64), np.asarray(mf.mo_coeff)
        irreps = None
        if self.of_irreps is not None:
            coefficients, irreps = _symmetric(mf)
        active, electrons = self.places(occupations, irreps, _group(mf.mol))
        rest = np.setdiff1d(np.arange(len(occupations)), active)
        core = int(np.count_nonzero(occupations[rest]))
        order = np.concatenate([rest[occupations[rest] > 0], active, rest[occupations[rest] == 0]])
        return CasSpace(coefficients[:, order], core, len(active), electrons)

    def _of_avas(self, mf: Any) -> CasSpace:
        from pyscf.mcscf import avas

        told = f"--avas {', '.join(self.avas)}"
        try:
            option = _ALL_SINGLY if mf.mol.spin else 2
            orbitals, electrons, coefficients = avas.avas(
                mf,
                list(self.avas),
                minao=_MINIMAL,
                threshold=self.threshold,
                openshell_option=option,
                verbose=0,
            )[:3]
        except (RuntimeError, ValueError, KeyError, IndexError) as error:
            raise _refused(f"{told}: {error}") from error
        orbitals, electrons = int(orbitals), round(float(electrons))
        if orbitals < 1:
            raise _refused(
                f"{told}: no orbital has a share of {self.threshold:g} in these; see --avas-threshold"
            )
        core = (int(mf.mol.nelectron) - electrons) // 2
        return CasSpace(np.asarray(coefficients), core, orbitals, electrons)


def _group(mol: Any) -> str:
    return str(mol.groupname) if mol.symmetry else "C1"


def _symmetric(mf: Any) -> tuple[Matrix, Integers]:
    """Orbitals that each belong to one irrep, and the numbers of the irreps."""
    coefficients = np.asarray(mf.mo_coeff)
    if not mf.mol.symmetry:
        return coefficients, np.zeros(coefficients.shape[1], np.int64)
    spaces = np.asarray(mf.mo_occ).round().astype(np.int64)
    found = made_symmetric(mf.mol, coefficients, np.asarray(mf.get_ovlp()), np.asarray(mf.mo_energy), spaces)
    return found.coefficients, found.irreps


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "choose active orbitals", detail=detail)
