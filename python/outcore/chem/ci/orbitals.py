"""The orbitals of a CI, from a mean-field object: frozen and active ones, their irreps, their integrals."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import mean_field, reference
from outcore.chem.active import Active, Asked
from outcore.chem.active import read as read_active
from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.ci.determinants import listed, mask
from outcore.chem.ci.hamiltonian import MAX_ORBITALS, Hamiltonian, Integers, Matrix
from outcore.chem.driver import RootDriven
from outcore.chem.ri.given import packed_of
from outcore.chem.symmetry import (
    ABELIAN,
    IRREPS,
    irrep_number,
    irrep_of_linear,
    made_symmetric,
    with_symmetry,
)
from outcore.job.resources import resident_bytes

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

_TAKE = "take the orbitals of a CI"
_COPIES = 6  # copies of the integrals that exist while they are made
_HALVES = 3  # copies of integrals with two orbitals and two functions
_ROWS = 160  # least rows of PySCF's buffers
_ORTHONORMAL = 1e-6
_EPSILON = 2.0**-52
_ROUNDINGS = 32  # largest error of an integral, in rounding errors of its largest term


@dataclass(frozen=True, eq=False)
class ActiveSpace:
    """Correlated orbitals, and the core orbitals below them.

    Attributes:
        overlap: of the functions; those of a model are not those of the molecule.
        coefficients: [function][orbital] for each spin, in the order of the Hamiltonian; twice the same array if
            both spins have the same orbitals.
        core: [function][orbital] for each spin: always doubly occupied.
        electrons: (alpha, beta) in the active orbitals.
        occupied: strings of the determinant of the mean field.
        group: of the molecule, as PySCF names it; that of linear molecules and atoms is not abelian.
        notes: lines about changes of the orbitals that give them irreps.
    """

    mol: Mole
    overlap: Matrix
    hamiltonian: Hamiltonian
    coefficients: tuple[Matrix, Matrix]
    core: tuple[Matrix, Matrix]
    electrons: tuple[int, int]
    occupied: tuple[int, int]
    group: str
    notes: tuple[str, ...] = ()

    @property
    def frozen(self) -> int:
        return int(self.core[0].shape[1])

    @property
    def reference_irrep(self) -> int:
        """The irrep of the determinant of the mean field."""
        found = 0
        for string in self.occupied:
            for orbital in listed(string):
                found ^= int(self.hamiltonian.irreps[orbital])
        return found

    def irrep(self, text: str | int) -> int:
        """The number of an irrep, by its name; for linear molecules also by PySCF's name, such as A1g and E1ux.
        Raises OutcoreError (EINVAL)."""
        found = None
        if self.hamiltonian.group == ABELIAN.get(self.group):
            found = irrep_of_linear(self.group, text)
        return self.hamiltonian.irrep(text) if found is None else found


def of(
    mf: Any,
    world: World,
    *,
    frozen: frozen_orbitals.Asked = None,
    frozen_virtual: frozen_orbitals.Asked = None,
    active: Asked = None,
    group: str | None = None,
    max_memory_bytes: int = 1 << 30,
    scratch: str | None = None,
    integrals: bool = True,
) -> ActiveSpace:
    """The orbitals of a converged RHF, ROHF or UHF object of PySCF or of Outcore. Collective; all processes get
    those of the first.

    frozen, frozen_virtual: see `outcore.chem.frozen.of`. active: see `outcore.chem.active.read`; occupied orbitals
    that neither a list nor numbers for irreps name stay doubly occupied. group: an abelian point group that the
    molecule has; None: that of the molecule if it was built with symmetry, else none. max_memory_bytes, scratch:
    for the transformation of integrals.
    integrals: False: all are set to 0, without a transformation.

    Raises OutcoreError (EINVAL).
    """
    taken: Any = None
    with world.together(_TAKE, str(frozen), str(frozen_virtual), str(active), group):
        reference.check_method(mf, _TAKE)
        if world.rank == 0:
            taken = _taken(mf, frozen, frozen_virtual, active, group)
    taken = world.broadcast(taken)
    fields = _core_fields(mf, taken, world, max_memory_bytes) if integrals else []
    if _fitted_by_all(mf):
        mf.with_df.integrals()
    found: Any = None
    with world.together("transform integrals"):
        if world.rank == 0:
            with temporary(scratch):
                found = _hamiltonian(mf, taken, fields, max_memory_bytes) if integrals else _empty(taken)
    hamiltonian, order = world.broadcast(found)
    coefficients = [np.ascontiguousarray(each[:, order[k]]) for k, each in enumerate(taken.active)]
    return ActiveSpace(
        mf.mol,
        taken.overlap,
        hamiltonian,
        (coefficients[0], coefficients[-1]),
        (taken.core[0], taken.core[-1]),
        taken.electrons,
        (_first(order[0], taken.electrons[0]), _first(order[-1], taken.electrons[1])),
        taken.group,
        taken.notes,
    )


def _first(order: Integers, count: int) -> int:
    """The string of the `count` orbitals that were first before sorting."""
    return mask(np.flatnonzero(order < count))


@dataclass
class _Taken:
    """Orbitals before they are sorted by irrep: one array for each spin that has its own."""

    core: list[Matrix]
    active: list[Matrix]
    irreps: list[Integers]  # of the active orbitals
    group: str  # of the molecule
    abelian: str  # of the irreps
    electrons: tuple[int, int]
    overlap: Matrix
    notes: tuple[str, ...]


@dataclass
class GivenOrbitals:
    """Orbitals of one spin, or of both, by occupation and energy. numbers: their numbers in the mean-field object,
    from 0. filled: how many of them are full."""

    coefficients: Matrix
    energies: Matrix
    occupations: Integers
    numbers: Integers
    filled: int

    @classmethod
    def of(
        cls, coefficients: Any, energies: Any, occupations: Any, overlap: Matrix, most: int
    ) -> GivenOrbitals:
        """Sorts orbitals; raises OutcoreError unless they are real and orthonormal. most: electrons that an orbital
        can hold."""
        if np.iscomplexobj(coefficients):
            raise _refused("the orbitals are complex; take real ones")
        c = np.asarray(coefficients, np.float64)
        if len(c) != len(overlap) or abs(c.T @ overlap @ c - np.eye(c.shape[1])).max() > _ORTHONORMAL:
            raise _refused(
                "the orbitals are not orthonormal in the present molecule and basis; run the SCF again"
            )
        held = np.round(np.asarray(occupations, np.float64)).astype(np.int64)
        order = np.lexsort((np.asarray(energies), -held))
        return cls(
            c[:, order],
            np.asarray(energies, np.float64)[order],
            held[order],
            order.astype(np.int64),
            int((held == most).sum()),
        )

    @classmethod
    def in_order(cls, orbitals: int, filled: int, single: int) -> GivenOrbitals:
        """So many orbitals, without coefficients and energies: full ones, then singly occupied, then empty ones."""
        occupations = np.repeat([2, 1, 0], [filled, single, orbitals - filled - single])
        return cls(np.empty((0, orbitals)), np.empty(0), occupations, np.arange(orbitals), filled)


def count_before_scf(mol: Mole) -> int:
    """How many orbitals an SCF will have: one for each linearly independent combination of functions."""
    from pyscf.scf import hf

    return int(hf.check_linear_dependency(hf.get_ovlp(mol)).shape[1])


def _taken(
    mf: Any, frozen: frozen_orbitals.Asked, virtual: frozen_orbitals.Asked, active: Asked, group: str | None
) -> _Taken:
    mol = mf.mol
    if mf.mo_coeff is None or mf.mo_occ is None or mf.mo_energy is None:
        raise _refused("the reference has no orbitals; run its kernel() first")
    if not mf.converged:
        raise _refused(
            "the SCF has not converged (mf.converged is False); converge it, or take other orbitals"
        )
    coefficients, energies, occupations = (
        _each_spin(each, dimensions)
        for each, dimensions in ((mf.mo_coeff, 3), (mf.mo_energy, 2), (mf.mo_occ, 2))
    )
    overlap, most = mf.get_ovlp(), 1 if len(occupations) == 2 else 2
    given = [
        GivenOrbitals.of(c, e, o, overlap, most)
        for c, e, o in zip(coefficients, energies, occupations, strict=True)
    ]
    left_out = frozen_orbitals.of(mol, frozen, virtual, [(each.numbers, each.filled) for each in given])
    wanted = read_active(active, len(given))
    labelled, notes = with_symmetry(mol, group), list[str]()
    name = "C1" if labelled is None else str(labelled.groupname)
    found = _Taken([], [], [], name, ABELIAN.get(name, name), mol.nelec, np.asarray(overlap), ())
    for spin, each in enumerate(given):
        c, irreps = each.coefficients, np.zeros(len(each.numbers), np.int64)
        if labelled is not None:
            spaces = each.occupations + 3 * left_out.apart(spin, each.numbers)
            spaces += 6 * wanted.listed_among(spin, each.numbers)
            symmetric = made_symmetric(labelled, c, overlap, each.energies, spaces)
            c, irreps = symmetric.coefficients, symmetric.irreps
            notes += [note for note in symmetric.notes if note not in notes]
        core, picked, held = chosen(each, left_out, wanted, spin, irreps, partial(irrep_number, name))
        notes += [held] if held and held not in notes else []
        found.core.append(np.ascontiguousarray(c[:, core]))
        found.active.append(np.ascontiguousarray(c[:, picked]))
        found.irreps.append(irreps[picked])
    cores, counts = ([each.shape[1] for each in kind] for kind in (found.core, found.active))
    found.electrons = mol.nelec[0] - cores[0], mol.nelec[1] - cores[0]
    check_counts(cores, counts, found.electrons)
    if (np.bincount(found.irreps[0], minlength=8) != np.bincount(found.irreps[-1], minlength=8)).any():
        raise _refused(
            "active orbitals of spin alpha and beta are not of the same irreps; take another number of active "
            "orbitals, or group C1"
        )
    found.notes = tuple(notes)
    return found


def chosen(
    given: GivenOrbitals,
    left_out: frozen_orbitals.Frozen,
    wanted: Active,
    spin: int,
    irreps: Integers,
    number_of: Callable[[str], int],
) -> tuple[Integers, Integers, str]:
    """Positions of the doubly occupied orbitals and of the active ones, and a note about doubly occupied orbitals
    that the user has not frozen, if any."""
    left = np.concatenate(left_out.active(spin, given.numbers, given.filled))
    picked = wanted.choose(spin, left, given.numbers, irreps, number_of)
    free = picked if wanted.named else left
    core = np.setdiff1d(np.arange(given.filled), free)
    single = np.setdiff1d(np.flatnonzero(given.occupations == 1), np.concatenate([core, free]))
    if len(single):
        raise _refused(
            f"orbital {given.numbers[single[0]]} (from 0) holds one electron: it has to be active, not frozen"
        )
    held = ", ".join(str(each) for each in np.sort(given.numbers[np.intersect1d(core, left)]))
    return core, picked, f"orbitals {held} (from 0) are not active and stay occupied" if held else ""


def check_counts(cores: Sequence[int], counts: Sequence[int], electrons: tuple[int, int]) -> None:
    """Checks numbers of doubly occupied and of active orbitals, one for each spin with its own orbitals. electrons:
    (alpha, beta) in active orbitals. Raises OutcoreError (EINVAL)."""
    if len(set(cores)) > 1 or len(set(counts)) > 1:
        raise _refused(
            f"{cores[0]} frozen and {counts[0]} active orbitals of spin alpha, {cores[-1]} and {counts[-1]} of "
            "spin beta; give lists that are as long for both"
        )
    count = counts[0]
    if count < max(electrons):
        raise _refused(
            f"{count} active orbitals cannot hold {electrons[0]} alpha and {electrons[1]} beta electrons"
        )
    if count > MAX_ORBITALS:
        raise _refused(
            f"{count} orbitals, at most {MAX_ORBITALS} can be correlated: give the number of active ones "
            "(--active), or of frozen ones (--frozen, --frozen-virtual)"
        )


def _each_spin(values: Any, dimensions: int) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim < dimensions:
        return [values]
    return list(values)


# ---- integrals ----


def plain(mf: Any, free_bytes: int) -> Any:
    """An object with exact two-electron integrals, which needs neither other processes nor more memory."""
    if not isinstance(mf, RootDriven):
        return mf
    found = mean_field.make(mf.mol, "RHF")  # type: ignore[attr-defined]
    found._eri = vars(mf).get("_eri")
    found.max_memory = (resident_bytes() + free_bytes) / 1e6  # as PySCF counts
    return found


def _fitted_by_all(mf: Any) -> bool:
    """Whether the integrals of `mf` are fitted, and distributed over all processes."""
    return isinstance(mf, RootDriven) and _is_fitted(mf)


def _core_fields(mf: Any, taken: _Taken, world: World, max_memory_bytes: int) -> list[Matrix]:
    """The potential of the core electrons for each spin with its own orbitals (Hartree). It is computed with exact
    integrals if those of `mf` are stored with an error, as the integrals between active orbitals are."""
    if not taken.core[0].shape[1]:
        return [np.zeros((len(each), len(each))) for each in taken.core]
    densities = np.array([each @ each.T for each in taken.core])
    if _fitted_by_all(mf):
        coulomb, exchange = mf.get_jk(mf.mol, densities, hermi=1)
    else:
        found: Any = None
        with world.together("field of the core"):
            if world.rank == 0:
                found = plain(mf, max_memory_bytes).get_jk(mf.mol, densities, hermi=1)
        coulomb, exchange = world.broadcast(found)
    total = 2 * coulomb[0] if len(densities) == 1 else coulomb.sum(0)
    return [np.asarray(total - each) for each in exchange]


def _hamiltonian(
    mf: Any, taken: _Taken, fields: list[Matrix], max_memory_bytes: int
) -> tuple[Hamiltonian, list[Integers]]:
    """The integrals, and the order of the orbitals of each spin in them."""
    hcore = np.asarray(mf.get_hcore(), np.float64)
    energy = float(mf.energy_nuc())
    for k, core in enumerate(taken.core):
        density = core @ core.T * (2 if len(taken.core) == 1 else 1)
        energy += float(np.sum(density * (hcore + fields[k] / 2)))
    orders = [np.argsort(each, kind="stable") for each in taken.irreps]
    orbitals = [each[:, order] for each, order in zip(taken.active, orders, strict=True)]
    one = tuple(c.T @ (hcore + field) @ c for c, field in zip(orbitals, fields, strict=True))
    source = None if _is_fitted(mf) else integrals_of(mf, max_memory_bytes)
    two = _fitted(mf, orbitals) if source is None else _two_electron(source, orbitals, max_memory_bytes)
    expected = _rounding(mf.mol, hcore, source, orbitals)
    try:
        found = hamiltonians.make(
            one if len(one) > 1 else one[0],
            two,
            core_energy=energy,
            irreps=np.sort(taken.irreps[0]),
            group=taken.abelian,
            rounding=(max(expected[0], hamiltonians.ROUNDING), max(expected[1], hamiltonians.ROUNDING)),
        )
    except OutcoreError as error:
        if max(expected) > hamiltonians.ROUNDING:
            least = float(np.linalg.eigvalsh(mf.get_ovlp())[0])
            raise _refused(
                f"{error.detail}: functions of the basis depend on each other (the smallest eigenvalue of the "
                f"overlap is {least:.1e}), and rounding has lost the integrals; take some functions away"
            ) from error
        raise
    return replace(found, permutation=orders[0]), orders


def _rounding(mol: Mole, hcore: Matrix, source: Any, orbitals: list[Matrix]) -> tuple[float, float]:
    """The largest rounding errors of one-electron and of two-electron integrals (Hartree). Each integral is a sum
    whose terms have errors in their last digit, and large terms cancel if functions are nearly linearly dependent.
    Schwarz's inequality bounds each term by contributions of its four functions."""
    sizes = np.abs(hcore.diagonal()), np.sqrt(_self_repulsion(mol, source, len(hcore)))
    largest = [max(float((c * c * each[:, None]).sum(0).max()) for c in orbitals) for each in sizes]
    return _ROUNDINGS * _EPSILON * largest[0], _ROUNDINGS * _EPSILON * largest[1] ** 2


