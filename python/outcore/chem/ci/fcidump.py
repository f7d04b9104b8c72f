"""FCIDUMP: text files of integrals over orbitals, as Molpro, PySCF, Psi4 and NECI write them.

    &FCI NORB=.., NELEC=.., MS2=.., ORBSYM=1,1,2,.., ISYM=1, [IUHF=1,] &END        (or / in place of &END)
    value p q r s        (pq|rs)             value p q 0 0      one-electron             value 0 0 0 0      core

If orbitals differ in spin, a file has either five blocks that end with `0.0 0 0 0 0` (alpha-alpha, beta-beta,
alpha-beta, one-electron alpha and beta) and then the core energy (Molpro), or numbers of spin orbitals, odd ones
for alpha (NECI).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix
from outcore.chem.formats import trexio_file
from outcore.chem.words import integer, number, quoted

_READ = "read FCIDUMP"
_LIMIT_BYTES = 4 << 30
_HEADER_LINES = 200
_KEYS = ("NORB", "NELEC", "MS2", "ORBSYM", "ISYM", "IUHF", "UHF")
_BLOCKS = ("alpha-alpha", "beta-beta", "alpha-beta", "one-electron alpha", "one-electron beta")
_VALUE = "% .16e"
_UNITS = 4  # units of the last digit: rounding, as programs write integrals that had lost digits before
_SAMPLE = 4096  # lines that are looked at: at least one has all digits

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Dump:
    """The contents of a file.

    electrons: (alpha, beta). irrep: number of the state's irrep in the Hamiltonian. notes: assumptions that were
    made.
    """

    hamiltonian: Hamiltonian
    electrons: tuple[int, int]
    irrep: int
    notes: tuple[str, ...]


def read(path: str | Path) -> Dump:
    """Reads an FCIDUMP file, or a file of TREXIO.

    Raises OutcoreError if the file is missing, unreadable or larger than 4 GiB, and, with the number of the line,
    if it is damaged or complex, gives an integral twice with different values, or contradicts symmetry. Values
    differ if they do so by more than a few units of the last digit in the file. Smaller differences are averaged
    away, and a note gives the largest change."""
    if trexio_file.is_one(Path(path)):
        return _of_trexio(Path(path))
    return _Reader(Path(path)).read()


def _of_trexio(path: Path) -> Dump:
    """Reads a TREXIO file, without symmetry of its orbitals."""
    one, two, core, electrons = trexio_file.read_integrals(path)
    found = hamiltonians.make(one, two, core_energy=core)
    return Dump(found, electrons, 0, (f"{path.name}: TREXIO; symmetry is not used",))


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes: list[str] = []

    def read(self) -> Dump:
        self._text = self._lines()
        header, first = self._header(self._text)
        given = self._keys(header)
        n, electrons = self._integer(given, "NORB", None), self._integer(given, "NELEC", None)
        excess = self._integer(given, "MS2", 0)
        if n < 1 or electrons < 0 or (electrons + excess) % 2 or abs(excess) > electrons:
            raise self._refused(f"NORB={n}, NELEC={electrons}, MS2={excess} contradict each other")
        if n > 2 * hamiltonians.MAX_ORBITALS:  # spin orbitals of both spins
            raise self._refused(
                f"NORB={n}; there may be {hamiltonians.MAX_ORBITALS} orbitals", self._line_of("NORB")
            )
        values, indices, numbers = self._numbers(self._text, first)
        if indices.size and indices.max() > n:
            row = int(np.argmax(indices.max(1) > n))
            raise self._refused(f"orbital {indices[row].max()} of {n}", numbers[row])
        if not len(values) or not (~indices.any(1)).any():
            raise self._refused("it has no core energy, a line with the orbitals 0 0 0 0: is it cut short?")
        one: Matrix | tuple[Matrix, Matrix]
        two: Matrix | tuple[Matrix, Matrix, Matrix]
        unrestricted, ends = self._differ_in_spin(given), np.flatnonzero(~indices.any(1))
        spinorbitals = unrestricted and len(ends) < len(_BLOCKS)
        if spinorbitals:
            one, two, core = self._spinorbitals(values, indices, numbers, n)
            n //= 2
        elif unrestricted:
            one, two, core = self._blocks(values, indices, numbers, n, ends)
        else:
            one, two, core = self._part(values, indices, numbers, n, exchange=True)
        if (electrons + abs(excess)) // 2 > n:
            raise self._refused(f"{electrons} electrons with MS2={excess} are too many for {n} orbitals")
        pairs = (indices > 0).sum(1) // 2
        one_rounding, two_rounding = (self._rounding(values[pairs == k], numbers[pairs == k]) for k in (1, 2))
        self._roundings = one_rounding, two_rounding
        hamiltonian, irrep = self._symmetry(given, n, one, two, core, spinorbitals=spinorbitals)
        pair = (electrons + excess) // 2, (electrons - excess) // 2
        return Dump(hamiltonian, pair, irrep, tuple(self._notes))

    # ---- text ----

    def _lines(self) -> list[str]:
        try:
            return plain_file.read_bytes(self._path, _READ, _LIMIT_BYTES).decode("ascii").splitlines()
        except UnicodeDecodeError as error:
            raise self._refused(f"it is not a text file: {error}") from error

    def _header(self, lines: list[str]) -> tuple[str, int]:
        """The namelist without its marks, and the first line after it."""
        text = ""
        for row, line in enumerate(lines[:_HEADER_LINES]):
            content = line.split("!")[0].strip()
            if not text and content and not re.match(r"[&$]FCI\b", content, re.IGNORECASE):
                raise self._refused(f"it begins with {quoted(content)}, not with &FCI", row + 1)
            end = re.search(r"[&$]END\b|/|&\s*$|\$\s*$", content, re.IGNORECASE)
            text += (content[: end.start()] if end else content) + " "
            if end:
                if content[end.end() :].strip():
                    raise self._refused(
                        f"after the end of the header: {quoted(content[end.end() :])}", row + 1
                    )
                return re.sub(r"^\s*[&$]FCI\b", "", text, flags=re.IGNORECASE), row + 1
        raise self._refused("its header does not end with &END or /")

    def _keys(self, header: str) -> dict[str, list[str]]:
        pieces = re.split(r"([A-Za-z]\w*)\s*=", header)
        if pieces[0].strip(" ,"):
            raise self._refused(f"its header has {quoted(pieces[0].strip())} before the first NAME=")
        found: dict[str, list[str]] = {}
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
            key = name.upper()
            if key in found:
                raise self._refused(f"its header has {key} twice")
            found[key] = [
                word for each in re.split(r"[\s,]+", text) if each for word in self._repeated(key, each)
            ]
        if "TREL" in found and self._true(found, "TREL"):
            raise self._refused("its integrals are relativistic (TREL) and complex; take real ones")
        strange = [key for key in found if key not in _KEYS and key != "TREL"]
        if strange:
            self._notes.append(f"{self._path.name}: {', '.join(strange)} in the header has no effect")
        return found

    def _repeated(self, key: str, word: str) -> list[str]:
        """Fortran's 3*1 is 1,1,1."""
        times, star, value = word.partition("*")
        if not star:
            return [word]
        count = integer(times)
        if count is None or not 1 <= count <= 2 * hamiltonians.MAX_ORBITALS:
            raise self._refused(f"{key}={quoted(word)} in its header", self._line_of(key))
        return [value] * count

    def _integer(self, given: dict[str, list[str]], key: str, default: int | None) -> int:
        if key not in given:
            if default is None:
                raise self._refused(f"its header has no {key}")
            self._notes.append(f"{self._path.name}: no {key} in the header, taken to be {default}")
            return default
        value = integer(given[key][0]) if len(given[key]) == 1 else None
        if value is None:
            raise self._refused(
                f"{key}={quoted(','.join(given[key]))} in its header is no whole number of a sensible size",
                self._line_of(key),
            )
        return value

    def _true(self, given: dict[str, list[str]], key: str) -> bool:
        text = "".join(given[key]).upper().strip(".")
        if text in ("TRUE", "T", "1"):
            return True
        if text in ("FALSE", "F", "0"):
            return False
        raise self._refused(f"{key}={quoted(text)} in its header is neither true nor false")

    def _differ_in_spin(self, given: dict[str, list[str]]) -> bool:
        return any([self._true(given, key) for key in ("IUHF", "UHF") if key in given])

    # ---- numbers ----

    def _numbers(self, lines: list[str], first: int) -> tuple[Matrix, Indices, Indices]:
        """Values, their four indices, and the numbers of their lines."""
        rows = [(k + 1, words) for k, line in enumerate(lines[first:], first) if (words := line.split())]
        for k, words in rows:
            if len(words) != 5:
                self._complain(k, lines[k - 1])
        try:
            values = np.array([words[0].replace("D", "e").replace("d", "e") for _, words in rows], np.float64)
            indices = np.array([words[1:] for _, words in rows], np.int64).reshape(-1, 4)
            good = bool(np.isfinite(values).all() and (indices >= 0).all())
        except (ValueError, OverflowError):
            good = False
        if not good or any("_" in word for _, words in rows for word in words):
            for k, words in rows:
                if number(words[0]) is None or any(
                    (integer(each) or 0) < 0 or integer(each) is None for each in words[1:]
                ):
                    self._complain(k, lines[k - 1])
            raise self._refused("its numbers cannot be read")
        return values, indices, np.array([k for k, _ in rows], np.int64)

    def _complain(self, line: int, text: str) -> None:
        if "(" in text or len(text.split()) == 6:
            raise self._refused(f"{quoted(text.strip())} looks complex; take real orbitals", line)
        raise self._refused(f"{quoted(text.strip())} is not a value and four orbitals", line)

    def _part(
        self, values: Matrix, indices: Indices, numbers: Indices, n: int, *, exchange: bool
    ) -> tuple[Matrix, Matrix, float]:
        """One-electron and two-electron integrals and the core energy, from the lines of one block or of a whole
        file."""
        p, q, r, s = indices.T
        two_electron = (p > 0) & (q > 0) & (r > 0) & (s > 0)
        one_electron = (p > 0) & (q > 0) & (r == 0) & (s == 0)
        levels = (p > 0) & (q == 0) & (r == 0) & (s == 0)  # orbital energies, which some programs add
        core = (p == 0) & (q == 0) & (r == 0) & (s == 0)
        strange = ~(two_electron | one_electron | levels | core)
        if strange.any():
            row = int(np.argmax(strange))
            raise self._refused(f"orbitals {indices[row].tolist()} belong to no integral", numbers[row])
        one = self._filled((n, n), values, indices[:, :2] - 1, numbers, one_electron, [(1, 0)])
        partners = [(1, 0, 2, 3), (0, 1, 3, 2)] + ([(2, 3, 0, 1)] if exchange else [])
        two = self._filled((n,) * 4, values, indices - 1, numbers, two_electron, partners)
        found = values[core]
        if len(found) > 1 and self._differ(np.ptp(found), values[core], numbers[core]).any():
            raise self._refused(f"core energies {found[0]:.10g} and {found[-1]:.10g}", numbers[core][-1])
        return one, two, float(found[-1]) if len(found) else 0.0

    def _filled(
        self,
        shape: tuple[int, ...],
        values: Matrix,
        indices: Indices,
        numbers: Indices,
        chosen: NDArray[np.bool_],
        partners: Sequence[tuple[int, ...]],
    ) -> Matrix:
        """An array with the chosen values at their places and at all places that symmetry makes equal."""
        filled, values, indices, numbers = np.zeros(shape), values[chosen], indices[chosen], numbers[chosen]
        places = [indices]
        for axes in partners:
            places += [each[:, axes] for each in places]
        for each in places:
            filled[tuple(each.T)] = values
        off = max(
            (float(abs(filled[tuple(each.T)] - values).max(initial=0.0)) for each in places), default=0.0
        )
        if off > 0:
            self._average(filled, places, values, numbers, off)
        return filled

    def _average(
        self, filled: Matrix, places: list[Indices], values: Matrix, numbers: Indices, off: float
    ) -> None:
        """Sets each element to the mean of all values that lines give for it. Refuses values that differ by more
        than rounding."""
        for each in places:
            wrong = self._differ(abs(filled[tuple(each.T)] - values), values, numbers)
            if wrong.any():
                row = int(np.argmax(wrong))
                told = " ".join(str(int(k) + 1) for k in places[0][row])
                raise self._refused(
                    f"the integral {told} is {values[row]:.10g} here and {filled[tuple(each[row])]:.10g} "
                    "elsewhere, for the same orbitals or for orbitals that symmetry makes equal",
                    numbers[row],
                )
        total, times = np.zeros_like(filled), np.zeros_like(filled)
        for each in places:
            np.add.at(total, tuple(each.T), values)
            np.add.at(times, tuple(each.T), 1.0)
        np.divide(total, times, out=filled, where=times > 0)
        if off > hamiltonians.WORTH_TELLING:
            self._notes.append(
                f"{self._path.name}: integrals that are given more than once differ by up to {off:.1e} Eh and "
                "were averaged"
            )

    def _differ(self, differences: Any, values: Matrix, numbers: Indices) -> NDArray[np.bool_]:
        """Which differences are more than rounding."""
        return np.asarray(differences > hamiltonians.credible(self._rounding(values, numbers), values))

    def _rounding(self, values: Matrix, numbers: Indices) -> float:
        """The rounding error of values, from the digits in these lines (Hartree)."""
        some = numbers[:: max(1, len(numbers) // _SAMPLE)]
        words = [re.split("[eEdD]", self._text[k - 1].split()[0])[0] for k in some]
        digits = max((len(re.sub(r"\D", "", each).lstrip("0")) for each in words), default=1)
        largest = float(np.max(np.abs(values), initial=0.0)) or 1.0
        unit = 10.0 ** (np.floor(np.log10(largest)) + 1 - digits)
        return max(float(_UNITS * unit), hamiltonians.ROUNDING)

    def _blocks(
        self, values: Matrix, indices: Indices, numbers: Indices, n: int, ends: Indices
    ) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix, Matrix], float]:
        """Molpro's five blocks and the core energy."""
        found: list[tuple[Matrix, Matrix, float]] = []
        begin = 0
        for k, name in enumerate(_BLOCKS):
            block = slice(begin, int(ends[k]))
            electrons = (indices[block] > 0).sum(1) // 2
            wrong = electrons != (2 if k < 3 else 1)
            if wrong.any():
                raise self._refused(
                    f"in the block of {name} integrals", numbers[block][int(np.argmax(wrong))]
                )
            if abs(values[ends[k]]) > 0:
                raise self._refused(f"{values[ends[k]]} at the end of the block of {name}", numbers[ends[k]])
            found.append(self._part(values[block], indices[block], numbers[block], n, exchange=k != 2))
            begin = int(ends[k]) + 1
        rest = slice(begin, None)
        if begin == len(values):
            raise self._refused("it has no core energy after its last block: is it cut short?")
        core = self._part(values[rest], indices[rest], numbers[rest], n, exchange=True)
        if (indices[rest][:, 1:] > 0).any():
            raise self._refused("there are integrals after the last block", numbers[rest][0])
        return (found[3][0], found[4][0]), (found[0][1], found[2][1], found[1][1]), core[2]

    def _spinorbitals(
        self, values: Matrix, indices: Indices, numbers: Indices, n: int
    ) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix, Matrix], float]:
        if n % 2:
            raise self._refused(f"NORB={n} spin orbitals, which have to be as many alpha as beta")
        one, two, core = self._part(values, indices, numbers, n, exchange=True)
        a, b = slice(0, None, 2), slice(1, None, 2)
        mixed = max(abs(one[a, b]).max(), abs(two[a, b]).max(), abs(two[:, :, a, b]).max())
        if self._differ(mixed, values, numbers).any():
            raise self._refused(
                "it has integrals that mix the spins (odd orbitals are alpha, even ones beta)"
            )
        return (one[a, a], one[b, b]), (two[a, a, a, a], two[a, a, b, b], two[b, b, b, b]), core

    # ---- symmetry ----

    def _symmetry(
        self,
        given: dict[str, list[str]],
        n: int,
        one: Matrix | tuple[Matrix, Matrix],
        two: Matrix | tuple[Matrix, Matrix, Matrix],
        core: float,
        *,
        spinorbitals: bool,
    ) -> tuple[Hamiltonian, int]:
        labels = self._labels(given, 2 * n if spinorbitals else n)
        if spinorbitals and labels is not None:
            if (labels[::2] != labels[1::2]).any():
                raise self._refused("ORBSYM of alpha and beta orbitals differ")
            labels = labels[::2]
        state = self._integer(given, "ISYM", 1) if labels is not None else 1
        if labels is None:
            return self._made(one, two, core_energy=core), 0
        try:  # counted from 1
            if labels.min() < 1:
                raise self._refused("ORBSYM has a 0")
            groups = _groups(int(labels.max()))
            names = [str(each + 1) for each in range(groups)]
            found = self._made(one, two, core_energy=core, irreps=labels - 1, names=names)
        except OutcoreError as error:  # or from 0, as PySCF writes them
            if labels.max() > 7:
                raise
            names = [str(each) for each in range(_groups(int(labels.max()) + 1))]
            try:
                found = self._made(one, two, core_energy=core, irreps=labels, names=names)
            except OutcoreError:
                raise (
                    error if labels.min() else self._refused("ORBSYM does not fit the integrals")
                ) from error
            if state not in (0, 1):
                raise self._refused(
                    f"ORBSYM counts irreps from 0, and ISYM={state} may count from 0 or 1; make ORBSYM count from 1"
                ) from error
            self._notes.append(
                f"{self._path.name}: ORBSYM counts irreps from 0; ISYM={state} is taken as the first"
            )
            return found, 0
        if not 1 <= state <= found.groups:
            raise self._refused(f"ISYM={state}, but there are the irreps 1 to {found.groups}")
        return found, state - 1

    def _labels(self, given: dict[str, list[str]], count: int) -> Indices | None:
        if "ORBSYM" not in given:
            self._notes.append(f"{self._path.name}: no ORBSYM in the header, so no symmetry")
            return None
        words = [integer(each) for each in given["ORBSYM"]]
        labels = [each for each in words if each is not None]
        if len(labels) != len(words) or min(labels, default=0) < 0 or max(labels, default=0) > 8:
            raise self._refused(
                f"ORBSYM={quoted(','.join(given['ORBSYM']))}: irreps are 1 to 8", self._line_of("ORBSYM")
            )
        if len(labels) != count:
            raise self._refused(f"ORBSYM has {len(labels)} irreps for {count} orbitals")
        return np.array(labels, np.int64)

    def _made(self, one: object, two: object, **given: object) -> Hamiltonian:
        try:
            return hamiltonians.make(one, two, rounding=self._roundings, **given)  # type: ignore[arg-type]
        except OutcoreError as error:
            raise self._refused(error.detail) from error

    def _line_of(self, key: str) -> int | None:
        """The line of the header with this name."""
        for row, line in enumerate(self._text[:_HEADER_LINES]):
            if re.search(rf"\b{key}\s*=", line, re.IGNORECASE):
                return row + 1
        return None

    def _refused(self, detail: str, line: int | np.int64 | None = None) -> OutcoreError:
        where = "" if line is None else f"line {line}: "
        return OutcoreError(errno.EINVAL, _READ, path=self._path, detail=where + detail)


