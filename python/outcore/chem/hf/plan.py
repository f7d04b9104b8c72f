"""The choice of two-electron integrals to keep and to recompute, and its cost, from a measured sample.

A quartet of shells is worth keeping by the time that recomputing it in the cycles to come would take, for each byte
that it takes in a record. Times and bytes are those of a sample of quartets drawn in proportion to their integrals
(`_core.survey`); the rule made of them decides for every quartet anew, the same everywhere, without a table.
Source of the three tiers: semi-direct SCF, Haeser and Ahlrichs, J. Comput. Chem. 10, 104 (1989).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.job.world import World

CYCLES = 14  # times that an SCF to 1e-9 Hartree needs J and K: the estimate's assumption
DISK_SHARE = 0.95  # of what is free or allowed, that is planned for: records are whole
_SIGMAS = 2.0  # standard errors of their bytes, that what is kept may exceed its estimate by and still fits
_MOST_LEFT = 0.5  # share of a budget that is left for that, at most
_LAST_CHANGE = 3e-6  # of the density, relative to all of it, in the last cycle: it falls evenly to that
_SURVEY_SECONDS = 0.6
_MAX_DRAWS = 4000  # of all processes: the sample is gathered
_MIN_BYTES = 0.05  # of a value: those that round to zero are worth keeping, but not infinitely

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """What a way to run takes: `seconds` of the whole SCF, and their standard error, by the sample and by what was
    looked at."""

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

    @property
    def keeps_all(self) -> bool:
        return self.factors is None and self.everything

    @property
    def keeps_none(self) -> bool:
        return not self.everything

    def native(self, basis: _core.Basis) -> _core.KeepRule:
        if self.factors is None or self.worth is None:
            return _core.KeepRule(self.everything)
        return _core.KeepRule(
            basis, self.factors.tolist(), self.worth.tolist(), self.first_exponent, self.least
        )


KEEP_ALL = Rule(everything=True)
KEEP_NONE = Rule(everything=False)


@dataclass(frozen=True)
class SampleRates:
    """Seconds of one thread."""

    pack: float  # of a value
    contract: float  # of a value, checking and unpacking included
    unpack: float  # of a value: that alone
    move: float  # of a byte of a record, within memory: from the page cache or to it
    look: float  # of all quartets, once: to choose what is computed
    look_error: float  # standard error of that


class Sample:
    """The measured sample of a molecule's quartets, of all processes. Made by `survey`."""

    def __init__(
        self,
        kinds: int,
        rows: Floats,
        draws: int,
        rates: SampleRates,
        threads: int,
        step: float,
    ) -> None:
        """rows [n][10] as `_core.Survey.quartets`, draws of all threads numbered apart; `threads` of all processes;
        `step`: density screening leaves out what contributes less than a hundredth of it."""
        bra, ket = rows[:, 0].astype(np.intp), rows[:, 1].astype(np.intp)
        bound, density, self._values, self._seconds, self._own_bytes = rows[:, 2:7].T
        self._contribution = bound * density
        self._weight = rows[:, 7] / max(1, draws)
        self._bytes = self._own_bytes + rows[:, 8]  # with its share of the header of the slab
        self._slab = np.unique(rows[:, 9], return_inverse=True)[1]
        self._headers = np.bincount(self._slab, self._weight * rows[:, 8])
        self._rates, self._threads = rates, threads
        self.unpack_share = (
            rates.unpack / rates.contract if rates.contract > 0 else 0.0
        )  # of what contracting a kept integral takes
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
        cycles than a byte takes to write and read (core seconds). Of the disk so much is left as the sample may
        err: integrals that find no place when they are stored are recomputed, with their neighbours."""
        sizes = self._weight * self._bytes
        error = _standard_error(sizes) / max(float(sizes.sum()), 1.0)
        disk_bytes *= DISK_SHARE * (1 - min(_SIGMAS * error, _MOST_LEFT))
        if memory_bytes + disk_bytes <= 0:
            return KEEP_NONE
        order = np.argsort(-self._score)
        header = np.zeros(len(order))  # comes with the first quartet of a slab
        slabs, first = np.unique(self._slab[order], return_index=True)
        header[first] = self._headers[slabs]
        needed = np.cumsum((self._weight * self._own_bytes)[order] + header)

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
        """What an SCF that needs J and K `cycles` times takes with a rule; reading goes on beside the computing.
        All quartets are looked at when some are stored, and each time when some are recomputed."""
        if rule.factors is None:
            kept = np.full(len(self._score), rule.everything)
        else:
            kept = self._score >= rule.least
        rates, values = self._rates, self._values
        weight = self._weight / self._threads
        look = rates.look / self._threads
        move = rates.move * self._bytes
        store = np.where(kept, self._seconds + rates.pack * values + move, 0.0)
        again = np.where(
            kept,
            cycles * (rates.contract * values + move),
            (self._seconds + (rates.contract - rates.unpack) * values)
            * _cycles(self._contribution, self._least, cycles),
        )
        size = self._bytes_of(kept)
        read = cycles * max(0.0, size - in_memory_bytes) * read_seconds_per_byte
        reading = max(0.0, read - float(np.sum((weight * again)[kept])))
        looks_to_store, looks_later = int(not rule.keeps_none), 0 if rule.keeps_all else cycles
        storing = float(np.sum(weight * store)) + looks_to_store * look
        later = float(np.sum(weight * again)) + looks_later * look + reading
        looking_error = (looks_to_store + looks_later) * rates.look_error / self._threads
        return Work(
            kept=round(float(np.sum((self._weight * self._values)[kept]))),
            bytes=round(size),
            store_seconds=storing,
            cycle_seconds=later / cycles,
            seconds=storing + later,
            error_seconds=math.hypot(_standard_error(weight * (store + again)), looking_error),
        )

    def _bytes_of(self, kept: NDArray[np.bool_]) -> float:
        """In records, with a header for each slab of which a part is kept."""
        headers = self._headers[np.unique(self._slab[kept])]
        return float(np.sum((self._weight * self._own_bytes)[kept])) + float(np.sum(headers))

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
    rows = [part.quartets() for part in mine]
    for thread, part in enumerate(rows):
        part[:, 9] = part[:, 9] * total + first + thread
    sums = np.array(
        [
            (part.draws, part.pack_seconds, part.contract_seconds, part.unpack_seconds, part.byte_seconds,
             part.byte_seconds > 0, part.looked, part.look_seconds, part.look_squares)
            for part in mine
        ]
    ).sum(axis=0)  # fmt: skip
    gathered: list[Any] = world.gather((np.concatenate(rows), sums))
    draws, pack, contract, unpack, move, moved, looked, look, squares = np.sum(
        [part[1] for part in gathered], axis=0
    )
    per_draw = 1 / max(1.0, draws)
    rates = SampleRates(
        pack * per_draw,
        contract * per_draw,
        unpack * per_draw,
        move / max(1.0, moved),  # of the threads that had a record
        screening.tasks * look / max(1.0, looked),
        screening.tasks * _error_of_mean(looked, look, squares),
    )
    return Sample(basis.kinds, np.concatenate([part[0] for part in gathered]), int(draws), rates, total, step)


def _cycles(contribution: Floats, cutoff: float, calls: int) -> Floats:
    """How many of `calls` for J and K compute quartets that add this much to the Fock matrix of the whole density.
    The first of them is for that density. Those of later cycles are for its change, and leave out what adds less
    than `cutoff`. The last one, for the energy, leaves out nothing."""
    cycles = calls - 1
    decay = -np.log(_LAST_CHANGE) / max(1, cycles - 1)
    with np.errstate(divide="ignore"):
        falling = np.log(contribution / cutoff) / decay
    # That many steps downwards from the first cycle on are above the cutoff, the first included. Steps are not
    # even: on average a half is left of the last one.
    result: Floats = 1.0 + np.clip(falling + 0.5, 0.0, cycles)
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


def _error_of_mean(count: float, total: float, squares: float) -> float:
    """The standard error of the mean of so many numbers, from their sum and that of their squares. Of one it is all
    of it."""
    if count < 2:
        return total
    mean = total / count
    return math.sqrt(max(0.0, squares / count - mean * mean) / (count - 1))


def _standard_error(terms: Floats, blocks: int = 20) -> float:
    """The standard error of the sum of a sample's terms, from the sums of blocks of neighbours."""
    if len(terms) < 2 * blocks:
        return float(np.sum(terms))
    sums = np.array([block.sum() for block in np.array_split(terms, blocks)])
    return float(np.sqrt(blocks) * sums.std(ddof=1))
