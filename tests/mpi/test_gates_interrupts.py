"""Ctrl-C at one process, in a collective call."""

from __future__ import annotations

import os

import pytest

from outcore import DiskArray, GlobalArray, OutcoreError


class Interrupted(os.PathLike):
    """Somebody presses Ctrl-C while it is asked for its name."""

    def __fspath__(self):
        raise KeyboardInterrupt

    __array__ = __fspath__


def _step(world, place):
    with world.together("step"):
        os.fspath(place)


def _transfer(world, place):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.write_all(g, order=place if isinstance(place, Interrupted) else None)


INTERRUPTED = {
    "constructor": lambda world, place: DiskArray(world, (4, 5), path=place).close(),
    "opening": DiskArray.open,
    "step": _step,
    "reduction": lambda world, place: world.all_reduce(place if isinstance(place, Interrupted) else 1),
    "transfer": _transfer,
}


@pytest.mark.parametrize("call", INTERRUPTED.values(), ids=INTERRUPTED)
@pytest.mark.parametrize("who", ["first", "last"])
def test_ctrl_c_stays_what_it_is_and_is_an_error_at_the_others(world, paths, call, who):
    rank = 0 if who == "first" else world.size - 1
    place = paths.new()
    with pytest.raises(KeyboardInterrupt if world.rank == rank else OutcoreError) as caught:
        call(world, Interrupted() if world.rank == rank else place)
    error = caught.value.__cause__ or caught.value.__context__ if world.rank == rank else caught.value
    if error is not None:
        assert "KeyboardInterrupt" in str(error)
    del caught, error
    world.barrier()
