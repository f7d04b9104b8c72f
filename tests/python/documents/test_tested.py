"""The page of suites that run outside of CI, and what is kept of them."""

import importlib.util
import json

import pytest
from blocks import ROOT, script

tested = script("tested")
REPORT = """<testsuites><testsuite name="pytest" tests="4" failures="1" errors="0" skipped="2">
<properties><property name="with" value="CPython 3.12.1"/><property name="other" value="no"/></properties>
<testcase name="a"/><testcase name="b"><failure message="x"/></testcase>
<testcase name="c"><skipped message="CPython 3.13 is not here"/></testcase>
<testcase name="d"><skipped message="CPython 3.13 is not here"/></testcase>
</testsuite></testsuites>"""
RUN = {
    "with": ["CPython 3.12.1"],
    "passed": 1,
    "failed": 1,
    "skipped": {"CPython 3.13 is not here": 2},
}


def running():
    spec = importlib.util.spec_from_file_location("scripts_tested", ROOT / "scripts" / "tested.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_a_report_is_counted(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert running().summary(tmp_path / "report.xml") == RUN


def test_a_row_has_date_commit_versions_and_reasons(tmp_path):
    (tmp_path / tested.FILE).parent.mkdir(parents=True)
    run = RUN | {"date": "2026-01-02", "commit": "abc12345", "system": "Debian, x86_64"}
    (tmp_path / tested.FILE).write_text(json.dumps({"wheels": run}))
    rows = tested.table(tmp_path, "").splitlines()
    assert rows[2] == (
        "| `make test-wheels` | 2026-01-02 | abc12345 | Debian, x86_64<br>CPython 3.12.1 | 1 | 1 "
        "| 2: CPython 3.13 is not here |"
    )
    assert rows[3].startswith("| `make test-recipes` | not kept yet |")


def test_the_suites_of_the_table_are_those_that_can_be_run():
    suites = running().SUITES
    makefile = (ROOT / "Makefile").read_text()
    assert set(suites) == set(tested.SUITES)
    for name, files in suites.items():
        command = f"$(VENV_PYTHON) -m pytest -q {' '.join(files)}\n"
        assert command in makefile.partition(f"\n{tested.SUITES[name].removeprefix('make ')}:")[2]


def test_an_unknown_suite_is_refused(monkeypatch, capsys):
    script_ = running()
    monkeypatch.setattr("sys.argv", ["tested.py", "whales"])
    assert script_.main() == 2
    assert "wheels|recipes|slurm" in capsys.readouterr().err


def test_a_checkout_with_changes_is_refused(monkeypatch):
    script_ = running()
    monkeypatch.setattr("sys.argv", ["tested.py", "wheels"])
    monkeypatch.setattr(script_, "git", lambda *words: " M file")
    with pytest.raises(SystemExit, match="commit first"):
        script_.main()
