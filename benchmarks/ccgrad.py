"""Gradients of CCSD(T) in little memory: whole commands, also killed and restarted, against Psi4.

Naphthalene in cc-pVDZ, CCSD(T), and benzene in cc-pVTZ, CCSD, each in 1 GB, and benzene in cc-pVDZ, CCSD(T), in
400 MB, as one command, `outcore ccsd --gradient`. Its time is compared with that of the same command without
--gradient. Another run of naphthalene is killed three times, in the derivatives of (T), in the Lambda equations and
in the derivatives of integrals, and goes on each time; its gradient is compared with that of the first run. Psi4's
DF-CCSD(T) gradient gets 8 GB; it is that of benzene in cc-pVDZ, as naphthalene would take it hours. PySCF's
gradient of density-fitted CCSD is compared with differences of its own energies, for water, and ours with the same
differences. --quick takes water, without bars for time.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, Threshold, at_most

from . import _cc_command, _forces
from ._cc_programs import CORES, PEER_MEMORY_MB, Job, run_psi4
from ._molecules import acene, water
from ._peers import missing
from ._workers import Failed, watched_peak

HAS_CASES = True
SLOWER = 4.0  # largest time of a gradient over that of the energy
SAME = 1e-8  # Hartree/Bohr
_STEP, _SEED = 2e-3, 44  # Bohr; of the direction of a derivative
KILLED_AT = ("derivatives of triples", "Lambda iteration 3", "derivatives of CCSD's integrals")
REASONS = {
    r".*: gradient against Psi4's": "Psi4 fits Fock matrices of CCSD as well",
}


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        job = Job("water/cc-pVDZ", water(1), "cc-pvdz", "400MB")
        claims, found = _gradient(options, job, "--triples")
        claims += _beside_psi4(options, job, found)
    else:
        job = Job("naphthalene/cc-pVDZ", acene(2), "cc-pvdz", "1GB")
        claims, found = _gradient(options, job, "--triples", bar=at_most(SLOWER))
        small = Job("benzene/cc-pVDZ", acene(1), "cc-pvdz", "400MB")
        more, whole = _gradient(options, small, "--triples")
        claims += more + _beside_psi4(options, small, whole)
        claims += _gradient(options, Job("benzene/cc-pVTZ", acene(1), "cc-pvtz", "1GB"))[0]
    return claims + _after_kills(options, job, found, "--triples") + _pyscf_claims(options)


def _gradient(
    options: BenchOptions, job: Job, *more: str, bar: Threshold | None = None
) -> tuple[list[Claim], Any]:
    """Claims, and what the command with --gradient has found. bar: of its time over that of the energy."""
    title = "CCSD(T)" if more else "CCSD"

    def case(name: str, *asked: str) -> Any:
        def measure() -> Any:
            part, found = _cc_command.run(options, job, job.memory, *more, *asked)
            return {"seconds": part.seconds, "peak_bytes": part.peak_bytes, "results": found}

        return options.case(f"{job.name}, {name}", measure)

    energy, whole = case("energy"), case("gradient", "--gradient")
    options.ran(job.name, whole["results"])
    seconds = [each["seconds"] for each in (whole, energy)]
    how = f"whole commands, SCF included: {seconds[0]:.1f} / {seconds[1]:.1f} s"
    name = f"{job.name}: {title} gradient, time over that of the energy"
    claims = [
        Claim(name, seconds[0] / seconds[1], "", bar, "ours", how),
        _cc_command.peak_claim(job, job.memory, whole["peak_bytes"]),
    ]
    return claims + _sums(job, whole["results"]), whole


def _sums(job: Job, results: Any) -> list[Claim]:
    from pyscf.data.nist import BOHR

    places = np.array([place for _, *place in results["molecule"]["atoms"]]) / BOHR
    gradient, bar = _of(results), at_most(SAME)
    force, torque = _forces.force(gradient), _forces.torque(places, gradient)
    return [
        Claim(f"{job.name}: sum of forces, largest element", force, "Eh/bohr", bar, "", ""),
        Claim(f"{job.name}: torque of forces, largest element", torque, "Eh", bar, "", ""),
    ]


def _after_kills(options: BenchOptions, job: Job, whole: Any, *more: str) -> list[Claim]:
    broken = options.case(f"{job.name}, killed", lambda: _killed(options, job, *more))
    how = f"killed {broken['kills']} times"
    name = f"{job.name}: gradient of a run that was killed against one that was not"
    error = float(abs(_of(broken["results"]) - _of(whole["results"])).max())
    return [
        Claim(name, error, "Eh/bohr", at_most(SAME), "ours", how),
        replace(
            _cc_command.peak_claim(job, job.memory, broken["peak_bytes"]),
            name=f"{job.name}, killed: peak resident over the memory that it was given",
        ),
    ]


def _of(results: Any) -> Any:
    return np.array(results["gradient_hartree_per_bohr"])


_RUN = """
import os, signal, sys
from outcore.chem.cc.ccsd import CCSD
from outcore.cli import main as cli

