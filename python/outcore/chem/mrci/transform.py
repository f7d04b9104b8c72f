"""Integrals over the orbitals of a multireference CI: all of them, or three-index factors."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import reference
from outcore.chem.ci.hamiltonian import symmetry_notes
from outcore.chem.ci.orbitals import integrals_of, plain, temporary, transformed
from outcore.chem.driver import RootDriven
from outcore.chem.mrci import integrals
from outcore.chem.mrci.tables import check_disk, table_bytes
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.cholesky import EXACT, Cholesky
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.source import Fitted

if TYPE_CHECKING:
    from outcore.chem.mrci.orbitals import Correlated
    from outcore.chem.reference import Reference
    from outcore.chem.ri.source import Source
    from outcore.job.resources import Allowance
    from outcore.job.world import World

Matrix = NDArray[np.float64]

_TRANSFORM = "transform integrals of a multireference CI"
_WHOLE = (
    3  # times all integrals: together with their source and with half-transformed ones, or with their tables
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The wanted integrals: see `Settings.integrals`. free: free memory of each process. source: an existing
    decomposition. tables_bytes: most memory for integrals between external pairs; None: half of the free memory."""

    kind: str
    tolerance: float
    auxbasis: Any
    free: Allowance
    threads: int
    tables_bytes: int | None = None
    source: Source | None = None

    @property
    def tables_room(self) -> int:
        return self.free.bytes // 2 if self.tables_bytes is None else self.tables_bytes


def with_integrals(found: Correlated, mf: Any, world: World, wanted: Wanted) -> Correlated:
    """The orbitals with their integrals. Collective. Raises OutcoreError: ENOMEM, ENOSPC."""
    check_memory(found.count, found.choice.internal, wanted.free.bytes)
    mine = table_bytes(found.orbitals)
    fitted = wanted.kind == "conventional" and vars(mf).get("with_df") is not None
    whole = wanted.kind == "conventional" and not fitted and wanted.tables_bytes is None
    functions, several = int(mf.mol.nao), world.size > 1
    needed = whole_bytes(functions, found.count, found.choice.internal, several=several)
    whole = whole and needed <= wanted.free.bytes
    if not whole and mine > wanted.tables_room:
        check_disk(world, mine)
    if whole:
        made: Correlated | None = None
        with world.together("transform integrals"):
            if world.rank == 0:
                made = _whole(found, mf, wanted.free.bytes, world.scratch)
        return world.broadcast(made)  # type: ignore[return-value]
    given = reference.of_rank_0(world, mf, _TRANSFORM, reference.as_given) if wanted.kind == "ri" else None
    limit = wanted.free.bytes // 2
    coefficients = np.hstack([found.frozen, found.coefficients])  # type: ignore[list-item]
    make = _of_pyscf if fitted else _of_source
    factors, title = make(world, mf, wanted, coefficients, limit)
    made_of = None
    if given is not None:
        around: tuple[float, Matrix] | None = None
        with world.together(_TRANSFORM):
            if world.rank == 0:
                around = _around_the_scf(mf, given, coefficients, factors)
        energy, h = world.broadcast(around)  # type: ignore[misc]
    else:
        h = coefficients.T @ np.asarray(mf.get_hcore()) @ coefficients
        energy = float(mf.energy_nuc())
        if not fitted and wanted.kind == "cholesky":
            made_of = {"one-electron integrals": integrals.weighed(h), "tolerance": wanted.tolerance}
    energy, one, factors = integrals.in_the_field(energy, h, factors, found.choice.frozen)
    two = integrals.of_factors(factors, found.choice.internal, title, made_of)
    return replace(found, one=one, two=two, core_energy=energy)


# ---- factors ----


def _of_source(world: World, mf: Any, wanted: Wanted, coefficients: Matrix, limit: int) -> tuple[Matrix, str]:
    """Factors of our own, and a text about their origin."""
    source: Source
    given = given_integrals.of_rank_0(world, mf)
    if wanted.kind == "ri" and given is not None:
        raise OutcoreError(errno.EINVAL, _TRANSFORM, detail=f"{given_integrals.UNFITTED}: integrals='ri'")
    if wanted.kind == "ri":
        source = Fitted(world, mf.mol, wanted.auxbasis, wanted.threads, SCREENING)
    else:
        tolerance = EXACT if wanted.kind == "conventional" else wanted.tolerance
        if given is None:
            source = wanted.source or Cholesky(world, mf.mol, tolerance, limit)
        else:
            source = given_integrals.vectors(world, given, tolerance, limit)
        if source.signs is not None:
            raise OutcoreError(
                errno.ENOTSUP,
                _TRANSFORM,
                detail="integrals that are not positive, as those of an attraction, have no three-index factors "
                "here; take integrals='conventional' and more memory",
            )
    return integrals.of_source(world, source, coefficients, limit), source.title


