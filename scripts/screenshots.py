"""Opens pages of the built site in headless Chromium: python scripts/screenshots.py [DIRECTORY [SITE]]

Draws ten pages at the widths of a desktop and of a phone, as PAGE-WIDTH.png in DIRECTORY (build/screenshots), and
asks the search once. Prints problems, with exit status 1: messages of the browser's console, a page that is wider
than the screen, a search without results. Needs Chromium, which `make docs` does not.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAGES = (
    "index", "start/first", "compute/ccsd", "compute/memory-disk", "measure/results",
    "measure/results/coupled-cluster", "tutorials/hartree-fock", "tutorials/notebooks/arrays", "reference/python",
    "why/bounds",
)  # fmt: skip
WIDTHS = {"desktop": 1280, "phone": 390}
SEARCHED = "einsum"
_HEIGHT = 1200
_LIMIT_S = 60.0
_SEARCH = """
var box = document.querySelector("input.md-search__input")
document.getElementById("__search").checked = true
box.focus()
box.value = WORD
box.dispatchEvent(new Event("keyup", {bubbles: true}))
document.querySelectorAll(".md-search-result__link").length
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the browser reports what it misses."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server on the loopback device that has the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


@contextmanager
def chromium() -> Iterator[str]:
    """The address of the debugger of a browser's only page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert browser.stderr is not None
            place = next(line.split()[-1] for line in browser.stderr if "DevTools listening" in line)
            yield place
        finally:
            browser.kill()
            browser.wait()


class Browser:
    """A page of a browser: https://chromedevtools.github.io/devtools-protocol."""

    def __init__(self, socket: Any, session: str | None) -> None:
        """`session`: of the page; None: of the whole browser."""
        self._socket, self._sent = socket, 0
        self._of = {} if session is None else {"sessionId": session}
        self.said: list[str] = []  # in the console
        self._events: set[str] = set()

    async def do(self, method: str, **given: Any) -> Any:
        self._sent += 1
        asked = {"id": self._sent, "method": method, "params": given} | self._of
        await self._socket.write_message(json.dumps(asked))
        while (answer := await self._next()).get("id") != self._sent:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    async def _next(self) -> Any:
        text = await asyncio.wait_for(self._socket.read_message(), _LIMIT_S)
        message = json.loads(text)
        kind, given = message.get("method", ""), message.get("params", {})
        self._events.add(kind)
        if kind == "Runtime.exceptionThrown":
            self.said.append(given["exceptionDetails"]["text"])
        elif kind == "Log.entryAdded":
            self.said.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        elif kind == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(each.get("value", "")) for each in given["args"]))
        return message

    async def open(self, address: str, width: int) -> None:
        screen = {"width": width, "height": _HEIGHT, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.do("Emulation.setDeviceMetricsOverride", **screen)
        self._events.clear()
        await self.do("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            await self._next()

    async def ask(self, script: str) -> Any:
        return (await self.do("Runtime.evaluate", expression=script))["result"].get("value")


async def problems(site: Path, directory: Path) -> list[str]:
    """In words; draws the pages."""
    from tornado.websocket import websocket_connect

    directory.mkdir(parents=True, exist_ok=True)
    found = [f"{page}: no such page" for page in PAGES if not (site / f"{page}.html").is_file()]
    with served(site) as address, chromium() as place:
        socket = await websocket_connect(place, max_message_size=1 << 28)
        browser = Browser(socket, await _attached(socket))
        for domain in ("Page", "Runtime", "Log"):
            await browser.do(f"{domain}.enable")
        for page in PAGES:
            for name, width in WIDTHS.items():
                await browser.open(f"{address}{page}.html", width)
                wide = await browser.ask("document.documentElement.scrollWidth")
                if wide > width:
                    found.append(f"{page}: {wide} pixels wide on a {name} of {width}")
                drawn = await browser.do("Page.captureScreenshot")
                picture = directory / f"{page.replace('/', '-')}-{width}.png"
                picture.write_bytes(base64.b64decode(drawn["data"]))
        await browser.open(f"{address}index.html", WIDTHS["desktop"])
        if not await _results(browser):
            found.append(f"search: nothing is found for {SEARCHED}")
        socket.close()
    return found + [f"console: {each}" for each in browser.said]


async def _attached(socket: Any) -> str:
    """The session of a new page."""
    whole = Browser(socket, None)
    target = await whole.do("Target.createTarget", url="about:blank")
    session = await whole.do("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    return str(session["sessionId"])


async def _results(browser: Browser) -> int:
    """How many results the search shows."""
    for _ in range(int(_LIMIT_S)):
        if count := await browser.ask(_SEARCH.replace("WORD", json.dumps(SEARCHED))):
            return int(count)
        await asyncio.sleep(1)
    return 0


def main(directory: str = "build/screenshots", site: str = "build/site") -> int:
    found = asyncio.run(problems(Path(site), Path(directory)))
    drawn = len(PAGES) * len(WIDTHS)
    print(
        "\n".join(found)
        or f"{drawn} pictures of {len(PAGES)} pages in {directory}; the search finds {SEARCHED}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
