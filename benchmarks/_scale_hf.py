"""Hartree-Fock on a cluster. A sample of the molecule's integrals is measured on this machine; plan and tasks are
the method's own, with the rates and the memory of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.chem import molecule
from outcore.chem.hf import plan
from outcore.chem.hf.integrals import TwoElectronIntegrals, work_bytes
from outcore.chem.hf.settings import Settings
from outcore.job import resources
from outcore.job.world import World
from outcore.parallel.tasks import uneven

from ._cluster import Cluster, Taken, core
from ._cluster import largest as _largest
from ._molecules import alkane

_CHUNK = 4  # tasks that a thread takes at a time, see `parallel.tasks.run_tasks`
_MATRICES = (
    5  # n x n matrices that a process sends or receives: the density, its J and K, the sums of J and K
)
_EIGEN = 9  # times n^3 operations for eigenvalues and vectors of a symmetric matrix (Golub and Van Loan)


@dataclass(frozen=True)
class Sampled:
    """A molecule with the samples of its integrals that were measured on this machine."""

    name: str
    functions: int
    basis: Any
    settings: Settings
    sample: plan.Sample
    direct: plan.Sample
    chunks: np.ndarray[Any, np.dtype[np.float64]]

    @classmethod
    def of(cls, name: str, atoms: Sequence[str], basis: str, scratch: str) -> Sampled:
        from pyscf import gto

        mol = gto.M(atom="; ".join(atoms), basis=basis, verbose=0)
        threads = resources.cores()
        settings = Settings(storage="auto", threads=threads)
        with World("self", scratch=scratch) as world:
            integrals = TwoElectronIntegrals(mol, settings, world=world)
            sample, costs = integrals.survey(), integrals.task_integrals
            integrals.close()
            direct = TwoElectronIntegrals(mol, Settings(storage="direct", threads=threads), world=world)
            of_direct = direct.survey()
            direct.close()
        chunks = np.add.reduceat(costs, np.arange(0, len(costs), _CHUNK))
        return cls(name, mol.nao, molecule.native_basis(mol), settings, sample, of_direct, chunks)


def eigen_s(functions: int) -> float:
    """A lower bound for the seconds of a diagonalization: one thread at the rate of large matrix products."""
    return _EIGEN * float(functions) ** 3 / core(1024)


def largest(cluster: Cluster) -> tuple[int, int]:
    """Numbers of carbon atoms and basis functions of the largest alkane in cc-pVDZ whose matrices fit into the
    memory of each process."""
    from pyscf import gto

    settings = Settings(storage="direct", threads=cluster.threads)
    found = (0, 0)

    def fits(carbons: int) -> bool:
        nonlocal found
        mol = gto.M(atom="; ".join(alkane(carbons)), basis="cc-pvdz", verbose=0)
        if work_bytes(molecule.native_basis(mol), settings, cluster.threads) > cluster.free_bytes:
            return False
        found = (carbons, mol.nao)
        return True

    _largest(range(1, 1 << 10), fits)
    return found


def taken(of: Sampled, cluster: Cluster) -> Taken | str:
    """Time and traffic of an SCF with as many cycles as forecasts assume. Integrals are stored or recomputed,
    whichever is faster; process 0 diagonalizes, as PySCF's driver does."""
    needed = work_bytes(of.basis, of.settings, cluster.threads)
    if needed > cluster.free_bytes:
        return f"{needed / 1e9:.3g} GB are needed in each process, there are {cluster.free_bytes / 1e9:.3g}"
    threads = cluster.threads * cluster.size
    sample, direct = of.sample.on(threads), of.direct.on(threads)
    memory = float((cluster.free_bytes - needed) * cluster.size)
    cores = cluster.cores
    a_byte = cores * (1 / cluster.write + plan.CYCLES / cluster.read)
    rule = sample.rule(memory, cluster.disk * cluster.nodes, a_byte)
    ways = {
        "auto": (sample, sample.work(rule, 1 / (cluster.read * cluster.nodes), memory)),
        "direct": (direct, direct.work(plan.KEEP_NONE)),
    }
    name, (chosen, work) = min(ways.items(), key=lambda item: item[1][1].seconds)
    computing = chosen.work(rule if name == "auto" else plan.KEEP_NONE, 0.0, memory).seconds
    last = uneven(of.chunks.tolist(), threads)
    matrices = _MATRICES * 8.0 * of.functions**2 * plan.CYCLES  # bytes of each process
    away = matrices * cluster.size * (1 - 1 / cluster.nodes)
    on_disk = max(0.0, work.bytes - memory) if name == "auto" else 0.0
    parts = {
        "integrals": computing,
        "uneven tasks": computing * (last - 1),
        "integrals from disk": max(0.0, work.seconds - computing * last),
        "densities and matrices over the network": away / (cluster.network * cluster.nodes),
        "eigenvalues at process 0": plan.CYCLES * eigen_s(of.functions),
    }
    return Taken(
        computing,
        parts,
        on_disk * (1 + plan.CYCLES),
        away,
        f"{name}: {work.kept:.3g} integrals kept, {work.bytes / 1e12:.3g} TB, {on_disk / 1e12:.3g} on disk; "
        f"{len(of.chunks)} pieces of work; {plan.CYCLES} cycles; "
        f"+- {200 * work.error_seconds / work.seconds:.2g} %",
    )
