"""The least memory of a calculation: the bytes that each process always holds, and the further bytes of its stages,
which run one after another."""

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
# Memory of a process of a command beyond the plans of its stages, by the kind of integrals: the interpreter, the
# loaded libraries (also those for second order and stability, which a difficult SCF loads), fragments of heaps.
# More than was measured, so that runs of the same input need the same memory, and so that the least memory is
# enough on machines whose libraries take more.
FITTED_BYTES = 148 * _MIB
STORED_BYTES = 148 * _MIB
DECOMPOSED_BYTES = 156 * _MIB
# In addition, for geomeTRIC with the libraries that it loads, and for earlier optimisation steps.
OPTIMISER_BYTES = 32 * _MIB
# In addition, for a search for states: buffers of BLAS for products of large matrices, heaps of tiles and
# descriptions.
STATES_BYTES = 24 * _MIB
# In addition, for coupled cluster with a checkpoint: threads that write and read the disk, their heaps, and tiles
# of the kept array that is open.
CHECKPOINT_BYTES = 32 * _MIB
# In addition, for an object of Python: its process loads libraries for densities and gradients.
LATER_BYTES = 16 * _MIB

_MB = 10**6


@dataclass(frozen=True)
class Least:
    """held_bytes: memory of each process in every stage. stages: further memory of each process in each stage, by
    name."""

    processes: int
    held_bytes: int
    stages: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """The least memory of all processes together, in whole megabytes."""
        return -(-self._each * self.processes // _MB) * _MB

    @property
    def _each(self) -> int:
        return self.held_bytes + max(self.stages.values())

    def fits(self, share: Allowance) -> bool:
        return share.bytes >= self._each

    def check(self, share: Allowance, *, bound: bool = False) -> None:
        """Raises OutcoreError (ENOMEM) if `share`, the memory of each process, is less. bound: the stages need more
        than is known yet."""
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