def _self_repulsion(mol: Mole, source: Any, functions: int) -> Matrix:
    """(aa|aa) for each function a."""
    if isinstance(source, np.ndarray):
        if source.ndim == 4:
            return np.asarray(np.abs(np.einsum("aaaa->a", source)))
        pairs = np.cumsum(np.arange(1, functions + 1)) - 1  # pairs of a function with itself
        places = (pairs, pairs) if source.ndim == 2 else pairs * (pairs + 3) // 2
        return np.asarray(np.abs(source[places]))
    of_shells = [mol.intor("int2e", shls_slice=(k, k + 1) * 4) for k in range(mol.nbas)]
    return np.asarray(np.abs(np.concatenate([np.einsum("aaaa->a", each) for each in of_shells])))


def _empty(taken: _Taken) -> tuple[Hamiltonian, list[Integers]]:
    orders = [np.argsort(each, kind="stable") for each in taken.irreps]
    n = len(orders[0])
    one, two = np.zeros((n, n)), np.broadcast_to(0.0, (n,) * 4)
    several = len(orders) > 1
    found = Hamiltonian(
        (one, one) if several else one,
        (two, two, two) if several else two,
        0.0,
        np.sort(taken.irreps[0]),
        len(IRREPS[taken.abelian]),
        taken.abelian,
        IRREPS[taken.abelian],
        orders[0],
    )
    return found, orders


