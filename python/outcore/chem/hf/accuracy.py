"""How finely integrals are stored for the error of the energy that is allowed; see docs/why/accuracy.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base import html

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyscf.gto import Mole

    from outcore.job.world import World

SIGMAS = 4.0  # the error of the energy exceeds as many standard deviations in 1 of 16 000 cases
LARGEST_STEP = 1e-7  # whatever the density: J and K of other densities stay good
# The variance of what is left out is estimated from what is there. Where that is little, or nothing, it may be more
# by this many terms: the largest that was found, or twice what one at its limit is expected to be.
_FEW_TERMS = 8
# Units in the last place of the one-electron energy, the largest term, that sums lose: from experience, of energies
# that two programs find.
_LOST_UNITS = 32
# Mean of (step * Gamma)^2 over the stored integrals in units of the base step: what rounding up to whole bytes and
# crude densities make of it, from experience. It varies more where integrals are few.
_MEAN_SQUARE = 1 / 4
_FEW = 1e5
# Of the largest density between two functions of an atom with unpaired electrons, from experience.
_MIXED = 0.3
# Of what is allowed, that integrals are stored for after they have missed it with the same density.
_MARGIN = 0.5


@dataclass(frozen=True)
class EnergyError:
    """What storing integrals, and leaving some out, does to an energy (Hartree)."""

    sigma: float  # standard deviation
    worst: float  # if all errors had the worst sign and size
    allowed: float | None  # what was asked for; None: steps were given instead
    arithmetic: float = 0.0  # what sums in double precision may add, here and in what it is compared with

    @property
    def bound(self) -> float:
        """The error that is promised not to be exceeded, in the sense of statistics."""
        return SIGMAS * self.sigma + self.arithmetic

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("bound of the error", f"{self.bound:.1e} Eh"),
            ("asked for", None if self.allowed is None else f"{self.allowed:.1e} Eh"),
            ("standard deviation", f"{self.sigma:.1e} Eh"),
            ("if all errors had the worst sign", f"{self.worst:.1e} Eh"),
        ]
        return html.facts("Error of the energy by stored integrals", rows)

    @property
    def kept(self) -> bool:
        """What was asked for is kept; finer integrals do not help against what arithmetic adds."""
        return self.allowed is None or SIGMAS * self.sigma <= self.allowed


@dataclass(frozen=True)
class Finer:
    """For integrals that are stored again, because the first ones do not keep the error that is allowed."""

    densities: NDArray[
        np.float64
    ]  # [1][n][n] of closed shells, [2][n][n] of each spin: of the orbitals found
    factor: float  # times the error allowed: what steps are made for

    def with_crude(self, crude: NDArray[np.float64]) -> NDArray[np.float64]:
        """All densities [..][n][n] that steps are made for. Exchange of two spins is that of their sum and their
        difference, as if each were of closed shells."""
        spins = self.densities
        own = spins if len(spins) == 1 else np.array([spins[0] + spins[1], spins[0] - spins[1]])
        return np.concatenate([crude, own])


def finer(before: Finer | None, densities: NDArray[np.float64], error: EnergyError) -> Finer:
    """What follows `before` (None: crude densities alone), whose `error`, of these densities, is above what is
    allowed: first the densities themselves, then smaller steps for them."""
    if before is None or error.allowed is None:
        return Finer(densities, 1.0)
    return Finer(densities, before.factor * _MARGIN * min(1.0, error.allowed / (SIGMAS * error.sigma)))


def sigma(variance: float, largest: float, term: float) -> float:
    """Standard deviation of the energy from its variance, the largest term in it of what is left out, and what a
    quartet at its limit adds to the energy."""
    return math.sqrt(variance + _FEW_TERMS * (largest + (2 * term) ** 2))


def for_error(
    basis: _core.Basis,
    densities: NDArray[np.float64],
    error: float,
    threads: int,
    world: World,
    group: _core.ShellGroup | None = None,
) -> tuple[_core.Accuracy, float]:
    """Steps that keep the energy's error below `error`, from densities [..][n][n], and what a quartet at its
    limit adds to the energy of these. group: of shells, by which quartets stand for others: their values, copies
    counted, err as those of any other quartet. Collective; the same on all processes."""
    with world.together("accuracy of the integrals"):
        integrals = _core.Screening(
            basis, error / 10, threads, None, group
        ).integrals  # about as many will be stored
        squares = _MEAN_SQUARE * (integrals + math.sqrt(_FEW * integrals))
        base = min(1.0, error / SIGMAS * math.sqrt(12 / squares))
        steps = _core.Accuracy(basis, densities, base, min(LARGEST_STEP, 100 * error))
        return steps, steps.share * base


def arithmetic(one_electron_energy: float) -> float:
    """What sums in double precision may add to the error of an energy (Hartree)."""
    return _LOST_UNITS * math.ulp(1.0) * abs(one_electron_energy)


def crude_densities(mol: Mole) -> NDArray[np.float64]:
    """Densities [2][n][n] that need no two-electron integrals: of the superposition of atomic potentials (Lehtola,
    J. Chem. Theory Comput. 15, 1593 (2019)), which fills all functions, and of atoms in a minimal basis."""
    from pyscf.scf import hf

    n = mol.nao
    densities = np.zeros((2, n, n))
    overlap = hf.get_ovlp(mol)
    energies, orbitals = hf.eig(hf.get_hcore(mol) + _atomic_potentials(mol), overlap)
    pairs = (mol.nelectron + 1) // 2
    occupied = orbitals[:, np.argsort(energies)[:pairs]]
    densities[0] = 2 * occupied @ occupied.T
    densities[1] = hf.init_guess_by_minao(mol)
    if mol.spin:
        _mix_shells(mol, densities)
    return densities


def _mix_shells(mol: Mole, densities: NDArray[np.float64]) -> None:
    """Adds to the densities of each atom, between its functions, a part of what they may be: unpaired electrons mix
    shells, such as s and d of a metal, that the symmetry of crude densities keeps apart."""
    for *_, first, last in mol.aoslice_by_atom():
        atom = slice(first, last)
        for density in densities:
            filled = np.sqrt(np.abs(np.diagonal(density)[atom]))
            density[atom, atom] += _MIXED * np.outer(filled, filled)


def _atomic_potentials(mol: Mole) -> NDArray[np.float64]:
    """Potential of the electrons of neutral atoms, exchange included, as far as the basis has them (effective core
    potentials stand for the others)."""
    from pyscf.data.elements import charge as nuclear_charge
    from pyscf.gto.basis import load
    from pyscf.gto.mole import conc_env, fakemol_for_cgtf_charge
    from pyscf.gto.moleintor import getints
    from pyscf.lib import unpack_tril
    from pyscf.scf.hf import SCF

    @cache
    def shape_of(symbol: str) -> Any:
        return np.array(load(SCF.sap_basis, symbol)[0][1:]).T

    potential = np.zeros(mol.nao * (mol.nao + 1) // 2)
    shells = (0, mol.nbas, 0, mol.nbas, mol.nbas, mol.nbas + 1)  # of the last the charge
    for atom in range(mol.natm):
        electrons = mol.atom_charge(atom)
        if electrons == 0:  # a ghost: functions without a nucleus
            continue
        symbol = mol.atom_pure_symbol(atom)
        charge = fakemol_for_cgtf_charge(mol.atom_coord(atom)[None], *shape_of(symbol))
        joined = conc_env(mol._atm, mol._bas, mol._env, charge._atm, charge._bas, charge._env)
        of_charge = getints(mol._add_suffix("int3c2e"), *joined, shells, aosym="s2ij")
        potential -= electrons / nuclear_charge(symbol) * of_charge[:, 0]
    full: NDArray[np.float64] = unpack_tril(potential)
    return full
