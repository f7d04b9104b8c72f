"""Readers of files with any content: they return a value or raise an OutcoreError, in limited time.

Files of tests/fuzz/corpus are damaged, reproducibly. OUTCORE_FUZZ_SECONDS: how long each reader is tried
(default: 30 seconds for all together). With atheris installed, `python tests/python/test_fuzz_readers.py
READER` explores new paths (see atheris for options, such as -max_total_time).
"""

from __future__ import annotations

import math
import os
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import kept_kinds
import mutation
import numpy as np
import pytest
from pyscf import gto, scf

import outcore
from outcore import _core
from outcore.base.metadata import parse
from outcore.chem import molecule, orbital_file
from outcore.chem.ci import fcidump
from outcore.chem.mrci import references
from outcore.chem.mrci.spaces import OrbitalChoice
from outcore.cli import input_file
from outcore.interfaces.qcschema import translate
from outcore.keep import classic_layout, hdf5
from outcore.keep.checkpoint_facts import facts_of
from outcore.keep.problem import Problem
from outcore.tensor.plan.plan import Plan
from outcore.trace import tracefile

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
_LONGEST_S = 20

Reader = Callable[[Path], object]


def read_xyz(path: Path) -> None:
    molecule.build(path, "sto-3g")


def read_basis(path: Path) -> None:
    geometry = path.with_name("h.xyz")
    geometry.write_text("1\n\nH 0 0 0\n")
    molecule.build(geometry, str(path))


def read_references(path: Path) -> None:
    references.of_file(path, OrbitalChoice(1, 1, 4), 6)


def read_checkpoint_facts(path: Path) -> None:
    facts_of(parse(path.read_bytes(), path), path)


def read_manifest(path: Path) -> None:
    """The manifest of an array, with right checksums, as any program could write them."""
    place = path.with_name("array")
    place.mkdir(exist_ok=True)
    head = b"OUTCARRY\4\3\2\1\2\0\0\0" + bytes(16)
    (place / "manifest").write_bytes(mutation.sealed(head + path.read_bytes()))
    _core.array_facts(str(place))
    _core.verify_array(str(place))


NAME = "integrals-0.0"


def read_index(path: Path) -> None:
    """The index of kept integrals, beside a file of other records."""
    path.with_name(NAME).write_bytes(bytes(2 * kept_kinds.RECORD))
    native, _ = kept_kinds.native_integrals()
    native.open_kept(kept_kinds.native_options(path.parent), [(NAME, path.read_bytes())], 0, 1)
    kept_kinds.contract(native)


