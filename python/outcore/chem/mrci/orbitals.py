"""Orbitals of a multireference CI: frozen, inactive, active and external ones, their irreps and integrals."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import mean_field, reference
from outcore.chem.ci import fcidump
from outcore.chem.ci.hamiltonian import ABELIAN, IRREPS
from outcore.chem.ci.orbitals import integrals_of, label_orbitals, temporary, transformed, with_symmetry
from outcore.chem.driver import RootDriven
from outcore.chem.frozen import count_frozen
from outcore.chem.mrci import integrals
from outcore.chem.mrci.configurations import MAX_INTERNAL
from outcore.chem.mrci.integrals import TwoElectron
from outcore.chem.mrci.records import Orbitals
from outcore.chem.mrci.tables import check_disk, table_bytes
from outcore.chem.ri.cholesky import EXACT, Cholesky
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.source import Fitted
from outcore.job.resources import resident_bytes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ri.source import Source
    from outcore.job.resources import Allowance
    from outcore.job.world import World

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

_TAKE = "take the orbitals of a multireference CI"
_ORTHONORMAL = 1e-6
_WHOLE = 1.5  # times all integrals: with what they are made of, or with tables of them


@dataclass(frozen=True)
class Choice:
    """Numbers of orbitals: doubly occupied always; doubly occupied in references; whose occupation
    references choose."""

    frozen: int
    inactive: int
    active: int

    @property
    def internal(self) -> int:
        return self.inactive + self.active


@dataclass(frozen=True, eq=False)
class Correlated:
    """Internal orbitals (inactive, active) and external ones, these sorted by irrep.

    Attributes:
        one: [n][n] with the field of the frozen orbitals (Hartree).
        electrons: alpha, beta, without those of frozen orbitals.
        permutation: orbital k here is orbital permutation[k] of the caller, counted behind the frozen ones.
        coefficients, frozen: [function][orbital], None without a molecule.
        irrep: of the determinant of the mean field.
        notes: what was taken for granted in a file.
    """

    one: Matrix
    two: TwoElectron
    core_energy: float
    orbitals: Orbitals
    choice: Choice
    electrons: tuple[int, int]
    group: str
    names: tuple[str, ...]
    permutation: Integers
    irrep: int
    mol: Mole | None = None
    coefficients: Matrix | None = None
    frozen: Matrix | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.one)

    def number_of(self, irrep: str | int) -> int:
        """Of an irrep, by its name or number. Raises OutcoreError (EINVAL)."""
        wanted = str(irrep).strip().casefold().replace("''", '"')
        for number, name in enumerate(self.names):
            if name.casefold() == wanted:
                return number
        raise OutcoreError(
            errno.EINVAL, f"irrep {irrep}", detail=f"point group {self.group} has {', '.join(self.names)}"
        )


def of_mean_field(
    mf: Any,
    world: World,
    *,
    frozen: int | str | None,
    inactive: int,
    active: int,
    group: str | None = None,
    wanted: Wanted | None,
) -> Correlated:
    """Of a converged RHF or ROHF object: orbitals by occupation and energy. wanted: None: integrals are none.
    Collective; all get those of the first process.

    Raises OutcoreError: EINVAL; ENOMEM, ENOSPC (larger integrals)."""
    found: Any = None
    with world.together(_TAKE, str(frozen), inactive, active, group):
        reference.check_method(mf, _TAKE)
        if world.rank == 0:
            if not mf.converged:
                raise _refused("the SCF has not converged (mf.converged is False)")
            occupation = np.round(np.asarray(mf.mo_occ, np.float64))
            if occupation.ndim != 1:
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            order = np.lexsort((np.asarray(mf.mo_energy), -occupation))
            lowest = count_frozen(mf.mol, frozen, min(mf.mol.nelec))
            choice = Choice(lowest, inactive, active)
            found = _of_coefficients(
                mf,
                np.asarray(mf.mo_coeff)[:, order],
                choice,
                group,
            )
    return _with_integrals(world.broadcast(found), mf, world, wanted)


def of_active_space(
    mc: Any, world: World, *, frozen: int | str | None, group: str | None = None, wanted: Wanted
) -> Correlated:
    """Of a CASCI or CASSCF object of PySCF: its orbitals, its core as frozen and inactive ones, its active space.
    Collective. Raises OutcoreError: EINVAL; ENOMEM, ENOSPC (larger integrals)."""
    found: Any = None
    with world.together(_TAKE, str(frozen), group):
        for name in ("mo_coeff", "ncore", "ncas", "nelecas", "_scf"):
            if getattr(mc, name, None) is None:
                raise _refused(
                    f"{type(mc).__name__} is no CASCI or CASSCF object of PySCF that has run (no {name})"
                )
        if world.rank == 0:
            if np.ndim(mc.mo_coeff) != 2 or not isinstance(mc.ncore, (int, np.integer)):
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            lowest = count_frozen(mc.mol, frozen, int(mc.ncore))
            choice = Choice(lowest, int(mc.ncore) - lowest, int(mc.ncas))
            found = _of_coefficients(
                mc._scf,
                np.asarray(mc.mo_coeff),
                choice,
                group,
                tuple(mc.nelecas),
            )
    return _with_integrals(world.broadcast(found), mc._scf, world, wanted)


def of_file(path: Path, world: World, *, inactive: int, active: int, frozen: int = 0) -> Correlated:
    """Of the integrals in an FCIDUMP file, whose orbitals are in the order frozen, inactive, active, external.
    Collective. Raises OutcoreError."""
    found: Any = None
    with world.together("read FCIDUMP", str(path), inactive, active, frozen):
        if world.rank == 0:
            dump = fcidump.read(path)
            h = dump.hamiltonian
            if h.unrestricted:
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            back = h.positions
            one, two = h.ones[0][np.ix_(back, back)], h.twos[0][np.ix_(back, back, back, back)]
            core, one, two = _without_core(h.core_energy, one, two, frozen)
            choice = Choice(frozen, inactive, active)
            electrons = dump.electrons[0] - frozen, dump.electrons[1] - frozen
            irreps = np.asarray(h.irreps)[back][frozen:]
            order = _order(choice, len(one), irreps, electrons)
            p, q = np.tril_indices(len(one))
            found = Correlated(
                one[np.ix_(order, order)],
                integrals.of_whole(two[np.ix_(order, order, order, order)][p, q][:, p, q], choice.internal),
                core,
                _labels(choice, irreps[order], h.groups),
                choice,
                electrons,
                h.group or "of the orbitals",
                h.names,
                order,
                dump.irrep,
                notes=dump.notes,
            )
    shared: Correlated = world.broadcast(found)
    return shared


def _without_core(energy: float, one: Matrix, two: Matrix, frozen: int) -> tuple[float, Matrix, Matrix]:
    """Integrals in the field of the first orbitals, doubly occupied."""
    core = slice(0, frozen)
    field = 2 * np.einsum("pqii->pq", two[:, :, core, core]) - np.einsum("piiq->pq", two[:, core, core, :])
    energy += float(np.einsum("ii->", 2 * one[core, core] + field[core, core]))
    rest = slice(frozen, None)
    return energy, (one + field)[rest, rest], two[rest, rest, rest, rest]


def _order(choice: Choice, orbitals: int, irreps: Integers, electrons: tuple[int, int]) -> Integers:
    """Internal orbitals as they are, external ones by irrep."""
    if min(choice.frozen, choice.inactive, choice.active) < 0 or choice.internal < 1:
        raise _refused(f"{choice.inactive} inactive and {choice.active} active orbitals")
    if choice.internal > orbitals:
        raise _refused(
            f"{choice.inactive} inactive and {choice.active} active orbitals, but there are {orbitals} above "
            f"{choice.frozen} frozen ones"
        )
    if choice.internal > MAX_INTERNAL:
        raise _refused(f"{choice.internal} inactive and active orbitals; there may be {MAX_INTERNAL}")
    left = electrons[0] - choice.inactive, electrons[1] - choice.inactive
    if min(left) < 0:
        raise _refused(
            f"{choice.inactive} inactive orbitals for {electrons[0]} alpha, {electrons[1]} beta electrons"
        )
    if max(left) > choice.active:
        raise _refused(
            f"{choice.active} active orbitals cannot hold {left[0]} alpha and {left[1]} beta electrons"
        )
    if sum(electrons) < 2:
        raise _refused(f"{sum(electrons)} electrons to correlate; there must be two")
    internal = np.arange(choice.internal)
    external = choice.internal + np.argsort(irreps[choice.internal :], kind="stable")
    return np.concatenate([internal, external])


def _labels(choice: Choice, irreps: Integers, groups: int) -> Orbitals:
    labels = tuple(int(each) for each in irreps)
    return Orbitals(labels[: choice.internal], labels[choice.internal :], groups)


def _of_coefficients(
    mf: Any,
    coefficients: Matrix,
    choice: Choice,
    group: str | None,
    active_electrons: tuple[int, int] | None = None,
) -> Correlated:
    """Without integrals."""
    mol = mf.mol
    overlap = np.asarray(mf.get_ovlp())
    c = np.asarray(coefficients, np.float64)
    if len(c) != mol.nao or abs(c.T @ overlap @ c - np.eye(c.shape[1])).max() > _ORTHONORMAL:
        raise _refused("the orbitals are not orthonormal in the present molecule and basis")
    labelled = with_symmetry(mol, group)
    irreps = np.zeros(c.shape[1], np.int64)
    if labelled is not None:
        c, irreps = label_orbitals(labelled, c, overlap)
    name = "C1" if labelled is None else str(labelled.groupname)
    abelian = ABELIAN.get(name, name)
    electrons = mol.nelec[0] - choice.frozen, mol.nelec[1] - choice.frozen
    if active_electrons is not None:
        electrons = active_electrons[0] + choice.inactive, active_electrons[1] + choice.inactive
    frozen, rest = c[:, : choice.frozen], c[:, choice.frozen :]
    irreps = irreps[choice.frozen :]
    order = _order(choice, rest.shape[1], irreps, electrons)
    found_irrep = (
        int(np.bitwise_xor.reduce(irreps[electrons[1] : electrons[0]])) if electrons[0] > electrons[1] else 0
    )
    rest = np.ascontiguousarray(rest[:, order])
    return Correlated(
        np.zeros((rest.shape[1],) * 2),
        integrals.none(),
        0.0,
        _labels(choice, irreps[order], len(IRREPS[abelian])),
        choice,
        electrons,
        abelian,
        IRREPS[abelian],
        order,
        found_irrep,
        mol,
        rest,
        frozen,
    )


# ---- integrals ----


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which integrals: see `Settings.integrals`. free: memory that each process can still take. tables_bytes: of
    those between external pairs that may lie there; None: half of it."""

    kind: str
    tolerance: float
    auxbasis: Any
    free: Allowance
    threads: int
    tables_bytes: int | None = None


