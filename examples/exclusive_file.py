"""Reads each record of a scratch file while it computes with the record before."""

import numpy as np

from outcore import ExclusiveFile

records = np.random.default_rng(1).random((16, 1 << 17))  # 16 records of 1 MiB
with ExclusiveFile("integrals") as file:
    for i, record in enumerate(records):
        file.write(record, offset=i * record.nbytes)
    buffers, total = np.empty((2, 1 << 17)), 0.0
    request = file.read_async(buffers[0], offset=0)
    for i in range(len(records)):
        request.wait()
        if i + 1 < len(records):  # the next one is on its way while this one is summed
            request = file.read_async(buffers[(i + 1) % 2], offset=(i + 1) * buffers[0].nbytes)
        total += buffers[i % 2].sum()
    file.delete()
print(f"sum {total:.6f}, expected {records.sum():.6f}")
