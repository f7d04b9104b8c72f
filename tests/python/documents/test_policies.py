"""The table of policies: each file named as evidence exists; templates and workflows are valid."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "develop" / "policies.md").read_text()
ROW = re.compile(r"\| ([^|]+) \| (yes|no|not yet) \| ([^|]*)\|")
FILE = r"(?:[\w.-]+/)*[\w.-]+\.(?:md|txt|py|yml|yaml|toml|json|cff|cmake|in|hpp|cpp|h|map|sh|bib)"
PATH = re.compile(rf"`({FILE}|\.?[a-z]+(?:/[\w.-]+)+|LICENSE|Makefile|\.clang-(?:tidy|format))`")

# Rules of the OpenSSF, of passing and of silver.
PASSING = """
description_good interact contribution contribution_requirements floss_license floss_license_osi license_location
documentation_basics documentation_interface sites_https discussion english maintained repo_public repo_track
repo_interim repo_distributed version_unique version_semver version_tags release_notes release_notes_vulns
report_process report_tracker report_responses enhancement_responses report_archive vulnerability_report_process
vulnerability_report_private vulnerability_report_response build build_common_tools build_floss_tools test
test_invocation test_most test_continuous_integration test_policy tests_are_added tests_documented_added warnings
warnings_fixed warnings_strict know_secure_design know_common_errors crypto_published crypto_call crypto_floss
crypto_keylength crypto_working crypto_weaknesses crypto_pfs crypto_password_storage crypto_random delivery_mitm
delivery_unsigned vulnerabilities_fixed_60_days vulnerabilities_critical_fixed no_leaked_credentials static_analysis
static_analysis_common_vulnerabilities static_analysis_fixed static_analysis_often dynamic_analysis
dynamic_analysis_unsafe dynamic_analysis_enable_assertions dynamic_analysis_fixed
"""
SILVER = """
achieve_passing contribution_requirements dco governance code_of_conduct roles_responsibilities access_continuity
bus_factor documentation_roadmap documentation_architecture documentation_security documentation_quick_start
documentation_current documentation_achievements accessibility_best_practices internationalization
sites_password_security maintenance_or_update report_tracker vulnerability_report_credit
vulnerability_response_process coding_standards coding_standards_enforced build_standard_variables
build_preserve_debug build_non_recursive build_repeatable installation_common installation_standard_variables
installation_development_quick external_dependencies dependency_monitoring updateable_reused_components
interfaces_current automated_integration_testing regression_tests_added50 test_statement_coverage80
test_policy_mandated tests_documented_added warnings_strict implement_secure_design crypto_weaknesses
crypto_algorithm_agility crypto_credential_agility crypto_used_network crypto_tls12 crypto_certificate_verification
crypto_verification_private signed_releases version_tags_signed input_validation hardening assurance_case
static_analysis_common_vulnerabilities dynamic_analysis_unsafe
"""


def section(title: str) -> list[tuple[str, str, str]]:
    """The rows of a section: rule, answer, evidence."""
    text = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    found = [ROW.fullmatch(line) for line in lines]
    assert all(found), [line for line, row in zip(lines, found, strict=True) if not row]
    return [(row[1], row[2], row[3].strip()) for row in found]


SECTIONS = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
ROWS = [(rule, evidence) for title in SECTIONS for rule, _, evidence in section(title)]


def rules(title: str) -> list[str]:
    """What stands in code in the first cells, or the first words of them."""
    return [each for rule, *_ in section(title) for each in re.findall(r"`(\w+)`", rule) or [rule.split()[0]]]


def numbered(letters: str, last: int) -> list[str]:
    return [f"{letters}{number}" for number in range(1, last + 1)]


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("xSDK", numbered("M", 17) + numbered("R", 8)),
        ("E4S", numbered("P", 9) + numbered("FP", 6) + numbered("FLP", 4)),
        ("OpenSSF, passing", PASSING.split()),
        ("OpenSSF, silver", SILVER.split()),
    ],
)
def test_every_rule_has_a_row(title, wanted):
    assert sorted(rules(title)) == sorted(wanted)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_yes_has_evidence(title):
    assert not [rule for rule, answer, evidence in section(title) if answer == "yes" and not evidence]


def test_the_answer_on_coverage_is_that_of_the_counts():
    found = json.loads((ROOT / "docs" / "develop" / "coverage.json").read_text())
    shares = []
    for language in ("python", "cpp"):
        rooms = found.get(language, {}).get("rooms", {}).values()
        statements = sum(room["statements"] for room in rooms)
        shares.append(sum(room["run"] for room in rooms) / statements if statements else 0)
    (answer,) = [
        answer for rule, answer, _ in section("OpenSSF, silver") if "test_statement_coverage80" in rule
    ]
    assert answer == ("yes" if min(shares) >= 0.8 else "not yet")


@pytest.mark.parametrize(("rule", "evidence"), ROWS, ids=[rule[:30] for rule, _ in ROWS])
def test_evidence_exists(rule, evidence):
    for place in PATH.findall(evidence):
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
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/w*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_for_others_have_their_schemas(schema, files):
    found = [str(each) for each in sorted(ROOT.glob(files))]
    assert found
    command = [sys.executable, "-m", "check_jsonschema", "--default-filetype", "yaml"]
    command += ["--builtin-schema", f"vendor.{schema}", *found]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_finds_no_fault_with_workflows():
    done = subprocess.run(["actionlint"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_templates_ask_for_what_is_needed():
    for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("w*.yml"):
        form = yaml.safe_load(file.read_text())
        assert {"name", "description", "body"} <= set(form)
        names = [part["id"] for part in form["body"]]
        assert len(names) == len(set(names))
