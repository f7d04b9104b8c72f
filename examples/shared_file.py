"""Any process writes blocks, and any other reads them: mpiexec -n 2 python shared_file.py"""

import numpy as np

import outcore

with outcore.World() as world, outcore.SharedFile(world, "blocks", typical_request=80_000) as f:
    tasks, count = world.counter(), 40
    while (k := tasks.next()) < count:  # the next free process writes the next block
        f.write(np.full(10_000, float(k)), offset=k * 80_000)
    world.barrier()
    total, buffer = 0.0, np.empty(10_000)
    for k in range(world.rank, count, world.size):  # and reads what others wrote
        f.read(buffer, offset=k * 80_000)
        total += buffer.sum()
    total = world.all_reduce(total)
    with outcore.RecordFile(world, "vectors", records=100) as r:
        r[world.rank] = buffer[: 10 + world.rank]  # records have any size, which may change
        world.barrier()
        sizes = [r.size(k) for k in range(world.size)]
    if world.rank == 0:
        print(f"records {sizes}; sum {total:.1f}, expected {10_000.0 * sum(range(count)):.1f}")
