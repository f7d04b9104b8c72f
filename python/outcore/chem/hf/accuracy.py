"""The accuracy with which integrals are stored, for an allowed error of the energy; see docs/why/accuracy.md."""

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

SIGMAS = 4.0  # the error of the energy exceeds so many standard deviations in 1 of 16 000 cases
LARGEST_STEP = 1e-7  # largest step for any density, so that J and K of other densities stay accurate
# The variance from quartets that are left out is estimated from a few of them. If these are few or none, the
# variance may be larger by so many terms: each the largest that was found, or twice the expected one of a quartet
# at its limit.
_FEW_TERMS = 8
# Units in the last place of the one-electron energy, the largest term, that sums lose. From experience with
# energies of two programs.
_LOST_UNITS = 32
# Mean of (step * Gamma)^2 over the stored integrals, in units of the base step, with rounding up to whole bytes and
# crude densities. From experience. It varies more if integrals are few.
_MEAN_SQUARE = 1 / 4
_FEW = 1e5
# Density between two functions of an atom with unpaired electrons, relative to the largest possible. From
# experience.
_MIXED = 0.3
# If integrals miss the allowed error, they are stored again for this share of it with the same density.
_MARGIN = 0.5


@dataclass(frozen=True)
class EnergyError:
    """The error of an energy (Hartree) because integrals are stored with rounding, and some are left out."""

    sigma: float  # standard deviation
    worst: float  # the error if all errors of integrals had the worst sign and size
    allowed: float | None  # the requested bound; None: steps were given instead
    arithmetic: float = 0.0  # possible error of sums in double precision, here and in a reference energy

    @property
    def bound(self) -> float:
        """The statistical bound of the error."""
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
        """Whether the allowed error is kept. The error of arithmetic does not count: finer integrals do not reduce
        it."""
        return self.allowed is None or SIGMAS * self.sigma <= self.allowed


@dataclass(frozen=True)
class Finer:
    """The basis of finer steps, for integrals that are stored again because the first ones miss the allowed
    error."""

    densities: NDArray[
        np.float64
    ]  # of the orbitals found: [1][n][n] for closed shells, [2][n][n] for each spin
    factor: float  # steps are chosen for this factor times the allowed error

    def with_crude(self, crude: NDArray[np.float64]) -> NDArray[np.float64]:
        """All densities [..][n][n] for which steps are chosen. The exchange of two spins equals that of their sum
        and of their difference, each taken as a closed-shell density."""
        spins = self.densities
        own = spins if len(spins) == 1 else np.array([spins[0] + spins[1], spins[0] - spins[1]])
        return np.concatenate([crude, own])


def finer(before: Finer | None, densities: NDArray[np.float64], error: EnergyError) -> Finer:
    """The next basis of finer steps after `before` (None: crude densities only). error: of the energy with these
    densities; it exceeds the allowed one. The first time steps are chosen for the densities themselves, then they
    become smaller."""
    if before is None or error.allowed is None:
        return Finer(densities, 1.0)
    return Finer(densities, before.factor * _MARGIN * min(1.0, error.allowed / (SIGMAS * error.sigma)))


def sigma(variance: float, largest: float, term: float) -> float:
    """Standard deviation of the energy. variance: of the energy. largest: the largest term in it from a quartet
    that is left out. term: contribution to the energy of a quartet at the limit of being left out."""
    return math.sqrt(variance + _FEW_TERMS * (largest + (2 * term) ** 2))


def for_error(
    basis: _core.Basis,
    densities: NDArray[np.float64],
    error: float,
    threads: int,
    world: World,
    group: _core.ShellGroup | None = None,
) -> tuple[_core.Accuracy, float]:
    """Steps that keep the error of the energy below `error`, from densities [..][n][n], and the contribution to the
    energy of a quartet at the limit of being left out. group: operations on shells by which quartets stand for
    others: their values, with copies counted, have errors like those of any other quartet. Collective; the same on
    all processes."""
    with world.together("accuracy of the integrals"):
        integrals = _core.Screening(
            basis, error / 10, threads, None, group
        ).integrals  # about the number that will be stored
        squares = _MEAN_SQUARE * (integrals + math.sqrt(_FEW * integrals))
        base = min(1.0, error / SIGMAS * math.sqrt(12 / squares))
        steps = _core.Accuracy(basis, densities, base, min(LARGEST_STEP, 100 * error))
        return steps, steps.share * base


def arithmetic(one_electron_energy: float) -> float:
    """The possible error of an energy by sums in double precision (Hartree)."""
    return _LOST_UNITS * math.ulp(1.0) * abs(one_electron_energy)


def crude_densities(mol: Mole) -> NDArray[np.float64]:
    """Two densities [2][n][n] that need no two-electron integrals: one from a superposition of atomic potentials
    (Lehtola, J. Chem. Theory Comput. 15, 1593 (2019)), which fills all functions, and one of atoms in a minimal
    basis."""
    from pyscf.scf import hf

    n = mol.nao
    densities = np.zeros((2, n, n))
    overlap = hf.get_ovlp(mol)
    independent = hf.check_linear_dependency(overlap)  # combinations of functions, as the SCF has them
    inside = independent.T @ (hf.get_hcore(mol) + _atomic_potentials(mol)) @ independent
    pairs = (mol.nelectron + 1) // 2
    occupied = independent @ np.linalg.eigh(inside)[1][:, :pairs]
    densities[0] = 2 * occupied @ occupied.T
    densities[1] = hf.init_guess_by_minao(mol)
    if mol.spin:
        _mix_shells(mol, densities)
    return densities


def _mix_shells(mol: Mole, densities: NDArray[np.float64]) -> None:
    """Adds to the density between functions of each atom a part of the largest possible one. Unpaired electrons mix
    shells, such as s and d of a metal, which the symmetry of crude densities keeps apart."""
    for *_, first, last in mol.aoslice_by_atom():
        atom = slice(first, last)
        for density in densities:
            filled = np.sqrt(np.abs(np.diagonal(density)[atom]))
            density[atom, atom] += _MIXED * np.outer(filled, filled)


def _atomic_potentials(mol: Mole) -> NDArray[np.float64]:
    """The potential of the electrons of neutral atoms, with exchange. It includes the electrons in the basis;
    effective core potentials stand for the others."""
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
    shells = (0, mol.nbas, 0, mol.nbas, mol.nbas, mol.nbas + 1)  # the last shell is the charge
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
