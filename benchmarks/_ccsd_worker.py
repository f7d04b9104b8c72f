"""The worker of bench ccsd: iterations of CCSD, or (T), of one case in one process. It prints progress, then the
claims as JSON in the last line. (T) has a process of its own, so that the memory of a peer does not count.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from outcore.chem import reference as references
from outcore.chem.cc import CCSD
from outcore.cli.bench import Claim, at_least, at_most, interleave, median_claim
from outcore.job import machine, resources
from outcore.job.resources import cores

from ._dgemm import dgemm_rate
from ._molecules import acene


@dataclass(frozen=True)
class Case:
    name: str
    rings: int
    basis: str
    memory: str
    repeats: int
    ladder: str = "auto"
    has_bars: bool = True
    triples: bool = True

    @cached_property
    def mean_field(self) -> Any:
        from pyscf import gto, scf

        mol = gto.M(atom="; ".join(acene(self.rings)), basis=self.basis, verbose=0)
        return scf.RHF(mol).density_fit().run(conv_tol=1e-9)


CASES = (
    Case("benzene/6-31G", 1, "6-31g", "300MB", 1, has_bars=False),
    Case("benzene/cc-pVDZ", 1, "cc-pvdz", "500MB", 3),
    Case("naphthalene/cc-pVDZ", 2, "cc-pvdz", "500MB", 2),
    Case("benzene/cc-pVTZ", 1, "cc-pvtz", "1GB", 2, "disk", triples=False),
)
ITERATION = 0.4  # largest share of PySCF's time
_BETWEEN = 0.05  # fraction of (T) that is computed between two products of DGEMM
_MUCH = 4e9  # bytes of integrals: fewer are read so fast that the waiting at the begin and the end counts


def main() -> None:
    name, part, scratch = sys.argv[1:]
    (case,) = (each for each in CASES if each.name == name)
    claims = _PARTS[part](Path(scratch), case, min(2, cores()))
    print(json.dumps([each.as_json() for each in claims]))


def _iterations(scratch: Path, case: Case, threads: int) -> list[Claim]:
    from pyscf import __version__, lib

    lib.num_threads(threads)
    mf = case.mean_field
    ratios = []
    with _ours(scratch, case, mf, threads) as cc:
        equations = cc.set_up()
        theirs = _theirs(mf, cc.frozen)
        equations.residual(cc.singles)  # plans products and touches memory
        for _ in range(case.repeats):
            seconds = interleave(
                {"ours": _timed(lambda: equations.residual(cc.singles)), "theirs": theirs}, 1
            )
            ratios.append(seconds["ours"] / seconds["theirs"])
            _say(
                f"{case.name}: {cc.plan}; an iteration takes {seconds['ours']:.3g} s, PySCF's "
                f"{seconds['theirs']:.3g} s"
            )
        peer = f"PySCF {__version__}, density-fitted CCSD, 8 GB, {threads} threads"
        how = f"residual and update of amplitudes, {case.repeats} times in turn; ours with {case.memory}"
        bar = at_most(ITERATION) if case.has_bars else None
        claims = [median_claim(f"{case.name}: an iteration over PySCF's", ratios, "", bar, peer, how)]
        if cc.plan is not None and cc.plan.ladder == "disk":
            claims.append(_hidden(case, cc, equations, scratch))
    return claims


def _ours(scratch: Path, case: Case, mf: Any, threads: int) -> CCSD:
    return CCSD(
        mf,
        "auto",
        memory=case.memory,
        ladder=case.ladder,
        threads=threads,
        comm=None,
        scratch=str(scratch),
        max_cycle=30,
    )


def _hidden(case: Case, cc: CCSD, equations: Any, scratch: Path) -> Claim:
    """The fraction of the time for reading the ladder's integrals in which no thread waited for them."""
    assert cc.plan is not None
    rates = machine.measure_disk(scratch)
    if rates is None:
        raise RuntimeError(f"the disk of {scratch} cannot be measured")
    moved = cc.plan.ways[cc.plan.ladder].read_bytes
    reading, waited = moved / rates.read_bytes_per_s, equations.ladder.waited_s
    how = f"{moved / 1e9:.2f} GB in an iteration, {reading:.2f} s of the disk; threads waited {waited:.2f} s"
    name = f"{case.name}: reading of the ladder's integrals that is hidden"
    bar = at_least(0.8) if case.has_bars and moved > _MUCH else None
    return Claim(name, max(0.0, 1 - waited / reading), "", bar, "", how)


def _say(line: str) -> None:
    print(line, flush=True)


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


def _triples(scratch: Path, case: Case, threads: int) -> list[Claim]:
    mf = case.mean_field
    references.keep_focks(mf)
    mf.with_df.reset()  # frees PySCF's integrals: nothing needs them any more, and their memory would count
    resources.give_back_freed_memory()
    with _ours(scratch, case, mf, threads) as cc:
        cc.kernel()
        _say(f"{case.name}: {cc.plan}")
        if not cc.converged:
            raise RuntimeError(f"{case.name} has not converged in {len(cc.iterations)} iterations")
        o, v = cc.spins[0].occupied, cc.spins[0].virtual
        beside = _Beside(threads)
        cc.on_progress = beside
        begin = time.perf_counter()
        cc.ccsd_t()
        seconds = time.perf_counter() - begin - beside.seconds
    rate, peak = 2.0 * o**3 * v**3 * (v + o) / seconds, statistics.harmonic_mean(beside.rates)
    _say(f"{case.name}: (T) takes {seconds:.3g} s, {rate / 1e9:.3g} of {peak / 1e9:.3g} GFLOP/s")
    how = (
        f"{case.memory}, {threads} threads; {len(beside.rates)} products of DGEMM between tasks of (T), "
        f"{min(beside.rates) / 1e9:.3g} to {max(beside.rates) / 1e9:.3g} GFLOP/s"
    )
    bar = at_least(0.75) if case.has_bars else None
    return [Claim(f"{case.name}: (T), rate over that of DGEMM", rate / peak, "", bar, "", how)]


class _Beside:
    """Measures DGEMM between tasks of (T), so that a change of the machine's speed affects both alike."""

    def __init__(self, threads: int) -> None:
        self._threads, self._next = threads, 0.0
        self.rates: list[float] = []
        self.seconds = 0.0

    def __call__(self, part: str, fraction: float) -> None:
        if fraction < self._next:
            return
        self._next = fraction + _BETWEEN
        begin = time.perf_counter()
        self.rates.append(dgemm_rate(self._threads))
        self.seconds += time.perf_counter() - begin


_PARTS: dict[str, Callable[[Path, Case, int], list[Claim]]] = {"iterations": _iterations, "triples": _triples}
