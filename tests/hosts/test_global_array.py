"""Global arrays whose parts lie on several hosts, and node arrays, of which each host has its own."""

from __future__ import annotations


def test_get_put_and_accumulate(hosts):
    said = hosts.run(
        """
        import numpy as np
        import outcore

        with outcore.World() as world, outcore.GlobalArray(world, (300, 500)) as array:
            model = np.arange(150000.0).reshape(300, 500)
            rows = slice(world.rank * 75, world.rank * 75 + 75)
            array[rows, :] = model[rows, :]
            array.sync()
            everything = np.array_equal(array[...], model)
            strided = np.array_equal(array[10:290:7, 499:3:-2], model[10:290:7, 499:3:-2])
            world.barrier()
            array.acc(np.s_[20:280, 30:470], np.ones((260, 440)), alpha=world.rank + 1)
            array.sync()
            model[20:280, 30:470] += 1 + 2 + 3 + 4
            tell(everything, strided, np.array_equal(array[...], model))
        """,
        processes=4,
    )
    assert said == ["True True True"] * 4


def test_one_sided_while_the_target_computes(hosts):
    said = hosts.run(
        """
        import time
        import numpy as np
        import outcore

        with outcore.World() as world, outcore.GlobalArray(world, 200, distribution=[[0, 100]]) as array:
            array.local[...] = world.rank
            world.barrier()
            computed = world.counter()
            end = time.monotonic() + 3
            if world.rank == 1:
                while time.monotonic() < end:
                    np.linalg.eigh(np.eye(60))
            else:
                for _ in range(50):
                    array.acc(np.s_[100:200], np.ones(100))
                world.flush()
                tell(array[150], time.monotonic() < end)
            world.barrier()
        """,
        processes=2,
    )
    assert said == ["51.0 True"]


def test_a_node_array_is_shared_by_the_processes_of_its_host(hosts):
    said = hosts.run(
        """
        import outcore

        with outcore.World() as world:
            for cycle in range(1 + world.node):  # more often on the second host: no host waits for another
                with outcore.NodeArray(world, (world.node_size, 1001)) as array:
                    array.view[world.node_rank, :] = 10 * cycle + world.rank
                    array.barrier()
                    tell(world.rank, cycle, array.view[:, 1000].tolist())
                    array.barrier()
            world.barrier()
        """,
        processes=4,
    )
    assert said == [
        "0 0 [0.0, 1.0]",
        "1 0 [0.0, 1.0]",
        "2 0 [2.0, 3.0]",
        "2 1 [12.0, 13.0]",
        "3 0 [2.0, 3.0]",
        "3 1 [12.0, 13.0]",
    ]
