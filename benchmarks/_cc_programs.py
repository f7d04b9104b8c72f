"""Whole CCSD(T) calculations of closed shells with frozen cores, with Outcore and with other programs: the same
molecule, basis and convergence (energy 1e-8 Eh, amplitudes 1e-6), two cores."""

from __future__ import annotations

import errno
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError

from ._peers import NWCHEM, open_mpi_launcher, timed

CORES = 2
PEER_MEMORY_MB = 8000  # for all processes of a peer together


@dataclass(frozen=True)
class Job:
    """atoms: "element x y z" in Angstrom. memory: --memory of Outcore."""

    name: str
    atoms: Sequence[str]
    basis: str
    memory: str

    def write(self, directory: Path) -> Path:
        path = directory / "molecule.xyz"
        path.write_text("\n".join([str(len(self.atoms)), self.name, *self.atoms]) + "\n")
        return path


@dataclass(frozen=True)
class Run:
    """seconds: time of the whole run. ccsd, triples: correlation energies (Hartree). results: --json of Outcore."""

    seconds: float
    ccsd: float
    triples: float
    results: dict[str, Any] = field(default_factory=dict)


def ours(job: Job, scratch: Path, *more: str) -> Run:
    results = scratch / "results.json"
    command = [
        sys.executable, "-m", "outcore", "ccsd", str(job.write(scratch)), "--basis", job.basis, "--frozen", "auto",
        "--triples", "--memory", job.memory, "--threads", str(CORES), "--scratch", str(scratch),
        "--json", str(results), *more,
    ]  # fmt: skip
    seconds, _ = timed(command)
    found = json.loads(results.read_text())
    for path in (results, scratch / "molecule.xyz"):
        path.unlink()
    return Run(seconds, found["ccsd_correlation_hartree"], found["triples_hartree"], found)


def threads_of(count: int) -> dict[str, str]:
    """Environment variables that set the number of threads of OpenMP and of BLAS libraries."""
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(count))


_PYSCF = """
import sys
from pyscf import cc, df, gto, scf
from pyscf.cc import dfccsd
from pyscf.data.elements import chemcore
geometry, basis, memory = sys.argv[1:]
mol = gto.M(atom=geometry, basis=basis, verbose=0, max_memory=int(memory))
mf = scf.RHF(mol).density_fit().set(conv_tol=1e-9, chkfile=None)
mf.kernel()
mycc = dfccsd.RCCSD(mf, frozen=chemcore(mol) or None)
mycc.with_df = df.DF(mol, auxbasis=df.make_auxbasis(mol, mp2fit=True))
mycc.conv_tol, mycc.conv_tol_normt = 1e-8, 1e-6
mycc.kernel()
assert mycc.converged
print("result", repr(float(mycc.e_corr)), repr(float(mycc.ccsd_t())))
"""


def pyscf(job: Job, scratch: Path) -> Run:
    geometry = job.write(scratch)
    command = [sys.executable, "-c", _PYSCF, str(geometry), job.basis, str(PEER_MEMORY_MB)]
    seconds, output = timed(command, scratch, **threads_of(CORES))
    geometry.unlink()
    return _run("PySCF", seconds, output, r"^result (\S+) ", r"^result \S+ (\S+)")


def run_psi4(job: Job, scratch: Path, task: str, *, digits: int = 8, more: str = "") -> tuple[float, str]:
    """Runs `task` with density fitting and frozen cores; returns its seconds and its output. The convergence is
    10^-digits for the energy, one digit less for densities, two less for residuals. more: other settings."""
    directory = _fresh(scratch / "psi4")
    atoms = "\n".join(job.atoms)
    (directory / "input.dat").write_text(
        f"""memory {PEER_MEMORY_MB} mb
molecule {{
{atoms}
no_com
no_reorient
symmetry c1
}}
set {{
  basis {job.basis}
  scf_type df
  cc_type df
  {more}
  freeze_core true
  e_convergence 1e-{digits}
  d_convergence 1e-{digits - 1}
  r_convergence 1e-{digits - 2}
}}
{task}
"""
    )
    command = ["psi4", "-n", str(CORES), "-s", str(directory), "input.dat", "output.dat"]
    seconds, _ = timed(command, directory, **threads_of(CORES))
    output = (directory / "output.dat").read_text()
    shutil.rmtree(directory)
    return seconds, output


def psi4(job: Job, scratch: Path) -> Run:
    seconds, output = run_psi4(job, scratch, "energy('ccsd(t)')")
    return _run(
        "Psi4", seconds, output, r"^ *CCSD correlation energy: +(-?[\d.]+)", r"^ *\(T\) energy +(-?[\d.]+)"
    )


def nwchem(job: Job, scratch: Path) -> Run:
    """Runs without density fitting: NWChem's energies come from exact integrals."""
    directory = _fresh(scratch / "nwchem")
    atoms = "\n".join(job.atoms)
    (directory / "in.nw").write_text(
        f"""start cc
memory total {PEER_MEMORY_MB // CORES} mb
geometry units angstroms noautosym noautoz nocenter
{atoms}
end
basis spherical
  * library {job.basis}
end
scf
  rhf
  thresh 1e-6
  tol2e 1e-12
end
ccsd
  freeze atomic
  thresh 1e-6
  maxiter 50
end
task ccsd(t)
"""
    )
    launcher = open_mpi_launcher()
    assert launcher is not None
    command = [launcher, "--allow-run-as-root", "--oversubscribe", "-n", str(CORES), NWCHEM, "in.nw"]
    seconds, output = timed(command, directory, **threads_of(1))
    shutil.rmtree(directory)
    return _run(
        "NWChem",
        seconds,
        output,
        r"^ *CCSD corr\. energy: +(-?[\d.]+)",
        r"^ *\(T\) corr\. energy: +(-?[\d.]+)",
    )


PEERS: dict[str, Callable[[Job, Path], Run]] = {"PySCF": pyscf, "Psi4": psi4, "NWChem": nwchem}


def _fresh(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def _run(name: str, seconds: float, output: str, ccsd: str, triples: str) -> Run:
    found = [re.search(pattern, output, re.MULTILINE) for pattern in (ccsd, triples)]
    if found[0] is None or found[1] is None:
        raise OutcoreError(errno.EIO, f"run {name}", detail=f"no energy in its output: {output[-2000:]}")
    return Run(seconds, float(found[0][1]), float(found[1][1]))
