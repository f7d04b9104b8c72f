"""Excited singlets by EOM-CCSD in little memory, against PySCF, and a run that is killed and restarted.

Four singlets of naphthalene in cc-pVDZ as one command, `outcore eom` in 1 GB, against PySCF's density-fitted
EOM-EE-CCSD with 8 GB: the same auxiliary functions, frozen cores and norms of residuals, two threads each. The
time of iterations is divided by the number of sigma vectors, because the two searches need different numbers of
them. PySCF's search, which takes more than an hour, is ended after its first vectors, where its space is smallest.
Uracil in aug-cc-pVDZ, four singlets in 2 GB, is killed in an iteration of the amplitudes and in one of the states,
and goes on to its end. So does formaldehyde in aug-cc-pVDZ, whose energies are compared with those of a run that
was not killed; such a run of uracil takes too long. --quick takes water, without a bar for time, and PySCF's search
to its end: energies and the time of all excited states are claims, too.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from outcore.cli.bench import BenchOptions, Claim, at_most

from . import _cc_command, _killed_runs, _least
from ._cc_programs import CORES, PEER_MEMORY_MB, Job, threads_of
from ._molecules import acene, formaldehyde, uracil, water
from ._peers import timed
from ._workers import Failed

HAS_CASES = True
ITERATION = 0.5  # largest share of PySCF's time
SAME = 1e-6  # Hartree
OFF = 0.02  # largest relative deviation of the traffic from the plan
RESIDUAL = 1e-5  # norm of residuals in both programs
TIMED = 16  # vectors of PySCF's search in the long form
KILLED_IN = (5, 4)  # an iteration of the amplitudes, and one of the states


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        job = Job("water/cc-pVDZ", water(1), "cc-pvdz", "400MB")
        return _beside_pyscf(options, job, 2, has_bar=False) + _killed(options, job, 2, beside_unbroken=True)
    naphthalene = Job("naphthalene/cc-pVDZ", acene(2), "cc-pvdz", "1GB")
    small = Job("formaldehyde/aug-cc-pVDZ", formaldehyde(), "aug-cc-pvdz", "400MB")
    large = Job("uracil/aug-cc-pVDZ", uracil(), "aug-cc-pvdz", "2GB")
    return [
        *_beside_pyscf(options, naphthalene, 4, has_bar=True),
        *_killed(options, small, 4, beside_unbroken=True),
        *_killed(options, large, 4, beside_unbroken=False),
    ]


# ---- beside PySCF ----


def _unbroken(options: BenchOptions, job: Job, states: int) -> Any:
    def measure() -> Any:
        asked = ("--states", str(states), "--state-tol", str(RESIDUAL))
        part, found = _cc_command.run(options, job, job.memory, *asked, command="eom")
        return {"peak_bytes": part.peak_bytes, "results": found}

    return options.case(f"{job.name}, ours", measure)


def _beside_pyscf(options: BenchOptions, job: Job, states: int, *, has_bar: bool) -> list[Claim]:
    mine = _unbroken(options, job, states)
    timed_vectors = TIMED if has_bar else None
    peer = options.case(f"{job.name}, PySCF", lambda: _pyscf(options, job, states, timed_vectors))
    found, whole = mine["results"], peer["energies"] is not None
    options.ran(job.name, found)
    seconds = found["seconds_of_a_state_product"], peer["search_seconds"] / peer["products"]
    which = f"PySCF {peer['version']}, {PEER_MEMORY_MB} MB, {CORES} threads"
    ended = "" if whole else ", where PySCF was ended"
    how = (
        f"{states} singlets to residuals of {RESIDUAL:.0e}; {seconds[0]:.3g} s for each of "
        f"{found['state_products']} vectors in {job.memory}, {seconds[1]:.3g} s for each of {peer['products']}, "
        f"of which H takes {peer['product_seconds'] / peer['products']:.3g} s{ended}"
    )
    bar = at_most(ITERATION) if has_bar else None
    claims = [
        Claim(
            f"{job.name}: an iteration over PySCF's, by vector", seconds[0] / seconds[1], "", bar, which, how
        ),
        _moved_claim(job.name, found),
        *_least.claims(
            f"{job.name}, products with vectors",
            found,
            found["moved_by_state_products"]["counted"],
            found["moved_by_state_products"]["least"],
        ),
        _cc_command.peak_claim(job, job.memory, mine["peak_bytes"]),
    ]
    return claims + _of_whole_searches(job, found, peer, which) if whole else claims


def _of_whole_searches(job: Job, found: Any, peer: Any, which: str) -> list[Claim]:
    times = found["states_seconds"], peer["search_seconds"] + peer["intermediates_seconds"]
    energies = [each["energy_hartree"] for each in found["states"]]
    theirs = [
        each for each in peer["energies"] if each <= max(energies) + SAME
    ]  # PySCF's search may miss a lower state
    if not theirs:
        raise Failed(f"PySCF has none of these states: {peer['energies']}")
    error = max(min(abs(one - other) for other in energies) for one in theirs)
    return [
        Claim(
            f"{job.name}: all of the excited states over PySCF's",
            times[0] / times[1],
            "",
            None,
            which,
            f"after the amplitudes: {times[0]:.1f} / {times[1]:.1f} s",
        ),
        Claim(
            f"{job.name}: energies against PySCF's",
            error,
            "Eh",
            at_most(SAME),
            which,
            f"{len(theirs)} states of PySCF that lie as low, each with the nearest of "
            + ", ".join(f"{each:.7f}" for each in energies),
        ),
    ]


def _moved_claim(name: str, found: Any) -> Claim:
    """Disk traffic of the iterations: of products, and of passes over vectors."""
    parts = [found["moved_by_state_products"]]
    if "moved_by_state_passes" in found:  # earlier versions kept results without it
        parts.append(found["moved_by_state_passes"])
    planned, moved = (sum(part[which] for part in parts) for which in ("planned", "counted"))
    on_disk = found["states_plan"]["disk_bytes"]
    if on_disk and not planned:
        raise Failed(f"{name}: arrays are on disk, but no traffic is planned")
    return Claim(
        f"{name}: bytes that iterations move, off those planned",
        abs(moved / planned - 1) if planned else float(moved > 0),
        "",
        at_most(OFF),
        "its own plan",
        f"{moved / 1e6:.0f} MB, {planned / 1e6:.0f} MB planned, {'with' if parts[1:] else 'without'} passes over "
        f"vectors; {on_disk / 1e6:.0f} MB of arrays are on disk",
    )


_PYSCF = """
import json, sys, time
import pyscf
from pyscf import cc, df, gto, scf
from pyscf.cc import dfccsd, eom_rccsd
from pyscf.data.elements import chemcore
geometry, basis, memory, states, residual, most = sys.argv[1:]
mol = gto.M(atom=geometry, basis=basis, verbose=0, max_memory=int(memory))
mf = scf.RHF(mol).density_fit().set(conv_tol=1e-10, chkfile=None)
mf.kernel()
mycc = dfccsd.RCCSD(mf, frozen=chemcore(mol) or None)
mycc.with_df = df.DF(mol, auxbasis=df.make_auxbasis(mol, mp2fit=True))
mycc.conv_tol, mycc.conv_tol_normt = 1e-8, 1e-6
eris = mycc.ao2mo()
mycc.kernel(eris=eris)
assert mycc.converged
print("amplitudes", flush=True)
eom = eom_rccsd.EOMEESinglet(mycc)
eom.conv_tol, eom.max_cycle, eom.max_space = float(residual) ** 2, 100, 30
spent = []

