"""Start vectors of the user: singles that roots begin with and follow; and files of them, from which another run
follows the states of this one."""

from __future__ import annotations

import errno
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem.cc.excited.settings import METHOD

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.excited.vectors import StateEquations
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.excited.states import States

Values = np.ndarray[Any, np.dtype[Any]]

SUFFIX = ".npz"
_NOT_OURS = (
    ArithmeticError, LookupError, ValueError, TypeError, OSError, EOFError, MemoryError, NotImplementedError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_READ, _WRITE = "read states to follow", "write states to follow"
_FORMAT = 2
_MAX_BYTES = 1 << 30
_LEAST = 0.5  # norm of a start vector in what it may excite
_SAME = "basis", "cartesian", "ECP", "nuclear charges", "charge", "spin", "electrons"


def normed(
    spins: Sequence[CorrelatedOrbitals], equations: StateEquations, given: Sequence[Any]
) -> list[Values]:
    """Start vectors as singles of `equations`, of unit norm. given: in the form of `StateSettings.guess`. Raises
    OutcoreError (EINVAL)."""
    shape, mask, found = equations.diagonal().shape, equations.mask(), list[Values]()
    blocks = equations.excitations(np.zeros(shape))
    for number, each in enumerate(given, 1):
        parts = _arrays(each, len(blocks))
        shapes, wanted = [part.shape for part in parts], [values.shape for *_, values in blocks]
        if shapes != wanted:
            raise _wrong(f"start vector {number} has the shape {_words(shapes)}, not {_words(wanted)}")
        turned = [
            _turned(spins, part, inside=i, outside=a, back=True)
            for (a, i, _), part in zip(blocks, parts, strict=True)
        ]
        values = np.concatenate([part.ravel() for part in turned]).reshape(shape)
        whole = float(np.linalg.norm(values))
        values = values if mask is None else values * mask
        norm = float(np.linalg.norm(values))
        if not np.isfinite(norm) or not norm:
            raise _wrong(f"start vector {number} is of no state: its norm is {norm:g}")
        if norm < _LEAST * whole:
            raise _wrong(
                f"start vector {number} has {norm / whole:.2g} of its norm in excitations of the core"
            )
        found.append(values / norm)
    if np.linalg.matrix_rank(np.array([each.ravel() for each in found]), tol=1e-6) < len(found):
        raise _wrong("start vectors depend on each other")
    return found


def of_singles(spins: Sequence[CorrelatedOrbitals], equations: StateEquations, singles: Values) -> Any:
    """Singles of `equations` in the form of `StateSettings.guess`."""
    found = tuple(
        _turned(spins, values, inside=i, outside=a).copy() for a, i, values in equations.excitations(singles)
    )
    return found if len(found) > 1 else found[0]


def mark(follows: Sequence[Values]) -> list[Any]:
    """What a checkpoint keeps of start vectors. Rounded: another number of threads may change last bits."""
    return [np.round(each, 8).tolist() for each in follows]


def _arrays(given: Any, count: int) -> list[Values]:
    """The parts of a start vector, one for each spin or pair of spins."""
    try:
        parts = [np.asarray(each) for each in (given if count > 1 else [given])]
        if any(np.iscomplexobj(each) for each in parts):
            raise _wrong("a start vector is complex; orbitals are real")
        return [each.astype(float) for each in parts]
    except (TypeError, ValueError) as error:
        raise _wrong(f"a start vector consists of no {count} array{'s' * (count > 1)} of numbers") from error


def _words(shapes: Sequence[tuple[int, ...]]) -> str:
    return " and ".join(map(str, shapes))


def _turned(
    spins: Sequence[CorrelatedOrbitals],
    values: Values,
    *,
    inside: int | None,
    outside: int | None,
    back: bool = False,
) -> Values:
    """Singles [i,a], [i] or [a] of the present orbitals as those of the orbitals of the reference; back: the other
    way. inside, outside: spins of occupied and virtual orbitals."""
    axes = [(spin, box) for spin, box in ((inside, 0), (outside, 1)) if spin is not None]
    for axis, (spin, box) in enumerate(axes):
        by, place = spins[spin].turned, spins[spin].boxes()[box]
        if by is not None:
            by = by[place, place].T if back else by[place, place]
            values = np.moveaxis(np.tensordot(by, values, ([1], [axis])), 0, axis)
    return values


# ---- files ----


def save(path: Path, of: CCSD, states: States) -> None:
    """Writes singles of all states with their orbitals, in place of an older file. Not collective. Raises
    OutcoreError."""
    found: dict[str, Any] = {
        "format": _FORMAT,
        "kind": states.kind_name,
        "problem": json.dumps(_problem(of.mol)),
        "energies": states.energies,
    }
    for spin, (orbitals, each) in enumerate(zip(_orbitals(of), of.spins, strict=True)):
        found |= {f"orbitals{spin}": orbitals, f"occupied{spin}": each.occupied}
    for root, vector in enumerate(states.start_vectors()):
        for part, values in enumerate(vector if isinstance(vector, tuple) else (vector,)):
            found[f"root{root}.{part}"] = values
    with plain_file.replaced(path, _WRITE) as new, new.open("wb") as file:
        np.savez(file, **found)


def check(path: Path, mol: Any, kind: str, count: int) -> None:
    """Raises the errors of `load` that do not depend on orbitals. Not collective."""
    _read(path, mol, kind, count)


def load(path: Path, of: CCSD, kind: str, count: int) -> list[Any]:
    """The first `count` states of a file as start vectors of the present orbitals, which may differ from those of
    the file: nuclei may have moved, other orbitals may be frozen. Not collective.

    Raises OutcoreError: the errors of reading a file; EINVAL (no file of states, states of another kind or of other
    basis functions, fewer states, or states that the present orbitals do not have)."""
    found = _read(path, of.mol, kind, count)
    with _no_file_of_states(path):
        return _vectors(path, found, of, kind, count)


@contextmanager
def _no_file_of_states(path: Path) -> Iterator[None]:
    try:
        yield
    except OutcoreError:
        raise
    except _NOT_OURS as error:
        raise _refused(path, f"it is no file of `outcore eom --save-states` ({error})") from error


def _read(path: Path, mol: Any, kind: str, count: int) -> dict[str, Any]:
    """The contents of a file that has `count` states of this kind and molecule."""
    from outcore.chem.cc.equations.excited import kinds

    content = io.BytesIO(plain_file.read_bytes(path, _READ, _MAX_BYTES))
    with _no_file_of_states(path):
        with np.load(content, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        if int(found["format"]) != _FORMAT:
            raise _refused(path, f"its format is {int(found['format'])}, not {_FORMAT}")
        if (theirs := str(found["kind"])) != kind:
            titles = kinds.of(theirs).title, kinds.of(kind).title  # KeyError: no kind of ours
            raise _refused(path, f"its states are those of {titles[0]}, not of {titles[1]}")
        before, now = json.loads(str(found["problem"])), _problem(mol)
        if others := [name for name in now if before.get(name) != now[name]]:
            raise _refused(path, f"its states are of another molecule or basis: {', '.join(others)}")
        there = len(found["energies"])
        if count > there:
            raise _refused(path, f"it has {there} states, fewer than {count}")
    return found


def _vectors(path: Path, found: dict[str, Any], of: CCSD, kind: str, count: int) -> list[Any]:
    between = []  # <present orbitals | those of the file>, of occupied and of virtual ones of each spin
    for spin, (orbitals, each) in enumerate(zip(_orbitals(of), of.spins, strict=True)):
        before, o = found[f"orbitals{spin}"], int(found[f"occupied{spin}"])
        overlap = orbitals.T @ of.reference.overlap @ before
        between.append((overlap[: each.occupied, :o], overlap[each.occupied :, o:]))
    vectors = []
    for root in range(count):
        parts = list[Values]()
        while f"root{root}.{len(parts)}" in found:
            parts.append(found[f"root{root}.{len(parts)}"])
        mine = _projected(parts, kind, between)
        norm, whole = (np.sqrt(sum(float(np.vdot(x, x)) for x in every)) for every in (mine, parts))
        if not np.isfinite(whole) or not norm >= _LEAST * whole > 0.0:
            detail = f"state {root + 1} has a norm of {norm / whole:.2g} in the present orbitals"
            raise _refused(path, f"{detail}, which are not like those of the file")
        vectors.append(tuple(mine) if len(mine) > 1 else mine[0])
    return vectors


def _projected(parts: Sequence[Values], kind: str, between: Sequence[tuple[Values, Values]]) -> list[Values]:
    """Singles of a state of the file in the present orbitals."""
    from outcore.chem.cc.equations.excited import kinds
    from outcore.chem.cc.equations.excited.open_blocks import NONE

    blocks = kinds.of(kind).blocks
    closed = {"ip": (NONE, 0), "ea": (0, NONE)}.get(kind, (0, 0))
    found = []
    for (a, i), values in zip((closed,) if blocks is None else blocks.singles, parts, strict=True):
        mine = values
        axes = [(i, 0), (a, 1)]
        for axis, by in enumerate([between[spin][box] for spin, box in axes if spin != NONE]):
            mine = np.moveaxis(np.tensordot(by, mine, ([1], [axis])), 0, axis)
        found.append(mine)
    return found


def _problem(mol: Any) -> dict[str, Any]:
    """What must be the same for states to be followed, as JSON has it: everything but the places of nuclei."""
    settings = problem.molecule(mol)
    found: dict[str, Any] = json.loads(
        json.dumps({name: settings[name] for name in _SAME}, default=lambda each: each.tolist())
    )
    return found


def _orbitals(of: CCSD) -> list[Values]:
    found = of.active_orbitals
    return [found] if of.restricted else list(found)


def _wrong(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, METHOD, detail=detail)


def _refused(path: Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _READ, path=path, detail=detail)
