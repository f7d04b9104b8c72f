"""One contraction of bench einsum, in all processes of a job. Prints times and counters as JSON.

Arguments: way (outcore, first, apart, symmetric, program, numpy, dask), rows, columns, inner indices, bytes of
memory per process, repeats.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import outcore
from outcore.job import launch, machine, resources
from outcore.parallel import team
from outcore.tensor.plan.gemm import add_product

CORRECTING = 3  # runs before measuring, which correct the planner's rates
CHUNK = 256  # sides of the chunks of all arrays on disk

Array = np.ndarray[Any, np.dtype[np.float64]]


def block(seed: int, rows: range, columns: range) -> Array:
    """A block of an operand. It does not depend on other blocks, and the operand has low rank, so that results can
    be checked."""
    u = np.sin(np.outer(np.arange(rows.start, rows.stop) + 1, np.arange(1, 4)) * (seed + 1))
    v = np.cos(np.outer(np.arange(columns.start, columns.stop) + 1, np.arange(1, 4)) * (seed + 2))
    return u @ v.T


def expected(m: int, n: int, k: int, rows: range, columns: range, *, symmetric: bool = False) -> Array:
    left = block(1, rows, range(k))
    if symmetric:
        return left @ block(1, columns, range(k)).T
    return left @ block(2, range(k), columns)


def fill(array: Any, seed: int, rows: int, columns: int, side: int) -> None:
    for i in range(0, rows, side):
        band = range(i, min(i + side, rows))
        array[slices(band, range(columns))] = block(seed, band, range(columns))


def slices(rows: range, columns: range) -> tuple[slice, slice]:
    return slice(rows.start, rows.stop), slice(columns.start, columns.stop)


def by_outcore(
    m: int,
    n: int,
    k: int,
    memory: int,
    times: int,
    *,
    apart: bool = False,
    symmetric: bool = False,
    correcting: int = CORRECTING,
) -> dict[str, Any]:
    """`apart`: processes of a node share no panels. `symmetric`: the array is multiplied with itself. `correcting`:
    runs before those that are measured."""
    text = "ik,jk->ij" if symmetric else "ik,kj->ij"
    with outcore.World() as world:
        shapes = ((m, k), (k, n), (m, n))
        left, right, out = (
            outcore.DiskArray(world, shape, chunk=[min(CHUNK, side) for side in shape]) for shape in shapes
        )
        for seed, array, shape in ((1, left, shapes[0]), (2, right, shapes[1])):
            if world.rank == 0 and not (symmetric and seed == 2):
                fill(array, seed, *shape, 4 * CHUNK)
            array.flush()
        pair = (left, left) if symmetric else (left, right)
        for _ in range(correcting):  # also loads libraries
            outcore.einsum(text, *pair, out=out, memory=memory)
        plan = outcore.einsum.plan(text, *pair, out=out, memory=memory)
        if apart:
            rates = replace(plan.rates, sharing=1)
            plan = outcore.einsum.plan(text, *pair, out=out, memory=memory, rates=rates)
        seconds = []
        for _ in range(times):
            before = resources.resident_bytes()
            world.barrier()
            begun = time.perf_counter()
            _, counted = outcore.einsum(text, *pair, out=out, memory=memory, plan=plan, report=True)
            out.sync()
            seconds.append(time.perf_counter() - begun)
        rows, columns = range(max(0, m - 3), m), range(n)
        good = np.allclose(
            out[slices(rows, columns)],
            expected(m, n, k, rows, columns, symmetric=symmetric),
            rtol=1e-9,
            atol=1e-9 * k,
        )
        gemm = peak(plan.rates.threads) * world.size
        disk, _ = machine.planning_disk(world.scratch)
        answer = {
            "seconds": seconds,
            "good": bool(good),
            "moved": counted.actual.disk,
            "predicted_bytes": plan.predicted.disk,
            "predicted_seconds": plan.predicted.seconds,
            "bound": plan.bound_bytes,
            "flops": plan.predicted.flops,
            "workspace": plan.workspace_bytes,
            "peak_over_start": resources.peak_resident_bytes() - before,
            "gemm": gemm,
            "disk_seconds": counted.actual.disk_read / disk.read_bytes_per_s
            + counted.actual.disk_written / disk.write_bytes_per_s,
            "table": plan.table(),
        }
        for array in (left, right, out):
            array.close()
        return answer if world.rank == 0 else {}


def by_program(m: int, n: int, k: int, memory: int, times: int) -> dict[str, Any]:
    """out = map(left right) right^T, with an intermediate that does not fit into memory."""
    with outcore.World() as world:
        shapes = ((m, k), (k, n))
        left, right = (
            outcore.DiskArray(world, shape, chunk=[min(CHUNK, side) for side in shape]) for shape in shapes
        )
        for seed, array, shape in ((1, left, shapes[0]), (2, right, shapes[1])):
            if world.rank == 0:
                fill(array, seed, *shape, 4 * CHUNK)
            array.flush()

        def one() -> Any:
            with outcore.Program(world, memory=memory) as p:
                x, y = p.input(left, "x"), p.input(right, "y")
                z = p.output(outcore.einsum("ik,kj->ij", x, y), "z")
                p.map(lambda box, block: block / k, z, out=z)
                w = p.output(outcore.einsum("ij,kj->ik", z, y), "w")
            report = p.run()
            world.barrier()
            good = np.allclose(z.result[m - 3 :, :], expected(m, n, k, range(m - 3, m), range(n)) / k)
            world.barrier()
            for each in (z, w):
                each.result.close()
            return report, good

        for _ in range(CORRECTING):
            one()
        reports = [one() for _ in range(times)]
        report = reports[-1][0]
        answer = {
            "seconds": [each.seconds for each, _ in reports],
            "good": all(bool(good) for _, good in reports),
            "moved": report.moved_bytes,
            "predicted_bytes": report.plan.moved_bytes,
            "predicted_seconds": report.plan.seconds,
            "report": str(report),
        }
        left.close()
        right.close()
        return answer if world.rank == 0 else {}


def peak(threads: int) -> float:
    """Operations per second of all threads together; each thread multiplies matrices of 1024 x 1024."""
    best = 0.0
    for _ in range(3):
        count = [0] * threads

        def work(thread: int, _: team.Stopped, count: list[int] = count) -> None:
            a, b, c = (np.ones((1024, 1024)) for _ in range(3))
            add_product(a, b, c)
            until = time.perf_counter() + 0.3
            while time.perf_counter() < until:
                add_product(a, b, c)
                count[thread] += 1

        begun = time.perf_counter()
        team.run(threads, work)
        best = max(best, 2 * 1024**3 * sum(count) / (time.perf_counter() - begun))
    return best


def by_numpy(m: int, n: int, k: int, memory: int, times: int) -> dict[str, Any]:
    """In core, with NumPy's threads: reads the files whole, multiplies, and writes the product."""
    directory = Path(os.environ["OUTCORE_SCRATCH"])
    paths = [directory / f"numpy-{name}" for name in ("left", "right", "out")]
    for seed, path, shape in ((1, paths[0], (m, k)), (2, paths[1], (k, n))):
        array = np.lib.format.open_memmap(path, "w+", np.float64, shape)
        fill(array, seed, *shape, 4 * CHUNK)
        array.flush()
        del array
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        result = np.load(paths[0]) @ np.load(paths[1])
        np.save(paths[2].with_suffix(".npy"), result)
        seconds.append(time.perf_counter() - begun)
    good = np.allclose(
        result[-3:], expected(m, n, k, range(max(0, m - 3), m), range(n)), rtol=1e-9, atol=1e-9 * k
    )
    return {"seconds": seconds, "good": bool(good)}


