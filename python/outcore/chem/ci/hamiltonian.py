"""The Hamiltonian of a configuration interaction: integrals over orthonormal orbitals that are sorted by irrep."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem.symmetry import IRREPS

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_ORBITALS = 64  # bits of a string
ROUNDING = 1e-7  # Hartree: rounding error of elements, unless a caller knows better
_CREDIBLE = 1e-5  # relative to the largest element or to 1 Hartree: a larger error is a fault, not rounding
WORTH_TELLING = 1e-9  # Hartree

_SPINS = ("alpha", "beta")
_PAIRS = ("alpha-alpha", "alpha-beta", "beta-beta")
# Permutations of the axes of (pq|rs) that give an equal element, and the text for it in errors.
_PARTNERS = (((1, 0, 2, 3), "({1}{0}|{2}{3})"), ((0, 1, 3, 2), "({0}{1}|{3}{2})"))
_EXCHANGED = ((2, 3, 0, 1), "({2}{3}|{0}{1})")


@dataclass(frozen=True, eq=False)
class Hamiltonian:
    """H = core_energy + sum_pq one_pq E_pq + 1/2 sum_pqrs (pq|rs) (E_pq E_rs - d_qr E_ps), in Hartree.

    Attributes:
        one: (n, n); if orbitals differ in spin, a pair for (alpha, beta).
        two: (n, n, n, n), chemists' order (pq|rs); if orbitals differ in spin, three arrays for (alpha-alpha,
            alpha-beta, beta-beta). In alpha-beta p and q are of spin alpha, r and s of spin beta.
        irreps: of each orbital, ascending; the irrep of a product is the exclusive-or of its factors.
        groups: number of irreps: 1, 2, 4 or 8.
        group: name of the point group, "" if it is not known.
        names: of the irreps.
        permutation: orbital k here is orbital permutation[k] of the caller.
        averaged: the largest change of one-electron and of two-electron elements when they were made symmetric.
    """

    one: Matrix | tuple[Matrix, Matrix]
    two: Matrix | tuple[Matrix, Matrix, Matrix]
    core_energy: float
    irreps: Integers
    groups: int
    group: str
    names: tuple[str, ...]
    permutation: Integers
    averaged: tuple[float, float] = (0.0, 0.0)

    @property
    def orbitals(self) -> int:
        return len(self.irreps)

    @property
    def unrestricted(self) -> bool:
        """Whether orbitals differ in spin."""
        return isinstance(self.one, tuple)

    @property
    def ones(self) -> tuple[Matrix, Matrix]:
        """One-electron integrals of both spins."""
        return self.one if isinstance(self.one, tuple) else (self.one, self.one)

    @property
    def twos(self) -> tuple[Matrix, Matrix, Matrix]:
        """Two-electron integrals of alpha-alpha, alpha-beta, beta-beta."""
        return self.two if isinstance(self.two, tuple) else (self.two, self.two, self.two)

    @property
    def positions(self) -> Integers:
        """The position of each of the caller's orbitals: the inverse of `permutation`."""
        return np.argsort(self.permutation)

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about changes by averaging, if they are worth a line."""
        return symmetry_notes(*self.averaged)

    def irrep(self, text: str | int) -> int:
        """The number of an irrep, from its name or number. Raises OutcoreError (EINVAL)."""
        words = str(text).strip()
        wanted = words.casefold().replace("''", '"')
        for number, name in enumerate(self.names):
            if name.casefold() == wanted:
                return number
        where = f"the point group {self.group}" if self.group else "the point group of the orbitals"
        raise OutcoreError(
            errno.EINVAL, f"irrep {words}", detail=f"{where} has the irreps {', '.join(self.names)}"
        )


def symmetry_notes(one: float, two: float) -> tuple[str, ...]:
    """Lines for people, about the largest changes of integrals that were made symmetric."""
    return tuple(
        f"{kind} integrals were made symmetric: the largest change is {change:.1e} Eh"
        for kind, change in (("one-electron", one), ("two-electron", two))
        if change > WORTH_TELLING
    )


def make(
    one: Any,
    two: Any,
    *,
    core_energy: float = 0.0,
    irreps: Sequence[int] | Integers | None = None,
    group: str = "",
    names: Sequence[str] = (),
    rounding: tuple[float, float] | None = (ROUNDING, ROUNDING),
) -> Hamiltonian:
    """Makes a Hamiltonian of orbitals in any order.

    one, two: as in Hamiltonian, in the caller's order. `two` may have the 4-fold or 8-fold packing of PySCF.
    irreps: of each orbital, None: no symmetry. group: the group of the irreps, in Cotton's order; "": not known,
    and then `names` may be given. rounding: largest error of one-electron and of two-electron elements. Elements
    that symmetry makes equal become their mean, elements that it forbids become zero, if they differ by no more.
    None: the error is not known; as much as is credible is accepted.

    Raises OutcoreError (EINVAL) for integrals that are complex, not finite or not symmetric, or that the irreps
    forbid, and for more orbitals than MAX_ORBITALS.
    """
    ones = [_matrix(each, _of(_SPINS, k, one)) for k, each in enumerate(_parts(one, 2))]
    n = len(ones[0])
    if not 1 <= n <= MAX_ORBITALS:
        raise _refused(f"{n} orbitals; there may be 1 to {MAX_ORBITALS}")
    twos = [_tensor(each, n, _of(_PAIRS, k, two)) for k, each in enumerate(_parts(two, 3))]
    if len(ones[-1]) != n or (len(ones) == 1) != (len(twos) == 1):
        raise _refused("one-electron and two-electron integrals are not of the same orbitals")
    if not np.isfinite(core_energy):
        raise _refused(f"a core energy of {core_energy}")
    labels = np.zeros(n, np.int64) if irreps is None else np.asarray(irreps, np.int64)
    all_names = _names(group if irreps is not None else "C1", names, labels)
    if len(labels) != n or labels.min() < 0 or labels.max() >= len(all_names):
        raise _refused(f"irreps {labels.tolist()} of {n} orbitals; they are 0 to {len(all_names) - 1}")
    one_rounding, two_rounding = (np.inf, np.inf) if rounding is None else rounding
    changes: tuple[list[float], list[float]] = [], []
    for k, each in enumerate(ones):
        limit = credible(one_rounding, each)
        changes[0].append(_symmetrise_one(each, limit, _of(_SPINS, k, one)))
        changes[0].append(_clear_one(each, limit, labels, all_names, _of(_SPINS, k, one)))
    for k, each in enumerate(twos):
        limit, exchange = credible(two_rounding, each), len(twos) == 1 or k != 1
        changes[1].append(_symmetrise_two(each, limit, _of(_PAIRS, k, two), exchange=exchange))
        changes[1].append(_clear_two(each, limit, labels, all_names, _of(_PAIRS, k, two)))
    order = np.argsort(labels, kind="stable")
    ones = [_frozen(each[np.ix_(order, order)]) for each in ones]
    twos = [_frozen(each[np.ix_(order, order, order, order)]) for each in twos]
    return Hamiltonian(
        ones[0] if len(ones) == 1 else (ones[0], ones[1]),
        twos[0] if len(twos) == 1 else (twos[0], twos[1], twos[2]),
        float(core_energy),
        _frozen(labels[order]),
        len(all_names),
        group if irreps is not None else "C1",
        all_names,
        _frozen(order),
        (max(changes[0]), max(changes[1])),
    )


def credible(rounding: float, values: Matrix) -> float:
    """The rounding error, limited to the most that integrals of these values may have (Hartree)."""
    if rounding <= _CREDIBLE:
        return rounding
    return float(min(rounding, _CREDIBLE * max(1.0, np.max(np.abs(values), initial=0.0))))


def _names(group: str, names: Sequence[str], labels: Integers) -> tuple[str, ...]:
    if names:
        if len(names) not in (1, 2, 4, 8):
            raise _refused(f"{len(names)} irreps: an abelian point group has 1, 2, 4 or 8")
        return tuple(names)
    if group:
        if group not in IRREPS:
            raise _refused(f"point group {group}; it may be {', '.join(IRREPS)}")
        return IRREPS[group]
    groups = 1
    while groups <= min(int(labels.max()), 7):
        groups *= 2
    return tuple(str(number + 1) for number in range(groups))


def _parts(values: Any, count: int) -> list[Any]:
    """A list of one array for both spins, or of `count` arrays."""
    if not _is_several(values):
        return [values]
    if len(values) != count:
        raise _refused(f"{len(values)} arrays of integrals in place of 1 or {count}")
    return list(values)


def _is_several(values: Any) -> bool:
    return isinstance(values, (list, tuple)) or getattr(values, "ndim", 0) in (3, 5)


def _of(kinds: tuple[str, ...], number: int, values: Any) -> str:
    """The name of a part for an error; "" if there is only one."""
    return f"{kinds[number]} " if _is_several(values) else ""


def _real(values: Any, kind: str) -> Matrix:
    array = np.array(values)  # a copy: it is changed below
    if np.iscomplexobj(array):
        if abs(array.imag).max(initial=0.0) > ROUNDING:
            raise _refused(f"the {kind}integrals are complex; take real orbitals")
        array = array.real
    array = np.array(array, np.float64)
    if not np.isfinite(array).all():
        first = tuple(int(each) + 1 for each in np.argwhere(~np.isfinite(array))[0])
        raise _refused(f"the {kind}integral at {first}, counted from 1, is {array[~np.isfinite(array)][0]}")
    return array


def _matrix(values: Any, kind: str) -> Matrix:
    array = _real(values, f"{kind}one-electron ")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise _refused(f"{kind}one-electron integrals of shape {array.shape} are no square matrix")
    return array


def _tensor(values: Any, n: int, kind: str) -> Matrix:
    array = _real(values, f"{kind}two-electron ")
    pairs = n * (n + 1) // 2
    if array.shape in ((pairs, pairs), (pairs * (pairs + 1) // 2,)):
        from pyscf import ao2mo

        return np.array(ao2mo.restore(1, array, n), np.float64)
    if array.size == n**4 and array.ndim in (1, 2, 4):
        return array.reshape((n,) * 4)
    raise _refused(f"{kind}two-electron integrals of shape {array.shape} for {n} orbitals")


def unpacked(pairs: Matrix, n: int) -> Matrix:
    """V[pq, rs] of pairs p >= q, r >= s as four indices; the pairs may be of different orbitals."""
    p, q = np.tril_indices(n)
    number = np.empty((n, n), np.int64)
    number[p, q] = number[q, p] = np.arange(len(p))
    return np.asarray(pairs[number[:, :, None, None], number])


def _symmetrise_one(one: Matrix, limit: float, kind: str) -> float:
    """Averages elements that symmetry makes equal. Returns the largest change."""
    difference = abs(one - one.T)
    if difference.max() > limit:
        p, q = (int(each) for each in np.unravel_index(difference.argmax(), one.shape))
        raise _refused(
            f"the {kind}one-electron integrals are not symmetric: ({p + 1}|{q + 1}) is {one[p, q]:.10g}, "
            f"({q + 1}|{p + 1}) is {one[q, p]:.10g}"
        )
    one[:] = (one + one.T) / 2
    return float(difference.max()) / 2


def _symmetrise_two(two: Matrix, limit: float, kind: str, *, exchange: bool) -> float:
    """Averages elements that symmetry makes equal. Returns the largest change."""
    change = 0.0
    for axes, partner in (*_PARTNERS, *((_EXCHANGED,) if exchange else ())):
        other = two.transpose(axes)
        difference = abs(two - other)
        largest = float(difference.max())
        if largest > limit:
            where = tuple(int(each) for each in np.unravel_index(difference.argmax(), two.shape))
            pqrs = [f"{each + 1} " for each in where]
            told = [
                text.format(*pqrs).replace(" |", "|").replace(" )", ")")
                for text in ("({0}{1}|{2}{3})", partner)
            ]
            raise _refused(
                f"the {kind}two-electron integrals are not symmetric: {told[0]} is {two[where]:.10g}, "
                f"{told[1]} is {other[where]:.10g}"
            )
        two[:] = (two + other) / 2
        change += largest / 2
    return change


def _clear_one(one: Matrix, limit: float, irreps: Integers, names: Sequence[str], kind: str) -> float:
    """Sets elements that the irreps forbid to zero. Returns the largest change."""
    return _clear(one, irreps[:, None] != irreps, limit, irreps, names, kind)


def _clear_two(two: Matrix, limit: float, irreps: Integers, names: Sequence[str], kind: str) -> float:
    """Sets elements that the irreps forbid to zero. Returns the largest change."""
    pairs = irreps[:, None] ^ irreps
    return _clear(two, pairs[:, :, None, None] != pairs, limit, irreps, names, kind)


def _clear(
    array: Matrix, forbidden: Any, limit: float, irreps: Integers, names: Sequence[str], kind: str
) -> float:
    where = np.unravel_index((abs(array) * forbidden).argmax(), array.shape)
    largest = float(abs(array[where])) if forbidden[where] else 0.0
    if largest > limit:
        raise _refused(
            f"the {kind}integral {_told(where, irreps, names)} is {array[where]:.3e}, but symmetry forbids it"
        )
    array[forbidden] = 0.0
    return largest


def _told(where: Any, irreps: Integers, names: Sequence[str]) -> str:
    numbers = [int(each) for each in where]
    half = len(numbers) // 2
    labels = [names[irreps[each]] for each in numbers]
    texts = [str(each + 1) for each in numbers]
    return f"({' '.join(texts[:half])}|{' '.join(texts[half:])}) of orbitals in {', '.join(labels)}"


def _frozen(array: Any) -> Any:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "take the integrals of a CI", detail=detail)
