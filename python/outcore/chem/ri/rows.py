"""Rows of three-index integrals over basis functions, for transformation: (P|mn) of auxiliary functions, or
vectors of two-electron integrals."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem.problem import Settings
from outcore.chem.ri import auxiliary, given
from outcore.chem.ri import pairs as pair_lists
from outcore.chem.ri.cholesky import EXACT, Cholesky
from outcore.chem.ri.forecast import FittingRates
from outcore.chem.ri.metric import Metric
from outcore.chem.ri.plan import matrices_at_once
from outcore.chem.ri.problem import settings

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.given import GivenIntegrals
    from outcore.job.world import World

Matrix = NDArray[np.float64]
Block = tuple[slice, slice]  # units that are made together (shells, say), and their rows


class Fit(Protocol):
    """Turns rows into B, in place, in the first `rank` rows. Any thread may call it."""

    @property
    def rank(self) -> int: ...

    def fit(self, block: Matrix) -> Matrix: ...


class Rows(Protocol):
    """Attributes:
    functions, columns, count: basis functions, their products in a row, rows.
    kind, title: of rows, for people.
    settings: everything that they depend on.
    signs: see `outcore.chem.ri.source.Source`.
    """

    functions: int
    columns: int
    count: int
    kind: str
    title: str
    settings: Settings
    signs: Matrix | None

    def blocks(self, most: int) -> list[Block]:
        """Blocks with at most `most` rows each; a block that cannot be split may have more."""
        ...

    def maker(self, most: int) -> Maker:
        """An object that makes the rows of blocks, for one thread. most: rows of a block."""
        ...

    def fit(self, world: World) -> Fit:
        """Collective."""
        ...

    def rates(self, orbitals: int, threads: int, scratch: str | None) -> FittingRates: ...


class Maker(Protocol):
    def matrices(self, block: Block) -> Iterator[Matrix]:
        """Yields rows of a block in order, as symmetric matrices [some][n][n], at most `matrices_at_once(n)` at a
        time, valid until the next are requested."""
        ...


class FittedRows:
    """(P|mn) of auxiliary functions of the molecule."""

    kind = "auxiliary basis functions"
    signs: Matrix | None = None

    def __init__(
        self,
        world: World,
        mol: Mole,
        auxbasis: Any,
        threads: int,
        screening: float,
        purpose: Purpose = "mp2",
    ) -> None:
        """purpose: for which the auxiliary set on record is chosen. Collective."""
        with world.together("auxiliary basis", str(auxbasis)):
            self.auxmol = auxiliary.build(mol, auxbasis, purpose)
            auxiliary.warn(self.auxmol, purpose, world)
            self._native = pair_lists.native(mol, self.auxmol)
            bounds = np.array(self._native.bounds(threads))
            self.pairs = pair_lists.Pairs(bounds, pair_lists.shell_sizes(mol), screening, 1 << 30)
        self.functions, self.columns = self.pairs.functions, self.pairs.columns
        self.count, self.title = int(self.auxmol.nao), auxiliary.title(self.auxmol)
        self.settings = settings(mol, self.auxmol, screening)

    def blocks(self, most: int) -> list[Block]:
        """Neighbouring shells with at most `most` functions together, or one shell."""
        first = self.auxmol.ao_loc_nr()
        found, begin = list[Block](), 0
        while begin < len(first) - 1:
            end = begin + 1
            while end < len(first) - 1 and first[end + 1] - first[begin] <= most:
                end += 1
            found.append((slice(begin, end), slice(int(first[begin]), int(first[end]))))
            begin = end
        return found

    def maker(self, most: int) -> Maker:
        return _FittedMaker(self._native, self.pairs, most)

    def fit(self, world: World) -> Metric:
        return Metric(world, self.auxmol)

    def rates(self, orbitals: int, threads: int, scratch: str | None) -> FittingRates:
        return FittingRates.measure(self._native, self.pairs, self.count, orbitals, threads, scratch)


class _FittedMaker:
    def __init__(self, native: Any, pairs: pair_lists.Pairs, most: int) -> None:
        self._native, self._pairs = native, pairs
        n = pairs.functions
        self._values = np.empty((most, pairs.columns))
        self._matrices = np.zeros((matrices_at_once(n), n, n))

    def matrices(self, block: Block) -> Iterator[Matrix]:
        shells, rows = block
        values = self._values[: rows.stop - rows.start]
        self._native.integrals(self._pairs.table, shells.start, shells.stop, values, 1)
        for first in range(0, len(values), len(self._matrices)):
            part = values[first : first + len(self._matrices)]
            self._native.expand(self._pairs.table, part, self._matrices, 1)
            yield self._matrices[: len(part)]


class GivenRows:
    """Rows from vectors of given integrals."""

    kind = "three-index functions"

    def __init__(self, world: World, mol: Mole, integrals: GivenIntegrals, limit_bytes: int) -> None:
        """Collective. Raises OutcoreError: as `outcore.chem.ri.given.vectors`."""
        self._source = given.vectors(world, integrals, EXACT, limit_bytes)
        self.functions, self.signs = integrals.functions, self._source.signs
        self.columns = self.functions**2  # matrices are not packed
        self.count, self.title = self._source.rank, self._source.title
        self.settings = problem.integrals(mol) | self._source.settings

    def blocks(self, _most: int) -> list[Block]:
        cuts = self._source.cuts
        return [(slice(k, k + 1), slice(*cuts[k : k + 2])) for k in range(len(cuts) - 1)]

    def maker(self, _most: int) -> Maker:
        return self

    def matrices(self, block: Block) -> Iterator[Matrix]:
        found = self._source.matrices(block[0].start)
        some = matrices_at_once(self.functions)
        for first in range(0, len(found), some):
            yield found[first : first + some]

    def fit(self, _world: World) -> Fit:
        return _InPlace(self._source)

    def rates(self, _orbitals: int, _threads: int, _scratch: str | None) -> FittingRates:
        raise OutcoreError(errno.ENOTSUP, "estimate", detail="there is none for integrals that are given")


class ExactRows(GivenRows):
    """Rows from vectors of all integrals of a molecule."""

    kind = "vectors of exact integrals"

    def __init__(self, world: World, mol: Mole, limit_bytes: int, source: Cholesky | None = None) -> None:
        """source: existing vectors. Collective. Raises OutcoreError: as
        `outcore.chem.ri.cholesky.Cholesky`."""
        self._source = source or Cholesky(world, mol, EXACT, limit_bytes)
        self.functions, self.signs = int(mol.nao), None
        self.columns = self.functions**2
        self.count, self.title = self._source.rank, self._source.title
        self.settings = problem.integrals(mol) | self._source.settings


class _InPlace:
    def __init__(self, source: Any) -> None:
        self._source, self.rank = source, int(source.rank)

    def fit(self, block: Matrix) -> Matrix:
        block[: self.rank] = self._source.fit(block)
        return block[: self.rank]
