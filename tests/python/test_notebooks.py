"""The notebooks of examples run, and their output is that on the site."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def script(name):
    """A module of scripts."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(notebook):
    """The output of cells as text."""
    outputs = [each for cell in notebook["cells"] for each in cell.get("outputs", [])]
    return "\n".join("".join(each.get("text", each.get("data", {}).get("text/html", ""))) for each in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_checks_hold(path, tmp_path):
    found = shown(script("notebooks").run(path, str(tmp_path)))
    assert ": False" not in found
    before = shown(json.loads(path.read_text()))
    assert re.findall(r"[\w ]+: True", found) == re.findall(r"[\w ]+: True", before)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_what_it_shows_and_no_error(path):
    cells = [each for each in json.loads(path.read_text())["cells"] if each["cell_type"] == "code"]
    outputs = [each for cell in cells for each in cell["outputs"]]
    assert outputs and all(cell["execution_count"] for cell in cells)
    assert not any(each["output_type"] == "error" or each.get("name") == "stderr" for each in outputs)


def test_the_site_has_a_page_of_each_notebook():
    pages = re.findall(r"tutorials/notebooks/(\w+)\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(pages) == [path.stem for path in NOTEBOOKS]


def test_a_page_of_a_notebook_links_to_pages():
    text = script("site")._page(ROOT / "examples" / "notebooks" / "arrays.ipynb")
    assert "](einsum_plan.md)" in text and ".ipynb)" not in text
    assert "<table" in text  # what notebooks show, not its text
