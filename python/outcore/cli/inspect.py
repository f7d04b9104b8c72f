"""`outcore inspect` and `outcore verify`: the contents of an array, a checkpoint or a directory of a method, and
whether they are undamaged."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore import _core
from outcore.arrays import codecs
from outcore.base.checked import FormatError
from outcore.base.errors import OutcoreError
from outcore.base.metadata import parse, parsed
from outcore.chem.hf import kept
from outcore.job.world import World
from outcore.keep import checkpoint
from outcore.keep.checkpoint_facts import CheckpointFacts, check_array, facts_of, hold, is_checkpoint

FACTS = ("shape", "dtype", "chunk", "chunks", "components", "placement", "codec", "generation", "identity")
_CONTAINED = 2  # names at the end of the path of an array of a checkpoint, which must not be links


def inspect(
    path: Annotated[
        Path, typer.Argument(help="directory of a disk array, of a checkpoint, or that a method has kept")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="for programs")] = False,
) -> None:
    """Print what a persistent array, a checkpoint or a directory of --checkpoint or --keep-integrals holds."""
    parts = _parts(path)
    facts = (
        {
            "path": str(path),
            "kind": "kept by a method",
            "parts": {str(each.relative_to(path)): _facts(each) for each in parts},
        }
        if parts
        else _facts(path)
    )
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    print("\n".join(_lines(facts)))


def verify(
    path: Annotated[
        Path, typer.Argument(help="directory of a disk array, of a checkpoint, or that a method has kept")
    ],
) -> int:
    """Read all data on this node, check every checksum and name damaged parts. Exit status 1 if there are any."""
    damage: list[str] = []
    arrays = elsewhere = 0
    codecs.find_all()
    for part in _parts(path) or [path]:
        if part != path and not (part / "manifest").exists():
            damage.append(
                f"{part}: there is no manifest"
            )  # perhaps a run was ended before it had written all
            continue
        for array in _arrays(part, damage):
            arrays += 1
            try:
                found, not_here = _core.verify_array(str(array), 0 if array == part else _CONTAINED)
            except OutcoreError as error:
                if array == path:
                    raise
                damage.append(str(error))
                continue
            damage += found
            elsewhere += not_here
        damage += _records(part)
    for line in damage:
        print(f"damaged: {line}")
    whole = f"{len(damage)} damaged places" if damage else "all whole"
    others = (
        f"; {elsewhere} parts are not here, but on disks of other nodes: not checked" if elsewhere else ""
    )
    print(f"{path}: {arrays} arrays, {whole}{others}")
    return 1 if damage else 0


def _parts(path: Path) -> list[Path]:
    """The arrays and checkpoints in a directory of a method, also those that lack a manifest, and in its folders
    for states of one irrep and spin. Empty if `path` is an array or a checkpoint itself."""
    if (path / "manifest").exists() or not path.is_dir():
        return []
    names = ("manifest", "component.*", "table.*")
    folders = sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink())
    found = []
    for each in folders:
        is_one = any(True for name in names for _ in each.glob(name))
        if is_one:
            found.append(each)
        elif each.name.startswith("irrep-"):
            found += _parts(each)
    return found


def _records(path: Path) -> list[str]:
    """Damage of the records of kept integrals, if the checkpoint is one of integrals."""
    try:
        metadata = parsed(_core.array_facts(str(path))[1] or b"null")
        if not is_checkpoint(metadata) or not kept.is_kept(facts_of(metadata, path).meta):
            return []
        with World("self") as world, checkpoint.load(world, path) as saved:
            return list(kept.verify(path, saved, saved.meta))
    except (FormatError, OutcoreError) as error:
        return [str(error)] if isinstance(error, OutcoreError) and error.errno != errno.ENOENT else []


def _facts(path: Path, contained: int = 0) -> dict[str, Any]:
    facts, text = _core.array_facts(str(path), contained)
    metadata = parse(text, path)
    if contained or not is_checkpoint(metadata):
        return {"path": str(path), "kind": "disk array", **facts, "metadata": metadata}
    with _held(path, facts_of(metadata, path)) as about:
        place = path / f"arrays.{about.generation}"
        return {
            "path": str(path),
            "kind": "checkpoint",
            "generation": about.generation,
            "meta": about.meta,
            "arrays": {
                name: {**_facts(place / name, _CONTAINED), "saved from": entry.kind}
                for name, entry in about.arrays.items()
            },
        }


@contextmanager
def _held(path: Path, about: CheckpointFacts) -> Iterator[CheckpointFacts]:
    """The facts of a checkpoint, `about` or those of a later generation. Inside the block the generation is held,
    so that a job which saves a new one does not remove it."""
    held = None
    while held is None:
        try:
            held = hold(path / f"arrays.{about.generation}")
        except OutcoreError:  # replaced, or damaged; reading it finds the damage
            latest = facts_of(parsed(_core.array_facts(str(path))[1]), path)
            if latest.generation == about.generation:
                break
            about = latest
    try:
        yield about
    finally:
        if held is not None:
            os.close(held)


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['kind']} {facts['path']}"
    if "parts" in facts:
        for name, part in facts["parts"].items():
            about = part.get("meta", part.get("metadata"))
            what = about.get("what", "") if isinstance(about, dict) else ""
            shape = f"{part['dtype']} {part['shape']}" if "shape" in part else ", ".join(part["arrays"])
            yield f"  {name}: {part['kind']}{f' of {what}' if what else ''} ({shape})"
        return
    if facts["kind"] == "checkpoint":
        yield f"  generation  {facts['generation']}"
        yield f"  meta        {json.dumps(facts['meta'])}"
        for name, array in facts["arrays"].items():
            yield f"  {name}: {array['dtype']} {array['shape']}, chunks {array['chunk']}, codec {array['codec']}"
        return
    for name in FACTS:
        yield f"  {name:<10}  {facts[name]}"
    if facts["metadata"] is not None:
        yield f"  metadata    {json.dumps(facts['metadata'])}"


def _arrays(path: Path, damage: list[str]) -> Iterator[Path]:
    """The array; for a checkpoint, its main array and all arrays that belong to it."""
    yield path
    try:
        text = _core.array_facts(str(path))[1]
    except OutcoreError as error:
        if error.errno == errno.ENOENT:
            raise
        return  # reading it finds the damage
    try:
        metadata = parsed(text or b"null")
    except FormatError:
        return  # a disk array may hold whatever its program likes
    if not is_checkpoint(metadata):
        return
    try:
        about = facts_of(metadata, path)
    except OutcoreError as error:
        damage.append(str(error))
        return
    with _held(path, about) as held:
        for name in held.arrays:
            yield from _array_of(path, held, name, damage)


def _array_of(path: Path, about: CheckpointFacts, name: str, damage: list[str]) -> Iterator[Path]:
    """The path of an array of a checkpoint, if it exists and is the one that was saved; else adds to `damage`."""
    array = path / f"arrays.{about.generation}" / name
    if not array.is_dir():
        damage.append(f"{array}: missing")
        return
    try:
        facts, _ = _core.array_facts(str(array), _CONTAINED)
        check_array(
            array,
            name,
            about.arrays[name],
            {"identity": facts["identity"], "commits": int(facts["generation"])},
        )
    except OutcoreError as error:
        damage.append(f"{array}: there is no manifest" if error.errno == errno.ENOENT else str(error))
        return
    yield array
