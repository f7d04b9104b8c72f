"""Extrapolation of amplitudes from those of earlier iterations (DIIS), whose vectors are extended arrays.

Pulay, Chem. Phys. Lett. 73, 393 (1980); Scuseria, Lee, Schaefer, Chem. Phys. Lett. 130, 236 (1986).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

_SINGLE = 6e-8  # rounding to single precision, relative to an error
_LOST = 1e-2  # largest rounding of a combination, relative to the least error
_SMALLEST = 1e-14  # rounding of eigenvalues, relative to the largest


class Diis:
    """The last vectors: amplitudes and their errors. An error has single precision; small parts are in memory.
    Collective."""

    def __init__(self, room: Room, vectors: int, names: list[tuple[str, str]]) -> None:
        """names: of arrays in the plan, pairs for errors and amplitudes; the number of a vector follows the
        name."""
        self._room, self._vectors = room, vectors
        self._errors = [[room.array(f"{error}{k}") for k in range(vectors)] for error, _ in names]
        self._amplitudes = [[room.array(f"{name}{k}") for k in range(vectors)] for _, name in names]
        self._small_errors: list[Values] = [np.empty(0)] * vectors
        self._small: list[Values] = [np.empty(0)] * vectors
        self._products = np.zeros((vectors, vectors))
        self._count = 0  # vectors ever added

    def fill(self, small: Values) -> None:
        """Pretends that all vectors were added, as after the first iterations. small: the small part of each."""
        self._count = self._vectors
        self._small, self._small_errors = [small] * self._vectors, [small] * self._vectors

    def close(self) -> None:
        """Gives the arrays back to the room."""
        every = [*self._errors, *self._amplitudes]
        self._room.release(*(array for arrays in every for array in arrays))

    @property
    def _used(self) -> int:
        return min(self._count, self._vectors)

    def add(
        self, small: Values, small_error: Values, make: list[Callable[[Tile], tuple[Values, Values]]]
    ) -> float:
        """Adds a vector: `make` returns the amplitudes and the error of a tile. Returns the norm of the error. If
        `make` raises, all vectors are lost."""
        count, self._count = self._count + 1, 0
        slot, used = (count - 1) % self._vectors, min(count, self._vectors)
        self._small[slot], self._small_errors[slot] = small.copy(), small_error.copy()
        dots = np.zeros(self._vectors)
        guard = threading.Lock()
        for errors, amplitudes, of_tile in zip(self._errors, self._amplitudes, make, strict=True):

            def work(
                tile: Tile,
                errors: list[Array] = errors,
                amplitudes: list[Array] = amplitudes,
                of_tile: Callable[[Tile], tuple[Values, Values]] = of_tile,
            ) -> None:
                values, error = of_tile(tile)
                amplitudes[slot].put_tile(tile, values)
                error = error.astype(np.float32).astype(np.float64)
                errors[slot].put_tile(tile, error)
                images = sum(1 for _ in errors[slot].layout.images(tile))
                found = [
                    images * float(np.vdot(error, error if k == slot else errors[k].get_tile(tile)))
                    for k in range(used)
                ]
                with guard:
                    dots[:used] += found

            self._room.each_tile(errors[slot], work, "DIIS")
            amplitudes[slot].sync()
        dots = np.asarray(self._room.world.all_reduce(dots))
        for k in range(used):
            dots[k] += float(np.vdot(self._small_errors[slot], self._small_errors[k]))
            self._products[slot, k] = self._products[k, slot] = dots[k]
        self._count = count
        return float(np.sqrt(dots[slot]))

    def coefficients(self) -> Values:
        """Coefficients of the vectors: their sum is 1, and the error of the combination is least. Where errors are
        nearly dependent, as in small systems with symmetry, their rounding would be too large beside the least of
        them: then the oldest vectors are left out."""
        n = self._used
        newest_first = [(self._count - 1 - k) % self._vectors for k in range(n)]
        found = np.zeros(n)
        for count in range(n, 0, -1):
            slots = newest_first[:count]
            products = self._products[np.ix_(slots, slots)]
            part = _least(products)
            sizes = np.sqrt(products.diagonal())
            if count == 1 or (abs(part) * sizes).max() * _SINGLE <= _LOST * sizes.min():
                found[slots] = part
                break
        return found

    def combine(self, coefficients: Values, put: list[Callable[[Tile, Values], None]]) -> Values:
        """Passes each tile of the combined amplitudes to `put`; returns the combined small part."""
        for amplitudes, target in zip(self._amplitudes, put, strict=True):

            def work(
                tile: Tile,
                amplitudes: list[Array] = amplitudes,
                target: Callable[[Tile, Values], None] = target,
            ) -> None:
                total = coefficients[0] * amplitudes[0].get_tile(tile)
                for c, each in zip(coefficients[1:], amplitudes[1:], strict=False):
                    total += c * each.get_tile(tile)
                target(tile, total)

            self._room.each_tile(amplitudes[0], work, "DIIS")
        small: Values = sum(
            (c * each for c, each in zip(coefficients, self._small, strict=False)),
            np.zeros_like(self._small[0]),
        )
        return small


def _least(products: Values) -> Values:
    """Coefficients of the shortest combination of errors with these scalar products. Errors are scaled to the same
    length, as those of early iterations are larger by more than all digits. Among combinations that are equally
    good, the one with the smallest coefficients."""
    sizes = np.sqrt(products.diagonal())
    if not sizes.min() > 0:
        exact: Values = np.eye(len(sizes))[sizes.argmin()]
        return exact
    weights = sizes.min() / sizes
    values, vectors = np.linalg.eigh(products / np.outer(sizes, sizes))
    # A combination whose length is lost in rounding counts with the length of rounding. Without such combinations
    # those without any error would be missing, too; a single amplitude has no others.
    shifted = np.maximum(values, 0.0) + _SMALLEST * values.max()
    found = vectors @ (vectors.T @ weights / shifted)
    scaled: Values = found * weights / (found @ weights)
    return scaled