stage, progress = sys.argv[1], CCSD.progress

def told(self, part):
    tell = progress(self, part)

    def then(fraction):
        tell(fraction)
        if part == stage and fraction > 0.3:
            os.kill(os.getpid(), signal.SIGKILL)

    return then

CCSD.progress = told
sys.exit(cli.run(sys.argv[2:]))
"""


def _killed(options: BenchOptions, job: Job, *more: str) -> Any:
    """Runs a command that gets SIGKILL in each of three parts and then runs to its end."""
    kept, results = options.scratch / "kept", options.scratch / "killed.json"
    shutil.rmtree(kept, ignore_errors=True)
    command = [
        "ccsd", str(job.write(options.scratch)), "--basis", job.basis, "--frozen", "auto", "--memory", job.memory,
        "--threads", str(CORES), "--scratch", str(options.scratch), "--checkpoint", str(kept), "--gradient",
        "--json", str(results), *more,
    ]  # fmt: skip
    most = kills = 0
    stages = (*KILLED_AT, "")
    for stage in stages:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, stage, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        said = []
        with watched_peak(process.pid) as peak:
            for line in process.stdout:
                said.append(line)
                options.say(f"{job.name}, killed in {stage or 'nothing'}: {line.rstrip()}")
            status = process.wait()
        most = max(most, peak())
        if status != (-signal.SIGKILL if stage else 0):
            raise Failed(f"{' '.join(command)} ended with {status}:\n{''.join(said[-20:])}")
        kills += bool(stage)
    found = json.loads(results.read_text())
    results.unlink()
    shutil.rmtree(kept)
    return {"results": found, "peak_bytes": max(most, found["peak_memory_bytes"]), "kills": kills}


def _beside_psi4(options: BenchOptions, job: Job, whole: Any) -> list[Claim]:
    if why := missing("Psi4"):
        options.say(why)
        return []
    peer = options.case(f"{job.name}, Psi4", lambda: _psi4(options, job))
    error, seconds = float(abs(np.array(peer["gradient"]) - _of(whole["results"])).max()), whole["seconds"]
    how = f"once each: {seconds:.1f} s in {job.memory}, {peer['seconds']:.1f} s in {PEER_MEMORY_MB} MB"
    return [
        Claim(f"{job.name}: gradient against Psi4's", error, "Eh/bohr", None, "Psi4", how),
        Claim(
            f"{job.name}: CCSD(T) gradient, time over Psi4's",
            seconds / peer["seconds"],
            "",
            None,
            "Psi4",
            how,
        ),
    ]


_FORCES = """found = gradient('ccsd(t)')
for row in found.np:
    print_out('FOUND %.12f %.12f %.12f\\n' % tuple(row))"""


def _psi4(options: BenchOptions, job: Job) -> Any:
    seconds, output = run_psi4(job, options.scratch, _FORCES, digits=9, more="qc_module occ")
    rows = re.findall(r"^FOUND (\S+) (\S+) (\S+)", output, re.MULTILINE)
    if len(rows) != len(job.atoms):
        raise Failed(f"Psi4 has {len(rows)} rows of a gradient of {len(job.atoms)} atoms")
    return {"seconds": seconds, "gradient": [[float(each) for each in row] for row in rows]}


# ---- PySCF ----


def _pyscf_claims(options: BenchOptions) -> list[Claim]:
    theirs = options.case("water/cc-pVDZ, PySCF", _pyscf)
    ours = options.case("water/cc-pVDZ, ours beside PySCF", _ours)
    how = f"along one random direction, steps of {_STEP} bohr"
    peer = f"PySCF {theirs['version']}"
    return [
        Claim(
            "water/cc-pVDZ: PySCF's DF-CCSD gradient off differences of its energies",
            theirs["error"],
            "Eh/bohr",
            None,
            peer,
            how,
        ),
        Claim(
            "water/cc-pVDZ: our DF-CCSD gradient off the same differences of PySCF's energies",
            ours["error"],
            "Eh/bohr",
            None,
            peer,
            f"{how}; energies differ by {ours['energy_error']:.0e} Eh",
        ),
    ]


def _moved(mol: Any, step: float, direction: Any) -> Any:
    """PySCF's density-fitted CCSD, with one auxiliary set for the SCF and CCSD, after a step along a direction."""
    from pyscf import cc, scf

    moved = mol.set_geom_(mol.atom_coords() + step * direction, unit="Bohr", inplace=False)
    mf = scf.RHF(moved).density_fit().run(conv_tol=1e-12)
    found = cc.CCSD(mf).set(conv_tol=1e-11, conv_tol_normt=1e-9).run()
    assert mf.converged and found.converged, "PySCF has not converged"
    return found


