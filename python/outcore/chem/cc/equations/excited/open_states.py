"""States of EOM-CCSD of open shells, by spin orbitals: excited ones with and without a flipped spin, ionised and
attached ones.

r1[i,a] and R[a,i,b,j] are of the spins that `open_blocks` has for the kind of states. An intermediate with `r` is
the derivative of that without it in the direction of the vector; B~, Z, Y and f are those of `unrestricted`, and

    Y_r = R B,  Z_r = Y_r + [B~, r1]_vo,  E_r = derivative of (ki|ac)~
    sigma1 = fvv r1 - r1 foo + g_vo + T g_ov + R f~_ov + B~vv Y_r - B~oo Y_r
    sigma2 = (1 - P_ij) (1 - P_ab) (Z_r Z - K R - E_r T - r1 N / 2)
             + fvv R - R foo + fvv_r T - T foo_r + A_R + h R + h_r T

where g is the dressed mean field of r1, and A_R the product of the ladders with R, dressed with singles. Terms
with integrals of the orbital x are zero.

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Krylov, Chem. Phys. Lett. 338, 375 (2001).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited import open_guess
from outcore.chem.cc.equations.excited.open_blocks import (
    NONE,
    AntisymmetricDoubles,
    Labels,
    OpenStateBlocks,
    Pair,
    flat,
)
from outcore.chem.cc.equations.excited.open_ladders import OpenLadders
from outcore.chem.cc.equations.excited.open_space import OpenStateSpace
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.unrestricted import SPINS

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class OpenStates(OpenStateSpace):
    """Products with vectors. Collective."""

    def __init__(self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks) -> None:
        super().__init__(of, kind)
        self._ladders = OpenLadders(of, kind)

    # ---- products ----

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1; sigma2 is put into `out`."""
        r1 = self.blocks(vector.singles)
        r2 = AntisymmetricDoubles(dict(zip(self.kind.doubles, vector.doubles, strict=True)))
        self._put_y(r2)
        g = self._mean_fields(r1)
        singles = flat(self._singles(each, r1, r2, g) for each in self.kind.singles)
        self._put_z(r1)
        foo, fvv = self._one_body(r1, g)
        self._put_rings(r1)
        self._ladders.contract(vector.doubles)
        for part, labels in enumerate(self.kind.doubles):
            self._antisymmetrised(part, labels, r1, r2)
            self._direct(part, labels, r2, foo, fvv)
            self._add_up(part, labels, out[part])
        return singles

    def _put_y(self, r2: AntisymmetricDoubles) -> None:
        c = self.room.contract
        for (a, i), array in self._yr.items():
            add = False
            for s in SPINS:
                found = r2.find((a, i, s, s), "aibj")
                if found is not None:
                    words = f"{found.letters},Qbj->Qai"
                    c(words, found.array, self.of.bvo[s], out=array, scale=found.sign, add=add)
                    add = True

    def _mean_fields(self, r1: dict[Pair, Values]) -> dict[Pair, tuple[Values, Values, Values, Values]]:
        """g of kinds oo [k,i], ov [k,c], vo [a,i], vv [a,c], by spins of the first and the second orbital."""
        of, c = self.of, self.room.contract
        found: dict[Pair, tuple[Values, Values, Values, Values]] = {}
        same = [each for each in r1 if each[0] == each[1]]
        j = sum(c("Qck,kc->Q", of.bvo[s], r1[s, s]) for s, _ in same) if same else None
        for (a, i), poo in self._poo.items():
            pvo = self._pvo[a, i]
            c("Qck,ic->Qki", of.bvo[a], r1[a, i], out=poo)
            c("Qca,kc->Qak", of.dvv[a], r1[a, i], out=pvo)
            if i == NONE:
                continue
            oo, ov = -c("Qlk,Qki->li", poo, of.doo[i]), -c("Qlk,Qck->lc", poo, of.bvo[i])
            vo, vv = -c("Qak,Qki->ai", pvo, of.doo[i]), -c("Qak,Qck->ac", pvo, of.bvo[i])
            if a == i:
                oo, ov = oo + c("Qki,Q->ki", of.doo[a], j), ov + c("Qck,Q->kc", of.bvo[a], j)
                vo = vo + c("Qai,Q->ai", of.z[a], j) - c("Qai,Q->ai", of.y[a], j)
                vv = vv + c("Qca,Q->ac", of.dvv[a], j)
            found[a, i] = oo, ov, vo, vv
        return found

    def _singles(
        self,
        labels: Pair,
        r1: dict[Pair, Values],
        r2: AntisymmetricDoubles,
        g: dict[Pair, tuple[Values, Values, Values, Values]],
    ) -> Values:
        """sigma1 [i,a] of one kind."""
        of, c, (a, i), yr = self.of, self.room.contract, labels, self._yr[labels]
        found = np.zeros((len(self._virtual[a]), len(self._occupied[i])))
        if a != NONE:
            found += of.fvv[a] @ r1[labels].T + c("Qda,Qdi->ai", of.dvv[a], yr)
        if i != NONE:
            found -= r1[labels].T @ of.foo[i] + c("Qki,Qak->ai", of.doo[i], yr)
        if labels in g:
            found += g[labels][2]
        for (k, d), each in g.items():
            amplitudes = of.t2.find((a, i, d, k), "aick")
            if amplitudes is not None:
                words = f"{amplitudes.letters},kc->ai"
                found += amplitudes.sign * c(words, amplitudes.array, np.ascontiguousarray(each[1]))
        for s in SPINS:
            doubles = r2.find((a, i, s, s), "aick")
            if doubles is not None:
                found += doubles.sign * c(f"{doubles.letters},kc->ai", doubles.array, of.fov[s])
        return np.ascontiguousarray(found.T)

    def _put_z(self, r1: dict[Pair, Values]) -> None:
        of, c, room = self.of, self.room.contract, self.room
        for (a, i), z in self._zr.items():
            add = False
            if i != NONE:
                c("Qki,ka->Qai", of.doo[i], r1[a, i], out=z, scale=-1.0)
                add = True
            if not add:
                z_tiles, y = z, self._yr[a, i]
                room.each_tile(z, lambda tile, z=z_tiles, y=y: z.put_tile(tile, y.get_tile(tile)), "sum")  # type: ignore[misc]
            else:
                room.add(z, self._yr[a, i])
            if a != NONE:
                room.add(z, self._pvo[a, i])

    def _one_body(
        self, r1: dict[Pair, Values], g: dict[Pair, tuple[Values, Values, Values, Values]]
    ) -> tuple[dict[Pair, Values], dict[Pair, Values]]:
        """foo_r [k,i] and fvv_r [a,c]."""
        of, c = self.of, self.room.contract
        foo, fvv = dict[Pair, Values](), dict[Pair, Values]()
        for a, i in self.kind.singles:
            each, yr = r1[a, i], self._yr[a, i]
            if a != NONE:
                foo[a, i] = of.fov[a] @ each.T + c("Qdk,Qdi->ki", of.bvo[a], yr)
            if i != NONE:
                fvv[a, i] = -each.T @ of.fov[i] - c("Qak,Qck->ac", yr, of.bvo[i])
            if (a, i) in g:
                foo[a, i] += g[a, i][0]
                fvv[a, i] += g[a, i][3]
        return foo, fvv

    def _put_rings(self, r1: dict[Pair, Values]) -> None:
        """Puts E_r[p,q,c,k]."""
        of, c = self.of, self.room.contract
        for (p, q, d, k), ring in self._rings.items():
            add = False
            if p == d and (k, q) in r1:
                c("Qkq,Qcp->pqck", self._poo[k, q], of.dvv[p], out=ring)
                add = True
            if k == q and (p, d) in r1:
                c("kqcl,lp->pqck", of.pair[k][d], r1[p, d], out=ring, scale=-1.0, add=add)

    def _antisymmetrised(
        self, part: int, labels: Labels, r1: dict[Pair, Values], r2: AntisymmetricDoubles
    ) -> None:
        """Puts x, before it is antisymmetrised."""
        of, c, x = self.of, self.room.contract, self._x[part]
        spin = dict(zip("aibj", labels, strict=True))
        self.room.each_tile(x, lambda tile: x.put_tile(tile, np.zeros(x.layout.tile_shape(tile))), "clear")
        for letters, sign in self._foldings[part].orders:
            p, q, r, s = tuple(letters)
            of_p, of_q, of_r, of_s = (spin[each] for each in (p, q, r, s))
            if (of_p, of_q) in self._zr and of_r == of_s != NONE:
                words = f"Q{p}{q},Q{r}{s}->aibj"
                c(words, self._zr[of_p, of_q], of.z[of_r], out=x, scale=sign, add=True)
            for rings, vectors in ((of.rings, r2), (self._rings, of.t2)):
                for (first, second, third, fourth), ring in rings.items():
                    if (first, second) != (of_p, of_q):
                        continue
                    found = vectors.find((third, fourth, of_r, of_s), f"ck{r}{s}")
                    if found is not None:
                        words = f"{p}{q}ck,{found.letters}->aibj"
                        c(words, ring, found.array, out=x, scale=-sign * found.sign, add=True)
            for (a, k), singles in r1.items():
                if a != of_p or k == NONE:
                    continue
                mixed = of.mixed((k, of_q, of_r, of_s), f"k{q}{r}{s}")
                if mixed is not None:
                    words = f"k{p},{mixed[1]}->aibj"
                    c(words, singles, mixed[0], out=x, scale=-0.5 * sign * mixed[2], add=True)

    def _direct(
        self,
        part: int,
        labels: Labels,
        r2: AntisymmetricDoubles,
        foo: dict[Pair, Values],
        fvv: dict[Pair, Values],
    ) -> None:
        """Adds a share of the terms that are antisymmetric already, one-body ones and h, to x."""
        of, c, x, (a, i, b, j) = self.of, self.room.contract, self._x[part], labels
        share = 1.0 / self._foldings[part].count
        of_h = (
            {(s, s): each for s, each in enumerate(of.foo)},
            {(s, s): each for s, each in enumerate(of.fvv)},
        )
        for vectors, (oo, vv) in ((r2, of_h), (of.t2, (foo, fvv))):
            for (first, d), matrix in vv.items():
                for place, wanted, words, target in (
                    (a, (d, i, b, j), "cibj", "ac"),
                    (b, (a, i, d, j), "aicj", "bc"),
                ):
                    found = vectors.find(wanted, words) if place == first else None
                    if found is not None:
                        text = f"{target},{found.letters}->aibj"
                        c(text, matrix, found.array, out=x, scale=share * found.sign, add=True)
            for (k, second), matrix in oo.items():
                for place, wanted, words, target in (
                    (i, (a, k, b, j), "akbj", "ki"),
                    (j, (a, i, b, k), "aibk", "kj"),
                ):
                    found = vectors.find(wanted, words) if place == second else None
                    if found is not None:
                        text = f"{target},{found.letters}->aibj"
                        c(text, matrix, found.array, out=x, scale=-share * found.sign, add=True)
        if NONE not in (i, j):
            found = r2.find((a, i, b, j), "akbl")
            assert found is not None
            hole, words = (
                (of.of.hole[i], "kilj") if i == j else (of.of.part["ooooab"], "kilj" if i == 0 else "ljki")
            )
            weight = share * found.sign * (0.5 if i == j else 1.0)
            c(f"{found.letters},{words}->aibj", found.array, hole, out=x, scale=weight, add=True)
        if NONE not in (a, b):
            found = of.t2.find((a, a, b, b), "akbl")
            assert found is not None
            weight = share * found.sign * (0.5 if a == b else 1.0)
            made = self._hole(part, labels)
            c(f"{found.letters},kilj->aibj", found.array, made, out=x, scale=weight, add=True)

    def _hole(self, part: int, labels: Labels) -> Values:
        """h_r[k,i,l,j] of k and l of the spins of a and b."""
        c, doo, poo, (a, i, b, j) = self.room.contract, self.of.doo, self._poo, labels
        found = self._ladders.block(part, 0, 0).copy()
        if (a, i) in poo and b == j:
            found += c("Qki,Qlj->kilj", poo[a, i], doo[b])
        if a == i and (b, j) in poo:
            found += c("Qki,Qlj->kilj", doo[a], poo[b, j])
        if (a, j) in poo and b == i:
            found -= c("Qkj,Qli->kilj", poo[a, j], doo[b])
        if a == j and (b, i) in poo:
            found -= c("Qkj,Qli->kilj", doo[a], poo[b, i])
        return found

    def _add_up(self, part: int, labels: Labels, out: Array) -> None:
        """Puts x, antisymmetrised, plus the dressed ladder."""
        a_spin, _, b_spin, _ = labels
        folding, x, cuts, block = self._foldings[part], self._x[part], self._cuts, self._ladders.block
        is_real = NONE not in (a_spin, b_spin)
        inner = block(part, 0, 0) if is_real else None

        def add(tile: Tile) -> None:
            found = folding.apply(x, tile)
            if inner is not None:
                a, _, b, _ = tile
                of_a, of_b = (
                    self.of.t1[s][:, cuts[s][n] : cuts[s][n + 1]] for s, n in ((a_spin, a), (b_spin, b))
                )
                found += block(part, a + 1, b + 1)
                of_k = block(part, 0, b + 1) - np.einsum("kilj,lb->kibj", inner, of_b)
                found -= np.tensordot(of_a, of_k, ([0], [0]))
                found -= np.einsum("ailj,lb->aibj", block(part, a + 1, 0), of_b)
            out.put_tile(tile, found)

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def guess(self, count: int) -> list[FirstState]:
        return open_guess.states(self, count)

    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        """factors: an excitation that keeps the spin, [i,a] of both in a row, and singles."""
        labels = self.kind.doubles[part]
        excited, state = open_guess.excitation_blocks(self.of, factors[0]), self.blocks(factors[1])
        spin = dict(zip("aibj", labels, strict=True))
        box = {
            each: slice(*self._cuts[spin[each]][n : n + 2]) for each, n in (("a", tile[0]), ("b", tile[2]))
        }
        of_a, of_b = (self._box(labels[n], tile[n]).size for n in (0, 2))
        of_i, of_j = (len(self._occupied[labels[n]]) for n in (1, 3))
        total = np.zeros((of_a, of_i, of_b, of_j))
        for letters, sign in (("aibj", 1.0), ("ajbi", -1.0), ("biaj", -1.0), ("bjai", 1.0)):
            p, q, r, s = tuple(letters)
            if spin[p] == spin[q] != NONE and (spin[r], spin[s]) in state:
                one, other = excited[spin[p]][:, box[p]], state[spin[r], spin[s]][:, box[r]]
                total += sign * np.einsum(f"{q}{p},{s}{r}->aibj", one, other)
        return total