def _of_pyscf(world: World, mf: Any, wanted: Wanted, coefficients: Matrix, limit: int) -> tuple[Matrix, str]:
    """Factors of a PySCF object, and a text about their origin."""
    from pyscf import lib

    made: Matrix | None = None
    with world.together("transform three-index integrals"):
        if world.rank == 0:
            if isinstance(mf, RootDriven):
                raise OutcoreError(
                    errno.ENOTSUP,
                    _TRANSFORM,
                    detail="density-fitted integrals of several processes; take those of PySCF",
                )
            count = mf.with_df.get_naoaux()
            integrals.check_factors(count, coefficients.shape[1], limit)
            blocks = (lib.unpack_tril(np.asarray(each)) for each in mf.with_df.loop())
            made = integrals.transformed(blocks, count, coefficients)
    shape = world.broadcast((0, 0) if made is None else (len(made), made.shape[1]))
    return integrals.spread(world, made, shape), "density fitting of the SCF"


def _around_the_scf(mf: Any, given: Reference, coefficients: Matrix, factors: Matrix) -> tuple[float, Matrix]:
    """An energy and one-electron integrals that give the determinant of the SCF its energy and the mean of its Fock
    matrices, as in coupled cluster. Factors for correlation describe the field of all electrons badly, so they are
    used only for differences from it."""
    overlap = np.asarray(mf.get_ovlp())
    inside = coefficients.T @ overlap
    spins = given.spins
    fock, densities = np.zeros((len(inside),) * 2), []
    for each in (spins[0], spins[-1]):
        c = inside @ each.coefficients
        fock += c @ each.fock @ c.T / 2
        densities.append(c[:, : each.occupied])
    coulomb, exchange = integrals.fields(factors, densities)
    total = sum(each @ each.T for each in densities)
    one = fock - coulomb + sum(exchange) / 2
    energy = float(np.sum(total * (one + coulomb / 2)))
    energy -= sum(float(np.sum(c * (k @ c))) for c, k in zip(densities, exchange, strict=True)) / 2
    return float(mf.e_tot) - energy, one


# ---- all integrals ----


def _whole(found: Correlated, mf: Any, free_bytes: int, scratch: str) -> Correlated:
    mol = mf.mol
    exact = plain(mf, free_bytes)
    rest, frozen = found.coefficients, found.frozen
    assert rest is not None and frozen is not None
    pairs = rest.shape[1] * (rest.shape[1] + 1) // 2
    with temporary(scratch):
        two = transformed(integrals_of(exact, free_bytes // 2), rest, rest, free_bytes // 2).reshape(
            pairs, pairs
        )
    notes = (*found.notes, *symmetry_notes(0.0, integrals.symmetrize(two)))
    hcore = np.asarray(mf.get_hcore(), np.float64)
    field, energy = np.zeros_like(hcore), float(mf.energy_nuc())
    if found.choice.frozen:
        density = 2 * frozen @ frozen.T
        coulomb, exchange = exact.get_jk(mol, density, hermi=1)
        field = np.asarray(coulomb) - np.asarray(exchange) / 2
        energy += float(np.sum(density * (hcore + field / 2)))
    one = rest.T @ (hcore + field) @ rest
    whole = integrals.of_whole(two, found.choice.internal)
    return replace(found, one=one, two=whole, core_energy=energy, notes=notes)


# ---- sizes ----


def integral_bytes(orbitals: int) -> int:
    """Bytes of all two-electron integrals."""
    return 8 * (orbitals * (orbitals + 1) // 2) ** 2


def whole_bytes(functions: int, orbitals: int, internal: int, *, several: bool) -> int:
    """Memory of a process for making all integrals at once. several: several processes, which copy them from the
    first."""
    pairs, done = functions * (functions + 1) // 2, orbitals * (orbitals + 1) // 2
    copies = _WHOLE * integral_bytes(orbitals) + (2 if several else 1) * row_bytes(orbitals, internal)
    return copies + 8 * pairs * done + (2 * integral_bytes(orbitals) if several else 0)


def factor_bytes(rank: int, orbitals: int) -> int:
    """Bytes of three-index factors."""
    return 8 * rank * (orbitals * (orbitals + 1) // 2)


def row_bytes(orbitals: int, internal: int) -> int:
    """Bytes of integrals with an internal orbital, at each process."""
    rows = internal * (internal + 1) // 2 + (orbitals - internal) * internal
    return 8 * rows * (orbitals * (orbitals + 1) // 2)


def check_memory(orbitals: int, internal: int, free_bytes: int) -> None:
    """Raises OutcoreError (ENOMEM) if integrals with an internal orbital do not fit."""
    needed = row_bytes(orbitals, internal)
    if needed > free_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            _TRANSFORM,
            detail=f"integrals over {orbitals} orbitals take {in_words(needed)}, there are "
            f"{in_words(free_bytes)}: take a smaller basis, or more memory",
        )
