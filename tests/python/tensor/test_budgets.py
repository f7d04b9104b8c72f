"""Resident memory stays within the budget of each process when `einsum` and a Program contract arrays on
disk."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from dataclasses import replace

import numpy as np

import outcore
from outcore.job import launch
from outcore.tensor.plan.rates import ASSUMED

MEMORY, LIMIT, CACHE = 6_000_000, 34_000_000, 300_000
STAGED = 4 << 20  # what is on its way between processes


SHARED = bool(int(sys.argv[2]))


def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def took(world, call):
    "Bytes that became resident, and that were accounted to the budget."
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    resident, used = status("VmRSS"), world.budget.used_bytes
    call()
    return status("VmHWM") - resident, world.budget.peak_bytes - used


def rates(world):
    "Nothing is measured, which takes memory, too."
    sharing = world.node_size if SHARED else 1
    return replace(ASSUMED, processes=world.size, nodes=world.node_count, sharing=sharing, read=2e8, write=2e8)


def made(world, n):
    array = outcore.DiskArray(world, (n, n), chunk=(128, 128), cache_bytes=CACHE)
    for begin in range(world.rank * 256, n, world.size * 256):
        array[begin : begin + 256] = np.ones((min(256, n - begin), n))
    array.sync()
    world.barrier()
    array.sync()
    return array


def contract(world, n):
    a, b, c = (made(world, n) for _ in range(3))
    plan = outcore.einsum.plan("ik,kj->ij", a, b, out=c, memory=MEMORY, rates=rates(world))
    assert n < 1000 or plan.statements[0].plan.sharing == (world.node_size if SHARED else 1)
    result = took(world, lambda: outcore.einsum("ik,kj->ij", a, b, out=c, memory=MEMORY, plan=plan))
    assert (c[:3, -3:] == n).all()
    world.barrier()
    for each in (a, b, c):
        each.close()
    return *result, MEMORY + 3 * CACHE + (STAGED if world.size > 1 else 0)


def program(world, n):
    a = made(world, n)
    with outcore.Program(world, memory=MEMORY) as p:
        x, y = p.input(a, "x"), p.output(p.array((n, n)), "y")
        for _ in p.iterate(2):
            v = p.map(lambda box, block: block / n, outcore.einsum("ik,kj->ij", x, x))
            outcore.einsum("ik,kj->ij", v, x, out=y, accumulate=True)
            y += -0.5 * v
    plan = p.plan(rates(world))
    assert max(plan.memory) <= MEMORY
    result = took(world, lambda: p.run(plan=plan))
    assert (y.result[:3, -3:] == 2 * n - 1).all()
    world.barrier()
    y.result.close()
    a.close()
    return *result, MEMORY + CACHE + plan.beside_bytes


with outcore.World(launch.world() or "self", memory=LIMIT, scratch=sys.argv[1]) as world:
    ones = np.ones((400, 400))  # what is loaded and made once, by each process
    with outcore.World("self", memory=LIMIT, scratch=sys.argv[1]) as alone:
        plan = outcore.einsum.plan("ik,kj->ij", ones, ones, memory=MEMORY, world=alone, rates=rates(alone))
        outcore.einsum("ik,kj->ij", ones, ones, memory=MEMORY, world=alone, plan=plan)
    for run in (contract, program):
        run(world, 300)
        # Two threads of one process take turns with small caches: a smaller program moves half as many chunks.
        alone = world.size == 1
        resident, accounted, predicted = run(world, 1024 if alone and run is program else 1250)
        if world.rank == 0:
            print(run.__name__)
        # Panels of others are mapped, too; a process that waits for them has touched more of them.
        assert resident <= LIMIT + (MEMORY if SHARED else 0), resident
        assert world.budget.peak_bytes <= LIMIT, world.budget.peak_bytes
        assert accounted <= predicted, (accounted, predicted)
        if alone:  # else memory that is shared counts at all that have it
            assert resident <= MEMORY + (4_000_000 if run is contract else 11_000_000), resident
"""


@pytest.mark.memory
@pytest.mark.launcher
@pytest.mark.parametrize(
    ("processes", "shared"),
    [(1, 0), pytest.param(2, 0, marks=pytest.mark.long), (2, 1), pytest.param(4, 1, marks=pytest.mark.long)],
)
def test_what_is_resident_stays_within_the_budget(tmp_path, processes, shared):
    """Three and four arrays of 12.5 MB each, with 6 MB for panels, 34 MB for all. One process
    has four of 8.4 MB, and 17 MB for them."""
    start = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(processes)] if processes > 1 else []
    done = subprocess.run(
        [*start, sys.executable, "-c", RUN, tmp_path, str(shared)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "contract\nprogram\n"
