"""Orbitals of a multireference CI: frozen, inactive, active and external ones, and their irreps."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import reference
from outcore.chem.ci import fcidump
from outcore.chem.mrci import integrals, spaces
from outcore.chem.mrci.configurations import MAX_INTERNAL
from outcore.chem.mrci.integrals import TwoElectron
from outcore.chem.mrci.records import Orbitals
from outcore.chem.mrci.spaces import Asked, GivenOrbitals, OrbitalChoice, OrbitalSpaces
from outcore.chem.symmetry import ABELIAN, IRREPS, irrep_of_linear, made_symmetric, with_symmetry

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

_TAKE = "take the orbitals of a multireference CI"
_ORTHONORMAL = 1e-6


@dataclass(frozen=True)
class Group:
    """An abelian point group and its irreps; the group of orbitals in a file may have no name. molecular: the
    group of the molecule, which is larger if the molecule is linear or an atom."""

    name: str
    irreps: tuple[str, ...]
    molecular: str = ""

    @classmethod
    def of(cls, mol: Mole | None) -> Group:
        """The group of a molecule that was built with symmetry, else C1."""
        name = str(mol.groupname) if mol is not None and mol.symmetry else "C1"
        abelian = ABELIAN.get(name, name)
        return cls(abelian, IRREPS[abelian], name)

    def number_of(self, irrep: str | int) -> int:
        """The number of an irrep, by its name; for linear molecules also by PySCF's name, such as A1g and E1ux.
        Raises OutcoreError (EINVAL)."""
        found = irrep_of_linear(self.molecular, irrep)
        if found is not None:
            return found
        wanted = str(irrep).strip().casefold().replace("''", '"')
        for number, name in enumerate(self.irreps):
            if name.casefold() == wanted:
                return number
        raise OutcoreError(
            errno.EINVAL, f"irrep {irrep}", detail=f"point group {self.name} has {', '.join(self.irreps)}"
        )


@dataclass(frozen=True, eq=False)
class Correlated:
    """The correlated orbitals: internal ones (inactive, active), then external ones, sorted by irrep.

    Attributes:
        one: [n][n] with the field of the frozen orbitals (Hartree).
        electrons: alpha, beta, without those of frozen orbitals.
        permutation: orbital k here is orbital permutation[k] of the caller, counted without frozen orbitals.
        coefficients, frozen: [function][orbital], None without a molecule.
        irrep: of the determinant of the mean field.
        notes: lines about assumptions for a file, and about changes that make orbitals and integrals symmetric.
    """

    one: Matrix
    two: TwoElectron
    core_energy: float
    orbitals: Orbitals
    choice: OrbitalChoice
    electrons: tuple[int, int]
    group: Group
    permutation: Integers
    irrep: int
    mol: Mole | None = None
    coefficients: Matrix | None = None
    frozen: Matrix | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.one)


def of_mean_field(mf: Any, world: World, asked: Asked, *, group: str | None = None) -> Correlated:
    """The orbitals of a converged RHF or ROHF object by occupation and energy, without integrals. Collective; all
    processes get those of the first.

    Raises OutcoreError (EINVAL)."""
    found: Any = None
    with world.together(_TAKE, str(asked), group):
        reference.check_method(mf, _TAKE)
        if world.rank == 0:
            if not mf.converged:
                raise _refused("the SCF has not converged (mf.converged is False)")
            occupation = np.round(np.asarray(mf.mo_occ, np.float64))
            if occupation.ndim != 1:
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            order = np.lexsort((np.asarray(mf.mo_energy), -occupation))
            given = GivenOrbitals(
                order.astype(np.int64), int((occupation == 2).sum()), int((occupation == 1).sum())
            )
            sorted_ones = np.asarray(mf.mo_coeff)[:, order], np.asarray(mf.mo_energy)[order]
            alike = spaces.before_irreps(mf.mol, asked, given)
            choose = partial(spaces.choose, mf.mol, asked, given)
            found = _of_coefficients(mf, sorted_ones, alike, choose, group)
    shared: Correlated = world.broadcast(found)
    return shared


def of_active_space(mc: Any, world: World, asked: Asked, *, group: str | None = None) -> Correlated:
    """The orbitals of a CASCI or CASSCF object of PySCF, without integrals: its core becomes frozen and inactive
    orbitals, its active space the active ones. asked: only its frozen orbitals are used. Collective. Raises
    OutcoreError (EINVAL)."""
    found: Any = None
    with world.together(_TAKE, str(asked), group):
        for name in ("mo_coeff", "ncore", "ncas", "nelecas", "_scf"):
            if getattr(mc, name, None) is None:
                raise _refused(
                    f"{type(mc).__name__} is no CASCI or CASSCF object of PySCF that has run (no {name})"
                )
        if world.rank == 0:
            if np.ndim(mc.mo_coeff) != 2 or not isinstance(mc.ncore, (int, np.integer)):
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            chosen = _of_casci(mc, asked)
            alike = np.zeros(mc.mo_coeff.shape[1], np.int64)
            for k, positions in enumerate((chosen.frozen, chosen.inactive, chosen.active, chosen.left_out)):
                alike[positions] = k + 1
            given = np.asarray(mc.mo_coeff), getattr(mc, "mo_energy", None)
            found = _of_coefficients(mc._scf, given, alike, lambda *_: chosen, group, tuple(mc.nelecas))
    shared: Correlated = world.broadcast(found)
    return shared


def _of_casci(mc: Any, asked: Asked) -> OrbitalSpaces:
    core, active = int(mc.ncore), np.arange(int(mc.ncore), int(mc.ncore) + int(mc.ncas))
    numbers = np.arange(mc.mo_coeff.shape[1])
    left_out = frozen_orbitals.of(mc.mol, asked.frozen, asked.frozen_virtual, [(numbers, core)])
    left = np.concatenate(left_out.active(0, numbers, core))
    frozen = np.setdiff1d(active, left)
    if len(frozen):
        raise _refused(f"orbital {frozen[0]} (from 0) is active in the CASCI object; it cannot be frozen")
    rest = np.setdiff1d(numbers, left)
    external = np.setdiff1d(left[left >= core], active)
    return OrbitalSpaces(rest[rest < core], left[left < core], active, external, rest[rest >= core])


def of_file(path: Path, world: World, asked: Asked) -> Correlated:
    """The orbitals and integrals of an FCIDUMP file. If only numbers of orbitals are given, the file has frozen,
    inactive, active and external orbitals in this order. Collective. Raises OutcoreError."""
    found: Any = None
    with world.together("read FCIDUMP", str(path), str(asked)):
        if world.rank == 0:
            dump = fcidump.read(path)
            h = dump.hamiltonian
            if h.unrestricted:
                raise _refused("orbitals of spin alpha and beta differ; take RHF, ROHF or CASSCF orbitals")
            back = h.positions
            group = Group(h.group or "of the orbitals", h.names)
            irreps = np.asarray(h.irreps)[back]
            given = GivenOrbitals.of(len(back), dump.electrons)
            chosen = spaces.choose(None, asked, given, irreps, group.number_of)
            order, correlated = _order(chosen, irreps)
            one, two = h.ones[0][np.ix_(back, back)], h.twos[0][np.ix_(back, back, back, back)]
            core, one, two = _without_core(h.core_energy, one, two, chosen.frozen, order)
            choice = chosen.choice
            electrons = dump.electrons[0] - choice.frozen, dump.electrons[1] - choice.frozen
            check_choice(choice, len(one), electrons)
            p, q = np.tril_indices(len(one))
            found = Correlated(
                one,
                integrals.of_whole(two[p, q][:, p, q], choice.internal),
                core,
                _labels(choice, irreps[order], h.groups),
                choice,
                electrons,
                group,
                correlated,
                dump.irrep,
                notes=(*dump.notes, *h.notes, *chosen.notes),
            )
    shared: Correlated = world.broadcast(found)
    return shared


def _without_core(
    energy: float, one: Matrix, two: Matrix, core: Integers, rest: Integers
) -> tuple[float, Matrix, Matrix]:
    """Energy and integrals of the orbitals `rest` in the field of the orbitals `core`, which are doubly
    occupied."""
    coulomb = np.einsum("pqii->pq", two[:, :, core][..., core])
    field = 2 * coulomb - np.einsum("piiq->pq", two[:, core][:, :, core])
    energy += float(np.trace((2 * one + field)[np.ix_(core, core)]))
    return energy, (one + field)[np.ix_(rest, rest)], two[np.ix_(rest, rest, rest, rest)]


def check_choice(choice: OrbitalChoice, orbitals: int, electrons: tuple[int, int]) -> None:
    """Checks a choice among so many orbitals above the frozen ones, with so many electrons in them. Raises
    OutcoreError (EINVAL)."""
    if min(choice.frozen, choice.inactive, choice.active) < 0 or (choice.internal < 1 and max(electrons) > 0):
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


def _order(chosen: OrbitalSpaces, irreps: Integers) -> tuple[Integers, Integers]:
    """Positions of the correlated orbitals: inactive and active ones in the given order, external ones by irrep;
    and their ranks among correlated orbitals."""
    external = chosen.external[np.argsort(irreps[chosen.external], kind="stable")]
    order = np.concatenate([chosen.inactive, chosen.active, external])
    return order, np.searchsorted(np.sort(order), order)


def _labels(choice: OrbitalChoice, irreps: Integers, groups: int) -> Orbitals:
    labels = tuple(int(each) for each in irreps)
    return Orbitals(labels[: choice.internal], labels[choice.internal :], groups)


def _of_coefficients(
    mf: Any,
    given: tuple[Matrix, Matrix | None],
    alike: Integers,
    choose: Callable[[Integers, Callable[[str], int]], OrbitalSpaces],
    group: str | None,
    active_electrons: tuple[int, int] | None = None,
) -> Correlated:
    """The correlated orbitals without integrals. given: coefficients, and energies (Hartree) if orbitals have any.
    alike: a number for each orbital, equal for orbitals that may be mixed. choose: chooses the spaces, from the
    irreps and a function that returns the number of an irrep by name."""
    mol = mf.mol
    overlap = np.asarray(mf.get_ovlp())
    c = np.asarray(given[0], np.float64)
    energies: Matrix = np.arange(float(c.shape[1])) if given[1] is None else np.asarray(given[1], np.float64)
    if len(c) != len(overlap) or abs(c.T @ overlap @ c - np.eye(c.shape[1])).max() > _ORTHONORMAL:
        raise _refused("the orbitals are not orthonormal in the present molecule and basis")
    labelled = with_symmetry(mol, group)
    irreps: Integers = np.zeros(c.shape[1], np.int64)
    notes: tuple[str, ...] = ()
    if labelled is not None:
        found = made_symmetric(labelled, c, overlap, energies, alike)
        c, irreps, notes = found.coefficients, found.irreps, found.notes
    point_group = Group.of(labelled)
    chosen = choose(irreps, point_group.number_of)
    choice = chosen.choice
    electrons = mol.nelec[0] - choice.frozen, mol.nelec[1] - choice.frozen
    if active_electrons is not None:
        electrons = active_electrons[0] + choice.inactive, active_electrons[1] + choice.inactive
    order, correlated = _order(chosen, irreps)
    check_choice(choice, len(order), electrons)
    open_shells = irreps[order[electrons[1] : electrons[0]]]
    rest = np.ascontiguousarray(c[:, order])
    return Correlated(
        np.zeros((rest.shape[1],) * 2),
        integrals.none(),
        0.0,
        _labels(choice, irreps[order], len(point_group.irreps)),
        choice,
        electrons,
        point_group,
        correlated,
        int(np.bitwise_xor.reduce(open_shells)) if len(open_shells) else 0,
        mol,
        rest,
        np.ascontiguousarray(c[:, chosen.frozen]),
        (*notes, *chosen.notes),
    )


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _TAKE, detail=detail)
