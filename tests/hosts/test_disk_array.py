"""Disk arrays on several hosts: the places of their components, and the placement that is chosen."""

from __future__ import annotations

import pytest

WRITE_AND_READ = """
import numpy as np
import outcore

with outcore.World() as world:
    path = directory / "{where}" / "array"
    model = np.arange(240_000.0).reshape(400, 600)
    with outcore.GlobalArray(world, (400, 600)) as g, outcore.GlobalArray(world, (400, 600)) as back:
        if world.rank == 0:
            g[...] = model
        g.sync()
        d = outcore.DiskArray(world, (400, 600), path=path, chunk=(64, 64), placement="{placement}")
        d.write_all(g.section(), ...)
        placement = d.placement
        d.close()
        d = outcore.DiskArray.open(world, path)
        d.read_all(back.section(), ...)
        d.close()
        tell(placement, np.array_equal(back[...], model))
        world.barrier()
"""


def sizes(directory):
    """Sizes in bytes of all files in a directory."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


@pytest.fixture
def clean(hosts):
    """The hosts, with empty directories."""
    yield hosts
    hosts.clear()


def test_a_directory_that_all_see_is_shared(clean):
    assert clean.run(WRITE_AND_READ.format(where="shared", placement="auto"), 4) == ["shared True"] * 4
    assert sizes(clean.directory / "shared") >= 8 * 240_000


def test_a_directory_of_the_same_name_on_each_host_is_local(clean):
    assert clean.run(WRITE_AND_READ.format(where="scratch", placement="auto"), 4) == ["local True"] * 4
    assert sizes(clean.directory / "host0") >= 8 * 100_000
    assert sizes(clean.directory / "host1") >= 8 * 100_000


def test_a_directory_that_one_host_cannot_write_to_is_refused_by_all(clean):
    said = clean.run(
        """
        import outcore

        with outcore.World() as world:
            try:
                outcore.DiskArray(world, (400, 600), path=directory / "first" / "array")
            except outcore.OutcoreError as error:
                tell(error.errno, error.rank, "first/array" in error.path)
        """,
        processes=4,
    )
    assert said == ["30 2 True"] * 4  # EROFS
    assert sizes(clean.directory / "first") == 0


def test_shared_placement_is_refused_where_a_host_does_not_see_the_directory(clean):
    said = clean.run(
        """
        import outcore

        with outcore.World() as world:
            try:
                outcore.DiskArray(world, 1000, path=directory / "scratch" / "array", placement="shared")
            except outcore.OutcoreError as error:
                tell(error.errno, error.rank, "does not see what the first one made" in str(error))
        """,
        processes=4,
    )
    assert said == ["2 2 True"] * 4  # ENOENT


def test_scratch_arrays_leave_nothing(clean):
    said = clean.run(
        """
        import numpy as np
        import outcore

        with outcore.World(scratch=directory / "scratch") as world:
            with outcore.GlobalArray(world, 100_000) as g, outcore.GlobalArray(world, 100_000) as back:
                g.local[...] = world.rank + 1
                with outcore.DiskArray(world, 100_000) as d:
                    d.write_all(g.section(), ...)
                    d.read_all(back.section(), ...)
                    tell(d.placement, np.array_equal(back.local, g.local))
        """,
        processes=4,
    )
    assert said == ["local True"] * 4
    assert sizes(clean.directory / "host0") == sizes(clean.directory / "host1") == 0


def test_any_process_gets_puts_and_accumulates_anywhere(clean):
    said = clean.run(
        """
        import numpy as np
        import outcore

        with outcore.World(scratch=directory / "scratch") as world:
            with outcore.DiskArray(world, (400, 600), chunk=(64, 64)) as d:
                model = np.arange(240_000.0).reshape(400, 600)
                rows = slice(100 * world.rank, 100 * world.rank + 100)
                d[rows, :] = model[rows, :]
                d.sync()
                world.barrier()
                good = np.array_equal(d[50:350, 77:555], model[50:350, 77:555])
                world.barrier()
                d.acc(np.s_[30:390, 10:590], np.ones((360, 580)))
                d.sync()
                world.barrier()
                model[30:390, 10:590] += world.size
                tell(d.placement, good, np.array_equal(d[...], model))
                world.barrier()
        """,
        processes=4,
    )
    assert said == ["local True True"] * 4


SAVE = """
import numpy as np
import outcore

with outcore.World() as world:
    with outcore.GlobalArray(world, (1000, 1000)) as g:
        for cycle in range(2):
            if world.rank == 0:
                g[...] = np.arange(1e6).reshape(1000, 1000) + cycle
            g.sync()
            outcore.checkpoint.save(world, directory / "scratch" / "job", {"g": g}, cycle)
    tell("saved")
"""

LOAD = """
import numpy as np
import outcore

with outcore.World() as world:
    saved = outcore.checkpoint.load(world, directory / "scratch" / "job")
    with saved["g"] as g:
        tell(saved.meta, np.array_equal(g[...], np.arange(1e6).reshape(1000, 1000) + 1))
        world.barrier()
"""


def test_a_checkpoint_on_local_disks_is_loaded_by_other_processes(clean):
    assert clean.run(SAVE, 4) == ["saved"] * 4
    assert sizes(clean.directory / "host1") >= 8 * 400_000
    assert clean.run(LOAD, 2) == ["1 True"] * 2
    assert clean.run(LOAD, 3) == ["1 True"] * 3


REPLACE = """
import contextlib
import outcore

path = directory / "scratch" / "array"
def values(world):
    with outcore.DiskArray.open(world, path) as found:
        return set(found[...].ravel().tolist()), found.shape

def replace(world, commits):
    before = values(world) if {value} > 1 else None
    d = outcore.DiskArray(world, {shape}, path=path, chunk=(1, 600), overwrite={value} > 1)
    with outcore.GlobalArray(world, {shape}) as g:
        g.local[...] = {value}
        g.sync()
        d.write_all(g.section(), ...)
    assert not before or values(world) == before, "the old one has to stay until the first commit"
    if not commits:
        raise KeyError  # what an error has left is not committed
    d.close()

for commits in (False, True) if {value} > 1 else (True,):
    with contextlib.suppress(KeyError), outcore.World() as world:
        replace(world, commits)
        tell(*values(world))
"""


def test_an_array_on_local_disks_stays_on_all_until_another_one_takes_its_place(clean):
    for value, processes in ((1, 4), (2, 2)):
        shape = (100 + value, 600)
        said = clean.run(REPLACE.format(value=value, shape=shape), processes)
        assert said == [f"{{{float(value)}}} {shape}"] * processes
        for host in ("host0", "host1"):
            kinds = sorted(file.name.split(".")[0] for file in (clean.directory / host / "array").iterdir())
            parts = processes // 2
            assert kinds == ["component"] * parts + ["manifest"] + ["table"] * parts  # of no other array
