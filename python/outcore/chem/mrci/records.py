"""The space of a multireference CI: the internal determinants of all configurations that are reached from
references by at most two excitations, each with the external orbitals that symmetry allows."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.mrci import configurations
from outcore.chem.mrci.configurations import Configurations, Masks

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

# Electrons in external orbitals, alpha and beta, in the order of the native records.
KINDS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2))
MAX_RECORDS = 1 << 27


@dataclass(frozen=True)
class Orbitals:
    """Irreps of internal orbitals in their order, and of external ones, ascending. The irrep of a product is the
    exclusive-or of numbers."""

    internal: tuple[int, ...]
    external: tuple[int, ...]
    groups: int

    @cached_property
    def counts(self) -> list[int]:
        """External orbitals of each irrep."""
        return [self.external.count(g) for g in range(self.groups)]

    def size(self, kind: int, irrep: int) -> int:
        """Number of coefficients of a record."""
        n = self.counts
        if kind == 0:
            return int(irrep == 0)
        if kind in (1, 2):
            return int(n[irrep])
        if kind == 3:
            return int(sum(n[g] * n[g ^ irrep] for g in range(self.groups)))
        if irrep == 0:
            return int(sum(each * (each - 1) // 2 for each in n))
        return int(sum(n[g] * n[g ^ irrep] for g in range(self.groups) if g > g ^ irrep))


@dataclass(frozen=True)
class Functions:
    """Numbers of configuration state functions: all electrons internal (z), one external (y), two external coupled
    to a triplet (x) and to a singlet (w)."""

    z: int
    y: int
    x: int
    w: int

    @property
    def total(self) -> int:
        return self.z + self.y + self.x + self.w


class Records:
    """The records of the space, sorted as the native space expects them.

    references: configurations; all that differ from one of them by at most two electrons are in the space.
    interacting: None, or the number of inactive orbitals: see `Settings.couplings`. electrons: alpha, beta. irrep:
    of the state. parity: of folded vectors, which have as many alpha as beta electrons; 0: not folded.

    Raises OutcoreError: EINVAL (no reference, no determinant), EFBIG (too many).
    """

    def __init__(
        self,
        orbitals: Orbitals,
        references: Configurations,
        electrons: tuple[int, int],
        irrep: int = 0,
        parity: int = 0,
        interacting: int | None = None,
    ) -> None:
        self.orbitals, self.references, self.interacting = orbitals, references, interacting
        self.electrons, self.irrep, self.parity = electrons, irrep, parity
        if not len(references):
            raise _refused(errno.EINVAL, "there is no reference")
        wrong = configurations.electrons(references) != sum(electrons)
        if wrong.any():
            raise _refused(
                errno.EINVAL,
                f"a reference has {configurations.electrons(references[wrong])[0]} electrons, not {sum(electrons)}",
            )
        self.configurations = configurations.reached(references, len(orbitals.internal))
        parts = [self._of_kind(kind) for kind in range(len(KINDS))]
        self.kinds: Bytes = np.concatenate(
            [np.full(len(alpha), kind, np.uint8) for kind, (alpha, _, _) in enumerate(parts)]
        )
        self.alpha: Masks = np.concatenate([each[0] for each in parts])
        self.beta: Masks = np.concatenate([each[1] for each in parts])
        self.sizes: Integers = np.concatenate([each[2] for each in parts])
        if not len(self.kinds):
            raise _refused(errno.EINVAL, "there is no determinant")

    def _of_kind(self, kind: int) -> tuple[Masks, Masks, Integers]:
        outside = KINDS[kind]
        found = self.configurations[sum(outside)]
        labels = configurations.irreps(found, self.orbitals.internal) ^ self.irrep
        sizes = np.array([self.orbitals.size(kind, g) for g in range(self.orbitals.groups)], np.int64)
        found = found[sizes[labels] > 0]
        inside = self.electrons[0] - outside[0], self.electrons[1] - outside[1]
        if min(inside) < 0 or (self.parity and kind in (2, 5)):
            found = found[:0]
        alpha, beta = configurations.determinants(found, *inside)
        if len(alpha) > MAX_RECORDS:
            raise _refused(
                errno.EFBIG, f"{len(alpha)} internal determinants; at most {MAX_RECORDS} can be listed"
            )
        if self.parity and kind in (0, 3):
            alpha, beta = alpha[alpha >= beta], beta[alpha >= beta]
        if self.interacting is not None and sum(outside) == 2:
            kept = self._may_be_singlets(alpha, beta, outside[0] - outside[1])
            alpha, beta = alpha[kept], beta[kept]
        order = np.lexsort((beta, alpha))
        alpha, beta = alpha[order], beta[order]
        labels = configurations.irreps(configurations.of_strings(alpha, beta), self.orbitals.internal)
        return alpha, beta, sizes[labels ^ self.irrep]

    def _core_electrons(self, strings: Masks) -> Integers:
        """Number of electrons in inactive orbitals."""
        assert self.interacting is not None
        core = np.uint64((1 << self.interacting) - 1)
        found: Integers = np.bitwise_count(strings & core).astype(np.int64)
        return found

    def _may_be_singlets(self, alpha: Masks, beta: Masks, difference: int) -> NDArray[np.bool_]:
        """Flags of the records to keep. A record with two holes in inactive orbitals is dropped if its inactive and
        external electrons together have more of one spin."""
        of_alpha, of_beta = self._core_electrons(alpha), self._core_electrons(beta)
        missing = 2 * (self.interacting or 0) - of_alpha - of_beta
        found: NDArray[np.bool_] = (missing != 2) | (of_alpha + difference == of_beta)
        return found

    def native(self) -> _core.MRCISpace:
        return _core.MRCISpace(
            self.orbitals.counts,
            list(self.orbitals.internal),
            self.electrons,
            self.irrep,
            self.parity,
            self.kinds,
            self.alpha,
            self.beta,
        )

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def elements(self) -> int:
        """Number of stored elements of a vector."""
        return int(self.sizes.sum())

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """How often each record counts: in folded vectors, records with a partner count twice."""
        if not self.parity:
            return np.ones(len(self))
        own = np.isin(self.kinds, (0, 3)) & (self.alpha == self.beta)
        return np.where(own, 1.0, 2.0)

    @cached_property
    def determinants(self) -> int:
        """Number of determinants; both halves of folded vectors count."""
        return round(float(self.weights @ self.sizes))

    @cached_property
    def is_reference(self) -> NDArray[np.bool_]:
        """For each record whether its determinant belongs to a reference configuration."""
        inside = self.kinds == 0
        found = np.zeros(len(self), bool)
        found[inside] = np.isin(
            configurations.of_strings(self.alpha[inside], self.beta[inside]), self.references
        )
        return found

    def functions(self, spin: int) -> Functions:
        """Numbers of configuration state functions with 2S = `spin`, for the electrons of the records."""
        n, groups = self.orbitals.counts, self.orbitals.groups
        found = [0, 0, 0, 0]
        for outside, each in enumerate(self.configurations):
            open_shells = np.bitwise_count(configurations.singles(each)).astype(int)
            labels = configurations.irreps(each, self.orbitals.internal) ^ self.irrep
            core = self._core_shells(each, outside)  # open shells of two inactive holes, or -1
            keys, counts = np.unique(np.stack([open_shells, labels, core]), axis=1, return_counts=True)
            for (k, label, holes), count in zip(keys.T.tolist(), counts.tolist(), strict=True):
                if outside == 0:
                    found[0] += count * configurations.functions(k, spin) * (label == 0)
                elif outside == 1:
                    found[1] += count * configurations.functions(k + 1, spin) * n[label]
                else:
                    pairs = sum(n[g] * n[g ^ label] for g in range(groups))
                    same = sum(n) if label == 0 else 0
                    singlet = configurations.functions(k, spin)
                    triplet = configurations.functions(k + 2, spin) - singlet
                    if holes >= 0:
                        singlet = configurations.functions(k - holes, spin)
                        triplet = singlet if holes else 0
                    found[2] += count * triplet * (pairs - same) // 2
                    found[3] += count * singlet * (pairs + same) // 2
        return Functions(*found)

    def _core_shells(self, found: Configurations, outside: int) -> Integers:
        if self.interacting is None or outside < 2:
            return np.full(len(found), -1)
        singles = self._core_electrons(configurations.singles(found))
        missing = 2 * (self.interacting - self._core_electrons(configurations.doubles(found))) - singles
        return np.where(missing == 2, singles, -1)

    def strings(self, record: int) -> tuple[Masks, Masks]:
        """Alpha and beta strings of each coefficient of a record, external orbitals above internal ones; for
        at most 64 orbitals."""
        u, n, groups = len(self.orbitals.internal), self.orbitals.counts, self.orbitals.groups
        alpha, beta, kind = int(self.alpha[record]), int(self.beta[record]), int(self.kinds[record])
        both = configurations.of_strings(self.alpha[record : record + 1], self.beta[record : record + 1])
        label = int(configurations.irreps(both, self.orbitals.internal)[0]) ^ self.irrep
        first = u + np.concatenate([[0], np.cumsum(n)])
        found: list[tuple[int, int]] = []
        if kind == 0:
            found.append((alpha, beta))
        elif kind in (1, 2):
            bits = [1 << orbital for orbital in range(first[label], first[label + 1])]
            found += [(alpha | bit, beta) if kind == 1 else (alpha, beta | bit) for bit in bits]
        else:
            for g in range(groups):
                for c in range(first[g], first[g + 1]):
                    for d in range(first[g ^ label], first[(g ^ label) + 1]):
                        if kind == 3:
                            found.append((alpha | 1 << c, beta | 1 << d))
                        elif c > d:
                            pair = 1 << c | 1 << d
                            found.append((alpha | pair, beta) if kind == 4 else (alpha, beta | pair))
        return np.array([a for a, _ in found], np.uint64), np.array([b for _, b in found], np.uint64)


def ranges(sizes: Integers, elements: int) -> list[tuple[int, int]]:
    """Ranges of consecutive items with these sizes. Each range has about `elements` elements, and at least one
    item."""
    ends = np.cumsum(sizes)
    found, first, begin = [], 0, 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(ends, begin + elements, side="right")))
        found.append((first, last))
        first, begin = last, int(ends[last - 1])
    return found


def _refused(code: int, detail: str) -> OutcoreError:
    return OutcoreError(code, "multireference CI", detail=detail)
