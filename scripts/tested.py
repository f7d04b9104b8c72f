"""Runs suites of tests that `make test` leaves out, and keeps what they did: tested.py wheels|recipes|slurm ..

docs/develop/tested.json has date, commit, system, counts, reasons of skipped tests and what a suite says it ran
with. Then `scripts/documents` makes the table. A suite runs on a checkout without changes, so that the commit names
what was tested.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "develop" / "tested.json"
SUITES = {
    "wheels": ("tests/install/test_wheels.py",),
    "recipes": ("tests/install/test_recipes.py", "tests/install/test_conda.py"),
    "slurm": ("tests/slurm",),
}


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()


def summary(report: Path) -> dict[str, Any]:
    """What a report of pytest in JUnit's form says."""
    suite = next(ElementTree.parse(report).iter("testsuite"))
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return {
        "with": sorted(
            {each.get("value", "") for each in suite.iter("property") if each.get("name") == "with"}
        ),
        "passed": total - failed - skipped,
        "failed": failed,
        "skipped": dict(Counter(each.get("message", "") for each in suite.iter("skipped"))),
    }


def run(name: str) -> dict[str, Any]:
    report = ROOT / "build" / "reports" / f"tested-{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    commit = git("rev-parse", "--short=8", "HEAD")
    command = [sys.executable, "-m", "pytest", "-q", *SUITES[name], f"--junitxml={report}"]
    subprocess.run([*command, "--timeout=1800"], cwd=ROOT, check=False)
    if not report.exists():
        sys.exit(f"{name}: no report")
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
        "system": f"{system}, {platform.machine()}",
    } | summary(report)


def main() -> int:
    names = sys.argv[1:]
    if not names or set(names) - set(SUITES):
        print(__doc__, file=sys.stderr)
        return 2
    if changed := git("status", "--porcelain"):
        sys.exit(f"commit first, so that a commit has what is tested:\n{changed}")
    kept = json.loads(PAGE.read_text()) if PAGE.exists() else {}
    for name in names:
        kept[name] = run(name)
        PAGE.write_text(json.dumps(kept, indent=1) + "\n")
    return int(any(kept[name]["failed"] or not kept[name]["passed"] for name in names))


if __name__ == "__main__":
    sys.exit(main())
