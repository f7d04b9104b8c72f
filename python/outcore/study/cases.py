"""The runs of a study: molecules, storage, and single Hartree-Fock runs."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

KIB = 1 << 10


@dataclass(frozen=True)
class Molecule:
    """A molecule of the studies: a file in outcore/data (or examples/, in a checkout) and its basis."""

    title: str
    file: str
    basis: str
    cartesian: bool
    functions: int

    def path(self) -> Path:
        here = Path(__file__).resolve().parents[1]
        for directory in (here / "data", here.parents[1] / "examples"):
            if (directory / self.file).is_file():
                return directory / self.file
        raise OutcoreError(errno.ENOENT, "find a geometry", path=self.file, detail="run it from a checkout")

    def build(self) -> Mole:
        from outcore.chem import molecule

        return molecule.build(self.path(), self.basis, cartesian=self.cartesian)


MOLECULES = {
    "TINY": Molecule("maleic anhydride C4H2O3", "maleic_anhydride.xyz", "sto-3g", False, 37),
    "SMALL": Molecule("maleic anhydride C4H2O3", "maleic_anhydride.xyz", "cc-pvdz", False, 108),
    "MEDIUM": Molecule("p-xylene C8H10", "p_xylene.xyz", "6-31g*", True, 140),
    "LARGE": Molecule("2-methylanthracene C15H12", "methylanthracene.xyz", "6-31g**", True, 285),
    "C14H8F6": Molecule("C14H8F6", "c14h8f6.xyz", "6-31g*", True, 316),
}


@dataclass(frozen=True)
class Device:
    """An emulated storage, as outcore/device/throttle.hpp defines it."""

    bandwidth_bytes_per_s: float  # of each disk
    latency_s: float
    disks: int = 1
    stripe_bytes: int = 64 * KIB

    def setting(self, clock: Path) -> str:
        """The value of OUTCORE_THROTTLE."""
        return (
            f"bandwidth={self.bandwidth_bytes_per_s:.6g},latency={self.latency_s * 1e6:.6g}us,"
            f"disks={self.disks},stripe={self.stripe_bytes},clock={clock}"
        )

    def text(self) -> str:
        disks = "one disk" if self.disks == 1 else f"{self.disks} disks"
        striped = f", striped by {self.stripe_bytes // KIB} KiB" if self.disks > 1 else ""
        speed = f"{self.bandwidth_bytes_per_s / 1e6:.4g} MB/s"
        return f"{disks} of {speed}{striped}, latency {self.latency_s * 1e6:.4g} us"


INTERFACES = {
    "fortran": "plain records",
    "blocking": "the library",
    "asynchronous": "the library, prefetch",
}
"""Values of OUTCORE_REQUESTS, and their names in the studies."""


@dataclass(frozen=True)
class Case:
    """One Hartree-Fock run with one thread in each process; `device` None is the storage of the machine."""

    molecule: str
    integrals: str = "disk"
    interface: str = "asynchronous"
    buffer_bytes: int = 64 * KIB  # of one integral record
    processes: int = 1
    device: Device | None = None
    disk_bytes: int | None = None  # budget of semi-direct runs

    @property
    def key(self) -> str:
        """The name of its files."""
        parts = [self.molecule.lower(), self.integrals]
        if self.integrals != "direct":
            parts += [self.interface, f"{self.buffer_bytes // KIB}k"]
        parts.append(f"p{self.processes}")
        if self.disk_bytes is not None:
            parts.append(f"{self.disk_bytes / 1e6:.0f}mb")
        if self.device is None:
            parts.append("machine")
        elif self.integrals != "direct":
            parts.append(f"d{self.device.disks}-u{self.device.stripe_bytes // KIB}k")
        return "-".join(parts)

    @property
    def worker(self) -> str:
        """The module that runs it."""
        return "outcore.study.worker"

    def settings(self) -> dict[str, Any]:
        """Settings of the worker."""
        # An emulated storage is slow by itself; in place of the real one, memory must not answer.
        page_cache = "direct" if self.device is None else "buffered"
        names = ("molecule", "integrals", "buffer_bytes", "disk_bytes")
        return {"page_cache": page_cache, **{name: getattr(self, name) for name in names}}

    def on(self, *, disks: int | None = None, stripe_bytes: int | None = None) -> Case:
        """The same on more or fewer disks, or with other stripes."""
        assert self.device is not None
        device = replace(
            self.device,
            disks=disks or self.device.disks,
            stripe_bytes=stripe_bytes or self.device.stripe_bytes,
        )
        return replace(self, device=device)


@dataclass(frozen=True)
class Stream:
    """The requests of a Hartree-Fock run without the chemistry, on the storage of the machine: records of each
    process in an exclusive file of its own (`components` 0), or in a shared file striped over so many files."""

    components: int
    stripe_bytes: int = 64 * KIB
    buffer_bytes: int = 64 * KIB
    processes: int = 2
    records: int = 2048  # of each process
    passes: int = 4
    interface: str = "asynchronous"
    device: Device | None = None

    @property
    def key(self) -> str:
        place = f"f{self.components}-u{self.stripe_bytes // KIB}k" if self.components else "exclusive"
        return f"stream-{place}-{self.buffer_bytes // KIB}k-p{self.processes}"

    @property
    def worker(self) -> str:
        return "outcore.study.stream_worker"

    def settings(self) -> dict[str, Any]:
        names = ("components", "stripe_bytes", "buffer_bytes", "records", "passes")
        return {name: getattr(self, name) for name in names}
