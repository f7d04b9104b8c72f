"""The least memory of a command, known before anything is computed: what its stages, one after another, take of
each process. Pure arithmetic over sizes, of plans that each stage makes again when it begins."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import molecule
from outcore.chem.cc import plan as cc_plan
from outcore.chem.hf.integrals import work_bytes
from outcore.chem.hf.settings import Settings
from outcore.chem.ri import cholesky, pairs, plan, source

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.frozen import Frozen
    from outcore.job.resources import Allowance
    from outcore.job.world import World

_KEPT_MATRICES = 16  # of n*n doubles, which an SCF leaves to the stages after it
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

    def check(self, share: Allowance) -> None:
        """Raises OutcoreError (ENOMEM) if `share`, of each process, is less."""
        if share.bytes >= self._each:
            return
        stage = max(self.stages, key=lambda name: self.stages[name])
        of = "" if self.processes == 1 else f" for {self.processes} processes together"
        raise OutcoreError(
            errno.ENOMEM,
            stage,
            detail=f"--memory {self.bytes // _MB}MB is the least that is enough{of}, but {share.reason} gives "
            f"{in_words(share.bytes * self.processes)}",
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
    least = partial(plan.least_for_integrals, sizes, world.size, threads, storage)
    transfer = plan.most_transfer_bytes(held_bytes + least(transfer_bytes=0))
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
    return plan.least_for_transform(sizes, world.size, threads, storage)


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
) -> int:
    """Of `rank` three-index functions, with the factor of their metric. cuts: boundaries of those that are made
    together. vectors: of the extrapolation."""
    occupied, virtual = correlated(mol, frozen, spins)
    every = list(zip(occupied, virtual, strict=True))
    if not any(o and v for o, v in every):
        return 0
    # A spin that nothing is correlated of has one orbital of each kind, of zeros.
    shapes = [(o, v) if o and v else (1, 1) for o, v in every]
    sizes = cc_plan.Sizes(
        int(mol.nao),
        rank,
        tuple(o for o, _ in shapes),
        tuple(v for _, v in shapes),
        vectors,
        tuple(cuts),
        method,
    )
    metric = rank * rank * _DOUBLE
    return metric + max(metric + plan.blas_bytes(threads), cc_plan.least_bytes(sizes, threads))


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
