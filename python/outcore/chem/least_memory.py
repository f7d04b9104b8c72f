"""The least memory of a command, known before anything is computed: what its stages, one after another, take of
each process. Pure arithmetic over sizes, of plans that each stage makes anew when it begins. Modules of gradients
and of coupled cluster are imported where they are needed: they load much of PySCF, and extended arrays."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import molecule
from outcore.chem.hf.integrals import work_bytes
from outcore.chem.hf.settings import Settings
from outcore.chem.ri import cholesky, pairs, plan, source

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.frozen import Frozen
    from outcore.job.resources import Allowance
    from outcore.job.world import World

_MIB = 1 << 20
# What a process of a command holds beside what its stages plan, by the integrals that it has: the interpreter, the
# libraries that are loaded, what heaps keep in pieces. More than was seen, so that runs of the same input need the
# same memory, and so that the least memory is enough on machines whose libraries take more.
FITTED_BYTES = 136 * _MIB
STORED_BYTES = 136 * _MIB
DECOMPOSED_BYTES = 150 * _MIB
OPTIMISER_BYTES = (
    32 * _MIB
)  # more, of geomeTRIC with the libraries that it loads, and of steps before the present one

_KEPT_MATRICES = 16  # of n*n doubles, which an SCF leaves to the stages after it
RESPONSE_BYTES = 28 << 20  # caches of three-index densities on disk, and densities, while J and K are made
_DOUBLE = 8
_MB = 10**6


@dataclass(frozen=True)
class Least:
    """held_bytes: of each process, whatever the stage. stages: what each takes more, of each process, by name."""

    processes: int
    held_bytes: int
    stages: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """Of all processes together, in whole megabytes."""
        return -(-self._each * self.processes // _MB) * _MB

    @property
    def _each(self) -> int:
        return self.held_bytes + max(self.stages.values())

    def fits(self, share: Allowance) -> bool:
        return share.bytes >= self._each

    def check(self, share: Allowance, *, bound: bool = False) -> None:
        """bound: the stages take more than is known yet. Raises OutcoreError (ENOMEM) if `share`, of each process,
        is less."""
        if self.fits(share):
            return
        stage = max(self.stages, key=lambda name: self.stages[name])
        of = "" if self.processes == 1 else f" for {self.processes} processes together"
        needed = f"--memory {self.bytes // _MB}MB is the least that is enough{of}"
        if bound:
            needed = f"more than {self.bytes // _MB}MB are needed{of}; --estimate computes how much"
        raise OutcoreError(
            errno.ENOMEM,
            stage,
            detail=f"{needed}, but {share.reason} gives {in_words(share.bytes * self.processes)}",
        )


def left_by_scf(mol: Mole) -> int:
    """What the object of an SCF holds."""
    return _KEPT_MATRICES * int(mol.nao) ** 2 * _DOUBLE


def stored_scf(mol: Mole, settings: Settings, threads: int) -> int:
    return work_bytes(molecule.native_basis(mol), settings, threads)


def fitted_scf(
    world: World,
    mol: Mole,
    auxmol: Mole,
    *,
    spins: int,
    screening: float,
    threads: int,
    storage: str,
    held_bytes: int,
) -> int:
    """held_bytes: of each process, beside all stages."""
    sizes = plan.IntegralSizes(
        int(mol.nao),
        int(auxmol.nao),
        _columns(mol, auxmol, screening, threads),
        max(*mol.nelec, 1),
        int(pairs.shell_sizes(mol).max()) ** 2,
        spins,
    )
    least = partial(plan.min_for_integrals, sizes, world.size, threads, storage)
    transfer = plan.max_transfer_bytes(held_bytes + least(transfer_bytes=0))
    return least(transfer_bytes=transfer)


def mp2(
    world: World,
    mol: Mole,
    auxmol: Mole,
    frozen: Frozen,
    *,
    spins: int,
    screening: float,
    threads: int,
    storage: str,
) -> int:
    occupied, virtual = correlated(mol, frozen, spins)
    if not any(o and v for o, v in zip(occupied, virtual, strict=True)):
        return 0
    columns = _columns(mol, auxmol, screening, threads)
    sizes = plan.TransformSizes(int(mol.nao), columns, int(auxmol.nao), occupied, virtual)
    return plan.min_for_transform(sizes, world.size, threads, storage)


def gradient_of_exact(mol: Mole, spins: int, threads: int) -> int:
    """Of an SCF with exact integrals, beside what that holds."""
    from outcore.chem.gradients import exact

    return max(exact.least_bytes(mol, spins, threads, changed=False), _one_electron(mol))


def gradient_of_fitted(
    world: World,
    mol: Mole,
    auxmol: Mole,
    *,
    spins: int,
    screening: float,
    threads: int,
    storage: str,
    changed: bool,
) -> int:
    """Of Coulomb and exchange with fitted integrals, and one-electron terms. changed: a method after the SCF adds
    to its density."""
    from outcore.chem.gradients import fitted

    n, columns = int(mol.nao), _columns(mol, auxmol, screening, threads)
    occupied = tuple(max(int(each), 1) for each in mol.nelec[:spins])
    space = (n,) * spins if changed else occupied
    transformed = plan.TransformSizes(n, columns, int(auxmol.nao), occupied, space)
    sizes = fitted.FittedSizes(transformed, int(pairs.shell_sizes(auxmol).max()))
    alone = max(sizes.least_bytes(world.size, threads, storage), _one_electron(mol))
    return 2 * alone + RESPONSE_BYTES if changed else alone


def densities_of_mp2(
    world: World,
    mol: Mole,
    auxmol: Mole,
    frozen: Frozen,
    *,
    spins: int,
    screening: float,
    threads: int,
    storage: str,
) -> int:
    """Of unrelaxed densities, and of the passes with the three-index density."""
    from outcore.chem.gradients import correlation
    from outcore.chem.mp2 import gradient as mp2_gradient

    occupied, virtual = correlated(mol, frozen, spins)
    shapes = [(o, v) for o, v in zip(occupied, virtual, strict=True) if o and v]
    if not shapes:
        return 0
    columns = _columns(mol, auxmol, screening, threads)
    sizes = plan.TransformSizes(int(mol.nao), columns, int(auxmol.nao), occupied, virtual)
    largest = int(pairs.shell_sizes(auxmol).max())
    metric = 2 * int(auxmol.nao) ** 2 * _DOUBLE
    slabs = correlation.slab_bytes(int(mol.nao), columns, shapes, largest) + RESPONSE_BYTES + metric
    return max(mp2_gradient.least_bytes(sizes, world.size, threads, storage), slabs)


def _one_electron(mol: Mole) -> int:
    from outcore.chem.gradients import one_electron

    return one_electron.MATRICES * int(mol.nao) ** 2 * _DOUBLE


def coupled_cluster(
    mol: Mole,
    frozen: Frozen,
    *,
    spins: int,
    rank: int,
    cuts: Sequence[int],
    vectors: int,
    threads: int,
    method: str,
    what: Describe | None = None,
) -> int:
    """Of `rank` three-index functions, with the factor of their metric. cuts: boundaries of those that are made
    together. vectors: of the extrapolation. what: None: iterations; or of `describe`."""
    from outcore.chem.cc.plan import describe
    from outcore.chem.cc.plan import plan as cc_plan
    from outcore.chem.cc.plan.sizes import Sizes

    occupied, virtual = correlated(mol, frozen, spins)
    every = list(zip(occupied, virtual, strict=True))
    if not any(o and v for o, v in every):
        return 0
    # A spin that nothing is correlated of has one orbital of each kind, of zeros.
    shapes = [(o, v) if o and v else (1, 1) for o, v in every]
    sizes = Sizes(
        int(mol.nao),
        rank,
        tuple(o for o, _ in shapes),
        tuple(v for _, v in shapes),
        vectors,
        tuple(cuts),
        method,
    )
    metric = rank * rank * _DOUBLE
    return metric + max(
        metric + plan.blas_bytes(threads),
        cc_plan.least_bytes(sizes, threads, what=what or describe.iterations),
    )


def response_of_coupled_cluster(
    world: World,
    mol: Mole,
    frozen: Frozen,
    auxmol: Mole,
    *,
    spins: int,
    rank: int,
    cuts: Sequence[int],
    vectors: int,
    screening: float,
    threads: int,
    storage: str,
    triples: bool,
) -> int:
    """Of multipliers and relaxed densities of CCSD, with `triples` of CCSD(T), and of its passes with three-index
    densities."""
    from outcore.chem.cc.plan import describe
    from outcore.chem.gradients import correlation

    given: Any = {"spins": spins, "rank": rank, "cuts": cuts, "vectors": vectors, "threads": threads}
    parts = (describe.triple_derivatives, describe.response_of_triples) if triples else (describe.response,)
    equations = max(coupled_cluster(mol, frozen, **given, method="ccsd", what=what) for what in parts)
    every = list(zip(*correlated(mol, frozen, spins), strict=True))
    if not any(o and v for o, v in every):
        return 0
    columns, n = _columns(mol, auxmol, screening, threads), int(mol.nao)
    shapes = [(o + v,) * 2 if o and v else (2, 2) for o, v in every]
    largest = int(pairs.shell_sizes(auxmol).max())
    metric = 2 * rank * rank * _DOUBLE
    slabs = correlation.slab_bytes(n, columns, shapes, largest) + RESPONSE_BYTES + metric
    sizes = plan.TransformSizes(n, columns, rank, *zip(*shapes, strict=True))
    transformed = plan.min_for_transform(sizes, world.size, threads, "disk") + metric
    return max(equations, int(slabs), int(transformed))


def decomposition(mol: Mole, rank: int) -> int:
    """Of a Cholesky decomposition of so many vectors."""
    largest = int(pairs.shell_sizes(mol).max()) ** 2
    return max(cholesky.search_bytes(int(mol.nao), largest), cholesky.factor_bytes(rank))


def factor_bytes(rank: int) -> int:
    """Of the factor of a decomposition, while an SCF goes on."""
    return rank * rank * _DOUBLE


def auxiliary_cuts(auxmol: Mole) -> tuple[int, ...]:
    """Boundaries of the auxiliary functions that coupled cluster makes integrals of together."""
    return source.cuts_of(auxmol)


def correlated(mol: Mole, frozen: Frozen, spins: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Occupied and virtual orbitals of each spin, or of both of closed shells, if no functions depend on others."""
    numbers = np.arange(int(mol.nao))
    each = [frozen.active(spin, numbers, int(mol.nelec[spin])) for spin in range(spins)]
    return tuple(len(inside) for inside, _ in each), tuple(len(outside) for _, outside in each)


def _columns(mol: Mole, auxmol: Mole, screening: float, threads: int) -> int:
    """Products of functions in a row of three-index integrals."""
    bounds = np.array(pairs.native(mol, auxmol).bounds(threads))
    return pairs.kept_columns(bounds, pairs.shell_sizes(mol), screening)
