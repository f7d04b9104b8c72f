"""Left vectors of excited singlets of closed-shell EOM-CCSD: products are those of the Lambda equations, without
the derivative of the energy (`transposed`).

    <l|r> = sum_ia l1[i,a] r1[i,a] + sum_aibj L[a,i,b,j] R[a,i,b,j]

is one for a state and zero for two, so that a left vector l1, L of the same size as a right vector r1, R is about
2 r1 and 2 R - R'.

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.excited.excitations import ExcitationSpace
from outcore.chem.cc.equations.excited.guess import FirstState

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.equations.transposed import TransposedProducts
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class LeftSinglets(ExcitationSpace):
    """Products with vectors. Collective.

    Args:
        of: products with the Jacobian from the left.
        right: right vectors of the wanted states; a search begins with them.
    """

    of: TransposedProducts
    names: tuple[str, ...] = ("le",)

    def __init__(self, of: TransposedProducts, right: Sequence[StateVector]) -> None:
        super().__init__(of)
        self._right = right

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i,a]; sigma2 is put into `out`."""
        self.of.take(vector.doubles[0])
        return self.of.product(vector.singles, out[0])

    # ---- of a search ----

    def share(self, part: int) -> float:
        return 1.0

    def guess(self, count: int) -> list[FirstState]:
        """The right vectors, as left ones."""
        return [_turned(each) for each in self._right]

    def square(self, singles: Values) -> float:
        return 0.5 * float(np.vdot(singles, singles))

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        """The part of a tile in the square of X, where L = 2 X - X', in the norm of right vectors."""
        values = doubles.get_tile(tile)
        found = float(np.vdot(values, 2.0 * values + exchanged(values))) / 3.0
        return found if tile[0] == tile[2] else 2.0 * found


def _turned(right: StateVector) -> FirstState:
    (doubles,) = right.doubles

    def tile_of(part: int, tile: Tile) -> Values:
        values = doubles.get_tile(tile)
        turned: Values = 2.0 * values - exchanged(values)
        return turned

    return FirstState(2.0 * right.singles, tile_of)
