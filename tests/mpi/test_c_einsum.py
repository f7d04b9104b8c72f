"""Plans by Python as text, carried out by the C interface."""

from __future__ import annotations

import ctypes
import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.einsum import einsum

MEMORY, GLOBAL, DISK = range(3)
FLOAT64 = 7
KINDS = {"memory": MEMORY, "global": GLOBAL, "disk": DISK}


class Operand(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("kind", "array", "type", "rank")),
        *((name, ctypes.c_void_p) for name in ("shape", "stride_bytes", "memory")),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("memory_bytes", ctypes.c_int64),
        ("plan", ctypes.c_char_p),
        ("scale", ctypes.c_void_p),
        ("accumulate", ctypes.c_int),
        ("threads", ctypes.c_int),
    )


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(next((Path(outcore._core.__file__).parent / "lib").glob("liboutcore.so*"))))


class Arrays:
    """Arrays of the C interface, in a world of its own, and their values."""

    def __init__(self, library, comm):
        self.library, self.world, self.rank, self._kept = library, ctypes.c_int(), comm.rank, []
        assert library.oc_world_mpi(comm.py2f(), None, ctypes.byref(self.world)) == 0

    def make(self, kind, values):
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        begin = (ctypes.c_int64 * values.ndim)()
        handle = ctypes.c_int()
        self._kept += [shape, values]
        address = values.ctypes.data_as(ctypes.c_void_p)
        if kind != MEMORY:
            name = "dra" if kind == DISK else "ga"
            create, put, sync = (
                getattr(self.library, f"oc_{name}_{each}") for each in ("create", "put", "sync")
            )
            assert create(self.world, FLOAT64, values.ndim, shape, None, ctypes.byref(handle)) == 0
            if self.rank == 0:
                assert put(handle, begin, shape, address, None) == 0
            assert sync(handle) == 0
        return Operand(kind, handle, FLOAT64, values.ndim, ctypes.addressof(shape), None, address)

    def values(self, operand, shape):
        result = np.empty(shape)
        extents, begin = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))()
        get = self.library.oc_dra_get if operand.kind == DISK else self.library.oc_ga_get
        assert get(operand.array, begin, extents, result.ctypes.data_as(ctypes.c_void_p), None) == 0
        return result

    def run(self, subscripts, operands, out, plan, memory=0):
        options = Options(ctypes.sizeof(Options), memory, plan.encode(), None, 0, 1)
        return self.library.oc_einsum(
            self.world,
            subscripts.encode(),
            len(operands),
            (Operand * len(operands))(*operands),
            ctypes.byref(out),
            ctypes.byref(options),
            None,
        )


def described(world, kind, shape):
    """A Python array of this kind, to plan with."""
    if kind == MEMORY:
        return np.zeros(shape)
    return (outcore.DiskArray if kind == DISK else outcore.GlobalArray)(world, shape)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "out"),
    [
        ("ik,kj->ij", [(90, 70), (70, 80)], (90, 80)),
        ("Qia,Qjb->iajb", [(20, 6, 9), (20, 6, 9)], (6, 9, 6, 9)),
        ("ijcd,Qac,Qbd->ijab", [(4, 4, 7, 7), (15, 7, 7), (15, 7, 7)], (4, 4, 7, 7)),
        ("bik,bkj,k->ij", [(3, 20, 30), (3, 30, 10), (30,)], (20, 10)),
    ],
)
@pytest.mark.parametrize("where", ["memory", "global", "disk"])
def test_plans_of_python_are_carried_out_by_c(comm, library, shared_tmp_path, subscripts, shapes, out, where):
    random = np.random.default_rng(7)
    values = [random.standard_normal(shape) for shape in shapes]
    kind, result = KINDS[where], DISK if where == "disk" else GLOBAL
    given = Arrays(library, comm)
    operands = [given.make(kind, each) for each in values]
    target = given.make(result, np.zeros(out))
    with outcore.World(comm, scratch=shared_tmp_path, memory="64MB") as world:
        arrays = [described(world, kind, shape) for shape in shapes]
        for memory, sharing in ((20_000, 1), (20_000, world.node_size), (10_000_000, 1)):
            rates = replace(ASSUMED, processes=world.size, sharing=sharing, read=1e8, network=1e8)
            plan = einsum.plan(
                subscripts, *arrays, out=described(world, result, out), memory=memory, rates=rates
            )
            text = plan.text()
            assert given.run(subscripts, operands, target, text, memory) == 0, library.oc_last_error()
            wanted = np.einsum(subscripts, *values)
            np.testing.assert_allclose(given.values(target, out), wanted, rtol=1e-11, atol=1e-11)
            assert given.run(subscripts, operands, target, text.replace("2", "3", 1), memory) == errno.EINVAL


def test_processes_of_a_node_share_panels_by_a_plan(comm, library, shared_tmp_path):
    if comm.size == 1:
        pytest.skip("one process")
    n = 150
    a, b = np.random.default_rng(3).standard_normal((2, n, n))
    given = Arrays(library, comm)
    operands, target = [given.make(DISK, a), given.make(DISK, b)], given.make(DISK, np.zeros((n, n)))
    with outcore.World(comm, scratch=shared_tmp_path, memory="64MB") as world:
        arrays = [described(world, DISK, (n, n)) for _ in range(3)]
        rates = replace(
            ASSUMED, processes=world.size, nodes=world.nodes, sharing=world.node_size, read=1e7, write=1e7
        )
        plan = einsum.plan("ik,kj->ij", *arrays[:2], out=arrays[2], memory=40_000, rates=rates)
        assert plan.statements[0].plan.sharing == world.node_size
        assert given.run("ik,kj->ij", operands, target, plan.text()) == 0
        np.testing.assert_allclose(given.values(target, (n, n)), a @ b, rtol=1e-11, atol=1e-11)


def test_plans_that_c_does_not_carry_out_have_no_text(comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="64MB") as world:
        whole, parts = np.zeros((6, 6)), np.zeros((6, 6), np.float32)
        tiled = outcore.Array(world, [outcore.Tiling(6, tile=3)] * 2)
        for operands, says in (
            ((whole, parts), "several types"),
            ((tiled, whole), "has tiles"),
            ((whole.astype(int), whole.astype(int)), "elements of int64"),
        ):
            plan = einsum.plan("ik,kj->ij", *operands, rates=replace(ASSUMED, processes=world.size))
            with pytest.raises(OutcoreError, match=says) as caught:
                plan.text()
            assert caught.value.errno == errno.ENOTSUP
        plan = einsum.plan("ii,ij->j", whole, whole, rates=replace(ASSUMED, processes=world.size))
        with pytest.raises(OutcoreError, match="a letter twice"):
            plan.text()
