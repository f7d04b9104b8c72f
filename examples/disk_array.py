"""A section of a global array goes to disk and comes back transposed: mpiexec -n 2 python disk_array.py"""

import numpy as np

import outcore

with outcore.World() as world, outcore.GlobalArray(world, (500, 400)) as g:
    if world.rank == 0:
        g[...] = np.arange(200_000.0).reshape(500, 400)
    g.sync()
    with outcore.DiskArray(world, (1000, 1000), path="example.array", overwrite=True) as d:
        request = d.write_all_async(g.section(np.s_[100:300, 50:250]), np.s_[700:900, 0:200])
        request.wait()  # compute on before this
    d = outcore.DiskArray.open(world, "example.array", read_only=False)
    block = np.empty((200, 200))
    d.read_all(block, np.s_[700:900, 0:200], order=(1, 0))
    if world.rank == 0:
        print(f"sum {block[0].sum():.1f}, expected {g[100:300, 50].sum():.1f}")
    d.remove()
