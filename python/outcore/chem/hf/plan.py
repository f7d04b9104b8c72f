"""The choice of two-electron integrals to keep and to recompute, and its cost, from a measured sample.

A quartet of shells is worth keeping by the time that recomputing it in the cycles to come would take, for each byte
that it takes in a record. Times and bytes are those of a sample of quartets drawn in proportion to their integrals
(`_core.survey`); the rule made of them decides for every quartet anew, the same everywhere, without a table.
Source of the three tiers: semi-direct SCF, Haeser and Ahlrichs, J. Comput. Chem. 10, 104 (1989).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.job.world import World

CYCLES = 14  # times that an SCF to 1e-9 Hartree needs J and K: the estimate's assumption
DISK_SHARE = 0.95  # of what is free or allowed, that is planned for: records are whole, and sizes estimated
_LAST_CHANGE = 1e-6  # of the density, relative to all of it, in the last cycle: it falls evenly to that
_SURVEY_SECONDS = 0.6
_MAX_DRAWS = 4000  # of all processes: the sample is gathered
_MIN_BYTES = 0.05  # of a value: those that round to zero are worth keeping, but not infinitely

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """What a way to run takes: `seconds` of the whole SCF, with the standard error of the sample."""

    kept: int  # integrals
    bytes: int  # of them
    store_seconds: float
    cycle_seconds: float  # of one cycle, on average
    seconds: float
    error_seconds: float


@dataclass(frozen=True)
class Rule:
    """The numbers of a `_core.KeepRule`; None: everything is kept, or nothing."""

    everything: bool = True
    factors: Floats | None = None
    worth: Floats | None = None
    first_exponent: int = 0
    least: float = 0.0

    def native(self, basis: _core.Basis) -> _core.KeepRule:
        if self.factors is None or self.worth is None:
            return _core.KeepRule(self.everything)
        return _core.KeepRule(
            basis, self.factors.tolist(), self.worth.tolist(), self.first_exponent, self.least
        )


KEEP_ALL = Rule(everything=True)
KEEP_NONE = Rule(everything=False)


class Sample:
    """The measured sample of a molecule's quartets, of all processes. Made by `survey`."""

    def __init__(
        self,
        kinds: int,
        rows: Floats,
        draws: int,
        pack: float,
        contract: float,
        unpack: float,
        threads: int,
        step: float,
    ) -> None:
        """rows [n][8] as `_core.Survey.quartets`; seconds of a value to pack, to check, unpack and contract, and
        only to check and unpack; `threads` of all processes; `step`: density screening leaves out what contributes
        less than a hundredth of it."""
        bra, ket = rows[:, 0].astype(np.intp), rows[:, 1].astype(np.intp)
        bound, density, self._values, self._seconds, self._bytes = rows[:, 2:7].T
        self._contribution = bound * density
        self._weight = rows[:, 7] / max(1, draws)
        self._pack, self._contract, self._threads = pack, contract, threads
        self.unpack_share = (
            unpack / contract if contract > 0 else 0.0
        )  # of what a kept integral takes in a cycle
        self._least = 0.01 * step
        self._cycles = _cycles(self._contribution, self._least, CYCLES)
        self._factors = _factors(kinds, bra, ket, self._seconds / self._values)
        exponents = np.frexp(bound)[1] - 1
        self._first = int(exponents.min()) if len(exponents) else 0
        self._worth = self._worth_of(exponents - self._first)
        model = self._factors[bra] * self._factors[ket]
        self._score = model * self._worth[exponents - self._first]

    def on(self, threads: int) -> Sample:
        """The same sample, where so many threads of all processes work."""
        found = copy.copy(self)
        found._threads = threads
        return found

    @property
    def integrals(self) -> float:
        return float(np.sum(self._weight * self._values))

    @property
    def bytes(self) -> float:
        """Bytes of all integrals in records."""
        return float(np.sum(self._weight * self._bytes))

    def rule(self, memory_bytes: float, disk_bytes: float, seconds_per_byte: float = 0.0) -> Rule:
        """What to keep in these budgets: what is worth most, and on disk only what takes longer to recompute in all
        cycles than a byte takes to write and read (core seconds)."""
        disk_bytes *= DISK_SHARE
        if memory_bytes + disk_bytes <= 0:
            return KEEP_NONE
        order = np.argsort(-self._score)
        needed = np.cumsum((self._weight * self._bytes)[order])

        def min_within(budget: float) -> float:
            fitting = int(np.searchsorted(needed, budget, side="right"))
            return 0.0 if fitting == len(order) else float(np.nextafter(self._score[order[fitting]], np.inf))

        in_memory = min_within(memory_bytes)
        least = min(in_memory, max(min_within(memory_bytes + disk_bytes), seconds_per_byte))
        if not np.any(self._score >= least):
            return KEEP_NONE
        if np.all(self._score >= least):
            return KEEP_ALL
        return Rule(True, self._factors, self._worth, self._first, least)

    def work(
        self,
        rule: Rule,
        read_seconds_per_byte: float = 0.0,
        in_memory_bytes: float = 0.0,
        cycles: int = CYCLES,
    ) -> Work:
        """What an SCF that needs J and K `cycles` times takes with a rule; reading goes on beside the computing."""
        if rule.factors is None:
            kept = np.full(len(self._score), rule.everything)
        else:
            kept = self._score >= rule.least
        weight = self._weight / self._threads
        contract = self._contract * self._values
        store = np.where(kept, self._seconds + self._pack * self._values, 0.0)
        again = np.where(
            kept,
            cycles * contract,
            (self._seconds + contract) * _cycles(self._contribution, self._least, cycles),
        )
        size = float(np.sum((self._weight * self._bytes)[kept]))
        read = cycles * max(0.0, size - in_memory_bytes) * read_seconds_per_byte
        reading = max(0.0, read - float(np.sum((weight * again)[kept])))
        later = float(np.sum(weight * again)) + reading
        return Work(
            kept=round(float(np.sum((self._weight * self._values)[kept]))),
            bytes=round(size),
            store_seconds=float(np.sum(weight * store)),
            cycle_seconds=later / cycles,
            seconds=float(np.sum(weight * store)) + later,
            error_seconds=_standard_error(weight * (store + again)),
        )

    def _worth_of(self, exponents: NDArray[np.intp]) -> Floats:
        """Cycles over bytes of a value, by power of two of the bound."""
        if len(exponents) == 0:
            return np.ones(1)
        count = int(exponents.max()) + 1
        size = np.bincount(exponents, self._weight * self._bytes, count)
        values = np.bincount(exponents, self._weight * self._values, count)
        cycles = np.bincount(exponents, self._weight * self._values * self._cycles, count)
        seen = np.flatnonzero(values)
        worth = cycles[seen] / np.maximum(size[seen], _MIN_BYTES * values[seen])
        result: Floats = np.interp(np.arange(count), seen, worth)
        return result


