"""Left vectors of EOM-CCSD of open shells: products are those of `open_states`, backwards.

    <l|r> = sum l1 r1 + sum_unique L R

over spin orbitals, so that a left vector l1, L has the size and the symmetry of a right one. An array with `_`
behind its name is the derivative of <l|H|r> by the array of that name in `open_states`; of terms that are
antisymmetrised it is L itself.

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Levchenko, Wang, Krylov, J. Chem. Phys. 122, 224106 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.guess import FirstState
from outcore.chem.cc.equations.excited.open_blocks import (
    NONE,
    AntisymmetricDoubles,
    Labels,
    OpenStateBlocks,
    Pair,
    flat,
)
from outcore.chem.cc.equations.excited.open_ladders import OpenLeftLadders
from outcore.chem.cc.equations.excited.open_space import OpenStateSpace
from outcore.chem.cc.equations.unrestricted import SPINS

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


_ONE_BODY = ((0, "ac", "cibj", 1.0), (2, "bc", "aicj", 1.0), (1, "ki", "akbj", -1.0), (3, "kj", "aibk", -1.0))
"""Terms of fvv and foo: the axis of doubles that they change, their letters, letters of the new doubles, and the
sign."""


class _Sums:
    """Arrays to which products are added; the first one replaces old values."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._begun: list[Array] = []

    def begun(self, out: Array) -> bool:
        return any(each is out for each in self._begun)

    def add(self, words: str, one: Any, other: Any, out: Array, scale: float = 1.0) -> None:
        self._room.contract(words, one, other, out=out, scale=scale, add=self.begun(out))
        if not self.begun(out):
            self._begun.append(out)

    def add_array(self, other: Array, out: Array) -> None:
        if self.begun(out):
            self._room.add(out, other)
            return
        self._room.each_tile(out, lambda tile: out.put_tile(tile, other.get_tile(tile)), "sum")
        self._begun.append(out)

    def fill(self, out: Array) -> None:
        """Fills an array with zeros, if nothing was added."""
        if not self.begun(out):
            self._room.each_tile(
                out, lambda tile: out.put_tile(tile, np.zeros(out.layout.tile_shape(tile))), "clear"
            )


