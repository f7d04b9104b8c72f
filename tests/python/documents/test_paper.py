"""The paper has the form that the Journal of Open Source Software asks for."""

from __future__ import annotations

import re

import yaml
from blocks import ROOT, script

PAPER = ROOT / "paper"
TEXT = (PAPER / "paper.md").read_text()
HEADER, BODY = TEXT.removeprefix("---\n").split("\n---\n", 1)
WRITTEN = re.sub(r"<!-- generated.*?<!-- end -->", "", BODY, flags=re.DOTALL)


def test_the_header_has_what_the_journal_reads():
    header = yaml.safe_load(HEADER)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(header)
    known = {each["index"] for each in header["affiliations"]}
    assert {each["affiliation"] for each in header["authors"]} <= known


def test_the_sections_are_there():
    assert {
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "AI usage disclosure",
        "Acknowledgements",
        "References",
    } <= set(re.findall(r"^# (.+)$", BODY, re.MULTILINE))


def test_the_length_is_what_the_journal_takes():
    assert 750 <= len(re.findall(r"\S*\w\S*", WRITTEN)) <= 1750


def test_each_citation_is_in_the_bibliography_and_each_entry_is_cited():
    bibliography = (PAPER / yaml.safe_load(HEADER)["bibliography"]).read_text()
    entries = re.findall(r"^@\w+\{(\w+),$", bibliography, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(entries) == set(re.findall(r"@(\w+)", BODY))


def test_figures_are_drawn_by_the_scripts_of_the_documents():
    figures = {(PAPER / each).resolve() for each in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", BODY)}
    plots = script("plots")
    assert figures and figures <= set(plots.all_plots(ROOT))


def test_numbers_stand_in_generated_parts_alone():
    assert not re.findall(r"\d[\d.]* (?:s|[kMGT]i?B|times|cores|%)(?:\b|$)", WRITTEN, re.MULTILINE)
