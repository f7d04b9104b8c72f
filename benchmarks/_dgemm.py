"""The rate of matrix products on this machine; benchmarks compare rates of methods with it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from outcore.parallel import team


def dgemm_rate(threads: int) -> float:
    """Operations per second of DGEMM, with one matrix product in each thread."""
    size, repeats = 1000, 4
    a = np.ones((size, size))
    outs = [np.empty((size, size)) for _ in range(threads)]

    def work(thread: int, _: Callable[[], bool]) -> None:
        for _turn in range(repeats):
            np.matmul(a, a, out=outs[thread])

    with team.blas_of_one_thread():
        begin = time.perf_counter()
        team.run(threads, work)
        seconds = time.perf_counter() - begin
    return 2.0 * size**3 * repeats * threads / seconds
