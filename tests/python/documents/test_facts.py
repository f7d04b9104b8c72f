"""Measured facts are complete and cited; tables of the documents agree with the code; links have targets."""

import re
import subprocess
import sys

from blocks import ROOT, documents, script

facts = script("facts")
FIELDS = ("Fact", "Consequence", "Effect", "Exception", "Guard", "Measured", "Code")


def test_facts_and_citations_are_the_same():
    told, cited = set(facts.titles(ROOT)), set(facts.citations(ROOT))
    assert told == set(range(1, len(told) + 1)), "numbered from 1 without a gap"
    assert cited == told


def test_documents_cite_facts_that_exist():
    told = set(facts.titles(ROOT))
    for document in documents():
        for number in re.findall(r"\[M(\d+)\]", document.read_text()):
            assert int(number) in told, f"{document.name}: M{number}"


def test_every_fact_is_complete():
    text = (ROOT / "docs" / "develop" / "measured.md").read_text()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        if section.startswith("[M"):
            assert [field for field in FIELDS if f"**{field}.**" not in section] == [], section.splitlines()[
                0
            ]


def test_guards_are_benchmarks_or_tests():
    text = (ROOT / "docs" / "develop" / "measured.md").read_text()
    for guard in re.findall(r"^\*\*Guard\.\*\* (.+)$", text, re.MULTILINE):
        for name in re.findall(r"`outcore bench (\w+)`", guard):
            assert (ROOT / "benchmarks" / f"{name}.py").is_file(), guard
        for name in re.findall(r"`(tests/[\w/.]+)`", guard):
            assert (ROOT / name).exists(), guard
        assert "`" in guard, guard


def test_environment_variables_are_those_of_the_code():
    told = set(
        re.findall(
            r"^\| `(OUTCORE_\w+)` \|", (ROOT / "docs/reference/environment.md").read_text(), re.MULTILINE
        )
    )
    read = set()
    for folder in ("src", "python", "bindings", "tests", "scripts"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".hpp", ".sh") and path.is_file():
                read |= names_read(path.read_text())
    assert told == read


def names_read(text):
    """Environment variables that a source names, in any language; not macros and options of CMake."""
    scripts = (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"))
    options = re.findall(r"\b(?:option|set)\((OUTCORE_\w+)", "".join(each.read_text() for each in scripts))
    named = re.findall(r'(?:"|\$\{)(OUTCORE_[A-Z_]+)(?:"|:-)', text)
    return set(named) - {"OUTCORE_API", "OUTCORE_SIBLING", *options}


def test_generated_parts_are_up_to_date():
    program = [sys.executable, str(ROOT / "scripts" / "documents"), "--check"]
    answer = subprocess.run(program, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_links_lead_somewhere():
    for document in documents():
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_no_number_of_a_benchmark_is_typed_by_hand():
    """Rates and ratios stand in generated parts, in dated facts, and in reports of studies."""
    for document in documents():
        if document.name in ("measured.md", "CHANGELOG.md"):
            continue
        text = re.sub(r"<!-- generated: .*?<!-- end -->", "", document.read_text(), flags=re.DOTALL)
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        found = re.findall(r"\d[\d.]* (?:GB/s|MB/s|times as fast|times faster)", text)
        assert found == [], document.name