@cache
def _differences() -> tuple[Any, Any, float]:
    """Water, a random direction of unit length, and the derivative of PySCF's energies along it by differences."""
    from pyscf import gto

    mol = gto.M(atom=water(1), basis="cc-pvdz", verbose=0)
    direction = np.random.default_rng(_SEED).standard_normal((mol.natm, 3))
    direction /= np.linalg.norm(direction)
    near, far = (
        (_moved(mol, step, direction).e_tot - _moved(mol, -step, direction).e_tot) / (2 * step)
        for step in (_STEP, 2 * _STEP)
    )
    return mol, direction, (4 * near - far) / 3


def _pyscf() -> Any:
    """PySCF's gradient of density-fitted CCSD against finite differences of its energies."""
    import pyscf

    mol, direction, expected = _differences()
    gradient = _moved(mol, 0.0, direction).nuc_grad_method().kernel()
    return {"error": float(abs((gradient * direction).sum() - expected)), "version": pyscf.__version__}


def _ours() -> Any:
    """Our gradient of density-fitted CCSD, with PySCF's auxiliary set, against finite differences of PySCF's
    energies."""
    from outcore.chem import ri
    from outcore.chem.cc import CCSD

    mol, direction, expected = _differences()
    theirs = _moved(mol, 0.0, direction)
    given: dict[str, Any] = {"comm": None, "memory": "1GB", "threads": CORES}
    with ri.RHF(mol, theirs.with_df.auxmol.basis, **given) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-9
        mf.kernel()
        tight: dict[str, Any] = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9, "ladder": "rebuild"}
        with CCSD(mf, auxbasis=theirs.with_df.auxmol.basis, **given, **tight) as cc:
            cc.kernel()
            gradient = cc.nuc_grad_method().kernel()
            energy_error = abs(cc.e_tot - theirs.e_tot)
    error = float(abs((gradient * direction).sum() - expected))
    return {"error": error, "energy_error": float(energy_error)}
