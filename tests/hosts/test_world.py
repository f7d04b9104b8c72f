"""Worlds on several hosts: nodes, collectives, counters and locks."""

from __future__ import annotations


def test_each_host_is_a_node(hosts):
    said = hosts.run(
        """
        import socket
        import outcore

        with outcore.World(scratch=directory / "scratch") as world:
            tell(world.rank, world.size, world.node, world.nodes, socket.gethostname())
        """,
        processes=4,
    )
    assert said == ["0 4 0 2 host0", "1 4 0 2 host0", "2 4 1 2 host1", "3 4 1 2 host1"]


def test_counter_gives_each_number_once(hosts):
    said = hosts.run(
        """
        import outcore

        with outcore.World() as world:
            tasks = world.counter()
            mine = []
            while (task := tasks.next()) < 400:
                mine.append(task)
            everyone = world.gather(mine)
            if world.rank == 0:
                tell(sorted(sum(everyone, [])) == list(range(400)))
        """,
        processes=4,
    )
    assert said == ["True"]


def test_lock_lets_one_process_in(hosts):
    said = hosts.run(
        """
        import numpy as np
        import outcore

        with outcore.World() as world, outcore.GlobalArray(world, 4, distribution=[[0, 1, 2, 3]]) as array:
            lock = world.lock()
            world.barrier()
            for _ in range(50):
                with lock:  # not atomic but for the lock
                    array[3:4] = array[3:4] + 1
            world.barrier()
            tell(array[3])
        """,
        processes=4,
    )
    assert said == ["200.0"] * 4


def test_error_of_one_host_is_raised_on_all(hosts):
    said = hosts.run(
        """
        import socket
        import outcore

        with outcore.World() as world:
            try:
                with world.together("read input"):
                    if world.rank == 3:
                        raise ValueError(f"not on {socket.gethostname()}")
            except outcore.OutcoreError as error:
                tell("not on host1" in str(error))
        """,
        processes=4,
    )
    assert said == ["True"] * 4