def _groups(labels: int) -> int:
    groups = 1
    while groups < labels:
        groups *= 2
    return groups


# ---- writing ----


def write(
    path: str | Path,
    hamiltonian: Hamiltonian,
    electrons: tuple[int, int],
    irrep: int = 0,
    *,
    least: float = 1e-15,
) -> None:
    """Writes the integrals in the caller's order of orbitals; irreps are counted from 1, in Cotton's order.
    Integrals over orbitals that differ in spin are written in Molpro's five blocks.

    electrons: (alpha, beta). irrep: of the state. least: smaller integrals are left out (Hartree).
    Raises OutcoreError; an existing file stays as it was then.
    """
    try:
        with plain_file.written(path) as file:
            _write(file, hamiltonian, electrons, irrep, least)
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "write FCIDUMP", path=path) from error


def _write(
    file: TextIO, hamiltonian: Hamiltonian, electrons: tuple[int, int], irrep: int, least: float
) -> None:
    order, n = hamiltonian.positions, hamiltonian.orbitals
    file.write(f"&FCI NORB={n},NELEC={sum(electrons)},MS2={electrons[0] - electrons[1]},\n")
    file.write(f" ORBSYM={','.join(str(each + 1) for each in hamiltonian.irreps[order])},\n")
    file.write(f" ISYM={irrep + 1},\n{' IUHF=1,' + chr(10) if hamiltonian.unrestricted else ''}&END\n")
    ones = [each[np.ix_(order, order)] for each in hamiltonian.ones]
    twos = [each[np.ix_(order, order, order, order)] for each in hamiltonian.twos]
    if hamiltonian.unrestricted:
        for two in (twos[0], twos[2], twos[1]):
            _write_two(file, two, least, exchange=two is not twos[1])
            file.write(f"{_VALUE % 0.0} 0 0 0 0\n")
        for one in ones:
            _write_one(file, one, least)
            file.write(f"{_VALUE % 0.0} 0 0 0 0\n")
    else:
        _write_two(file, twos[0], least, exchange=True)
        _write_one(file, ones[0], least)
    file.write(f"{_VALUE % hamiltonian.core_energy} 0 0 0 0\n")


def _write_two(file: TextIO, two: Matrix, least: float, *, exchange: bool) -> None:
    n = len(two)
    first, second = np.tril_indices(n)
    for pair, (p, q) in enumerate(zip(first, second, strict=True)):
        chosen = slice(0, pair + 1 if exchange else None)
        r, s = first[chosen], second[chosen]
        values = two[p, q, r, s]
        file.writelines(
            f"{_VALUE % values[k]} {p + 1} {q + 1} {r[k] + 1} {s[k] + 1}\n"
            for k in np.flatnonzero(abs(values) > least)
        )


def _write_one(file: TextIO, one: Matrix, least: float) -> None:
    for p, q in zip(*np.tril_indices(len(one)), strict=True):
        if abs(one[p, q]) > least:
            file.write(f"{_VALUE % one[p, q]} {p + 1} {q + 1} 0 0\n")
