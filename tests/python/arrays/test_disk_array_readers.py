"""Readers of disk arrays beside a writer: which states are kept for them, and for how long."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

import outcore

READER = """
import sys
import outcore

with outcore.World(memory="200MB") as world:
    array = outcore.DiskArray.open(world, sys.argv[1])
    print(array[0, 0], flush=True)
    sys.stdin.readline()
    print(array[0, 0], flush=True)
    sys.stdin.readline()
"""


def _reader(path):
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    return reader, reader.stdin, reader.stdout


def _tables(path):
    return sum(name.startswith("table.") for name in os.listdir(path))


def test_the_state_of_a_reader_goes_with_the_commit_after_its_death(tmp_path):
    path = tmp_path / "array"
    with outcore.World(memory="200MB") as world:
        array = outcore.DiskArray(world, (64, 64), path=path)
        array[...] = np.full((64, 64), 1.0)
        array.flush()
        reader, asked, answers = _reader(path)
        assert answers.readline() == "1.0\n"
        for value in (2.0, 3.0):
            array[...] = np.full((64, 64), value)
            array.flush()
        assert _tables(path) == 2
        asked.write("\n")
        asked.flush()
        assert answers.readline() == "1.0\n"
        reader.kill()
        reader.wait()
        array[...] = np.full((64, 64), 4.0)
        array.flush()
        assert _tables(path) == 1
        array.close()


def test_every_reader_keeps_its_own_state(tmp_path):
    path = tmp_path / "array"
    with outcore.World(memory="200MB") as world:
        array = outcore.DiskArray(world, (64, 64), path=path)
        readers = []
        for value in range(1, 21):
            array[...] = np.full((64, 64), float(value))
            array.flush()
            readers.append((value, outcore.DiskArray.open(world, path)))
            assert _tables(path) == value
            for expected, reader in readers:
                assert (reader.get(...) == expected).all()
        for _, reader in readers:
            reader.close()
        array[0, 0] = 0.0
        array.close()
        assert _tables(path) == 1


def test_a_local_array_is_read_beside_its_writer(tmp_path):
    path = tmp_path / "array"
    with outcore.World(memory="200MB") as world:
        array = outcore.DiskArray(world, (64, 64), path=path, placement="local")
        array[...] = np.full((64, 64), 1.0)
        array.flush()
        with outcore.DiskArray.open(world, path) as reader:
            for value in (2.0, 3.0, 4.0):
                array[...] = np.full((64, 64), value)
                array.flush()
                assert (reader.get(...) == 1.0).all()
        array.close()
