"""The orbitals of a CASSCF for NEVPT2: core and virtual ones that diagonalize the Fock matrix of a state, and the
integrals over active orbitals."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem.ci.fci_solver import CIVector
from outcore.chem.ri.given import is_of_functions

if TYPE_CHECKING:
    from outcore.chem.frozen import Asked
    from outcore.job.world import World

Matrix = NDArray[np.float64]

TITLE = "NEVPT2"
_EQUAL = 1e-5  # Hartree: orbitals whose energies differ by less are degenerate
_WEIGHTS = (1.0, np.sqrt(2.0), np.sqrt(3.0))  # of x^2, y^2, z^2: no two directions are alike
_SAME = 1e-6  # Hartree: largest difference of a state's energies from its densities and from the solver


@dataclass(frozen=True, eq=False)
class CasOrbitals:
    """core, active, virtual: coefficients [function][orbital] of the correlated core and virtual orbitals, and of
    the active ones in the order of the state's strings. Energies in Hartree.

    h, g: over active orbitals: one-electron integrals in the field of the core, and (pq|rs).
    core_field: over functions: one-electron integrals in the field of the core.
    e_core: energy of core electrons and nuclei. frozen: orbitals that are not correlated.
    """

    core: Matrix
    active: Matrix
    virtual: Matrix
    core_energies: Matrix
    virtual_energies: Matrix
    h: Matrix
    g: Matrix
    core_field: Matrix
    e_core: float
    frozen: frozen_orbitals.Frozen

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of core, active and virtual orbitals."""
        return self.core.shape[1], self.active.shape[1], self.virtual.shape[1]


def states_of(mc: Any) -> list[CIVector]:
    """The states of a CASCI or CASSCF object. Raises OutcoreError (EINVAL, ENOTSUP) if it has none, or if they are
    not those of FCISolver."""
    found = getattr(mc, "ci", None)
    if found is None:
        raise refused("there are no states; run mc.kernel() first")
    states = list(found) if isinstance(found, list | tuple) else [found]
    if not all(isinstance(each, CIVector) for each in states):
        raise refused(
            "states are those of outcore.chem.ci.FCISolver: set mc.fcisolver, and run mc.kernel()",
            errno.ENOTSUP,
        )
    return states


def state_of(mc: Any, root: int) -> CIVector:
    """The state of a root. Raises OutcoreError (EINVAL, ENOTSUP) as `states_of`, or if orbitals differ in spin."""
    states = states_of(mc)
    if not 0 <= root < len(states):
        raise refused(f"root {root}: there are {len(states)}, counted from 0")
    state: CIVector = states[root]
    if state.ci.hamiltonian.unrestricted or np.ndim(mc.mo_coeff) != 2:
        raise refused("orbitals of spin alpha and beta differ", errno.ENOTSUP)
    return state


def energy_of(mc: Any, root: int) -> float:
    """The energy of a root (Hartree), as the object has it."""
    for name in ("e_states", "e_tot"):
        found = getattr(mc, name, None)
        if found is not None and (np.ndim(found) == 1 or name == "e_tot"):
            return float(found[root] if np.ndim(found) else found)
    raise refused("there is no energy; run mc.kernel() first")