def survey(
    world: World,
    basis: _core.Basis,
    screening: _core.Screening,
    accuracy: _core.Accuracy,
    density: Floats,
    threads: int,
    step: float,
) -> Sample:
    """Measures a sample on all threads of all processes; the same at all. `density` [1][n][n]: about that of the
    molecule. Collective."""
    each = [int(count) for count in world.gather(threads)]
    first, total = sum(each[: world.rank]), sum(each)

    most = max(1, _MAX_DRAWS // total)
    parts: list[_core.Survey | None] = [None] * threads

    def measure(thread: int, _stopped: team.Stopped) -> None:
        parts[thread] = _core.survey(
            basis, screening, accuracy, density, _SURVEY_SECONDS, most, first + thread, total
        )

    with world.together("survey two-electron integrals"):
        team.run(threads, measure)
    mine = [part for part in parts if part is not None]
    rows = np.concatenate([part.quartets() for part in mine])
    sums = np.array(
        [(part.draws, part.pack_seconds, part.contract_seconds, part.unpack_seconds) for part in mine]
    ).sum(axis=0)
    gathered: list[Any] = world.gather((rows, sums))
    sums = np.sum([part[1] for part in gathered], axis=0)
    draws = max(1.0, sums[0])
    return Sample(
        basis.kinds, np.concatenate([part[0] for part in gathered]), int(sums[0]), sums[1] / draws,
        sums[2] / draws, sums[3] / draws, total, step,
    )  # fmt: skip


def _cycles(contribution: Floats, cutoff: float, most: int) -> Floats:
    """In how many of `most` cycles quartets that add this much to the Fock matrix of the whole density add more
    than `cutoff` for its change."""
    decay = -np.log(_LAST_CHANGE) / max(1, most - 1)
    needed = 1.0 + np.log(np.maximum(contribution / cutoff, 1.0)) / decay
    result: Floats = np.minimum(needed, most)
    return result


def _factors(kinds: int, bra: NDArray[np.intp], ket: NDArray[np.intp], seconds: Floats) -> Floats:
    """One factor for each pair of kinds, such that the seconds of a value are about factor[bra] * factor[ket]:
    least squares of the logarithms, by damped iteration."""
    pairs = kinds * (kinds + 1) // 2
    logs = np.log(np.maximum(seconds, 1e-12))
    mean = float(logs.mean()) / 2 if len(logs) else 0.0
    factors = np.full(pairs, mean)
    count = np.bincount(bra, minlength=pairs) + np.bincount(ket, minlength=pairs)
    seen = count > 0
    for _ in range(60):
        pull = np.bincount(bra, logs - factors[ket], pairs) + np.bincount(ket, logs - factors[bra], pairs)
        factors[seen] += 0.5 * (pull[seen] / count[seen] - factors[seen])
    result: Floats = np.exp(factors)
    return result


def _standard_error(terms: Floats, blocks: int = 20) -> float:
    """The standard error of the sum of a sample's terms, from the sums of blocks of neighbours."""
    if len(terms) < 2 * blocks:
        return float(np.sum(terms))
    sums = np.array([block.sum() for block in np.array_split(terms, blocks)])
    return float(np.sqrt(blocks) * sums.std(ddof=1))
