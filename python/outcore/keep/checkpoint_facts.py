"""Facts of a checkpoint: the metadata of its small array, checked, since anybody may have written them.

Each array of a checkpoint is bound to it: the checkpoint lists its identity, shape, type and number of commits, and
the array's own manifest has the same. So an array of another name, generation or checkpoint is recognized.
src/keep/checkpoint_facts.hpp states the format.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcore.base.checked import FormatError, integer, item, mapping, text
from outcore.base.errors import OutcoreError
from outcore.job.arguments import DTYPES

KIND = "outcore checkpoint"
FORMAT = 2
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_KINDS = ("global", "disk", "numpy")
_MAX_RANK = 64  # of NumPy arrays


@dataclass(frozen=True)
class SavedArray:
    """An array of a checkpoint: kind and shape of the array that was saved, and facts of its file."""

    kind: str
    shape: tuple[int, ...]  # of the saved array
    file_shape: tuple[int, ...]
    dtype: str
    identity: str
    commits: int  # of the file

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "shape": list(self.shape),
            "file_shape": list(self.file_shape),
            "dtype": self.dtype,
            "identity": self.identity,
            "commits": self.commits,
        }


@dataclass(frozen=True)
class CheckpointFacts:
    generation: int  # 0: no checkpoint was completed
    arrays: dict[str, SavedArray]
    meta: Any

    def as_json(self) -> dict[str, Any]:
        arrays = {name: entry.as_json() for name, entry in self.arrays.items()}
        return {
            "kind": KIND,
            "format": FORMAT,
            "generation": self.generation,
            "arrays": arrays,
            "meta": self.meta,
        }


def identities(names: list[str], generation: int) -> dict[str, str]:
    """New identities for the arrays of a generation. No other checkpoint has them, nor a copy of this one that was
    saved again by another job."""
    number = secrets.token_hex(8)
    return {name: f"array {name} of generation {generation} of checkpoint {number}" for name in names}


def is_checkpoint(metadata: Any) -> bool:
    return isinstance(metadata, dict) and metadata.get("kind") == KIND


def facts_of(metadata: Any, path: str | os.PathLike[str]) -> CheckpointFacts:
    """The facts in the metadata of a checkpoint. Raises OutcoreError: EINVAL (no checkpoint), ENOTSUP (another
    format), EIO (damaged; the message names the field)."""
    if not is_checkpoint(metadata):
        raise OutcoreError(
            errno.EINVAL, "load checkpoint", path=path, detail="it is a disk array, no checkpoint"
        )
    found = metadata.get("format", 1)
    if found != FORMAT:
        raise OutcoreError(
            errno.ENOTSUP,
            "load checkpoint",
            path=path,
            detail=f"it is of format {found!r}; this program reads format {FORMAT}",
        )
    try:
        return _facts(metadata)
    except FormatError as error:
        raise OutcoreError(errno.EIO, "load checkpoint", path=path, detail=f"damaged: {error}") from error


def check_array(path: str | os.PathLike[str], name: str, entry: SavedArray, found: dict[str, Any]) -> None:
    """Checks an array against its entry in the checkpoint. `found`: identity, file_shape, dtype and commits of the
    array in the place of `name`. Raises OutcoreError (EIO), which names both, if it is another array."""
    differs = next((key for key, value in found.items() if value != getattr(entry, key)), None)
    if differs is None:
        return
    if differs == "identity":
        detail = f"it is {found['identity'] or 'an array of no checkpoint'}, not {entry.identity}"
    else:
        detail = f"its {differs} is {found[differs]}, that of {entry.identity} is {getattr(entry, differs)}"
    raise OutcoreError(errno.EIO, f"open array '{name}' of checkpoint", path=path, detail=detail)


def _facts(metadata: dict[str, Any]) -> CheckpointFacts:
    mapping(metadata, ("kind", "format", "generation", "arrays", "meta"), "checkpoint")
    arrays = item(metadata, "arrays", "checkpoint")
    if not isinstance(arrays, dict):
        raise FormatError("checkpoint.arrays is not an object")
    entries: dict[str, SavedArray] = {}
    for name, data in arrays.items():
        if not NAME.fullmatch(name):
            raise FormatError(f"checkpoint.arrays has {name[:99]!r}, which is no name")
        entries[name] = _entry(data, f"checkpoint.arrays.{name}")
    generation = integer(metadata, "generation", "checkpoint")
    return CheckpointFacts(generation, entries, item(metadata, "meta", "checkpoint"))


def _entry(data: Any, where: str) -> SavedArray:
    mapping(data, ("kind", "shape", "file_shape", "dtype", "identity", "commits"), where)
    kind, dtype = text(data, "kind", where), text(data, "dtype", where)
    if kind not in _KINDS:
        raise FormatError(f"{where}.kind is unknown: {kind[:99]!r}")
    if dtype not in [each.name for each in DTYPES]:
        raise FormatError(f"{where}.dtype is unknown: {dtype[:99]!r}")
    shape, file_shape = _shape(data, "shape", where), _shape(data, "file_shape", where)
    # The file has the shape of the saved array. An array without elements or axes is kept as one element.
    if file_shape != (shape if shape and 0 not in shape else (1,)):
        raise FormatError(f"{where}.file_shape {file_shape} does not fit shape {shape}")
    identity = text(data, "identity", where)
    return SavedArray(kind, shape, file_shape, dtype, identity, integer(data, "commits", where, least=1))


def _shape(data: Any, key: str, where: str) -> tuple[int, ...]:
    value = item(data, key, where)
    if not isinstance(value, list) or len(value) > _MAX_RANK:
        raise FormatError(f"{where}.{key} is no shape")
    if any(type(n) is not int or not 0 <= n < 2**63 for n in value):
        raise FormatError(f"{where}.{key} holds something else than whole numbers of at least 0")
    return tuple(value)


def hold(place: Path) -> int:
    """A descriptor of the directory of a generation: while it is open, jobs that save a new checkpoint do not
    remove that directory.

    Raises OutcoreError: ESTALE (it was or is being removed, because a new checkpoint was saved), EINVAL (no
    directory).
    """
    stale = OutcoreError(errno.ESTALE, "read checkpoint", path=place, detail="it has been replaced")
    try:
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise stale from None
    except NotADirectoryError as error:
        raise OutcoreError(
            errno.EINVAL, "read checkpoint", path=place, detail="no directory; no symbolic link is followed"
        ) from error
    try:
        with suppress(OSError):  # a file system without locks cannot help
            fcntl.flock(held, fcntl.LOCK_SH)
        if os.path.samestat(os.fstat(held), os.stat(place, follow_symlinks=False)):
            return held
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    raise stale
