"""Checkpoints that are loaded while another job saves the next ones."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import outcore
from outcore.cli.inspect import inspect, verify

JOB = """
import sys
import numpy as np
import outcore

with outcore.World(memory="200MB") as world:
    for cycle in range(1, int(sys.argv[2])):
        outcore.checkpoint.save(world, sys.argv[1], {"n": np.full(50, cycle)}, {"cycle": cycle})
        if cycle == 1:
            print("saved", flush=True)
"""


def _job(name, cycles):
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, str(name), str(cycles)], stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "saved\n"
    return job


def test_verify_and_inspect_beside_saves_see_one_whole_checkpoint(tmp_path, capsys):
    name = tmp_path / "checkpoint"
    job = _job(name, 100)
    while True:
        last = job.poll() is not None
        assert verify(name) == 0, capsys.readouterr().out
        inspect(name, as_json=True)
        if last:
            break
    assert job.returncode == 0


def test_loading_beside_saves_gives_one_whole_checkpoint(tmp_path):
    name = tmp_path / "checkpoint"
    job = _job(name, 80)
    with outcore.World(memory="200MB") as world:
        while True:
            last = job.poll() is not None
            with outcore.checkpoint.load(world, name) as saved:
                assert (saved["n"] == saved.meta["cycle"]).all()
            if last:
                break
    assert job.returncode == 0


@pytest.mark.parametrize("kept", ["checkpoint", "checkpoint.{node}"])
def test_a_loaded_checkpoint_stays_until_it_is_closed(tmp_path, kept):
    name = tmp_path / kept
    with outcore.World(memory="200MB") as world:
        outcore.checkpoint.save(world, name, {"n": np.full(50, 1)}, 1)
        saved = outcore.checkpoint.load(world, name)
        for cycle in (2, 3):
            outcore.checkpoint.save(world, name, {"n": np.full(50, cycle)}, cycle)
        assert saved.meta == 1
        assert (saved["n"] == 1).all()
        saved.close()
        outcore.checkpoint.save(world, name, {"n": np.full(50, 4)}, 4)
        assert [each for each in os.listdir(str(name).format(node=0)) if each.startswith("arrays.")] == [
            "arrays.4"
        ]