class OpenLeftStates(OpenStateSpace):
    """Products with vectors, whose singles are one row. Collective.

    Args:
        right: right vectors of the wanted states; a search begins with them.
    """

    def __init__(
        self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks, right: Sequence[StateVector] = ()
    ) -> None:
        super().__init__(of, kind)
        self._ladders = OpenLeftLadders(of, kind)
        self._right = right

    # ---- products ----

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1; sigma2 is put into `out`."""
        l1, sums = self.blocks(vector.singles), _Sums(self.room)
        by_kind = dict(zip(self.kind.doubles, vector.doubles, strict=True))
        to = AntisymmetricDoubles(dict(zip(self.kind.doubles, self._x, strict=True)))
        r1_ = {each: np.zeros_like(values) for each, values in l1.items()}
        self._of_antisymmetrised(by_kind, sums, to, r1_)
        foo_, fvv_ = self._of_direct(by_kind, sums)
        self._of_holes(vector.doubles, sums)
        self._of_rings(sums, r1_)
        self._of_z(l1, sums, r1_)
        self._of_one_body(foo_, fvv_, l1, sums, r1_)
        self._of_singles(l1, sums, to, r1_)
        self._of_mean_fields(l1, foo_, fvv_, sums, r1_)
        self._of_y(sums, to)
        for part, labels in enumerate(self.kind.doubles):
            sums.fill(self._x[part])
            self._put(part, labels, out[part])
        return flat(r1_[each] for each in self.kind.singles)

    def _of_antisymmetrised(
        self, of_kinds: dict[Labels, Array], sums: _Sums, to: AntisymmetricDoubles, r1_: dict[Pair, Values]
    ) -> None:
        """Adds derivatives of the terms with Z, rings and N."""
        of, c = self.of, self.room.contract
        for part, (labels, left) in enumerate(of_kinds.items()):
            spin = dict(zip("aibj", labels, strict=True))
            for letters, sign in self._foldings[part].orders:
                p, q, r, s = tuple(letters)
                of_p, of_q, of_r, of_s = (spin[each] for each in (p, q, r, s))
                if (of_p, of_q) in self._zr and of_r == of_s != NONE:
                    words = f"aibj,Q{r}{s}->Q{p}{q}"
                    sums.add(words, left, of.z[of_r], self._zr[of_p, of_q], sign)
                for rings, vectors in ((of.rings, to), (self._rings, of.t2)):
                    for (first, second, third, fourth), ring in rings.items():
                        if (first, second) != (of_p, of_q):
                            continue
                        found = vectors.find((third, fourth, of_r, of_s), f"ck{r}{s}")
                        if found is None:
                            continue
                        weight = -sign * found.sign
                        if vectors is to:
                            sums.add(f"aibj,{p}{q}ck->{found.letters}", left, ring, found.array, weight)
                        else:
                            sums.add(f"aibj,{found.letters}->{p}{q}ck", left, found.array, ring, weight)
                for a, k in r1_:
                    mixed = None
                    if a == of_p and k != NONE:
                        mixed = of.mixed((k, of_q, of_r, of_s), f"k{q}{r}{s}")
                    if mixed is not None:
                        made = c(f"aibj,{mixed[1]}->k{p}", left, mixed[0])
                        r1_[a, k] -= 0.5 * sign * mixed[2] * made

    def _of_direct(
        self, of_kinds: dict[Labels, Array], sums: _Sums
    ) -> tuple[dict[Pair, Values], dict[Pair, Values]]:
        """Adds derivatives of the terms that are antisymmetric already; returns foo_ [k,i] and fvv_ [a,c]."""
        of, c = self.of, self.room.contract
        foo_ = {(a, i): np.zeros((self._size(a), self._size(i))) for a, i in self.kind.singles if a != NONE}
        fvv_ = {
            (a, i): np.zeros((len(self._virtual[a]), len(self._virtual[i])))
            for a, i in self.kind.singles
            if i != NONE
        }
        for part, (labels, left) in enumerate(of_kinds.items()):
            (_, i, _, j), share = labels, 1.0 / self._foldings[part].count
            for axis, target, letters, sign in _ONE_BODY:
                of_h, made = (of.fvv, fvv_) if sign > 0 else (of.foo, foo_)
                here = labels[axis]
                if here != NONE:
                    sums.add(f"aibj,{target}->{letters}", left, of_h[here], self._x[part], sign * share)
                for first, second in made:
                    changed, there = (first, second) if sign > 0 else (second, first)
                    found = of.t2.find(_with(labels, axis, there), letters) if changed == here else None
                    if found is not None:
                        matrix = c(f"aibj,{found.letters}->{target}", left, found.array)
                        made[first, second] += sign * share * found.sign * matrix
            if NONE not in (i, j):
                hole, words = (
                    (of.of.hole[i], "kilj")
                    if i == j
                    else (of.of.part["ooooab"], "kilj" if i == 0 else "ljki")
                )
                weight = share * (0.5 if i == j else 1.0)
                sums.add(f"aibj,{words}->akbl", left, hole, self._x[part], weight)
        return foo_, fvv_

    def _size(self, spin: int) -> int:
        return len(self._occupied[spin])

    def _of_holes(self, left: Sequence[Array], sums: _Sums) -> None:
        """Adds derivatives of the terms with h_r, and makes the ladders."""
        c, doo, poo = self.room.contract, self.of.doo, self._poo
        occupied = {}
        for part, (labels, each) in enumerate(zip(self.kind.doubles, left, strict=True)):
            if not self._ladders.has(labels):
                continue
            a, i, b, j = labels
            found = self.of.t2.find((a, a, b, b), "akbl")
            assert found is not None
            weight = found.sign * (0.5 if a == b else 1.0)
            made = weight * c(f"aibj,{found.letters}->kilj", each, found.array)
            occupied[part] = made
            share = 1.0 / self._foldings[part].count
            for there, (first, second), words, other, sign in (
                (b == j, (a, i), "kilj,Qlj->Qki", b, 1.0),
                (a == i, (b, j), "kilj,Qki->Qlj", a, 1.0),
                (b == i, (a, j), "kilj,Qli->Qkj", b, -1.0),
                (a == j, (b, i), "kilj,Qkj->Qli", a, -1.0),
            ):
                if there and (first, second) in poo:
                    sums.add(words, made, doo[other], poo[first, second], sign * share)
        self._ladders.contract(left, occupied)

    def _of_rings(self, sums: _Sums, r1_: dict[Pair, Values]) -> None:
        """Adds derivatives of the terms with E_r."""
        of, c = self.of, self.room.contract
        for (p, q, d, k), ring in self._rings.items():
            if not sums.begun(ring):
                continue
            if p == d and (k, q) in r1_:
                sums.add("pqck,Qcp->Qkq", ring, of.dvv[p], self._poo[k, q])
            if k == q and (p, d) in r1_:
                r1_[p, d] -= c("pqck,kqcl->lp", ring, of.pair[k][d])

    def _of_z(self, l1: dict[Pair, Values], sums: _Sums, r1_: dict[Pair, Values]) -> None:
        """Adds derivatives of the terms with Z_r; Y_r is part of it."""
        of, c = self.of, self.room.contract
        for (a, i), z in self._zr.items():
            y = self._yr[a, i]
            if sums.begun(z):
                sums.add_array(z, y)
                if a != NONE:
                    sums.add_array(z, self._pvo[a, i])
                if i != NONE:
                    r1_[a, i] -= c("Qki,Qai->ka", of.doo[i], z)
            if a != NONE:
                sums.add("Qda,ia->Qdi", of.dvv[a], l1[a, i], y)
            if i != NONE:
                sums.add("Qki,ia->Qak", of.doo[i], l1[a, i], y, -1.0)

    def _of_one_body(
        self,
        foo_: dict[Pair, Values],
        fvv_: dict[Pair, Values],
        l1: dict[Pair, Values],
        sums: _Sums,
        r1_: dict[Pair, Values],
    ) -> None:
        of = self.of
        for (a, i), left in l1.items():
            y = self._yr[a, i]
            if a != NONE:
                r1_[a, i] += foo_[a, i].T @ of.fov[a] + left @ of.fvv[a]
                sums.add("ki,Qdk->Qdi", foo_[a, i], of.bvo[a], y)
            if i != NONE:
                r1_[a, i] -= of.fov[i] @ fvv_[a, i].T + of.foo[i] @ left
                sums.add("ac,Qck->Qak", fvv_[a, i], of.bvo[i], y, -1.0)

    def _of_singles(
        self, l1: dict[Pair, Values], sums: _Sums, to: AntisymmetricDoubles, r1_: dict[Pair, Values]
    ) -> None:
        """Adds derivatives of the terms of doubles in singles; `_of_mean_fields` has those of T."""
        of = self.of
        for (a, i), left in l1.items():
            for s in SPINS:
                found = to.find((a, i, s, s), "aick")
                if found is not None:
                    words = f"Pia,Pkc->{found.letters}"
                    sums.add(words, left[None], of.fov[s][None], found.array, found.sign)

    def _of_mean_fields(
        self,
        l1: dict[Pair, Values],
        foo_: dict[Pair, Values],
        fvv_: dict[Pair, Values],
        sums: _Sums,
        r1_: dict[Pair, Values],
    ) -> None:
        of, c = self.of, self.room.contract
        j_: Values = np.zeros(of.bvo[0].shape[0])
        for (a, i), poo in self._poo.items():
            pvo = self._pvo[a, i]
            if i != NONE:
                goo, gvo, gvv = foo_[a, i], np.ascontiguousarray(l1[a, i].T), fvv_[a, i]
                gov = np.zeros((self._size(a), len(self._virtual[i])))
                for (d, k), left in l1.items():  # of sigma1
                    found = of.t2.find((d, k, i, a), "aick")
                    if found is not None:
                        gov += found.sign * c(f"{found.letters},ia->kc", found.array, left)
                sums.add("li,Qki->Qlk", goo, of.doo[i], poo, -1.0)
                sums.add("lc,Qck->Qlk", gov, of.bvo[i], poo, -1.0)
                sums.add("ai,Qki->Qak", gvo, of.doo[i], pvo, -1.0)
                sums.add("ac,Qck->Qak", gvv, of.bvo[i], pvo, -1.0)
                if a == i:
                    j_ += c("Qki,ki->Q", of.doo[a], goo) + c("Qck,kc->Q", of.bvo[a], gov)
                    j_ += c("Qai,ai->Q", of.z[a], gvo) - c("Qai,ai->Q", of.y[a], gvo)
                    j_ += c("Qca,ac->Q", of.dvv[a], gvv)
            if sums.begun(poo):
                r1_[a, i] += c("Qck,Qki->ic", of.bvo[a], poo)
            if sums.begun(pvo):
                r1_[a, i] += c("Qca,Qak->kc", of.dvv[a], pvo)
        for a, i in r1_:
            if a == i:
                r1_[a, i] += c("Qck,Q->kc", of.bvo[a], j_)

    def _of_y(self, sums: _Sums, to: AntisymmetricDoubles) -> None:
        for (a, i), y in self._yr.items():
            for s in SPINS:
                found = to.find((a, i, s, s), "aibj")
                if found is not None:
                    sums.add(f"Qai,Qbj->{found.letters}", y, self.of.bvo[s], found.array, found.sign)

    def _put(self, part: int, labels: Labels, out: Array) -> None:
        """Puts a part of the product, antisymmetrised, with the ladder."""
        folding, x, has_ladder = self._foldings[part], self._x[part], self._ladders.has(labels)

        def add(tile: Tile) -> None:
            found = folding.apply(x, tile)
            if has_ladder:
                found += self._ladders.block(part, tile[0], tile[2])
            out.put_tile(tile, found)

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def share(self, part: int) -> float:
        """Factor of elements of doubles in <l|r>."""
        return 1.0 / self._foldings[part].count

    def guess(self, count: int) -> list[FirstState]:
        """The right vectors, which have the same size."""
        return [FirstState(each.singles, partial(_tile, each)) for each in self._right]


def _with(labels: Labels, axis: int, spin: int) -> Labels:
    a, i, b, j = (spin if n == axis else each for n, each in enumerate(labels))
    return a, i, b, j


def _tile(vector: StateVector, part: int, tile: Tile) -> Values:
    values: Values = vector.doubles[part].get_tile(tile)
    return values
