"""The active orbitals of a CASSCF, of a mean field: those around the highest occupied one, listed ones, or those
that atomic orbitals span (AVAS).

AVAS: Sayfutyarova, Sun, Chan, Knizia, J. Chem. Theory Comput. 13, 4063 (2017).
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem.active import read

Matrix = NDArray[np.float64]

THRESHOLD = 0.2  # of AVAS: the share of an active orbital in the atomic ones, at least
_ALL_SINGLY = 3  # AVAS keeps singly occupied orbitals, as PySCF numbers its options


@dataclass(frozen=True, eq=False)
class CasSpace:
    """coefficients [function][orbital]: doubly occupied orbitals, active and virtual ones. electrons: of the active
    ones."""

    coefficients: Matrix
    core: int
    orbitals: int
    electrons: int


@dataclass(frozen=True)
class AskedSpace:
    """cas: electrons and orbitals. active: a list of orbitals as the SCF has them, from 0. avas: atomic orbitals
    such as "N 2p", of which an active orbital has at least the share `threshold`."""

    cas: tuple[int, int] | None = None
    active: str | None = None
    avas: tuple[str, ...] = ()
    threshold: float = THRESHOLD

    def check(self) -> None:
        """Raises OutcoreError (EINVAL)."""
        if self.avas and (self.cas or self.active):
            raise _refused("--avas finds electrons and orbitals: --cas and --active have no effect with it")
        if not (self.avas or self.cas or self.active):
            raise _refused("active orbitals are missing: give --cas N,M, --active or --avas")
        listed = self._listed
        if self.active is not None and listed is None:
            raise _refused(f"--active {self.active}: give a list such as 3,4,6-8; --cas N,M takes numbers")
        if self.cas is not None and listed is not None and self.cas[1] != len(listed):
            raise _refused(f"--cas has {self.cas[1]} orbitals, --active {len(listed)}")

    @property
    def _listed(self) -> tuple[int, ...] | None:
        listed = read(self.active).listed
        return None if listed is None else listed[0]

    def places(self, occupations: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """Of active orbitals among all, and their electrons; not of AVAS. occupations: of all orbitals, as the SCF
        has them. Raises OutcoreError (EINVAL)."""
        listed, total, count = self._listed, int(occupations.sum()), len(occupations)
        if listed is not None:
            read(self.active).check(count, lambda name: 0)
            found = np.array(sorted(listed), np.int64)
        else:
            assert self.cas is not None
            core, odd = divmod(total - self.cas[0], 2)
            if odd or core < 0:
                raise _refused(f"{self.cas[0]} of {total} electrons leave no pairs")
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

    def choose(self, mf: Any) -> CasSpace:
        """Of a converged RHF or ROHF object. Raises OutcoreError (EINVAL)."""
        if self.avas:
            return self._of_avas(mf)
        occupations = np.asarray(mf.mo_occ).round().astype(np.int64)
        active, electrons = self.places(occupations)
        rest = np.setdiff1d(np.arange(len(occupations)), active)
        core = int(np.count_nonzero(occupations[rest]))
        order = np.concatenate([rest[occupations[rest] > 0], active, rest[occupations[rest] == 0]])
        return CasSpace(np.asarray(mf.mo_coeff)[:, order], core, len(active), electrons)

    def _of_avas(self, mf: Any) -> CasSpace:
        from pyscf.mcscf import avas

        told = f"--avas {', '.join(self.avas)}"
        try:
            option = _ALL_SINGLY if mf.mol.spin else 2
            orbitals, electrons, coefficients = avas.avas(
                mf, list(self.avas), threshold=self.threshold, openshell_option=option, verbose=0
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


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "choose active orbitals", detail=detail)
