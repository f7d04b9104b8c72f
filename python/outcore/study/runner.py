"""Runs the cases of a study, each in processes of its own, and keeps their results.

Results lie in DIRECTORY/runs, a file for each case: a study that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from outcore.base.errors import OutcoreError
from outcore.job import launch
from outcore.keep.problem import Problem
from outcore.study.cases import Case, Stream
from outcore.trace.report import READS, WRITES, Report

FORMAT = 2  # of the kept results of a run

C = TypeVar("C", Case, Stream)


@dataclass(frozen=True)
class Outcome(Generic[C]):
    """The result of a run. Times in seconds; those of I/O are blocked time, summed over processes."""

    case: C
    facts: dict[str, Any]

    @cached_property
    def report(self) -> Report:
        return Report.from_dict(self.facts["report"], self.case.key)

    @property
    def seconds(self) -> float:
        return self.report.run_seconds

    @property
    def io_seconds(self) -> float:
        return self.report.io_seconds("file")

    @property
    def io_share(self) -> float:
        """I/O time as a share of the run time of all processes."""
        return self.io_seconds / (self.seconds * len(self.report.processes))

    @property
    def compute_seconds(self) -> float:
        """Seconds without I/O, summed over processes."""
        return self.seconds * len(self.report.processes) - self.io_seconds

    @property
    def reads(self) -> int:
        return self.report.total("file", READS).count

    @property
    def writes(self) -> int:
        return self.report.total("file", WRITES).count

    @property
    def energy(self) -> float:
        return float(self.facts["energy_hartree"])


class OutOfTime(Exception):
    """The given time is over; the next call can do the missing runs."""


def _problem(case: Case | Stream) -> Problem:
    """The settings of a run. The emulated device is that of the machine on which the study began."""
    settings = {name: value for name, value in asdict(case).items() if name != "device"}
    return Problem(f"a run of {case.worker}", FORMAT, settings)


class Runner:
    """Runs cases and remembers their outcomes. `within_s`: seconds after which no run begins."""

    def __init__(
        self,
        directory: Path,
        scratch: str | None,
        within_s: float | None,
        repeats: int,
        say: Callable[[str], None],
    ) -> None:
        self.directory = directory
        self._scratch, self._repeats, self._say = scratch, repeats, say
        self._deadline = None if within_s is None else time.monotonic() + within_s
        self._runs.mkdir(parents=True, exist_ok=True)

    @property
    def _runs(self) -> Path:
        return self.directory / "runs"

    def known(self, case: C) -> Outcome[C] | None:
        """The outcome of a case; None: it has not been run."""
        path = self._runs / f"{case.key}.json"
        if not path.is_file():
            return None
        facts = json.loads(path.read_text())
        _problem(case).check(facts.get("run"), "go on with a study", path)
        return Outcome(case, facts)

    def trace_of(self, case: C) -> Path:
        """The file of the single requests of a run, if they were recorded."""
        return self._runs / f"{case.key}.trace"

    def run(self, case: C, *, events: bool = False) -> Outcome[C]:
        """The outcome of a case. If it is not known, the case is run `repeats` times, and the run with the median
        run time counts. Raises OutOfTime, and OutcoreError if the run fails."""
        outcome = self.known(case)
        if outcome is not None and (not events or self.trace_of(case).is_file()):
            return outcome
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise OutOfTime
        outcomes = []
        for _ in range(self._repeats):
            start = time.monotonic()
            outcomes.append(self._once(case, events))
            self._say(
                f"{case.key}: {outcomes[-1].seconds:.2f} s, I/O {outcomes[-1].io_share:.1%} "
                f"({time.monotonic() - start:.1f} s in all)"
            )
        outcomes.sort(key=lambda each: each.seconds)
        chosen = outcomes[len(outcomes) // 2]
        (self._runs / f"{case.key}.json").write_text(
            json.dumps(chosen.facts | {"run": _problem(case).as_json()}, indent=1) + "\n"
        )
        return chosen

    def _once(self, case: C, events: bool) -> Outcome[C]:
        with tempfile.TemporaryDirectory(prefix="study-") as place:
            result = Path(place) / "result.json"
            settings = case.settings() | {"scratch": self._scratch, "result": str(result), "events": events}
            launcher: list[str] = []
            if case.processes > 1:
                launcher = [str(launch.find_launcher()), "-n", str(case.processes)]
            command = [*launcher, sys.executable, "-u", "-m", case.worker, json.dumps(settings)]
            environment = dict(os.environ, OMP_NUM_THREADS="1", OUTCORE_REQUESTS=case.interface)
            environment.pop("OUTCORE_THROTTLE", None)
            if case.device is not None:
                environment["OUTCORE_THROTTLE"] = case.device.setting(Path(place) / "clock")
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if answer.returncode != 0 or not result.is_file():
                detail = (answer.stderr.strip() or answer.stdout.strip())[-2000:]
                raise OutcoreError(None, f"run {case.key}", detail=detail)
            if events:
                shutil.move(result.with_suffix(".trace"), self.trace_of(case))
            return Outcome(case, json.loads(result.read_text()))
