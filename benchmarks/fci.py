"""Full CI: products of the Hamiltonian with a vector, and whole runs, against PySCF.

Products are timed in turn with PySCF's direct_spin0_symm, from the same integrals, on the same number of threads.
Outcore's vectors are in memory and folded; the measured time begins and ends with such vectors. A rate is the
number of operations in matrix products over the whole time; it is compared with DGEMM of the same BLAS, with
1000 x 1000 matrices. Whole runs converge residuals to 1e-5, from integrals to energies, start states included.
Iterations with and without commits of finished tasks are timed in turn; both keep the states of each iteration.
The benchmarks `fci_large` and `casscf` have large cases. --quick takes one molecule, its products, and commits that
are as much more frequent as its iterations are shorter.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem import ci
from outcore.chem.ci import estimate, solver, vector
from outcore.chem.ci.passes import Place
from outcore.chem.ci.sigma import Sigma
from outcore.cli.bench import BenchOptions, Claim, Threshold, at_least, at_most, interleave, median_claim
from outcore.job.resources import cores
from outcore.keep import clock

from ._dgemm import dgemm_rate

if TYPE_CHECKING:
    from outcore.chem.ci.fci import FCI

RESIDUAL = 1e-5


@dataclass(frozen=True)
class Case:
    name: str
    atom: str
    basis: Any
    group: str
    frozen: int
    faster: float = 0.0  # bar: time of PySCF's product over ours
    rate: Threshold | None = None  # bar for the rate of a product over that of DGEMM; none for small matrices

    @cached_property
    def mean_field(self) -> Any:
        from pyscf import gto, scf

        mol = gto.M(atom=self.atom, basis=self.basis, symmetry=self.group, verbose=0)
        return scf.RHF(mol).run(conv_tol=1e-12)

    @contextmanager
    def ours(self, threads: int, **settings: Any) -> Iterator[FCI]:
        with ci.FCI(self.mean_field, frozen=self.frozen, threads=threads, **settings) as found:
            yield found


NITROGEN = Case("N2/6-31G", "N 0 0 0; N 0 0 1.0977", "6-31g", "D2h", 2, 6.0)
WATER = Case(
    "H2O/cc-pVDZ, frozen core",
    "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587",
    "cc-pvdz",
    "C2v",
    1,
    20.0,
    at_least(0.45),
)


ALL_OF_WATER = Case("H2O/cc-pVDZ", WATER.atom, "cc-pvdz", "C2v", 0)


def run(options: BenchOptions) -> list[Claim]:
    threads = min(2, cores())
    claims = _products(options, NITROGEN, threads, repeats=3 if options.quick else 5)
    if options.quick:
        return claims + _commits(options, NITROGEN, threads, "1GB", interval_s=0.5, iterations=6, pairs=2)
    claims += _whole(options, NITROGEN, threads)
    claims += _products(options, WATER, threads, repeats=2)
    claims += _commits(
        options,
        ALL_OF_WATER,
        threads,
        "1GB",
        interval_s=clock.INTERVAL_S,
        iterations=3,
        pairs=3,
        precision="mixed",
    )
    return claims


# ---- products ----


class Products:
    """Outcore's products with a start vector in memory."""

    def __init__(self, found: FCI, threads: int) -> None:
        options = solver.SearchOptions(threads=threads)
        plan = solver.plan(found.world, found.space, options)
        self.kernel = solver.make_kernel(found.space, found.hamiltonian)
        self.sigma = Sigma(
            found.world, self.kernel, plan.tiling, plan.tasks, threads=threads, overlaps=plan.overlaps
        )
        self._vectors = vector.make(
            found.world, plan.tiling, "memory", count=2, dtype="float64", cache_bytes=plan.cache_bytes
        )
        generator = np.random.default_rng(0)
        for tile in self._vectors.tiles():
            values = generator.normal(size=tile.shape)
            self._vectors.put(0, tile, (values + values.T) / 2 if tile.on_diagonal else values)
        self._vectors.sync()

    def __call__(self) -> float:
        self._vectors.clear(1)
        begin = time.perf_counter()
        self.sigma.apply(Place(self._vectors, 0), Place(self._vectors, 1))
        return time.perf_counter() - begin

    def close(self) -> None:
        self.sigma.close()
        self._vectors.close()


def _theirs(case: Case, found: FCI) -> Callable[[], Any]:
    """A function that runs PySCF's product with a vector of the same space."""
    from pyscf import fci, lib

    n, electrons = found.hamiltonian.orbitals, found.space.electrons
    solver_of_theirs = fci.direct_spin0_symm.FCI(case.mean_field.mol)
    irreps = np.asarray(found.hamiltonian.irreps)
    two = solver_of_theirs.absorb_h1e(found.hamiltonian.one, found.hamiltonian.two, n, electrons, 0.5)
    strings = fci.cistring.num_strings(n, electrons[0])
    vector_of_theirs = lib.transpose_sum(
        np.random.default_rng(0).normal(size=(strings, strings)), inplace=True
    )

    def product() -> None:
        solver_of_theirs.contract_2e(
            two, vector_of_theirs, n, electrons, orbsym=irreps, wfnsym=found.space.irrep
        )

    return product


