"""The disk traffic of a stage: bytes, also those that it moves at least, speed, and the share of time that
overlapped with computing."""

from __future__ import annotations

import socket
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from outcore import trace
from outcore.trace import report
from outcore.trace.report import RateRow, RawRates
from outcore.trace.tables import against_disk

if TYPE_CHECKING:
    from outcore.job.world import World


@dataclass(frozen=True)
class Traffic:
    """The traffic of all processes. read_seconds, write_seconds: time with at least one request under way, at the
    process where that was longest. waited_seconds: time that threads waited for reads, the mean of all;
    None: not measured.
    least_bytes: that had to be moved at least, see docs/why/bounds.md; 0 if the memory has room for all."""

    written_bytes: int = 0
    read_bytes: int = 0
    write_seconds: float = 0.0
    read_seconds: float = 0.0
    waited_seconds: float | None = 0.0
    nodes: int = 1  # each with its disk
    least_bytes: float = 0.0

    @property
    def bytes(self) -> int:
        return self.written_bytes + self.read_bytes

    @property
    def used(self) -> bool:
        return self.bytes > 0

    @property
    def over_least(self) -> float | None:
        """Bytes over the least; None: none had to be moved."""
        return self.bytes / self.least_bytes if self.least_bytes else None

    @property
    def overlapped(self) -> float | None:
        """Share of the time of reading that overlapped with computing; None: nothing was read, or waits were not
        measured."""
        if self.read_seconds == 0 or self.waited_seconds is None:
            return None
        return 1.0 - min(self.waited_seconds / self.read_seconds, 1.0)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"overlapped": self.overlapped, "over_least": self.over_least}

    def lines(self, raw: RawRates | None) -> list[str]:
        """Lines for the user. raw: rates that the disk of a node can reach; None if they were not measured."""
        able = (None, None) if raw is None else (raw.write_bytes_per_s, raw.read_bytes_per_s)
        found = [
            f"disk: {moved / 1e6:.0f} MB {done}, {moved / seconds / 1e9:.2f} GB/s while under way"
            + against_disk(
                RateRow("device", kind, moved, seconds, None if disk is None else disk * self.nodes)
            )
            for done, kind, moved, seconds, disk in (
                ("written", "write", self.written_bytes, self.write_seconds, able[0]),
                ("read", "read", self.read_bytes, self.read_seconds, able[1]),
            )
            if seconds > 0
        ]
        if self.overlapped is not None:
            found.append(
                f"disk: {100 * self.overlapped:.0f} % of the time of reading overlapped with computing"
            )
        if self.over_least is not None:
            found.append(f"disk: {self.over_least:.2f} times the least that must be moved")
        return found or ["disk: not used"]

    def line(self, stage: str) -> str:
        """A line for the user, of a stage whose speed is not told."""
        if not self.used:
            return f"{stage}: no disk traffic"
        moved = f"{stage}: {self.bytes / 1e6:.0f} MB moved to and from disk"
        if self.over_least is None:
            return moved
        return f"{moved}, {self.over_least:.2f} times the least that must be moved"


class TrafficWatch:
    """Counts the traffic since this object was made."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[int, int, float, float]:
        taken: dict[str, Any] = trace.snapshot()
        device = taken["layers"]["device"]
        written, read = (
            sum(device[name]["bytes"] for name in names) for names in (report.WRITES, report.READS)
        )
        return written, read, taken["device_write_busy_ns"] * 1e-9, taken["device_read_busy_ns"] * 1e-9

    def traffic(self, world: World, least_bytes: float, waited_seconds: float | None = None) -> Traffic:
        """The traffic so far. least_bytes: that all processes together had to move. waited_seconds: of this
        process, or None at all. Collective."""
        written, read, writing, reading = (
            after - before for after, before in zip(self._now(), self._before, strict=True)
        )
        return Traffic(
            int(world.all_reduce(written)),
            int(world.all_reduce(read)),
            float(world.all_reduce(writing, "max")),
            float(world.all_reduce(reading, "max")),
            None if waited_seconds is None else float(world.all_reduce(waited_seconds)) / world.size,
            len(set(world.gather(socket.gethostname()))),
            least_bytes,
        )
