"""Two-electron integrals that stay on disk after a run, for another run of the same problem.

    DIRECTORY/integrals                 a checkpoint: the problem, what was kept, and where each record lies
    DIRECTORY/integrals-<run>.<rank>    the records

The checkpoint is written last: records without one belong to a run that was killed, and the next run that keeps its
integrals there removes them. A directory belongs to one job at a time. Integrals of another problem, or with other
settings, are refused with the difference; they are never reused and never overwritten. A fingerprint protects the
contents of the checkpoint, and values that could lead to other files or take much memory are checked.
"""

from __future__ import annotations

import errno
import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.plain_file import sync_directory
from outcore.chem.hf.accuracy import Finer
from outcore.chem.hf.plan import Rule
from outcore.chem.problem import digest
from outcore.keep import stages
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from outcore.keep.checkpoint import Checkpoint

T = TypeVar("T")

WHAT = "two-electron integrals"
_REUSE = "reuse kept integrals"
FORMAT = 3  # of records, of their index, and of the choice of integrals in them; others are refused
_RECORDS = re.compile(r"integrals-[0-9a-f]+\.[0-9]+")
_PAGE = 4096  # bytes; a record has at least one page
_INDEX_BYTES = 128  # more than the bytes of a record or a range of slabs in an index
_MAX_RECORD = 1 << 30  # bytes
_MAX_WORTH = 4096  # most powers of two of a bound

Files = list[tuple[str, bytes]]  # names and indices, as `_core.TwoElectron.commit` returns them


@dataclass(frozen=True)
class Kept:
    """Kept integrals: the rule that has chosen them, and their files."""

    rule: Rule
    files: Files
    finer: Finer | None = None  # the basis of their steps in addition to crude densities


def new_name() -> str:
    """A name for the records of a run; each process adds its rank."""
    return f"integrals-{secrets.token_hex(6)}"


def find(
    directory: str, problem: Problem, screening: dict[str, int], finer: Finer | None = None
) -> Kept | None:
    """The integrals kept in `directory`; None if there are none. screening: numbers by name that describe the
    lists of the present problem to which records refer. finer: the result of `find_finer`. Not collective. Raises
    OutcoreError: EINVAL (another problem, or other settings), ENOTSUP (another format), EIO (damaged)."""
    return _of_saved(directory, problem, lambda saved, name: _found(saved, name, screening, finer))


def find_finer(directory: str, problem: Problem, functions: int) -> Finer | None:
    """The basis of finer steps of the integrals kept in `directory`; None: they have none, or no integrals are
    kept. `find` checks whether it belongs to the integrals. Not collective. Raises OutcoreError as `find`."""
    return _of_saved(directory, problem, lambda saved, name: _finer(saved, name, functions))


def _of_saved(directory: str, problem: Problem, take: Callable[[Checkpoint, Path], T | None]) -> T | None:
    """The result of `take` for the checkpoint; None if there is none, also because a run was killed before it wrote
    one."""
    name = Path(directory) / "integrals"
    with ExitStack() as inside:
        try:
            saved = inside.enter_context(stages.opened(name, problem, _REUSE))
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None
        return take(saved, name)


def _finer(saved: Checkpoint, name: Path, functions: int) -> Finer | None:
    factor = saved.meta.get("finer")
    if factor is None:
        return None
    shape, dtype = saved.form("densities") if "densities" in saved else ((), "nothing")
    if type(factor) is not float or not 0 < factor <= 1:
        raise _damaged(name, f"finer is {str(factor)[:99]}")
    if shape not in ((1, functions, functions), (2, functions, functions)) or dtype != "float64":
        raise _damaged(name, f"densities are {dtype} of shape {shape}, of {functions} functions")
    densities = saved["densities"]
    if not np.isfinite(densities).all():
        raise _damaged(name, "densities are not finite")
    return Finer(densities, factor)


def _found(saved: Checkpoint, name: Path, screening: dict[str, int], finer: Finer | None) -> Kept:
    meta = saved.meta
    _check_screening(meta, screening, name)
    _check(saved, screening, name)
    rule = Rule(everything=True)
    if meta["least"] is not None:
        rule = Rule(True, saved["factors"], saved["worth"], meta["first_exponent"], meta["least"])
    files = [(each, saved[f"index.{n}"].tobytes()) for n, each in enumerate(meta["files"])]
    kept = Kept(rule, files, finer)
    if meta.get("seal") != _seal(meta["fingerprint"], kept):
        raise _damaged(name, "its index is not the one that was kept with these settings")
    return kept


def _damaged(name: Path, detail: str) -> OutcoreError:
    return stages.damaged(_REUSE, name, detail)


