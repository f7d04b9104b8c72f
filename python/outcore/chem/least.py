"""The least memory of a calculation: what each process holds, and what its stages, one after another, take more."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words

if TYPE_CHECKING:
    from outcore.job.resources import Allowance

_MIB = 1 << 20
# What a process of a command holds beside what its stages plan, by the integrals that it has: the interpreter, the
# libraries that are loaded, what heaps keep in pieces; with those of second order and of stability, which an SCF
# takes where its way is hard. More than was seen, so that runs of the same input need the same memory, and so that
# the least memory is enough on machines whose libraries take more.
FITTED_BYTES = 148 * _MIB
STORED_BYTES = 148 * _MIB
DECOMPOSED_BYTES = 156 * _MIB
# More, of geomeTRIC with the libraries that it loads, and of steps before the present one.
OPTIMISER_BYTES = 32 * _MIB
# More, of a search for states: what BLAS keeps for products of large matrices, and heaps of tiles and descriptions.
STATES_BYTES = 24 * _MIB
# More, of an object of Python in whose process densities and gradients load libraries.
LATER_BYTES = 16 * _MIB

_MB = 10**6


@dataclass(frozen=True)
class Least:
    """held_bytes: of each process, whatever the stage. stages: what each takes more, of each process, by name."""

    processes: int
    held_bytes: int
    stages: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """Of all processes together, in whole megabytes."""
        return -(-self._each * self.processes // _MB) * _MB

    @property
    def _each(self) -> int:
        return self.held_bytes + max(self.stages.values())

    def fits(self, share: Allowance) -> bool:
        return share.bytes >= self._each

    def check(self, share: Allowance, *, bound: bool = False) -> None:
        """bound: the stages take more than is known yet. Raises OutcoreError (ENOMEM) if `share`, of each process,
        is less."""
        if self.fits(share):
            return
        stage = max(self.stages, key=lambda name: self.stages[name])
        of = "" if self.processes == 1 else f" for {self.processes} processes together"
        needed = f"--memory {self.bytes // _MB}MB is the least that is enough{of}"
        if bound:
            needed = f"more than {self.bytes // _MB}MB are needed{of}; --estimate computes how much"
        raise OutcoreError(
            errno.ENOMEM,
            stage,
            detail=f"{needed}, but {share.reason} gives {in_words(share.bytes * self.processes)}",
        )