def by_dask(m: int, n: int, k: int, memory: int, times: int) -> dict[str, Any]:
    """dask.array.tensordot on zarr; chunks are so large that three per thread fit into the memory."""
    dask, da, zarr = (import_module(each) for each in ("dask", "dask.array", "zarr"))
    directory = os.environ["OUTCORE_SCRATCH"]
    side = max(64, int((memory / 8 / 3 / 4) ** 0.5) // 64 * 64)
    shapes = {"left": (m, k), "right": (k, n)}
    for seed, (name, shape) in enumerate(shapes.items(), 1):
        array = zarr.create_array(
            f"{directory}/dask-{name}",
            shape=shape,
            chunks=tuple(min(side, x) for x in shape),
            dtype="f8",
            compressors=None,
            overwrite=True,
        )
        fill(array, seed, *shape, side)
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        left, right = (da.from_zarr(f"{directory}/dask-{name}") for name in shapes)
        with dask.config.set(scheduler="threads"):
            da.to_zarr(
                da.tensordot(left, right, axes=1), f"{directory}/dask-out", overwrite=True, compute=True
            )
        seconds.append(time.perf_counter() - begun)
    found = zarr.open_array(f"{directory}/dask-out")[-3:]
    good = np.allclose(found, expected(m, n, k, range(max(0, m - 3), m), range(n)), rtol=1e-9, atol=1e-9 * k)
    return {
        "seconds": seconds,
        "good": bool(good),
        "version": dask.__version__,
        "peak": resources.peak_resident_bytes(),
    }


def main() -> None:
    ways: dict[str, Callable[[int, int, int, int, int], dict[str, Any]]] = {
        "outcore": by_outcore,
        "first": partial(by_outcore, correcting=0),
        "apart": partial(by_outcore, apart=True),
        "symmetric": partial(by_outcore, symmetric=True),
        "program": by_program,
        "numpy": by_numpy,
        "dask": by_dask,
    }
    numbers = [int(each) for each in sys.argv[2:7]]
    if sys.argv[1] in ("outcore", "first", "apart", "symmetric", "program"):
        launch.world()
    answer = ways[sys.argv[1]](*numbers)
    if answer:
        print(json.dumps(answer), flush=True)
