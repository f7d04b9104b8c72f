"""Work goes to the data: the largest elements of a global array, found where they lie.

python procedures.py, or mpiexec -n 4 python procedures.py
"""

import numpy as np

import outcore

with outcore.World() as world, outcore.GlobalArray(world, (1000, 1000)) as array:
    array.local[...] = np.random.default_rng(world.rank).random(array.local.shape)
    array.local.flat[17] = 2 + world.rank

    def largest(caller, header, payload):
        """The largest elements of this process's part. It also runs while this process computes."""
        return np.sort(array.local, axis=None)[-int(header) :]

    world.register("largest", largest)
    world.barrier()
    if world.rank == 0:
        requests = [world.call(process, "largest", b"3") for process in range(world.size)]
        found = np.sort(np.concatenate([request.wait().view(np.float64) for request in requests]))
        print(f"largest of {array.size} elements: {found[-1]}, expected {1.0 + world.size}")
    world.barrier()
