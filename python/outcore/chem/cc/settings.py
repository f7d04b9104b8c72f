"""Settings of a coupled-cluster calculation, which its user may choose."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations import methods
from outcore.chem.cc.equations.orbitals import KINDS
from outcore.chem.cc.plan.places import LADDERS
from outcore.chem.ri.cholesky import EXACT

INTEGRALS = ("ri", "cholesky", "conventional")
LATE = ("conv_tol", "conv_tol_normt", "max_cycle", "level_shift", "damping")
"""Settings of iterations alone, which may change between them."""
_TOLERANCE = 1e-8
TIGHT = 1e-7
"""Norm of the last change of amplitudes below which stored integrals of ladders have double precision."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Raises OutcoreError (EINVAL) for values out of range.

    method: "ccsd"; for closed shells also "dcsd" (distinguishable cluster), "cc2" (doubles of second order), or
        "ccd" and "lccd" (linearized), which have no singles.
    integrals: "ri" (density fitting), "cholesky", or "conventional": Cholesky to rounding, which is exact. None: as
        the reference, whose integrals are fitted or not.
    tolerance: of the Cholesky decomposition (Hartree); None: 1e-8.
    ladder: where the integrals of the ladder are: "disk", "memory", "rebuild" (recomputed in each iteration),
        "auto" (the fastest way that has room).
    conv_tol: change of the energy (Hartree) below which an iteration may be the last.
    conv_tol_normt: norm of the change of the amplitudes, without shift and damping, below which an iteration may be
        the last. The energy is linear in amplitudes, and its error was a twentieth of that norm: 20 times
        `conv_tol` goes well with `conv_tol`. If it is below 1e-7 when integrals are made, stored integrals of the
        ladder have double precision, and twice the size, else single precision.
    diis_space: vectors of the extrapolation; 1 for none.
    level_shift: raises virtual orbitals in denominators (Hartree): slower, safer.
    orbitals: for ROHF with frozen orbitals: they become semicanonical before some are frozen ("semicanonical"), or
        after ("standard"). None: before, or after where a list names the frozen ones.
    fno: frozen natural orbitals: virtual ones with occupations up to this are left out; 0: none are.
    damping: share of the old amplitudes that stays, 0 to 1: slower, safer.
    block: most virtual orbitals of a tile; None: chosen by the memory.
    """

    method: str = "ccsd"
    integrals: str | None = None
    tolerance: float | None = None
    ladder: str = "auto"
    conv_tol: float = 1e-8
    conv_tol_normt: float = 2e-7
    max_cycle: int = 50
    diis_space: int = 6
    level_shift: float = 0.0
    damping: float = 0.0
    orbitals: str | None = None
    fno: float = 0.0
    block: int | None = None

    def __post_init__(self) -> None:
        wrong = (
            (
                self.integrals not in (None, *INTEGRALS),
                f"integrals '{self.integrals}' are none of {', '.join(INTEGRALS)}",
            ),
            (
                self.orbitals not in (None, *KINDS),
                f"orbitals '{self.orbitals}' are none of {', '.join(KINDS)}",
            ),
            (self.ladder not in LADDERS, f"ladder '{self.ladder}' is none of {', '.join(LADDERS)}"),
            (
                self.tolerance is not None and not 0 < self.tolerance < 1,
                f"a tolerance of {self.tolerance}; it lies between 0 and 1",
            ),
            (
                self.tolerance is not None and self.integrals != "cholesky",
                "a tolerance is of integrals='cholesky' alone",
            ),
            (not 0 < self.conv_tol < 1, f"conv_tol is {self.conv_tol:g}; it lies between 0 and 1"),
            (
                not 0 < self.conv_tol_normt < 1,
                f"conv_tol_normt is {self.conv_tol_normt:g}; it lies between 0 and 1",
            ),
            (self.max_cycle < 1, f"{self.max_cycle} iterations"),
            (not 1 <= self.diis_space <= 32, f"{self.diis_space} vectors of DIIS; there may be 1 to 32"),
            (
                not 0 <= self.level_shift < 100,
                f"a level shift of {self.level_shift:g}; it lies between 0 and 100",
            ),
            (not 0 <= self.fno < 1, f"natural orbitals above {self.fno:g}; it is at least 0 and below 1"),
            (not 0 <= self.damping < 1, f"damping of {self.damping:g}; it is at least 0 and below 1"),
        )
        method = methods.of(self.method)
        if self.fno and not method.has_natural_orbitals:
            raise OutcoreError(
                errno.ENOTSUP,
                "frozen natural orbitals",
                detail=f"their error was measured for CCSD, not for {method.title}",
            )
        if not method.has_ladder and self.ladder != Settings.ladder:
            raise OutcoreError(
                errno.EINVAL,
                "coupled cluster",
                detail=f"ladder='{self.ladder}' has no effect: {method.title} has no ladder",
            )
        for is_wrong, detail in wrong:
            if is_wrong:
                raise OutcoreError(errno.EINVAL, "coupled cluster", detail=detail)

    @property
    def ladder_type(self) -> str:
        """numpy's name of the type of stored integrals of ladders."""
        return "float64" if self.conv_tol_normt < TIGHT else "float32"

    @property
    def decomposed_to(self) -> float:
        """The tolerance of a Cholesky decomposition (Hartree)."""
        return EXACT if self.integrals == "conventional" else self.tolerance or _TOLERANCE
