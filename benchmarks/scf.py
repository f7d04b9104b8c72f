"""Hartree-Fock with integrals on disk, semi-direct and direct, against PySCF and NWChem.

Whole runs are timed from outside, start-up included, each on two processes (PySCF: two threads), in turn.
NWChem keeps all integrals on disk (`semidirect memsize 0`) with the screening threshold of Outcore. Both programs
run without symmetry, and with integrals on disk also with the symmetry that they find, C2. Semi-direct runs of both
may use half of the disk space that Outcore needs for all integrals. The molecule is C14H8F6; times with
integrals on disk are medians of three runs. `scf_large` has a larger molecule. --quick uses C14H8F6 in STO-3G
instead of 6-31G* and one run of each, so start-up weighs much, and leaves semi-direct runs and PySCF out.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most

from ._molecules import c14h8f6
from ._peers import NWCHEM, missing, open_mpi_launcher, timed

RANKS = 2
SCREENING = 1e-10  # Outcore's screening and NWChem's tol2e
_LOOSE = f"ours, direct, threshold {10 * SCREENING:.0e}"
_PYSCF_SAME = "PySCF, direct, same threshold"
_EXACT = "ours, disk, error 1e-12 Eh"  # the reference for energies
_SEMIDIRECT = "ours, semi-direct, half the disk"
_OURS_C2 = "ours, disk, symmetry C2"
_NWCHEM_C2 = "NWChem, disk, symmetry C2"
_NWCHEM_SEMIDIRECT = "NWChem, semi-direct, the same disk"


@dataclass(frozen=True)
class Run:
    seconds: float
    energy: float
    io_wait_share: float | None = None
    stored_bytes: int | None = None
    results: dict[str, Any] = field(default_factory=dict)  # of Outcore: the results of the run (--json)


@dataclass(frozen=True)
class Case:
    name: str
    geometry: Path
    basis: str
    repeats: int  # of the runs on disk
    gain: float | None  # bar for the time of recomputing over that of storing
    peers: bool  # with semi-direct runs and PySCF

    @property
    def times_nwchem(self) -> float:
        """The bar of runs on disk against NWChem's: half its time for C14H8F6 in a basis beyond the smallest."""
        return 2.0 if self.peers and self.gain is not None else 1.0


def run(options: BenchOptions) -> list[Claim]:
    say_what_is_missing(options)
    if options.quick:
        return measure(options, case(options, "C14H8F6", c14h8f6(), "sto-3g", 1, 5.0, peers=False))
    return measure(options, case(options, "C14H8F6", c14h8f6(), "6-31g*", 3, 5.0, peers=True))


def say_what_is_missing(options: BenchOptions) -> None:
    if why := missing("NWChem"):
        options.say(why)


def case(
    options: BenchOptions,
    name: str,
    atoms: list[str],
    basis: str,
    repeats: int,
    gain: float | None,
    *,
    peers: bool,
) -> Case:
    geometry = options.scratch / f"{name}.xyz"
    geometry.write_text("\n".join([str(len(atoms)), name, *atoms]) + "\n")
    return Case(name, geometry, basis, repeats, gain, peers)


def measure(options: BenchOptions, case: Case) -> list[Claim]:
    """Runs all programs; runs with integrals on disk take turns."""
    geometry, basis = case.geometry, case.basis
    options.say(f"{case.name}/{basis}")
    runs: dict[str, Callable[[], Run]] = {
        "ours, disk": lambda: _ours(geometry, basis, options.scratch, "disk"),
    }
    nwchem = not missing("NWChem")
    if case.repeats > 1:
        runs[_OURS_C2] = lambda: _ours(geometry, basis, options.scratch, "disk", group=None)
    if nwchem:
        runs["NWChem, disk"] = lambda: _nwchem(geometry, basis, options.scratch, "noautosym noautoz")
        if case.repeats > 1:
            runs[_NWCHEM_C2] = lambda: _nwchem(geometry, basis, options.scratch, "")

    times: dict[str, list[Run]] = {name: [] for name in runs}
    for _ in range(case.repeats):
        for name, one in runs.items():
            times[name].append(one())
            options.say(_line(name, times[name][-1]))
    half = (times["ours, disk"][0].stored_bytes or 0) // 2
    single: dict[str, Callable[[], Run]] = {
        "ours, direct": lambda: _ours(geometry, basis, options.scratch, "direct"),
        _EXACT: lambda: _ours(geometry, basis, options.scratch, "disk", screening=None),
    }
    if case.repeats > 1:
        single["ours, disk, page cache bypassed"] = lambda: _ours(
            geometry, basis, options.scratch, "disk", "direct"
        )
    if case.peers:
        single[_LOOSE] = lambda: _ours(geometry, basis, options.scratch, "direct", screening=10 * SCREENING)
    if case.peers:
        single[_SEMIDIRECT] = lambda: _ours(geometry, basis, options.scratch, "mixed", disk_bytes=half)
        single["ours, auto"] = lambda: _ours(geometry, basis, options.scratch, "auto")
        if nwchem:
            single[_NWCHEM_SEMIDIRECT] = lambda: _nwchem(
                geometry, basis, options.scratch, "noautosym noautoz", half
            )
        single[_PYSCF_SAME] = lambda: _pyscf(geometry, basis, SCREENING)
        if case.repeats > 1:
            single["PySCF, direct"] = lambda: _pyscf(geometry, basis, 1e-13)
    for name, one in single.items():
        times[name] = [one()]
        options.say(_line(name, times[name][0]))
    options.ran(f"{case.name}/{basis}", times["ours, disk"][0].results)
    return _claims(case, times)


