"""Says whether a release may be tagged: release.py [vMAJOR.MINOR.PATCH]

All files name one version, and the newest section of CHANGELOG.md is about it. With a tag: the tag has that
version, and the section has a date instead of `not released`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where a version stands, beside pyproject.toml.
PLACES = {
    "CMakeLists.txt": r"^project\(outcore VERSION (\S+)",
    "CITATION.cff": r"^version: (\S+)$",
    "packaging/conda/recipe.yaml": r"^  version: (\d\S*)$",
    "packaging/easybuild/*.eb": r'^version = "(\S+)"$',
    "CHANGELOG.md": r"^## (\d\S*) \(",
}
HEADER = "include/outcore/c/version.h"


def versions(root: Path) -> dict[str, str]:
    """The version that each file names; empty if it names none."""
    found = {
        "pyproject.toml": str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])
    }
    for pattern, line in PLACES.items():
        for file in sorted(root.glob(pattern)) or [root / pattern]:
            match = re.search(line, file.read_text(), re.MULTILINE)
            found[str(file.relative_to(root))] = match[1] if match else ""
    numbers = re.findall(
        r"^#define OC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", (root / HEADER).read_text(), re.MULTILINE
    )
    found[HEADER] = ".".join(numbers)
    return found


def faults(root: Path, tag: str) -> Iterator[str]:
    """What is wrong. An empty tag is no release."""
    found = versions(root)
    version = found["pyproject.toml"]
    for file, other in found.items():
        if other != version:
            yield f"{file} has the version {other or 'of nothing'}, pyproject.toml has {version}"
    if not tag:
        return
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}"
    heading = next(
        line for line in (root / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")
    )
    if not re.fullmatch(rf"## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        yield f"CHANGELOG.md begins with '{heading}', not with '## {version} (YEAR-MONTH-DAY)'"


def main() -> int:
    found = list(faults(ROOT, "".join(sys.argv[1:2])))
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
