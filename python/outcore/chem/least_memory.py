"""The memory (bytes) of each process in stages of commands, known before anything is computed: an SCF, RI-MP2, a
decomposition. It is arithmetic over sizes, by the plans that each stage makes again when it begins.
`gradients.least` and `cc.least` have the same for their stages. Modules of gradients are imported where they are
needed: they load much of PySCF."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem import molecule
from outcore.chem.frozen import counts
from outcore.chem.hf.integrals import work_bytes
from outcore.chem.hf.settings import Settings
from outcore.chem.ri import cholesky, pairs, plan
from outcore.chem.ri.symmetry import FittingSymmetry, sizes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.frozen import Frozen
    from outcore.job.world import World

_KEPT_MATRICES = 16  # matrices of n*n doubles that an SCF leaves in memory for later stages
_DOUBLE = 8


def left_by_scf(mol: Mole) -> int:
    """Memory that the object of a finished SCF holds."""
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
    group: str | None = None,
) -> int:
    """Memory of an SCF with fitted integrals. held_bytes: memory of each process outside all stages. group: the
    point group whose symmetry the integrals have; see DensityFitting. Collective."""
    symmetry = FittingSymmetry.find(world, mol, auxmol, group)
    found = sizes(
        symmetry,
        np.array(pairs.native(symmetry.mol, symmetry.auxmol).bounds(threads)),
        screening=screening,
        orbitals=max(*mol.nelec, 1),
        spins=spins,
    )
    least = partial(plan.min_for_integrals, found, world.size, threads, storage)
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
    occupied, virtual = counts(mol, frozen, spins)
    if not any(o and v for o, v in zip(occupied, virtual, strict=True)):
        return 0
    columns = pairs.columns_of(mol, auxmol, screening, threads)
    sizes = plan.TransformSizes(int(mol.nao), columns, int(auxmol.nao), occupied, virtual)
    return plan.min_for_transform(sizes, world.size, threads, storage)


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
    """Memory for unrelaxed densities, and for the passes with the three-index density."""
    from outcore.chem.gradients import correlation
    from outcore.chem.gradients.least import RESPONSE_BYTES
    from outcore.chem.mp2 import gradient as mp2_gradient

    occupied, virtual = counts(mol, frozen, spins)
    shapes = [(o, v) for o, v in zip(occupied, virtual, strict=True) if o and v]
    if not shapes:
        return 0
    columns = pairs.columns_of(mol, auxmol, screening, threads)
    sizes = plan.TransformSizes(int(mol.nao), columns, int(auxmol.nao), occupied, virtual)
    largest = int(pairs.shell_sizes(auxmol).max())
    metric = 2 * int(auxmol.nao) ** 2 * _DOUBLE
    slabs = correlation.slab_bytes(int(mol.nao), columns, shapes, largest) + RESPONSE_BYTES + metric
    return max(mp2_gradient.least_bytes(sizes, world.size, threads, storage), slabs)


def decomposition(mol: Mole, rank: int) -> int:
    """Memory for a Cholesky decomposition with `rank` vectors."""
    largest = int(pairs.shell_sizes(mol).max()) ** 2
    return max(cholesky.search_bytes(int(mol.nao), largest), cholesky.factor_bytes(rank))


def factor_bytes(rank: int) -> int:
    """Memory for the factor of a decomposition, while an SCF runs."""
    return rank * rank * _DOUBLE
