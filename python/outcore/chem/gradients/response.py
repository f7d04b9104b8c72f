"""Orbital response: from densities of fixed orbitals to relaxed ones.

W[r,p] = dL/dU[r,p], where coefficients change by C U. Once the density contains the multipliers z of all orbital
equations, W is symmetric. It then stands for the derivatives of all orbitals: derivatives of the overlap count with
it.
Rotations of frozen with correlated orbitals are fixed by their Fock matrix, those of occupied with virtual ones by
the SCF (Z-vector; Handy, Schaefer, J. Chem. Phys. 81, 5031 (1984)).
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import linalg as sparse

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.driver import RootDriven
from outcore.chem.gradients.densities import Densities, DensityOfSpin

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix
    from outcore.job.world import World

_GAP = 1e-5  # least gap between a frozen and a correlated orbital (Hartree)
_PRODUCTS = 100  # most products of the Z-vector equations
TOLERANCE = 1e-10  # of the Z-vector equations (Hartree)


@dataclass(frozen=True)
class Unrelaxed:
    """Densities before relaxation, of one spin, or of one of two equal ones; canonical orbitals, occupied ones
    first.

    coefficients: [n][N]. energies: [N] (Hartree). occupied: how many. correlated: which are, [N].
    density: [N][N], of correlated orbitals, symmetric. integrals: [N][N], the terms of integrals in W."""

    coefficients: Matrix
    energies: Matrix
    occupied: int
    correlated: Any
    density: Matrix
    integrals: Matrix


@dataclass(frozen=True)
class Relaxed:
    """density, weighted: [N][N] over orbitals, symmetric; see `Unrelaxed`."""

    density: Matrix
    weighted: Matrix


class ResponseKeeper(Protocol):
    """Keeps multipliers of orbitals, from which another run goes on, at the process that solves for them."""

    def find(self, size: int) -> tuple[Matrix | None, bool]:
        """Multipliers of another run, None without any; and whether they had converged."""

    def keep(self, multipliers: Matrix, *, converged: bool = False) -> None:
        """Called after each product, and once multipliers have converged."""


def relaxed(
    world: World, mf: Any, spins: list[Unrelaxed], keeper: ResponseKeeper | None = None
) -> list[Relaxed]:
    """Relaxed densities of each spin. mf: the SCF, whose J and K are used. Collective.

    Raises OutcoreError: ENOTSUP (a frozen orbital is degenerate with a correlated one), NotConverged."""
    solve: Callable[[], Any] = _Response(mf, spins, keeper).solve
    if isinstance(mf, RootDriven):
        found = mf.at_root(solve)
    else:
        value: Any = None
        with world.together("orbital response"):
            if world.rank == 0:
                value = solve()
        found = world.broadcast(value)
    if isinstance(found, float):
        raise NotConverged(
            None,
            "orbital response",
            detail=f"the Z-vector equations have a residual of {found:.1e} Eh after {_PRODUCTS} products; is the "
            "SCF stable, and converged?",
        )
    return found  # type: ignore[no-any-return]


def with_response(
    world: World, mf: Any, spins: list[Unrelaxed], keeper: ResponseKeeper | None = None
) -> Densities:
    """Densities of the SCF and of a method after it, relaxed; see `relaxed`. Collective."""
    every = []
    weighted: Any = 0.0
    for spin, each in zip(spins, relaxed(world, mf, spins, keeper), strict=True):
        occupied = np.ascontiguousarray(spin.coefficients[:, : spin.occupied])
        every.append(DensityOfSpin(occupied, np.ascontiguousarray(spin.coefficients), each.density))
        w = each.weighted.copy()
        w[np.diag_indices(spin.occupied)] += 2 * spin.energies[: spin.occupied]
        weighted = weighted + spin.coefficients @ w @ spin.coefficients.T
    return Densities(every, (3 - len(spins)) * np.asarray(weighted))


class _Response:
    """Runs on the process that drives the SCF."""

    def __init__(self, mf: Any, spins: list[Unrelaxed], keeper: ResponseKeeper | None) -> None:
        self._mf, self._spins, self._keeper = mf, spins, keeper

    def solve(self) -> list[Relaxed] | float:
        """The relaxed densities; or the residual, if it is too large."""
        densities = [each.density.copy() for each in self._spins]
        before = self._weighted(densities)
        for number, (w, spin) in enumerate(zip(before, self._spins, strict=True)):
            densities[number] += _of_frozen(w, spin)
        before = self._weighted(densities)
        right = [_virtual_occupied(w - w.T, each) for w, each in zip(before, self._spins, strict=True)]
        gaps = [
            2 * (each.energies[each.occupied :, None] - each.energies[: each.occupied])
            for each in self._spins
        ]
        multipliers, residual = self._z_vector(right, gaps)
        if residual > 10 * TOLERANCE:
            return residual
        for density, z, spin in zip(densities, multipliers, self._spins, strict=True):
            o = spin.occupied
            density[o:, :o] += z
            density[:o, o:] += z.T
        return [
            Relaxed(density, (w + w.T) / 2)
            for density, w in zip(densities, self._weighted(densities), strict=True)
        ]

    def _weighted(self, densities: list[Matrix]) -> list[Matrix]:
        found = []
        for spin, density, response in zip(self._spins, densities, self._potentials(densities), strict=True):
            w = spin.integrals + 2 * spin.energies[:, None] * density
            w[:, : spin.occupied] += 2 * response[:, : spin.occupied]
            found.append(w)
        return found

    def _potentials(self, densities: list[Matrix]) -> list[Matrix]:
        """J of both spins less K of each spin, over orbitals, for densities over orbitals."""
        mf, spins = self._mf, self._spins
        over_functions = np.array(
            [each.coefficients @ d @ each.coefficients.T for each, d in zip(spins, densities, strict=True)]
        )
        alike = len(spins) == 1
        j, k = mf.get_jk(mf.mol, over_functions[0] if alike else over_functions, hermi=1)
        potentials = [2 * j - k] if alike else [j[0] + j[1] - each for each in k]
        return [
            each.coefficients.T @ v @ each.coefficients for each, v in zip(spins, potentials, strict=True)
        ]

    def _z_vector(self, right: list[Matrix], gaps: list[Matrix]) -> tuple[list[Matrix], float]:
        """Solves gaps z + 2 g[z] = -right for z, virtual with occupied, of each spin; also returns the residual."""
        shapes = [each.shape for each in right]
        ends = np.cumsum([each.size for each in right])

        def parts(vector: Matrix) -> list[Matrix]:
            every = np.split(vector, ends[:-1])
            return [each.reshape(shape) for each, shape in zip(every, shapes, strict=True)]

        def joined(every: list[Matrix]) -> Matrix:
            return np.concatenate([each.ravel() for each in every])

        def response(vector: Matrix) -> Matrix:
            densities = []
            for z, spin in zip(parts(vector), self._spins, strict=True):
                density, o = np.zeros((len(spin.energies),) * 2), spin.occupied
                density[o:, :o], density[:o, o:] = z, z.T
                densities.append(density)
            found = self._potentials(densities)
            return 2 * joined(
                [_virtual_occupied(g, each) for g, each in zip(found, self._spins, strict=True)]
            )

        gap, constant = joined(gaps), joined(right)
        if not constant.size or abs(constant).max() < TOLERANCE:
            return parts(np.zeros_like(constant)), 0.0
        size, keeper = constant.size, self._keeper
        begin, found = None, None
        if keeper is not None:
            begin, converged = keeper.find(size)
            found = begin if converged else None
        # Symmetric, and positive where the SCF is a minimum
        operator = sparse.LinearOperator((size, size), lambda z: gap * z + response(z), dtype=np.float64)
        gaps_alone = sparse.LinearOperator((size, size), lambda z: z / gap, dtype=np.float64)
        limits = {"rtol": 0.0, "atol": TOLERANCE, "maxiter": _PRODUCTS}

        def rest(vector: Matrix) -> float:
            return float(abs(constant + gap * vector + response(vector)).max())

        residual = math.inf if found is None else rest(found)
        if found is None or residual > 10 * TOLERANCE:
            tell = None if keeper is None else keeper.keep
            found, _ = sparse.cg(operator, -constant, begin, **limits, M=gaps_alone, callback=tell)
            residual = rest(found)
            if keeper is not None:
                keeper.keep(found, converged=residual <= 10 * TOLERANCE)
        return parts(found), residual


def _virtual_occupied(matrix: Matrix, spin: Unrelaxed) -> Matrix:
    return matrix[spin.occupied :, : spin.occupied]


def _of_frozen(w: Matrix, spin: Unrelaxed) -> Matrix:
    """Multipliers of frozen with correlated orbitals, both occupied or both virtual, [N][N]."""
    z = np.zeros_like(w)
    o = spin.occupied
    for first, last in ((0, o), (o, len(w))):
        numbers = np.arange(first, last)
        frozen, active = numbers[~spin.correlated[first:last]], numbers[spin.correlated[first:last]]
        if not (len(frozen) and len(active)):
            continue
        box = np.ix_(frozen, active)
        skew = w[box] - w[np.ix_(active, frozen)].T
        gaps = spin.energies[frozen][:, None] - spin.energies[active]
        near = abs(gaps) < _GAP
        if near.any():
            i, j = (int(each[0]) for each in np.nonzero(near))
            raise OutcoreError(
                errno.ENOTSUP,
                "orbital response",
                detail=f"frozen orbital {frozen[i] + 1} and correlated orbital {active[j] + 1} have the same "
                f"energy within {abs(gaps[i, j]):.1e} Eh: with one of them frozen the energy has no gradient; "
                "freeze both, or none",
            )
        z[box] = -skew / (2 * gaps)
    return z + z.T
