"""`outcore inspect` and `outcore verify`: what an array or a checkpoint holds, and whether it is whole."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from outcore import _core
from outcore.checkpoint import KIND
from outcore.errors import OutcoreError

FACTS = ("shape", "dtype", "chunk", "chunks", "components", "placement", "codec", "generation")


def inspect(
    path: Annotated[Path, typer.Argument(help="directory of a disk array or of a checkpoint")],
    as_json: Annotated[bool, typer.Option("--json", help="for programs")] = False,
) -> None:
    """Print what a persistent array or a checkpoint holds."""
    facts = _facts(path)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    print("\n".join(_lines(facts)))


def verify(
    path: Annotated[Path, typer.Argument(help="directory of a disk array or of a checkpoint")],
) -> int:
    """Read all of it that is on this node and check every checksum; name what is damaged. Exit status 1 if anything
    is."""
    damage: list[str] = []
    arrays = elsewhere = 0
    for array in _arrays(path, damage):
        arrays += 1
        try:
            found, not_here = _core.verify_array(str(array))
        except OutcoreError as error:
            if array == path or error.errno != errno.ENOENT:
                raise
            damage.append(f"{array}: there is no manifest")
            continue
        damage += found
        elsewhere += not_here
    for line in damage:
        print(f"damaged: {line}")
    whole = f"{len(damage)} damaged places" if damage else "all whole"
    others = (
        f"; {elsewhere} parts are not here, but on disks of other nodes: not checked" if elsewhere else ""
    )
    print(f"{path}: {arrays} arrays, {whole}{others}")
    return 1 if damage else 0


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = dict(_core.array_facts(str(path)))
    metadata = json.loads(facts.pop("metadata") or "null")
    if not isinstance(metadata, dict) or metadata.get("kind") != KIND:
        return {"path": str(path), "kind": "disk array", **facts, "metadata": metadata}
    place = path / f"arrays.{metadata['generation']}"
    return {
        "path": str(path),
        "kind": "checkpoint",
        "generation": metadata["generation"],
        "meta": metadata["meta"],
        "arrays": {
            name: {**_facts(place / name), "saved from": entry["kind"]}
            for name, entry in metadata["arrays"].items()
        },
    }


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['kind']} {facts['path']}"
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
    """The array, or the arrays of a checkpoint with the one that holds it together."""
    yield path
    try:
        facts = _core.array_facts(str(path))
    except OutcoreError as error:
        if error.errno == errno.ENOENT:
            raise
        return  # the damage is found by reading it
    metadata = json.loads(facts["metadata"] or "null")
    if isinstance(metadata, dict) and metadata.get("kind") == KIND:
        for name in metadata["arrays"]:
            array = path / f"arrays.{metadata['generation']}" / name
            if array.is_dir():
                yield array
            else:
                damage.append(f"{array}: missing")
