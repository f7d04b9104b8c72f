"""The settings of a multireference CI: one class for the command and for Python."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from outcore.base.errors import OutcoreError
from outcore.chem.mrci.size_consistency import FUNCTIONALS
from outcore.chem.ri.cholesky import EXACT

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.method import Directory
    from outcore.chem.ri.source import Source
    from outcore.job.world import World

COUPLINGS = ("all", "interacting")
INTEGRALS = ("conventional", "ri", "cholesky")
WORDS = ("symmetry", "all")  # words for references

_SPIN_SHIFT = 0.05  # Hartree
# Least weight of the references in a state. In a CI the weight is 0.25 for a single reference with a broken bond,
# and 0.00 for a state without references. ACPF and AQCC assume that references make up most of a state.
MIN_WEIGHTS = {"ci": 0.1, "acpf": 0.5, "aqcc": 0.5}


class Given(TypedDict, total=False):
    """Arguments of all constructors of MRCI; the rest are `Settings`.

    irrep: of the states, by its name; default that of the determinant of the mean field. spin: 2S of the states;
    default that of the active space. roots: number of states. memory, scratch, threads, comm: as for
    DensityFitting. checkpoint: directory in which states are kept, and looked for first. source: an existing
    Cholesky decomposition of these integrals."""

    irrep: str | int | None
    spin: int | None
    roots: int
    memory: int | str | None
    scratch: str | None
    threads: int | None
    comm: Intracomm | World | None
    source: Source | None
    references: str | float | Path
    couplings: str
    functional: str
    residual: float
    max_cycle: int
    vectors: int
    min_weight: float | None
    spin_shift: float | None
    error_bound: float
    vector_memory: int | None
    checkpoint: Directory
    integrals: str
    tolerance: float
    auxbasis: Any
    integral_memory: int | None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a multireference CI. Raises OutcoreError (EINVAL) for values out of range.

    references: "symmetry": all configurations of the active space with the irrep of the state; "all": with any
        irrep; a path: the configurations that a file lists; a number: configurations with this weight in a
        reference vector, or, without one, in a state of the configurations of "symmetry".
    couplings: "all": all spin couplings of each configuration; "interacting": if two electrons of inactive orbitals
        are in external ones, only couplings in which these four electrons are a singlet, as H couples no others to
        references.
    functional: "ci", "acpf" or "aqcc".
    residual: norm below which a root is converged (Hartree).
    min_weight: least weight of the references in a root; less is an error. None: that of MIN_WEIGHTS.
    spin_shift: Hartree; it is added to the Hamiltonian, times S^2 - S(S+1) for the wanted spin S, so that states of
        higher spin stay away; None: 0.05. Energies are without it.
    error_bound: Hartree; vectors are packed so that it bounds the error of the energy, estimated with the diagonal
        of H. 0: they are not rounded.
    vector_memory: bytes of each process for vectors; None: the rest of the budget. Other vectors are in a file.
    integrals: two-electron integrals. "conventional": all of them, decomposed to rounding if they do not fit into
        memory; "ri": density fitting with `auxbasis` (None: that of the basis for MP2) for everything beyond the
        field of the SCF; "cholesky": decomposed to `tolerance` (Hartree).
    integral_memory: bytes of each process for integrals between pairs of external orbitals; None: half of the rest
        of the budget. Larger ones are read from a disk array in each product.
    """

    references: str | float | Path = "symmetry"
    couplings: str = "all"
    functional: str = "ci"
    residual: float = 1e-6
    max_cycle: int = 50
    vectors: int = 6
    min_weight: float | None = None
    spin_shift: float | None = None
    error_bound: float = 0.0
    vector_memory: int | None = None
    integrals: str = "conventional"
    tolerance: float = 1e-8
    auxbasis: Any = None
    integral_memory: int | None = None

    @property
    def shift(self) -> float:
        """The spin shift, or its default (Hartree)."""
        return _SPIN_SHIFT if self.spin_shift is None else self.spin_shift

    @property
    def limit_of_weights(self) -> float:
        """The least weight of references, or its default."""
        return MIN_WEIGHTS[self.functional] if self.min_weight is None else self.min_weight

    @property
    def decomposed_to(self) -> float:
        """The tolerance of a Cholesky decomposition (Hartree)."""
        return EXACT if self.integrals == "conventional" else self.tolerance

    def __post_init__(self) -> None:
        wrong = (
            (
                self.couplings not in COUPLINGS,
                f"couplings '{self.couplings}' are none of {', '.join(COUPLINGS)}",
            ),
            (
                self.couplings == "interacting" and self.error_bound > 0,
                "an error bound with interacting couplings, which packing would mix with others; take 0",
            ),
            (
                self.functional not in FUNCTIONALS,
                f"functional '{self.functional}' is none of {', '.join(FUNCTIONALS)}",
            ),
            (not 0 < self.residual < 1, f"a residual of {self.residual:g}; it is between 0 and 1"),
            (self.max_cycle < 1, f"{self.max_cycle} iterations"),
            (
                self.min_weight is not None and not 0 <= self.min_weight < 1,
                f"a least weight of {self.min_weight}; it is 0 or more, and below 1",
            ),
            (
                self.spin_shift is not None and not 0 <= self.spin_shift < 100,
                f"a spin shift of {self.spin_shift} Hartree; it is 0 to 100",
            ),
            (
                not 0 <= self.error_bound < 1,
                f"an error bound of {self.error_bound:g} Hartree; it is 0 or more, and small",
            ),
            (
                self.vector_memory is not None and self.vector_memory < 0,
                f"{self.vector_memory} bytes of memory for vectors",
            ),
            (
                self.integrals not in INTEGRALS,
                f"integrals '{self.integrals}' are none of {', '.join(INTEGRALS)}",
            ),
            (
                not 0 < self.tolerance < 1,
                f"a tolerance of {self.tolerance:g} Hartree; it is above 0 and below 1",
            ),
            (
                self.integral_memory is not None and self.integral_memory < 0,
                f"{self.integral_memory} bytes of memory for integrals",
            ),
            (not 3 <= self.vectors <= 32, f"{self.vectors} vectors; there may be 3 to 32"),
            (
                isinstance(self.references, float) and not 0 < self.references < 1,
                f"references of a weight of {self.references}; it is between 0 and 1",
            ),
        )
        for is_wrong, detail in wrong:
            if is_wrong:
                raise OutcoreError(errno.EINVAL, "multireference CI", detail=detail)
