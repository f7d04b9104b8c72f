"""Checks the built site: python scripts/check_site.py [build/site]

Every link, image and script of every page must exist, with its anchor; no page may load anything from another host.
Prints all problems; exit status 1 if there are any.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href"}


class Page(HTMLParser):
    """Links, loaded files and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        if tag == "a" and (target := given.get("href")):
            self.links.append(target)
        if (target := given.get(LOADED.get(tag, ""))) and given.get("rel") not in (
            "canonical",
            "next",
            "prev",
        ):
            self.loaded.append(target)


def problems(site: Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        remote = [each for each in page.loaded if urlsplit(each).netloc]
        found += [f"{name} loads {each}" for each in remote]
        for link in [*page.links, *(each for each in page.loaded if each not in remote)]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = site if name.name == "404.html" or parts.path.startswith("/") else path.parent
            target = (place / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{name}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link} has no such anchor")
    return found


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve()
    found = sorted(set(problems(site)))
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return int(bool(found) or not (site / "404.html").is_file())


if __name__ == "__main__":
    sys.exit(main())
