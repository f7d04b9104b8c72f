"""Tables in HTML, which notebooks show in place of the text of an object.

All text is escaped. Tables set no colours, so that they are readable in light and in dark themes of a notebook. A
notebook calls `_repr_html_` at one process, so that method must not communicate, and reads no elements of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_MAX_ROWS = 60  # per table, so that a notebook stays short
_TABLE = "border-collapse:collapse;border:none;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:bold;caption-side:top;padding:2px 0;color:inherit"
_CELL = "padding:2px 12px 2px 0;vertical-align:top"


def facts(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values; a value of None is left out."""
    lines = [
        f"<tr>{_cell('th', name, 'left')}{_cell('td', value, 'left')}</tr>"
        for name, value in rows
        if value is not None
    ]
    return _table(title, lines)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], foot: str = "") -> str:
    """A table with a head. Columns of numbers, and of numbers with units, are set to the right. Of many rows it
    shows the first and the last ones, and the number of rows left out.

    Args:
        foot: a line below the table.
    """
    sides = ["right" if _is_numeric([row[i] for row in rows]) else "left" for i in range(len(columns))]
    head = "".join(_cell("th", name, side) for name, side in zip(columns, sides, strict=True))
    shown = [
        "<tr>" + "".join(_cell("td", value, side) for value, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows
    ]
    if len(shown) > _MAX_ROWS:
        half = _MAX_ROWS // 2
        between = f".. {len(shown) - 2 * half} more rows .."
        middle = f'<tr><td colspan="{len(columns)}" style="{_CELL}">{between}</td></tr>'
        shown = [*shown[:half], middle, *shown[-half:]]
    below = f"<div>{escape(foot)}</div>" if foot else ""
    return _table(title, [f"<thead><tr>{head}</tr></thead>", "<tbody>", *shown, "</tbody>"]) + below


def text(value: str) -> str:
    """Lines of text as they are."""
    return f'<pre style="white-space:pre;overflow-x:auto">{escape(value)}</pre>'


def _table(title: str, lines: Iterable[str]) -> str:
    caption = f'<caption style="{_CAPTION}">{escape(title)}</caption>'
    inside = "".join(lines)
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{caption}{inside}</table></div>'


def _cell(tag: str, value: object, side: str) -> str:
    return f'<{tag} style="{_CELL};text-align:{side}">{escape(str(value))}</{tag}>'


def _is_numeric(values: Sequence[object]) -> bool:
    """Whether all values of a column begin with a digit, or with a sign and a digit; "-" and "" do not count."""
    given = [str(value) for value in values if str(value) not in ("", "-")]
    return bool(given) and all(value.lstrip("+-")[:1].isdigit() for value in given)
