"""The ChemIO experiment: Hartree-Fock of C14H8F6 direct, semi-direct with several disk budgets, and on disk.

Each run is `outcore scf` on all cores, one process for each; its results are kept in DIRECTORY/runs.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.cli import bench
from outcore.job import resources
from outcore.keep.problem import Problem
from outcore.study import figures
from outcore.study.cases import MOLECULES
from outcore.study.markdown import percent, table
from outcore.study.runner import FORMAT, OutOfTime

BUDGETS = (0.125, 0.25, 0.5, 0.75)
"""Disk budgets, as shares of the disk space of all integrals."""


@dataclass(frozen=True)
class StudyRun:
    """The result of `outcore scf --json`. `share` is the disk budget as a share of the disk space of all integrals:
    0 for the direct run, 1 for the run with all of them on disk."""

    name: str
    share: float
    facts: dict[str, Any]

    @property
    def seconds(self) -> float:
        return float(self.facts["run_seconds"])

    @property
    def stored_bytes(self) -> int:
        return int(self.facts["stored"]["bytes"]) if self.facts.get("stored") else 0


class ChemioHf:
    """The runs of the study. `within_s`: seconds after which no run begins."""

    def __init__(
        self, directory: Path, scratch: Path, within_s: float | None, quick: bool, say: Callable[[str], None]
    ) -> None:
        self.molecule = MOLECULES["TINY" if quick else "C14H8F6"]
        self._directory, self._scratch, self._say = directory, scratch, say
        self._record = "64KiB" if quick else "4MiB"
        self._processes = 1 if quick else resources.cores()
        self._deadline = None if within_s is None else time.monotonic() + within_s
        (directory / "runs").mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        """Does the runs that have not been done. Raises OutOfTime, and OutcoreError if a run fails."""
        whole = self._run("disk", 1.0, "disk").stored_bytes
        for share in BUDGETS:
            self._run(f"mixed-{share:g}", share, "mixed", "--disk", str(int(share * whole)))
        self._run("direct", 0.0, "direct")
        self._run("auto", 1.0, "auto")

    def known(self) -> list[StudyRun]:
        names = [("direct", 0.0), *((f"mixed-{s:g}", s) for s in BUDGETS), ("disk", 1.0), ("auto", 1.0)]
        return [run for name, share in names if (run := self._known(name, share)) is not None]

    def _known(self, name: str, share: float) -> StudyRun | None:
        path = self._directory / "runs" / f"{name}.json"
        if not path.is_file():
            return None
        facts = json.loads(path.read_text())
        self._problem.check(facts.get("run"), "go on with a study", path)
        return StudyRun(name, share, facts)

    @property
    def _problem(self) -> Problem:
        """The settings that all runs share."""
        settings = {**asdict(self.molecule), "record": self._record, "processes": self._processes}
        return Problem("a run of the study chemio-hf", FORMAT, settings)

    def _run(self, name: str, share: float, storage: str, *options: str) -> StudyRun:
        known = self._known(name, share)
        if known is not None:
            return known
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise OutOfTime
        with tempfile.TemporaryDirectory(prefix="study-") as place:
            result = Path(place) / "result.json"
            command = [
                *(sys.executable, "-m", "outcore", "scf", str(self.molecule.path())),
                *("--basis", self.molecule.basis, *(["--cart"] if self.molecule.cartesian else [])),
                *(
                    "--storage",
                    storage,
                    *options,
                    *([] if storage == "direct" else ["--record-bytes", self._record]),
                ),
                *("--ranks", str(self._processes), "--scratch", str(self._scratch), "--json", str(result)),
            ]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                raise OutcoreError(None, f"run {name}", detail=answer.stderr.strip()[-2000:])
            facts = json.loads(result.read_text()) | {"run": self._problem.as_json()}
        (self._directory / "runs" / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
        self._say(f"{name}: {facts['run_seconds']:.1f} s, E = {facts['energy_hartree']:.10f}")
        return StudyRun(name, share, facts)

    # ---- the report

    def write(self) -> list[Path]:
        """Writes report.md, results.json and a figure of the finished runs; returns their paths."""
        runs = self.known()
        facts, m = bench.machine(self._scratch), self.molecule
        lines = [
            f"# Hartree-Fock of {m.title}: direct, semi-direct, on disk",
            "",
            f"Made by `outcore study chemio-hf` on {datetime.datetime.now(datetime.UTC).date().isoformat()}; "
            f"{facts['processor']}, {facts['memory_bytes'] / 2**30:.0f} GiB, Linux {facts['kernel']}, scratch on "
            f"{facts['scratch']['file_system']}. {m.basis}, {'cartesian' if m.cartesian else 'spherical'}, "
            f"{m.functions} functions; {self._processes} process(es) of one thread. The storage is that of the "
            "machine, with its page cache. Budgets are shares of the disk space of all integrals.",
            "",
        ]
        direct = next((run for run in runs if run.name == "direct"), None)
        rows = []
        for run in runs:
            io = run.facts.get("io_wait_share")
            rows.append(
                [
                    run.name,
                    f"{run.stored_bytes / 1e6:.0f}",
                    f"{run.seconds:.1f}",
                    "-" if direct is None else f"{direct.seconds / run.seconds:.2f}",
                    "-" if io is None else percent(io, 2),
                    str(run.facts["cycles"]),
                    f"{run.facts['energy_hartree']:.9f}",
                ]
            )
        head = [
            "integrals",
            "stored / MB",
            "seconds",
            "direct : this",
            "blocked by I/O",
            "cycles",
            "E / Hartree",
        ]
        lines += [table(head, rows), ""]
        wrote = [self._directory / "report.md", self._directory / "results.json"]
        budgets = [run for run in runs if run.name != "auto"]
        if len(budgets) > 1:
            wrote.append(self._directory / "budgets.png")
            points = [(run.stored_bytes / 1e6, run.seconds) for run in budgets]
            figures.budgets(wrote[-1], points, f"{m.title}/{m.basis}: run time against stored integrals")
            lines += ["![run time against stored bytes](budgets.png)", ""]
        wrote[0].write_text("\n".join(lines).rstrip() + "\n")
        results = {"machine": facts, "runs": {run.name: run.facts for run in runs}}
        wrote[1].write_text(json.dumps(results, indent=1) + "\n")
        return wrote
