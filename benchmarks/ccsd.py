"""Coupled cluster: iterations of CCSD and (T) in little memory, against PySCF's with all that it wants.

Residuals of ours, with arrays on disk where the memory does not hold them, are timed in turn with PySCF's update of
amplitudes of density-fitted CCSD, from the same orbitals and auxiliary functions, on the same number of threads.
The rate of (T) is operations of its products of matrices over the time of all that is done, against DGEMM of the
same BLAS with 1000 x 1000 matrices. Peak memory is that of a whole `outcore ccsd` by itself. --quick takes benzene
in a double-zeta basis, and its iterations only.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from outcore.chem.cc import CCSD
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, interleave, median_claim
from outcore.job.resources import cores, parse_bytes
from outcore.parallel import team

_CC, _CH = 1.40, 1.09  # Angstrom


def _rings(count: int) -> list[str]:
    """Benzene, naphthalene, ..: regular hexagons side by side."""
    atoms: dict[tuple[float, float], str] = {}
    width = 2 * _CC * math.cos(math.pi / 6)
    corners = [(ring, 30 + 60 * n) for ring in range(count) for n in range(6)]
    for radius, name in ((_CC, "C"), (_CC + _CH, "H")):
        for ring, angle in corners:
            x = ring * width + radius * math.cos(math.radians(angle))
            y = radius * math.sin(math.radians(angle))
            inner = (ring + 1 < count and angle in (30, 330)) or (ring and angle in (150, 210))
            if name == "C" or not inner:
                atoms[round(x, 6), round(y, 6)] = name
    return [f"{name} {x} {y} 0" for (x, y), name in atoms.items()]


@dataclass(frozen=True)
class Case:
    name: str
    rings: int
    basis: str
    memory: str
    ladder: str = "auto"

    @cached_property
    def mean_field(self) -> Any:
        from pyscf import gto, scf

        mol = gto.M(atom="; ".join(_rings(self.rings)), basis=self.basis, verbose=0)
        return scf.RHF(mol).density_fit().run(conv_tol=1e-9)

    def write(self, directory: Path) -> Path:
        atoms = _rings(self.rings)
        path = directory / "molecule.xyz"
        path.write_text("\n".join([str(len(atoms)), self.name, *atoms]) + "\n")
        return path


QUICK = Case("benzene/cc-pVDZ", 1, "cc-pvdz", "500MB")
MAIN = Case("naphthalene/cc-pVDZ", 2, "cc-pvdz", "500MB")
DISK = Case("benzene/cc-pVTZ", 1, "cc-pvtz", "500MB", "disk")
ITERATION = 0.4  # of PySCF's time, at most


def run(options: BenchOptions) -> list[Claim]:
    threads = min(2, cores())
    claims = _iterations(options, QUICK, threads, repeats=1 if options.quick else 3)
    if options.quick:
        return claims
    for case in (MAIN, DISK):
        claims += _iterations(options, case, threads, repeats=2, triples=case is MAIN)
    return [*claims, _memory(options, MAIN)]


def _iterations(
    options: BenchOptions, case: Case, threads: int, repeats: int, *, triples: bool = False
) -> list[Claim]:
    from pyscf import __version__, lib

    lib.num_threads(threads)
    mf = case.mean_field
    ratios = []
    with CCSD(
        mf,
        "auto",
        memory=case.memory,
        ladder=case.ladder,
        threads=threads,
        comm=None,
        scratch=str(options.scratch),
        max_cycle=30,
    ) as cc:
        equations = cc.set_up()
        theirs = _theirs(mf, cc.frozen)
        equations.residual(cc.singles)  # products are planned, memory is touched
        for _ in range(repeats):
            seconds = interleave(
                {"ours": _timed(lambda: equations.residual(cc.singles)), "theirs": theirs}, 1
            )
            ratios.append(seconds["ours"] / seconds["theirs"])
            options.say(
                f"{case.name}: {cc.plan}; an iteration takes {seconds['ours']:.3g} s, PySCF's "
                f"{seconds['theirs']:.3g} s"
            )
        peer = f"PySCF {__version__}, density-fitted CCSD, 8 GB, {threads} threads"
        how = f"residual and update of amplitudes, {repeats} times in turn; ours with {case.memory}"
        claims = [
            median_claim(f"{case.name}: an iteration over PySCF's", ratios, "", at_most(ITERATION), peer, how)
        ]
        if triples:
            claims.append(_triples(options, case, cc, threads))
    return claims


def _timed(work: Callable[[], Any]) -> Callable[[], float]:
    def timed() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    return timed


def _theirs(mf: Any, frozen: int) -> Callable[[], float]:
    from pyscf import df
    from pyscf.cc import dfccsd

    peer = dfccsd.RCCSD(mf, frozen=frozen)
    peer.with_df = df.DF(mf.mol, auxbasis=df.make_auxbasis(mf.mol, mp2fit=True))
    peer.max_memory = 8000
    eris = peer.ao2mo()
    _, t1, t2 = peer.init_amps(eris)
    return _timed(lambda: peer.update_amps(t1, t2, eris))


def _triples(options: BenchOptions, case: Case, cc: CCSD, threads: int) -> Claim:
    cc.kernel()
    o, v = cc.spins[0].occupied, cc.spins[0].virtual
    begin = time.perf_counter()
    cc.ccsd_t()
    seconds = time.perf_counter() - begin
    rate, peak = 2.0 * o**3 * v**3 * (v + o) / seconds, _peak(threads)
    options.say(f"{case.name}: (T) takes {seconds:.3g} s, {rate / 1e9:.3g} of {peak / 1e9:.3g} GFLOP/s")
    how = f"once, {case.memory}, {threads} threads"
    return Claim(f"{case.name}: (T), rate over that of DGEMM", rate / peak, "", at_least(0.75), "", how)


def _memory(options: BenchOptions, case: Case) -> Claim:
    """Peak of a run of the command over its budget, and its energies printed."""
    results = options.scratch / "results.json"
    command = [
        sys.executable,
        "-m",
        "outcore",
        "ccsd",
        str(case.write(options.scratch)),
        "--basis",
        case.basis,
    ]
    command += ["--frozen", "auto", "--triples", "--memory", case.memory, "--scratch", str(options.scratch)]
    subprocess.run(
        [*command, "--json", str(results)], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    found = json.loads(results.read_text())
    results.unlink()
    (options.scratch / "molecule.xyz").unlink()
    options.say(
        f"{case.name}: CCSD(T) {found['ccsd_t_energy_hartree']:.8f} Eh in {found['run_seconds']:.0f} s"
    )
    value = found["peak_memory_bytes"] / parse_bytes(case.memory)
    how = "resident memory of a whole run, SCF and (T) included"
    return Claim(f"{case.name}: peak memory over --memory", value, "", at_most(1.0), "", how)


def _peak(threads: int) -> float:
    """Operations a second of DGEMM, a product of matrices in each thread."""
    size, repeats = 1000, 4
    a = np.ones((size, size))
    outs = [np.empty((size, size)) for _ in range(threads)]

    def work(thread: int, _: Callable[[], bool]) -> None:
        for _turn in range(repeats):
            np.matmul(a, a, out=outs[thread])

    with team.blas_of_one_thread():
        begin = time.perf_counter()
        team.run(threads, work)
        seconds = time.perf_counter() - begin
    return 2.0 * size**3 * repeats * threads / seconds
