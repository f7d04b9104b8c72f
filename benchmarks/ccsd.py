"""Coupled cluster: iterations of CCSD, (T), and whole CCSD(T) in little memory, against PySCF, Psi4 and NWChem with
all that they want.

Residuals of ours, with arrays on disk where the memory does not hold them, are timed in turn with PySCF's update of
amplitudes of density-fitted CCSD, from the same orbitals and auxiliary functions, on the same number of threads.
The rate of (T) is operations of its products of matrices over the time of all that is done, against DGEMM of the
same BLAS with 1000 x 1000 matrices. What is hidden of reading is told by how long threads waited for the integrals
of the ladder, against the time that the disk takes for them. Whole runs of naphthalene are timed from outside,
start-up and SCF included, one after another, on two cores each (NWChem: two processes), with one convergence.
Energies of NWChem, which does no density fitting, are compared for water, with --integrals conventional. --quick
takes benzene in a double-zeta basis for iterations and (T), and whole runs of water, of which start-up is the most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from outcore.chem.cc import CCSD
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, interleave, median_claim
from outcore.job import machine
from outcore.job.resources import cores, parse_bytes
from outcore.parallel import team

from . import _cc_programs as programs
from ._molecules import water
from ._peers import missing

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


QUICK = Case("benzene/cc-pVDZ", 1, "cc-pvdz", "500MB")
MAIN = Case("naphthalene/cc-pVDZ", 2, "cc-pvdz", "500MB")
DISK = Case("benzene/cc-pVTZ", 1, "cc-pvtz", "500MB", "disk")
ITERATION = 0.4  # of PySCF's time, at most


def run(options: BenchOptions) -> list[Claim]:
    threads = min(2, cores())
    claims = _iterations(options, QUICK, threads, repeats=1 if options.quick else 3, triples=True)
    claims += _whole(
        options, programs.Job("water/cc-pVDZ", water(1), "cc-pvdz", "400MB"), compares_time=False
    )
    if options.quick:
        return claims
    for case in (MAIN, DISK):
        claims += _iterations(options, case, threads, repeats=2, triples=case is MAIN)
    job = programs.Job(MAIN.name, _rings(MAIN.rings), MAIN.basis, MAIN.memory)
    return claims + _whole(options, job, compares_time=True)


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
        if cc.plan is not None and cc.plan.ladder == "disk":
            claims.append(_hidden(case, cc, equations, options.scratch))
        if triples:
            claims.append(_triples(options, case, cc, threads))
    return claims


def _hidden(case: Case, cc: CCSD, equations: Any, scratch: Path) -> Claim:
    """Of the time that the disk takes for the integrals of the ladder, the part in which no thread waited."""
    assert cc.plan is not None
    rates = machine.measure_disk(scratch)
    if rates is None:
        raise RuntimeError(f"the disk of {scratch} cannot be measured")
    moved = cc.plan.passes * sum(
        e.bytes for name, e in cc.plan.arrays.items() if name[0] == "V" and not e.in_memory
    )
    reading, waited = moved / rates.read_bytes_per_s, equations.ladder.waited_s
    how = f"{moved / 1e9:.2f} GB in an iteration, {reading:.2f} s of the disk; threads waited {waited:.2f} s"
    name = f"{case.name}: reading of the ladder's integrals that is hidden"
    return Claim(name, max(0.0, 1 - waited / reading), "", at_least(0.8), "", how)


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
    if not cc.converged:
        raise RuntimeError(f"{case.name} has not converged in {len(cc.iterations)} iterations")
    o, v = cc.spins[0].occupied, cc.spins[0].virtual
    begin = time.perf_counter()
    cc.ccsd_t()
    seconds = time.perf_counter() - begin
    rate, peak = 2.0 * o**3 * v**3 * (v + o) / seconds, _peak(threads)
    options.say(f"{case.name}: (T) takes {seconds:.3g} s, {rate / 1e9:.3g} of {peak / 1e9:.3g} GFLOP/s")
    how = f"once, {case.memory}, {threads} threads"
    return Claim(f"{case.name}: (T), rate over that of DGEMM", rate / peak, "", at_least(0.75), "", how)


def _whole(options: BenchOptions, job: programs.Job, *, compares_time: bool) -> list[Claim]:
    """Times of CCSD(T) from outside, and energies. Without `compares_time` those of all integrals, too."""
    mine = programs.ours(job, options.scratch)
    options.say(_line(job, "ours", mine))
    exact = None if compares_time else programs.ours(job, options.scratch, "--integrals", "conventional")
    peak = mine.results["peak_memory_bytes"] / parse_bytes(job.memory)
    how = "resident memory of a whole run, SCF and (T) included"
    claims = [Claim(f"{job.name}: peak memory over --memory", peak, "", at_most(1.0), "", how)]
    for peer, program in programs.PEERS.items():
        if peer != "PySCF" and (why := missing(peer)):
            options.say(why)
            continue
        found = program(job, options.scratch)
        options.say(_line(job, peer, found))
        if compares_time:
            how = f"once each, with the SCF: {mine.seconds:.1f} s in {job.memory}, {found.seconds:.1f} s in 8 GB"
            name = f"{job.name}: CCSD(T), whole run, time over {peer}'s"
            claims.append(Claim(name, mine.seconds / found.seconds, "", at_most(1.0), peer, how))
        fits = peer != "NWChem"
        reference = mine if fits or exact is None else exact
        error = max(abs(reference.ccsd - found.ccsd), abs(reference.triples - found.triples))
        how = "correlation energies of CCSD and (T), the larger difference"
        if not fits:
            how += (
                "; of all integrals" if exact else "; NWChem's are of all integrals, ours of density fitting"
            )
        bar = at_most(1e-6) if fits or exact else None
        claims.append(Claim(f"{job.name}: energies against {peer}'s", error, "Eh", bar, peer, how))
    return claims


def _line(job: programs.Job, name: str, found: programs.Run) -> str:
    return f"{job.name}: {name:7} {found.seconds:8.1f} s, CCSD {found.ccsd:.9f}, (T) {found.triples:.9f} Eh"


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
