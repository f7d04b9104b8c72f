"""Runs every test of Outcore: C++, Python, Python on 2 and 4 processes, and on two hosts. Called by `make test`.

    scripts/test.py [--all] [--sanitize address,undefined | --sanitize thread]

Tests with the marker `long` repeat other tests for more settings or larger cases; they run with --all.

Under a sanitizer the C++ tests run, and with the address sanitizer the Python tests too. A stage that takes too
long is killed, with everything it started. Ends with one line of totals; exit status 0 if all passed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TOOLS = Path(sys.executable).parent  # of the virtual environment: mpiexec, perhaps cmake and ninja
STAGE_LIMIT_S = 2000.0  # of tests; with a sanitizer they take longer
SANITIZED_LIMIT_S = 2700.0
MESSAGE_LENGTH = 1500  # of what is said at the end of each test that failed
PRESETS = {"": "dev", "address,undefined": "asan", "thread": "tsan"}  # of CMakePresets.json, by sanitizers
CORES = len(os.sched_getaffinity(0))
RUNNING: set[subprocess.Popen[bytes]] = set()  # processes of this script, each the leader of a group


@dataclass(frozen=True)
class Result:
    """The result of a stage. `broken`: why its counts mean nothing: it did not build, crashed or hung."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    broken: str = ""
    reasons: Counter[str] = field(default_factory=Counter)  # why tests were skipped, and how many
    failures: tuple[str, ...] = ()  # names of tests that failed, with the messages of their errors

    @property
    def good(self) -> bool:
        return not self.broken and self.failed == 0 and self.passed + self.skipped > 0

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        broken = f" ({self.broken})" if self.broken else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}{broken}"


def run(
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = STAGE_LIMIT_S,
    output: IO[bytes] | None = None,
) -> str:
    """Runs a command. Returns "" if it succeeded, else the problem. A command that takes longer than `limit_s`
    hangs, and is killed with its children; None: no limit, for compilers. `output`: gets its output in place of
    the terminal."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=True,
    )
    RUNNING.add(process)
    try:
        status = process.wait(limit_s)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return f"hung, killed after {limit_s:g} s"
        raise
    finally:
        RUNNING.discard(process)
    return f"exit status {status}" if status else ""


def cpp(sanitize: str) -> Result:
    """Builds the C++ tests and runs them with ctest; counts are those that each program prints at its end."""
    preset = PRESETS[sanitize]
    log = BUILD / preset / "Testing" / "Temporary" / "LastTest.log"
    log.unlink(missing_ok=True)
    configure = ["cmake", "--preset", preset, "--log-level=WARNING"]
    build = ["cmake", "--build", "--preset", preset, "--target", "outcore_tests"]
    if run(configure) or run(build, limit_s=None):
        return Result(broken="does not build")
    ctest = ["ctest", "--preset", preset, "-j", str(CORES + 4)]  # many wait for a disk
    problem = run(ctest, limit_s=SANITIZED_LIMIT_S if sanitize else STAGE_LIMIT_S)
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", log.read_text(errors="replace"), re.MULTILINE)
    passed, failed = (sum(int(count[i]) for count in counts) for i in (0, 1))
    return Result(passed, failed, broken=problem if problem and not failed else "")


def pytest(
    tests: str,
    *,
    ranks: int = 1,
    workers: int = 1,
    python: Path = Path(sys.executable),
    environment: Mapping[str, str] | None = None,
    leave_out: str = "",
    limit_s: float = STAGE_LIMIT_S,
    output: IO[bytes] | None = None,
) -> Result:
    """Runs pytest on a directory, with `ranks` > 1 in each of so many processes; counts are those of rank 0.
    With `workers` > 1 so many tests run at a time. Tests with the markers `leave_out` are not run. `output`: as for
    `run`."""
    report = BUILD / "reports" / f"{Path(tests).name}-{ranks}.xml"
    report.unlink(missing_ok=True)
    launcher = [TOOLS / "mpiexec", "-n", str(ranks)] if ranks > 1 else []
    options = ["-q", "--color=yes" if sys.stdout.isatty() else "--color=no", f"--junitxml={report}"]
    options += ["-m", f"not ({leave_out})"] if leave_out else []
    options += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    problem = run([*launcher, python, "-u", "-m", "pytest", tests, *options], environment, limit_s, output)
    if not report.exists():
        return Result(broken=problem or "no report")
    suite = next(ElementTree.parse(report).iter("testsuite"))
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    reasons = Counter(each.get("message", "") for each in suite.iter("skipped"))
    failures = tuple(
        f"{case.get('classname')}.{case.get('name')}: {each.get('message', '')[:MESSAGE_LENGTH]}"
        for case in suite.iter("testcase")
        for each in (*case.iter("failure"), *case.iter("error"))
    )
    broken = problem if problem and not failed else ""
    return Result(total - failed - skipped, failed, skipped, broken, reasons, failures)


Stage = Callable[[IO[bytes] | None], Result]


def timed(name: str, stage: Stage, output: IO[bytes] | None = None) -> tuple[Result, str]:
    """The result of a stage, and a line about it."""
    start = time.monotonic()
    result = stage(output)
    return result, f"{name:<12} {time.monotonic() - start:6.1f} s  {result}"


def at_once(lanes: Sequence[Mapping[str, Stage]]) -> dict[str, tuple[Result, str]]:
    """Runs lanes beside each other, the stages of a lane one after another; shows the output of a stage when it has
    ended."""
    done: dict[str, tuple[Result, str]] = {}
    showing, ended = threading.Lock(), threading.Event()

    def run_lane(lane: Mapping[str, Stage]) -> None:
        for name, stage in lane.items():
            if ended.is_set():
                return
            with tempfile.TemporaryFile() as output:
                found = timed(name, stage, output)
                output.seek(0)
                with showing:
                    done[name] = found
                    print(f"== {name}", output.read().decode(errors="replace"), sep="\n", end="", flush=True)

    with ThreadPoolExecutor(len(lanes)) as threads:
        lanes_run = [threads.submit(run_lane, lane) for lane in lanes]
        try:
            for each in lanes_run:
                each.result()
        except BaseException:  # such as Ctrl-C, which the started processes do not get
            ended.set()
            for process in RUNNING.copy():
                with suppress(ProcessLookupError):  # it has ended meanwhile
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    return {name: done[name] for lane in lanes for name in lane}


def sanitizer_options() -> dict[str, str]:
    """The environment of sanitized tests, as the presets have it."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    return dict(next(each["environment"] for each in presets if each["name"] == "sanitized"))


