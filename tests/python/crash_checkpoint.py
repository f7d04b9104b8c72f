"""Saves checkpoints while its disk operations are recorded, and then examines the states after a loss of
power.

    LD_PRELOAD=.../liboutcore_crash_recorder.so python crash_checkpoint.py saves|needed|killed IMAGES

Called by test_checkpoint_crash.py. Prints its findings; exit status 0 if all is well.
"""

from __future__ import annotations

import errno
import random
import re
import sys
from pathlib import Path

import crash_recorder
import numpy as np

import outcore

world = outcore.World(memory="500MB")
shape = (40, 30)


def save(place: Path, cycle: int, *, only_one: bool = False) -> None:
    """Saves the checkpoint of a cycle: a global array, an array in memory, and one on disk; or the second
    alone."""
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
        d.write_all(np.full(shape, cycle + 0.5))
        arrays = {"g": g, "n": numbers, "d": d}
        outcore.checkpoint.save(world, place / "checkpoint", arrays, {"cycle": cycle})


def found(place: Path) -> int:
    """The cycle of the checkpoint, 0 if there is none."""
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


def found_and_replaced(place: Path) -> int:
    cycle = found(place)
    other = 1 if cycle == 2 else 2
    save(place, other)
    assert found(place) == other
    return cycle


def save_all(place: Path, known: int, cycles: range, *, only_one: bool = False) -> None:
    for cycle in cycles:
        crash_recorder.allow(known, cycle)
        save(place, cycle, only_one=only_one)
        crash_recorder.allow(cycle)
        known = cycle


def record(*, only_one: bool = False) -> int:
    """Records several checkpoints one after another; returns the number of steps."""
    with crash_recorder.temporary() as place:
        crash_recorder.begin(place)
        crash_recorder.allow(0)
        save_all(Path(place), 0, range(1, 4), only_one=only_one)
        return crash_recorder.end()


def saves(images: int) -> None:
    record()
    made, wrong = crash_recorder.examine(found_and_replaced, images)
    print(f"{made} images, {wrong} wrong")
    assert wrong == 0, crash_recorder.mistakes[0]


def names_of_syncs() -> list[str]:
    """Names of syncs, the same for all generations."""
    return [re.sub(r"arrays\.\d+", "arrays", name) for name in crash_recorder.syncs()]


def without_need(images: int, expected: set[str], *, only_one: bool) -> set[str]:
    """Syncs that could be left out without any wrong state, other than the expected ones."""
    record(only_one=only_one)
    names = names_of_syncs()
    missing = set(names) - expected
    for sync, name in enumerate(names):
        if name in missing and crash_recorder.examine(found, images, sync)[1]:
            print(f"without the sync of {name}: {crash_recorder.mistakes[-1]}")
            missing.discard(name)
    return missing


def needed(images: int) -> None:
    """Each sync is needed, except one: the sync before the rename of an array's manifest. Nobody looks for
    the array's state before the checkpoint names it, and by then the sync after the rename has done the
    same."""
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
        with crash_recorder.temporary() as place:
            crash_recorder.go_on(min(cut, steps), place)
            save_all(Path(place), found(Path(place)), range(4, 6))
            crash_recorder.end()
        made, wrong = crash_recorder.examine(found_and_replaced, each)
        total += made
        assert wrong == 0, f"killed after step {cut}: {crash_recorder.mistakes[0]}"
    print(f"{total} images")


if __name__ == "__main__":
    {"saves": saves, "needed": needed, "killed": killed}[sys.argv[1]](int(sys.argv[2]))