def _with_integrals(found: Correlated, mf: Any, world: World, wanted: Wanted | None) -> Correlated:
    """Collective."""
    if wanted is None:
        return found
    _check_memory(found, wanted.free.bytes)
    mine = table_bytes(found.orbitals)
    room = wanted.free.bytes // 2 if wanted.tables_bytes is None else wanted.tables_bytes
    fitted = wanted.kind == "conventional" and getattr(mf, "with_df", None) is not None
    whole = wanted.kind == "conventional" and not fitted and wanted.tables_bytes is None
    whole = whole and _WHOLE * integral_bytes(found.count) <= wanted.free.bytes
    if not whole and mine > room:
        check_disk(world, found.orbitals)
    if whole:
        made: Correlated | None = None
        with world.together("transform integrals"):
            if world.rank == 0:
                made = _whole(found, mf, wanted.free.bytes, world.scratch)
        return world.broadcast(made)  # type: ignore[return-value]
    limit = wanted.free.bytes // 2
    coefficients = np.hstack([found.frozen, found.coefficients])  # type: ignore[list-item]
    make = _of_pyscf if fitted else _of_source
    factors, title = make(world, mf, wanted, coefficients, limit)
    h = coefficients.T @ np.asarray(_plain(mf, wanted.free.bytes).get_hcore()) @ coefficients
    energy, one, factors = integrals.in_the_field(float(mf.mol.energy_nuc()), h, factors, found.choice.frozen)
    made_of = None
    if not fitted and wanted.kind == "cholesky":
        made_of = {"one-electron integrals": integrals.weighed(h), "tolerance": wanted.tolerance}
    two = integrals.of_factors(factors, found.choice.internal, title, made_of)
    return replace(found, one=one, two=two, core_energy=energy)


