"""What MkDocs does to pages of the site: texts of the root of the checkout stand in it, with their links mended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_WHOLE = re.compile(r'^--8<-- "(\w+\.md)"$', re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A hook of MkDocs. A page that is a file of the root has its text; links to docs/ start at the page."""
    up = "../" * page.file.src_uri.count("/")
    return _WHOLE.sub(lambda found: (ROOT / found[1]).read_text().replace("](docs/", f"]({up}"), markdown)
