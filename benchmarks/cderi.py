"""Unchanged PySCF with its three-index integrals in a disk array, against the same integrals in memory.

PySCF's density-fitted Hartree-Fock of C14H8F6/cc-pVDZ, in turn with the tensor in a NumPy array and with `as_cderi`
of a disk array, no part of which stays in the memory of the process. Times are those of `kernel`, on two threads,
medians of pairs, without making the tensor. The page cache is emptied before each run from disk. Processor times
show the cost of reading on a machine that other work shares. --quick takes STO-3G and fewer pairs, so that fixed
costs weigh much.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_most, median_interval
from outcore.job.world import World

from ._molecules import c14h8f6

_MEMORY = 200_000_000  # budget of the array's world
_CORES = 2


def run(options: BenchOptions) -> list[Claim]:
    import pyscf
    from pyscf import df, gto, scf

    from outcore.arrays.disk_array import DiskArray
    from outcore.interfaces.pyscf import as_cderi

    basis, pairs = ("sto-3g", 2) if options.quick else ("cc-pvdz", 7)
    mol = gto.M(atom="; ".join(c14h8f6()), basis=basis, verbose=0)
    auxbasis = "cc-pvdz-jkfit"

    def kernel(cderi: Any) -> tuple[float, float, float]:
        """Wall seconds, processor seconds, and the energy."""
        mf = scf.RHF(mol).density_fit(auxbasis)
        mf.with_df._cderi = cderi
        mf.conv_tol = 1e-9
        begin, busy = time.perf_counter(), time.process_time()
        energy = float(mf.kernel())
        return time.perf_counter() - begin, time.process_time() - busy, energy

    with pyscf.lib.with_omp_threads(_CORES), World("self", memory=_MEMORY, scratch=options.scratch) as world:
        tensor = df.DF(mol, auxbasis).build()._cderi
        with DiskArray(world, tensor.shape, typical=(240, tensor.shape[1])) as array:
            array[:] = tensor
            array.flush()
            ratios, times, busy_ratios = [], [], []
            for _ in range(pairs):
                memory, busy_memory, expected = kernel(tensor)
                _forget_pages()
                disk, busy_disk, found = kernel(as_cderi(array))
                if not np.isclose(found, expected, rtol=0, atol=1e-8):
                    raise AssertionError(f"{found} in place of {expected} Eh")
                ratios.append(disk / memory)
                busy_ratios.append(busy_disk / busy_memory)
                times.append((disk, memory))
                options.say(f"disk {disk:7.2f} s, memory {memory:7.2f} s")
    disk, memory = (statistics.median(each) for each in zip(*times, strict=True))
    return [
        Claim(
            "PySCF with its tensor in a disk array: time over that in memory",
            statistics.median(ratios),
            "times",
            at_most(1.2),
            f"PySCF {pyscf.__version__}",
            f"C14H8F6/{basis}, {tensor.nbytes / 1e6:.0f} MB, {pairs} pairs: {disk:.2f} s against {memory:.2f} s",
            median_interval(ratios),
        ),
        Claim(
            "PySCF with its tensor in a disk array: processor time over that in memory",
            statistics.median(busy_ratios),
            "times",
            at_most(1.2),
            f"PySCF {pyscf.__version__}",
            f"as above, of all threads; {len(busy_ratios)} pairs",
            median_interval(busy_ratios),
        ),
    ]


def _forget_pages() -> None:
    """Empties the page cache, if this user may."""
    os.sync()
    with suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
