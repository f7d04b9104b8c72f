"""Settings for the computation and storage of two-electron integrals."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from outcore.base.errors import OutcoreError
from outcore.chem import storage as storage_words
from outcore.chem.symmetry import known_group
from outcore.job.resources import parse_bytes

PAGE_CACHES = ("auto", "buffered", "direct")
RECORDS = ("own", "any")
METHOD = "Hartree-Fock"
STORAGES = ("disk", "mixed", "direct", "auto")

_MIB = 1 << 20
_MIN_RECORD = 64 << 10
_ERROR = 1e-9  # default of the allowed error of the energy (Hartree)
_CUTOFF_FACTOR = 0.01
DENSITY_FACTOR = 0.01  # times the cutoff: limit for contributions that are small because of the density


@dataclass(frozen=True)
class Settings:
    """Settings for the computation and storage of integrals. Bytes are of one job: all its processes together."""

    # "disk": all integrals are kept on disk; "direct": all are recomputed; "mixed": those worth most are kept on
    # disk, within disk_bytes; "auto": they are kept in memory, then on disk, if that is faster than recomputing
    storage: str = "disk"
    error: float | None = None  # allowed error of the energy (Hartree); None: 1e-9, or see screening
    screening: float | None = (
        None  # instead of error: quartets below it are left out, values kept within half of it
    )
    keep: str | None = None  # directory in which the integrals stay after the run, and are looked for
    disk_bytes: int | None = None  # for mixed and auto; None: the free space
    # "own": each process reads the records that it wrote to disk; "any": a process reads any record when it has
    # time, from a file of all processes in the scratch directories of the world, or from keep
    records: str = "own"
    scratch: str | None = None  # directory; None: the fastest node-local temporary directory
    memory: int | str | None = None  # in bytes or as "400MB"; None: half of the free memory
    threads: int | None = None  # of each process; None: its share of the cores
    record_bytes: int = 4 * _MIB
    prefetch: int = 4  # records read ahead of the contraction, at least 2
    # "auto", "buffered" (always through the page cache of the system) or "direct" (past it)
    page_cache: str = "auto"
    # point group by which integrals stand for others: a name of D2h or of its subgroups; None: the largest that the
    # molecule has; "C1": none
    group: str | None = None

    def __post_init__(self) -> None:
        _ = self.memory_bytes
        storage_words.check(self.storage, STORAGES, METHOD)
        if self.group is not None:
            known_group(self.group)
        wrong = (
            (
                self.records not in RECORDS,
                f"records '{self.records}' is none of {', '.join(RECORDS)}",
            ),
            (self.disk_bytes is not None and self.disk_bytes < 0, f"{self.disk_bytes} bytes of disk"),
            (
                self.disk_bytes is not None and self.storage in ("disk", "direct"),
                f"disk_bytes has no effect on '{self.storage}'; mixed and auto have a budget",
            ),
            (
                self.keep is not None and self.storage == "direct",
                "keep has no effect on 'direct', which stores none",
            ),
            (
                self.error is not None and self.screening is not None,
                "give the error of the energy to allow, or the screening of integrals, not both",
            ),
            (self.error is not None and not self.error > 0, f"error {self.error} is not positive"),
            (
                self.screening is not None and not self.screening > 0,
                f"screening {self.screening} is not positive",
            ),
            (
                self.page_cache not in PAGE_CACHES,
                f"page_cache '{self.page_cache}' is none of {', '.join(PAGE_CACHES)}",
            ),
            (self.prefetch < 2, f"at least 2 records are read ahead, not {self.prefetch}"),
            (self.threads is not None and self.threads < 1, f"{self.threads} threads"),
            (
                self.record_bytes < _MIN_RECORD or self.record_bytes % 4096 != 0,
                f"records must be a multiple of 4096 bytes from 64 KiB on, not {self.record_bytes}",
            ),
        )
        for is_wrong, text in wrong:
            if is_wrong:
                raise OutcoreError(errno.EINVAL, "integrals", detail=text)

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else parse_bytes(self.memory)

    @property
    def allowed_error(self) -> float | None:
        """Allowed error of the energy by stored integrals (Hartree); None if screening is given instead."""
        if self.screening is not None:
            return None
        return _ERROR if self.error is None else self.error

    @property
    def cutoff(self) -> float:
        """The screening threshold, or the one that gives about the allowed error."""
        return (
            self.screening if self.screening is not None else _CUTOFF_FACTOR * (self.allowed_error or _ERROR)
        )

    @property
    def density_cutoff(self) -> float:
        """Quartets that contribute less than this to every Fock matrix element, for the densities of one call, are
        left out; 0: nothing is left out. Stored integrals have the same errors in each cycle. Contributions left
        out because of the density differ from cycle to cycle and add up. So they must be much smaller for an SCF
        to converge as far, and small enough for convergence to 1e-9 whatever the allowed error is."""
        if self.storage == "disk":
            return 0.0
        cutoff = self.cutoff if self.screening is not None else min(self.cutoff, _CUTOFF_FACTOR * _ERROR)
        return cutoff * DENSITY_FACTOR
