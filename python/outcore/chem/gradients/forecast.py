"""Predicted time of orbital response and of derivatives of fitted integrals: operations by the rate of products of
matrices, integrals by a sample of them; `job.rate_cache` has both rates of this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.gradients.three_index import native_derivatives
from outcore.chem.ri import pairs as pair_lists
from outcore.job import machine
from outcore.job.machine import Call, frequency

if TYPE_CHECKING:
    from pyscf.gto import Mole

PRODUCTS = 15
"""Usual number of products with J and K, in the equations of orbital response and after their solution."""
_SAMPLE = 40  # pairs of shells


@dataclass(frozen=True)
class IntegralRates:
    """Rates of one thread while others do the same, in a second. integrals, derivatives: elements [P,mn];
    derivatives by all atoms count as one. flops: of products of matrices."""

    integrals: float
    derivatives: float
    flops: float


@dataclass(frozen=True)
class FittedPass:
    """Rows P of an auxiliary set over pairs of functions; `columns` of these are kept.

    functions: of the basis."""

    functions: int
    auxiliary: int
    columns: int
    rates: IntegralRates

    @classmethod
    def of(cls, mol: Mole, auxmol: Mole, screening: float, threads: int) -> FittedPass:
        """A pass with rates by samples, if nobody has measured them. Not collective."""
        native = pair_lists.native(mol, auxmol)
        bounds = np.array(native.bounds(threads))
        pairs = pair_lists.Pairs(bounds, pair_lists.shell_sizes(mol), screening, 1 << 30)
        some, width = pairs.sample(_SAMPLE)
        n, auxiliary, shells = int(mol.nao), int(auxmol.nao), native.auxiliary_shells
        settings = {"functions": _shells(mol), "auxiliary functions": _shells(auxmol)}

        def integrals() -> Call:
            values = np.zeros((auxiliary, width))
            return lambda: native.integrals(some, 0, shells, values, 1)

        def derivatives() -> Call:
            made, z = native_derivatives(mol, auxmol), np.ones((auxiliary, width))
            found = np.zeros((mol.natm, 3))
            return lambda: made.add(some, 0, shells, z, found, 1)

        def rate(name: str, make: Any) -> float:
            return machine.of_processor(
                name, threads, settings, lambda: auxiliary * width * frequency(make, threads)
            )

        rates = IntegralRates(
            rate("three-index integrals", integrals),
            rate("derivatives of three-index integrals", derivatives),
            machine.gemm(n, n, n, threads),
        )
        return cls(n, auxiliary, pairs.columns, rates)

    # ---- seconds of one thread ----

    @property
    def made(self) -> float:
        return self.auxiliary * self.columns / self.rates.integrals

    @property
    def derived(self) -> float:
        return self.auxiliary * self.columns / self.rates.derivatives

    @property
    def fitted(self) -> float:
        """The factor of the metric, applied to all columns."""
        q = self.auxiliary
        return (q**3 / 3 + float(q) ** 2 * self.columns) / self.rates.flops

    def turned(self, shapes: Sequence[tuple[int, int]], times: int) -> float:
        """`times` transformations between pairs of functions and pairs of orbitals; shapes: of each spin."""
        n = self.functions
        return sum(2.0 * self.auxiliary * n * p * (n + q) for p, q in shapes) * times / self.rates.flops


def orbital_response(
    of_scf: FittedPass, of_method: FittedPass, occupied: Sequence[int], correlated: Sequence[int]
) -> float:
    """Seconds of one thread. occupied, correlated: orbitals of each spin. A density that is no sum over occupied
    orbitals counts as a difference of two, each with as many orbitals as are occupied, at most."""
    gradient = of_method.made + of_method.turned([(m, m) for m in correlated], 2)
    product = of_scf.turned([(2 * o, of_scf.functions) for o in occupied], 1)
    return gradient + of_scf.made + of_scf.fitted + PRODUCTS * product


def derivatives(
    of_scf: FittedPass, of_method: FittedPass, occupied: Sequence[int], correlated: Sequence[int]
) -> float:
    """Seconds of one thread, of the integrals of the SCF and of the method after it."""
    n = of_scf.functions
    shapes = [(o, n) for o in occupied]
    overlaps = sum(6.0 * float(of_scf.auxiliary) ** 2 * o * n for o in occupied) / of_scf.rates.flops
    first = of_scf.made + of_scf.turned(shapes, 2) + overlaps + of_scf.derived
    return first + of_method.turned([(m, m) for m in correlated], 1) + of_method.derived


def _shells(mol: Mole) -> str:
    """Angular momenta, primitives and contractions, on which the time of an integral depends."""
    count = Counter((mol.bas_angular(b), mol.bas_nprim(b), mol.bas_nctr(b)) for b in range(mol.nbas))
    return " ".join(f"{each}:{n}" for each, n in sorted(count.items())) + (" cart" if mol.cart else "")
