"""The paper has the form that the Journal of Open Source Software asks for."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

PAPER = Path(__file__).parents[3] / "paper"
TEXT = (PAPER / "paper.md").read_text()
HEADER, BODY = TEXT.removeprefix("---\n").split("\n---\n", 1)


def test_the_header_has_what_the_journal_reads():
    header = yaml.safe_load(HEADER)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(header)
    known = {each["index"] for each in header["affiliations"]}
    assert {each["affiliation"] for each in header["authors"]} <= known


def test_the_sections_are_there():
    assert {"Summary", "Statement of need", "State of the field", "References"} <= set(
        re.findall(r"^# (.+)$", BODY, re.MULTILINE)
    )


def test_each_citation_is_in_the_bibliography_and_each_entry_is_cited():
    bibliography = (PAPER / yaml.safe_load(HEADER)["bibliography"]).read_text()
    entries = re.findall(r"^@\w+\{(\w+),$", bibliography, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(entries) == set(re.findall(r"@(\w+)", BODY))


def test_figures_are_files_that_scripts_have_drawn():
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", BODY)
    assert figures
    assert all((PAPER / each).resolve().is_file() for each in figures)


def test_numbers_stand_in_the_generated_table_alone():
    written = re.sub(r"<!-- generated.*?<!-- end -->", "", BODY, flags=re.DOTALL)
    assert not re.findall(r"\d[\d.]* (?:s|MB|times|%)\b", written)
