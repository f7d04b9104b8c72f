"""Two-electron integrals of a multireference CI: stored over all orbitals, or products of three-index factors.

Integrals with an internal orbital are in memory. Integrals between pairs of external orbitals are read for one
orbital at a time, so they need not exist all at once.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outcore.chem.ri.source import Source
    from outcore.job.world import World

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

_BROADCAST_BYTES = 64 << 20
_ROWS = 128


class External(Protocol):
    """Integrals between pairs of external orbitals. nbytes: in memory."""

    nbytes: int

    def column(self, c: int) -> Matrix:
        """(ac|bd) [a][bd] over external orbitals, pairs b >= d. Any thread may call it."""


@dataclass(frozen=True, eq=False)
class TwoElectron:
    """Two-electron integrals (Hartree); internal orbitals come before external ones.

    rows: (pq|rs) [pq][rs], pairs r >= s, for pairs pq with an internal orbital, see `internal_pairs`. coulomb,
    exchange: (pp|qq), (pq|pq) as [p][q]. title: text for the user about their origin. made_of: everything that
    integrals depend on if they are decomposed to a tolerance, as these differ from run to run; None: `rows`
    identify the integrals.
    """

    rows: Matrix
    coulomb: Matrix
    exchange: Matrix
    external: External
    title: str = ""
    made_of: dict[str, Any] | None = None

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.external.nbytes


class Whole:
    """Integrals [ab][cd] that are all in memory."""

    def __init__(self, integrals: Matrix) -> None:
        self._integrals, self.nbytes = integrals, integrals.nbytes

    def column(self, c: int) -> Matrix:
        return self._integrals[_pairs_with(c, _orbitals(len(self._integrals)))]


class IntegralFactors:
    """(ab|cd) = sum_Q B[Q, ab] B[Q, cd]."""

    def __init__(self, factors: Matrix) -> None:
        self._factors, self.nbytes = factors, factors.nbytes

    def column(self, c: int) -> Matrix:
        found: Matrix = self._factors[:, _pairs_with(c, _orbitals(self._factors.shape[1]))].T @ self._factors
        return found


def _orbitals(pairs: int) -> int:
    return int(np.sqrt(2 * pairs))


def _pair(p: Integers | int, q: Integers | int) -> Integers:
    high, low = np.maximum(p, q), np.minimum(p, q)
    return np.asarray(high * (high + 1) // 2 + low, np.int64)


def _pairs_with(c: int, orbitals: int) -> Integers:
    return _pair(np.arange(orbitals), c)


def internal_pairs(internal: int, orbitals: int) -> Integers:
    """Numbers of the pairs p >= q with an internal orbital: first the pairs of two internal orbitals, then for each
    external p all internal q."""
    p, q = np.tril_indices(internal)
    outer = _pair(np.arange(internal, orbitals)[:, None], np.arange(internal))
    return np.concatenate([_pair(p, q), outer.ravel()])


def external_pairs(internal: int, orbitals: int) -> Integers:
    p, q = np.tril_indices(orbitals - internal)
    return _pair(p + internal, q + internal)


def weighed(values: Matrix) -> float:
    """A number that identifies integrals. It does not depend on the signs of orbitals. It is made of squares, so
    the many integrals that are zero except for rounding add nothing."""
    squares = np.square(np.ravel(values))
    return float(squares @ (1.5 + np.sin(np.arange(1.0, len(squares) + 1.0))))


def none() -> TwoElectron:
    empty = np.zeros((0, 0))
    return TwoElectron(empty, empty, empty, Whole(empty))


def symmetrize(integrals: Matrix) -> float:
    """Replaces (pq|rs) [pq][rs] and (rs|pq) by their mean, in place. Returns the largest change."""
    n, change = len(integrals), 0.0
    for first in range(0, n, _ROWS):
        rows, columns = slice(first, min(first + _ROWS, n)), slice(0, min(first + _ROWS, n))
        mean = (integrals[rows, columns] + integrals[columns, rows].T) / 2
        change = max(change, float(abs(mean - integrals[rows, columns]).max()))
        integrals[rows, columns] = mean
        integrals[columns, rows] = mean.T
    return change


def of_whole(integrals: Matrix, internal: int, title: str = "integrals in memory") -> TwoElectron:
    """The integrals from (pq|rs) [pq][rs] of all pairs."""
    n = _orbitals(len(integrals))
    inner, outer = internal_pairs(internal, n), external_pairs(internal, n)
    same = _pair(np.arange(n), np.arange(n))
    both = _pair(np.arange(n)[:, None], np.arange(n))
    return TwoElectron(
        integrals[inner],
        np.ascontiguousarray(integrals[np.ix_(same, same)]),
        np.ascontiguousarray(integrals[both, both]),
        Whole(integrals[np.ix_(outer, outer)]),
        title,
    )


def of_factors(
    factors: Matrix, internal: int, title: str, made_of: dict[str, Any] | None = None
) -> TwoElectron:
    """The integrals from factors B[Q, pq] of all pairs."""
    n = _orbitals(factors.shape[1])
    same = _pair(np.arange(n), np.arange(n))
    both = _pair(np.arange(n)[:, None], np.arange(n))
    exchange = np.einsum("Qp,Qp->p", factors, factors)[both]
    coulomb = factors[:, same].T @ factors[:, same]
    rows = factors[:, internal_pairs(internal, n)].T @ factors
    outer = IntegralFactors(np.ascontiguousarray(factors[:, external_pairs(internal, n)]))
    return TwoElectron(rows, coulomb, np.ascontiguousarray(exchange), outer, title, made_of)


# ---- factors of orbitals ----


def transformed(blocks: Iterable[Matrix], count: int, coefficients: Matrix) -> Matrix:
    """`count` rows over pairs p >= q of orbitals, from blocks of symmetric matrices over functions."""
    p, q = np.tril_indices(coefficients.shape[1])
    found, row = np.empty((count, len(p))), 0
    for block in blocks:
        found[row : row + len(block)] = np.matmul(coefficients.T, block @ coefficients)[:, p, q]
        row += len(block)
    return found


def of_source(world: World, source: Source, coefficients: Matrix, limit_bytes: int) -> Matrix:
    """B[Q, pq] over orbitals, at all processes. Collective; the coefficients of the first process count.

    Raises OutcoreError: ENOMEM (larger than limit_bytes)."""
    n = coefficients.shape[1]
    check_factors(source.cuts[-1], n, limit_bytes)
    found: Matrix | None = None
    with world.together("transform three-index integrals"):
        if world.rank == 0:
            blocks = (source.matrices(piece) for piece in range(len(source.cuts) - 1))
            found = np.ascontiguousarray(source.fit(transformed(blocks, source.cuts[-1], coefficients)))
    return spread(world, found, (source.rank, n * (n + 1) // 2))


def check_factors(rows: int, orbitals: int, limit_bytes: int) -> None:
    needed = 8 * rows * (orbitals * (orbitals + 1) // 2)
    if needed > limit_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            "multireference CI",
            detail=f"three-index integrals of {rows} functions over {orbitals} orbitals take "
            f"{in_words(needed)}, there are {in_words(limit_bytes)}: take a smaller basis, or more "
            "memory",
        )


def spread(world: World, found: Matrix | None, shape: tuple[int, int]) -> Matrix:
    """Copies the array of the first process to all processes. Collective."""
    if world.size == 1:
        assert found is not None
        return found
    result = np.empty(shape) if found is None else found
    rows = max(1, _BROADCAST_BYTES // (8 * shape[1]))
    for first in range(0, shape[0], rows):
        result[first : first + rows] = world.broadcast(result[first : first + rows])
    return result


def fields(factors: Matrix, occupied: list[Matrix]) -> tuple[Matrix, list[Matrix]]:
    """The Coulomb matrix of a determinant, and the exchange matrix of each spin (Hartree). occupied: occupied
    orbitals [orbital][occupied] of each spin."""
    n = len(occupied[0])
    both = _pair(np.arange(n)[:, None], np.arange(n))
    coulomb, exchange = np.zeros((n, n)), [np.zeros((n, n)) for _ in occupied]
    total = sum((each @ each.T for each in occupied), np.zeros((n, n)))
    for factor in factors:
        matrix = factor[both]
        coulomb += float(np.sum(matrix * total)) * matrix
        for spin, c in enumerate(occupied):
            half = matrix @ c
            exchange[spin] += half @ half.T
    return coulomb, exchange


def in_the_field(
    core_energy: float, hamiltonian: Matrix, factors: Matrix, frozen: int
) -> tuple[float, Matrix, Matrix]:
    """Energy, one-electron integrals and factors of the other orbitals in the field of the first `frozen` ones,
    which are doubly occupied."""
    n = len(hamiltonian)
    core = np.arange(frozen)
    both = _pair(np.arange(n)[:, None], np.arange(n))
    density = 2 * factors[:, _pair(core, core)].sum(1)
    field = (density @ factors)[both]
    for i in core:
        of_core = factors[:, _pair(int(i), np.arange(n))]
        field -= of_core.T @ of_core
    energy = core_energy + float((2 * hamiltonian + field)[core, core].sum())
    rest = slice(frozen, None)
    return energy, (hamiltonian + field)[rest, rest], factors[:, external_pairs(frozen, n)]
