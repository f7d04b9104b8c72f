"""The traffic to and from disk of ladder products of coupled cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from outcore.chem.cc.plan.ladder_kernels import LadderProduct, Made
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.cc.plan.triple_sizes import TripleDerivativesKernel, least_read
from outcore.tensor.plan.statements import Touched

SIZES = Sizes(12, 30, (4,), (8,), 6, (0, 30))


class Held(NamedTuple):
    name: str
    nbytes: int


V, T, A = Held("V", 30 * 20 * 4), Held("T", 20 * 10 * 8), Held("A", 30 * 10 * 8)
BVO, BVV = Held("Bvo", 900), Held("Bvv", 1800)


def product(processes: int = 1, *, stored: bool = True) -> LadderProduct:
    """Shapes: integrals of 30 pairs pq and 20 pairs cd, amplitudes, a product of 10 pairs ij."""
    made = Made(30.0 * 20.0, 30.0 * 20.0, {BVO: 30.0, BVV: 60.0})
    return LadderProduct(SIZES, 4, 1, processes, made, (V,) if stored else (), (T,), (A,), (10,))


def test_integrals_and_amplitudes_go_by_once_for_each_part() -> None:
    found = product().moved([1.0, 1.0])
    assert found[V] == Touched(2 * V.nbytes, 0)
    assert found[T] == Touched(2 * T.nbytes, 0)
    assert found[A] == Touched(0, A.nbytes)


def test_rows_that_another_run_has_made_are_not_counted() -> None:
    found = product().moved([0.0, 0.5])
    assert found[V].read == V.nbytes / 2
    assert found[T].read == T.nbytes
    assert found[A].written == A.nbytes / 4


def of_many(count: int) -> tuple[LadderProduct, list[Held], list[Held]]:
    """The traffic for this number of vectors."""
    vectors, results = [[Held(f"{name}{n}", T.nbytes) for n in range(count)] for name in "TA"]
    one = product()
    return (
        replace(one, amplitudes=tuple(vectors), results=tuple(results), columns=(10 * count,)),
        vectors,
        results,
    )


@pytest.mark.parametrize(("count", "parts"), [(3, 1), (3, 2), (3, 3), (4, 2), (2, 4), (3, 9)])
def test_parts_have_all_of_each_vector_once(count: int, parts: int) -> None:
    kernel, _, _ = of_many(count)
    shares = np.zeros(count)
    for part in range(parts):
        for vector, nth, of_each in kernel.of_part(part, parts):
            assert 0 <= nth < of_each
            shares[vector] += 1 / of_each
    assert shares == pytest.approx(np.ones(count))


def test_vectors_share_what_is_read_of_integrals() -> None:
    kernel, vectors, results = of_many(4)
    assert [kernel.parts(memory) for memory in (1e9, 1.0)] == [1, 4 * product().parts(1.0)]
    for parts, of_vector in ((1, 1), (2, 1), (4, 1), (8, 2)):
        found = kernel.moved([1.0] * parts)
        assert found[V].read == parts * V.nbytes
        assert all(found[each].read == of_vector * each.nbytes for each in vectors)
        assert all(found[each] == Touched(0, each.nbytes) for each in results)


def test_each_process_packs_all_amplitudes() -> None:
    assert product(2).moved([1.0])[T].read == 2 * T.nbytes


def test_integrals_that_are_made_read_three_index_integrals_in_each_part() -> None:
    found = product(stored=False).moved([1.0, 1.0, 1.0])
    assert V not in found
    assert found[BVV].read == 3 * SIZES.auxiliary * 60


def test_little_memory_has_to_move_more() -> None:
    everything = [V, T, A]
    assert product().least_bytes(everything, 1 << 20) == V.nbytes + T.nbytes + A.nbytes
    assert product().least_bytes(everything, 16 * 4) >= (2 * 30 * 20 * 10 / 4 - 2 * 16) * 4
    assert product().least_bytes([], 16 * 4) == 0


@pytest.mark.parametrize("stored", [True, False])
def test_more_memory_takes_fewer_parts(stored: bool) -> None:
    parts = [product(stored=stored).parts(memory) for memory in (1e3, 1e5, 1e8)]
    assert parts == sorted(parts, reverse=True) and parts[-1] == 1


# ---- (T) ----


def test_with_room_for_all_orbitals_triples_read_each_once() -> None:
    assert least_read(60, 1000.0, 60 * 1000.0) == 60 * 1000.0
    assert least_read(60, 0.0, 1.0) == 0


@pytest.mark.parametrize("block", [2, 4, 5])
def test_three_blocks_in_memory_read_more_than_the_bound(block: int) -> None:
    """Pairs of blocks stay while all third ones go by."""
    virtual, orbital = 60, 1000.0
    count = virtual // block
    blocks = sum(1 + (a != b) + b for a in range(count) for b in range(a + 1))
    least = least_read(virtual, orbital, 3 * block * orbital)
    assert virtual * orbital < least < blocks * block * orbital


@pytest.mark.parametrize("block", [2, 4, 5, 30, 60])
def test_derivatives_of_triples_move_more_than_the_bound(block: int) -> None:
    """Three blocks are in memory, with their integrals, amplitudes and sums."""
    o, v, q = 4, 60, 100
    sizes = replace(SIZES, auxiliary=q, occupied=(o,), virtual=(v,))
    shapes = {"T": o * o * v * v, "Boo": q * o * o, "Bvo": q * v * o, "Bvv": q * v * v}
    operands = tuple(Held(name, 8 * size) for name, size in shapes.items())
    sums = [Held(f"{each.name}3", each.nbytes) for each in operands]
    kernel = TripleDerivativesKernel(sizes, 1, operands, (sums[0], *sums[2:], sums[1], Held("S3", 8)))
    everything = [*operands, *kernel.results]
    orbital = 2 * (operands[0].nbytes / 2 + operands[2].nbytes + operands[3].nbytes / 2) / v
    moved = sum(each.total for each in kernel.moved([1.0] * (v // block)).values())
    least = kernel.least_bytes(everything, 3 * block * orbital)
    assert least <= moved
    if 3 * block < v:
        assert least > v * orbital
    else:
        assert least == pytest.approx(v * orbital)
    assert kernel.least_bytes([], 1.0) == 0
