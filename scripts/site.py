"""Hooks of MkDocs for the site: texts in the root of the checkout become pages with adapted links, and so do the
notebooks of examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_WHOLE = re.compile(r'^--8<-- "(\w+\.md)"$', re.MULTILINE)
_NOTEBOOKS = "tutorials/notebooks"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """A hook of MkDocs. Each notebook is a page, with the output of its cells from its last run."""
    from mkdocs.structure.files import File

    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"{_NOTEBOOKS}/{path.stem}.md", content=_page(path)))
    return files


def _page(path: Path) -> str:
    import nbformat
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(path, as_version=4)
    text: str = MarkdownExporter().from_notebook_node(notebook)[0]
    text = re.sub(r"\]\((\w+)\.ipynb", r"](\1.md", text).replace("](../../docs/", "](../../")
    return f"{text}\nThe notebook is `examples/notebooks/{path.name}`.\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A hook of MkDocs. A page that is a file of the root has its text; links to docs/ start at the page."""
    up = "../" * page.file.src_uri.count("/")
    return _WHOLE.sub(lambda found: (ROOT / found[1]).read_text().replace("](docs/", f"]({up}"), markdown)