class Ended(Exception):
    pass

def multiply(vector, imds=None):
    if len(spent) == int(most):
        raise Ended
    begin = time.perf_counter()
    found = eom_rccsd.eeccsd_matvec_singlet(eom, vector, imds)
    spent.append(time.perf_counter() - begin)
    print("product", len(spent), round(spent[-1], 2), flush=True)
    return found

eom.matvec = multiply
begin = time.perf_counter()
imds = eom.make_imds(eris)
diagonal = eom_rccsd.eeccsd_diag(eom, imds)[0]
made = time.perf_counter() - begin
begin = time.perf_counter()
try:
    energies, _ = eom.kernel(nroots=int(states), imds=imds, diag=diagonal)
    energies = [float(e) for e, is_it in zip(energies, eom.converged) if is_it]
except Ended:
    energies = None
print("result", json.dumps({
    "version": pyscf.__version__, "energies": energies,
    "products": len(spent), "product_seconds": sum(spent),
    "search_seconds": time.perf_counter() - begin, "intermediates_seconds": made,
}))
"""


def _pyscf(options: BenchOptions, job: Job, states: int, vectors: int | None) -> Any:
    """vectors: number after which the search is ended; None: at its own end."""
    geometry = job.write(options.scratch)
    command = [sys.executable, "-c", _PYSCF, str(geometry), job.basis, str(PEER_MEMORY_MB), str(states)]
    command += [str(RESIDUAL), str(vectors or -1)]
    _, output = timed(command, options.scratch, **threads_of(CORES))
    geometry.unlink()
    found = re.search(r"^result (.*)$", output, re.MULTILINE)
    if found is None:
        raise Failed(f"PySCF has no states: {output[-2000:]}")
    return json.loads(found[1])


# ---- kills ----


class _Iteration(NamedTuple):
    number: int
    seconds: float


_AMPLITUDES = re.compile(r" *(\d+) +-\d+\.\d{10} +\S+ +\S+ +([\d.]+)$")
_STATES = re.compile(r" *(\d+) +-?\d+\.\d{8} +-?\d+\.\d{8} +\S+ +([\d.]+)$")


def _found(pattern: re.Pattern[str], line: str) -> _Iteration | None:
    found = pattern.match(line.rstrip())
    return _Iteration(int(found[1]), float(found[2])) if found else None


def _killed(options: BenchOptions, job: Job, states: int, *, beside_unbroken: bool) -> list[Claim]:
    whole = options.case(f"{job.name}, killed", lambda: _broken(options, job, states))
    found, seconds = whole["results"], whole["seconds"]
    options.ran(job.name, found, peak_memory_bytes=whole["peak_bytes"], run_seconds=sum(seconds))
    energies = [each["energy_hartree"] for each in found["states"]]
    how = (
        f"{states} singlets, killed in iteration {KILLED_IN[0]} of the amplitudes and {KILLED_IN[1]} of the "
        f"states; its parts took {', '.join(f'{each:.0f}' for each in seconds)} s"
    )
    claims = [
        _cc_command.peak_claim(replace(job, name=f"{job.name}, killed"), job.memory, whole["peak_bytes"]),
        Claim(f"{job.name}, {job.memory}: all parts", sum(seconds) / 60, "min", None, "", how),
    ]
    if not beside_unbroken:
        for number, each in enumerate(energies, 1):
            name = f"{job.name}: singlet {number}"
            claims.append(Claim(name, each * 27.211386, "eV", None, "", f"{each:.8f} Eh"))
        return [*claims, _moved_claim(f"{job.name}, killed", found)]
    unbroken = _unbroken(options, job, states)["results"]["states"]
    error = max(abs(one - other["energy_hartree"]) for one, other in zip(energies, unbroken, strict=True))
    name = f"{job.name}: energies of a run that was killed against one that was not"
    return [*claims, Claim(name, error, "Eh", at_most(SAME), "ours", "")]


def _broken(options: BenchOptions, job: Job, states: int) -> Any:
    """Runs a command that gets SIGKILL in an iteration of the amplitudes and in one of the states, and then runs to
    its end."""
    kept, results = options.scratch / "kept", options.scratch / "killed.json"
    shutil.rmtree(kept, ignore_errors=True)
    command = [
        sys.executable, "-m", "outcore", "eom", str(job.write(options.scratch)), "--basis", job.basis,
        "--frozen", "auto", "--memory", job.memory, "--threads", str(CORES), "--scratch", str(options.scratch),
        "--states", str(states), "--state-tol", str(RESIDUAL), "--checkpoint", str(kept), "--json", str(results),
    ]  # fmt: skip
    peak, seconds = 0, []
    ways: tuple[tuple[re.Pattern[str], int | None], ...] = (
        (_AMPLITUDES, KILLED_IN[0]),
        (_STATES, KILLED_IN[1]),
        (_STATES, None),
    )
    for pattern, number in ways:
        begin = time.monotonic()
        _, most = _killed_runs.run(options, job.name, command, partial(_found, pattern), number)
        seconds.append(time.monotonic() - begin)
        peak = max(peak, most)
    found = json.loads(results.read_text())
    results.unlink()
    shutil.rmtree(kept)
    return {"results": found, "peak_bytes": max(peak, found["peak_memory_bytes"]), "seconds": seconds}
