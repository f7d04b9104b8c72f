"""Processes make different statements: all get the same error, and go on in step."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import outcore
from outcore import Array, OutcoreError, Program, Tiling

TILES = [Tiling(8, tile=3)] * 2
VALUES = np.random.default_rng(1).standard_normal((8, 8))


@pytest.fixture
def world(comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="100MB") as made:
        yield made


def recorded(world, record):
    with Program(world, memory="1MB") as p:
        record(p)
    p.run()


# The statement of process 0 (r == 0) and of all others (r == 1).
DIFFERENT = {
    "layout": lambda w, a, r: Array(w, [8 + r]),
    "layout that cannot be": lambda w, a, r: Array(w, [r]),
    "wrapped types": lambda w, a, r: Array.wrap(w, VALUES.astype("f4") if r else VALUES, TILES),
    "wrapped layouts": lambda w, a, r: Array.wrap(w, VALUES, TILES if r else [8, 8]),
    "generated types": lambda w, a, r: Array.generated(w, TILES, len, "f4" if r else "f8"),
    "no array": lambda w, a, r: Array.from_numpy(w, VALUES if r else [1.0]),
    "numbers": lambda w, a, r: a + (1.0 + r),
    "number and array": lambda w, a, r: a + (1.0 if r else a),
    "sum and product": lambda w, a, r: a + a if r else a * a,
    "in place": lambda w, a, r: a.__iadd__(a) if r else a.__isub__(a),
    "alpha": lambda w, a, r: a.axpy(1.0 + r, a),
    "value": lambda w, a, r: a.fill(1.0 + r),
    "axes": lambda w, a, r: a.transpose(*((0, 1) if r else (1, 0))),
    "reductions": lambda w, a, r: a.sum() if r else a.norm(),
    "extremes": lambda w, a, r: a.max() if r else a.min(),
    "scale": lambda w, a, r: outcore.einsum("ik,kj->ij", a, a, scale=1.0 + r),
    "accumulate": lambda w, a, r: outcore.einsum("ik,kj->ij", VALUES, VALUES, out=a, accumulate=bool(r)),
    "out": lambda w, a, r: outcore.einsum("ik,kj->ij", VALUES, VALUES, out=a if r else None, world=w),
    "symmetry": lambda w, a, r: outcore.einsum("ik,jk->ij", a, a, symmetry="symmetric(0,1)" if r else None),
    "plan": lambda w, a, r: outcore.einsum("ik,kj->ij", a, a, plan=None if r else "x"),
    "operands": lambda w, a, r: outcore.einsum("ik,kj->ij", a, a if r else VALUES),
    "statements": lambda w, a, r: recorded(
        w, lambda p: p.output(outcore.einsum("ik,kj->ij" if r else "ik,jk->ij", p.input(a), p.input(VALUES)))
    ),
    "outputs": lambda w, a, r: recorded(w, lambda p: (p.output if r else str)(p.combine(2 * p.input(a)))),
    "factors": lambda w, a, r: recorded(w, lambda p: p.output(p.combine((1.0 + r) * p.input(a)))),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_statements_are_one_error(world, name):
    call = DIFFERENT[name]
    if world.size == 1:
        pytest.skip("one process agrees with itself")
    with Array.from_numpy(world, VALUES, TILES, where="global") as a:
        error = None
        try:
            call(world, a, int(world.rank > 0))
        except OutcoreError as caught:
            error = caught.errno
        assert set(world.gather(error)) == {errno.EINVAL}
        if name not in ("in place", "value"):
            assert np.array_equal(a.to_numpy(), VALUES)
        world.barrier()
