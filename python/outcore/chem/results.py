"""What the commands of the chemistry layer leave behind of a run: its results as a file, and its memory."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore import resources
from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.world import World


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Raises OutcoreError if the file cannot be written."""
    try:
        path.write_text(json.dumps(results, indent=2) + "\n")
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "write results", path=path) from error


def peak_memory_bytes(world: World) -> int:
    """The most memory that the processes have held, added up: pages that they share count for each. Collective."""
    return int(world.all_reduce(resources.peak_resident_bytes()))
