"""One-particle densities between states of EOM-CCSD by spin orbitals, with orbitals and amplitudes that do not
respond.

gamma[p,q] = <l| exp(-T) p'q exp(T) |r> over occupied and virtual orbitals of alpha, of beta, and the orbital x that
nothing couples to (`open_blocks`): of ions, gamma[x,p] and gamma[p,x] are Dyson orbitals of ionisation from the
left and from the right, and the reverse of attachment.

The left state is <0|(1 + l), or <0|l; the right one exp(T) (r0 + R)|0>. With L antisymmetric doubles from the left
and D those of T or R,

    gamma~_vv[b,c] = sum L_ij^ab D_ij^ac / 2,   gamma~_oo[k,j] = -sum L_ij^ab D_ik^ab / 2,
    gamma~_ov[k,c] = sum l_i^a D_ik^ac,         gamma~_vo = l1

and singles of R add the derivative of gamma = X gamma~ Y by singles, and gamma~ of l R, whose singles are
sum L_ij^ab r_i^a.

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Oana, Krylov, J. Chem. Phys. 127, 234106 (2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.open_blocks import NONE, AntisymmetricDoubles, Pair
from outcore.chem.cc.equations.unrestricted import SPINS

if TYPE_CHECKING:
    from outcore.chem.cc.plan.room import Room

Values = np.ndarray[Any, np.dtype[Any]]

_EVERY = (*SPINS, NONE)


@dataclass(frozen=True)
class SpinVector:
    """singles: [i,a] by spins of a and i. doubles: antisymmetric."""

    singles: Mapping[Pair, Values]
    doubles: AntisymmetricDoubles


class SpinOrbitalDensities:
    """Collective. Arrays are [n][n], at all processes.

    Args:
        t1: singles [i,a] of each spin.
        t2: doubles of spins.
    """

    def __init__(self, room: Room, t1: Sequence[Values], t2: AntisymmetricDoubles) -> None:
        self._room, self._t1, self._t2 = room, t1, t2
        inside, outside = ([each.shape[axis] for each in t1] + [1] for axis in (0, 1))
        ends = np.cumsum([0, *inside, *outside])
        places = [slice(*ends[n : n + 2]) for n in range(len(ends) - 1)]
        self._occupied, self._virtual = places[: len(_EVERY)], places[len(_EVERY) :]
        self._n = int(ends[-1])
        self._creates, self._annihilates = np.eye(self._n), np.eye(self._n)
        for t, i, a in zip(t1, self._occupied, self._virtual, strict=False):
            self._creates[a, i], self._annihilates[i, a] = -t.T, t

    # ---- densities ----

    def dressed(self, left: SpinVector) -> Values:
        """gamma~ of a left vector with T."""
        return self._pairs(left, self._t2)

    def of_left(self, dressed: Values) -> Values:
        """<l|p'q|0>, without that of the reference."""
        return self._undressed(dressed)

    def between(
        self, left: SpinVector, dressed: Values, right: SpinVector, r0: float, *, with_ground: bool = False
    ) -> Values:
        """<l|p'q|r>, without <l|r> times that of the reference. dressed: of the left vector. r0: of the right
        vector. with_ground: the left state is <0|(1 + l)."""
        x, a = np.zeros((self._n, self._n)), np.zeros((self._n, self._n))
        for (v, o), each in right.singles.items():
            x[self._virtual[v], self._occupied[o]], a[self._occupied[o], self._virtual[v]] = -each.T, each
        moved = self._pairs(left, right.doubles)
        for v, o in left.singles:
            moved[self._virtual[v], self._occupied[o]] = 0.0  # of the left singles alone
        if with_ground:
            moved += a
        creates, annihilates = self._creates, self._annihilates
        found = creates.T @ moved @ annihilates
        found += x.T @ dressed @ annihilates + creates.T @ dressed @ a
        found += self._undressed(self._singles_with(self._contracted(left, right), self._t2))
        found += r0 * self._undressed(dressed)
        return found

    def _undressed(self, dressed: Values) -> Values:
        found: Values = self._creates.T @ dressed @ self._annihilates
        return found

    def _contracted(self, left: SpinVector, right: SpinVector) -> dict[Pair, Values]:
        """sum L_ij^ab r_i^a as [j,b], by spins of b and j."""
        made = dict[Pair, Values]()
        for (a, i), singles in right.singles.items():
            for b in _EVERY:
                for j in _EVERY:
                    found = left.doubles.find((a, i, b, j), "aibj")
                    if found is not None:
                        values = found.sign * self._room.contract(
                            f"{found.letters},ia->jb", found.array, singles
                        )
                        made[b, j] = made[b, j] + values if (b, j) in made else values
        return made

    def _singles_with(self, l1: Mapping[Pair, Values], doubles: AntisymmetricDoubles) -> Values:
        """gamma~_vo and gamma~_ov of singles from the left."""
        gamma, c = np.zeros((self._n, self._n)), self._room.contract
        for (a, i), each in l1.items():
            gamma[self._virtual[a], self._occupied[i]] += each.T
            for d in _EVERY:
                for k in _EVERY:
                    found = doubles.find((a, i, d, k), "aick")
                    if found is not None:
                        made = found.sign * c(f"{found.letters},ia->kc", found.array, each)
                        gamma[self._occupied[k], self._virtual[d]] += made
        return gamma

    def _pairs(self, left: SpinVector, doubles: AntisymmetricDoubles) -> Values:
        """gamma~ of a left vector with doubles from the right."""
        gamma, c = self._singles_with(left.singles, doubles), self._room.contract
        ordered = [(p, q) for p in _EVERY for q in _EVERY if p <= q]
        for one in _EVERY:
            for other in _EVERY:
                vv, oo = (
                    (self._virtual[one], self._virtual[other]),
                    (self._occupied[other], self._occupied[one]),
                )
                for p, q in ordered:
                    share = 0.5 if p == q else 1.0
                    for r in _EVERY:
                        first = left.doubles.find((r, p, one, q), "aibj")
                        second = doubles.find((r, p, other, q), "aicj")
                        if first is not None and second is not None:
                            words = f"{first.letters},{second.letters}->bc"
                            weight = share * first.sign * second.sign
                            gamma[vv] += weight * c(words, first.array, second.array)
                        first = left.doubles.find((p, r, q, one), "aibj")
                        second = doubles.find((p, r, q, other), "aibk")
                        if first is not None and second is not None:
                            words = f"{first.letters},{second.letters}->kj"
                            weight = share * first.sign * second.sign
                            gamma[oo] -= weight * c(words, first.array, second.array)
        return gamma

    # ---- parts ----

    def of_spin(self, gamma: Values, s: int) -> Values:
        """gamma over occupied and virtual orbitals of a spin."""
        places = np.r_[self._occupied[s], self._virtual[s]]
        found: Values = gamma[np.ix_(places, places)]
        return found

    def of_amplitudes(self, s: int) -> Values:
        """The density of the ground state for a spin, without the determinant of the reference and left vectors."""
        o, v = self._t1[s].shape
        gamma = np.zeros((o + v, o + v))
        gamma[:o, o:] = self._t1[s]
        return gamma

    def dyson(self, gamma: Values, s: int) -> Values:
        """gamma[x,p] or gamma[p,x], the one that is not zero, over orbitals of a spin; x is the orbital of ions."""
        places = np.r_[self._occupied[s], self._virtual[s]]
        x = [self._occupied[NONE].start, self._virtual[NONE].start]
        rows, columns = gamma[np.ix_(x, places)], gamma[np.ix_(places, x)]
        found: Values = rows.sum(axis=0) + columns.sum(axis=1)
        return found
