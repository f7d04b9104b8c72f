"""The table of policies: each file named as evidence exists; templates and workflows are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "develop" / "policies.md").read_text()
ROWS = [line for line in TEXT.splitlines() if re.match(r"\| [^|]+ \| (yes|no|not yet|in part) \|", line)]
FILE = r"(?:[\w.-]+/)*[\w.-]+\.(?:md|txt|py|yml|toml|json|cff|hpp|h|map)"
PATH = re.compile(rf"`({FILE}|\.?[a-z]+(?:/[\w.-]+)+|LICENSE|Makefile)`")


def test_every_rule_has_a_row():
    assert len([row for row in ROWS if row.startswith("| M")]) == 17
    assert len([row for row in ROWS if row.startswith("| P")]) == 9


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:30])
def test_evidence_exists(row):
    for place in PATH.findall(row):
        assert (ROOT / place).exists(), place


def test_workflows_run_what_the_makefile_has():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        flow = yaml.safe_load(file.read_text())
        assert {"name", "permissions", "jobs"} <= set(flow) and (True in flow or "on" in flow)
        for job in flow["jobs"].values():
            assert job["runs-on"] and job["timeout-minutes"]
            for step in job["steps"]:
                assert ("run" in step) != ("uses" in step)
                for target in re.findall(r"^make ([\w-]+)", step.get("run", "")):
                    assert target in targets
                if "uses" in step:
                    assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", "workflows/*.yml"),
        ("github-issue-forms", "ISSUE_TEMPLATE/w*.yml"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_files_for_github_have_its_schemas(schema, files):
    found = [str(each) for each in sorted((ROOT / ".github").glob(files))]
    assert found
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *found]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_templates_ask_for_what_is_needed():
    for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("w*.yml"):
        form = yaml.safe_load(file.read_text())
        assert {"name", "description", "body"} <= set(form)
        names = [part["id"] for part in form["body"]]
        assert len(names) == len(set(names))
