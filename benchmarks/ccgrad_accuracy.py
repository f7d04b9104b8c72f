"""Analytic gradients of CCSD and CCSD(T) against finite differences of their own energies.

Twenty molecules of low symmetry, ten closed shells (RHF) and ten open ones (UHF), each with all electrons
correlated and with frozen cores. For each molecule the gradient is compared along three random directions of unit
length, which are orthogonal, so that an error of the gradient is seen unless it is orthogonal to all of them. The
reference derivative comes from four energies, at steps of h and 2 h to either side; its error is of order h^4. SCF
and amplitudes are converged far below the measured errors. Integrals of ladders are recomputed, because stored ones
have single precision. The sums of forces and of torques of each gradient must be zero. --quick takes one molecule
of each kind with frozen cores, along one direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_most

from . import _forces
from ._molecules import Case

HAS_CASES = True
STEP = 2e-3  # Bohr
SAME = 1e-7  # Hartree/Bohr
ZERO = 1e-8  # Hartree/Bohr, and Hartree of a torque
DIRECTIONS = 3  # of each molecule
METHODS = "CCSD", "CCSD(T)"
FROZEN: dict[str, Any] = {"all electrons": 0, "frozen core": "auto"}
_SEED = 44


_WATER = "O 0 0 0.02; H 0.03 0.80 0.58; H 0 -0.74 0.61"
_AMMONIA = "N 0 0 0.1; H 0.94 0.05 -0.25; H -0.45 0.83 -0.27; H -0.5 -0.79 -0.2"
_FORMALDEHYDE = "C 0 0 0.02; O 0.05 0 1.22; H 0.93 0.04 -0.55; H -0.96 0 -0.52"
CLOSED = (
    Case("H2O", _WATER, "6-31g"),
    Case("NH3", _AMMONIA, "6-31g"),
    Case("HCN, bent", "H 0.25 0 -1.02; C 0 0 0.03; N 0 0.1 1.17", "6-31g"),
    Case("HOF", "H 0.9 0.1 0.3; O 0 0 0; F -0.4 1.38 0.05", "6-31g"),
    Case("HNO", "H 0.93 0.05 -0.45; N 0 0 0; O 0 0.1 1.21", "6-31g"),
    Case("CH2O", _FORMALDEHYDE, "sto-3g"),
    Case("H2O2", "O 0 0.7 0; O 0 -0.72 0.03; H 0.8 0.9 0.5; H -0.75 -0.95 0.52", "sto-3g"),
    Case("CH3F", "C 0 0 0; F 0 0.04 1.39; H 1.03 0 -0.36; H -0.5 0.9 -0.33; H -0.53 -0.88 -0.38", "sto-3g"),
    Case("N2H2", "N 0 0.62 0.02; N 0 -0.63 0; H 1 0.9 0.1; H -0.98 -0.9 0.12", "sto-3g"),
    Case("HOCl", "H 0.9 0.1 0.3; O 0 0 0; Cl -0.5 1.62 0.06", "sto-3g"),
)
OPEN = (
    Case("H2O+", _WATER, "6-31g", 1, 1),
    Case("NH2", "N 0.02 0.01 0; H 0.9 0.1 0.3; H -0.5 0.85 -0.1", "6-31g", 0, 1),
    Case("CH2, triplet", "C 0 0 0.02; H 0.85 0.05 0.6; H -0.9 0.1 0.5", "sto-3g", 0, 2),
    Case("CH3", "C 0 0 0.06; H 1.07 0.03 0; H -0.55 0.92 0.05; H -0.5 -0.95 -0.02", "sto-3g", 0, 1),
    Case("NH3+", _AMMONIA, "sto-3g", 1, 1),
    Case("HO2", "H 0.9 0.1 0.35; O 0 0 0; O -0.45 1.25 0.04", "sto-3g", 0, 1),
    Case("HCO", "H 0.9 0.05 -0.6; C 0 0 0; O 0 0.08 1.18", "sto-3g", 0, 1),
    Case("NHF", "H 0.9 0.1 0.4; N 0 0 0; F -0.3 1.33 0.05", "sto-3g", 0, 1),
    Case("CH2O+", _FORMALDEHYDE, "sto-3g", 1, 1),
    Case("CH2OH", "C 0 0 0; O 0 0.05 1.37; H 0.93 0 -0.5; H -0.9 0.2 -0.52; H 0.75 0.1 1.75", "sto-3g", 0, 1),
)


Found = dict[str, Any]


def run(options: BenchOptions) -> list[Claim]:
    claims = []
    directions = 1 if options.quick else DIRECTIONS
    for kind, cases in (("RHF", CLOSED), ("UHF", OPEN)):
        found = [
            _measured(options, kind, number, case, directions)
            for number, case in enumerate(cases[: 1 if options.quick else None])
        ]
        for which, method in found[0]:
            title = f"{kind}-{method}, {which}"
            claims += _claims(title, [each[which, method] for each in found], directions)
    return claims


def _claims(title: str, found: list[Found], directions: int) -> list[Claim]:
    """found: of each molecule."""
    errors = [error for each in found for error in each["errors"]]
    how = (
        f"{len(found)} molecules, each along {directions} random directions, four energies for each; "
        f"median {np.median(errors):.0e}"
    )
    largest = {name: max(each[name] for each in found) for name in ("force", "torque")}
    name, bar = f"{title}: gradient against finite differences, largest", at_most(ZERO)
    return [
        Claim(name, max(errors), "Eh/bohr", at_most(SAME), "", how),
        Claim(f"{title}: sum of forces, largest element", largest["force"], "Eh/bohr", bar, "", ""),
        Claim(f"{title}: torque of forces, largest element", largest["torque"], "Eh", bar, "", ""),
    ]


def _measured(
    options: BenchOptions, kind: str, number: int, case: Case, directions: int
) -> dict[tuple[str, str], Found]:
    """Errors and sums by (correlated orbitals, method)."""
    name = f"{case.name}/{case.basis}, {kind}"
    which = ("frozen core",) if options.quick else tuple(FROZEN)
    found = options.case(name, lambda: _errors(case, which, _SEED + number, directions))
    for each, methods in found.items():
        errors = (f"{method} {max(result['errors']):.1e}" for method, result in methods.items())
        options.say(f"{name}, {each}: " + ", ".join(errors))
    return {(each, method): result for each, methods in found.items() for method, result in methods.items()}


def _errors(case: Case, which: tuple[str, ...], seed: int, count: int) -> dict[str, dict[str, Found]]:
    """|analytic - numeric| along each of `count` directions (Hartree/Bohr), and sums of forces and torques."""
    import pyscf

    given = {"basis": case.basis, "charge": case.charge, "spin": case.spin}
    mol = pyscf.M(atom=case.atoms, unit="Angstrom", verbose=0, **given)
    places = mol.atom_coords()
    start, gradients = _gradients(mol, which)
    errors = []
    for direction in _directions(places.shape, seed, count):
        energies = {}
        for step in (-2, -1, 1, 2):
            moved = mol.set_geom_(places + step * STEP * direction, unit="Bohr", inplace=False)
            energies[step] = _energies(moved, which, start)
        near, far = (energies[n] - energies[-n] for n in (1, 2))
        expected = (8 * near - far) / (12 * STEP)
        errors.append(abs(np.sum(gradients * direction, axis=(2, 3)) - expected))

    def result(number: int, method: int) -> Found:
        gradient = gradients[number, method]
        sums = {"force": _forces.force(gradient), "torque": _forces.torque(places, gradient)}
        return {"errors": [float(each[number, method]) for each in errors], **sums}

    return {
        each: {method: result(number, column) for column, method in enumerate(METHODS)}
        for number, each in enumerate(which)
    }


def _directions(shape: tuple[int, ...], seed: int, count: int) -> Any:
    """Orthogonal random directions of unit length, [number][atom][x]."""
    vectors = np.random.default_rng(seed).normal(size=(count, *shape)).reshape(count, -1)
    return np.linalg.qr(vectors.T)[0].T.reshape(count, *shape)


def _mean_field(mol: Any, density: Any = None) -> Any:
    from outcore.chem import ri

    kind = ri.UHF if mol.spin else ri.RHF
    mf = kind(mol, "def2-svp-jkfit", comm=None, memory="1GB", threads=1)
    # The coupled-cluster energy is linear in the error of the orbitals, which is large where states are close.
    mf.conv_tol, mf.conv_tol_grad, mf.max_cycle = 1e-13, 2e-10, 60
    mf.kernel(density)
    if not mf.converged:
        mf.kernel(_stationary_density(mf))
    assert mf.converged
    return mf


def _stationary_density(mf: Any) -> Any:
    """The density after two steps of Newton's method: where a state is soft, rounding stops DIIS before."""
    from scipy.sparse.linalg import LinearOperator, minres

    second, orbitals = mf.newton(), mf.mo_coeff
    for _ in range(2):
        gradient, product, _ = second.gen_g_hop(orbitals, mf.mo_occ)
        hessian = LinearOperator((gradient.size, gradient.size), matvec=product)
        step, unsolved = minres(hessian, -gradient, rtol=1e-6)
        assert not unsolved
        orbitals = second.rotate_mo(orbitals, second.update_rotate_matrix(step, mf.mo_occ, mo_coeff=orbitals))
    return mf.make_rdm1(orbitals, mf.mo_occ)


