"""Codecs of the program: their faults are errors of the array, and packages register them by name."""

from __future__ import annotations

import errno
import subprocess
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest

from outcore import DiskArray, OutcoreError, World
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.conformance import codecs
from outcore.extend import Codec, add_codec

VALUES = np.arange(40_000.0).reshape(200, 200) // 9


class Deflate(Codec):
    name, number = "deflate", 210
    wrong = ""

    def encode(self, data, element_bytes):
        if self.wrong == "encode":
            raise RuntimeError("out of ideas")
        return "text" if self.wrong == "type" else zlib.compress(data)

    def decode(self, data, size, element_bytes):
        if self.wrong == "decode":
            raise ValueError("no such stream")
        found = zlib.decompress(data)
        return found[:-1] if self.wrong == "size" else found


@pytest.fixture
def codec():
    add_codec(DEFLATE)
    yield DEFLATE
    DEFLATE.wrong = ""


DEFLATE = Deflate()


@pytest.fixture
def world(tmp_path):
    with World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


@pytest.mark.parametrize("check", codecs.CHECKS, ids=lambda each: each.__name__)
def test_conformance(check):
    check(DEFLATE)


def test_the_suite_finds_a_codec_that_loses_a_byte(codec):
    codec.wrong = "size"
    with pytest.raises(AssertionError):
        codecs.check_it_gives_back_what_it_was_given(codec)


@pytest.mark.parametrize(
    ("wrong", "number", "message"),
    [
        ("decode", errno.EIO, "codec 'deflate': ValueError: no such stream"),
        ("size", errno.EIO, "bytes came out"),
    ],
)
def test_what_cannot_be_decompressed_is_an_error_of_who_reads(codec, tmp_path, world, wrong, number, message):
    with DiskArray(world, VALUES.shape, path=tmp_path / "a", codec="deflate") as array:
        array[...] = VALUES
    with DiskArray.open(world, tmp_path / "a") as array:
        codec.wrong = wrong
        with pytest.raises(OutcoreError, match=message) as raised:
            array.to_numpy()
        assert raised.value.errno == number
        codec.wrong = ""
        assert np.array_equal(array.to_numpy(), VALUES)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("encode", "codec 'deflate': RuntimeError: out of ideas"),
        ("type", "TypeError.*bytes-like"),
    ],
)
def test_what_cannot_be_compressed_is_an_error_of_who_writes(codec, world, wrong, message):
    array = DiskArray(world, VALUES.shape, codec="deflate")
    codec.wrong = wrong
    with pytest.raises(OutcoreError, match=message):
        array[...] = VALUES
        array.flush()
    codec.wrong = ""
    with suppress(OutcoreError):  # again, if it was not delivered
        array.close()


def test_block_sparse_arrays_have_it(codec, world):
    with BlockSparseArray(world, [[0, 100, 200]] * 2, np.eye(2, dtype=bool), codec="deflate") as array:
        array.put_tile((1, 1), VALUES[100:, 100:].copy())
        array.sync()
        assert np.array_equal(array.get_tile((1, 1)), VALUES[100:, 100:])


def test_adding_a_codec_again_does_nothing_but_names_and_numbers_are_of_one(codec):
    add_codec(codec)

    def other(name, number):
        return type("Other", (Deflate,), {"name": name, "number": number})()

    for name, number, code in (
        ("deflate", 211, errno.EEXIST),
        ("other", 210, errno.EEXIST),
        ("blosc2", 211, errno.EINVAL),
        ("other", 127, errno.EINVAL),
        ("other", 256, errno.EINVAL),
        ("", 211, errno.EINVAL),
        ("two words", 211, errno.EINVAL),
    ):
        with pytest.raises(OutcoreError) as raised:
            add_codec(other(name, number))
        assert raised.value.errno == code, (name, number)
    with pytest.raises(TypeError, match=r"is no outcore\.extend\.Codec"):
        add_codec(Deflate)


def test_unknown_names_are_refused(world):
    with pytest.raises(OutcoreError, match=r"codec 'middle-out'.*one that was added"):
        DiskArray(world, (3, 3), codec="middle-out")


PACKAGE = """
import zlib
from outcore.extend import Codec

class Packed(Codec):
    name, number = "packed", 220
    def encode(self, data, element_bytes): return zlib.compress(data)
    def decode(self, data, size, element_bytes): return zlib.decompress(data)
"""
WRITES = """
import outcore
with outcore.World("self") as world, outcore.DiskArray(world, (100, 100), path="a", codec="packed") as a:
    a[...] = 7.0
"""
READS = """
import outcore
with outcore.World("self") as world, outcore.DiskArray.open(world, "a") as a:
    print(a.codec, a.to_numpy().sum())
"""


def run(program, site, cwd):
    path = "" if site is None else f"import sys; sys.path.insert(0, {str(site)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", path + program], cwd=cwd, capture_output=True, text=True, check=False
    )


def install(site, points):
    """A package of modules with these entry points, as pip leaves them."""
    info = site / "packed-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: packed\nVersion: 1\n")
    (info / "entry_points.txt").write_text(points)
    (site / "packed_module.py").write_text(PACKAGE)


def test_a_package_brings_a_codec(tmp_path):
    site = tmp_path / "site"
    install(site, "[outcore.codecs]\npacked = packed_module:Packed\n")
    written = run(WRITES, site, tmp_path)
    assert written.returncode == 0, written.stderr
    assert run(READS, site, tmp_path).stdout.split() == ["packed", "(1)", "70000.0"]

    alone = run(READS, None, tmp_path)
    assert "has not added codec 220" in alone.stderr and alone.returncode != 0


def test_a_package_that_cannot_be_imported_is_said_where_it_is_needed(tmp_path):
    site = tmp_path / "site"
    install(site, "[outcore.codecs]\npacked = packed_module:Missing\n")
    written = run(WRITES, site, tmp_path)
    assert "use 'packed' of outcore.codecs" in written.stderr and "Missing" in written.stderr

    plain = run(WRITES.replace("packed", "blosc2"), site, tmp_path)
    assert plain.returncode == 0, plain.stderr
    read = run(READS, site, tmp_path)
    assert "70000.0" in read.stdout and "Missing" in read.stderr  # a warning
