"""Progress in a notebook: an output cell that is updated in place."""

from __future__ import annotations

import importlib
import sys
from html import escape
from typing import Any


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. It loads nothing to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Bar:
    """A bar in the output of the cell that runs. One thread at a time may use it. Bars of rich need the package
    ipywidgets in a notebook; this one needs no package."""

    def __init__(self) -> None:
        self._display: Any = None

    def show(self, description: str, fraction: float, note: str = "") -> None:
        """fraction: share of the work that is done, from 0 to 1."""
        display: Any = importlib.import_module("IPython.display").display
        content = {
            "text/html": html(description, fraction, note),
            "text/plain": f"{description} {fraction:.0%}",
        }
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)


def html(description: str, fraction: float, note: str = "") -> str:
    """The bar as it is shown."""
    done = min(max(fraction, 0.0), 1.0)
    percent = f"{done:.0%}" + (f", {escape(note)}" if note else "")
    bar = f'<progress value="{done:.3f}" max="1" style="width:20em">{done:.0%}</progress>'
    return f"<label>{escape(description)} {bar} {percent}</label>"
