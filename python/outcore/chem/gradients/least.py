"""Least memory of gradients in each process, known before anything is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore.chem.gradients import exact, fitted, one_electron
from outcore.chem.ri import pairs
from outcore.chem.ri.plan import TransformSizes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

RESPONSE_BYTES = 28 << 20  # caches of three-index densities on disk, and densities, while J and K are made
_DOUBLE = 8


def of_exact(mol: Mole, spins: int, threads: int, *, changed: bool = False) -> int:
    """Bytes of Coulomb and exchange with exact integrals, and of one-electron terms, beside the memory of the SCF.
    changed: a method after the SCF corrects its density."""
    return max(exact.least_bytes(mol, spins, threads, changed=changed), _one_electron(mol))


def of_fitted(
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
    """As `of_exact`, with fitted integrals."""
    n, columns = int(mol.nao), pairs.columns_of(mol, auxmol, screening, threads)
    occupied = tuple(max(int(each), 1) for each in mol.nelec[:spins])
    space = (n,) * spins if changed else occupied
    transformed = TransformSizes(n, columns, int(auxmol.nao), occupied, space)
    sizes = fitted.FittedSizes(transformed, int(pairs.shell_sizes(auxmol).max()))
    alone = max(sizes.least_bytes(world.size, threads, storage), _one_electron(mol))
    return 2 * alone + RESPONSE_BYTES if changed else alone


def _one_electron(mol: Mole) -> int:
    return one_electron.MATRICES * int(mol.nao) ** 2 * _DOUBLE
