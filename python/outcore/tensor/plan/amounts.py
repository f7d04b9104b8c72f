"""What contractions take: bytes, operations, seconds; predicted or counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amounts:
    """What a product takes, over all processes; predicted or counted.

    Attributes:
        disk_read, disk_written, network, copied: bytes; `copied` from memory of the process or its node.
        flops: two for each multiplication.
        seconds: of the wall clock.
    """

    disk_read: float = 0.0
    disk_written: float = 0.0
    network: float = 0.0
    copied: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0

    @property
    def disk(self) -> float:
        """Bytes read from and written to disk."""
        return self.disk_read + self.disk_written

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.disk_read + other.disk_read,
            self.disk_written + other.disk_written,
            self.network + other.network,
            self.copied + other.copied,
            self.flops + other.flops,
            self.seconds + other.seconds,
        )

    def values(self) -> tuple[float, ...]:
        return self.disk_read, self.disk_written, self.network, self.copied, self.flops, self.seconds
