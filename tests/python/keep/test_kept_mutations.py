"""Checkpoint files with wrong content and right checksums, as a program could have written them. They are
refused, or their numbers are read as they are; never a crash, memory for absent data, or access to a name
outside the directory.

OUTCORE_MUTATIONS: how many of each kind (default 25); OUTCORE_MUTATION_SEED: where they begin.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import kept_kinds
import numpy as np
import pytest

import outcore
from outcore import DiskArray, World, checkpoint
from outcore.chem import restart
from outcore.chem.hf import kept

COUNT = int(os.environ.get("OUTCORE_MUTATIONS", "25"))
SEED = int(os.environ.get("OUTCORE_MUTATION_SEED", "1"))
_LONGEST_S = 20
_EXTREMES: tuple[Any, ...] = (
    0, 1, -1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 1e300, math.nan, math.inf, "", "../../x", [], {}, None, True,
)  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("self", memory="4GB") as made:
        yield made


def changed(value: Any, random: Random) -> Any:
    """JSON with a part of it replaced, removed or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value))
        if random.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return value | {key: changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        if random.random() < 0.2:
            return value[:at] + value[at : at + 1] * random.choice((0, 2)) + value[at + 1 :]
        return [*value[:at], changed(value[at], random), *value[at + 1 :]]
    if type(value) in (int, float) and random.random() < 0.5:
        return value + random.choice((1, -1, value))
    return random.choice(_EXTREMES)


def changed_array(array: Any, random: Random) -> Any:
    """Other bytes, another number of elements, another type or shape."""
    match random.randrange(6):
        case 0:
            return array[: random.randrange(len(array) + 1)]
        case 1:
            return np.concatenate([array, array[:1]])
        case 2:
            return array.astype(random.choice(("float32", "int64", "float64")))
    data = bytearray(array.tobytes())
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data))
        size = random.choice((1, 2, 4, 8))
        number = random.choice((random.randrange(256), 0, 1, 2**63 - 1, 2**64 - 1, 2**31, 2**32 - 1))
        data[at : at + size] = number.to_bytes(8, "little")[: min(size, len(data) - at)]
    return np.frombuffer(bytes(data), array.dtype).reshape(array.shape)


def _changed_checkpoint(name: Path, random: Random, seal: Callable[[Any, Any], None]) -> None:
    with World("self") as own:
        with checkpoint.load(own, name) as saved:
            arrays, meta = {key: saved[key] for key in saved}, saved.meta
        if random.random() < 0.5:
            key = random.choice(sorted(arrays))
            arrays[key] = changed_array(arrays[key], random)
        else:
            meta = changed(meta, random)
        with suppress(Exception):  # what is too damaged cannot be sealed
            seal(arrays, meta)
        checkpoint.save(own, name, arrays, json.loads(json.dumps(meta)))


def change_integrals(place: Path, random: Random) -> None:
    _changed_checkpoint(place / "integrals", random, lambda arrays, meta: None)


def change_and_seal_integrals(place: Path, random: Random) -> None:
    def seal(arrays: Any, meta: Any) -> None:
        rule = kept.Rule(True)
        if meta["least"] is not None:
            numbers = meta["first_exponent"], meta["least"]
            rule = kept.Rule(True, arrays["factors"], arrays["worth"], *numbers)
        files = [(name, arrays[f"index.{n}"].tobytes()) for n, name in enumerate(meta["files"])]
        meta["seal"] = kept._seal(meta["fingerprint"], kept.Kept(rule, files))

    _changed_checkpoint(place / "integrals", random, seal)


def change_orbitals(place: Path, random: Random) -> None:
    _changed_checkpoint(place / "orbitals", random, lambda arrays, meta: None)


def change_fitted(place: Path, random: Random) -> None:
    name = place / random.choice(("three_index", "mp2.0", "pairs.all"))
    with World("self") as own, DiskArray.open(own, name, read_only=False) as array:
        metadata, values, chunk = array.metadata, array[...], array.chunk
    if random.random() < 0.8:
        metadata = changed(metadata, random)
    else:
        values = changed_array(values, random)
        chunk = tuple(min(random.randint(1, max(1, n)), m) for n, m in zip(values.shape, chunk, strict=True))
    with World("self") as own, suppress(outcore.OutcoreError):  # one without elements cannot be made
        array = DiskArray(own, values.shape, values.dtype, path=name, chunk=chunk, overwrite=True)
        array[...] = values
        array.flush(metadata)
        array.close()


def make_orbitals(world: World, place: Path, seed: int) -> None:
    mf = kept_kinds.orbitals()
    found = {key: getattr(mf, key) for key in ("mo_coeff", "mo_energy", "mo_occ")}
    restart.Checkpoint(mf, "RHF", place / "orbitals").save(found, 3, float(mf.e_tot), converged=True)


def read_orbitals(world: World, place: Path) -> Any:
    return restart.density(kept_kinds.orbitals(), "RHF", place / "orbitals")[0]


KINDS: dict[str, tuple[Any, Any, Any, bool]] = {  # the last: wrong content is always found
    "integrals": (kept_kinds.make_integrals, kept_kinds.read_integrals, change_integrals, True),
    "sealed integrals": (
        kept_kinds.make_integrals,
        kept_kinds.read_integrals,
        change_and_seal_integrals,
        False,
    ),
    "orbitals": (make_orbitals, read_orbitals, change_orbitals, False),
    "fitted": (kept_kinds.make_fitted, kept_kinds.read_fitted, change_fitted, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_content_with_right_checksums_is_found_or_read_as_it_is(
    world: World, tmp_path: Path, kind: str
) -> None:
    make, read, change, always = KINDS[kind]
    good, place = tmp_path / "good", tmp_path / "place"
    good.mkdir()
    make(world, good, 0)
    content, counts = read(world, good), Counter[str]()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def too_long(*_: object) -> None:
        raise TimeoutError("a kept file keeps its reader waiting")

    waiting = signal.signal(signal.SIGALRM, too_long)
    for seed in range(SEED, SEED + COUNT):
        random = Random(f"{kind} {seed}")
        shutil.copytree(good, place)
        change(place, random)
        signal.alarm(_LONGEST_S)
        try:
            found = read(world, place)
            same = all(np.array_equal(*both) for both in zip(found, content, strict=True))
            assert same or not always, f"seed {seed}: other content was read"
            counts["harmless" if same else "forged"] += 1
        except outcore.OutcoreError:
            counts["found"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        finally:
            signal.alarm(0)
        shutil.rmtree(place)
    signal.signal(signal.SIGALRM, waiting)
    print("\nFORGED", kind, dict(counts))
    assert counts["found"] > COUNT // 3
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < 400_000, f"{grown_kb} kB of memory were taken for what a file says"