def _line(name: str, result: Run) -> str:
    return f"{name:34} {result.seconds:8.1f} s  {result.energy:.10f} Eh"


def _claims(case: Case, times: dict[str, list[Run]]) -> list[Claim]:
    seconds = {name: statistics.median(run.seconds for run in runs) for name, runs in times.items()}
    ours = times["ours, disk"]
    exact = times[_EXACT][0].energy
    how = f"{case.name}/{case.basis} cartesian, {RANKS} processes, threshold {SCREENING:.0e}, whole runs"
    claims = [
        Claim(
            "integrals on disk against recomputing them",
            seconds["ours, direct"] / seconds["ours, disk"],
            "times faster",
            None if case.gain is None else at_least(case.gain),
            "ours, direct",
            f"{how}: {seconds['ours, direct']:.1f} / {seconds['ours, disk']:.1f} s",
        ),
        Claim(
            "time waiting for I/O",
            statistics.median(100 * (run.io_wait_share or 0.0) for run in ours),
            "% of run time",
            at_most(2.0),
            "",
            f"{how}; callers blocked, over all processes",
        ),
    ]
    if _SEMIDIRECT in times:
        claims += [
            Claim(
                "half of the integrals' bytes kept against recomputing all",
                seconds["ours, direct"] / seconds[_SEMIDIRECT],
                "times faster",
                at_least(3.0),
                "ours, direct",
                f"{how}: {seconds['ours, direct']:.1f} / {seconds[_SEMIDIRECT]:.1f} s",
            ),
            Claim(
                "auto against recomputing all",
                seconds["ours, direct"] / seconds["ours, auto"],
                "times faster",
                at_least(1.0),
                "ours, direct",
                f"{how}: {seconds['ours, auto']:.1f} s; all on disk {seconds['ours, disk']:.1f} s",
            ),
        ]
    for ours_name, name in (
        (_SEMIDIRECT, _NWCHEM_SEMIDIRECT),
        ("ours, direct", _PYSCF_SAME),
        (_LOOSE, _PYSCF_SAME),
    ):
        if name in times and ours_name in times:
            claims.append(
                Claim(
                    f"{ours_name} against {name}",
                    seconds[name] / seconds[ours_name],
                    "times faster",
                    at_least(1.0) if ours_name == _SEMIDIRECT else None,
                    name,
                    f"{how}: {seconds[name]:.1f} / {seconds[ours_name]:.1f} s, errors "
                    f"{times[name][0].energy - exact:.1e} and {times[ours_name][0].energy - exact:.1e} Eh",
                )
            )
    if _PYSCF_SAME in times:
        allowed = abs(times[_PYSCF_SAME][0].energy - exact)
        as_exact = [
            name for name in ("ours, direct", _LOOSE) if abs(times[name][0].energy - exact) <= allowed
        ]
        fastest = min(as_exact, key=lambda name: seconds[name], default=None)
        claims.append(
            Claim(
                f"direct, with an error no larger than that of {_PYSCF_SAME}",
                0.0 if fastest is None else seconds[_PYSCF_SAME] / seconds[fastest],
                "times faster",
                at_least(1.0),
                _PYSCF_SAME,
                f"{how}: {fastest or 'none of ours is as exact'}",
            )
        )
    if "NWChem, disk" in times:
        theirs = times["NWChem, disk"]
        claims += [
            Claim(
                "integrals on disk against NWChem's",
                seconds["NWChem, disk"] / seconds["ours, disk"],
                "times faster",
                at_least(case.times_nwchem),
                "NWChem 7.0.2, Open MPI",
                f"{how}: {seconds['NWChem, disk']:.1f} / {seconds['ours, disk']:.1f} s, medians of {len(ours)}",
            ),
            Claim(
                "error of the energy against NWChem's",
                abs(ours[0].energy - exact) / max(1e-10, abs(theirs[0].energy - exact)),
                "of NWChem's",
                at_most(1.0),
                "NWChem 7.0.2",
                f"{how}: {ours[0].energy - exact:.1e} and {theirs[0].energy - exact:.1e} Eh "
                "from integrals on disk with an error of 1e-12 Eh",
            ),
        ]
    if _OURS_C2 in times:
        claims += _of_symmetry(case, times, seconds, exact, how)
    for name in times:
        if name not in (
            _OURS_C2,
            "ours, disk",
            "ours, direct",
            "NWChem, disk",
            _SEMIDIRECT,
            _LOOSE,
            _EXACT,
            _NWCHEM_SEMIDIRECT,
            "ours, auto",
        ):
            claims.append(
                Claim(
                    f"run time of {name}",
                    seconds[name] / seconds["ours, disk"],
                    "of ours on disk",
                    None,
                    name,
                    f"{how}: {seconds[name]:.1f} s",
                )
            )
    stored = ours[0].stored_bytes
    if stored is not None:
        claims.append(Claim("integrals stored", stored / 1e9, "GB", None, "", how))
    return [replace(claim, name=f"{case.name}: {claim.name}") for claim in claims]


