"""A matrix in the memory of all processes: `mpiexec -n 4 python examples/global_array.py`."""

import numpy as np

import outcore
from outcore import linalg as am

with (
    outcore.World() as world,
    outcore.GlobalArray(world, (1000, 1000)) as a,
    outcore.GlobalArray(world, 1, "int64") as task,
):
    while (row := task.read_increment(0)) < 1000:  # each row goes to the next free process
        a[row, :] = np.cos(row * np.arange(1000.0))
    a.sync()
    a.acc(np.s_[0:10, 0:10], np.ones((10, 10)), alpha=0.5)  # contributions of all processes add up
    am.symmetrize(a)
    norm = am.norm(a)
    if world.rank == 0:
        print(
            f"element [3, 7]: {a[3, 7]:.6f}; process {a.distribution.owner([3, 7])} holds it; norm {norm:.3f}"
        )
    a.sync()
