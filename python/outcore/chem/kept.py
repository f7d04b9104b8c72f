"""Two-electron integrals that stay on disk after a run, for the same problem again.

    DIRECTORY/integrals                 a checkpoint: the problem, what was kept, and where each record lies
    DIRECTORY/integrals-<run>.<rank>    the records

The checkpoint is written last: records without one are of a run that was killed, and are removed by the next that
keeps its integrals there. A directory belongs to one job at a time. Integrals of another problem, or kept
otherwise, are refused, never reused and never overwritten.
"""

from __future__ import annotations

import errno
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import checkpoint
from outcore.chem.molecule import problem, same_problem
from outcore.chem.plan import Rule
from outcore.errors import OutcoreError
from outcore.plain_file import sync_directory
from outcore.world import World

if TYPE_CHECKING:
    from pyscf.gto import Mole

FORMAT = 2  # of records, and which integrals are in them
_WHAT = "two-electron integrals"
_RECORDS = re.compile(r"integrals-[0-9a-f]+\.[0-9]+")

Files = list[tuple[str, bytes]]  # names and indices, as `_core.TwoElectron.commit` gives them
Facts = dict[str, Any]  # what else than the problem must be the same, as JSON holds it


@dataclass(frozen=True)
class Kept:
    """What is kept: which integrals, and the files with them."""

    rule: Rule
    files: Files


def new_name() -> str:
    """Of the records of a run; each process adds its rank."""
    return f"integrals-{secrets.token_hex(6)}"


def find(directory: str, mol: Mole, facts: Facts) -> Kept | None:
    """What is kept in `directory`; None if there is nothing. Not collective. Raises OutcoreError: EINVAL (of
    another problem, or kept otherwise), EIO (damaged)."""
    name = Path(directory) / "integrals"
    with World("self") as world:
        try:
            saved = checkpoint.load(world, name)
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None  # also where a run was killed before it had kept them
        return _found(saved, name, mol, facts)


def _found(saved: checkpoint.Checkpoint, name: Path, mol: Mole, facts: Facts) -> Kept:
    with saved:
        meta = saved.meta
        if not isinstance(meta, dict) or meta.get("what") != _WHAT:
            raise OutcoreError(
                errno.EINVAL, "reuse kept integrals", path=name, detail="it holds no integrals"
            )
        _check(saved, name)
        if not same_problem(saved["problem"], problem(mol)):
            raise OutcoreError(
                errno.EINVAL,
                "reuse kept integrals",
                path=name,
                detail="they are of another geometry, charge, spin or basis; give another directory or remove it",
            )
        for key, value in facts.items():
            if meta["facts"].get(key) != value:
                raise OutcoreError(
                    errno.EINVAL,
                    "reuse kept integrals",
                    path=name,
                    detail=f"they were kept with {key} = {meta['facts'].get(key)}, now it is {value}; "
                    "give another directory or remove it",
                )
        rule = Rule(everything=True)
        if meta["least"] is not None:
            rule = Rule(True, saved["factors"], saved["worth"], meta["first_exponent"], meta["least"])
        files = [(each, saved[f"index.{n}"].tobytes()) for n, each in enumerate(meta["files"])]
    return Kept(rule, files)


def _check(saved: checkpoint.Checkpoint, name: Path) -> None:
    """What the checkpoint says of itself can be used. Names lead to files of this directory alone."""
    meta = saved.meta
    files, least, first = (meta.get(key) for key in ("files", "least", "first_exponent"))
    arrays = ["problem", *([] if least is None else ["factors", "worth"])]
    names = isinstance(files, list) and all(
        isinstance(each, str) and _RECORDS.fullmatch(each) for each in files
    )
    if names:
        arrays += [f"index.{n}" for n in range(len(files))]
    missing = [each for each in arrays if each not in saved]
    wrong = (
        (not names, f"files are {str(files)[:99]}"),
        (bool(missing), f"it lacks {', '.join(missing)}"),
        (not isinstance(meta.get("facts"), dict), "it lacks the facts"),
        (least is not None and not isinstance(least, int | float), "least is no number"),
        (first is not None and not isinstance(first, int), "first_exponent is no whole number"),
    )
    for is_wrong, detail in wrong:
        if is_wrong:
            raise OutcoreError(
                errno.EIO, "reuse kept integrals", path=name, detail=f"damaged or written wrongly: {detail}"
            )


def save(directory: str, mol: Mole, facts: Facts, kept: Kept) -> None:
    """Makes what was kept known to later runs, and removes records that no run knows. Not collective."""
    rule = kept.rule
    arrays: dict[str, Any] = {"problem": problem(mol)}
    if rule.factors is not None and rule.worth is not None:
        arrays |= {"factors": rule.factors, "worth": rule.worth}
    for n, (_, index) in enumerate(kept.files):
        arrays[f"index.{n}"] = np.frombuffer(index, np.uint8)
    names = [name for name, _ in kept.files]
    meta = {
        "what": _WHAT,
        "facts": facts,
        "least": None if rule.factors is None else rule.least,
        "first_exponent": rule.first_exponent,
        "files": names,
    }
    sync_directory(directory)  # the names of the records
    with World("self") as world:
        checkpoint.save(world, Path(directory) / "integrals", arrays, meta)
    for path in Path(directory).iterdir():
        if _RECORDS.fullmatch(path.name) and path.name not in names:
            path.unlink()
