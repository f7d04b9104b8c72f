"""Memory that becomes resident in this process while something runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Resident:
    """`bytes`: the peak beyond the resident memory before; None if Linux does not tell. `left`: the budget
    that was left then."""

    left: int
    bytes: int | None = None

    @property
    def share(self):
        """The peak as a share of the budget that was left; above 1, the budget was exceeded."""
        return 0.0 if self.bytes is None else max(0, self.bytes) / self.left


@contextmanager
def resident(world):
    """Measures the peak within `with`; the budget is that of a process of `world`."""
    found = Resident(world.budget.limit_bytes - world.budget.used_bytes)
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak begins anew
    except OSError:
        yield found
        return
    before = _status("VmRSS")
    yield found
    found.bytes = _status("VmHWM") - before


def _status(name):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))