def of(
    world: World, mc: Any, state: CIVector, energy: float, frozen: Asked, frozen_virtual: Asked
) -> CasOrbitals:
    """The orbitals for a state; all processes get those of the first. Collective. Raises OutcoreError (EINVAL)."""
    mo = np.asarray(mc.mo_coeff, np.float64)
    order = state.ci.hamiltonian.permutation
    first, last = int(mc.ncore), int(mc.ncore) + int(mc.ncas)
    if last - first != len(order):
        raise refused(f"{last - first} active orbitals, but a state of {len(order)}")
    core, active, virtual = mo[:, :first], mo[:, first:last][:, order], mo[:, last:]
    density = 2 * core @ core.T
    # Every process makes the calls that may be collective; the results of the first count.
    h, core_energy = mc.get_h1eff(mo)
    g = mc.get_h2eff(mo)
    hcore = np.asarray(mc.get_hcore())
    of_core = hcore + np.asarray(mc.get_veff(mc.mol, density)) if first else hcore
    one = state.ci.densities(state.root).one
    fock = hcore + np.asarray(mc.get_veff(mc.mol, density + active @ one @ active.T))
    found: CasOrbitals | None = None
    with world.together(TITLE, frozen is not None, frozen_virtual is not None):
        if world.rank == 0:
            from pyscf import ao2mo

            pair, four = np.ix_(order, order), np.ix_(order, order, order, order)
            h, g = np.asarray(h)[pair], ao2mo.restore(1, np.asarray(g), last - first)[four]
            _check_energy(state, h, g, float(core_energy), energy)
            frozen_found, inside, outside = _correlated(mc.mol, frozen, frozen_virtual, core, virtual)
            extent = _extent(mc.mol, np.asarray(mc._scf.get_ovlp()))
            core_energies, core = _canonical(core, fock, extent)
            virtual_energies, virtual = _canonical(virtual, fock, extent)
            found = CasOrbitals(
                core[:, inside],
                active,
                virtual[:, outside],
                core_energies[inside],
                virtual_energies[outside],
                np.ascontiguousarray(h),
                np.ascontiguousarray(g),
                of_core,
                float(core_energy),
                frozen_found,
            )
    return world.broadcast(found)  # type: ignore[return-value]


def _check_energy(state: CIVector, h: Matrix, g: Matrix, core_energy: float, energy: float) -> None:
    """Raises OutcoreError (EINVAL) if the state does not have its energy in these orbitals."""
    densities = state.ci.densities(state.root)
    found = core_energy + float(np.sum(h * densities.one) + np.sum(g * densities.two) / 2)
    if abs(found - energy) > _SAME:
        raise refused(
            f"in the orbitals of mc the state has {found:.8f} Eh, not {energy:.8f}: it was found with other "
            "orbitals; run mc.kernel() again"
        )


def _correlated(
    mol: Any, frozen: Asked, virtual: Asked, core: Matrix, outer: Matrix
) -> tuple[frozen_orbitals.Frozen, Any, Any]:
    """The frozen orbitals, and positions of the other core and of the other virtual orbitals."""
    count = core.shape[1]
    numbers = np.arange(count + outer.shape[1])
    found = frozen_orbitals.of(mol, frozen, virtual, [(numbers, count)])
    refuse_lists(found)
    inside, outside = found.active(0, numbers, count)
    return found, inside, outside - count


def refuse_lists(frozen: frozen_orbitals.Frozen) -> None:
    """Raises OutcoreError (ENOTSUP) if frozen orbitals are listed."""
    if frozen.has_list:
        raise refused(
            "a list of frozen orbitals: core and virtual orbitals are mixed here until they diagonalize the Fock "
            "matrix; give numbers of the lowest and of the highest ones",
            errno.ENOTSUP,
        )


def _canonical(coefficients: Matrix, fock: Matrix, extent: Matrix | None) -> tuple[Matrix, Matrix]:
    """Energies and canonical orbitals. Energies of perturbers depend on the rotation of degenerate orbitals. These
    are made to diagonalize `extent`, so that runs repeat, and orbitals of linear molecules lie in planes."""
    energies, rotation = np.linalg.eigh(coefficients.T @ fock @ coefficients)
    found = coefficients @ rotation
    ends = np.flatnonzero(np.diff(energies, append=np.inf) > _EQUAL) + 1
    for begin, end in pairwise((0, *ends)) if extent is not None else ():
        if end - begin > 1:
            some = found[:, begin:end]
            found[:, begin:end] = some @ np.linalg.eigh(some.T @ extent @ some)[1]
    return np.einsum("mi,mn,ni->i", found, fock, found), np.ascontiguousarray(found)


def _extent(mol: Any, overlap: Matrix) -> Matrix | None:
    """The matrix of x^2, y^2 and z^2 over functions, each with its own weight; None for a model, whose functions
    have no place."""
    if not is_of_functions(overlap, mol):
        return None
    charges, places = mol.atom_charges(), mol.atom_coords()
    with mol.with_common_origin(charges @ places / max(charges.sum(), 1)):
        moments = mol.intor_symmetric("int1e_rr").reshape(3, 3, *overlap.shape)
    return np.asarray(sum(weight * moments[x, x] for x, weight in enumerate(_WEIGHTS)))


def refused(detail: str, number: int = errno.EINVAL) -> OutcoreError:
    return OutcoreError(number, TITLE, detail=detail)
