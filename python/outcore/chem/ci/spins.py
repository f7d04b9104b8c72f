"""A check that states of a CI have the wanted spin.

S^2 does not change the spatial occupations of determinants. So the part of an eigenstate of S^2 in the determinants
of one spatial occupation is an eigenstate as well, and the largest parts give the spin of a state.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import NotConverged
from outcore.chem.ci import analysis, determinants

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Matrix
    from outcore.chem.ci.vector import Vectors

_LARGEST = 32  # determinants whose occupations are looked at
_PARTS = 6
_MOST = 1000  # most determinants of a part
_SMALL = 1e-3  # parts with less weight are ignored
_OTHER = 0.1  # a larger difference of <S^2> means another spin


def check(states: Vectors, roots: int, spin: int) -> None:
    """Raises NotConverged, and closes the states, if one of the first `roots` vectors has another spin than 2S =
    `spin`. Collective."""
    wanted = spin / 2 * (spin / 2 + 1)
    for root in range(roots):
        for found in squares(states, root):
            if abs(found - wanted) > _OTHER:
                advice = (
                    "raise the spin shift" if found > wanted else "take as many unpaired electrons as 2S says"
                )
                states.close()
                raise NotConverged(
                    None,
                    "full CI",
                    detail=f"root {root + 1} has <S^2> = {found:.4f}, not {wanted:g}: states of another spin lie "
                    f"lower than it; {advice}, or ask for fewer roots",
                )


def squares(states: Vectors, root: int) -> list[float]:
    """<S^2> of the largest parts of a state. Collective; the same at all processes."""
    world, space = states.world, states.tiling.space
    elements = analysis.largest_elements(states, root, _LARGEST)
    found: list[float] = []
    with world.together("spin of a CI state", root):
        if world.rank == 0:
            parts: dict[tuple[int, int], int] = {}
            for _, row, column in elements:
                a, b = int(space.alpha.strings[row]), int(space.beta.strings[column])
                up = (a & ~b).bit_count()
                if comb((a ^ b).bit_count(), up) <= _MOST:
                    parts[a & b, a ^ b] = up
            for (double, single), up in list(parts.items())[:_PARTS]:
                members = np.array(list(determinants.of_occupation(double, single, up)), np.uint64)
                alpha, beta = members[:, 0], members[:, 1]
                values = _elements(states, root, space.alpha.rank(alpha), space.beta.rank(beta))
                weight = float(values @ values)
                if weight > _SMALL:
                    found.append(float(values @ determinants.spin_square(alpha, beta) @ values) / weight)
    return list(world.broadcast(found))


def _elements(
    states: Vectors, root: int, rows: determinants.Integers, columns: determinants.Integers
) -> Matrix:
    """Single elements of a vector, also of the half that is not stored."""
    tiling = states.tiling
    found, signs = np.empty(len(rows)), np.ones(len(rows))
    numbers = tiling.numbers(rows, columns)
    if tiling.parity:
        other = numbers < 0
        rows, columns = np.where(other, columns, rows), np.where(other, rows, columns)
        signs[other] = tiling.parity
        numbers = tiling.numbers(rows, columns)
    for number in np.unique(numbers):
        tile, here = tiling[int(number)], numbers == number
        block = states.get(root, tile)
        found[here] = block[rows[here] - tile.first[0], columns[here] - tile.first[1]]
    return signs * found
