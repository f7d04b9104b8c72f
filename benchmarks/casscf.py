"""CASSCF of PySCF with Outcore's solver and with PySCF's own: energies, times, peak memory.

Each run is a process of its own. The time is that of CASSCF alone; the memory is the peak of the whole process,
with the SCF and the transformation of integrals, which are the same in both. Active orbitals are all pi
orbitals of planar molecules in a minimal basis, and the orbitals around the gap of nitrogen. Energies must
agree to 1e-8 Hartree. --quick takes the smallest case.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.resources import cores, peak_resident_bytes

_BOND, _CH = 1.40, 1.09  # Angstrom
_PI = ("B1u", "B2g", "B3g", "Au")  # irreps of D2h for a molecule in the plane z = 0
_PEER_LIMIT_S = 900.0


@dataclass(frozen=True)
class Case:
    name: str
    atom: str
    basis: str
    orbitals: int  # and as many electrons
    are_pi: bool = True


def hexagons(*centres: float | tuple[float, float]) -> str:
    """Carbon rings with these centres, a number for one on the x axis, and their hydrogen atoms."""
    rings = [
        (x + _BOND * math.cos(math.radians(30 + 60 * k)), y + _BOND * math.sin(math.radians(30 + 60 * k)))
        for x, y in (each if isinstance(each, tuple) else (each, 0.0) for each in centres)
        for k in range(6)
    ]
    carbons = list(dict.fromkeys((round(x, 6), round(y, 6)) for x, y in rings))
    atoms = [f"C {x} {y} 0" for x, y in carbons]
    for place in carbons:
        near = [other for other in carbons if 0.1 < math.dist(place, other) < 1.6]
        if len(near) == 2:
            away = [2 * a - b - c for a, b, c in zip(place, *near, strict=True)]
            x, y = (a + _CH * d / math.hypot(*away) for a, d in zip(place, away, strict=True))
            atoms.append(f"H {x:.6f} {y:.6f} 0")
    return "; ".join(atoms)


_WIDE = _BOND * math.sqrt(3)
NITROGEN = Case("N2/6-31G", "N 0 0 -0.55; N 0 0 0.55", "6-31g", 10, are_pi=False)
BIPHENYLENE = Case("biphenylene/STO-3G", hexagons(-(_WIDE / 2 + 0.755), _WIDE / 2 + 0.755), "sto-3g", 12)
ANTHRACENE = Case("anthracene/STO-3G", hexagons(-_WIDE, 0.0, _WIDE), "sto-3g", 14)
TETRACENE = Case(
    "tetracene/6-31G", hexagons(-1.5 * _WIDE, -0.5 * _WIDE, 0.5 * _WIDE, 1.5 * _WIDE), "6-31g", 18
)
_NAPHTHALENE = (
    1.5 * _BOND + 0.035
)  # its height above the middle of perylene, whose longer bonds are 1.47 Angstrom
PERYLENE = Case(
    "perylene/6-31G",
    hexagons(*((x * _WIDE / 2, y * _NAPHTHALENE) for x in (-1, 1) for y in (-1, 1))),
    "6-31g",
    20,
)
CASES = (NITROGEN, BIPHENYLENE, ANTHRACENE)


def run(options: BenchOptions) -> list[Claim]:
    return [
        claim
        for number, case in enumerate(CASES)
        if case is NITROGEN or not options.quick
        for claim in _claims(options, number, case)
    ]


def _claims(options: BenchOptions, number: int, case: Case) -> list[Claim]:
    from pyscf import __version__

    threads = min(2, cores())
    name = f"CASSCF({case.orbitals},{case.orbitals}) of {case.name}"
    ours = _run(number, "ours", threads, options)
    peer = f"PySCF {__version__}, its own solver, {threads} threads"
    how = f"once, {ours['macro']} macro iterations, {threads} threads"
    options.say(f"{name}: {ours['energy']:.10f} Eh in {ours['seconds']:.3g} s, {ours['bytes'] / 1e6:.0f} MB")
    claims = [
        Claim(f"{name}: energy", ours["energy"], "Eh", None, "", how),
        Claim(f"{name}: time", ours["seconds"], "s", None, "", how),
        Claim(f"{name}: peak of memory", ours["bytes"] / 1e6, "MB", None, "", how),
    ]
    try:
        theirs = _run(number, "theirs", threads, options)
    except subprocess.TimeoutExpired:
        late = f"the peer takes more than {_PEER_LIMIT_S:g} s"
        return [*claims, Claim(f"{name}: time of the peer", None, "s", None, peer, late)]
    options.say(
        f"PySCF {theirs['energy']:.10f} Eh in {theirs['seconds']:.3g} s, {theirs['bytes'] / 1e6:.0f} MB"
    )
    difference = abs(ours["energy"] - theirs["energy"])
    how = f"once, {theirs['macro']} macro iterations"
    return [
        *claims,
        Claim(f"{name}: difference of energies", difference, "Eh", at_most(1e-8), peer, how),
        Claim(f"{name}: time of the peer", theirs["seconds"], "s", None, peer, how),
        Claim(f"{name}: peak of memory of the peer", theirs["bytes"] / 1e6, "MB", None, peer, how),
    ]


def _run(number: int, side: str, threads: int, options: BenchOptions) -> dict[str, Any]:
    code = "import sys; from outcore.cli import bench; bench.load('casscf').main(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(number), side, str(threads), str(options.scratch)]
    one = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PEER_LIMIT_S if side == "theirs" else None,
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
    )
    if one.returncode != 0:
        raise RuntimeError(f"CASSCF with {side}: {one.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(one.stdout.splitlines()[-1])
    if not found["converged"]:
        raise RuntimeError(f"{CASES[number].name}: CASSCF with {side} has not converged")
    return found


def main(number: str, side: str, threads: str, scratch: str) -> None:
    """One run, in a process of its own; prints its results."""
    from pyscf import gto, lib, mcscf, scf, symm

    from outcore.chem.ci import FCISolver

    case = CASES[int(number)]
    lib.num_threads(int(threads))
    mol = gto.M(atom=case.atom, basis=case.basis, symmetry="D2h", verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-11)
    mc = mcscf.CASSCF(mf, case.orbitals, case.orbitals)
    orbitals = None
    if case.are_pi:
        pi = [i + 1 for i, irrep in enumerate(mf.mo_coeff.orbsym) if symm.irrep_id2name("D2h", irrep) in _PI]
        orbitals = mc.sort_mo(pi)
    if side == "ours":
        mc.fcisolver = FCISolver(mol, threads=int(threads), scratch=scratch)
    mc.conv_tol, mc.fcisolver.conv_tol = 1e-10, 1e-11
    macro: list[int] = []
    mc.callback = lambda _: macro.append(1)
    begin = time.perf_counter()
    mc.kernel(orbitals)
    seconds = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "energy": float(mc.e_tot),
                "converged": bool(mc.converged),
                "macro": len(macro),
                "seconds": seconds,
                "bytes": peak_resident_bytes(),
            }
        )
    )
