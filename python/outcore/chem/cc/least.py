"""Least memory, in each process, of coupled cluster and of the stages that may follow it, known before anything is
computed. Commands and objects share this account. It is arithmetic over sizes; each stage plans again when it
begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.chem.cc.plan import describe
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.places import METHOD
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.frozen import counts
from outcore.chem.gradients import correlation
from outcore.chem.gradients import least as of_gradients
from outcore.chem.ri import pairs, source
from outcore.chem.ri.plan import TransformSizes, blas_bytes, min_for_transform

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.frozen import Frozen
    from outcore.job.world import World

_DOUBLE = 8


@dataclass(frozen=True, kw_only=True)
class AfterIterations:
    """Stages that follow iterations. triples: they are of CCSD(T). relaxed: relaxed densities; these and the
    gradient need multipliers."""

    triples: bool = False
    multipliers: bool = False
    relaxed: bool = False
    gradient: bool = False


@dataclass(frozen=True, kw_only=True)
class FittedSets:
    """auxmol: the molecule with auxiliary functions of coupled cluster. of_scf: with those of J and K of the SCF;
    None: J and K are exact. jk_bytes: bytes that J and K take in each process. storage: the place of integrals of
    the gradient."""

    auxmol: Mole
    of_scf: Mole | None
    jk_bytes: int
    screening: float
    storage: str


def sizes_of(
    mol: Mole,
    frozen: Frozen,
    *,
    spins: int,
    rank: int,
    vectors: int,
    cuts: tuple[int, ...] | None = None,
    auxmol: Mole | None = None,
    method: str = "ccsd",
    ladder_type: str = Sizes.ladder_type,
) -> Sizes | None:
    """Sizes, known before the SCF; None: nothing is correlated. rank: number of three-index functions. cuts: slabs
    in which they are made; None: those of `auxmol`."""
    every = list(zip(*counts(mol, frozen, spins), strict=True))
    if not any(o and v for o, v in every):
        return None
    # A spin without correlation has one placeholder orbital of each kind, of zeros.
    shapes = [(o, v) if o and v else (1, 1) for o, v in every]
    cuts = source.cuts_of(auxmol) if cuts is None else cuts
    occupied, virtual = zip(*shapes, strict=True)
    return Sizes(int(mol.nao), rank, occupied, virtual, vectors, tuple(cuts), method, ladder_type)


def equations(
    sizes: Sizes | None, threads: int, what: Describe = describe.iterations, block: int | None = None
) -> int:
    """The least bytes of the stage `what`, with the factor of the metric of three-index functions."""
    if sizes is None:
        return 0
    metric = sizes.auxiliary**2 * _DOUBLE
    return metric + max(
        metric + blas_bytes(threads), plans.least_bytes(sizes, threads, block=block, what=what)
    )


def stages(
    world: World,
    mol: Mole,
    sizes: Sizes | None,
    threads: int,
    wanted: AfterIterations,
    fitting: FittedSets | None = None,
    *,
    left: int = 0,
    block: int | None = None,
) -> dict[str, int]:
    """The least bytes of each stage, by name, beside those that the process holds. left: bytes that the SCF leaves,
    added to each. fitting: None if no relaxed densities or gradients are wanted. Collective."""
    found = {METHOD: equations(sizes, threads, block=block)}
    if sizes is not None and wanted.multipliers:
        if wanted.triples:
            found["derivatives of (T)"] = equations(sizes, threads, describe.triple_derivatives, block)
        what = describe.response_of_triples if wanted.triples else describe.response
        found["Lambda equations"] = equations(sizes, threads, what, block)
        if fitting is not None and (wanted.relaxed or wanted.gradient):
            found |= _relaxed(world, mol, sizes, threads, fitting)
            if wanted.gradient:
                found["gradient"] = _gradient(world, mol, len(sizes.occupied), threads, fitting)
    return {name: left + each for name, each in found.items()}


def _relaxed(world: World, mol: Mole, sizes: Sizes, threads: int, fitting: FittedSets) -> dict[str, int]:
    auxmol, n = fitting.auxmol, sizes.functions
    columns = pairs.columns_of(mol, auxmol, fitting.screening, threads)
    every = zip(sizes.occupied, sizes.virtual, strict=True)
    shapes = [(o + v, o + v) for o, v in every]
    largest = int(pairs.shell_sizes(auxmol).max())
    metric = 2 * sizes.auxiliary**2 * _DOUBLE
    slabs = correlation.slab_bytes(n, columns, shapes, largest)
    first, second = zip(*shapes, strict=True)
    transformed = TransformSizes(n, columns, sizes.auxiliary, first, second)
    densities = max(
        slabs + of_gradients.RESPONSE_BYTES, min_for_transform(transformed, world.size, threads, "disk")
    )
    return {
        "relaxed densities": metric + densities,
        "orbital response": metric + fitting.jk_bytes + of_gradients.RESPONSE_BYTES,
    }


def _gradient(world: World, mol: Mole, spins: int, threads: int, fitting: FittedSets) -> int:
    if fitting.of_scf is None:
        return of_gradients.of_exact(mol, spins, threads, changed=True) + of_gradients.RESPONSE_BYTES
    return of_gradients.of_fitted(
        world,
        mol,
        fitting.of_scf,
        spins=spins,
        screening=fitting.screening,
        threads=threads,
        storage=fitting.storage,
        changed=True,
    )