def _ccsd(mf: Any, frozen: Any) -> Any:
    from outcore.chem.cc import CCSD

    tight: dict[str, Any] = {"conv_tol": 1e-12, "conv_tol_normt": 1e-10, "max_cycle": 200}
    made = CCSD(
        mf, frozen, auxbasis="def2-svp-ri", comm=None, memory="1GB", threads=1, ladder="rebuild", **tight
    )
    made.kernel()
    assert made.converged
    return made


def _gradients(mol: Any, which: tuple[str, ...]) -> tuple[Any, Any]:
    """The density of the SCF, and the gradients [which][method][atom][x]."""
    found: list[Any] = []
    with _mean_field(mol) as mf:
        for each in which:
            found.append([])
            for triples in (False, True):
                with _ccsd(mf, FROZEN[each]) as cc:
                    if triples:
                        cc.ccsd_t(derivatives=True)
                    found[-1].append(cc.nuc_grad_method().kernel())
        return mf.make_rdm1(), np.array(found)


def _energies(mol: Any, which: tuple[str, ...], density: Any) -> Any:
    """Energies [which][method] (Hartree). The SCF starts from the density of a close geometry, so that it finds the
    same state."""
    found = []
    with _mean_field(mol, density) as mf:
        for each in which:
            with _ccsd(mf, FROZEN[each]) as cc:
                found.append((cc.e_tot, cc.e_tot + cc.ccsd_t()))
    return np.array(found)
