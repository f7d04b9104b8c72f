"""Tests that every codec must pass: `check(codec)`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from outcore.arrays.codecs import BUILT_IN, Codec, add_codec
from outcore.arrays.disk_array import DiskArray
from outcore.job.world import World

ELEMENT_BYTES = (1, 4, 8, 16)
_SHOTS = 300


def chunks() -> Iterator[bytes]:
    """Chunks of all kinds: short, long, of equal bytes, of numbers, of noise."""
    random = np.random.default_rng(1)
    for size in (1, 2, 15, 16, 4096, 100_003):
        yield bytes(size)
        yield random.bytes(size)
        yield np.linspace(0, 1, size).tobytes()[:size]
        yield np.zeros(size, np.int16).tobytes() + b"\x01"


def _encoded(codec: Codec, data: bytes, element_bytes: int) -> bytes:
    return bytes(memoryview(codec.encode(data, element_bytes)))


def _decoded(codec: Codec, data: bytes, size: int, element_bytes: int) -> bytes:
    return bytes(memoryview(codec.decode(data, size, element_bytes)))


def check_it_gives_back_what_it_was_given(codec: Codec) -> None:
    for data in chunks():
        for element_bytes in ELEMENT_BYTES:
            packed = _encoded(codec, data, element_bytes)
            assert _decoded(codec, packed, len(data), element_bytes) == data


def check_some_chunks_become_smaller(codec: Codec) -> None:
    assert len(_encoded(codec, bytes(100_000), 8)) < 100_000


def check_its_name_and_number_may_stand_in_files(codec: Codec) -> None:
    assert codec.name and codec.name == codec.name.split()[0]
    assert codec.name not in BUILT_IN
    assert 128 <= codec.number <= 255


def check_damage_is_an_error_or_of_the_right_size(codec: Codec) -> None:
    """Damage that no checksum has found: `decode` raises, or returns `size` bytes."""
    random = np.random.default_rng(2)
    data = np.linspace(0, 1, 500).tobytes()
    packed = _encoded(codec, data, 8)
    for _ in range(_SHOTS):
        wrong = bytearray(packed)
        wrong[random.integers(len(wrong))] ^= 1 << random.integers(8)
        for given in (bytes(wrong), packed[: random.integers(len(packed))]):
            try:
                found = _decoded(codec, given, len(data), 8)
            except Exception:
                continue
            assert len(found) == len(data)


def check_cut_chunks_are_an_error(codec: Codec) -> None:
    data = np.random.default_rng(3).bytes(5000)
    packed = _encoded(codec, data, 8)
    for given, size in ((packed[:-1], 5000), (packed, 4999), (b"", 5000)):
        with pytest.raises(Exception):  # noqa: B017
            if len(_decoded(codec, given, size, 8)) != size:
                raise ValueError("another size")


def check_threads_do_not_disturb_one_another(codec: Codec) -> None:
    every = list(chunks()) * 4

    def turn(data: bytes) -> bool:
        return _decoded(codec, _encoded(codec, data, 8), len(data), 8) == data

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(turn, every))


def check_disk_arrays_use_it(codec: Codec) -> None:
    add_codec(codec)
    values = np.arange(40_000.0).reshape(200, 200) // 7
    with World("self", memory="64MB") as world, DiskArray(world, (200, 200), codec=codec.name) as array:
        array[...] = values
        array.sync()
        assert array.codec.split()[0] == codec.name
        assert np.array_equal(array[50:60, 3:190], values[50:60, 3:190])
        assert np.array_equal(array.to_numpy(), values)


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]