def _of_symmetry(
    case: Case, times: dict[str, list[Run]], seconds: dict[str, float], exact: float, how: str
) -> list[Claim]:
    """Claims about savings by C2, a group of two operations."""
    ours, alone = times[_OURS_C2], times["ours, disk"]
    claims = [
        Claim(
            "bytes on disk without symmetry against those with C2",
            (alone[0].stored_bytes or 0) / (ours[0].stored_bytes or 1),
            "times more",
            at_least(1.8),
            "ours, disk",
            f"{how}: {seconds['ours, disk']:.1f} / {seconds[_OURS_C2]:.1f} s, energies differ by "
            f"{ours[0].energy - alone[0].energy:.1e} Eh",
        )
    ]
    if _NWCHEM_C2 in times:
        claims.append(
            Claim(
                "integrals on disk with symmetry C2 against NWChem's",
                seconds[_NWCHEM_C2] / seconds[_OURS_C2],
                "times faster",
                at_least(case.times_nwchem),
                "NWChem 7.0.2, Open MPI",
                f"{how}: {seconds[_NWCHEM_C2]:.1f} / {seconds[_OURS_C2]:.1f} s, medians of {len(ours)}, errors "
                f"{times[_NWCHEM_C2][0].energy - exact:.1e} and {ours[0].energy - exact:.1e} Eh",
            )
        )
    return claims


def _ours(
    geometry: Path,
    basis: str,
    scratch: Path,
    storage: str,
    page_cache: str = "auto",
    disk_bytes: int | None = None,
    screening: float | None = SCREENING,  # None: as exact as possible
    group: str | None = "C1",  # None: the largest group of the molecule
) -> Run:
    results = scratch / "ours.json"
    command = [
        sys.executable, "-m", "outcore", "scf", str(geometry), "--basis", basis, "--cart", "--storage", storage,
        "--ranks", str(RANKS), "--scratch", str(scratch), "--json", str(results),
    ]  # fmt: skip
    if storage != "direct":
        command += ["--page-cache", page_cache]
    exact = ["--error", "1e-12", "--conv-tol", "1e-11"]
    command += exact if screening is None else ["--screening", str(screening)]
    command += [] if group is None else ["--group", group]
    if disk_bytes is not None:
        command += ["--disk", str(disk_bytes)]
    seconds, _ = timed(command)
    data = json.loads(results.read_text())
    stored = data.get("stored", {}).get("bytes")
    return Run(seconds, data["energy_hartree"], data.get("io_wait_share"), stored, data)


_PYSCF = """
import sys
from pyscf import gto, scf
mol = gto.M(atom=sys.argv[1], basis=sys.argv[2], cart=True, verbose=0, max_memory=1)
mf = scf.RHF(mol).set(direct_scf_tol=float(sys.argv[3]), conv_tol=1e-9, chkfile=None)
mf._is_mem_enough = lambda: False
print("energy", repr(float(mf.kernel())))
"""


def _pyscf(geometry: Path, basis: str, threshold: float) -> Run:
    command = [sys.executable, "-c", _PYSCF, str(geometry), basis, str(threshold)]
    seconds, output = timed(command, OMP_NUM_THREADS=str(RANKS))
    return Run(seconds, float(output.split()[-1]))


def _nwchem(
    geometry: Path, basis: str, scratch: Path, symmetry: str, disk_bytes: int = 16_000_000_000 * RANKS
) -> Run:
    directory = scratch / "nwchem"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    atoms = "\n".join(geometry.read_text().splitlines()[2:])
    (directory / "scf.nw").write_text(
        f"""start scf
memory total 2000 mb
geometry units angstroms {symmetry}
{atoms}
end
basis cartesian
  * library {basis.upper()}
end
scf
  rhf
  thresh 1e-6
  tol2e {SCREENING:.0e}
  semidirect memsize 0 filesize {disk_bytes // (8 * RANKS)}
end
task scf energy
"""
    )
    launcher = open_mpi_launcher()
    assert launcher is not None
    command = [launcher, "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), NWCHEM, "scf.nw"]
    seconds, output = timed(command, directory, OMP_NUM_THREADS="1")
    found = re.search(r"Total SCF energy =\s*(-?[\d.]+)", output)
    shutil.rmtree(directory)
    if found is None:
        raise OutcoreError(errno.EIO, "run NWChem", detail=f"no energy in its output: {output[-2000:]}")
    return Run(seconds, float(found[1]))
