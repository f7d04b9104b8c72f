"""Coulomb and exchange of a mean-field object: exact, or fitted with its auxiliary functions."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, NamedTuple

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.gradients.exact import exact, least_bytes
from outcore.chem.gradients.fitted import FittedSizes, fitted, plan
from outcore.chem.ri.fitting import SCREENING, DensityFitting
from outcore.chem.ri.rows import FittedRows
from outcore.job.processes import free_memory

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Densities, Matrix
    from outcore.chem.gradients.three_index import SlabKeeper
    from outcore.chem.method import Means
    from outcore.parallel.tasks import Progress


class EnergyDerivatives(NamedTuple):
    """matrix: [atom][x] (Hartree/Bohr). least_moved: bytes that all processes together had to move to and from
    disk for it."""

    matrix: Matrix
    least_moved: float


def two_electron(
    mf: Any,
    means: Means,
    densities: Densities,
    progress: Progress | None = None,
    keeper: SlabKeeper | None = None,
) -> EnergyDerivatives:
    """Derivatives of this process's share, with the integrals of the SCF of `mf`. keeper: keeps the results of
    slabs of fitted integrals; those of exact ones are recomputed. Collective.
    Raises OutcoreError: ENOMEM, ENOTSUP (integrals without derivatives)."""
    world, mol = means.world, mf.mol
    fitting = vars(mf).get("with_df")
    if fitting is not None:
        rows = FittedRows(
            world,
            mol,
            auxbasis_of(fitting),
            means.threads,
            getattr(fitting, "screening", SCREENING),
            "jk",
        )
        sizes = FittedSizes.of(
            rows, [(each.occupied.shape[1], each.space.shape[1]) for each in densities.spins]
        )
        storage = getattr(fitting, "storage", "auto")
        least = sizes.least_bytes(world.size, means.threads, storage)
        free = _free(mf, means, least)
        with world.together("gradient"):
            chosen = plan(sizes, free.bytes, world.size, means.threads, storage, limit=free.reason)
        found = fitted(world, mol, rows, densities, chosen, means.threads, progress, keeper)
        return EnergyDerivatives(found, chosen.least_moved)
    changed = any(each.change is not None for each in densities.spins)
    least = least_bytes(mol, len(densities.spins), means.threads, changed=changed)
    free = _free(mf, means, least)
    with world.together("gradient"):
        if free.bytes < least:
            raise OutcoreError(
                errno.ENOMEM,
                "gradient",
                detail=f"{mol.nao} functions need at least {in_words(least)} more in each of {world.size} "
                f"processes, but {free.reason} leaves {in_words(free.bytes)} to each",
            )
    return EnergyDerivatives(exact(world, mol, densities, means.threads, free.bytes, progress), 0.0)


def auxbasis_of(fitting: Any) -> Any:
    """The auxiliary basis of an SCF: as it was given to objects of Outcore; the functions themselves of PySCF's."""
    return fitting.given_auxbasis if isinstance(fitting, DensityFitting) else fitting.auxbasis


def least_of_jk(mf: Any) -> float:
    """Bytes that all processes together had to move to and from disk so far for J and K of a mean field with fitted
    integrals; of exact ones 0, as no bound is known for the records that these need."""
    fitting = vars(mf).get("with_df")
    return fitting.least_bytes if isinstance(fitting, DensityFitting) else 0.0


def _free(mf: Any, means: Means, least: int) -> Any:
    """The free memory of each process. If it is little, integrals of the SCF are given back; they are recomputed
    when they are needed. Collective."""
    world = means.world
    free = min(world.gather(free_memory(world, means.memory_bytes, means.threads)))
    fitting = vars(mf).get("with_df")
    if free.bytes < 2 * least and isinstance(fitting, DensityFitting):
        fitting.close_integrals()
        free = min(world.gather(free_memory(world, means.memory_bytes, means.threads)))
    return free