def _products(options: BenchOptions, case: Case, threads: int, repeats: int) -> list[Claim]:
    from pyscf import __version__, lib

    ratios, scaling, rates = [], [], []
    lib.num_threads(threads)
    with case.ours(threads) as found:
        theirs = _theirs(case, found)
        many, one = Products(found, threads), Products(found, 1)
        many(), one()  # do not count: they touch memory and make tables
        operations = estimate.product_flops(found.space, many.kernel)
        for _ in range(repeats):
            seconds = interleave({"ours": many, "one": one, "theirs": theirs}, 1)
            peak = dgemm_rate(threads)
            ratios.append(seconds["theirs"] / seconds["ours"])
            scaling.append(seconds["one"] / seconds["ours"])
            rates.append(operations / seconds["ours"] / peak)
            options.say(
                f"{case.name}, {threads} threads: a product takes {seconds['ours']:.3g} s, PySCF's "
                f"{seconds['theirs']:.3g} s; {operations / seconds['ours'] / 1e9:.3g} of {peak / 1e9:.3g} GFLOP/s"
            )
        many.close()
        one.close()
    peer = f"PySCF {__version__}, direct_spin0_symm, {threads} threads"
    how = f"{repeats} products of each in turn, double precision"
    return [
        median_claim(f"{case.name}: product", ratios, "times faster", at_least(case.faster), peer, how),
        median_claim(f"{case.name}: product, rate over that of DGEMM", rates, "", case.rate, "", how),
        median_claim(
            f"{case.name}: product on {threads} threads", scaling, "times as fast as on one", at_least(1.8), "", how
        ),
    ]  # fmt: skip


# ---- whole runs ----


def _whole(options: BenchOptions, case: Case, threads: int) -> list[Claim]:
    from pyscf import __version__, fci, lib

    lib.num_threads(threads)
    energies: dict[str, float] = {}
    with case.ours(threads, residual=RESIDUAL) as found:
        n, electrons = found.hamiltonian.orbitals, found.space.electrons

        def ours() -> None:
            energies["ours"] = found.kernel()

        def theirs() -> None:
            one = fci.direct_spin0_symm.FCI(case.mean_field.mol)
            one.conv_tol, one.conv_tol_residual, one.max_cycle = 1e-10, RESIDUAL, 100
            energies["theirs"], _ = one.kernel(
                found.hamiltonian.one,
                found.hamiltonian.two,
                n,
                electrons,
                ecore=found.hamiltonian.core_energy,
                orbsym=np.asarray(found.hamiltonian.irreps),
                wfnsym=found.space.irrep,
            )

        seconds = interleave({"ours": ours, "theirs": theirs}, 1)
        iterations = len(found.solved.iterations)
    options.say(
        f"{case.name}: {energies['ours']:.10f} Eh in {seconds['ours']:.3g} s, {iterations} iterations; PySCF "
        f"{energies['theirs']:.10f} Eh in {seconds['theirs']:.3g} s"
    )
    if abs(energies["ours"] - energies["theirs"]) > 1e-8:
        raise RuntimeError(f"{case.name}: the energies differ: {energies}")
    share = seconds["ours"] / seconds["theirs"]
    how = f"{seconds['ours']:.3g} s against {seconds['theirs']:.3g} s, once, from integrals to energy"
    peer = f"PySCF {__version__}, direct_spin0_symm, {threads} threads"
    return [Claim(f"{case.name}: whole run, share of the peer's time", share, "", at_most(0.15), peer, how)]


# ---- commits ----


def _commits(
    options: BenchOptions,
    case: Case,
    threads: int,
    memory: str,
    *,
    interval_s: float,
    iterations: int,
    pairs: int,
    **settings: Any,
) -> list[Claim]:
    """Compares iterations with commits in this interval to those without commits. The start does not count."""
    usual, kept = (clock.INTERVAL_S, clock._QUICK_S), options.scratch / "kept"
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    shares, counts, written = list[float](), list[int](), list[int]()

    def once(name: str) -> None:
        clock.INTERVAL_S = interval_s if name == "with" else math.inf
        clock._QUICK_S = interval_s * usual[1] / usual[0]  # commits keep to the same share of the time
        marks = list[float]()
        given = {"memory": memory, "scratch": str(options.scratch), "checkpoint": str(kept), **settings}
        with case.ours(threads, max_cycle=iterations, **given) as found:
            found.on_iteration = lambda *_: marks.append(time.perf_counter())
            found.kernel()
            commits = found.solved.commits
        shutil.rmtree(kept)
        seconds[name].append((marks[-1] - marks[0]) / (len(marks) - 1))
        if name == "with":
            counts.append(commits.count)
            written.append(commits.written_bytes)
            shares.append(100 * commits.seconds / (marks[-1] - marks[0]))

    try:
        for number in range(pairs):
            for name in ("with", "without") if number % 2 else ("without", "with"):
                once(name)
    finally:
        clock.INTERVAL_S, clock._QUICK_S = usual
    more = [100 * (a / b - 1) for a, b in zip(seconds["with"], seconds["without"], strict=True)]
    mean = {name: statistics.median(each) for name, each in seconds.items()}
    options.say(
        f"{case.name}: an iteration takes {mean['with']:.3g} s with commits, {mean['without']:.3g} s without; "
        f"{counts[0]} commits of {written[0] / 1e6:.0f} MB in {iterations} iterations"
    )
    how = (
        f"{pairs} runs of each in turn, {iterations} iterations; one takes {mean['with']:.3g} s against "
        f"{mean['without']:.3g} s; {counts[0]} commits, {written[0] / 1e6:.0f} MB, at least {interval_s:g} s apart"
    )
    return [
        median_claim(f"{case.name}: commits within iterations, more time", more, "%", at_most(5.0), "", how),
        Claim(f"{case.name}: share of the time in commits", statistics.median(shares), "%", None, "", how),
    ]
