"""The times at which the processes of a run commit."""

from __future__ import annotations

import time
from typing import Any

from outcore.keep import clock


class Other:
    """Another process, while rank 0 takes a minute to commit."""

    def broadcast(self, value: Any) -> Any:
        return 60.0 if isinstance(value, float) else value


def test_processes_agree_when_to_commit() -> None:
    found = clock.Clock(Other())  # type: ignore[arg-type]
    with found.committing():
        pass
    assert found.deadline() - time.monotonic() > 30 * clock.INTERVAL_S
