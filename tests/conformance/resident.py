"""Memory that becomes resident in this process while something runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Resident:
    """`bytes`: at most, beyond what was there before; None if Linux does not tell. `left`: of the budget then."""

    left: int
    bytes: int | None = None

    @property
    def share(self):
        """Of what was left of the budget; more than 1: it did not hold."""
        return 0.0 if self.bytes is None else max(0, self.bytes) / self.left


@contextmanager
def resident(world):
    """Counts within `with`; the budget is that of a process of `world`."""
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
