"""A plug-in of pytest for scripts/covered.py: of each test with parameters only the first and the last case run."""

from __future__ import annotations

from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Deselects the cases between: most of them run the same statements."""
    last = {_function(item): item for item in items}
    seen: set[str] = set()
    kept, left = [], []
    for item in items:
        name = _function(item)
        (kept if name not in seen or last[name] is item else left).append(item)
        seen.add(name)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _function(item: Any) -> str:
    return str(item.nodeid).partition("[")[0]