def _seal(fingerprint: str, kept: Kept) -> str:
    """A digest of all data by which records are read."""
    rule = kept.rule
    numbers = [] if rule.factors is None else [rule.factors, rule.worth, [rule.first_exponent, rule.least]]
    words = [fingerprint, *(name for name, _ in kept.files)]
    indices = [np.frombuffer(index, np.uint8) for _, index in kept.files]
    if kept.finer is not None:
        numbers += [kept.finer.densities, [kept.finer.factor]]
    return digest(np.frombuffer("\n".join(words).encode(), np.uint8), *numbers, *indices)


def _check_screening(meta: dict[str, Any], screening: dict[str, int], name: Path) -> None:
    """Refuses integrals whose list of tasks differs. Records name tasks by number, and bounds computed on another
    machine may give another list."""
    found = meta.get("screening")
    if found != screening:
        detail = (
            f"they were screened on another machine, with {str(found)[:99]}, here {screening}; "
            "give another directory or remove it"
        )
        raise OutcoreError(errno.EINVAL, _REUSE, path=name, detail=detail)


def _check(saved: Checkpoint, screening: dict[str, int], name: Path) -> None:
    """Checks that the contents of a checkpoint are safe to use: names lead to files of this directory only, and
    arrays are no larger than records allow."""
    meta = saved.meta
    files, least, first = (meta.get(key) for key in ("files", "least", "first_exponent"))
    names = isinstance(files, list) and all(
        isinstance(each, str) and _RECORDS.fullmatch(each) for each in files
    )
    if not names or len(set(files)) != len(files):
        raise _damaged(name, f"files are {str(files)[:99]}")
    if type(first) is not int or abs(first) >= 1 << 15:
        raise _damaged(name, f"first_exponent is {str(first)[:99]}")
    if least is not None and (type(least) not in (int, float) or not math.isfinite(least)):
        raise _damaged(name, f"least is {str(least)[:99]}")
    most = {} if least is None else {"factors": screening["pairs of kinds"], "worth": _MAX_WORTH}
    for n, each in enumerate(files):
        path = name.parent / each
        records = (path.stat().st_size if path.exists() else 0) // _PAGE + 1
        most[f"index.{n}"] = _INDEX_BYTES * (records + screening["tasks"] + 1)
    for key, count in most.items():
        if key not in saved:
            raise _damaged(name, f"it lacks {key}")
        shape, dtype = saved.form(key)
        if (
            len(shape) != 1
            or shape[0] > count
            or dtype != ("uint8" if key.startswith("index.") else "float64")
        ):
            raise _damaged(name, f"{key} is {dtype} of shape {shape}; at most {count} were expected")


def is_kept(meta: Any) -> bool:
    """Whether these are facts of a checkpoint of kept integrals."""
    return isinstance(meta, dict) and meta.get("what") == WHAT


def verify(name: Path, saved: Mapping[str, Any], meta: dict[str, Any]) -> Iterator[str]:
    """Yields messages about damaged records of the checkpoint `name` with these arrays and facts. Not collective.
    Raises OutcoreError (EIO) if the facts are not usable."""
    files, settings = meta.get("files"), meta.get("settings")
    record_bytes = settings.get("record") if isinstance(settings, dict) else None
    if (
        type(record_bytes) is not int
        or not _PAGE <= record_bytes <= _MAX_RECORD
        or not isinstance(files, list)
    ):
        raise _damaged(name, f"files are {str(files)[:99]}, records of {str(record_bytes)[:99]} bytes")
    for n, each in enumerate(files):
        if not isinstance(each, str) or not _RECORDS.fullmatch(each) or f"index.{n}" not in saved:
            raise _damaged(name, f"files are {str(files)[:99]}")
        path = name.parent / each
        try:
            yield from _core.damaged_integral_records(saved[f"index.{n}"].tobytes(), record_bytes, str(path))
        except OutcoreError as error:
            yield str(error)


def save(directory: str, problem: Problem, screening: dict[str, int], kept: Kept) -> None:
    """Writes the checkpoint for later runs, and removes records that belong to no checkpoint. Not collective."""
    rule = kept.rule
    arrays: dict[str, Any] = {}
    if rule.factors is not None and rule.worth is not None:
        arrays |= {"factors": rule.factors, "worth": rule.worth}
    for n, (_, index) in enumerate(kept.files):
        arrays[f"index.{n}"] = np.frombuffer(index, np.uint8)
    if kept.finer is not None:
        arrays["densities"] = kept.finer.densities
    names = [name for name, _ in kept.files]
    record = problem.as_json()
    facts = {
        "screening": screening,
        "least": None if rule.factors is None else rule.least,
        "first_exponent": rule.first_exponent,
        "files": names,
        "finer": None if kept.finer is None else kept.finer.factor,
        "seal": _seal(record["fingerprint"], kept),
    }
    sync_directory(directory)  # the names of the records
    stages.save(Path(directory) / "integrals", record, arrays, facts)
    for path in Path(directory).iterdir():
        if _RECORDS.fullmatch(path.name) and path.name not in names:
            path.unlink()
