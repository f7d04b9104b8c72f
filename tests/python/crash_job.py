"""Saves checkpoints while what it does to the disk is recorded, and then looks at what a loss of power leaves.

    LD_PRELOAD=.../liboutcore_crash_recorder.so python crash_job.py saves|needed|killed IMAGES

Called by test_checkpoint_crash.py. Prints what it has found; exit status 0 if all is as it should be.
"""

from __future__ import annotations

import ctypes
import errno
import random
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

import outcore

recorder = ctypes.CDLL(None)
recorder.outcore_crash_end.restype = ctypes.c_uint64
recorder.outcore_crash_syncs.restype = ctypes.c_uint64
recorder.outcore_crash_sync_name.restype = ctypes.c_char_p
recorder.outcore_crash_examine.restype = ctypes.c_uint64
Look = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64)

world = outcore.World(memory="500MB")
shape = (40, 30)
mistakes: list[str] = []


def save(place: Path, cycle: int, *, only_one: bool = False) -> None:
    """The checkpoint of a cycle: a global array, an array in memory, and one on disk; or the second alone."""
    numbers = np.full(5, cycle)
    if only_one:
        outcore.checkpoint.save(world, place / "checkpoint", {"n": numbers}, {"cycle": cycle})
        return
    with (
        outcore.GlobalArray(world, shape) as g,
        outcore.DiskArray(world, shape, "float64", chunk=(20, 30)) as d,
    ):
        g.local[...] = cycle
        g.sync()
        d.write(np.full(shape, cycle + 0.5)).wait()
        arrays = {"g": g, "n": numbers, "d": d}
        outcore.checkpoint.save(world, place / "checkpoint", arrays, {"cycle": cycle})


def found(place: Path) -> int:
    """The cycle of the checkpoint that is there, 0 if there is none."""
    try:
        saved = outcore.checkpoint.load(world, place / "checkpoint")
    except outcore.OutcoreError as error:
        if error.errno == errno.ENOENT:
            return 0
        raise
    with saved:
        cycle = int(saved.meta["cycle"])
        if len(saved) > 1:
            with saved["g"] as g, saved["d"] as d:
                assert (g[...] == cycle).all()
                assert (d[...] == cycle + 0.5).all()
        assert np.array_equal(saved["n"], np.full(5, cycle))
    return cycle


class Options:
    goes_on = True  # what is found is replaced


options = Options()


def right(name: bytes, allowed: int) -> int:
    """Whether what is there is whole, allowed, and can be replaced."""
    place = Path(name.decode())
    try:
        cycle = found(place)
        assert allowed >> cycle & 1, f"cycle {cycle} must not be found"
        if options.goes_on:
            save(place, 1 if cycle == 2 else 2)
            assert found(place) == (1 if cycle == 2 else 2)
    except (outcore.OutcoreError, AssertionError, ValueError, KeyError) as error:
        mistakes.append(f"{type(error).__name__}: {error}")
        return 0
    return 1


look = Look(right)


def examine(images: int, without: int = -1) -> tuple[int, int]:
    """So many images were looked at, so many of them were wrong."""
    wrong = ctypes.c_uint64()
    made = recorder.outcore_crash_examine(
        ctypes.c_uint64(images), ctypes.c_uint64(1), ctypes.c_int64(without), look, ctypes.byref(wrong)
    )
    return made, wrong.value


def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def save_all(place: Path, known: int, cycles: range, *, only_one: bool = False) -> None:
    for cycle in cycles:
        recorder.outcore_crash_allow(ctypes.c_uint64(1 << known | 1 << cycle))
        save(place, cycle, only_one=only_one)
        recorder.outcore_crash_allow(ctypes.c_uint64(1 << cycle))
        known = cycle


def record(*, only_one: bool = False) -> int:
    """Some checkpoints after one another; how many steps that took."""
    with temporary() as place:
        recorder.outcore_crash_begin(place.encode())
        recorder.outcore_crash_allow(ctypes.c_uint64(1))
        save_all(Path(place), 0, range(1, 4), only_one=only_one)
        return int(recorder.outcore_crash_end())


def saves(images: int) -> None:
    record()
    made, wrong = examine(images)
    print(f"{made} images, {wrong} wrong")
    assert wrong == 0, mistakes[0]


def names_of_syncs() -> list[str]:
    """Those of all generations have one name."""
    count = recorder.outcore_crash_syncs()
    names = (recorder.outcore_crash_sync_name(ctypes.c_uint64(sync)).decode() for sync in range(count))
    return [re.sub(r"arrays\.\d+", "arrays", name) for name in names]


def without_need(images: int, expected: set[str], *, only_one: bool) -> set[str]:
    """Syncs without which nothing wrong is found, other than those that are expected."""
    record(only_one=only_one)
    names = names_of_syncs()
    missing = set(names) - expected
    for sync, name in enumerate(names):
        if name in missing and examine(images, sync)[1]:
            print(f"without the sync of {name}: {mistakes[-1]}")
            missing.discard(name)
    return missing


def needed(images: int) -> None:
    """Each sync is needed, but for one: before the checkpoint names an array nobody looks for its state, and then
    the sync after the rename of its manifest has done what the one before the rename has done."""
    options.goes_on = False
    names = {f"checkpoint/arrays/{key} with what was made" for key in "gnd"}
    among_others = "checkpoint/arrays with what was made"  # one of several does for all
    for only_one, may_miss in ((False, {*names, among_others}), (True, names)):
        missing = without_need(images, may_miss, only_one=only_one)
        assert not missing, f"nothing needs the sync of {sorted(missing)}"


def killed(images: int) -> None:
    """A job that saves is killed after some of its steps, the next one saves, then the power is lost."""
    steps, each, total = record(), 10, 0
    cuts = sorted(random.Random(1).sample(range(1, steps), min(steps - 1, max(1, images // each))))
    for cut in cuts:
        steps = record()
        with temporary() as place:
            recorder.outcore_crash_go_on(ctypes.c_uint64(min(cut, steps)), place.encode())
            save_all(Path(place), found(Path(place)), range(4, 6))
            recorder.outcore_crash_end()
        made, wrong = examine(each)
        total += made
        assert wrong == 0, f"killed after step {cut}: {mistakes[0]}"
    print(f"{total} images")


if __name__ == "__main__":
    {"saves": saves, "needed": needed, "killed": killed}[sys.argv[1]](int(sys.argv[2]))
