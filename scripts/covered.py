"""Counts the statements and branches of Outcore that tests run: Python with coverage.py, C++ with gcov.

    scripts/covered.py all                      the three steps below: `make coverage`
    scripts/covered.py python [PLACE ..]        each place of the tests in a process of its own; without one, all
                                                that these sources were not yet measured with
    scripts/covered.py cpp                      builds build/coverage, and runs the C++ tests there
    scripts/covered.py write                    docs/develop/coverage.json

Counts lie in build/covered, and `write` puts them together; it refuses counts of other sources. Then
`scripts/documents` makes the page. Tests marked `memory` or `long` and those of several hosts do not count; of a
test with parameters only the first and the last case count. Processes that tests start count, unless they are
killed.
COVERED_JOBS is the number of places at a time, else the number of cores.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "covered"
BUILD = ROOT / "build" / "coverage"  # the build directory of the preset
PAGE = ROOT / "docs" / "develop" / "coverage.json"
SETTINGS = """[run]
branch = true
parallel = true
source = {root}/python/outcore
data_file = {work}/raw/{name}/data
concurrency = thread, multiprocessing
patch = subprocess

[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
    \\.\\.\\.$
"""
TOOLS = Path(sys.executable).parent
COVERAGE = [sys.executable, "-m", "coverage"]
MPI = "tests/mpi"  # on two processes
CHOSEN = [
    "-q",
    "-m",
    "not memory and not long",
    "-p",
    "no:cacheprovider",
    "-p",
    "few_parameters",
    "--timeout=1200",
]


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()


def sources(*folders: str) -> str:
    """A mark of the committed contents of folders. Raises SystemExit if there are uncommitted changes."""
    if changed := git("status", "--porcelain", "--", *folders):
        sys.exit(f"commit first, so that a commit has what is measured:\n{changed}")
    return " ".join(git("rev-parse", f"HEAD:{each}") for each in folders)


# ---- Python


def places() -> list[str]:
    """All places of the tests in Python, those that take longest first. A pattern is one place."""
    tests = ROOT / "tests" / "python"
    folders = {each.parent for each in tests.rglob("test_*.py")} - {tests, tests / "chem"}
    inner = {each for each in folders if any(each.is_relative_to(other) for other in folders - {each})}
    found = sorted(str(each.relative_to(ROOT)) for each in folders - inner)
    first = [MPI, "tests/python/chem/cc", "tests/python/chem/test_*.py", "tests/python/test_*.py"]
    return [*first, *(each for each in found if each not in first)]


def measured(place: str) -> Path:
    return WORK / "python" / f"{_name(place)}.json"


def measure_python(chosen: Sequence[str]) -> int:
    """Measures places, several at a time. Returns the number of those in which tests failed."""
    mark = sources("python")
    if not chosen:
        chosen = [
            place
            for place in places()
            if not measured(place).exists() or json.loads(measured(place).read_text())["sources"] != mark
        ]
    jobs = int(os.environ.get("COVERED_JOBS", len(os.sched_getaffinity(0))))
    with ThreadPoolExecutor(jobs) as threads:
        return sum(threads.map(lambda place: _measure_place(place, mark), chosen))


def _name(place: str) -> str:
    return re.sub(r"\W+", "-", place)


def _measure_place(place: str, mark: str) -> bool:
    """Whether tests of the place failed."""
    name = _name(place)
    raw = WORK / "raw" / name
    raw.mkdir(parents=True, exist_ok=True)
    for each in raw.iterdir():
        each.unlink()
    settings = raw / "settings.ini"
    settings.write_text(SETTINGS.format(root=ROOT, work=WORK, name=name))
    log = raw / "log.txt"
    found = [str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(each for each in found if each),
    }
    files = [str(each) for each in sorted(ROOT.glob(place))] if "*" in place else [place]
    launcher = ["mpiexec", "-n", "2"] if place == MPI else []
    command = [*launcher, *COVERAGE, "run", f"--rcfile={settings}", "-m", "pytest", *files, *CHOSEN]
    with log.open("w") as file:
        status = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
        ).returncode
    if status == 5:
        print(f"{place}: no test is of those that count", flush=True)
        return False
    said = log.read_text()
    counts = re.findall(r"^=* ?(\d+ (?:passed|failed).*?) in [\d.]+s", said, re.MULTILINE)
    if status not in (0, 1) or not counts:  # 1: tests have failed, but the statements that they ran count
        raise RuntimeError(f"{place} was not measured:\n{said[-4000:]}")
    print(f"{place}: {counts[-1]}", flush=True)
    data = [str(each) for each in raw.glob("data.*") if each.stat().st_size]  # killed ones are empty
    if data:  # else tests that start no Python of the package
        out = WORK / "python" / f"{name}.data"
        out.parent.mkdir(exist_ok=True)
        out.unlink(missing_ok=True)
        combine = [*COVERAGE, "combine", "-q", f"--rcfile={settings}", f"--data-file={out}"]
        subprocess.run([*combine, *data], cwd=ROOT, check=True)
        measured(place).write_text(json.dumps({"place": place, "sources": mark, "tests": counts[-1]}))
    return bool(status)


def of_python() -> dict[str, Any] | None:
    facts = [json.loads(each.read_text()) for each in sorted((WORK / "python").glob("*.json"))]
    if not facts:
        return None
    mark = sources("python")
    if others := [each["place"] for each in facts if each["sources"] != mark]:
        sys.exit(f"measured with other sources: {', '.join(others)}; measure these again")
    together, report = WORK / "together.data", WORK / "together.json"
    settings = WORK / "settings.ini"
    settings.write_text(SETTINGS.format(root=ROOT, work=WORK, name="together"))
    together.unlink(missing_ok=True)
    data = [str(each) for each in sorted((WORK / "python").glob("*.data"))]
    given = [f"--rcfile={settings}", f"--data-file={together}"]
    subprocess.run([*COVERAGE, "combine", "-q", "--keep", *given, *data], cwd=ROOT, check=True)
    subprocess.run([*COVERAGE, "json", "-q", *given, "-o", report], cwd=ROOT, check=True)
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for file, each in json.loads(report.read_text())["files"].items():
        found = each["summary"]
        rooms[_room(Path(file).relative_to("python/outcore").parts)].update(
            statements=found["num_statements"],
            run=found["covered_lines"],
            branches=found["num_branches"],
            branches_run=found["covered_branches"],
        )
    return {"rooms": {room: dict(rooms[room]) for room in sorted(rooms)}, "measured": facts}


def _room(parts: Sequence[str]) -> str:
    """The room of a file of the package; methods of chemistry have rooms of their own."""
    if len(parts) == 1:
        return "outcore"
    return (
        f"outcore/{parts[0]}/{parts[1]}" if parts[0] == "chem" and len(parts) > 2 else f"outcore/{parts[0]}"
    )


# ---- C++


def measure_cpp() -> int:
    sources("src", "include", "tests")
    environment = os.environ | {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    for file in BUILD.rglob("*.gcda"):
        file.unlink()
    for command in (
        ["cmake", "--preset", "coverage", "--log-level=WARNING"],
        ["cmake", "--build", "--preset", "coverage"],
    ):
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    mark = sources("src", "include")
    tests = subprocess.run(
        ["ctest", "--preset", "coverage", "-j", "2", "--timeout", "1200"],
        cwd=ROOT,
        env=environment,
        check=False,
    )
    log = (BUILD / "Testing" / "Temporary" / "LastTest.log").read_text(errors="replace")
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", log, re.MULTILINE)
    passed, wrong = (sum(int(count[i]) for count in counts) for i in (0, 1))
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for file, (lines, branches) in _run_in_cpp().items():
        parts = Path(file).parts
        room = "include" if parts[0] == "include" else "/".join(parts[:2])
        rooms[room].update(
            statements=len(lines),
            run=sum(lines.values()),
            branches=len(branches),
            branches_run=sum(branches.values()),
        )
    found = {
        "rooms": {room: dict(rooms[room]) for room in sorted(rooms)},
        "measured": [{"place": "C++ tests", "sources": mark, "tests": f"{passed} passed, {wrong} failed"}],
    }
    (WORK / "cpp.json").write_text(json.dumps(found, indent=1))
    return tests.returncode


Lines = dict[int, bool]
Branches = dict[tuple[int, int], bool]


def _run_in_cpp() -> dict[str, tuple[Lines, Branches]]:
    """For each file of src and include: its lines with code and its branches, by line and number, and whether any
    program and any instance of a template ran them. Branches to exceptions, which each call has, do not count."""
    found: dict[str, tuple[Lines, Branches]] = defaultdict(lambda: ({}, {}))
    for report in _reports():
        for file in report["files"]:
            path = Path(file["file"])
            path = path if path.is_absolute() else Path(report["current_working_directory"]) / path
            try:
                name = str(path.resolve().relative_to(ROOT))
            except ValueError:
                continue
            if not name.startswith(("src/", "include/")):
                continue
            lines, branches = found[name]
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
                ways = [way for way in line.get("branches", []) if not way["throw"]]
                for which, way in enumerate(ways):
                    key = number, which
                    branches[key] = branches.get(key, False) or way["count"] > 0
    return found


def _reports() -> Iterator[dict[str, Any]]:
    notes = sorted(BUILD.rglob("*.gcno"))  # of all files that were built, whether they ran or not
    for begin in range(0, len(notes), 50):
        said = subprocess.run(
            ["gcov", "--json-format", "--branch-probabilities", "--stdout", *map(str, notes[begin : begin + 50])],
            cwd=BUILD, capture_output=True, text=True, check=True,
        )  # fmt: skip
        yield from (json.loads(line) for line in said.stdout.splitlines() if line.startswith("{"))


def of_cpp() -> dict[str, Any] | None:
    file = WORK / "cpp.json"
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text())
    if found["measured"][0]["sources"] != sources("src", "include"):
        sys.exit("C++ was measured with other sources; measure it again")
    return found


# ---- the result


def write() -> int:
    """Writes the new counts; those of a language that was not measured stay."""
    before = json.loads(PAGE.read_text()) if PAGE.exists() else {}
    for name, found in (("python", of_python()), ("cpp", of_cpp())):
        if found is None:
            continue
        for each in found["measured"]:
            each.pop("sources")
        before[name] = {
            "date": time.strftime("%Y-%m-%d"),
            "commit": git("rev-parse", "--short=8", "HEAD"),
        } | found
        total = Counter[str]()
        for each in found["rooms"].values():
            total.update(each)
        share = 100 * total["run"] / total["statements"]
        print(f"{name}: {total['run']} of {total['statements']} statements, {share:.1f} %")
    PAGE.write_text(json.dumps(before, indent=1) + "\n")
    return 0


def main() -> int:
    WORK.mkdir(parents=True, exist_ok=True)
    match sys.argv[1:]:
        case ["all"]:
            failed = measure_python([]) + measure_cpp()
            return write() or int(failed > 0)
        case ["python", *chosen]:
            return int(measure_python(chosen) > 0)
        case ["cpp"]:
            return measure_cpp()
        case ["write"]:
            return write()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