def read_record(path: Path) -> None:
    """A record of packed integrals with the right checksum: the numbers of slabs and integrals, and its bytes."""
    data = path.read_bytes()[: kept_kinds.RECORD]
    slabs, integrals = struct.unpack("<IQ", data[:12].ljust(12, b"\0"))
    body = data[12:]
    pages = body.ljust(-(-len(body) // 4096) * 4096, b"\0")
    path.with_name(NAME).write_bytes(pages)
    index = struct.pack("<QqIQIIdQQ", 1, 0, slabs, integrals, len(body), mutation.crc32c(pages), 1.0, 0, 0)
    native, _ = kept_kinds.native_integrals()
    native.open_kept(kept_kinds.native_options(path.parent), [(NAME, index)], 0, 1)
    kept_kinds.contract(native)


def read_problem(path: Path) -> None:
    """The record of settings beside kept values."""
    Problem("values", 2, {"geometry": [0.0, 1.5], "omega": 0.0, "ECP": None}, ("contractions",)).check(
        parse(path.read_bytes(), path), "go on", path
    )


def read_dra_info(path: Path) -> None:
    """The .info file of a classic disk resident array, beside a file of 96 bytes; small arrays are
    imported."""
    info, base = path.with_name("classic.info"), path.with_name("classic")
    info.write_bytes(path.read_bytes())
    base.write_bytes(bytes(range(96)))
    layout = classic_layout.read_layout(info)
    assert layout.size_bytes(0) <= 96
    with outcore.World("self", scratch=path.parent) as world:
        outcore.classic.import_dra(world, info).close()


def read_hdf5(path: Path) -> None:
    """Imports the datasets that have no more elements than the file has bytes."""
    with outcore.World("self", scratch=path.parent) as world:
        for dataset in ("t2", "group/scalar", "group"):
            with suppress(outcore.OutcoreError):
                with hdf5.opened(world, path, "r") as source, hdf5.translated("find a dataset", path):
                    shape, _, _ = hdf5.facts_of(source, path, dataset)
                if math.prod(shape) <= 1 << 16:
                    hdf5.import_array(world, path, dataset).close()


def read_plan(path: Path) -> None:
    """The plan of a contraction, which is carried out; its result is that of any plan."""
    plan = Plan.from_json(path.read_text(errors="replace"))
    shapes = {"ij,jk->ik": [(4, 5), (5, 6)], "ij,jk,kl->il": [(4, 5), (5, 6), (6, 3)]}.get(plan.expression)
    if shapes is not None:
        found = outcore.einsum(plan.expression, *map(np.ones, shapes), plan=plan)
        assert (np.asarray(found) == 5 * math.prod(shape[1] for shape in shapes[1:-1])).all()


@cache
def _hydrogen() -> Any:
    return scf.RHF(gto.M(atom="H 0 0 0; H 0 0 0.74", basis="sto-3g", verbose=0))


def read_orbitals(path: Path) -> None:
    if orbital_file.is_one(path):
        orbital_file.start(_hydrogen(), path)


def read_schema(path: Path) -> None:
    """The input file of a run, in any form of QCSchema."""
    file = path.with_suffix(".json")
    file.write_bytes(path.read_bytes())
    given = input_file.read(file)
    if input_file.is_qcschema(given):
        translate.translate(*translate.parse(given))


READERS: dict[str, tuple[Reader, str]] = {
    "xyz": (read_xyz, "xyz"),
    "basis": (read_basis, "basis"),
    "fcidump": (fcidump.read, "fcidump"),
    "references": (read_references, "references"),
    "trace": (tracefile.read, "trace"),
    "checkpoint": (read_checkpoint_facts, "checkpoint"),
    "dra": (read_dra_info, "dra"),
    "hdf5": (read_hdf5, "hdf5"),
    "manifest": (read_manifest, "manifest"),
    "index": (read_index, "index"),
    "record": (read_record, "record"),
    "problem": (read_problem, "problem"),
    "plan": (read_plan, "plan"),
    "molden": (read_orbitals, "molden"),
    "trexio": (read_orbitals, "trexio"),
    "qcschema": (read_schema, "qcschema"),
}


SECONDS = float(os.environ.get("OUTCORE_FUZZ_SECONDS", 30 / len(READERS)))


def harmless(reader: Reader, path: Path) -> None:
    with suppress(outcore.OutcoreError):
        reader(path)


@pytest.fixture
def alarm() -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise TimeoutError("a reader takes too long")

    before = signal.signal(signal.SIGALRM, too_long)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _pieces(data: bytes, other: bytes, random: Random) -> bytes:
    """Damage to texts: lines lost, doubled or exchanged, words replaced, other bytes."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, random.choice(other.split(b"\n")))
        case 2:
            words = lines[at].split(b" ")
            strange = (
                b"nan",
                b"-1",
                b"1e999",
                b"9" * 5000,
                b"\xff",
                b"\0",
                b"\xc2\xb2",
                b"",
                b"[" * 2000,
                b"{}",
                b"\f",
            )
            words[random.randrange(len(words))] = random.choice(strange)
            lines[at] = b" ".join(words)
        case 3:
            return data[: random.randrange(len(data) + 1)]
        case _:
            new = bytearray(data or b"\0")
            for _ in range(random.randint(1, 8)):
                new[random.randrange(len(new))] = random.randrange(256)
            return bytes(new)
    return b"\n".join(lines)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_a_value_or_an_error_of_ours(name: str, tmp_path: Path, alarm: None) -> None:
    reader, folder = READERS[name]
    corpus = [each.read_bytes() for each in sorted((CORPUS / folder).iterdir())]
    path = tmp_path / "file"
    end = time.monotonic() + SECONDS
    count = 0
    while count < 50 or time.monotonic() < end:
        random = Random(f"{name} {count}")
        data = corpus[count % len(corpus)]
        if count >= len(corpus):
            for _ in range(random.randint(1, 3)):
                data = _pieces(data, random.choice(corpus), random)
        path.write_bytes(data)
        signal.alarm(_LONGEST_S)
        try:
            harmless(reader, path)
        except Exception as error:
            raise AssertionError(f"{name}, number {count}: {data[:300]!r}") from error
        count += 1
    print("\nFUZZED", name, count)


def test_a_fifo_or_device_keeps_no_reader_of_traces_waiting(tmp_path: Path, alarm: None) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    signal.alarm(_LONGEST_S)
    for each in (path, Path("/dev/zero"), tmp_path):
        with pytest.raises(outcore.OutcoreError):
            tracefile.read(each)


def _main() -> None:
    import atheris  # type: ignore[import-not-found]

    name = sys.argv.pop(1)
    reader, folder = READERS[name]
    place = Path(tempfile.mkdtemp(prefix="outcore-fuzz-"))

    def once(data: bytes) -> None:
        path = place / "file"
        path.write_bytes(data)
        harmless(reader, path)

    atheris.instrument_all()
    atheris.Setup([*sys.argv, str(CORPUS / folder)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    _main()