def _two_electron(source: Any, orbitals: list[Matrix], max_memory_bytes: int) -> Any:
    """(pq|rs) for both spins, or for (alpha-alpha, alpha-beta, beta-beta), with 4-fold packing or none. source: see
    `integrals_of`."""
    pairs = [(0, 0)] if len(orbitals) == 1 else [(0, 0), (0, 1), (1, 1)]
    n = orbitals[0].shape[1]
    found = tuple(_unpacked(source, orbitals[i], orbitals[j], n, max_memory_bytes) for i, j in pairs)
    return found if len(found) > 1 else found[0]


def _unpacked(source: Any, left: Matrix, right: Matrix, n: int, max_memory_bytes: int) -> Matrix:
    from pyscf import ao2mo

    made = transformed(source, left, right, max_memory_bytes)
    return np.asarray(ao2mo.restore(1, made, n)) if left is right else hamiltonians.unpacked(made, n)


def integrals_of(mf: Any, max_memory_bytes: int) -> Any:
    """Two-electron integrals of an object as a source for `transformed`, which may use it several times; the
    molecule if they are too large. Raises OutcoreError (EINVAL), see `outcore.chem.ri.given.packed_of`."""
    found = packed_of(mf)
    if found is not None:
        return found
    functions = mf.mol.nao
    packed = (functions * (functions + 1) // 2) ** 2 * 8 // 2
    return mf.mol.intor("int2e", aosym="s8") if packed * 2 < max_memory_bytes else mf.mol


def transformed(source: Any, left: Matrix, right: Matrix, max_memory_bytes: int) -> Matrix:
    """(pq|rs) as [pq][rs], for pairs p >= q of orbitals on the left and on the right. Data that does not fit into
    memory lies in the directory of `temporary`."""
    from pyscf import ao2mo

    made = ao2mo.kernel(
        source, (left, left, right, right), compact=True, verbose=0, max_memory=max_memory_bytes / 1e6
    )
    return np.asarray(made, np.float64)


def integral_bytes(orbitals: int, *, unrestricted: bool) -> int:
    """Bytes of all two-electron integrals of so many active orbitals. Each process has them all."""
    return (3 if unrestricted else 1) * 8 * orbitals**4


def transform_bytes(functions: int, orbitals: int, *, unrestricted: bool) -> int:
    """The least memory that the first process needs to transform exact integrals: the copies that exist while they
    are made symmetric, half-transformed integrals, rows over functions; and half as much again for PySCF's
    integrals over functions, which take a third of the memory."""
    pairs, done = functions * (functions + 1) // 2, orbitals * (orbitals + 1) // 2
    copies = integral_bytes(orbitals, unrestricted=unrestricted) + _COPIES * 8 * orbitals**4
    half, rows = _HALVES * 8 * pairs * done, _ROWS * 8 * (pairs + 2 * done)
    return (copies + half + rows) * 3 // 2


def _is_fitted(mf: Any) -> bool:
    # Not as an attribute: PySCF would import all of itself to look for one that is not there.
    return vars(mf).get("with_df") is not None


def _fitted(mf: Any, orbitals: list[Matrix]) -> Any:
    """Integrals of density fitting: sums over the auxiliary functions."""
    from pyscf import lib

    if getattr(mf, "only_dfj", False):
        raise _refused("only J is density-fitted; fit J and K, or neither")
    n = orbitals[0].shape[1]
    pairs = [(0, 0)] if len(orbitals) == 1 else [(0, 0), (0, 1), (1, 1)]
    found = [np.zeros((n * n, n * n)) for _ in pairs]
    for block in mf.with_df.loop():
        whole = lib.unpack_tril(np.asarray(block))
        parts = [np.einsum("Lab,ap,bq->Lpq", whole, c, c, optimize=True).reshape(-1, n * n) for c in orbitals]
        for k, (i, j) in enumerate(pairs):
            found[k] += parts[i].T @ parts[j]
    tensors = tuple(each.reshape((n,) * 4) for each in found)
    return tensors if len(tensors) > 1 else tensors[0]


@contextmanager
def temporary(scratch: str | None) -> Iterator[None]:
    """A context in which PySCF puts data that does not fit into memory into the directory `scratch`, if given."""
    from pyscf.lib import param

    before = param.TMPDIR
    param.TMPDIR = scratch or before
    try:
        yield
    finally:
        param.TMPDIR = before


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _TAKE, detail=detail)