def _of_source(world: World, mf: Any, wanted: Wanted, coefficients: Matrix, limit: int) -> tuple[Matrix, str]:
    """Factors, and where they are from."""
    source: Source
    if wanted.kind == "ri":
        source = Fitted(world, mf.mol, wanted.auxbasis, wanted.threads, SCREENING, "jk")
    else:
        tolerance = EXACT if wanted.kind == "conventional" else wanted.tolerance
        source = Cholesky(world, mf.mol, tolerance, limit)
    return integrals.of_source(world, source, coefficients, limit), source.title


def _of_pyscf(world: World, mf: Any, wanted: Wanted, coefficients: Matrix, limit: int) -> tuple[Matrix, str]:
    """Factors that an object of PySCF has."""
    from pyscf import lib

    made: Matrix | None = None
    with world.together("transform three-index integrals"):
        if world.rank == 0:
            if isinstance(mf, RootDriven):
                raise OutcoreError(
                    errno.ENOTSUP,
                    _TAKE,
                    detail="density-fitted integrals of several processes; take those of PySCF",
                )
            count = mf.with_df.get_naoaux()
            integrals.check_factors(count, coefficients.shape[1], limit)
            blocks = (lib.unpack_tril(np.asarray(each)) for each in mf.with_df.loop())
            made = integrals.transformed(blocks, count, coefficients)
    shape = world.broadcast((0, 0) if made is None else (len(made), made.shape[1]))
    return integrals.spread(world, made, shape), "density fitting of the SCF"


