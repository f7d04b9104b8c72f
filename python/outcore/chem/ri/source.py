"""Sources of three-index integrals B with (mn|ls) = sum_Q B[Q,mn] B[Q,ls]: rows X[K,mn], one for each function K
of a set, and a metric or a factor that turns them into B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore.chem import problem
from outcore.chem.ri import auxiliary
from outcore.chem.ri import pairs as pair_lists
from outcore.chem.ri.metric import Metric

if TYPE_CHECKING:
    from outcore.chem.ri.auxiliary import Purpose

Values = np.ndarray[Any, np.dtype[Any]]

_PIECE = 32  # auxiliary functions that are transformed at once, if no shell has more


class Source(Protocol):
    """Rows of three-index integrals over basis functions.

    Attributes:
        cuts: boundaries of the rows that are made together.
        rank: number of rows of B, after `fit`.
        title: text for the user.
        settings: everything that B depends on in addition to the orbital basis.
        signs: s_Q of the rows of B if integrals are differences, sum_Q s_Q B[Q,mn] B[Q,ls], those with 1 first;
            None: all are 1.
    """

    cuts: tuple[int, ...]
    rank: int
    title: str
    settings: dict[str, Any]
    signs: Values | None

    def matrices(self, piece: int) -> Values:
        """The rows of a piece as symmetric matrices [rows][n][n], valid until this thread requests others."""
        ...

    def fit(self, block: Values) -> Values:
        """Turns rows [cuts[-1]][any] into those of B, [rank][any]; in place if possible."""
        ...


class Fitted:
    """Density fitting: rows (K|mn) of auxiliary functions, with the inverse of the Coulomb metric."""

    signs: Values | None = None

    def __init__(
        self, world: Any, mol: Any, auxbasis: Any, threads: int, screening: float, purpose: Purpose = "mp2"
    ) -> None:
        """purpose: for which the auxiliary set on record is chosen. Collective."""
        with world.together("auxiliary basis", str(auxbasis)):
            self.auxmol = auxiliary.build(mol, auxbasis, purpose)
            self._native = pair_lists.native(mol, self.auxmol)
            bounds = np.array(self._native.bounds(threads))
            self._pairs = pair_lists.Pairs(bounds, pair_lists.shell_sizes(mol), screening, 1 << 30)
            auxiliary.warn(self.auxmol, purpose, world)
            self.settings = problem.auxiliary(self.auxmol)
            self._shells, self.cuts = _pieces(self.auxmol.ao_loc_nr(), _PIECE)
        metric = Metric(world, self.auxmol)
        self.rank, self.fit = metric.rank, metric.fit
        self.title = f"{self.rank} auxiliary basis functions ({auxiliary.title(self.auxmol)})"

    def matrices(self, piece: int) -> Values:
        count, n = self.cuts[piece + 1] - self.cuts[piece], self._pairs.functions
        values = np.empty((count, self._pairs.columns))
        self._native.integrals(self._pairs.table, self._shells[piece], self._shells[piece + 1], values, 1)
        result = np.zeros((count, n, n))
        self._native.expand(self._pairs.table, values, result, 1)
        return result

    fit: Callable[[Values], Values]


def cuts_of(auxmol: Any) -> tuple[int, ...]:
    """Boundaries of the rows of `Fitted` that are made together."""
    return _pieces(auxmol.ao_loc_nr(), _PIECE)[1]


def _pieces(first: Any, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Boundaries, in shells and in functions, of pieces of neighbouring shells with at most `most` functions
    together, or of one shell."""
    shells, functions = [0], [0]
    for shell in range(1, len(first) - 1):
        if first[shell + 1] - functions[-1] > most:
            shells.append(shell)
            functions.append(int(first[shell]))
    return (*shells, len(first) - 1), (*functions, int(first[-1]))
