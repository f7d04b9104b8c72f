"""Checks subjects of commits: at most 72 characters, a room as prefix, no period at the end.

    scripts/commit_subjects.py FILE      the message of a commit that is being made: the hook commit-msg
    scripts/commit_subjects.py           all commits of HEAD since the rule: make lint

A room is a folder of the tree, by its name without dots (`dio`, `chem/ri`, `ci`), or one of MORE_ROOMS; commas
separate several rooms. People must check that the subject is an imperative. Exit status 1 if one is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SINCE = "89965f77e37d9bb88a0f4e337dd75aac5050fcf4"  # the last commit before the rule
LONGEST = 72
MORE_ROOMS = frozenset({"build", "lint", "test", "bench", "scf"})  # rooms whose files are all over the tree
_WRITTEN_BY_GIT = re.compile(r'(Merge |Revert "|Reapply ")')
_TO_BE_SQUASHED = re.compile(r"(fixup|squash|amend)! ")


def faults(subject: str, rooms: Iterable[str]) -> list[str]:
    """The faults of a subject; `rooms` are names of folders."""
    if _WRITTEN_BY_GIT.match(subject):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"{len(subject)} characters, at most {LONGEST} are shown everywhere")
    if subject.endswith("."):
        found.append("ends with a period")
    prefix, colon, rest = subject.partition(": ")
    known = MORE_ROOMS | set(rooms)
    if not colon or not rest.strip():
        found.append("no room as prefix, as in 'dio: flush staging before close'")
    elif unknown := [name for name in re.split(r", |/", prefix) if name not in known]:
        found.append(f"no folder of the tree is called {unknown[0]!r}")
    return found


def folders(paths: Iterable[str]) -> set[str]:
    """The names of all folders on the way to these files."""
    return {part.strip(".") for path in paths for part in Path(path).parts[:-1]}


def of_message(file: Path) -> list[str]:
    """Lines about a message as git hands it to a hook."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    subject = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if not subject or _TO_BE_SQUASHED.match(subject):  # an empty message ends the commit anyway
        return []
    return [f"{subject}: {fault}" for fault in faults(subject, folders(_git("ls-files")))]


def of_history() -> list[str]:
    """Lines about the commits since SINCE; none in a copy without the history."""
    try:
        commits = _git("log", "--format=%H %s", f"{SINCE}..HEAD")
    except (OSError, subprocess.CalledProcessError):
        print("commit subjects: not looked at, as the history is not here")
        return []
    rooms = folders(_git("ls-files"))
    found = []
    for commit, _, subject in (line.partition(" ") for line in commits):
        if faults(subject, rooms):  # the subject may name a folder that existed at its time
            wrong = faults(subject, folders(_git("ls-tree", "-r", "--name-only", commit)))
            found += [f"{commit[:10]} {subject}: {fault}" for fault in wrong]
    return found


def _git(*command: str) -> list[str]:
    git = ["git", "-c", "core.quotePath=off", *command]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> int:
    found = of_message(Path(sys.argv[1])) if len(sys.argv) > 1 else of_history()
    for line in found:
        print(f"commit subject: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
