"""Two-electron integrals that a user has given to a mean-field object of PySCF, `mf._eri`: those of a model, or
changed ones of a molecule. They are decomposed into vectors like the integrals of a molecule.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem.reference import check_method
from outcore.chem.ri.cholesky import Cholesky

if TYPE_CHECKING:
    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]

_SYMMETRIC = 1e-9  # of the largest integral: larger deviations from (pq|rs) = (qp|rs) = (rs|pq) are errors
_OVERLAP = 1e-9  # an overlap that differs by less from that of the molecule is the same
_THE_MOLECULES = 1e-13  # of the largest integral: differences of a molecule's integrals between runs
_ZERO = 1e-10  # of the largest integral: eigenvalues that are less negative are 0
_PIECE = 32  # vectors that are transformed at once
_TAKE = "take the integrals of a mean-field object"

UNFITTED = (
    "the two-electron integrals that mf has been given (mf._eri, say of a model) are not those of its molecule, "
    "whose auxiliary functions do not fit them"
)


@dataclass(frozen=True)
class GivenIntegrals:
    """Given integrals (mn|ls), packed in rows of the lower triangle of pairs m >= n, l >= s, and of the triangle of
    pairs (PySCF's 8-fold symmetry). Each function is a shell of its own. settings: identify the integrals, the
    Hamiltonian and the overlap."""

    packed: Values
    functions: int
    settings: dict[str, Any]

    @property
    def of(self) -> Values:
        """The shell of each function."""
        return np.arange(self.functions)

    @property
    def count(self) -> int:
        return self.functions

    def rows(self, m: Values, n: Values, of: Values | None = None) -> Values:
        """(K|mn) as [K][mn] for products K = m n, m >= n. of: which products mn; None: all."""
        k = (m * (m + 1) // 2 + n)[:, None]
        every = np.arange(self.functions * (self.functions + 1) // 2) if of is None else of
        low, high = np.minimum(k, every), np.maximum(k, every)
        return np.asarray(self.packed[high * (high + 1) // 2 + low])

    def rows_of(
        self, products: list[tuple[Values, Values]], of: Values | None = None
    ) -> Iterator[tuple[int, Values]]:
        """Yields the number and the rows of each of several lists of products."""
        yield from ((number, self.rows(m, n, of)) for number, (m, n) in enumerate(products))

    def standing(self, m: Values, n: Values) -> Values:
        """A number for each product m n, which stands for itself."""
        return np.asarray(m * self.count + n)

    def from_axes(self, matrices: Values) -> Values:
        """Returns the matrices: there are no axes."""
        return matrices

    @property
    def of_symmetry(self) -> dict[str, Any]:
        """No settings: there is no symmetry."""
        return {}

    def diagonal(self) -> Values:
        """(mn|mn) in rows of the lower triangle."""
        every = np.arange(self.functions * (self.functions + 1) // 2)
        return np.array(self.packed[every * (every + 3) // 2])


def of_rank_0(world: World, mf: Any) -> GivenIntegrals | None:
    """The integrals given to the object of rank 0; None if they are those of its molecule. Collective.

    Raises OutcoreError (EINVAL), the same at all."""
    found: GivenIntegrals | None = None
    with world.together(_TAKE):
        if world.rank == 0:
            check_method(mf)
            found = _of(mf)
    given: GivenIntegrals | None = world.broadcast(found)
    return given


def _of(mf: Any) -> GivenIntegrals | None:
    packed, overlap = packed_of(mf), np.asarray(mf.get_ovlp())
    if packed is None:
        return None
    settings = {
        "given one-electron integrals": problem.digest(np.asarray(mf.get_hcore()), overlap),
        "given two-electron integrals": problem.digest(packed),
    }
    found = GivenIntegrals(packed, len(overlap), settings)
    return None if is_of_functions(overlap, mf.mol) and _are_of_the_molecule(mf, found) else found


def packed_of(mf: Any) -> Values | None:
    """The integrals in `mf._eri`, packed as in GivenIntegrals; None if there are none: then the integrals are
    those of the molecule.

    Raises OutcoreError (EINVAL): they are not those of real functions, or they are missing although the functions
    are not those of the molecule."""
    eri, overlap = vars(mf).get("_eri"), np.asarray(mf.get_ovlp())
    if eri is None:
        if not is_of_functions(overlap, mf.mol):
            raise _refused(
                f"its {len(overlap)} functions or their overlap are not those of its molecule (of {mf.mol.nao}), "
                "and it has no two-electron integrals: set mf._eri"
            )
        return None
    eri = np.asarray(eri)
    if np.iscomplexobj(eri):
        raise _refused("mf._eri is complex; take real integrals")
    packed = _packed(eri, len(overlap))
    if not np.isfinite(packed).all():
        raise _refused("mf._eri has elements that are no numbers")
    return packed


def is_of_functions(overlap: Values, mol: Any) -> bool:
    """Whether an overlap is that of the functions of a molecule that has functions."""
    own = mol.intor_symmetric("int1e_ovlp")  # not nao_nr: models set this number themselves
    return overlap.shape == own.shape != (0, 0) and bool(abs(overlap - own).max() <= _OVERLAP)


def _packed(eri: Values, functions: int) -> Values:
    """Converts integrals in any of PySCF's forms to the 8-fold form."""
    from pyscf import ao2mo

    pairs = functions * (functions + 1) // 2
    if eri.size not in (functions**4, pairs**2, pairs * (pairs + 1) // 2):
        raise _refused(
            f"mf._eri has the shape {eri.shape}, which fits no form of integrals over {functions} functions"
        )
    limit = _SYMMETRIC * float(abs(eri).max(initial=0.0))
    if eri.size == functions**4 and functions > 1:
        eri = eri.reshape((functions,) * 4)
        turned: tuple[Values, ...] = (
            eri.transpose(1, 0, 2, 3),
            eri.transpose(0, 1, 3, 2),
            eri.transpose(2, 3, 0, 1),
        )
    elif eri.size == pairs**2 and functions > 1:
        eri = eri.reshape(pairs, pairs)
        turned = (eri.T,)
    else:
        return np.ascontiguousarray(eri, np.float64).ravel()
    if any(abs(eri - each).max() > limit for each in turned):
        raise _refused("mf._eri lacks the symmetry (pq|rs) = (qp|rs) = (rs|pq) of real orbitals")
    return np.asarray(ao2mo.restore(8, np.ascontiguousarray(eri, np.float64), functions))


def _are_of_the_molecule(mf: Any, given: GivenIntegrals) -> bool:
    """Whether given integrals are those of the molecule. It compares Coulomb matrices of a density without
    cancellation: a different integral changes an element."""
    from pyscf.scf import hf

    n = given.functions
    random = np.random.default_rng(1)
    density = random.uniform(0.5, 1.0, (n, n)) * random.choice([-1.0, 1.0], (n, n))
    density = np.tril(density) + np.tril(density, -1).T
    ours, _ = hf.dot_eri_dm(given.packed, density, hermi=1, with_k=False)
    molecules, _ = hf.get_jk(mf.mol, density, hermi=1, with_k=False)
    limit = _THE_MOLECULES * n * float(given.diagonal().max())
    return bool(abs(ours - molecules).max() <= limit)


# ---- vectors ----


def vectors(world: World, given: GivenIntegrals, tolerance: float, limit_bytes: int) -> Cholesky | Signed:
    """Rows of three-index integrals from given ones, which reproduce each integral within a tolerance (Hartree).
    Collective.

    Raises OutcoreError: as Cholesky."""
    if _is_positive(world, given):
        found: Cholesky | Signed = Cholesky(world, given, tolerance, limit_bytes)
    else:
        found = Signed(world, given, tolerance, limit_bytes)
    found.settings |= given.settings
    found.title += " of given integrals"
    return found


def _matrix(given: GivenIntegrals) -> tuple[Values, Values]:
    """Products that have an integral other than 0, and the matrix of their integrals."""
    i, j = np.tril_indices(given.functions)
    some = (k for k in range(len(i)) if k == 0 or given.rows(i[k : k + 1], j[k : k + 1]).any())
    kept = np.array(list(some), int)
    return kept, given.rows(i[kept], j[kept], kept)


def _is_positive(world: World, given: GivenIntegrals) -> bool:
    """Whether the matrix of integrals has no negative eigenvalues except by rounding, as for a repulsion."""
    found = False
    with world.together(_TAKE):
        if world.rank == 0:
            _, matrix = _matrix(given)
            size = float(abs(matrix).max(initial=0.0))
            with suppress(np.linalg.LinAlgError):
                np.linalg.cholesky(matrix + _ZERO * size * np.eye(len(matrix)))
                found = len(matrix) > 0
    return bool(world.broadcast(found))


class Signed:
    """Vectors for integrals of any sign, say of an attraction: (mn|ls) = sum_Q s_Q B[Q,mn] B[Q,ls]. They come from
    eigenvectors of the matrix of integrals. The constructor is collective.

    signs: s_Q, 1 or -1, those with 1 first."""

    def __init__(self, world: World, given: GivenIntegrals, tolerance: float, limit_bytes: int) -> None:
        found: Any = None
        with world.together("decompose integrals", tolerance):
            if world.rank == 0:
                kept, matrix = _matrix(given)
                if 3 * matrix.nbytes > limit_bytes:
                    raise OutcoreError(
                        errno.ENOMEM,
                        "decompose integrals",
                        detail=f"integrals that are not positive take {3 * matrix.nbytes / 1e6:.0f} MB, "
                        f"{max(0, limit_bytes) / 1e6:.0f} MB are left",
                    )
                values, eigenvectors = np.linalg.eigh(matrix)
                large = np.flatnonzero(abs(values) > tolerance / 10)
                if not len(large):  # there is no interaction
                    large = np.arange(min(1, len(values)))
                large = large[np.argsort(values[large] < 0, kind="stable")]
                rows = eigenvectors[:, large].T * np.sqrt(abs(values[large]))[:, None]
                signs = np.where(values[large] < 0, -1.0, 1.0)
                found = kept, np.ascontiguousarray(rows), signs
        self._kept, self._rows, self.signs = world.broadcast(found)
        self._functions = given.functions
        self.rank = len(self._rows)
        self.cuts = (*range(0, self.rank, _PIECE), self.rank)
        self.settings: dict[str, Any] = {"Cholesky tolerance": tolerance}
        negative = int(np.count_nonzero(self.signs < 0))
        self.title = f"{self.rank} eigenvectors, {negative} of them of negative eigenvalues,"

    def matrices(self, piece: int) -> Values:
        rows = self._rows[self.cuts[piece] : self.cuts[piece + 1]]
        n = self._functions
        packed = np.zeros((len(rows), n * (n + 1) // 2))
        packed[:, self._kept] = rows
        result = np.empty((len(rows), n, n))
        i, j = np.tril_indices(n)
        result[:, i, j] = result[:, j, i] = packed
        return result

    def fit(self, block: Values) -> Values:
        return block


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _TAKE, detail=detail)
