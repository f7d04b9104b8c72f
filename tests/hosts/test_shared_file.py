"""Shared files and record files on several hosts: each disk holds a part, which other hosts reach by calls."""

from __future__ import annotations

import pytest

ROUND_ROBIN = """
import numpy as np
import outcore

with outcore.World(scratch=directory / "{where}") as world, outcore.SharedFile(world, "blocks") as file:
    blocks, size = 40, 50_000
    for block in range(world.rank, blocks, world.size):
        file.write(np.full(size, block + 1, np.uint8), offset=block * size)
    file.sync()
    world.barrier()
    good = True
    for block in range(blocks):
        got = np.zeros(size, np.uint8)
        file.read(got, offset=block * size)
        good = good and bool((got == block + 1).all())
    tell(file.placement, good)
    world.barrier()
"""


@pytest.mark.parametrize(("where", "placement"), [("scratch", "local"), ("shared", "shared")])
def test_what_all_have_written_is_read_by_all(hosts, where, placement):
    assert hosts.run(ROUND_ROBIN.format(where=where), 4) == [f"{placement} True"] * 4
    hosts.clear()


def test_both_disks_hold_a_part(hosts):
    said = hosts.run(
        """
        import numpy as np
        import outcore

        with outcore.World(scratch=directory / "scratch") as world:
            with outcore.SharedFile(world, "of one writer", components_per_node=1) as file:
                if world.rank == 0:
                    file.write(np.ones(8_000_000, np.uint8), offset=0)
                file.flush()
                tell(3_500_000 < held(directory / "scratch") < 4_500_000)
        """,
        processes=2,
    )
    hosts.clear()
    assert said == ["True"] * 2


def test_records_of_all_hosts(hosts):
    said = hosts.run(
        """
        import outcore

        with outcore.World(scratch=directory / "scratch") as world:
            with outcore.RecordFile(world, "vectors", 200) as file:
                for record in range(world.rank, 200, world.size):
                    file[record] = bytes([record % 251]) * (100 * record)
                file.sync()
                world.barrier()
                tell(all(file[k] == bytes([k % 251]) * (100 * k) for k in range(200)))
                world.barrier()
        """,
        processes=4,
    )
    hosts.clear()
    assert said == ["True"] * 4