def _whole(found: Correlated, mf: Any, free_bytes: int, scratch: str) -> Correlated:
    mol = mf.mol
    mf = _plain(mf, free_bytes)
    rest, frozen = found.coefficients, found.frozen
    assert rest is not None and frozen is not None
    pairs = rest.shape[1] * (rest.shape[1] + 1) // 2
    with temporary(scratch):
        two = transformed(integrals_of(mf, free_bytes // 2), rest, rest, free_bytes // 2).reshape(
            pairs, pairs
        )
    hcore = np.asarray(mf.get_hcore(), np.float64)
    field, energy = np.zeros_like(hcore), float(mf.energy_nuc())
    if found.choice.frozen:
        density = 2 * frozen @ frozen.T
        coulomb, exchange = mf.get_jk(mol, density, hermi=1)
        field = np.asarray(coulomb) - np.asarray(exchange) / 2
        energy += float(np.sum(density * (hcore + field / 2)))
    one = rest.T @ (hcore + field) @ rest
    return replace(found, one=one, two=integrals.of_whole(two, found.choice.internal), core_energy=energy)


def integral_bytes(orbitals: int) -> int:
    """Of all two-electron integrals."""
    return 8 * (orbitals * (orbitals + 1) // 2) ** 2


def row_bytes(found: Correlated) -> int:
    """Of integrals with an internal orbital, at each process."""
    n, u = found.count, found.choice.internal
    return 8 * (u * (u + 1) // 2 + (n - u) * u) * (n * (n + 1) // 2)


def _check_memory(found: Correlated, free_bytes: int) -> None:
    needed = row_bytes(found)
    if needed > free_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            _TAKE,
            detail=f"integrals over {found.count} orbitals take {needed / 1e6:.0f} MB, there are "
            f"{max(0, free_bytes) / 1e6:.0f} MB: take a smaller basis, or more memory",
        )


def _plain(mf: Any, free_bytes: int) -> Any:
    """An object whose integrals need no other process, nor more memory."""
    if not isinstance(mf, RootDriven):
        return mf
    mol: Mole = mf.mol  # type: ignore[attr-defined]
    plain = mean_field.make(mol, "ROHF" if mol.spin else "RHF")
    plain.max_memory = (resident_bytes() + free_bytes) / 1e6  # as PySCF counts
    return plain


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _TAKE, detail=detail)
