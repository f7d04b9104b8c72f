"""The tables of the arrays of a coupled-cluster calculation."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc import methods
from outcore.chem.cc.spaces import PAIR, Spaces
from outcore.chem.cc.specs import ArraySpec, Role
from outcore.tensor.layout import Layout
from outcore.tensor.tiling import Tiling

if TYPE_CHECKING:
    from outcore.chem.cc.plan import Sizes

_BY_TILES = 8  # uses of what is dressed, contracted with singles, and added up
_ONCE = 2  # is written in an iteration, and read

_input = partial(ArraySpec, role=Role.INTEGRALS, uses=_BY_TILES)
_scratch = partial(ArraySpec, role=Role.SCRATCH, uses=_BY_TILES)
_preparation = partial(ArraySpec, role=Role.PREPARATION, uses=0)
_product = partial(ArraySpec, role=Role.LADDER_PRODUCT, uses=_ONCE, is_kept=True)
_ladder = partial(ArraySpec, role=Role.LADDER_INTEGRALS, uses=0, store_dtype="float32")
_amplitudes = partial(ArraySpec, role=Role.AMPLITUDES, uses=_BY_TILES, in_pair_products=True, is_kept=True)
_exchange = partial(ArraySpec, role=Role.INTEGRALS, uses=_ONCE, in_pair_products=True)
_ring = partial(ArraySpec, role=Role.SCRATCH, uses=0, in_pair_products=True)
_vector = partial(ArraySpec, role=Role.VECTOR, uses=_ONCE)
_error = partial(_vector, store_dtype="float32")


def arrays_of(
    sizes: Sizes, spaces: tuple[Spaces, ...], only: Collection[str] | None = None
) -> list[ArraySpec]:
    """All arrays of the method, or `only` those of these names; those first that are used most for their size.

    Raises OutcoreError (EINVAL): `only` has a name that no array has."""
    table = _restricted(sizes, *spaces) if len(spaces) == 1 else _unrestricted(sizes, *spaces)
    without = methods.of(sizes.method).without
    found = [each for each in table if each.name not in without]
    names = Counter(each.name for each in found)
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, twice
    if only is None:
        return found
    unknown = sorted(set(only) - set(names))
    if unknown:
        raise OutcoreError(
            errno.EINVAL, "plan of coupled cluster", detail=f"there is no array {', '.join(unknown)}"
        )
    return [each for each in found if each.name in only]


def _restricted(sizes: Sizes, spaces: Spaces) -> Iterator[ArraySpec]:
    o, v, q = spaces.o, spaces.v, Tiling(sizes.auxiliary, name="auxiliary")
    rows, columns = spaces.all_pairs.tiling, spaces.virtual_pairs.tiling
    count = spaces.occupied
    signs = {"+": Tiling(count * (count + 1) // 2)}
    if count > 1:
        signs["-"] = Tiling(count * (count - 1) // 2)
    pairs = Layout((v, o, v, o))
    of_equal_spins = Layout((v, o, v, o), None, PAIR)
    rings = Tiling(sizes.auxiliary + 2)  # the last two of Fock matrices
    yield _input("Boo", Layout((q, o, o), None, "symmetric(1,2)"))
    yield _scratch("Doo", Layout((q, o, o)))
    yield _scratch("Soo", Layout((rings, o, o)))
    yield _input("Bvo", Layout((q, v, o)))
    yield _scratch("Dvo", Layout((q, v, o)))
    yield _scratch("Y", Layout((q, v, o)))
    yield _amplitudes("T", of_equal_spins)
    yield _scratch("U", of_equal_spins, uses=4, in_pair_products=True)
    yield _exchange("G", of_equal_spins)
    yield _ring("E", pairs)
    yield _scratch("R", pairs, in_pair_products=True, is_kept=True)
    yield _scratch("W", of_equal_spins)
    yield _input("Bvv", Layout((q, v, v), None, "symmetric(1,2)"))
    yield _scratch("Svv", Layout((rings, v, v)))
    for sign, ij in signs.items():
        yield _product(f"A{sign}", Layout((rows, ij)))
    for sign in signs:
        yield _ladder(f"V{sign}", Layout((rows, columns)))
    yield _preparation("rows", Layout((Tiling(sizes.cuts[-1], sizes.cuts), rows)))
    for vector in range(sizes.vectors):
        yield _error(f"e{vector}", of_equal_spins)
        yield _vector(f"t{vector}", of_equal_spins)


def _unrestricted(sizes: Sizes, a: Spaces, b: Spaces) -> Iterator[ArraySpec]:
    q = Tiling(sizes.auxiliary, name="auxiliary")
    symmetric = "symmetric(1,2)"
    mixed = Layout((a.v, a.o, b.v, b.o))
    for s, name in ((a, "a"), (b, "b")):
        o, v = s.o, s.v
        pairs = Layout((v, o, v, o))
        of_equal_spins = Layout((v, o, v, o), None, PAIR)
        yield _input(f"Boo{name}", Layout((q, o, o), None, symmetric))
        yield _scratch(f"Doo{name}", Layout((q, o, o)))
        yield _scratch(f"oooo{name}", Layout((o, o, o, o)))
        yield _input(f"Bvo{name}", Layout((q, v, o)))
        for each in ("Dvo", "Y"):
            yield _scratch(f"{each}{name}", Layout((q, v, o)))
        yield _scratch(f"ooov{name}", Layout((o, o, v, o)))
        yield _amplitudes(f"T{name}{name}", of_equal_spins)
        yield _exchange(f"G{name}{name}", of_equal_spins)
        yield _scratch(f"W{name}{name}", of_equal_spins, is_kept=True)
        yield _ring(f"E{name}", pairs)
        yield _scratch(f"X{name}", pairs)
        yield _scratch(f"R{name}", pairs, in_pair_products=True)
        yield _input(f"Bvv{name}", Layout((q, v, v), None, symmetric))
        yield _scratch(f"Svv{name}", Layout((q, v, v)))
        count = s.occupied * (s.occupied - 1) // 2
        if count:
            yield _product(f"A-{name}", Layout((s.all_pairs.tiling, Tiling(count))))
            yield _ladder(f"V-{name}", Layout((s.all_pairs.tiling, s.virtual_pairs.tiling)))
        yield _preparation(f"rows{name}", Layout((Tiling(sizes.cuts[-1], sizes.cuts), s.all_pairs.tiling)))
    yield _amplitudes("Tab", mixed)
    yield _exchange("Gab", mixed)
    yield _scratch("Wab", mixed)
    yield _scratch("ooooab", Layout((a.o, a.o, b.o, b.o)))
    yield _scratch("ooovab", Layout((a.o, a.o, b.v, b.o)))
    yield _scratch("voooab", Layout((a.v, a.o, b.o, b.o)))
    yield _ring("Hab", mixed)
    yield _ring("Hba", Layout((b.v, b.o, a.v, a.o)))
    yield _ring("Mba", Layout((b.v, a.o, b.v, a.o)))
    yield _ring("Lab", Layout((a.v, b.o, a.v, b.o)))
    yield _product("Aab", Layout((a.all, a.o, b.all, b.o)))
    yield _ladder("Vab", Layout((a.all, b.all, a.v, b.v)))
    for vector in range(sizes.vectors):
        for name, layout in (
            ("aa", Layout((a.v, a.o, a.v, a.o), None, PAIR)),
            ("ab", mixed),
            ("bb", Layout((b.v, b.o, b.v, b.o), None, PAIR)),
        ):
            yield _error(f"e{name}{vector}", layout)
            yield _vector(f"t{name}{vector}", layout)
