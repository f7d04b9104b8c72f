"""Contractions where the processes of each host share panels, and pieces of work are dealt out to hosts."""

from __future__ import annotations


def test_hosts_are_dealt_work_and_their_processes_share_panels(hosts):
    said = hosts.run(
        """
        from dataclasses import replace
        import numpy as np
        import outcore
        from outcore.tensor.plan.rates import ASSUMED, sharing_of

        with outcore.World(memory="100MB") as world:
            n = 240
            values = np.random.default_rng(1).standard_normal((2, n, n))
            a, b, out = (outcore.DiskArray(world, (n, n)) for _ in range(3))
            a.write_all(values[0])
            b.write_all(values[1])
            rates = replace(
                ASSUMED, processes=4, nodes=2, sharing=sharing_of(world), read=1e8, write=1e8, network=1e10
            )
            plan = outcore.einsum.plan("ik,kj->ij", a, b, out=out, memory="60kB", rates=rates)
            outcore.einsum("ik,kj->ij", a, b, out=out, plan=plan)
            (statement,) = plan.statements
            good = np.allclose(out[...], values[0] @ values[1], atol=1e-10)
            world.barrier()
            tell(world.nodes, statement.plan.sharing, good)
            for array in (a, b, out):
                array.close()
        """,
        processes=4,
    )
    assert said == ["2 2 True"] * 4