def sanitized_python(sanitize: str) -> Result:
    """Runs the Python tests on a package built with the sanitizer, in an environment beside the usual one."""
    directory = BUILD / PRESETS[sanitize]
    python = directory / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory / "venv"], check=True)
    here, there = (
        Path(
            subprocess.check_output(
                [each, "-c", "import site; print(site.getsitepackages()[0])"], text=True
            ).strip()
        )
        for each in (sys.executable, python)
    )
    (there / "dependencies.pth").write_text(f"{here}\n")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--force-reinstall"]
    # A build of its own: with this Python, CMake finds other headers of MPI than with the usual one.
    install += ["--no-build-isolation", "--no-deps", "--config-settings", f"build-dir={directory / 'python'}"]
    install += ["--config-settings", f"cmake.define.OUTCORE_SANITIZE={sanitize}", "."]
    if run(install, limit_s=None):
        return Result(broken="does not build")
    runtime = subprocess.check_output(["g++", "-print-file-name=libasan.so"], text=True).strip()
    cxx = subprocess.check_output(["g++", "-print-file-name=libstdc++.so"], text=True).strip()
    environment = sanitizer_options()
    environment["LD_PRELOAD"] = f"{runtime} {cxx}"  # libasan looks for __cxa_throw when it starts
    environment["ASAN_OPTIONS"] += ":detect_leaks=0"  # the interpreter itself leaves much behind
    return pytest(
        "tests/python",
        workers=CORES,
        python=python,
        environment=environment,
        leave_out="launcher or memory or long",
        limit_s=SANITIZED_LIMIT_S,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sanitize", default="", choices=PRESETS, help="sanitizers of the tests")
    parser.add_argument("--all", action="store_true", help="tests that take long, too")
    arguments = parser.parse_args()
    sanitize: str = arguments.sanitize
    leave_out = "" if arguments.all else "long"

    os.environ["PATH"] = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    # More tests run at a time than there are cores: threads that wait leave theirs to others.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Tests start hundreds of commands, which would compile these anew where Python writes no bytecode.
    compileall.compile_dir(ROOT / "python", quiet=1)
    stages: dict[str, Stage] = {"C++": lambda _: cpp(sanitize)}
    # Processes that wait for each other leave the cores to more of them.
    lanes: list[dict[str, Stage]] = []
    if not sanitize:
        # Tests that wait for processes to die or for a disk leave a core to two more.
        stages["Python"] = lambda _: pytest("tests/python", workers=CORES + 2, leave_out=leave_out)
        lanes.append(
            {"4 processes": lambda output: pytest("tests/mpi", ranks=4, leave_out=leave_out, output=output)}
        )
        lanes.append(
            {
                "2 processes": lambda output: pytest(
                    "tests/mpi", ranks=2, leave_out=leave_out, output=output
                ),
                "2 hosts": lambda output: pytest("tests/hosts", output=output),
            }
        )
    elif "address" in sanitize:
        stages["Python"] = lambda _: sanitized_python(sanitize)

    done: dict[str, tuple[Result, str]] = {}
    for name, stage in stages.items():
        print(f"== {name}", flush=True)
        done[name] = timed(name, stage)
    if lanes:
        done |= at_once(lanes)
    results = {name: result for name, (result, _) in done.items()}
    lines = [line for _, line in done.values()]
    for reason, count in sum((result.reasons for result in results.values()), Counter[str]()).items():
        lines.append(f"{count} skipped: {reason}")
    for result in results.values():
        lines.extend(f"failed: {failure}" for failure in result.failures)
    print("", *lines, sep="\n")
    passed, failed, skipped = (
        sum(getattr(r, k) for r in results.values()) for k in ("passed", "failed", "skipped")
    )
    broken = "; ".join(f"{name}: {result.broken}" for name, result in results.items() if result.broken)
    print(Result(passed, failed, skipped, broken))
    return 0 if all(result.good for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
