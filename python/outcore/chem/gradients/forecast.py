"""Predicted time and disk space of densities, orbital response and derivatives of fitted integrals: operations by
the rate of products of matrices, integrals by a sample of them; `job.rate_cache` has both rates of this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.gradients.three_index import native_derivatives
from outcore.chem.ri import pairs as pair_lists
from outcore.job import machine
from outcore.job.machine import Call, frequency

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ri.auxiliary import Purpose

PURPOSES: tuple[Purpose, Purpose] = "jk", "mp2"
PRODUCTS = 15
"""Usual number of products with J and K, in the equations of orbital response and after their solution."""
_SAMPLE = 40  # pairs of shells
_SHARE = 4
_DOUBLE = 8
_TILE = 4  # most orbitals of a chunk of an array on disk, which is stored as a whole


@dataclass(frozen=True)
class PredictedPart:
    """A part of a calculation, as predicted. disk_bytes: the most that lies on disk in it, over all processes."""

    seconds: float
    disk_bytes: int = 0

    def told(self, each: str = "") -> str:
        """For people. each: what the seconds are of, if not of the whole part."""
        disk = f"on disk at most {self.disk_bytes / 1e6:.0f} MB" if self.disk_bytes else "nothing on disk"
        return f"{self.seconds:.3g} s{each}, {disk}"


def on_disk(size_bytes: int, storage: str, free_bytes: int) -> int:
    """The most bytes on disk of arrays of `size_bytes`, over all processes, that go to disk if memory lacks.
    free_bytes: of all processes, of which other arrays may have three quarters."""
    return 0 if storage == "auto" and _SHARE * size_bytes < free_bytes else size_bytes


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

    # ---- bytes, over all processes ----

    @property
    def bytes(self) -> int:
        """Bytes of the integrals."""
        return self.auxiliary * self.columns * _DOUBLE

    def turned_bytes(self, shapes: Sequence[tuple[int, int]]) -> int:
        """Bytes of arrays over auxiliary functions and pairs of orbitals on disk, in whole chunks."""
        return sum(self.auxiliary * -(-p // _TILE) * _TILE * q for p, q in shapes) * _DOUBLE


def densities_of_mp2(of_method: FittedPass, shapes: Sequence[tuple[int, int]]) -> float:
    """Seconds of one thread, with integrals over orbitals. shapes: occupied and virtual orbitals of each spin."""
    q, operations = of_method.auxiliary, 0.0
    for o, v in shapes:
        for other, above in shapes:
            operations += 4.0 * q * o * v * other * above + 2.0 * o * v * other * above * (o + v)
    again = of_method.made + of_method.turned(shapes, 1)
    fits = sum(4.0 * float(q) ** 2 * o * v for o, v in shapes)
    return again + (operations + fits) / of_method.rates.flops


def orbital_response(
    of_scf: FittedPass, of_method: FittedPass, occupied: Sequence[int], shapes: Sequence[tuple[int, int]]
) -> float:
    """Seconds of one thread. occupied: orbitals of each spin. shapes: of its three-index density. A density that is
    no sum over occupied orbitals counts as a difference of two, each with as many orbitals as are occupied, at
    most."""
    gradient = of_method.made + of_method.turned(shapes, 2)
    product = of_scf.turned([(2 * o, of_scf.functions) for o in occupied], 1)
    return gradient + of_scf.made + of_scf.fitted + PRODUCTS * product


def derivatives_of_scf(of_scf: FittedPass, shapes: Sequence[tuple[int, int]]) -> float:
    """Seconds of one thread. shapes: occupied orbitals of each spin, and orbitals of the space of its density."""
    overlaps = sum(6.0 * float(of_scf.auxiliary) ** 2 * o * r for o, r in shapes) / of_scf.rates.flops
    return of_scf.made + of_scf.turned(shapes, 2) + overlaps + of_scf.derived


def derivatives(
    of_scf: FittedPass, of_method: FittedPass, occupied: Sequence[int], shapes: Sequence[tuple[int, int]]
) -> float:
    """Seconds of one thread, of the integrals of the SCF and of the method after it; see `orbital_response`."""
    first = derivatives_of_scf(of_scf, [(o, of_scf.functions) for o in occupied])
    return first + of_method.turned(shapes, 1) + of_method.derived


DENSITIES_OF_MP2 = "densities of RI-MP2"
RESPONSE, DERIVATIVES = "orbital response", "derivatives of integrals"


@dataclass(frozen=True)
class AfterEnergy:
    """Densities, orbital response and gradient after an energy.

    Attributes:
        of_scf, of_method: passes over the auxiliary sets of the SCF and of a method after it; None: there is none.
        occupied: occupied orbitals of each spin.
        workers: threads of all processes.
        storage, free_bytes: see `on_disk`.
    """

    of_scf: FittedPass
    of_method: FittedPass | None
    occupied: tuple[int, ...]
    workers: int
    storage: str
    free_bytes: int

    @classmethod
    def of(
        cls,
        mol: Mole,
        sets: Mapping[Purpose, Mole],
        screening: float,
        *,
        spins: int,
        threads: int,
        processes: int,
        storage: str,
        free_bytes: int,
    ) -> AfterEnergy:
        """sets: molecules with the auxiliary functions of the SCF and, if there is one, of the method. spins: of
        which orbitals differ. threads: of a process. Measures rates; not collective."""
        of_scf, of_method = (
            FittedPass.of(mol, sets[each], screening, threads) if each in sets else None for each in PURPOSES
        )
        assert of_scf is not None
        occupied = tuple(max(int(each), 1) for each in mol.nelec[:spins])
        return cls(of_scf, of_method, occupied, threads * processes, storage, free_bytes)

    def scf(self) -> dict[str, PredictedPart]:
        """The gradient of the SCF."""
        shapes = [(o, o) for o in self.occupied]
        seconds = derivatives_of_scf(self.of_scf, shapes) / self.workers
        return {DERIVATIVES: PredictedPart(seconds, self._on_disk(self.of_scf.turned_bytes(shapes)))}

    def mp2(self, shapes: Sequence[tuple[int, int]], *, gradient: bool) -> dict[str, PredictedPart]:
        """Parts after the energy of RI-MP2. shapes: occupied and virtual orbitals of each spin."""
        assert self.of_method is not None
        density = self._on_disk(self.of_method.turned_bytes(shapes))
        seconds = densities_of_mp2(self.of_method, shapes) / self.workers
        made = PredictedPart(seconds, 2 * density)  # B and Gamma
        return {DENSITIES_OF_MP2: made} | self.relaxed(shapes, density, gradient=gradient)

    def relaxed(
        self, shapes: Sequence[tuple[int, int]], density_bytes: int, *, gradient: bool
    ) -> dict[str, PredictedPart]:
        """Parts after the densities of a method, whose three-index density takes `density_bytes` on disk."""
        of_scf, of_method, occupied = self.of_scf, self.of_method, self.occupied
        assert of_method is not None
        there = density_bytes + self._on_disk(of_scf.bytes)
        seconds = orbital_response(of_scf, of_method, occupied, shapes) / self.workers
        found = {RESPONSE: PredictedPart(seconds, there)}
        if gradient:
            exchange = self._on_disk(of_scf.turned_bytes([(o, of_scf.functions) for o in occupied]))
            seconds = derivatives(of_scf, of_method, occupied, shapes) / self.workers
            found[DERIVATIVES] = PredictedPart(seconds, there + exchange)
        return found

    def _on_disk(self, size_bytes: int) -> int:
        return on_disk(size_bytes, self.storage, self.free_bytes)


def _shells(mol: Mole) -> str:
    """Angular momenta, primitives and contractions, on which the time of an integral depends."""
    count = Counter((mol.bas_angular(b), mol.bas_nprim(b), mol.bas_nctr(b)) for b in range(mol.nbas))
    return " ".join(f"{each}:{n}" for each, n in sorted(count.items())) + (" cart" if mol.cart else "")
