"""Geometries of least energy, CCSD(T)/cc-pVTZ with frozen cores: water, formaldehyde, ozone.

Each case runs `outcore optimize` with the tightest limits of geomeTRIC, and again from the geometry that it found,
until no element of the gradient is above the bar. At the final geometry the energy is compared with that of PySCF
with the same auxiliary functions. The gradient along a random direction is compared with derivatives from energies
of Outcore and of PySCF: four energies each, at steps of h and 2 h to either side, with an error of order h^4.
Distances and angles are shown without a bar. --quick takes water in 6-31G.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_most

HAS_CASES = True
STATIONARY = 1e-6  # Hartree/Bohr, for each element of a gradient
SAME_DERIVATIVE = 1e-7  # Hartree/Bohr, along a direction of unit length
SAME_ENERGY = 1e-7  # Hartree
STEP = 4e-3  # Bohr
MEMORY = "1GB"
_RUNS = 4  # at most so many runs of the command, each from the geometry of the last
_SEED = 44
_BONDED = 2.0  # Angstrom


@dataclass(frozen=True)
class Case:
    """atoms: "element x y z" in Angstrom, from which the search begins. jk, ri: auxiliary sets."""

    name: str
    atoms: tuple[str, ...]
    basis: str = "cc-pvtz"
    jk: str = "cc-pvtz-jkfit"
    ri: str = "cc-pvtz-ri"

    @property
    def title(self) -> str:
        return f"{self.name}/{self.basis}"


_WATER = ("O 0 0 0.06", "H 0 0.76 -0.52", "H 0 -0.76 -0.52")
SMALL = Case("water", _WATER, "6-31g", "def2-svp-jkfit", "def2-svp-ri")
CASES = (
    Case("water", _WATER),
    Case("formaldehyde", ("C 0 0 -0.53", "O 0 0 0.68", "H 0 0.94 -1.12", "H 0 -0.94 -1.12")),
    Case("ozone", ("O 0 0 0.43", "O 0 1.08 -0.22", "O 0 -1.08 -0.22")),
)


def run(options: BenchOptions) -> list[Claim]:
    return [claim for each in ((SMALL,) if options.quick else CASES) for claim in _claims(options, each)]


def _claims(options: BenchOptions, case: Case) -> list[Claim]:
    import pyscf

    peer = f"PySCF {pyscf.__version__}"
    found = options.case(f"{case.title}, geometry", lambda: _optimized(options, case))
    options.ran(case.title, found["run"])
    atoms = found["geometry"]
    ours, theirs = (
        options.case(f"{case.title}, {name}", partial(_derivative, case, atoms, energy))
        for name, energy in (("energies", _energy), ("energies of PySCF", _energy_of_pyscf))
    )
    along = float(np.sum(np.array(found["gradient"]) * _direction(case, len(atoms))))
    slope = "derivative along a random direction at the end"
    return [
        Claim(
            f"{case.title}: largest element of the gradient",
            float(np.abs(found["gradient"]).max()),
            "Eh/bohr",
            at_most(STATIONARY),
            "",
            f"{sum(found['steps'])} gradients in {len(found['steps'])} runs of outcore optimize",
        ),
        Claim(
            f"{case.title}: {slope}, gradient against energies",
            abs(along - ours["derivative"]),
            "Eh/bohr",
            at_most(SAME_DERIVATIVE),
            "ours",
            "four energies",
        ),
        Claim(
            f"{case.title}: {slope}, energies of PySCF",
            abs(theirs["derivative"]),
            "Eh/bohr",
            at_most(STATIONARY),
            peer,
            "four energies",
        ),
        Claim(
            f"{case.title}: energy against PySCF's",
            abs(ours["energy"] - theirs["energy"]),
            "Eh",
            at_most(SAME_ENERGY),
            peer,
            f"ours {ours['energy']:.9f} Eh",
        ),
        *_shape(case, atoms),
    ]


def _shape(case: Case, atoms: list[Any]) -> list[Claim]:
    """Bond distances and bond angles; those that are equal by symmetry appear once."""
    places = np.array([place for _, *place in atoms])
    bonds = [
        pair
        for pair in combinations(range(len(atoms)), 2)
        if np.linalg.norm(np.subtract(*places[list(pair)])) < _BONDED
        and {atoms[each][0] for each in pair} != {"H"}
    ]
    found: dict[str, tuple[float, str]] = {}
    for i, j in bonds:
        name = f"distance {atoms[i][0]}-{atoms[j][0]}"
        found[name] = float(np.linalg.norm(places[i] - places[j])), "Angstrom"
    for first, second in combinations(bonds, 2):
        (middle,) = set(first) & set(second) or (None,)
        if middle is None:
            continue
        i, j = (next(each for each in bond if each != middle) for bond in (first, second))
        left, right = places[i] - places[middle], places[j] - places[middle]
        angle = np.degrees(np.arccos(left @ right / np.linalg.norm(left) / np.linalg.norm(right)))
        found[f"angle {atoms[i][0]}-{atoms[middle][0]}-{atoms[j][0]}"] = float(angle), "degrees"
    return [
        Claim(f"{case.title}: {name}", value, unit, None, "", "") for name, (value, unit) in found.items()
    ]


# ---- the search ----


def _optimized(options: BenchOptions, case: Case) -> dict[str, Any]:
    """Final geometry (symbols, coordinates in Angstrom) and gradient, steps of each run, results of the last
    run."""
    atoms: list[Any] = [[symbol, *map(float, place)] for symbol, *place in map(str.split, case.atoms)]
    steps: list[int] = []
    while True:
        said = _run(options, case, atoms)
        atoms, gradient = said["geometry_angstrom"], said["gradient_hartree_per_bohr"]
        steps.append(said["steps"])
        largest = float(np.abs(gradient).max())
        options.say(f"{case.title}: {steps[-1]} steps, largest element {largest:.1e} Eh/bohr")
        if largest <= STATIONARY or len(steps) == _RUNS:
            return {"geometry": atoms, "gradient": gradient, "steps": steps, "run": said}


def _run(options: BenchOptions, case: Case, atoms: list[Any]) -> dict[str, Any]:
    """Runs one command to its end; returns its results (--json)."""
    molecule, results = options.scratch / "molecule.xyz", options.scratch / "results.json"
    lines = [f"{symbol} {x:.12f} {y:.12f} {z:.12f}" for symbol, x, y, z in atoms]
    molecule.write_text("\n".join([str(len(lines)), case.name, *lines]) + "\n")
    command = [
        sys.executable, "-m", "outcore", "optimize", str(molecule), "--method", "ccsd(t)", "--basis", case.basis,
        "--jkbasis", case.jk, "--auxbasis", case.ri, "--frozen", "auto", "--convergence", "GAU_VERYTIGHT",
        "--memory", MEMORY, "--threads", "1", "--scratch", str(options.scratch), "--json", str(results), "--quiet",
    ]  # fmt: skip
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(results.read_text())
    for path in (molecule, results):
        path.unlink()
    return found


# ---- energies ----


def _direction(case: Case, atoms: int) -> Any:
    """A random direction [atom][x] of unit length, without translations."""
    found = np.random.default_rng([_SEED, len(case.name)]).normal(size=(atoms, 3))
    found -= found.mean(axis=0)
    return found / np.linalg.norm(found)


def _derivative(case: Case, atoms: list[Any], energy: Any) -> dict[str, float]:
    """The energy, and its derivative along the direction."""
    import pyscf

    mol = pyscf.M(atom=atoms, unit="Angstrom", basis=case.basis, verbose=0)
    direction, found = _direction(case, mol.natm), {}
    for step in (-2, -1, 0, 1, 2):
        places = mol.atom_coords() + step * STEP * direction
        found[step] = energy(case, mol.set_geom_(places, unit="Bohr", inplace=False))
    near, far = (found[n] - found[-n] for n in (1, 2))
    return {"energy": found[0], "derivative": float((8 * near - far) / (12 * STEP))}


def _energy(case: Case, mol: Any) -> float:
    """Outcore's energy. Integrals of the ladder are recomputed, because stored ones have single precision."""
    from outcore.chem import ri
    from outcore.chem.cc import CCSD

    common: dict[str, Any] = {"comm": None, "memory": MEMORY, "threads": 1}
    with ri.RHF(mol, case.jk, **common) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
        mf.kernel()
        tight: dict[str, Any] = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9, "max_cycle": 100}
        with CCSD(mf, "auto", auxbasis=case.ri, ladder="rebuild", **tight, **common) as cc:
            cc.kernel()
            assert mf.converged and cc.converged
            return float(cc.e_tot + cc.ccsd_t())


def _energy_of_pyscf(case: Case, mol: Any) -> float:
    from pyscf import df, lib, scf
    from pyscf.cc import dfccsd
    from pyscf.data.elements import chemcore

    with lib.with_omp_threads(1):
        mf = scf.RHF(mol).density_fit(auxbasis=case.jk).set(conv_tol=1e-12, conv_tol_grad=1e-8, chkfile=None)
        mf.kernel()
        cc = dfccsd.RCCSD(mf, frozen=chemcore(mol))
        cc.with_df = df.DF(mol, auxbasis=case.ri)
        cc.set(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=100).kernel()
        assert mf.converged and cc.converged
        return float(cc.e_tot + cc.ccsd_t())
